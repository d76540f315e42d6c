// See sik_bound.h.
#include "diffusion/sik_bound.h"

#include <algorithm>
#include <bit>
#include <cmath>

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
        if (const double value = e.value * F.row_weights[i]; value >= cut) level.add(F.row_ids[i], value);
    level.take(current);
  }
  total.take(out);
}

// y ~ F(x, .), and the sum of that row; x itself where the row is empty.
std::int32_t draw_source(const SparseKernel& F, std::int32_t x, double u, double& sum) {
  const auto begin = static_cast<std::size_t>(F.row_begin[static_cast<std::size_t>(x)]), end = static_cast<std::size_t>(F.row_begin[static_cast<std::size_t>(x) + 1]);
  const auto weights = std::span<const double>(F.row_weights).subspan(begin, end - begin);
  sum = 0;
  for (const double w : weights) sum += w;
  return sum > 0 ? F.row_ids[begin + static_cast<std::size_t>(draw_index(weights, u))] : x;
}

std::uint64_t number_of(const SnapshotBatch& batch, std::int64_t s) {
  const auto at = static_cast<std::size_t>(s);
  return std::bit_cast<std::uint64_t>(batch.times[at]) + (static_cast<std::uint64_t>(batch.sequences[at]) << 20);
}

struct TokenRows {
  std::vector<Entry> rows[3];
};

}  // namespace

BoundRows bound_rows(const SikKnnProcess& process, const SnapshotBatch& batch, std::int64_t first, std::int64_t n) {
  const std::int64_t length = batch.length, tokens = n * length;
  const auto at = [&](std::int64_t s) { return static_cast<std::size_t>(s * length); };
  std::vector<std::uint64_t> numbers;
  for (std::int64_t s = first; s < first + n; ++s) numbers.push_back(number_of(batch, s));
  std::vector<std::int32_t> again(static_cast<std::size_t>(tokens));
  std::vector<std::uint8_t> jumped(again.size());
  process.noise({batch.x0.data() + at(first), numbers.data(), n, length, kSeed, again.data(), jumped.data()}, std::span(batch.times).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n)));

  BoundRows out;
  out.v.resize(3 * again.size());
  out.q.resize(3 * again.size());
  out.semantic.resize(again.size());
  out.reset.resize(again.size());
  std::vector<TokenRows> made(again.size());
  process.spread_of(0);
#pragma omp parallel num_threads(threads())
  {
    Gathered level(process.m()), total(process.m());
    std::vector<Entry> current;
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t s = 0; s < n; ++s) {
      const double t = batch.times[static_cast<std::size_t>(first + s)], f = process.schedule().f(t);
      const Rows rows(process, t);
      for (std::int64_t l = 0; l < length; ++l) {
        const std::size_t here = at(s) + static_cast<std::size_t>(l), there = at(first) + here;
        TokenRandom random(kSeed, kernels::kForBounds, numbers[static_cast<std::size_t>(s)], static_cast<std::uint32_t>(l));
        double sum = 0;
        const std::int32_t source = draw_source(process.kernel(), batch.xt[there], random.unit(), sum);
        const std::int32_t at_token[3] = {batch.xt[there], source, again[here]};
        for (std::size_t i = 0; i < 3; ++i) {
          const double v = rows.v(at_token[i]);
          std::vector<Entry>& row = made[here].rows[i];
          row_of(rows, at_token[i], v, level, total, current, row);
          const auto found = std::lower_bound(row.begin(), row.end(), batch.x0[there], [](const Entry& e, std::int32_t token) { return e.token < token; });
          out.v[3 * here + i] = static_cast<float>(v);
          out.q[3 * here + i] = static_cast<float>(v + (found != row.end() && found->token == batch.x0[there] ? found->value : 0.0));
        }
        out.semantic[here] = static_cast<float>(f * process.clocks().a_of(t) * sum);
        out.reset[here] = static_cast<float>(f * process.clocks().r_of(t) / process.m());
      }
    }
  }
  out.begin.push_back(0);
  for (const TokenRows& token : made)
    for (const auto& row : token.rows) {
      for (const Entry& e : row) {
        out.ids.push_back(e.token);
        out.weights.push_back(static_cast<float>(e.value));
      }
      out.begin.push_back(static_cast<std::int64_t>(out.ids.size()));
    }
  return out;
}

}  // namespace gdds::diffusion
