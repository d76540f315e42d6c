// What snapshots promise: sample i has its sequence, its time and its noise whatever the threads, the cut into batches and
// the order in which batches are asked for; an epoch is a permutation; times are spread as they should be.
#include "diffusion/snapshots.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <gtest/gtest.h>

#include "base/threads.h"
#include "support/chi_square.h"
#include "unit/diffusion/zoo.h"

namespace gdds::diffusion {
namespace {

constexpr std::int64_t kCount = 29, kLength = 37;

class SnapshotsTest : public testing::TestWithParam<bool> {  // whether with paths
 protected:
  ~SnapshotsTest() override { set_threads(available_cores()); }

  // Sequences of nine_tokens(), sequence s of length kLength - s % 5 where lengths are asked for.
  h5::Input tokens(bool lengths) const {
    const std::string path = folder_.file(lengths ? "lengths.h5" : "tokens.h5");
    const auto v = nine_tokens();
    std::vector<std::uint16_t> ids(static_cast<std::size_t>(kCount * kLength));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint16_t>(i * i % 8);
    h5::Output output(h5::OutputOptions{path}, "tokens", {"test", "1", {}, {}}, {});
    output.attribute("/vocab@name", v.name);
    output.attribute("/vocab@hash", v.hash);
    output.attribute("/vocab@size", std::int64_t{v.size});
    output.write("/tokens", {kCount, kLength}, std::span<const std::uint16_t>(ids));
    std::vector<std::int32_t> counts;
    for (std::int64_t s = 0; s < kCount; ++s) counts.push_back(static_cast<std::int32_t>(kLength - s % 5));
    if (lengths) output.write("/lengths", {kCount}, std::span<const std::int32_t>(counts));
    output.commit();
    return h5::Input(path, "tokens");
  }

  SnapshotOptions options() const {
    SnapshotOptions o;
    o.paths = GetParam();
    o.seed.value = 5;
    return o;
  }

  test::Folder folder_;
  std::vector<Specimen> zoo_ = zoo(schedules()[0], folder_);
};
INSTANTIATE_TEST_SUITE_P(, SnapshotsTest, testing::Bool(), [](const auto& info) { return info.param ? "WithPaths" : "Alone"; });

// One sample, as it is whatever the batch around it.
struct Sample {
  std::int64_t sequence;
  double time;
  std::vector<std::int32_t> x0, xt;
  std::vector<std::uint8_t> jumped;
  std::vector<std::int64_t> path_lengths;
  std::vector<double> path_times;
  std::vector<std::int32_t> path_states;
  bool operator==(const Sample&) const = default;
};

Sample sample(const SnapshotBatch& b, std::int64_t i) {
  const auto part = [](const auto& values, std::int64_t begin, std::int64_t end) { return std::decay_t<decltype(values)>(values.begin() + begin, values.begin() + end); };
  const std::int64_t begin = i * b.length, end = begin + b.length;
  Sample s{b.sequences[static_cast<std::size_t>(i)], b.times[static_cast<std::size_t>(i)], part(b.x0, begin, end), part(b.xt, begin, end), part(b.jumped, begin, end), {}, {}, {}};
  if (b.path_offsets.empty()) return s;
  const auto offsets = part(b.path_offsets, i * (b.length + 1), (i + 1) * (b.length + 1));
  for (std::size_t l = 0; l + 1 < offsets.size(); ++l) s.path_lengths.push_back(offsets[l + 1] - offsets[l]);
  s.path_times = part(b.path_times, offsets.front(), offsets.back());
  s.path_states = part(b.path_states, offsets.front(), offsets.back());
  return s;
}

// Samples 0 ... n-1 in batches of `size`, asked for from the first or from the last.
std::vector<Sample> samples(SnapshotSource source, std::int64_t n, std::int64_t size, bool backwards) {
  std::vector<std::optional<Sample>> found(static_cast<std::size_t>(n));
  std::vector<std::int64_t> firsts;
  for (std::int64_t first = 0; first < n; first += size) firsts.push_back(first);
  if (backwards) std::reverse(firsts.begin(), firsts.end());
  for (const std::int64_t first : firsts) {
    const SnapshotBatch batch = source.batch(static_cast<std::uint64_t>(first), std::min(size, n - first));
    for (std::int64_t i = 0; i < batch.n; ++i) found[static_cast<std::size_t>(first + i)] = sample(batch, i);
  }
  std::vector<Sample> all;
  for (auto& s : found) all.push_back(std::move(s).value());
  return all;
}

TEST_P(SnapshotsTest, NeitherThreadsNorBatchesNorTheirOrderChangeASample) {
  for (const bool lengths : {false, true}) {
    const h5::Input input = tokens(lengths);
    const Sequences sequences(input);
    const SnapshotOptions o = options();
    for (const Specimen& specimen : zoo_) {
      const SnapshotSource source(sequences, *specimen.process, o, true);
      set_threads(1);
      const std::vector<Sample> expected = samples(source, 128, 64, false);
      EXPECT_TRUE(samples(source, 128, 7, false) == expected) << specimen.name;
      EXPECT_TRUE(samples(source, 128, 128, false) == expected) << specimen.name;
      EXPECT_TRUE(samples(source, 128, 7, true) == expected) << specimen.name;
      set_threads(3);
      EXPECT_TRUE(samples(source, 128, 64, false) == expected) << specimen.name;
      EXPECT_TRUE(samples(source, 128, 5, true) == expected) << specimen.name;
      // Nor are two samples of one sequence the same: time and noise are those of the sample.
      for (std::size_t i = kCount; i < 128; ++i) EXPECT_NE(expected[i].time, expected[i - kCount].time);
    }
  }
}

TEST_P(SnapshotsTest, SamplesAreMadeOfTheirSequences) {
  const h5::Input input = tokens(true);
  const Sequences sequences(input);
  const SnapshotOptions o = options();
  std::vector<std::int32_t> x0(kLength);
  for (const Specimen& specimen : zoo_) {
    std::int64_t jumps = 0;
    for (const Sample& s : samples({sequences, *specimen.process, o, true}, 64, 9, false)) {
      sequences.copy(s.sequence, x0.data());
      EXPECT_EQ(s.x0, x0) << specimen.name;
      for (std::size_t l = 0; l < x0.size(); ++l) {
        const bool counts = l < static_cast<std::size_t>(sequences.length_of(s.sequence));
        EXPECT_TRUE(counts || !s.jumped[l]) << specimen.name << ": what does not count stays";
        EXPECT_TRUE(s.jumped[l] || s.xt[l] == s.x0[l]) << specimen.name;
        EXPECT_TRUE(!o.paths || (s.path_lengths[l] > 0) == (s.jumped[l] != 0)) << specimen.name;
        jumps += s.jumped[l];
      }
      EXPECT_TRUE(std::all_of(s.path_times.begin(), s.path_times.end(), [&](double time) { return time > 0 && time <= s.time; })) << specimen.name;
    }
    EXPECT_GT(jumps, 0) << specimen.name;
  }
}

TEST(SampleOrderTest, AnEpochIsAPermutation) {
  constexpr std::int64_t kMany = 101;
  SampleOrder order(kMany, true, {7}), again(kMany, true, {7}), other(kMany, true, {8}), plain(kMany, false, {7});
  std::vector<std::int64_t> all(kMany), previous;
  std::iota(all.begin(), all.end(), std::int64_t{0});
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<std::int64_t> found, of_other, in_order;
    for (std::uint64_t i = 0; i < kMany; ++i) {
      const std::uint64_t at = epoch * kMany + i;
      found.push_back(order.sequence(at));
      of_other.push_back(other.sequence(at));
      in_order.push_back(plain.sequence(at));
    }
    EXPECT_EQ(in_order, all);
    EXPECT_NE(found, of_other);
    EXPECT_NE(found, previous);
    previous = found;
    EXPECT_NE(found, all);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, all);
  }
  for (const std::uint64_t at : {450U, 3U, 250U, 2U}) EXPECT_EQ(again.sequence(at), order.sequence(at));
}

