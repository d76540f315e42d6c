// Noising on the CPU: the resets are the plain loop of noise.h's comments, the laws are those of the master equation
// (MATH 2), and neither threads nor the cut into batches change a token. Laws are judged by chi-square; each comparison of a
// right program fails with probability 1e-7, all of this file together with less than 1e-5, were the seeds not fixed.
#include "noise.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/wide_philox.h"
#include "small_tables.h"
#include "support/chi_square.h"

namespace gdds::kernels {
namespace {

using test::Batch;
using test::Noise;

// ---- random words of 16 positions ------------------------------------------------------------------------------------------

TEST(WidePhilox, EveryLevelIsTheDefinition) {
  using cpu::WidePhilox;
  for (int level = 0; level <= static_cast<int>(WidePhilox::best_level()); ++level)
    for (const std::uint64_t seed : {1ULL, 0xfedcba9876543210ULL})
      for (const std::uint64_t sequence : {0ULL, 5ULL, 0xabcdef0123456789ULL})
        for (const std::uint32_t first : {0U, 16U, 7U, 0x7ffffffaU, 0xfffffff0U}) {
          const WidePhilox philox(seed, kForSnapshots, static_cast<WidePhilox::Level>(level));
          cpu::WideWords words;
          philox(sequence, first, words);
          for (std::uint32_t i = 0; i < cpu::kWide; ++i) {
            const RandomWords expected = random_words(seed, kForSnapshots, sequence, first + i, 0);
            for (int w = 0; w < 4; ++w) ASSERT_EQ(words.word[w][i], expected.word[w]) << "level " << level << ", position " << first + i;
          }
          alignas(64) std::uint32_t scattered[cpu::kWide];
          for (std::uint32_t i = 0; i < cpu::kWide; ++i) scattered[i] = 1000003 * i * i;
          philox(sequence, first, scattered, 5, words);
          for (std::size_t i = 0; i < cpu::kWide; ++i) {
            const RandomWords expected = random_words(seed, kForSnapshots, sequence, first + scattered[i], 5);
            for (int w = 0; w < 4; ++w) ASSERT_EQ(words.word[w][i], expected.word[w]) << "level " << level << ", position " << first + scattered[i] << ", draw 5";
          }
        }
  RecordProperty("levels", static_cast<int>(WidePhilox::best_level()) + 1);
}

TEST(TokenRandom, FirstWordsMadeBeforehandChangeNothing) {
  TokenRandom plain(3, kForSnapshots, 9, 4), given(3, kForSnapshots, 9, 4, random_words(3, kForSnapshots, 9, 4, 0));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(plain.next(), given.next());
  TokenRandom later(3, kForSnapshots, 9, 4, random_words(3, kForSnapshots, 9, 4, 5), 5);  // draw 5 begins with the 11th number
  for (int i = 0; i < 10; ++i) EXPECT_EQ(plain.next(), later.next());
}

// ---- resets ----------------------------------------------------------------------------------------------------------------

constexpr std::int32_t kMask = 1000;

// From the words, as the comments in noise.h lay them down.
void plain_absorb(const Snapshots& b, const ResetLimits* limits) {
  for (std::int64_t s = 0; s < b.sequences; ++s)
    for (std::int64_t l = 0; l < b.length; ++l) {
      const std::uint32_t word = random_words(b.seed, kForSnapshots, b.numbers[s], static_cast<std::uint32_t>(16 * (l / 64) + l % 16), 0).word[l / 16 % 4];
      const bool jumps = word < limits[s].jump;
      b.xt[s * b.length + l] = jumps ? kMask : b.x0[s * b.length + l];
      b.jumped[s * b.length + l] = jumps;
    }
}

void plain_reset(const Snapshots& b, const ResetLimits* limits, std::int32_t m) {
  for (std::int64_t s = 0; s < b.sequences; ++s)
    for (std::int64_t l = 0; l < b.length; ++l) {
      const RandomWords words = random_words(b.seed, kForSnapshots, b.numbers[s], static_cast<std::uint32_t>(16 * (l / 32) + l % 16), 0);
      const std::uint32_t first = words.word[2 * (l / 16 % 2)], second = words.word[2 * (l / 16 % 2) + 1];
      std::int32_t& xt = b.xt[s * b.length + l];
      xt = b.x0[s * b.length + l];
      if (first < limits[s].jump) xt = first < limits[s].mask ? kMask : static_cast<std::int32_t>(static_cast<double>(second) * 0x1p-32 * m);
      b.jumped[s * b.length + l] = first < limits[s].jump;
    }
}

// The whole batch with any number of threads, and its parts, give the same tokens as `expected`.
template <typename Function>
void expect_same_however_done(const Batch& batch, const Noise& expected, Function noise) {
  for (const int threads : {1, 2, 3}) EXPECT_TRUE(batch.all([&](const Snapshots& b, std::int64_t first) { noise(b, first, threads); }) == expected) << threads << " threads, length " << batch.length;
  Noise together;
  for (std::int64_t begin = 0, size = 1; begin < batch.sequences; begin += size, size = 3) {
    const Noise part = batch.part(begin, std::min(begin + size, batch.sequences), [&](const Snapshots& b, std::int64_t first) { noise(b, first, 2); });
    together.xt.insert(together.xt.end(), part.xt.begin(), part.xt.end());
    together.jumped.insert(together.jumped.end(), part.jumped.begin(), part.jumped.end());
  }
  EXPECT_TRUE(together == expected) << "in parts, length " << batch.length;
}

TEST(Resets, AbsorbIsThePlainLoop) {
  for (const std::int64_t length : test::kLengths)
    for (const std::uint64_t seed : {1ULL, 77ULL, 0x123456789abcULL}) {
      const Batch batch(7, length, 40, seed);
      const auto limits = batch.limits();
      const Noise expected = batch.all([&](const Snapshots& b, std::int64_t) { plain_absorb(b, limits.data()); });
      expect_same_however_done(batch, expected, [&](const Snapshots& b, std::int64_t first, int threads) { cpu::noise_absorb(b, limits.data() + first, kMask, threads); });
    }
}

TEST(Resets, ResetIsThePlainLoop) {
  for (const std::int64_t length : test::kLengths)
    for (const std::uint64_t seed : {1ULL, 77ULL, 0x123456789abcULL}) {
      const Batch batch(7, length, 40, seed);
      const auto limits = batch.limits();
      const Noise expected = batch.all([&](const Snapshots& b, std::int64_t) { plain_reset(b, limits.data(), 40); });
      expect_same_however_done(batch, expected, [&](const Snapshots& b, std::int64_t first, int threads) { cpu::noise_reset(b, limits.data() + first, kMask, 40, threads); });
    }
}

TEST(Resets, HybridHasItsLaw) {
  const Batch batch(100, 2000, 40, 5);
  const std::vector<ResetLimits> limits(100, {3U << 30, 1U << 30});  // jumps 3/4, to the mask 1/4
  const Noise found = batch.all([&](const Snapshots& b, std::int64_t) { cpu::noise_reset(b, limits.data(), kMask, 40, 2); });
  std::vector<std::int64_t> counts(42);  // a token after a jump, the mask, no jump
  for (std::size_t i = 0; i < found.xt.size(); ++i) ++counts[found.jumped[i] ? static_cast<std::size_t>(std::min(found.xt[i], 40)) : 41];
  std::vector<double> law(42, 0.5 / 40);
  law[40] = law[41] = 0.25;
  test::expect_fits(counts, law);
}

TEST(Resets, LimitsAtTheEnds) {
  const Batch batch(3, 130, 40, 5);
  const std::vector<ResetLimits> never(3, {0, 0}), always(3, {0xffffffffU, 0xffffffffU});
  const Noise none = batch.all([&](const Snapshots& b, std::int64_t) { cpu::noise_absorb(b, never.data(), kMask, 1); });
  EXPECT_EQ(none.xt, batch.x0);
  EXPECT_EQ(none.jumped, std::vector<std::uint8_t>(none.xt.size(), 0));
  const Noise every = batch.all([&](const Snapshots& b, std::int64_t) { cpu::noise_reset(b, always.data(), kMask, 40, 1); });
  EXPECT_EQ(every.xt, std::vector<std::int32_t>(every.xt.size(), kMask));
}

// ---- clock -----------------------------------------------------------------------------------------------------------------

TEST(Clock, CubicsAreRightBetweenTheNodes) {
  const std::int32_t m = 50;
  const test::Clock clock(m);
  const ClockTable table = clock.table();
  const auto weight = [](double lambda) { return test::lambda_of_time(test::time_of_clock(lambda)); };
  for (std::int32_t cell = 0; cell < table.cells; ++cell)
    for (const double z : {0.0, 0.1, 0.5, 0.8, 1.0}) {
      const double resets = test::integral(weight, cell * clock.step, (cell + z) * clock.step);
      const ClockNode& left = clock.nodes[static_cast<std::size_t>(cell)];
      ASSERT_NEAR(r_in_cell(table, cell)(z), left.r + resets * m / (m - 1.0), 2e-9);
      ASSERT_NEAR(a_in_cell(table, cell)(z), left.a + z * clock.step - resets, 2e-9);
      ASSERT_NEAR(a_in_cell(table, cell).slope(z) / clock.step, 1.0 - weight((cell + z) * clock.step), 1e-6);
    }
}

TEST(Clock, PlaceOfRInvertsR) {
  const test::Clock clock(50);
  const ClockTable table = clock.table();
  const double end = clock.nodes.back().r;
  for (int i = 0; i <= 100000; ++i) {
    const double r = end * i / 100000;
    const ClockPlace at = place_of_r(table, r);
    ASSERT_TRUE(at.cell >= 0 && at.cell < table.cells && at.z >= 0.0 && at.z <= 1.0) << r;
    ASSERT_NEAR(r_in_cell(table, at.cell)(at.z), r, 1e-14 * end) << r;
  }
  for (std::int32_t cell = 0; cell < table.cells; ++cell) {  // at the nodes themselves
    const ClockPlace at = place_of_r(table, clock.nodes[static_cast<std::size_t>(cell)].r);
    ASSERT_NEAR(at.cell + at.z, cell, 1e-9);
  }
}

TEST(Clock, PlaceOfRStaysInsideForWhatRoundingMayBring) {
  const test::Clock clock(50);
  const ClockTable table = clock.table();
  const ClockPlace before = place_of_r(table, -1e-15), after = place_of_r(table, clock.nodes.back().r * (1 + 1e-15));
  EXPECT_EQ(before.cell + before.z, 0.0);
  EXPECT_EQ(after.cell + after.z, table.cells);
}

TEST(Clock, PlaceOfLambda) {
  const test::Clock clock(50);
  const ClockTable table = clock.table();
  for (const double lambda : {0.0, 1e-9, 1.0, 3.3, 6.9, test::clock_of_time(1.0)}) {
    const ClockPlace at = place_of_lambda(table, lambda);
    EXPECT_TRUE(at.cell >= 0 && at.cell < table.cells);
    EXPECT_NEAR((at.cell + at.z) * clock.step, lambda, 1e-14);
  }
}

// ---- laws of the semantic kernels --------------------------------------------------------------------------------------------

using Column = std::function<std::vector<double>(std::int32_t y, double clock)>;  // the law of a jump from y

// The master equation over the clock, dp = (1 - lambda) (F p - p) + lambda m/(m-1) (1/m - p), from x0, by Runge and Kutta.
std::vector<double> law_at(double t, std::int32_t x0, std::int32_t m, bool changes, const Column& column) {
  const auto size = static_cast<std::size_t>(m);
  std::vector<std::vector<double>> f;  // f[y]
  const auto derivative = [&](double clock, const std::vector<double>& p) {
    if (changes || f.empty()) {
      f.clear();
      for (std::int32_t y = 0; y < m; ++y) f.push_back(column(y, clock));
    }
    const double lambda = test::lambda_of_time(test::time_of_clock(clock));
    std::vector<double> d(size);
    for (std::size_t x = 0; x < size; ++x) {
      double after = 0.0;
      for (std::size_t y = 0; y < size; ++y) after += f[y][x] * p[y];
      d[x] = (1.0 - lambda) * (after - p[x]) + lambda * m / (m - 1.0) * (1.0 / m - p[x]);
    }
    return d;
  };
  const auto moved = [&](std::vector<double> p, const std::vector<double>& d, double by) {
    for (std::size_t x = 0; x < size; ++x) p[x] += by * d[x];
    return p;
  };
  constexpr int kSteps = 400;
  const double h = test::clock_of_time(t) / kSteps;
  std::vector<double> p(size);
  p[static_cast<std::size_t>(x0)] = 1.0;
  for (int i = 0; i < kSteps; ++i) {
    const double clock = i * h;
    const auto k1 = derivative(clock, p), k2 = derivative(clock + h / 2, moved(p, k1, h / 2)), k3 = derivative(clock + h / 2, moved(p, k2, h / 2)),
               k4 = derivative(clock + h, moved(p, k3, h));
    p = moved(moved(moved(moved(p, k1, h / 6), k2, h / 3), k3, h / 3), k4, h / 6);
  }
  return p;
}

constexpr std::int32_t kM = 30, kX0 = 4;

// Noises many tokens kX0 to time t and compares with the law, a token that did not jump being an outcome of its own.
template <typename Function>
void expect_law(double t, const test::Clock& clock, std::vector<double> law, Function noise) {
  Batch batch(100, 2000, kM, 11);
  std::fill(batch.x0.begin(), batch.x0.end(), kX0);
  const std::vector<SikTime> times(100, clock.time(t));
  const Noise found = batch.all([&](const Snapshots& b, std::int64_t) { noise(b, times.data()); });
  std::vector<std::int64_t> counts(kM + 1);
  for (std::size_t i = 0; i < found.xt.size(); ++i) {
    ASSERT_TRUE(found.jumped[i] || found.xt[i] == kX0);
    ++counts[static_cast<std::size_t>(found.jumped[i] ? found.xt[i] : kM)];
  }
  const double still = std::exp(-times[0].a - times[0].r);
  law[kX0] -= still;
  law.push_back(still);
  test::expect_fits(counts, law);
}

TEST(Sik, AliasDrawHasTheLawOfItsTable) {
  const test::Slots<std::uint16_t> slots(kM, 7, 3);
  std::mt19937_64 random(1);
  for (std::int32_t y = 0; y < 3; ++y) {
    std::vector<std::int64_t> counts(kM);
    std::vector<double> law;
    for (int i = 0; i < 200000; ++i) ++counts[static_cast<std::size_t>(alias_draw(slots.slots.data(), 7, y, random()))];
    for (std::int32_t x = 0; x < kM; ++x) law.push_back(slots.probability(x, y));
    test::expect_fits(counts, law);
  }
}

TEST(Sik, HasTheLawOfTheMasterEquation) {
  const test::Slots<std::uint16_t> slots(kM, 3, 3);
  const Column column = [&](std::int32_t y, double) {
    std::vector<double> p;
    for (std::int32_t x = 0; x < kM; ++x) p.push_back(slots.probability(x, y));
    return p;
  };
  for (const double t : {0.05, 0.4, 0.7, 1.0}) {
    SCOPED_TRACE(t);
    expect_law(t, slots.clock, law_at(t, kX0, kM, false, column), [&](const Snapshots& b, const SikTime* times) { cpu::noise_sik(b, slots.table(), times, 2); });
  }
}

// The stages of the CPU's loop against the function of one token.
TEST(Sik, IsThePlainLoop) {
  for (const std::int32_t k : {1, 5, 29}) {
    const test::Slots<std::uint16_t> slots(kM, k, 3);
    for (const std::int64_t length : {1L, 15L, 16L, 17L, 255L, 256L, 257L, 3000L})
      for (const std::uint64_t seed : {1ULL, 0x123456789abcULL}) {
        const Batch batch(9, length, kM, seed);
        auto times = batch.sik_times(slots.clock);
        times[0] = slots.clock.time(0.0);
        times[1] = slots.clock.time(1.0);
        const Noise expected = batch.all([&](const Snapshots& b, std::int64_t) {
          for (std::int64_t i = 0; i < b.sequences * b.length; ++i) {
            TokenRandom random(b.seed, kForSnapshots, b.numbers[i / b.length], static_cast<std::uint32_t>(i % b.length));
            const Noised n = sik_token(slots.table(), times[static_cast<std::size_t>(i / b.length)], b.x0[i], random);
            b.xt[i] = n.token;
            b.jumped[i] = n.jumped;
          }
        });
        EXPECT_TRUE(batch.all([&](const Snapshots& b, std::int64_t) { cpu::noise_sik(b, slots.table(), times.data(), 2); }) == expected) << k << " " << length << " " << seed;
      }
  }
}

TEST(Sik, WideAndNarrowIdsGiveTheSame) {
  const test::Slots<std::uint16_t> narrow(kM, 5, 3);
  const test::Slots<std::int32_t> wide(kM, 5, 3);
  const Batch batch(5, 200, kM, 2);
  const auto times = batch.sik_times(narrow.clock);
  EXPECT_TRUE(batch.all([&](const Snapshots& b, std::int64_t) { cpu::noise_sik(b, narrow.table(), times.data(), 1); }) ==
              batch.all([&](const Snapshots& b, std::int64_t) { cpu::noise_sik(b, wide.table(), times.data(), 1); }));
}

// Draws from the column of kX0, one a sequence.
template <typename Draw>
void expect_draw_law(const test::Dense& dense, double tau, Draw draw) {
  SCOPED_TRACE(testing::Message() << "k " << dense.k << ", tau " << tau << (dense.cosine ? ", cosine" : ""));
  const DenseTables table = dense.table();
  std::vector<std::int64_t> counts(kM);
  for (std::uint64_t i = 0; i < 200000; ++i) {
    TokenRandom random(1, kForSnapshots, i, 0);
    ++counts[static_cast<std::size_t>(draw(table, tau, kX0, random))];
  }
  test::expect_fits(counts, dense.column(kX0, tau));
}

// From cold, where a jump goes to the nearest, to hot, where it goes anywhere; rejection is hardest between.
TEST(DenseDraw, RejectionHasTheLawOfTheColumn) {
  for (const std::int32_t k : {1, 8, kM - 2, kM - 1})
    for (const bool cosine : {false, true}) {
      const test::Dense dense(kM, k, 6, cosine, test::constant(1.0), 21);
      for (const double tau : {0.06, 0.1, 0.3, 1.0, 20.0}) expect_draw_law(dense, tau, RejectionDraw());
    }
}

TEST(DenseDraw, BlockwiseHasTheLawOfTheColumn) {
  for (const bool cosine : {false, true}) {
    const test::Dense dense(kM, 8, 6, cosine, test::constant(1.0), 21);
    for (const double tau : {0.06, 0.1, 0.3, 1.0, 20.0}) expect_draw_law(dense, tau, BlockwiseDraw());
  }
}

// More tokens than strips, so that a strip has several.
TEST(DenseDraw, BlockwiseWithFullStrips) {
  const test::Dense dense(700, 8, 6, false, test::constant(2.0), 21);
  const DenseTables table = dense.table();
  std::vector<std::int64_t> counts(700);
  for (std::uint64_t i = 0; i < 20000; ++i) {
    TokenRandom random(1, kForSnapshots, i, 0);
    ++counts[static_cast<std::size_t>(BlockwiseDraw()(table, 2.0, kX0, random))];
  }
  test::expect_fits(counts, dense.column(kX0, 2.0));
}

// The whole process with both draws, early and at the end, where most tokens were reset.
void expect_dense_laws(const test::Dense& dense, bool changes) {
  const Column column = [&](std::int32_t y, double clock) { return dense.column(y, std::exp(dense.temperature.log_tau(clock))); };
  for (const double t : {0.3, 0.8, 1.0}) {
    SCOPED_TRACE(testing::Message() << "t " << t << ", k " << dense.k << ", tau " << std::exp(dense.temperature.log_tau(0.0)));
    const std::vector<double> law = law_at(t, kX0, kM, changes, column);
    expect_law(t, dense.clock, law, [&](const Snapshots& b, const SikTime* times) { cpu::noise_dense(b, dense.table(), times, 2); });
    expect_law(t, dense.clock, law, [&](const Snapshots& b, const SikTime* times) { cpu::noise_blockwise(b, dense.table(), times, 2); });
  }
}

TEST(DenseLaw, ConstantTemperature) {
  expect_dense_laws(test::Dense(kM, 8, 6, false, test::constant(0.05), 21), false);
  expect_dense_laws(test::Dense(kM, 8, 6, false, test::constant(0.3), 21), false);
  expect_dense_laws(test::Dense(kM, kM - 1, 6, true, test::constant(1.0), 21), false);
}

TEST(DenseLaw, TemperatureThatChanges) {
  expect_dense_laws(test::Dense(kM, 1, 6, false, test::rising(0.2), 23), true);
  expect_dense_laws(test::Dense(kM, 8, 6, false, test::rising(0.2), 23), true);
}

// ---- threads and batches -----------------------------------------------------------------------------------------------------

TEST(Semantic, NeitherThreadsNorBatchesChangeAToken) {
  const test::Slots<std::uint16_t> slots(kM, 5, 3);
  const test::Dense dense(kM, 8, 5, false, test::constant(0.3), 24);
  for (const std::int64_t length : test::kLengths) {
    const Batch batch(7, length, kM, 31);
    const auto times = batch.sik_times(slots.clock);
    const auto expect_same = [&](auto noise) {
      expect_same_however_done(batch, batch.all([&](const Snapshots& b, std::int64_t first) { noise(b, first, 1); }), noise);
    };
    expect_same([&](const Snapshots& b, std::int64_t first, int threads) { cpu::noise_sik(b, slots.table(), times.data() + first, threads); });
    expect_same([&](const Snapshots& b, std::int64_t first, int threads) { cpu::noise_dense(b, dense.table(), times.data() + first, threads); });
    expect_same([&](const Snapshots& b, std::int64_t first, int threads) { cpu::noise_blockwise(b, dense.table(), times.data() + first, threads); });
  }
}

}  // namespace
}  // namespace gdds::kernels
