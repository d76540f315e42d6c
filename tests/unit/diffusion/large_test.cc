// Semantic kernels at the size of real vocabularies, where no matrix can be written down: the fast sampler of x_t against the
// general one of whole paths, by where x_t is as seen from x_0, and both against what is known exactly. Neighbours never
// leave a block of tokens, so a token is outside the block of its x_0 if and only if its last reset led there. False
// alarms: 1e-7 a comparison with fixed seeds, about 30 comparisons.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/threads.h"
#include "diffusion/sik.h"
#include "support/chi_square.h"

namespace gdds::diffusion {
namespace {

struct Size {
  std::int32_t m, k, block;  // m is a multiple of the block
};

// Random distinct neighbours in the block of each token, nearest first, with random bandwidths.
NeighbourTable random_table(const Size& size) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> unit;
  NeighbourTable table;
  table.m = size.m;
  table.k = size.k;
  for (std::int32_t y = 0; y < size.m; ++y) {
    const std::int32_t begin = y / size.block * size.block;
    std::vector<std::int32_t> row;
    while (row.size() < static_cast<std::size_t>(size.k)) {
      const std::int32_t x = begin + static_cast<std::int32_t>(random() % static_cast<unsigned>(size.block));
      if (x != y && std::find(row.begin(), row.end(), x) == row.end()) row.push_back(x);
    }
    table.ids.insert(table.ids.end(), row.begin(), row.end());
    double distance = 0;
    for (std::int32_t i = 0; i < size.k; ++i) table.distances.push_back(distance += unit(random) / size.k);
    table.bandwidths.push_back(0.5 + unit(random));
  }
  return table;
}

// Where x_t is, seen from x_0: no jump, back at x_0, its neighbours from the first to the last, elsewhere in its block,
// outside.
using Places = std::vector<std::int64_t>;

class Large : public testing::TestWithParam<Size> {
 protected:
  Large() : process_(Schedule(), {"large", "0", GetParam().m, -1}, ResetShare(), random_table(GetParam()), 0.5) {}
  ~Large() override { set_threads(available_cores()); }

  // Every token as often as every other, over any m of them.
  std::int32_t token(std::size_t i) const { return static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(process_.m())); }

  void count(std::int32_t x0, std::int32_t xt, bool jumped, Places& places) const {
    const Size& size = GetParam();
    const auto k = static_cast<std::size_t>(size.k);
    const std::int32_t* row = process_.kernel().ids.data() + static_cast<std::size_t>(x0) * k;
    const auto neighbour = static_cast<std::size_t>(std::find(row, row + k, xt) - row);
    if (!jumped) ++places[0];
    else if (xt == x0) ++places[1];
    else if (neighbour < k) ++places[2 + neighbour];
    else ++places[2 + k + (xt / size.block == x0 / size.block ? 0 : 1)];
  }

  Places no_places() const { return Places(static_cast<std::size_t>(GetParam().k) + 4); }

  // That every token is noised to t this often.
  std::vector<double> copies(std::int32_t times, double t) const { return std::vector<double>(static_cast<std::size_t>(times * GetParam().m / GetParam().block), t); }

  struct Noise {
    std::vector<std::int32_t> x0, xt;
    std::vector<std::uint8_t> jumped;
  };

  // A sequence a time, as long as a block: m / block of them have every token.
  Noise fast(const std::vector<double>& times, int thread_count) const {
    set_threads(thread_count);
    const auto sequences = static_cast<std::int64_t>(times.size()), length = std::int64_t{GetParam().block};
    Noise n;
    n.x0.resize(static_cast<std::size_t>(sequences * length));
    n.xt.resize(n.x0.size());
    n.jumped.resize(n.x0.size());
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 0; i < n.x0.size(); ++i) n.x0[i] = token(i);
    for (std::int64_t s = 0; s < sequences; ++s) numbers.push_back(static_cast<std::uint64_t>(s));
    process_.noise({n.x0.data(), numbers.data(), sequences, length, 17, n.xt.data(), n.jumped.data()}, times);
    return n;
  }

  const SikKnnProcess process_;
};
INSTANTIATE_TEST_SUITE_P(, Large, testing::Values(Size{50257, 64, 1733}, Size{66000, 16, 600}),
                         [](const auto& info) { return "m" + std::to_string(info.param.m); });  // narrow ids, and wide ones

