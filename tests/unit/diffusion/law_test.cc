// The law of every process on every schedule: operators against the master equation, draws of x_t (fast and by paths)
// against them by chi-square, bridges against Bayes' rule. False alarms: 1e-7 a comparison, about 3,000 comparisons with
// fixed seeds.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "base/threads.h"
#include "diffusion/open.h"
#include "diffusion/sik.h"
#include "support/chi_square.h"
#include "unit/diffusion/zoo.h"

namespace gdds::diffusion {
namespace {

// The operators of lib/diffusion, which OperatorsSolveTheMasterEquation compares with the solution of the equation.
Square matrix_of(const Process& process, double s, double t) {
  Square K(static_cast<std::size_t>(process.states()));
  const auto transition = process.transition(s, t);
  std::vector<double> column(K.n);
  for (std::size_t y = 0; y < K.n; ++y) {
    transition->column(static_cast<std::int32_t>(y), column);
    for (std::size_t x = 0; x < K.n; ++x) K(x, y) = column[x];
  }
  return K;
}

std::vector<double> column_of(const Square& K, std::size_t y) {
  std::vector<double> p(K.n);
  double sum = 0;
  for (std::size_t x = 0; x < K.n; ++x) sum += p[x] = K(x, y);
  for (double& value : p) value /= sum;
  return p;
}

// Tokens 0, 1, ... m-1 repeated: x_t of each x0.
struct Drawn {
  std::vector<std::vector<std::int64_t>> counts;  // [x0][x_t]
  std::vector<std::int64_t> stayed, total;
};

Drawn draw_fast(const Process& process, double t, std::int64_t sequences, std::uint64_t seed) {
  const std::int64_t m = process.m(), length = m * 64;
  std::vector<std::int32_t> x0(static_cast<std::size_t>(sequences * length)), xt(x0.size());
  std::vector<std::uint8_t> jumped(x0.size());
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < x0.size(); ++i) x0[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(m));
  for (std::int64_t s = 0; s < sequences; ++s) numbers.push_back(static_cast<std::uint64_t>(s));
  process.noise({x0.data(), numbers.data(), sequences, length, seed, xt.data(), jumped.data()}, std::vector<double>(static_cast<std::size_t>(sequences), t));
  Drawn d{std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(m), std::vector<std::int64_t>(static_cast<std::size_t>(process.states()))),
          std::vector<std::int64_t>(static_cast<std::size_t>(m)), std::vector<std::int64_t>(static_cast<std::size_t>(m))};
  for (std::size_t i = 0; i < x0.size(); ++i) {
    const auto x = static_cast<std::size_t>(x0[i]);
    ++d.counts[x][static_cast<std::size_t>(xt[i])];
    ++d.total[x];
    d.stayed[x] += jumped[i] == 0;
    EXPECT_TRUE(jumped[i] != 0 || xt[i] == x0[i]);
  }
  return d;
}

Drawn draw_paths(const Process& process, double t, std::int64_t each, std::uint64_t seed) {
  const auto m = static_cast<std::size_t>(process.m());
  Drawn d{std::vector<std::vector<std::int64_t>>(m, std::vector<std::int64_t>(static_cast<std::size_t>(process.states()))), std::vector<std::int64_t>(m), std::vector<std::int64_t>(m)};
  for (std::size_t x = 0; x < m; ++x)
    for (std::int64_t i = 0; i < each; ++i) {
      TokenRandom random(seed, kernels::kForPaths, x, static_cast<std::uint32_t>(i));
      const Path path = process.path(static_cast<std::int32_t>(x), t, random);
      ++d.counts[x][static_cast<std::size_t>(path.jumps.empty() ? static_cast<std::int32_t>(x) : path.jumps.back().to)];
      ++d.total[x];
      d.stayed[x] += path.jumps.empty();
    }
  return d;
}

// By chi-square; where one outcome takes nearly all, so that no two cells are left, by how many went elsewhere: a Poisson number
// of mean below 5, which exceeds its mean by so much less often than once in 10^7 times.
testing::AssertionResult follows(const std::vector<std::int64_t>& counts, const std::vector<double>& p) {
  if (test::chi_square(counts, p).freedom >= 1) return test::fits(counts, p);
  const std::size_t top = static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
  std::int64_t elsewhere = 0, all = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    all += counts[i];
    elsewhere += i == top ? 0 : counts[i];
  }
  const double mean = (1 - p[top]) * static_cast<double>(all);
  if (static_cast<double>(elsewhere) <= mean + 7 * std::sqrt(mean) + 8) return testing::AssertionSuccess();
  return testing::AssertionFailure() << elsewhere << " of " << all << " elsewhere, expected " << mean;
}

