// See sik_bound.h.
#include "diffusion/sik_bound.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/threads.h"

namespace gdds::diffusion {
namespace {

constexpr std::uint64_t kSeed = 0x626f756e64;  // the draws of bounds have a stream of their own

// The operator K_t, seen from the token it leads to.
struct Rows {
  Rows(const SikKnnProcess& p, double t)
      : process(p), kept(std::exp(-p.clocks().R(t))), powers(poisson_weights(p.clocks().A(t))), resets(reset_coefficients(p.clocks(), 0, t)), tails(powers.size() + 1, 0.0) {
    for (std::size_t n = powers.size(); n-- > 0;) tails[n] = tails[n + 1] + powers[n];
  }
  double v(std::int32_t x) const {
    const double* p = process.spread_of(x);
    double sum = 0;
    for (std::size_t n = 0; n < resets.size(); ++n) sum += resets[n] * p[n];
    return sum;
  }
  const SikKnnProcess& process;
  double kept;
  std::vector<double> powers, resets, tails;  // Pois(n; A_t), c_n, sum of powers from n on
};

struct Entry {
  std::int32_t token;
  double value;
};

// Sums of values by token, for one row at a time.
class Gathered {
 public:
  explicit Gathered(std::int32_t m) : sums_(static_cast<std::size_t>(m), 0.0) {}
  void add(std::int32_t token, double value) {
    double& sum = sums_[static_cast<std::size_t>(token)];
    if (sum == 0) touched_.push_back(token);
    sum += value;
  }
  void take(std::vector<Entry>& out) {
    out.clear();
    std::sort(touched_.begin(), touched_.end());
    for (const std::int32_t token : touched_) {
      out.push_back({token, sums_[static_cast<std::size_t>(token)]});
      sums_[static_cast<std::size_t>(token)] = 0;
    }
    touched_.clear();
  }

