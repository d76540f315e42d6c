// See resets.h.
#include "diffusion/resets.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"

namespace gdds::diffusion {
namespace {

// K = rho I + (mask e_mask + uniform/m 1) 1^T
class ResetTransition final : public Transition {
 public:
  ResetTransition(ResetProcess::Masses masses, std::int32_t mask, std::int32_t m) : masses_(masses), mask_(mask), m_(m) {}

  double target(std::int32_t x) const { return masses_.uniform / m_ + (x == mask_ ? masses_.mask : 0.0); }
  double entry(std::int32_t x, std::int32_t y) const override { return target(x) + (x == y ? masses_.stay : 0.0); }
  void column(std::int32_t y, std::span<double> out) const override {
    for (std::int32_t x = 0; x < m_; ++x) out[static_cast<std::size_t>(x)] = entry(x, y);
  }
  void row(std::int32_t x, std::span<double> out) const override {
    for (std::int32_t y = 0; y < m_; ++y) out[static_cast<std::size_t>(y)] = entry(x, y);
  }
  void apply(std::span<const double> p, std::span<double> out) const override {
    double sum = 0;
    for (const double v : p) sum += v;
    for (std::int32_t x = 0; x < m_; ++x) out[static_cast<std::size_t>(x)] = masses_.stay * p[static_cast<std::size_t>(x)] + target(x) * sum;
  }
  void apply_transposed(std::span<const double> h, std::span<double> out) const override {
    double sum = 0;
    for (std::int32_t x = 0; x < m_; ++x) sum += target(x) * h[static_cast<std::size_t>(x)];
    for (std::size_t y = 0; y < h.size(); ++y) out[y] = masses_.stay * h[y] + sum;
  }

 private:
  ResetProcess::Masses masses_;
  std::int32_t mask_, m_;
};

// Both factors of the bridge are "stayed" or "was reset": four cases, of which one is drawn by its mass.
class ResetBridge final : public Bridge {
 public:
  ResetBridge(const ResetProcess& process, double s, double t)
      : late_(process.masses(s, t)), early_(process.masses(s)), to_t_(late_, process.vocabulary().mask, process.m()),
        to_s_(early_, process.vocabulary().mask, process.m()), mask_(process.vocabulary().mask), m_(process.m()) {}

  std::int32_t draw(std::int32_t xt, std::int32_t x0, TokenRandom& random) const override {
    const double none = xt == x0 ? late_.stay * early_.stay : 0.0;
    const double before = late_.stay * to_s_.target(xt);  // x_s is x_t already
    const double after = to_t_.target(xt) * early_.stay;  // x_s is still x_0
    const double both = to_t_.target(xt) * (early_.mask + early_.uniform);
    double u = random.unit() * (none + before + after + both);
    if (u < none + before) return xt;
    u -= none + before;
    if (u < after) return x0;
    if ((u - after) / both * (early_.mask + early_.uniform) < early_.mask) return mask_;
    return kernels::below(m_, random.next());
  }