void expect_law(const Drawn& d, const Square& K, const Process& process, double t) {
  for (std::size_t x = 0; x < d.counts.size(); ++x) {
    const std::vector<double> p = column_of(K, x);
    EXPECT_TRUE(follows(d.counts[x], p)) << "from " << x;
    const double stays = process.stays(static_cast<std::int32_t>(x), t);
    EXPECT_TRUE(follows({d.stayed[x], d.total[x] - d.stayed[x]}, {stays, 1 - stays})) << "stayed at " << x;
  }
}

class Law : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override { set_threads(1); }
  test::Folder folder_;
  std::vector<Specimen> zoo_ = zoo(schedules()[GetParam()], folder_);
};
INSTANTIATE_TEST_SUITE_P(, Law, testing::Range<std::size_t>(0, 5), [](const auto& info) {
  std::string name = schedules()[info.param].name;
  std::erase(name, '-');
  return name;
});

TEST_P(Law, RatesAreThoseOfTheDefinition) {
  for (const Specimen& specimen : zoo_)
    for (const double t : {0.03, 0.39, 0.41, 0.77, 0.999}) {
      const Square q = specimen.generator(t);
      std::vector<double> column(q.n);
      for (std::size_t y = 0; y < q.n; ++y) {
        specimen.process->rates_from(static_cast<std::int32_t>(y), t, column);
        for (std::size_t x = 0; x < q.n; ++x) EXPECT_NEAR(column[x], q(x, y), 1e-7 * (1 + std::abs(q(y, y)))) << specimen.name << " at " << t;
      }
    }
}

TEST_P(Law, OperatorsSolveTheMasterEquation) {
  for (const Specimen& specimen : zoo_)
    for (const auto& [s, t] : {std::pair{0.0, 0.05}, {0.0, 0.6}, {0.0, 1.0}, {0.3, 0.8}, {0.45, 0.5}}) {
      const Square expected = solve(specimen, s, t);
      const auto K = specimen.process->transition(s, t);
      const std::size_t n = expected.n;
      std::vector<double> column(n), row(n), p(n), product(n), transposed(n);
      for (std::size_t i = 0; i < n; ++i) p[i] = 1.0 + static_cast<double>(i * i % 7);
      K->apply(p, product);
      K->apply_transposed(p, transposed);
      for (std::size_t y = 0; y < n; ++y) {
        K->column(static_cast<std::int32_t>(y), column);
        K->row(static_cast<std::int32_t>(y), row);
        double sum = 0, applied = 0, back = 0;
        for (std::size_t x = 0; x < n; ++x) {
          EXPECT_NEAR(column[x], expected(x, y), 5e-7) << specimen.name << " " << s << " " << t << ": to " << x << " from " << y;
          EXPECT_NEAR(row[x], expected(y, x), 5e-7) << specimen.name << " row " << y;
          EXPECT_NEAR(K->entry(static_cast<std::int32_t>(x), static_cast<std::int32_t>(y)), column[x], 1e-11) << specimen.name;
          sum += column[x];
          applied += expected(y, x) * p[x];
          back += expected(x, y) * p[x];
        }
        EXPECT_NEAR(sum, 1, 2e-9) << specimen.name << " column " << y;
        EXPECT_NEAR(product[y], applied, 1e-6) << specimen.name;
        EXPECT_NEAR(transposed[y], back, 1e-6) << specimen.name;
      }
    }
}

TEST_P(Law, SnapshotsHaveIt) {
  for (const Specimen& specimen : zoo_)
    for (const double t : {0.05, 0.6, 1.0}) {
      SCOPED_TRACE(specimen.name + " at t = " + std::to_string(t));
      expect_law(draw_fast(*specimen.process, t, 40, 5), matrix_of(*specimen.process, 0, t), *specimen.process, t);
    }
}

