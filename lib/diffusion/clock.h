// The two clocks of a semantic kernel (MATH 2.2): A counts semantic jumps, R counts resets to a uniform token. With
//   Q_u = a(u) (F - I) + r(u) (U - I),   a = f (1 - lambda),   r = f lambda m/(m-1),
// they are the integrals of a and r. Over the clock Lambda both are smooth with slopes of at most about 1, so they are
// tabulated there, once, and are cubic between the nodes: exact to 1e-9, which a test checks.
#pragma once

#include <cmath>
#include <vector>

#include "base/options.h"
#include "diffusion/schedule.h"
#include "noise.h"

namespace gdds::diffusion {

// lambda(t) = floor + (ceiling - floor) (g(t) - g(0)) / (g(1) - g(0)),  g(t) = sigmoid(steepness (t - middle)).
struct ResetShare {
  double floor = 0.01, ceiling = 1, steepness = 10, middle = 0.6;
  double operator()(double t) const { return low() + rise() / (1 + std::exp(-steepness * (t - middle))); }
  // As low + rise sigmoid(steepness (t - middle)).
  double rise() const;
  double low() const;
  void add_to(Options& options);
  void validate() const;
  bool operator==(const ResetShare&) const = default;
};

class Clock {
 public:
  Clock(const Schedule& schedule, const ResetShare& share, std::int32_t m);

  double A(double t) const;
  double R(double t) const;
  // lambda m/(m-1) and 1 - lambda: the derivatives of R and A by Lambda.
  double r_of(double t) const { return share_(t) * ratio_; }
  double a_of(double t) const { return 1 - share_(t); }
  // A + R, the clock of all jumps, and its inverse.
  double total(double t) const { return A(t) + R(t); }
  double time_of_total(double c) const;
  // What a kernel needs of one t.
  kernels::SikTime at(double t) const;
  kernels::ClockTable table() const;
  const Schedule& schedule() const { return schedule_; }

 private:
  Schedule schedule_;
  ResetShare share_;
  double ratio_;  // m/(m-1)
  double step_;
  std::vector<kernels::ClockNode> nodes_;
  std::vector<std::int32_t> guide_;
};

// Nodes and weights of Gauss-Legendre quadrature with eight points on [-1, 1].
struct GaussPoint {
  double x, weight;
};
extern const GaussPoint kGauss[8];

}  // namespace gdds::diffusion