 private:
  ResetProcess::Masses late_, early_;
  ResetTransition to_t_, to_s_;
  std::int32_t mask_, m_;
};

std::uint32_t limit_of(double probability) {
  return static_cast<std::uint32_t>(std::min(4294967295.0, std::max(0.0, std::nearbyint(probability * 4294967296.0))));
}

}  // namespace

void HybridShape::add_to(Options& options) {
  options.option("hybrid-share", share, "hybrid: the largest share of tokens that are noised to any token rather than the mask").range(0, 0.99);
  options.option("hybrid-gamma", gamma, "hybrid: how that share rises and falls, GIDD's gamma").range(0.1, 2);
}

ResetProcess::ResetProcess(const std::string& name, const Schedule& schedule, const VocabularyName& vocabulary, const HybridShape& shape)
    : Process(name, schedule, vocabulary), shape_(shape) {
  if (name != "uniform" && vocabulary.mask < 0)
    reject("process {}: the vocabulary '{}' has no mask, or its file does not name it in /vocab@mask; 'gdds-tokenize convert --mask' adds one", name, vocabulary.name);
}

double ResetProcess::excess(double a) const { return shape_.share / (1 - shape_.share) * std::pow(4 * a * (1 - a), shape_.gamma / 2); }

ResetProcess::Masses ResetProcess::masses(double t) const {
  const double gone = -std::expm1(-schedule().Lambda(t)), a = 1 - gone;
  if (name() == "absorb") return {a, gone, 0};
  if (name() == "uniform") return {a, 0, gone};
  const double more = excess(a), c = 1 + more;
  return {a / c, gone / c, more / c};
}

ResetProcess::Masses ResetProcess::masses(double s, double t) const {
  const Masses early = masses(s), late = masses(t);
  const double rho = late.stay / early.stay;
  return {rho, std::max(0.0, late.mask - rho * early.mask), std::max(0.0, late.uniform - rho * early.uniform)};
}

double ResetProcess::clock(double t) const { return -std::log(masses(t).stay); }

double ResetProcess::time_of(double c) const {
  if (!hybrid()) return schedule().time_of(c);
  double low = 0, high = 1;
  for (int i = 0; i < 100 && high - low > 1e-16; ++i) {
    const double middle = 0.5 * (low + high);
    (clock(middle) <= c ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

void ResetProcess::rates(double t, double& mask, double& uniform) const {
  const double f = schedule().f(t), a = schedule().alpha(t);
  mask = name() == "absorb" ? f : 0;
  uniform = name() == "uniform" ? f : 0;
  if (!hybrid()) return;
  const double more = excess(a), c = 1 + more;
  mask = f / c;
  uniform = f * more / c * (1 - shape_.gamma / 2 * (1 - 2 * a) / (1 - a));
}

std::optional<Jump> ResetProcess::jump(std::int32_t, double t, TokenRandom& random) const {
  double to_mask = 0, to_any = 0;
  rates(t, to_mask, to_any);
  if (random.unit() * (to_mask + to_any) < to_mask) return Jump{vocabulary().mask, true};
  return Jump{kernels::below(m(), random.next()), true};
}

void ResetProcess::rates_from(std::int32_t y, double t, std::span<double> out) const {
  double to_mask = 0, to_any = 0;
  rates(t, to_mask, to_any);
  std::fill(out.begin(), out.end(), to_any / m());
  if (to_mask > 0) out[static_cast<std::size_t>(vocabulary().mask)] += to_mask;
  out[static_cast<std::size_t>(y)] -= to_mask + to_any;
}

void ResetProcess::noise(const kernels::Snapshots& batch, std::span<const double> times) const {
  std::vector<kernels::ResetLimits> limits;
  for (const double t : times) {
    const Masses masses = this->masses(t);
    limits.push_back({limit_of(masses.mask + masses.uniform), limit_of(masses.mask)});
  }
  if (name() == "absorb") kernels::cpu::noise_absorb(batch, limits.data(), vocabulary().mask, threads());
  else kernels::cpu::noise_reset(batch, limits.data(), vocabulary().mask, m(), threads());
}

std::unique_ptr<Transition> ResetProcess::transition(double s, double t) const {
  return std::make_unique<ResetTransition>(masses(s, t), vocabulary().mask, m());
}

std::unique_ptr<Bridge> ResetProcess::bridge(double s, double t) const { return std::make_unique<ResetBridge>(*this, s, t); }

std::vector<double> ResetProcess::prior() const {
  const Masses end = masses(1);
  std::vector<double> p(static_cast<std::size_t>(m()), end.uniform / (end.mask + end.uniform) / m());
  if (vocabulary().mask >= 0) p[static_cast<std::size_t>(vocabulary().mask)] += end.mask / (end.mask + end.uniform);
  return p;
}

std::string ResetProcess::config() const {
  Json json = {{"name", name()}, {"schedule", to_json(schedule())}};
  if (name() != "uniform") json["mask"] = vocabulary().mask;
  if (hybrid()) json.update({{"share", shape_.share}, {"gamma", shape_.gamma}});
  return json.dump();
}

std::vector<std::pair<std::string, std::string>> ResetProcess::facts() const {
  const Masses end = masses(1);
  return {{"stays at t = 1", fmt::format("{:.6g}", end.stay)}, {"at the mask at t = 1", fmt::format("{:.6g}", end.mask)}, {"anywhere at t = 1", fmt::format("{:.6g}", end.uniform)}};
}

}  // namespace gdds::diffusion