TEST_P(Law, PathsHaveIt) {
  for (const Specimen& specimen : zoo_)
    for (const double t : {0.05, 0.6, 1.0}) {
      SCOPED_TRACE(specimen.name + " at t = " + std::to_string(t));
      expect_law(draw_paths(*specimen.process, t, 3000, 6), matrix_of(*specimen.process, 0, t), *specimen.process, t);
    }
}

// Given where the path is at t, where it was at s: against K_{t,s}(x_t, .) K_{s,0}(., x_0), normalised.
TEST_P(Law, BridgesAreThoseOfBayes) {
  for (const Specimen& specimen : zoo_)
    for (const auto& [s, t] : {std::pair{0.1, 0.5}, {0.45, 0.5}, {0.7, 1.0}}) {
      const Square late = matrix_of(*specimen.process, s, t), early = matrix_of(*specimen.process, 0, s);
      const auto bridge = specimen.process->bridge(s, t);
      for (const std::int32_t x0 : {0, 3}) {
        for (std::int32_t xt = 0; xt < specimen.process->states(); xt += 2) {
          std::vector<double> p(late.n);
          double sum = 0;
          for (std::size_t x = 0; x < late.n; ++x) sum += p[x] = late(static_cast<std::size_t>(xt), x) * early(x, static_cast<std::size_t>(x0));
          if (sum < 1e-6) continue;  // never there
          for (double& value : p) value /= sum;
          std::vector<std::int64_t> counts(late.n);
          for (std::uint32_t i = 0; i < 2000; ++i) {
            TokenRandom random(9, kernels::kForBridges, static_cast<std::uint64_t>(xt * 100 + x0), i);
            ++counts[static_cast<std::size_t>(bridge->draw(xt, x0, random))];
          }
          EXPECT_TRUE(follows(counts, p)) << specimen.name << " " << s << " " << t << " from " << x0 << " to " << xt;
        }
      }
    }
}

// Written to a file and read again, a process is the same to the bit.
TEST_P(Law, SavedAndLoaded) {
  for (const Specimen& specimen : zoo_) {
    const std::string path = folder_.file("saved.h5");
    h5::Output output(h5::OutputOptions{path}, "process", {"test", "1", {}, {}}, {});
    write(*specimen.process, output);
    output.commit();
    const h5::Input input(path, "process");
    const auto loaded = read_process(input);
    EXPECT_EQ(loaded->digest(), specimen.process->digest()) << specimen.name;
    EXPECT_EQ(loaded->config(), specimen.process->config()) << specimen.name;
    const Drawn a = draw_fast(*specimen.process, 0.5, 2, 3), b = draw_fast(*loaded, 0.5, 2, 3);
    EXPECT_EQ(a.counts, b.counts) << specimen.name;
  }
}

// The law at t = 1 is near the prior, whatever x0, unless the schedule stops early or the process never gets there.
TEST_P(Law, PriorIsADistribution) {
  for (const Specimen& specimen : zoo_) {
    const auto prior = specimen.process->prior();
    double sum = 0;
    for (const double p : prior) {
      EXPECT_GE(p, 0) << specimen.name;
      sum += p;
    }
    EXPECT_NEAR(sum, 1, 1e-12) << specimen.name;
  }
}

// ---- paths -----------------------------------------------------------------------------------------------------------------------

// Times and counts of paths against the inhomogeneous Poisson process: the number of jumps, when they are, and which of them
// are resets. Returns whether all three fit.
bool path_law_holds(const SikKnnProcess& process, double t, const std::function<Path(std::int32_t, TokenRandom&)>& draw) {
  constexpr int kPaths = 20000;
  constexpr std::size_t kBins = 20, kMost = 40;
  std::vector<std::int64_t> numbers(kMost), bins(kBins), resets(kBins), kernel(kBins);
  for (std::uint32_t i = 0; i < kPaths; ++i) {
    TokenRandom random(21, kernels::kForPaths, 0, i);
    const Path path = draw(static_cast<std::int32_t>(i % 9), random);
    ++numbers[std::min(kMost - 1, path.times.size())];
    for (std::size_t k = 0; k < path.times.size(); ++k) {
      const auto bin = std::min(kBins - 1, static_cast<std::size_t>(path.times[k] / t * static_cast<double>(kBins)));
      ++bins[bin];
      ++(path.jumps[k].reset ? resets : kernel)[bin];
    }
  }
  const Clock& clock = process.clocks();
  std::vector<double> poisson(kMost), when(kBins);
  const double mean = clock.total(t);
  double p = std::exp(-mean), rest = 1;
  for (std::size_t n = 0; n + 1 < kMost; rest -= p, ++n, p *= mean / static_cast<double>(n)) poisson[n] = p;
  poisson[kMost - 1] = std::max(0.0, rest);
  bool good = test::fits(numbers, poisson);
  for (std::size_t b = 0; b < kBins; ++b) {
    const double low = t * static_cast<double>(b) / kBins, high = t * static_cast<double>(b + 1) / kBins;
    when[b] = (clock.total(high) - clock.total(low)) / mean;
    const double share = (clock.R(high) - clock.R(low)) / (clock.total(high) - clock.total(low));
    if (bins[b] > 100 && share > 0.05 && share < 0.95) good &= static_cast<bool>(test::fits({resets[b], kernel[b]}, {share, 1 - share}));
  }
  return good && static_cast<bool>(test::fits(bins, when));
}

