// Transition operators and bridges of sik-knn (MATH 3 and 5), without a matrix over the vocabulary:
//   K_{t,s} = e^{-(R_t-R_s)} E(A_t-A_s) + v_{t,s} 1^T,   E(x) = exp(x (F - I)) = sum_n Pois(n; x) F^n,
//   v_{t,s} = sum_n c_n(t,s) p_n,   p_n = F^n (1/m) 1,   c_n = integral of r(u) e^{-(R_t-R_u)} Pois(n; A_t-A_u) du.
// Everything before the last reset is forgotten, so the second term has rank one.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "diffusion/dense.h"
#include "diffusion/sik.h"

namespace gdds::diffusion {

static constexpr double kNegligible = 1e-17;

// Pois(n; mean) for n = 0, 1, ... until the rest is negligible.
std::vector<double> poisson_weights(double mean) {
  std::vector<double> p = {std::exp(-mean)};
  while (static_cast<double>(p.size()) < mean || p.back() > kNegligible) p.push_back(p.back() * mean / static_cast<double>(p.size()));
  return p;
}

// c_n(t, s): over the clock Lambda, in panels of Gauss-Legendre. The panels lie closer towards the end, as the square of the
// distance from it, since lambda(t) has the slope of a square root there on the cosine schedule. Their sum is known: 1 - e^{-(R_t-R_s)}.
std::vector<double> reset_coefficients(const Clock& clock, double s, double t) {
  constexpr int kPanels = 64;
  const double from = clock.schedule().Lambda(s), to = clock.schedule().Lambda(t), half = 1.0 / (2 * kPanels);
  const double A = clock.A(t), R = clock.R(t);
  std::vector<double> c(poisson_weights(std::max(0.0, A - clock.A(s))).size(), 0.0);
  for (int panel = 0; panel < kPanels; ++panel)
    for (const GaussPoint& g : kGauss) {
      const double left = 1 - half * (2 * panel + 1 + g.x);
      const double u = std::clamp(clock.schedule().time_of(to - (to - from) * left * left), s, t);
      double p = 2 * left * (to - from) * half * g.weight * clock.r_of(u) * std::exp(-(R - clock.R(u)) - (A - clock.A(u)));
      for (std::size_t n = 0; n < c.size(); ++n) {
        c[n] += p;
        p *= (A - clock.A(u)) / static_cast<double>(n + 1);
      }
    }
  const double sum = std::accumulate(c.begin(), c.end(), 0.0), exact = -std::expm1(-(R - clock.R(s)));
  for (double& value : c) value *= sum > 0 ? exact / sum : 0;
  return c;
}

namespace {

// A sum of powers of F (or of its transpose) on a vector: sum_n weights[n] F^n p.
template <typename Step>
void add_powers(std::span<const double> weights, double scale, std::span<const double> p, std::span<double> out, Step step) {
  std::vector<double> power(p.begin(), p.end()), next(p.size());
  for (std::size_t n = 0; n < weights.size(); ++n) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += scale * weights[n] * power[i];
    if (n + 1 == weights.size()) break;
    step(power, next);
    power.swap(next);
  }
}

// F^n e_y as lists of tokens. Entries below kDropped are left out; the mass that is lost this way stays below 1e-11 even
// if every token is reached in each of a few dozen steps.
class ForwardPowers {
 public:
  static constexpr double kDropped = 1e-17;
  struct Entry {
    std::int32_t token;
    double value;
  };

  ForwardPowers(const SparseKernel& kernel, std::int32_t y, std::size_t count) : lists_(count) {
    static thread_local std::vector<double> sums;
    sums.resize(std::max(sums.size(), static_cast<std::size_t>(kernel.m)), 0.0);
    lists_[0] = {{y, 1.0}};
    std::vector<std::int32_t> touched;
    for (std::size_t n = 1; n < count; ++n) {
      touched.clear();
      for (const Entry& e : lists_[n - 1])
        for (std::size_t i = static_cast<std::size_t>(e.token) * static_cast<std::size_t>(kernel.k), end = i + static_cast<std::size_t>(kernel.k); i < end; ++i) {
          const double value = e.value * kernel.weights[i];
          if (value < kDropped) continue;
          double& sum = sums[static_cast<std::size_t>(kernel.ids[i])];
          if (sum == 0) touched.push_back(kernel.ids[i]);
          sum += value;
        }
      std::sort(touched.begin(), touched.end());
      for (const std::int32_t token : touched) {
        lists_[n].push_back({token, sums[static_cast<std::size_t>(token)]});
        sums[static_cast<std::size_t>(token)] = 0;
      }
    }
  }
  // F^n(x, y)
  double at(std::size_t n, std::int32_t x) const {
    const auto& list = lists_[n];
    const auto found = std::lower_bound(list.begin(), list.end(), x, [](const Entry& e, std::int32_t token) { return e.token < token; });
    return found != list.end() && found->token == x ? found->value : 0.0;
  }

