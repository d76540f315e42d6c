// See masks.h.
#include "diffusion/masks.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"

namespace gdds::diffusion {
namespace {

class MaskingTransition final : public Transition {
 public:
  MaskingTransition(const MaskingProcess& process, double s, double t) : process_(process), s_(s), t_(t) {}

  double entry(std::int32_t x, std::int32_t y) const override {
    const auto way = process_.way(y);
    const auto p = process_.probabilities(y, s_, t_);
    double sum = 0;
    for (int i = 0; i < way.count; ++i)
      if (way.state[static_cast<std::size_t>(i)] == x) sum += p[static_cast<std::size_t>(i)];
    return sum;
  }
  void column(std::int32_t y, std::span<double> out) const override {
    std::fill(out.begin(), out.end(), 0.0);
    add_column(y, 1, out);
  }
  void row(std::int32_t x, std::span<double> out) const override {
    for (std::int32_t y = 0; y < process_.states(); ++y) out[static_cast<std::size_t>(y)] = entry(x, y);
  }
  void apply(std::span<const double> p, std::span<double> out) const override {
    std::fill(out.begin(), out.end(), 0.0);
    for (std::int32_t y = 0; y < process_.states(); ++y) add_column(y, p[static_cast<std::size_t>(y)], out);
  }
  void apply_transposed(std::span<const double> h, std::span<double> out) const override {
    for (std::int32_t y = 0; y < process_.states(); ++y) {
      const auto way = process_.way(y);
      const auto p = process_.probabilities(y, s_, t_);
      double sum = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(way.count); ++i) sum += p[i] * h[static_cast<std::size_t>(way.state[i])];
      out[static_cast<std::size_t>(y)] = sum;
    }
  }

 private:
  void add_column(std::int32_t y, double weight, std::span<double> out) const {
    const auto way = process_.way(y);
    const auto p = process_.probabilities(y, s_, t_);
    for (std::size_t i = 0; i < static_cast<std::size_t>(way.count); ++i) out[static_cast<std::size_t>(way.state[i])] += weight * p[i];
  }
  const MaskingProcess& process_;
  double s_, t_;
};

class MaskingBridge final : public Bridge {
 public:
  MaskingBridge(const MaskingProcess& process, double s, double t) : process_(process), s_(s), to_t_(process, s, t) {}
  std::int32_t draw(std::int32_t xt, std::int32_t x0, TokenRandom& random) const override {
    const auto way = process_.way(x0);
    auto weights = process_.probabilities(x0, 0, s_);
    const auto count = static_cast<std::size_t>(way.count);
    for (std::size_t i = 0; i < count; ++i) weights[i] *= to_t_.entry(xt, way.state[i]);
    return way.state[static_cast<std::size_t>(draw_index({weights.data(), count}, random.unit()))];
  }

 private:
  const MaskingProcess& process_;
  double s_;
  MaskingTransition to_t_;
};

void require_mask(const char* name, const VocabularyName& v) {
  if (v.mask < 0) reject("process {}: the vocabulary '{}' has no mask, or its file does not name it in /vocab@mask; 'gdds-tokenize convert --mask' adds one", name, v.name);
}

}  // namespace

void MaskingProcess::noise(const kernels::Snapshots& b, std::span<const double> times) const {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads())
  for (std::int64_t s = 0; s < b.sequences; ++s)
    for (std::int64_t l = 0; l < b.length; ++l) {
      TokenRandom random(b.seed, kernels::kForSnapshots, b.numbers[s], static_cast<std::uint32_t>(l));
      const std::int64_t at = s * b.length + l;
      const auto way = this->way(b.x0[at]);
      const auto p = probabilities(b.x0[at], 0, times[static_cast<std::size_t>(s)]);
      double u = random.unit();
      std::size_t i = 0;
      while (i + 1 < static_cast<std::size_t>(way.count) && u >= p[i]) u -= p[i++];
      b.xt[at] = way.state[i];
      b.jumped[at] = i > 0;
    }
}

std::unique_ptr<Transition> MaskingProcess::transition(double s, double t) const { return std::make_unique<MaskingTransition>(*this, s, t); }
std::unique_ptr<Bridge> MaskingProcess::bridge(double s, double t) const { return std::make_unique<MaskingBridge>(*this, s, t); }

std::vector<double> MaskingProcess::prior() const {
  std::vector<double> p(static_cast<std::size_t>(states()), 0.0);
  p[static_cast<std::size_t>(vocabulary().mask)] = 1;
  return p;
}

void MaskingProcess::rates_from(std::int32_t y, double t, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  const auto way = this->way(y);
  if (way.count == 1) return;
  const double rate = exit_rate(y, t);
  out[static_cast<std::size_t>(way.state[1])] += rate;
  out[static_cast<std::size_t>(y)] -= rate;
}

// ---- hierarchical ----------------------------------------------------------------------------------------------------

HierarchicalProcess::HierarchicalProcess(const Schedule& schedule, const VocabularyName& vocabulary, std::vector<std::int32_t> clusters, double gamma)
    : MaskingProcess("hierarchical", schedule, vocabulary), clusters_(std::move(clusters)), gamma_(gamma) {
  require_mask("hierarchical", vocabulary);
  clusters_count_ = *std::max_element(clusters_.begin(), clusters_.end()) + 1;
}

std::optional<Jump> HierarchicalProcess::jump(std::int32_t y, double, TokenRandom& random) const {
  const auto way = this->way(y);
  if (way.count == 1) return std::nullopt;  // the mask stays
  const double rate = way.count == 3 ? 1.0 : gamma_;
  if (random.unit() * std::max(1.0, gamma_) >= rate) return std::nullopt;
  return Jump{way.state[1], way.count == 2};
}