class PathLaw : public testing::Test {
 protected:
  test::Folder folder_;
  std::vector<Specimen> zoo_ = zoo(schedules()[0], folder_);
  const SikKnnProcess& process() const { return dynamic_cast<const SikKnnProcess&>(*zoo_[3].process); }
};

TEST_F(PathLaw, CountsTimesAndMarks) {
  for (const Schedule& schedule : schedules()) {
    const auto all = zoo(schedule, folder_);
    const auto& process = dynamic_cast<const SikKnnProcess&>(*all[3].process);
    for (const double t : {0.3, 0.8, 1.0})
      EXPECT_TRUE(path_law_holds(process, t, [&](std::int32_t x0, TokenRandom& random) { return process.path(x0, t, random); })) << schedule.name << " " << t;
  }
}

// The clock of all jumps and its inverse, up to the very end.
TEST(ClockOfAllJumps, HasAnInverse) {
  for (const Schedule& schedule : schedules())
    for (const std::int32_t m : {9, 27, 50257}) {
      const Clock clock(schedule, ResetShare(), m);
      for (int i = 1; i <= 2000; ++i) {
        const double c = clock.total(1) * i / 2000;
        EXPECT_NEAR(clock.total(clock.time_of_total(c)), c, 1e-8) << schedule.name << " " << m << " " << i;
      }
    }
}

// As in the authors' code: more times than jumps are drawn and sorted, and the first N are kept, so jumps come too early.
Path unsorted_among_themselves(const Process& process, std::int32_t x0, double t, TokenRandom& random) {
  const double whole = process.clock(t);
  const int n = kernels::poisson_inverse(whole, std::exp(-whole), random.unit());
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) times.push_back(process.time_of(whole * random.unit()));
  std::sort(times.begin(), times.end());
  Path path;
  std::int32_t state = x0;
  for (int k = 0; k < std::min(n, 20); ++k) {
    const auto jump = process.jump(state, times[static_cast<std::size_t>(k)], random);
    state = jump->to;
    path.times.push_back(times[static_cast<std::size_t>(k)]);
    path.jumps.push_back(*jump);
  }
  return path;
}

TEST_F(PathLaw, AWrongSamplerFails) {
  for (const double t : {0.3, 0.8, 1.0}) EXPECT_FALSE(path_law_holds(process(), t, [&](std::int32_t x0, TokenRandom& r) { return unsorted_among_themselves(process(), x0, t, r); })) << t;
  // Not only its paths are wrong but x_t too, since the kernel depends on time.
  const Square K = matrix_of(process(), 0, 0.8);
  bool fits = true;
  for (std::int32_t x0 = 0; x0 < 9; ++x0) {
    std::vector<std::int64_t> counts(9);
    for (std::uint32_t i = 0; i < 20000; ++i) {
      TokenRandom random(4, kernels::kForPaths, static_cast<std::uint64_t>(x0), i);
      const Path path = unsorted_among_themselves(process(), x0, 0.8, random);
      ++counts[static_cast<std::size_t>(path.jumps.empty() ? x0 : path.jumps.back().to)];
    }
    fits &= static_cast<bool>(test::fits(counts, column_of(K, static_cast<std::size_t>(x0))));
  }
  EXPECT_FALSE(fits);
}

}  // namespace
}  // namespace gdds::diffusion
