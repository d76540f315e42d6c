// The judge of the other tests: its p-values are those of tables, it accepts the right law and rejects wrong ones.
#include "support/chi_square.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace gdds::test {
namespace {

// What a law with these weights gives.
std::vector<std::int64_t> draw(const std::vector<double>& weights, int total, unsigned seed) {
  std::mt19937_64 random(seed);
  std::discrete_distribution<std::size_t> law(weights.begin(), weights.end());
  std::vector<std::int64_t> counts(weights.size());
  for (int i = 0; i < total; ++i) ++counts[law(random)];
  return counts;
}

const std::vector<double> kLaw = {0.4, 0.3, 0.2, 0.0999, 0.0001};

TEST(ChiSquare, UpperGammaIsThatOfTables) {
  for (const double x : {0.1, 1.0, 5.0, 40.0}) {
    EXPECT_NEAR(upper_gamma(1.0, x) / std::exp(-x), 1.0, 1e-13) << x;             // one exponential
    EXPECT_NEAR(upper_gamma(0.5, x) / std::erfc(std::sqrt(x)), 1.0, 1e-12) << x;  // a squared normal
    EXPECT_NEAR(upper_gamma(3.0, x) / (std::exp(-x) * (1.0 + x + x * x / 2)), 1.0, 1e-12) << x;
  }
  EXPECT_NEAR(upper_gamma(0.5 * 100, 0.5 * 124.342), 0.05, 1e-5);  // the 5% points of chi-square with 100 and
  EXPECT_NEAR(upper_gamma(0.5 * 10, 0.5 * 18.307), 0.05, 1e-5);    // 10 degrees of freedom
  EXPECT_EQ(upper_gamma(2.0, 0.0), 1.0);
}

TEST(ChiSquare, StatisticIsPearsons) {
  const ChiSquare test = chi_square({30, 70}, {0.5, 0.5});
  EXPECT_DOUBLE_EQ(test.statistic, 16.0);
  EXPECT_EQ(test.freedom, 1);
  EXPECT_NEAR(test.p, std::erfc(4.0 / std::sqrt(2.0)), 1e-12);
}

TEST(ChiSquare, AcceptsTheRightLaw) {
  for (unsigned seed = 1; seed <= 20; ++seed) expect_fits(draw(kLaw, 100000, seed), kLaw);
}

TEST(ChiSquare, ItsPValuesAreUniform) {
  std::vector<std::int64_t> tenths(10);
  for (unsigned seed = 1; seed <= 2000; ++seed) ++tenths[static_cast<std::size_t>(chi_square(draw(kLaw, 5000, seed), kLaw).p * 9.999999)];
  expect_fits(tenths, std::vector<double>(10, 0.1));
}

TEST(ChiSquare, RejectsWrongLaws) {
  const std::vector<std::int64_t> counts = draw(kLaw, 100000, 1);
  EXPECT_FALSE(fits(counts, {0.41, 0.29, 0.2, 0.0999, 0.0001}));   // shifted by a fortieth
  EXPECT_FALSE(fits(counts, {0.4, 0.3, 0.2, 0.1, 0.0}));           // an outcome that cannot be
  EXPECT_FALSE(fits(counts, {0.4, 0.3, 0.2, 0.0989, 0.0011}));     // a rare one, taken for ten times as frequent
  EXPECT_FALSE(fits(counts, std::vector<double>(5, 0.2)));
}

TEST(ChiSquare, PoolsRareCells) {
  std::vector<double> law(101, 1e-4);
  law[0] = 0.99;
  const ChiSquare test = chi_square(draw(law, 10000, 1), law);  // 100 cells that expect 1 each: one that expects 100
  EXPECT_EQ(test.freedom, 1);
  EXPECT_EQ(chi_square(draw(kLaw, 1000, 1), kLaw).freedom, 3);  // the last, which expects 0.1, goes with the 0.0999
}

TEST(ChiSquare, RefusesWhatItCannotJudge) {
  EXPECT_FALSE(fits({50, 50}, {0.5, 0.6}));
  EXPECT_FALSE(fits({50, 50}, {0.5, 0.25, 0.25}));
  EXPECT_FALSE(fits({2, 2}, {0.5, 0.5}));
}

}  // namespace
}  // namespace gdds::test
