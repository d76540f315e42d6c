// See clock.h.
#include "diffusion/clock.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace gdds::diffusion {
namespace {

constexpr std::int32_t kCells = 4096;
constexpr std::int32_t kGuides = 4096;

}  // namespace

const GaussPoint kGauss[8] = {{-0.9602898564975363, 0.1012285362903763}, {-0.7966664774136267, 0.2223810344533745},
                              {-0.5255324099163290, 0.3137066458778873}, {-0.1834346424956498, 0.3626837833783620},
                              {0.1834346424956498, 0.3626837833783620},  {0.5255324099163290, 0.3137066458778873},
                              {0.7966664774136267, 0.2223810344533745},  {0.9602898564975363, 0.1012285362903763}};

double ResetShare::rise() const {
  const auto g = [&](double u) { return 1 / (1 + std::exp(-steepness * (u - middle))); };
  return (ceiling - floor) / (g(1) - g(0));
}

double ResetShare::low() const { return floor - rise() / (1 + std::exp(steepness * middle)); }

void ResetShare::add_to(Options& options) {
  options.option("reset-floor", floor, "lambda(0): the share of jumps that go to any token, at t = 0").range(0, 1);
  options.option("reset-ceiling", ceiling, "lambda(1): the same at t = 1").range(0, 1);
  options.option("reset-steepness", steepness, "lambda rises from one to the other as sigmoid(steepness (t - middle))").range(1e-3, 1e3);
  options.option("reset-middle", middle, "see --reset-steepness").range(0, 1);
}

void ResetShare::validate() const {
  if (ceiling < floor) bad_usage("--reset-ceiling: expected at least --reset-floor {}, found {}", floor, ceiling);
  if (floor == 0 && ceiling > 0) bad_usage("--reset-floor: expected a positive number (or --reset-ceiling 0: no resets), found 0");
}

Clock::Clock(const Schedule& schedule, const ResetShare& share, std::int32_t m)
    : schedule_(schedule), share_(share), ratio_(static_cast<double>(m) / (m - 1)), step_(schedule.Lambda(1) / kCells), nodes_(kCells + 1), guide_(kGuides + 1) {
  for (std::int32_t i = 0; i <= kCells; ++i) {
    const double t = std::min(1.0, schedule_.time_of(step_ * i));
    double mean = 0;  // of lambda over the cell that ends here
    for (const GaussPoint& g : kGauss)
      if (i > 0) mean += 0.5 * g.weight * share_(std::min(1.0, schedule_.time_of(step_ * (i - 0.5 + 0.5 * g.x))));
    auto& node = nodes_[static_cast<std::size_t>(i)];
    node.da = a_of(t);
    node.dr = r_of(t);
    if (i == 0) continue;
    const auto& before = nodes_[static_cast<std::size_t>(i - 1)];
    node.a = before.a + step_ * (1 - mean);
    node.r = before.r + step_ * mean * ratio_;
  }
  const double top = nodes_.back().r;
  std::int32_t node = 0;
  for (std::int32_t g = 0; g <= kGuides; ++g) {
    while (node < kCells && nodes_[static_cast<std::size_t>(node + 1)].r <= top * g / kGuides) ++node;
    guide_[static_cast<std::size_t>(g)] = std::min(node, kCells - 1);
  }
}

kernels::ClockTable Clock::table() const {
  const double top = nodes_.back().r;
  return {nodes_.data(), kCells, step_, guide_.data(), kGuides, top > 0 ? kGuides / top : 0.0};
}

double Clock::A(double t) const {
  const auto at = kernels::place_of_lambda(table(), schedule_.Lambda(t));
  return kernels::a_in_cell(table(), at.cell)(at.z);
}

double Clock::R(double t) const {
  const auto at = kernels::place_of_lambda(table(), schedule_.Lambda(t));
  return kernels::r_in_cell(table(), at.cell)(at.z);
}

// Over Lambda, of which A + R is a smooth function that grows by between 1 and m/(m-1) a unit: Newton needs no care there.
double Clock::time_of_total(double c) const {
  const auto clock = table();
  const double end = schedule_.Lambda(1);
  double Lambda = std::min(c, end);
  for (int i = 0; i < 20; ++i) {
    const auto at = kernels::place_of_lambda(clock, Lambda);
    const double t = schedule_.time_of(Lambda), excess = kernels::a_in_cell(clock, at.cell)(at.z) + kernels::r_in_cell(clock, at.cell)(at.z) - c;
    const double next = std::clamp(Lambda - excess / (a_of(t) + r_of(t)), 0.0, end);
    if (std::abs(next - Lambda) < 1e-14 * (1 + end)) return schedule_.time_of(next);
    Lambda = next;
  }
  return schedule_.time_of(Lambda);
}

kernels::SikTime Clock::at(double t) const {
  const double a = A(t), r = R(t);
  return {a, r, kernels::natural_exp(-r), kernels::natural_exp(-a), schedule_.Lambda(t)};
}

}  // namespace gdds::diffusion
