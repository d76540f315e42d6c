// Our own logarithm, exponential, uniform and Poisson numbers: how far from the true values they may be. The bounds were
// measured over 20 million arguments of each range (log 2.02 ulps, next to sqrt(1/2); exp 0.97) and rounded up.
#include "real.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/chi_square.h"

namespace gdds::kernels {
namespace {

constexpr double kLogUlps = 2.5, kExpUlps = 1.0;

// The error in units of the last place of the true value, which long double (64 bits of it) is good enough for.
double ulps(double found, long double truth) {
  int exponent;
  std::frexp(static_cast<double>(truth), &exponent);
  return static_cast<double>(std::fabs(static_cast<long double>(found) - truth) / std::ldexp(1.0L, exponent - 53));
}

// The worst of many arguments.
template <typename Found, typename Truth, typename Argument>
double worst(Found found, Truth truth, Argument argument) {
  std::mt19937_64 random(1);
  double most = 0.0;
  for (int i = 0; i < 300000; ++i) {
    const double x = argument(random);
    most = std::fmax(most, ulps(found(x), truth(static_cast<long double>(x))));
  }
  return most;
}

template <typename Argument>
double worst_log(Argument argument) {
  return worst(natural_log, [](long double x) { return std::log(x); }, argument);
}

template <typename Argument>
double worst_exp(Argument argument) {
  return worst(natural_exp, [](long double x) { return std::exp(x); }, argument);
}

TEST(Real, LogarithmIsRightToAFewUlps) {
  EXPECT_LT(worst_log([](auto& r) { return unit(r()); }), kLogUlps);
  EXPECT_LT(worst_log([](auto& r) { return 1.0 + (unit(r()) - 0.5) * std::ldexp(1.0, -static_cast<int>(r() % 50)); }), kLogUlps);
  EXPECT_LT(worst_log([](auto& r) { return std::sqrt(0.5) + (unit(r()) - 0.5) * 1e-3; }), kLogUlps);
  EXPECT_LT(worst_log([](auto& r) { return bits_to_double((r() % 2046 + 1) << 52 | r() >> 12); }), kLogUlps);  // all normal numbers
  EXPECT_EQ(natural_log(1.0), 0.0);
}

TEST(Real, ExponentialIsRightToAnUlp) {
  EXPECT_LT(worst_exp([](auto& r) { return -unit(r()); }), kExpUlps);
  EXPECT_LT(worst_exp([](auto& r) { return (unit(r()) - 0.5) * std::ldexp(1.0, -static_cast<int>(r() % 60)); }), kExpUlps);
  EXPECT_LT(worst_exp([](auto& r) { return 1417.0 * unit(r()) - 708.0; }), kExpUlps);
  EXPECT_EQ(natural_exp(0.0), 1.0);
  EXPECT_EQ(natural_exp(-0.0), 1.0);
}

TEST(Real, ExponentialOfWhatIsTooSmallIsZero) {
  EXPECT_GE(natural_exp(-708.0), std::numeric_limits<double>::min());
  for (const double x : {-708.0000001, -1e4, -1e300, -std::numeric_limits<double>::infinity()}) EXPECT_EQ(natural_exp(x), 0.0) << x;
}

TEST(Real, UnitLeavesOutBothEnds) {
  EXPECT_GT(unit(0), 0.0);
  EXPECT_LT(unit(~std::uint64_t{0}), 1.0);
  EXPECT_EQ(unit(0) + unit(~std::uint64_t{0}), 1.0);  // symmetric
  EXPECT_TRUE(std::isfinite(natural_log(unit(0))));
}

TEST(Real, BelowIsTheProductsUpperPart) {
  std::mt19937_64 random(1);
  for (const std::int32_t count : {1, 2, 3, 27, 50257, 1 << 30, std::numeric_limits<std::int32_t>::max()}) {
    EXPECT_EQ(below(count, 0), 0);
    EXPECT_EQ(below(count, ~std::uint64_t{0}), count - 1);
    for (int i = 0; i < 10000; ++i) {
      const std::uint64_t bits = random();
      const auto product = static_cast<unsigned __int128>(bits) * static_cast<unsigned>(count);
      ASSERT_EQ(below(count, bits), static_cast<std::int32_t>(product >> 64));
    }
  }
}

TEST(Real, BelowIsUniform) {
  std::mt19937_64 random(2);
  std::vector<std::int64_t> counts(37);
  for (int i = 0; i < 1000000; ++i) ++counts[static_cast<std::size_t>(below(37, random()))];
  test::expect_fits(counts, std::vector<double>(37, 1.0 / 37));
}

// The uniform numbers that give n events are the n-th interval of the distribution function, to 1e-13 of its ends.
TEST(Real, PoissonInvertsTheDistributionFunction) {
  for (const double mean : {1e-6, 0.01, 0.5, 1.0, 4.0, 20.0, 64.0}) {
    long double p = std::exp(-static_cast<long double>(mean)), below_n = 0.0L;
    for (int n = 0; n < 200; ++n) {
      const long double up_to_n = below_n + p;
      const double low = static_cast<double>(below_n * (1 + 1e-13L)), high = static_cast<double>(up_to_n * (1 - 1e-13L));
      if (low < high) {
        ASSERT_EQ(poisson_inverse(mean, natural_exp(-mean), low), n) << mean;
        ASSERT_EQ(poisson_inverse(mean, natural_exp(-mean), high), n) << mean;
      }
      below_n = up_to_n;
      p *= static_cast<long double>(mean) / (n + 1);
    }
    EXPECT_NEAR(static_cast<double>(below_n), 1.0, 1e-15) << mean;  // all intervals were looked at
  }
}

TEST(Real, PoissonHasItsProbabilities) {
  std::mt19937_64 random(3);
  for (const double mean : {0.1, 1.0, 6.9, 64.0}) {
    std::vector<std::int64_t> counts(401);
    for (int i = 0; i < 200000; ++i) ++counts[static_cast<std::size_t>(poisson_inverse(mean, natural_exp(-mean), unit(random())))];
    std::vector<double> probabilities;
    for (int n = 0; n <= 400; ++n) probabilities.push_back(std::exp(n * std::log(mean) - mean - std::lgamma(n + 1.0)));
    test::expect_fits(counts, probabilities);
  }
}

TEST(Real, NoEventsWithoutTime) {
  EXPECT_EQ(poisson_inverse(0.0, 1.0, unit(0)), 0);
  EXPECT_EQ(poisson_inverse(0.0, 1.0, unit(~std::uint64_t{0})), 0);
}

}  // namespace
}  // namespace gdds::kernels
