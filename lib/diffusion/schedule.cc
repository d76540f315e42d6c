// See schedule.h. Written with log1p and expm1, so that small t and small Lambda keep their digits.
#include "diffusion/schedule.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace gdds::diffusion {
namespace {

constexpr double kHalfPi = std::numbers::pi / 2;

// linear and cosine are (1 - 2 eps) base(t) + eps; divided by their value at 0 they are 1 - slope (1 - base(t)).
double slope(const Schedule& s) { return s.name == "log-linear" ? 1 - s.eps : (1 - 2 * s.eps) / (1 - s.eps); }

double geometric_sigma(const Schedule& s, double t) { return s.sigma_min * std::pow(s.sigma_max / s.sigma_min, t); }

}  // namespace

double Schedule::Lambda(double t) const {
  if (name == "cosine") return -std::log1p(-slope(*this) * std::sin(kHalfPi * t));
  if (name == "geometric") return sigma_min * std::expm1(t * std::log(sigma_max / sigma_min));
  if (name == "exponential") return rate * t;
  return -std::log1p(-slope(*this) * t);
}

double Schedule::f(double t) const {
  if (name == "cosine") return slope(*this) * kHalfPi * std::cos(kHalfPi * t) / (1 - slope(*this) * std::sin(kHalfPi * t));
  if (name == "geometric") return std::log(sigma_max / sigma_min) * geometric_sigma(*this, t);
  if (name == "exponential") return rate;
  return slope(*this) / (1 - slope(*this) * t);
}

double Schedule::alpha(double t) const { return std::exp(-Lambda(t)); }

double Schedule::time_of(double clock) const {
  if (name == "cosine") return std::asin(std::min(1.0, -std::expm1(-clock) / slope(*this))) / kHalfPi;
  if (name == "geometric") return std::log1p(clock / sigma_min) / std::log(sigma_max / sigma_min);
  if (name == "exponential") return clock / rate;
  return -std::expm1(-clock) / slope(*this);
}

kernels::ScheduleInverse Schedule::inverse() const {
  using Inverse = kernels::ScheduleInverse;
  if (name == "cosine") return {Inverse::kCosine, slope(*this), 0};
  if (name == "geometric") return {Inverse::kGeometric, sigma_min, std::log(sigma_max / sigma_min)};
  if (name == "exponential") return {Inverse::kExponential, rate, 0};
  return {Inverse::kLinear, slope(*this), 0};
}

void ScheduleOptions::add_to(Options& options) {
  options.option("schedule", name, "how alpha falls from 1 to nearly 0").choices({"log-linear", "linear", "cosine", "geometric", "exponential"});
  options.option("schedule-eps", eps, "alpha(1) of log-linear, the floor of linear and cosine; 0: 1e-3 of log-linear, 1e-4 of the others").range(0, 0.4);
  options.option("sigma-min", sigma_min, "geometric: Lambda is sigma-min^(1-t) sigma-max^t, less its value at 0").range(1e-12, 100);
  options.option("sigma-max", sigma_max, "geometric: see --sigma-min").range(1e-12, 100);
  options.option("schedule-rate", rate, "exponential: alpha = exp(-rate t)").range(1e-6, 60);
}

Schedule ScheduleOptions::make() const {
  if (name == "geometric" && sigma_max <= sigma_min) bad_usage("--sigma-max: expected more than --sigma-min {}, found {}", sigma_min, sigma_max);
  return {name, eps > 0 ? eps : name == "log-linear" ? 1e-3 : 1e-4, sigma_min, sigma_max, rate};
}

}  // namespace gdds::diffusion