 private:
  std::vector<std::vector<Entry>> lists_;
};

class SikTransition final : public Transition {
 public:
  SikTransition(const SikKnnProcess& process, double s, double t)
      : process_(process), kept_(std::exp(-(process.clocks().R(t) - process.clocks().R(s)))),
        powers_(poisson_weights(std::max(0.0, process.clocks().A(t) - process.clocks().A(s)))), resets_(reset_coefficients(process.clocks(), s, t)) {}

  double v(std::int32_t x) const {
    double sum = 0;
    const double* p = process_.spread_of(x);
    for (std::size_t n = 0; n < resets_.size(); ++n) sum += resets_[n] * p[n];
    return sum;
  }
  double entry(std::int32_t x, std::int32_t y) const override {
    const ForwardPowers forward(process_.kernel(), y, powers_.size());
    double sum = 0;
    for (std::size_t n = 0; n < powers_.size(); ++n) sum += powers_[n] * forward.at(n, x);
    return kept_ * sum + v(x);
  }
  void column(std::int32_t y, std::span<double> out) const override {
    std::vector<double> unit(out.size(), 0.0);
    unit[static_cast<std::size_t>(y)] = 1;
    apply(unit, out);
  }
  void row(std::int32_t x, std::span<double> out) const override {
    std::vector<double> unit(out.size(), 0.0);
    unit[static_cast<std::size_t>(x)] = 1;
    apply_transposed(unit, out);
  }
  void apply(std::span<const double> p, std::span<double> out) const override {
    double sum = 0;
    for (const double value : p) sum += value;
    fill_v(sum, out);
    add_powers(powers_, kept_, p, out, [&](const auto& from, auto& to) { process_.kernel().apply(from, to); });
  }
  void apply_transposed(std::span<const double> h, std::span<double> out) const override {
    double sum = 0;
    for (std::size_t x = 0; x < h.size(); ++x)
      if (h[x] != 0) sum += h[x] * v(static_cast<std::int32_t>(x));
    std::fill(out.begin(), out.end(), sum);
    add_powers(powers_, kept_, h, out, [&](const auto& from, auto& to) { process_.kernel().apply_transposed(from, to); });
  }

 private:
  void fill_v(double scale, std::span<double> out) const {
    for (std::size_t x = 0; x < out.size(); ++x) out[x] = scale * v(static_cast<std::int32_t>(x));
  }
  const SikKnnProcess& process_;
  double kept_;  // e^{-(R_t-R_s)}
  std::vector<double> powers_, resets_;
};

// The four terms of K_{t,s}(x_t, x_s) K_{s,0}(x_s, x_0), by whether there was a reset before s and after it (MATH 5).
class SikBridge final : public Bridge {
 public:
  SikBridge(const SikKnnProcess& process, double s, double t)
      : process_(process), at_s_(process.clocks().at(s)), kept_late_(std::exp(-(process.clocks().R(t) - at_s_.r))), A_s_(at_s_.a), A_ts_(std::max(0.0, process.clocks().A(t) - at_s_.a)),
        all_(poisson_weights(A_s_ + A_ts_)), late_(poisson_weights(A_ts_)), before_(reset_coefficients(process.clocks(), 0, s)), after_(reset_coefficients(process.clocks(), s, t)) {}