 private:
  std::vector<double> sums_;
  std::vector<std::int32_t> touched_;
};

// The value of a token in a list in the order of tokens, 0 where it is not there.
double value_at(const std::vector<Entry>& list, std::int32_t token) {
  const auto found = std::lower_bound(list.begin(), list.end(), token, [](const Entry& e, std::int32_t t) { return e.token < t; });
  return found != list.end() && found->token == token ? found->value : 0.0;
}

// e^{-R_t} E_t(y, .) by powers of F, backwards along the graph. A contribution below `least` is left out: x has k neighbours,
// so a level loses at most k of them at x, later levels no more of it (columns of F sum to one), and neither does p(y), since
// l sums to one. So the loss is below kTolerance v(y).
void row_of(const Rows& rows, std::int32_t y, double v, Gathered& level, Gathered& total, std::vector<Entry>& current, std::vector<Entry>& out) {
  const SparseKernel& F = rows.process.kernel();
  const double least = kTolerance * v / (static_cast<double>(F.k) * static_cast<double>(rows.powers.size()));
  current.assign(1, {y, 1.0});
  for (std::size_t n = 0;; ++n) {
    for (const Entry& e : current) total.add(e.token, rows.kept * rows.powers[n] * e.value);
    if (n + 1 == rows.powers.size() || current.empty()) break;
    const double cut = least / (rows.kept * rows.tails[n + 1]);
    for (const Entry& e : current)
      for (auto i = static_cast<std::size_t>(F.row_begin[static_cast<std::size_t>(e.token)]); i < static_cast<std::size_t>(F.row_begin[static_cast<std::size_t>(e.token) + 1]); ++i)
        if (const double value = e.value * F.row_weights[i]; value > 0 && value >= cut) level.add(F.row_ids[i], value);
    level.take(current);
  }
  total.take(out);
}

// K_t(. | x0) without v, roughly: what at most three likely jumps reach. It steers draws and is part of no result.
void reached_from(const Rows& rows, std::int32_t x0, Gathered& level, Gathered& total, std::vector<Entry>& current, std::vector<Entry>& out) {
  constexpr std::size_t kJumps = 3;
  constexpr double kLikely = 1e-3;
  const SparseKernel& F = rows.process.kernel();
  current.assign(1, {x0, 1.0});
  for (std::size_t n = 0;; ++n) {
    for (const Entry& e : current) total.add(e.token, rows.kept * rows.powers[n] * e.value);
    if (n == kJumps || n + 1 == rows.powers.size()) break;
    for (const Entry& e : current)
      for (std::size_t i = static_cast<std::size_t>(e.token) * static_cast<std::size_t>(F.k), end = i + static_cast<std::size_t>(F.k); i < end; ++i)
        if (const double value = e.value * F.weights[i]; value >= kLikely) level.add(F.ids[i], value);
    level.take(current);
  }
  total.take(out);
}

// A token y other than x0 that jumps to x_t, drawn with a probability proportional to F(x_t, y) (q(y)/q(x_t) + 1), about the
// size of its term of the bound: F(x_t, y) over that probability, and F(x_t, x0). x_t itself where there is no such token.
struct Source {
  std::int32_t token;
  double weight, from_x0;
};
Source draw_source(const Rows& rows, std::int32_t xt, std::int32_t x0, double q_xt, const std::vector<Entry>& reached, double u) {
  const SparseKernel& F = rows.process.kernel();
  const auto begin = static_cast<std::size_t>(F.row_begin[static_cast<std::size_t>(xt)]), end = static_cast<std::size_t>(F.row_begin[static_cast<std::size_t>(xt) + 1]);
  Source out{xt, 0, 0};
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const std::int32_t y = F.row_ids[i];
    if (y == x0) out.from_x0 += F.row_weights[i];
    weights.push_back(y == x0 ? 0.0 : F.row_weights[i] * ((rows.v(y) + value_at(reached, y)) / q_xt + 1));
    sum += weights.back();
  }
  if (!(sum > 0)) return out;
  const auto drawn = static_cast<std::size_t>(draw_index(weights, u));
  out.token = F.row_ids[begin + drawn];
  out.weight = F.row_weights[begin + drawn] * sum / weights[drawn];
  return out;
}

// y ~ K_t(. | x0) given that it is neither x0 nor x_t: from draws in which something happened, a last reset or a jump. Its
// weight is the probability of such y; where they are so rare that no draw would end, it is that of one draw, or none.
struct Elsewhere {
  std::int32_t token;
  double weight;
};
Elsewhere draw_elsewhere(const Rows& rows, std::int32_t xt, std::int32_t x0, double q_others, TokenRandom& random) {
  constexpr double kRare = 1e-3;
  const double no_reset = rows.kept * (1 - rows.powers[0]), something = 1 - rows.kept + no_reset;
  for (;;) {
    const bool reset = random.unit() * something >= no_reset;
    std::int32_t y = reset ? static_cast<std::int32_t>(random.unit() * rows.process.m()) : x0;
    const std::span<const double> jumps = reset ? std::span(rows.resets) : std::span(rows.powers).subspan(1);
    for (std::int32_t n = draw_index(jumps, random.unit()) + (reset ? 0 : 1); n > 0; --n) y = rows.process.neighbour(y, random);
    const bool counts = y != x0 && y != xt;
    if (q_others < kRare * something) return {y, counts ? something : 0};
    if (counts) return {y, q_others};
  }
}

std::uint64_t number_of(const SnapshotBatch& batch, std::int64_t s) {
  const auto at = static_cast<std::size_t>(s);
  return std::bit_cast<std::uint64_t>(batch.times[at]) + (static_cast<std::uint64_t>(batch.sequences[at]) << 20);
}

using TokenRows = std::array<std::vector<Entry>, BoundRows::kRows>;

// The rows of one sequence, the s-th of `out`.
class SequenceRows {
 public:
  explicit SequenceRows(const SikKnnProcess& process) : process_(process), level_(process.m()), total_(process.m()) {}

  void make(const SnapshotBatch& batch, std::int64_t first, std::int64_t s, std::uint64_t number, BoundRows& out, std::vector<TokenRows>& made, std::atomic<std::int64_t>& entries) {
    const double t = batch.times[static_cast<std::size_t>(first + s)], f = process_.schedule().f(t), a = f * process_.clocks().a_of(t);
    const Rows rows(process_, t);
    for (std::int64_t l = 0; l < batch.length && entries.load(std::memory_order_relaxed) <= kMostEntries; ++l) {
      const auto here = static_cast<std::size_t>(s * batch.length + l), there = static_cast<std::size_t>((first + s) * batch.length + l);
      const std::int32_t x0 = batch.x0[there], xt = batch.xt[there];
      TokenRandom random(kSeed, kernels::kForBounds, number, static_cast<std::uint32_t>(l));
      const auto row = [&](std::size_t i, std::int32_t y) { return make_row(rows, x0, y, BoundRows::kRows * here + i, made[here][i], out, entries); };
      const double q_xt = row(0, xt), q_x0 = row(1, x0), q_others = std::max(0.0, 1 - q_xt - (x0 == xt ? 0 : q_x0));
      reached_from(rows, x0, level_, total_, current_, reached_);
      const Source source = draw_source(rows, xt, x0, q_xt, reached_, random.unit());
      row(2, source.token);
      const Elsewhere elsewhere = draw_elsewhere(rows, xt, x0, q_others, random);
      row(3, elsewhere.token);
      out.elsewhere[here] = static_cast<float>(elsewhere.weight);
      out.from_x0[here] = static_cast<float>(a * source.from_x0);
      out.semantic[here] = static_cast<float>(a * source.weight);
      out.reset[here] = static_cast<float>(f * process_.clocks().r_of(t) / process_.m());
    }
  }

