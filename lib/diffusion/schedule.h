// How fast noise comes: the mixing rate alpha(t), its logarithmic derivative f = -alpha'/alpha and the clock
// Lambda = -log alpha = integral of f, each in closed form and with its inverse. MATH 1.
#pragma once

#include <string>

#include "base/options.h"
#include "noise.h"

namespace gdds::diffusion {

// alpha(0) is 1 for every schedule: those that begin below it (linear, cosine, geometric) are divided by where they begin,
// which leaves f as it is.
class Schedule {
 public:
  std::string name = "log-linear";  // log-linear, linear, cosine, geometric, exponential
  double eps = 1e-3;                // alpha(1) of log-linear; the floor of linear and cosine
  double sigma_min = 1e-3, sigma_max = 7;  // geometric
  double rate = 11.512925464970229;        // exponential: -log 1e-5

  double Lambda(double t) const;
  double f(double t) const;
  double alpha(double t) const;
  double time_of(double Lambda) const;  // the inverse of Lambda
  kernels::ScheduleInverse inverse() const;  // the same for kernels

  bool operator==(const Schedule&) const = default;
};

struct ScheduleOptions {
  std::string name = "log-linear";
  double eps = 0;  // 0: the schedule's own, 1e-3 for log-linear and 1e-4 for linear and cosine
  double sigma_min = 1e-3, sigma_max = 7;
  double rate = 11.512925464970229;
  void add_to(Options& options);
  Schedule make() const;  // status 2 where the numbers make no schedule
  bool operator==(const ScheduleOptions&) const = default;
};

}  // namespace gdds::diffusion