  std::int32_t draw(std::int32_t xt, std::int32_t x0, TokenRandom& random) const override {
    const ForwardPowers forward(process_.kernel(), x0, all_.size());
    std::vector<double> none(all_.size());
    double total = 0;
    for (std::size_t n = 0; n < none.size(); ++n) total += none[n] = all_[n] * forward.at(n, xt);
    const double v_late = reset_mass(after_, xt);
    const double terms[4] = {kept_late_ * at_s_.no_reset * total, kept_late_ * before_mass(xt), v_late * at_s_.no_reset, v_late * (1 - at_s_.no_reset)};
    switch (draw_index(terms, random.unit())) {
      case 0: return without_resets(xt, forward, none, random);
      case 1: return reset_before(xt, random);
      case 2: return forward_jumps(x0, A_s_, random);
      default: return from_last_reset(random);
    }
  }

 private:
  double reset_mass(const std::vector<double>& c, std::int32_t x) const {
    const double* p = process_.spread_of(x);
    double sum = 0;
    for (std::size_t n = 0; n < c.size(); ++n) sum += c[n] * p[n];
    return sum;
  }
  // (E_ts v_s)(x_t): n jumps between the last reset and s, j after it.
  double before_mass(std::int32_t xt) const {
    const double* p = process_.spread_of(xt);
    double sum = 0;
    for (std::size_t n = 0; n < before_.size(); ++n)
      for (std::size_t j = 0; j < late_.size(); ++j) sum += before_[n] * late_[j] * p[n + j];
    return sum;
  }
  // One jump back from z: to y with a probability proportional to F(z, y) weight(y).
  template <typename Weight>
  std::int32_t step_back(std::int32_t z, Weight weight, TokenRandom& random) const {
    const SparseKernel& F = process_.kernel();
    const auto begin = static_cast<std::size_t>(F.row_begin[static_cast<std::size_t>(z)]), end = static_cast<std::size_t>(F.row_begin[static_cast<std::size_t>(z) + 1]);
    std::vector<double> weights;
    for (std::size_t i = begin; i < end; ++i) weights.push_back(F.row_weights[i] * weight(F.row_ids[i]));
    return F.row_ids[begin + static_cast<std::size_t>(draw_index(weights, random.unit()))];
  }
  std::int32_t without_resets(std::int32_t xt, const ForwardPowers& forward, const std::vector<double>& masses, TokenRandom& random) const {
    auto n = static_cast<std::size_t>(draw_index(masses, random.unit()));
    std::size_t late = 0;  // of the n jumps, each is after s with probability A_ts / A_t
    for (std::size_t i = 0; i < n; ++i) late += random.unit() * (A_s_ + A_ts_) < A_ts_ ? 1 : 0;
    std::int32_t z = xt;
    for (; late > 0; --late, --n) z = step_back(z, [&](std::int32_t y) { return forward.at(n - 1, y); }, random);
    return z;
  }
  std::int32_t reset_before(std::int32_t xt, TokenRandom& random) const {
    const double* p = process_.spread_of(xt);
    std::vector<double> masses;
    for (std::size_t n = 0; n < before_.size(); ++n)
      for (std::size_t j = 0; j < late_.size(); ++j) masses.push_back(before_[n] * late_[j] * p[n + j]);
    const auto pick = static_cast<std::size_t>(draw_index(masses, random.unit()));
    std::size_t level = pick / late_.size() + pick % late_.size();
    std::int32_t z = xt;
    for (std::size_t j = pick % late_.size(); j > 0; --j, --level) z = step_back(z, [&](std::int32_t y) { return process_.spread_of(y)[level - 1]; }, random);
    return z;
  }
  std::int32_t forward_jumps(std::int32_t from, double mean, TokenRandom& random) const {
    const int jumps = kernels::poisson_inverse(mean, kernels::natural_exp(-mean), random.unit());
    for (int i = 0; i < jumps; ++i) from = process_.neighbour(from, random);
    return from;
  }
  // v_s, normalised: given that there was a reset before s, the last one as in kernels::sik_token.
  std::int32_t from_last_reset(TokenRandom& random) const {
    const double u = at_s_.no_reset + (1 - at_s_.no_reset) * random.unit();
    const auto table = process_.clocks().table();
    const auto at = kernels::place_of_r(table, at_s_.r + std::log(u));
    const std::int32_t token = kernels::below(process_.m(), random.next());
    return forward_jumps(token, std::max(0.0, at_s_.a - kernels::a_in_cell(table, at.cell)(at.z)), random);
  }