double HierarchicalProcess::exit_rate(std::int32_t y, double t) const {
  const auto count = way(y).count;
  return count == 1 ? 0 : schedule().f(t) * (count == 3 ? 1.0 : gamma_);
}

MaskingProcess::Way HierarchicalProcess::way(std::int32_t y) const {
  const std::int32_t mask = vocabulary().mask;
  if (y == mask) return {{mask, 0, 0}, 1};
  if (y >= m()) return {{y, mask, 0}, 2};
  return {{y, m() + clusters_[static_cast<std::size_t>(y)], mask}, 3};
}

// With rho = alpha_t / alpha_s: a token stays with rho, and is in its cluster with the integral of f rho^(...), which is
// rho expm1((1-gamma) L) / (1-gamma) with L = -log rho.
std::array<double, 3> HierarchicalProcess::probabilities(std::int32_t y, double s, double t) const {
  const double L = schedule().Lambda(t) - schedule().Lambda(s), rho = std::exp(-L);
  const auto count = way(y).count;
  if (count == 1) return {1, 0, 0};
  if (count == 2) return {std::exp(-gamma_ * L), -std::expm1(-gamma_ * L), 0};
  const double slower = 1 - gamma_;
  const double cluster = rho * (std::abs(slower) < 1e-12 ? L : std::expm1(slower * L) / slower);
  return {rho, cluster, std::max(0.0, -std::expm1(-L) - cluster)};
}

std::string HierarchicalProcess::config() const {
  return Json{{"name", name()}, {"schedule", to_json(schedule())}, {"mask", vocabulary().mask}, {"gamma", gamma_}}.dump();
}

std::vector<NamedArray> HierarchicalProcess::arrays() const {
  return {{"/clusters", {clusters_.size()}, std::span<const std::int32_t>(clusters_)}};
}

std::vector<std::pair<std::string, std::string>> HierarchicalProcess::facts() const {
  const std::int32_t token = vocabulary().mask == 0 ? 1 : 0;
  const auto p = probabilities(token, 0, 1);
  return {{"clusters", std::to_string(clusters_count_)}, {"stays at t = 1", fmt::format("{:.6g}", p[0])},
          {"in its cluster at t = 1", fmt::format("{:.6g}", p[1])}, {"at the mask at t = 1", fmt::format("{:.6g}", p[2])}};
}

// ---- mask-rates --------------------------------------------------------------------------------------------------------

MaskRatesProcess::MaskRatesProcess(const Schedule& schedule, const VocabularyName& vocabulary, std::vector<double> rates, const std::string& form)
    : MaskingProcess("mask-rates", schedule, vocabulary), rates_(std::move(rates)), form_(form), largest_(*std::max_element(rates_.begin(), rates_.end())) {
  require_mask("mask-rates", vocabulary);
}

double MaskRatesProcess::survival(std::int32_t y, double t) const {
  const double rate = rates_[static_cast<std::size_t>(y)];
  return form_ == "power" ? schedule().Lambda(std::pow(t, rate)) : rate * schedule().Lambda(t);
}

std::optional<Jump> MaskRatesProcess::jump(std::int32_t y, double, TokenRandom& random) const {
  if (y == vocabulary().mask || random.unit() * largest_ >= rates_[static_cast<std::size_t>(y)]) return std::nullopt;
  return Jump{vocabulary().mask, true};
}

double MaskRatesProcess::exit_rate(std::int32_t y, double t) const {
  if (y == vocabulary().mask) return 0;
  const double w = rates_[static_cast<std::size_t>(y)];
  return form_ == "power" ? w * std::pow(t, w - 1) * schedule().f(std::pow(t, w)) : w * schedule().f(t);
}

Path MaskRatesProcess::path(std::int32_t x0, double t, TokenRandom& random) const {
  const double e = random.exponential(), rate = rates_[static_cast<std::size_t>(x0)];
  if (x0 == vocabulary().mask || e >= survival(x0, t)) return {};
  const double time = form_ == "power" ? std::pow(schedule().time_of(e), 1 / rate) : schedule().time_of(e / rate);
  return {{std::min(t, time)}, {{vocabulary().mask, true}}};
}

MaskingProcess::Way MaskRatesProcess::way(std::int32_t y) const {
  const std::int32_t mask = vocabulary().mask;
  if (y == mask) return {{mask, 0, 0}, 1};
  return {{y, mask, 0}, 2};
}

std::array<double, 3> MaskRatesProcess::probabilities(std::int32_t y, double s, double t) const {
  if (y == vocabulary().mask) return {1, 0, 0};
  const double L = survival(y, t) - survival(y, s);
  return {std::exp(-L), -std::expm1(-L), 0};
}

std::string MaskRatesProcess::config() const {
  return Json{{"name", name()}, {"schedule", to_json(schedule())}, {"mask", vocabulary().mask}, {"form", form_}}.dump();
}

std::vector<NamedArray> MaskRatesProcess::arrays() const { return {{"/mask_rates", {rates_.size()}, std::span<const double>(rates_)}}; }

std::vector<std::pair<std::string, std::string>> MaskRatesProcess::facts() const {
  double least = 1;
  for (std::int32_t y = 0; y < m(); ++y)
    if (y != vocabulary().mask) least = std::min(least, probabilities(y, 0, 1)[1]);
  return {{"rates from", fmt::format("{:.6g}", *std::min_element(rates_.begin(), rates_.end()))}, {"rates to", fmt::format("{:.6g}", largest_)},
          {"least likely masked at t = 1", fmt::format("{:.6g}", least)}};
}

}  // namespace gdds::diffusion
