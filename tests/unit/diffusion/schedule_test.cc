// Schedules and clocks: closed forms agree with each other and with quadrature, and the constants of MATH 1 and 9.
#include <cmath>

#include <gtest/gtest.h>

#include "diffusion/clock.h"
#include "unit/diffusion/zoo.h"

namespace gdds::diffusion {
namespace {

TEST(Schedule, FormsAgree) {
  for (const Schedule& s : schedules()) {
    EXPECT_EQ(s.Lambda(0), 0) << s.name;
    EXPECT_DOUBLE_EQ(s.alpha(0), 1) << s.name;
    for (double t = 0.001; t < 1; t += 0.0417) {
      const double h = 1e-6;
      EXPECT_NEAR(s.alpha(t), std::exp(-s.Lambda(t)), 1e-15) << s.name;
      EXPECT_NEAR((s.Lambda(t + h) - s.Lambda(t - h)) / (2 * h), s.f(t), 1e-6 * s.f(t)) << s.name << " at " << t;
      EXPECT_NEAR(s.time_of(s.Lambda(t)), t, 1e-12) << s.name;
    }
    EXPECT_NEAR(s.time_of(s.Lambda(1)), 1, 1e-12) << s.name;
    EXPECT_NEAR(s.time_of(s.Lambda(1e-9)), 1e-9, 1e-20) << s.name;  // small t keeps its digits
  }
}

TEST(Schedule, ConstantsOfTheTable) {
  EXPECT_NEAR(schedules()[0].Lambda(1), 6.908, 5e-4);
  EXPECT_NEAR(schedules()[0].alpha(1), 1e-3, 1e-15);
  EXPECT_NEAR(schedules()[1].alpha(0.25), ((1 - 2e-4) * 0.75 + 1e-4) / (1 - 1e-4), 1e-15);
  EXPECT_NEAR(schedules()[2].alpha(0.25), ((1 - 2e-4) * (1 - std::cos(std::acos(-1.0) / 2 * 0.75)) + 1e-4) / (1 - 1e-4), 1e-15);
  EXPECT_NEAR(schedules()[3].Lambda(0.5), std::sqrt(1e-3 * 7) - 1e-3, 1e-15);
  EXPECT_NEAR(schedules()[4].alpha(1), 1e-5, 1e-18);
}

TEST(Schedule, OptionsThatMakeNone) {
  ScheduleOptions o;
  o.name = "geometric";
  o.sigma_max = 1e-4;
  EXPECT_EQ(test::error_of([&] { o.make(); }), "2 --sigma-max: expected more than --sigma-min 0.001, found 0.0001");
}

// Adaptive Simpson.
double integral(const std::function<double(double)>& f, double a, double b, double tolerance) {
  const std::function<double(double, double, double, double, double, double, double, int)> part = [&](double l, double r, double fl, double fm, double fr, double whole, double eps, int depth) {
    const double m = 0.5 * (l + r), f1 = f(0.5 * (l + m)), f2 = f(0.5 * (m + r));
    const double left = (m - l) / 6 * (fl + 4 * f1 + fm), right = (r - m) / 6 * (fm + 4 * f2 + fr);
    if (depth == 0 || std::abs(left + right - whole) < 15 * eps) return left + right + (left + right - whole) / 15;
    return part(l, m, fl, f1, fm, left, eps / 2, depth - 1) + part(m, r, fm, f2, fr, right, eps / 2, depth - 1);
  };
  const double fa = f(a), fm = f(0.5 * (a + b)), fb = f(b);
  return part(a, b, fa, fm, fb, (b - a) / 6 * (fa + 4 * fm + fb), tolerance, 40);
}

TEST(Clock, TablesAreExactTo1e9) {
  const std::int32_t m = 50257;
  for (const Schedule& s : schedules()) {
    const ResetShare share;
    const Clock clock(s, share, m);
    for (const double t : {0.001, 0.1, 0.37, 0.6, 0.83, 0.99, 1.0}) {
      const double A = integral([&](double c) { return 1 - share(std::min(1.0, s.time_of(c))); }, 0, s.Lambda(t), 1e-12);
      EXPECT_NEAR(clock.A(t), A, 1e-9) << s.name << " at " << t;
      EXPECT_NEAR(clock.R(t), (s.Lambda(t) - A) * m / (m - 1), 1e-9) << s.name << " at " << t;
      EXPECT_NEAR(clock.time_of_total(clock.total(t)), t, 1e-9) << s.name << " at " << t;
      const auto at = kernels::place_of_r(clock.table(), clock.R(t));
      EXPECT_NEAR((at.cell + at.z) * clock.table().step, s.Lambda(t), 1e-8) << s.name << " at " << t;
      EXPECT_NEAR(kernels::a_in_cell(clock.table(), at.cell)(at.z), A, 1e-8) << s.name << " at " << t;
    }
  }
}

// MATH 9: the constants of the paper's batch of 512 x 1024 tokens.
TEST(Clock, FactsOfThePaperSetting) {
  const Clock clock(schedules()[0], ResetShare(), 50257);
  EXPECT_NEAR(clock.R(1), 5.908, 5e-4);
  EXPECT_NEAR(clock.A(1), 1.000, 5e-4);
  // Over sequences with t ~ U[0, 1]: the share of resets among all jumps. (Of one batch of 512 times it scatters by 0.02; the
  // 0.43 of MATH 9 is such a batch.)
  const double resets = integral([&](double t) { return clock.R(t); }, 0, 1, 1e-8), all = integral([&](double t) { return clock.total(t); }, 0, 1, 1e-8);
  EXPECT_NEAR(resets / all, 0.4103, 5e-5);
}

TEST(Clock, WithoutResets) {
  const Clock clock(schedules()[0], ResetShare{0, 0, 10, 0.6}, 100);
  EXPECT_EQ(clock.R(1), 0);
  EXPECT_NEAR(clock.A(1), schedules()[0].Lambda(1), 1e-9);
}

}  // namespace
}  // namespace gdds::diffusion