// Two samples of one law: chi-square on the 2 x c table, in which columns with an expected count below 5 are one column.
testing::AssertionResult same_law(const Places& a, const Places& b) {
  double all_a = 0, all_b = 0;
  for (const std::int64_t n : a) all_a += static_cast<double>(n);
  for (const std::int64_t n : b) all_b += static_cast<double>(n);
  const double share = all_a / (all_a + all_b), fewest = std::min(share, 1 - share);
  std::vector<std::pair<double, double>> columns(1);  // the first is the pool
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::pair<double, double> column(a[i], b[i]);
    if ((column.first + column.second) * fewest >= 5) columns.push_back(column);
    else columns[0] = {columns[0].first + column.first, columns[0].second + column.second};
  }
  if ((columns[0].first + columns[0].second) * fewest < 5) columns.erase(columns.begin());
  double statistic = 0;
  for (const auto& [first, second] : columns) {
    const double expected = (first + second) * share;
    statistic += (first - expected) * (first - expected) / (expected * (1 - share));  // both rows
  }
  const auto freedom = static_cast<double>(columns.size()) - 1;
  if (freedom < 1) return testing::AssertionFailure() << "one column is left";
  const double p = test::upper_gamma(0.5 * freedom, 0.5 * statistic);
  if (p >= test::kFalseAlarm) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "chi-square " << statistic << " with " << freedom << " degrees of freedom, p = " << p;
}

// No jump: e^-(A+R). Outside the block: a reset, of probability 1 - e^-R, and the last one led outside.
void expect_exact(const Places& places, const SikKnnProcess& process, const Size& size, double t) {
  const double stays = process.stays(0, t), outside = -std::expm1(-process.clocks().R(t)) * (1 - static_cast<double>(size.block) / size.m);
  std::int64_t all = 0;
  for (const std::int64_t n : places) all += n;
  test::expect_fits({places.front(), all - places.front() - places.back(), places.back()}, {stays, 1 - stays - outside, outside});
}

TEST_P(Large, FastAndGeneralSamplersAgree) {
  const std::int64_t count_paths = 3 * process_.m();
  for (const double t : {0.05, 0.3, 0.6, 0.8, 1.0}) {
    SCOPED_TRACE(t);
    Places snapshots = no_places(), paths = no_places();
    const Noise n = fast(copies(8, t), 2);
    for (std::size_t i = 0; i < n.x0.size(); ++i) count(n.x0[i], n.xt[i], n.jumped[i] != 0, snapshots);
    std::int64_t resets = 0;
    for (std::int64_t i = 0; i < count_paths; ++i) {
      const std::int32_t x0 = token(static_cast<std::size_t>(i));
      TokenRandom random(18, kernels::kForPaths, 0, static_cast<std::uint32_t>(i));
      const Path path = process_.path(x0, t, random);
      count(x0, path.jumps.empty() ? x0 : path.jumps.back().to, !path.jumps.empty(), paths);
      resets += std::any_of(path.jumps.begin(), path.jumps.end(), [](const Jump& jump) { return jump.reset; });
    }
    EXPECT_TRUE(same_law(snapshots, paths));
    expect_exact(snapshots, process_, GetParam(), t);
    expect_exact(paths, process_, GetParam(), t);
    const double none = std::exp(-process_.clocks().R(t));
    test::expect_fits({count_paths - resets, resets}, {none, 1 - none});
  }
}

// That the comparison above can fail: another t, 5 % away, is told apart.
TEST_P(Large, AnotherTimeIsToldApart) {
  Places at = no_places(), later = no_places();
  for (const auto& [t, places] : {std::pair{0.6, &at}, {0.63, &later}}) {
    const Noise n = fast(copies(8, t), 2);
    for (std::size_t i = 0; i < n.x0.size(); ++i) count(n.x0[i], n.xt[i], n.jumped[i] != 0, *places);
  }
  EXPECT_FALSE(same_law(at, later));
}

// A jump to the i-th neighbour, summed over tokens, against the mean weight of the i-th neighbours. (The counts vary less
// than those of one law would, so false alarms are rarer still.)
TEST_P(Large, JumpsHaveTheWeightsOfTheKernel) {
  const std::size_t jumps = 8 * static_cast<std::size_t>(process_.m());
  const SparseKernel& F = process_.kernel();
  const auto k = static_cast<std::size_t>(F.k);
  std::vector<std::int64_t> counts(k);
  std::vector<double> law(k);
  for (std::size_t i = 0; i < jumps; ++i) {
    const std::int32_t y = token(i);
    TokenRandom random(19, kernels::kForPaths, 0, static_cast<std::uint32_t>(i));
    const std::size_t row = static_cast<std::size_t>(y) * k;
    const std::int32_t x = process_.neighbour(y, random);
    const auto at = static_cast<std::size_t>(std::find(F.ids.begin() + static_cast<std::ptrdiff_t>(row), F.ids.begin() + static_cast<std::ptrdiff_t>(row + k), x) - F.ids.begin()) - row;
    ASSERT_LT(at, k);
    ++counts[at];
    for (std::size_t j = 0; j < k; ++j) law[j] += F.weights[row + j] / static_cast<double>(jumps);
  }
  test::expect_fits(counts, law);
}

TEST_P(Large, ThreadsChangeNothing) {
  std::vector<double> times;
  for (int s = 0; s < 50; ++s) times.push_back(0.02 * (s + 1));
  const Noise one = fast(times, 1), three = fast(times, 3);
  EXPECT_EQ(one.xt, three.xt);
  EXPECT_EQ(one.jumped, three.jumped);
}

}  // namespace
}  // namespace gdds::diffusion
