// Does a count of outcomes fit a law? Pearson's chi-square with its p-value, for the tests that compare what is drawn with
// exact probabilities. Seeds of tests are fixed, so a test that passed passes again; the bound says how seldom a right
// program would have to change its seed: once in ten million tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <source_location>
#include <vector>

#include <gtest/gtest.h>

namespace gdds::test {

// Q(a, x) = Gamma(a, x) / Gamma(a), the probability that a gamma variable of shape a exceeds x: 1 minus the power series
// left of the mean, the continued fraction (modified Lentz) right of it, where Q may be tiny and 1 - P would lose it.
inline double upper_gamma(double a, double x) {
  constexpr double kTiny = 1e-300, kEnough = 1e-15;
  constexpr int kMost = 100000;
  if (!(x > 0.0)) return 1.0;
  const double front = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1.0) {
    double term = 1.0 / a, sum = term;
    for (int n = 1; n < kMost && term > sum * kEnough; ++n) sum += term *= x / (a + n);
    return 1.0 - front * sum;
  }
  double b = x + 1.0 - a, c = 1.0 / kTiny, d = 1.0 / b, fraction = d;
  for (int n = 1; n < kMost; ++n) {
    const double numerator = n * (a - n);
    b += 2.0;
    d = numerator * d + b;
    d = 1.0 / (std::fabs(d) < kTiny ? kTiny : d);
    c = b + numerator / c;
    c = std::fabs(c) < kTiny ? kTiny : c;
    fraction *= c * d;
    if (std::fabs(c * d - 1.0) < kEnough) break;
  }
  return front * fraction;
}

struct ChiSquare {
  double statistic = 0.0;
  int freedom = 0;  // cells after pooling, less one
  double p = 1.0;   // the probability of such a statistic or a larger one, were the law right
};

// counts[i] outcomes i, whose probability is probabilities[i]; these add up to 1. Cells with an expected count below 5 are
// pooled into one (with the smallest of the others, should the pool still be below 5). An outcome of probability 0 has p = 0.
inline ChiSquare chi_square(const std::vector<std::int64_t>& counts, const std::vector<double>& probabilities) {
  constexpr double kFewest = 5.0;
  struct Cell {
    double expected = 0.0, found = 0.0;
  };
  double total = 0.0;
  for (const std::int64_t count : counts) total += static_cast<double>(count);
  std::vector<Cell> cells;
  Cell pool;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (probabilities[i] <= 0.0 && counts[i] > 0) return {std::numeric_limits<double>::infinity(), 1, 0.0};
    const Cell cell{total * probabilities[i], static_cast<double>(counts[i])};
    if (cell.expected >= kFewest) cells.push_back(cell);
    else pool = {pool.expected + cell.expected, pool.found + cell.found};
  }
  const auto smallest = std::min_element(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.expected < b.expected; });
  if (pool.expected >= kFewest || smallest == cells.end()) cells.push_back(pool);
  else *smallest = {smallest->expected + pool.expected, smallest->found + pool.found};

  ChiSquare result;
  for (const Cell& cell : cells) result.statistic += (cell.found - cell.expected) * (cell.found - cell.expected) / cell.expected;
  result.freedom = static_cast<int>(cells.size()) - 1;
  result.p = result.freedom > 0 ? upper_gamma(0.5 * result.freedom, 0.5 * result.statistic) : 1.0;
  return result;
}

constexpr double kFalseAlarm = 1e-7;

// Whether the counts fit, and the numbers if they do not. A list of probabilities that is none does not fit, and neither do
// counts that leave a single cell to compare: that would be a test that cannot fail.
inline testing::AssertionResult fits(const std::vector<std::int64_t>& counts, const std::vector<double>& probabilities) {
  if (counts.size() != probabilities.size()) return testing::AssertionFailure() << counts.size() << " counts, " << probabilities.size() << " probabilities";
  double sum = 0.0;
  for (const double p : probabilities) sum += p;
  if (!(std::fabs(sum - 1.0) < 1e-9)) return testing::AssertionFailure() << "the probabilities add up to " << sum;
  const ChiSquare test = chi_square(counts, probabilities);
  if (test.freedom < 1) return testing::AssertionFailure() << "too few counts: one cell is left";
  if (!(test.p >= kFalseAlarm))
    return testing::AssertionFailure() << "chi-square " << test.statistic << " with " << test.freedom << " degrees of freedom, p = " << test.p;
  return testing::AssertionSuccess();
}

inline void expect_fits(const std::vector<std::int64_t>& counts, const std::vector<double>& probabilities,
                        const std::source_location& where = std::source_location::current()) {
  const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "expect_fits");
  EXPECT_TRUE(fits(counts, probabilities));
}

}  // namespace gdds::test