  const SikKnnProcess& process_;
  kernels::SikTime at_s_;
  double kept_late_, A_s_, A_ts_;
  std::vector<double> all_, late_;       // Pois(n; A_t), Pois(j; A_ts)
  std::vector<double> before_, after_;   // c_n(s, 0), c_n(t, s)
};

}  // namespace

// As many as a reset before s and the jumps after it can ask for.
const double* SikKnnProcess::spread_of(std::int32_t x) const {
  std::call_once(spread_once_, [&] {
    spread_count_ = 2 * poisson_weights(clocks().A(1)).size();
    spreads_.resize(static_cast<std::size_t>(m()) * spread_count_);
    std::vector<double> p(static_cast<std::size_t>(m()), 1.0 / m()), next(p.size());
    for (std::size_t n = 0; n < spread_count_; ++n) {
      for (std::size_t i = 0; i < p.size(); ++i) spreads_[i * spread_count_ + n] = p[i];
      kernel_.apply(p, next);
      p.swap(next);
    }
  });
  return spreads_.data() + static_cast<std::size_t>(x) * spread_count_;
}

std::unique_ptr<Transition> SikKnnProcess::transition(double s, double t) const { return std::make_unique<SikTransition>(*this, s, t); }
std::unique_ptr<Bridge> SikKnnProcess::bridge(double s, double t) const { return std::make_unique<SikBridge>(*this, s, t); }

// At a constant temperature F does not depend on time, and K is a sum of its powers as for sik-knn; else the equation is solved.
std::unique_ptr<Transition> SikDenseProcess::transition(double s, double t) const {
  if (!constant_temperature() || m() > DenseTransition::kMostStates) return std::make_unique<DenseTransition>(*this, s, t);
  return std::make_unique<DenseTransition>(static_cast<std::size_t>(m()), matrix_of_powers(s, t));
}

std::vector<double> SikDenseProcess::matrix_of_powers(double s, double t) const {
  const auto n = static_cast<std::size_t>(m());
  std::call_once(powers_once_, [&] {
    std::vector<double> F(n * n), column(n), power(n * n, 0.0);
    for (std::size_t y = 0; y < n; ++y) {
      kernel_column(static_cast<std::int32_t>(y), 0, column);
      for (std::size_t x = 0; x < n; ++x) F[x * n + y] = column[x];
      power[y * n + y] = 1;
    }
    for (std::size_t count = poisson_weights(clocks().A(1)).size(); powers_.size() < count;) {
      powers_.push_back(power);
      power = multiply(F, power, n);
    }
  });
  const double kept = std::exp(-(clocks().R(t) - clocks().R(s)));
  const auto weights = poisson_weights(std::max(0.0, clocks().A(t) - clocks().A(s))), resets = reset_coefficients(clocks(), s, t);
  std::vector<double> K(n * n, 0.0);
  for (std::size_t i = 0; i < std::min(weights.size(), powers_.size()); ++i)
    for (std::size_t e = 0; e < K.size(); ++e) K[e] += kept * weights[i] * powers_[i][e];
  for (std::size_t x = 0; x < n; ++x) {  // v(x): resets go to every y alike
    double v = 0;
    for (std::size_t i = 0; i < std::min(resets.size(), powers_.size()); ++i) v += resets[i] * std::accumulate(powers_[i].begin() + static_cast<std::ptrdiff_t>(x * n), powers_[i].begin() + static_cast<std::ptrdiff_t>((x + 1) * n), 0.0) / static_cast<double>(n);
    for (std::size_t y = 0; y < n; ++y) K[x * n + y] += v;
  }
  return K;
}

// What every x0 tends to: v_{1,0}, the law given that there was a reset.
std::vector<double> SikKnnProcess::prior() const {
  std::vector<double> p(static_cast<std::size_t>(m()), 0.0);
  const auto c = reset_coefficients(clocks(), 0, 1);
  double total = 0;
  for (std::size_t x = 0; x < p.size(); ++x)
    for (std::size_t n = 0; n < c.size(); ++n) p[x] += c[n] * spread_of(static_cast<std::int32_t>(x))[n];
  for (const double value : p) total += value;
  for (double& value : p) value = total > 0 ? value / total : 1.0 / m();
  return p;
}

}  // namespace gdds::diffusion