 private:
  // Row `at` of all, that of y; K_t(y | x0).
  double make_row(const Rows& rows, std::int32_t x0, std::int32_t y, std::size_t at, std::vector<Entry>& row, BoundRows& out, std::atomic<std::int64_t>& entries) {
    const double v = rows.v(y);
    row_of(rows, y, v, level_, total_, current_, row);
    const double q = v + value_at(row, x0);
    out.tokens[at] = y;
    out.v[at] = static_cast<float>(v);
    out.q[at] = static_cast<float>(q);
    entries.fetch_add(static_cast<std::int64_t>(row.size()), std::memory_order_relaxed);
    return q;
  }

  const SikKnnProcess& process_;
  Gathered level_, total_;
  std::vector<Entry> current_, reached_;
};

}  // namespace

BoundRows bound_rows(const SikKnnProcess& process, const SnapshotBatch& batch, std::int64_t first, std::int64_t n) {
  const auto tokens = static_cast<std::size_t>(n * batch.length);
  std::vector<std::uint64_t> numbers;
  for (std::int64_t s = first; s < first + n; ++s) numbers.push_back(number_of(batch, s));

  BoundRows out;
  out.tokens.resize(BoundRows::kRows * tokens);
  out.v.resize(BoundRows::kRows * tokens);
  out.q.resize(BoundRows::kRows * tokens);
  for (auto* part : {&out.from_x0, &out.semantic, &out.reset, &out.elsewhere}) part->resize(tokens);
  std::vector<TokenRows> made(tokens);
  std::atomic<std::int64_t> entries = 0;
  process.spread_of(0);
#pragma omp parallel num_threads(threads())
  {
    SequenceRows rows(process);
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t s = 0; s < n; ++s) rows.make(batch, first, s, numbers[static_cast<std::size_t>(s)], out, made, entries);
  }
  if (entries > kMostEntries)
    fail("path on sik-knn: the kernel reaches so many tokens within a few jumps that {} sequences need more than {} numbers; take a smaller --micro-batch, or a sharper kernel (--epsilon)", n, kMostEntries);
  out.begin.push_back(0);
  for (TokenRows& token : made)
    for (auto& row : token) {
      for (const Entry& e : row) {
        out.ids.push_back(e.token);
        out.weights.push_back(static_cast<float>(e.value));
      }
      out.begin.push_back(static_cast<std::int64_t>(out.ids.size()));
      std::vector<Entry>().swap(row);
    }
  return out;
}

double entries_of_a_row(const SikKnnProcess& process) {
  constexpr std::int32_t kProbes = 64;
  const Rows rows(process, 1);
  Gathered level(process.m()), total(process.m());
  std::vector<Entry> current, row;
  double entries = 0;
  const std::int32_t probes = std::min(kProbes, process.m());
  for (std::int32_t i = 0; i < probes; ++i) {
    const auto y = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * process.m() / probes);
    row_of(rows, y, rows.v(y), level, total, current, row);
    entries += static_cast<double>(row.size());
  }
  return entries / probes;
}

// (F^n l)(y) is at most one, and v(y) at least c_0/m: what is reset and never jumps again is anywhere.
std::vector<double> bound_powers(const SikKnnProcess& process, double t) {
  const Rows rows(process, t);
  const double least = kTolerance * rows.resets[0] / process.m();
  std::vector<double> weights;
  for (std::size_t n = 0; n < rows.powers.size() && (n == 0 || rows.kept * rows.tails[n] > least); ++n) weights.push_back(rows.kept * rows.powers[n]);
  return weights;
}

std::vector<float> bound_spread(const SikKnnProcess& process, double t) {
  const Rows rows(process, t);
  std::vector<float> v(static_cast<std::size_t>(process.m()));
  for (std::int32_t y = 0; y < process.m(); ++y) v[static_cast<std::size_t>(y)] = static_cast<float>(rows.v(y));
  return v;
}

}  // namespace gdds::diffusion