// The first place of an epoch is any sequence with equal probability; and so is the last.
TEST(SampleOrderTest, EverySequenceComesFirstAndLast) {
  constexpr std::uint64_t kMany = 10;
  SampleOrder order(kMany, true, {7});
  std::vector<std::int64_t> first(kMany), last(kMany);
  for (std::uint64_t epoch = 0; epoch < 5000; ++epoch) {
    ++first[static_cast<std::size_t>(order.sequence(epoch * kMany))];
    ++last[static_cast<std::size_t>(order.sequence(epoch * kMany + kMany - 1))];
  }
  test::expect_fits(first, std::vector<double>(kMany, 0.1));
  test::expect_fits(last, std::vector<double>(kMany, 0.1));
}

TEST(TimesTest, AreUniformHoweverDrawn) {
  for (const char* how : {"uniform", "antithetic", "stratified"}) {
    SCOPED_TRACE(how);
    TimeOptions o;
    o.t_min = 0.02;
    o.times = how;
    o.strata = 16;
    std::vector<std::int64_t> bins(20);
    for (std::uint64_t i = 0; i < 64000; ++i) {
      const double t = o.of_sample(i, {3});
      ASSERT_TRUE(t >= 0.02 && t <= 1);
      ++bins[std::min<std::size_t>(19, static_cast<std::size_t>((t - 0.02) / 0.98 * 20))];
    }
    test::expect_fits(bins, std::vector<double>(20, 0.05));
  }
}

TEST(TimesTest, PairsMirrorEachOther) {
  TimeOptions o;
  o.times = "antithetic";
  double previous = 0;
  for (std::uint64_t i = 0; i < 200; i += 2) {
    const double first = o.of_sample(i, {3}), second = o.of_sample(i + 1, {3});
    EXPECT_NEAR(first + second, 1 + o.t_min, 1e-15);
    EXPECT_NE(first, previous);
    previous = first;
  }
}

TEST(TimesTest, StrataTakeTurns) {
  TimeOptions o;
  o.times = "stratified";
  o.strata = 7;
  for (std::uint64_t i = 0; i < 700; ++i) EXPECT_EQ(static_cast<std::uint64_t>((o.of_sample(i, {3}) - o.t_min) / (1 - o.t_min) * 7), i % 7);
}

TEST(TimesTest, OneTimeForAll) {
  TimeOptions o;
  o.time = 0.25;
  for (std::uint64_t i = 0; i < 9; ++i) EXPECT_EQ(o.of_sample(i, {3}), 0.25);
}

}  // namespace
}  // namespace gdds::diffusion
