// See matrix.h. Operators are products over the pieces of uniformisation series, so a sparse process of any size has them.
#include "diffusion/matrix.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"

namespace gdds::diffusion {
namespace {

constexpr double kSumTolerance = 1e-6;  // columns are normalised exactly after this check
constexpr double kLongest = 16;         // mean number of candidates of one series
constexpr double kFastest = 1e6;        // exit rate: a token's path has some seven times as many candidates

class MatrixTransition final : public Transition {
 public:
  MatrixTransition(const MatrixProcess& process, double s, double t) : process_(process), s_(s), t_(t) {}

  double entry(std::int32_t x, std::int32_t y) const override {
    std::vector<double> out(static_cast<std::size_t>(process_.states()));
    column(y, out);
    return out[static_cast<std::size_t>(x)];
  }
  void column(std::int32_t y, std::span<double> out) const override {
    std::vector<double> unit(out.size(), 0.0);
    unit[static_cast<std::size_t>(y)] = 1;
    apply(unit, out);
  }
  void row(std::int32_t x, std::span<double> out) const override {
    std::vector<double> unit(out.size(), 0.0);
    unit[static_cast<std::size_t>(x)] = 1;
    apply_transposed(unit, out);
  }
  void apply(std::span<const double> p, std::span<double> out) const override {
    std::copy(p.begin(), p.end(), out.begin());
    for (const MatrixPiece& piece : process_.pieces()) propagate(piece, out, step);
  }
  void apply_transposed(std::span<const double> h, std::span<double> out) const override {
    std::copy(h.begin(), h.end(), out.begin());
    for (auto piece = process_.pieces().rbegin(); piece != process_.pieces().rend(); ++piece) propagate(*piece, out, step_back);
  }

 private:
  // out = (I + (F - I) exit/fastest) p
  static void step(const MatrixPiece& piece, const std::vector<double>& p, std::vector<double>& out) {
    std::fill(out.begin(), out.end(), 0.0);
    for (std::size_t y = 0; y < p.size(); ++y) {
      const double moving = p[y] * piece.exit[y] / piece.fastest;
      out[y] += p[y] - moving;
      if (moving == 0) continue;
      for (auto i = static_cast<std::size_t>(piece.offsets[y]); i < static_cast<std::size_t>(piece.offsets[y + 1]); ++i)
        out[static_cast<std::size_t>(piece.rows[i])] += moving * piece.weights[i];
    }
  }
  static void step_back(const MatrixPiece& piece, const std::vector<double>& h, std::vector<double>& out) {
    for (std::size_t y = 0; y < h.size(); ++y) {
      double sum = 0;
      for (auto i = static_cast<std::size_t>(piece.offsets[y]); i < static_cast<std::size_t>(piece.offsets[y + 1]); ++i)
        sum += piece.weights[i] * h[static_cast<std::size_t>(piece.rows[i])];
      const double share = piece.exit[y] / piece.fastest;
      out[y] = h[y] * (1 - share) + share * sum;
    }
  }
  template <typename Step>
  void propagate(const MatrixPiece& piece, std::span<double> vector, Step step) const {
    const double begin = std::max(s_, piece.begin), end = std::min(t_, piece.end);
    if (begin >= end || piece.fastest == 0) return;
    const double mean = piece.fastest * (process_.schedule().Lambda(end) - process_.schedule().Lambda(begin));
    const int parts = std::max(1, static_cast<int>(std::ceil(mean / kLongest)));
    std::vector<double> power(vector.size()), next(vector.size());
    for (int part = 0; part < parts; ++part) {
      std::copy(vector.begin(), vector.end(), power.begin());
      double p = std::exp(-mean / parts);
      for (double& value : vector) value *= p;
      for (int n = 1; n < mean / parts || p > 1e-17; ++n) {
        step(piece, power, next);
        power.swap(next);
        p *= mean / parts / n;
        for (std::size_t i = 0; i < vector.size(); ++i) vector[i] += p * power[i];
      }
    }
  }
  const MatrixProcess& process_;
  double s_, t_;
};

}  // namespace

MatrixProcess::MatrixProcess(const h5::Input& input, const Schedule& schedule, const VocabularyName& vocabulary) : Process("matrix", schedule, vocabulary) {
  const bool sparse = input.has("/matrix/offsets"), dense = input.has("/matrix/dense");
  if (sparse == dense) reject("{}: expected either /matrix/dense or /matrix/offsets, rows and weights", input.name());
  const std::uint64_t count = input.shape(dense ? "/matrix/dense" : "/matrix/offsets")[0];
  times_ = input.has("/matrix/times") ? input.read<double>("/matrix/times") : std::vector<double>{0, 1};
  if (times_.size() != count + 1) reject("{}: /matrix/times: expected {} numbers for {} pieces, found {}", input.name(), count + 1, count, times_.size());
  if (times_.front() != 0 || times_.back() != 1) reject("{}: /matrix/times: expected from 0 to 1, found from {} to {}", input.name(), times_.front(), times_.back());
  exits_ = input.has("/matrix/exit") ? input.read<double>("/matrix/exit") : std::vector<double>(count * static_cast<std::uint64_t>(m()), 1.0);
  pieces_.resize(count);
  for (std::size_t p = 0; p < count; ++p) {
    if (!(times_[p] < times_[p + 1])) reject("{}: /matrix/times[{}]: expected more than {}, found {}", input.name(), p + 1, times_[p], times_[p + 1]);
    pieces_[p].begin = times_[p];
    pieces_[p].end = times_[p + 1];
    pieces_[p].exit.assign(exits_.begin() + static_cast<std::ptrdiff_t>(p) * m(), exits_.begin() + static_cast<std::ptrdiff_t>(p + 1) * m());
  }
  sparse ? read_sparse(input) : read_dense(input);
  finish(input.name());
}

void MatrixProcess::read_sparse(const h5::Input& input) {
  for (const char* part : {"/matrix/rows", "/matrix/weights"})
    if (!input.has(part)) reject("{}: {} is missing", input.name(), part);
  const auto offsets = input.read<std::int64_t>("/matrix/offsets");
  const auto rows = input.read<std::int32_t>("/matrix/rows");
  const auto weights = input.read<double>("/matrix/weights");
  const auto width = static_cast<std::size_t>(m()) + 1, entries = std::min(rows.size(), weights.size());
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    const std::int64_t base = offsets[p * width];
    for (std::size_t y = 0; y < width; ++y) {
      const std::int64_t offset = offsets[p * width + y];
      if (offset < (y > 0 ? offsets[p * width + y - 1] : 0) || offset > static_cast<std::int64_t>(entries))
        reject("{}: /matrix/offsets[{}, {}]: expected from the one before it to {}, found {}", input.name(), p, y, entries, offset);
      pieces_[p].offsets.push_back(offset - base);
    }
    const auto first = static_cast<std::ptrdiff_t>(base), last = static_cast<std::ptrdiff_t>(offsets[p * width + width - 1]);
    pieces_[p].rows.assign(rows.begin() + first, rows.begin() + last);
    pieces_[p].weights.assign(weights.begin() + first, weights.begin() + last);
  }
}

void MatrixProcess::read_dense(const h5::Input& input) {
  const auto dense = input.read<double>("/matrix/dense");  // [piece, from, to]
  const auto n = static_cast<std::size_t>(m());
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    MatrixPiece& piece = pieces_[p];
    piece.offsets.push_back(0);
    for (std::size_t y = 0; y < n; ++y) {
      for (std::size_t x = 0; x < n; ++x) {
        const double w = dense[(p * n + y) * n + x];
        if (w == 0) continue;
        piece.rows.push_back(static_cast<std::int32_t>(x));
        piece.weights.push_back(w);
      }
      piece.offsets.push_back(static_cast<std::int64_t>(piece.rows.size()));
    }
  }
}

// Checks the columns, normalises them, and makes what is needed to draw.
void MatrixProcess::finish(const std::string& file) {
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    MatrixPiece& piece = pieces_[p];
    piece.sums.resize(piece.weights.size());
    for (std::int32_t y = 0; y < m(); ++y) {
      const double exit = piece.exit[static_cast<std::size_t>(y)];
      if (!(exit >= 0 && exit <= kFastest)) reject("{}: /matrix/exit[{}, {}]: expected a rate from 0 to {}, found {}", file, p, y, kFastest, exit);
      piece.fastest = std::max(piece.fastest, exit);
      const auto begin = static_cast<std::size_t>(piece.offsets[static_cast<std::size_t>(y)]), end = static_cast<std::size_t>(piece.offsets[static_cast<std::size_t>(y) + 1]);
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i) {
        if (!(piece.weights[i] >= 0) || std::isinf(piece.weights[i]))
          reject("{}: /matrix: piece {}, column {}: expected probabilities, found {} (to {})", file, p, y, piece.weights[i], piece.rows[i]);
        if (piece.rows[i] < 0 || piece.rows[i] >= m()) reject("{}: /matrix: piece {}, column {}: expected a state below {}, found {}", file, p, y, m(), piece.rows[i]);
        sum += piece.weights[i];
      }
      if (sum == 0 && exit == 0) continue;
      if (sum == 0) reject("{}: /matrix: piece {}, column {}: the state has an exit rate of {} and nowhere to go", file, p, y, exit);
      if (std::abs(sum - 1) > kSumTolerance) reject("{}: /matrix: piece {}, column {}: expected probabilities that sum to 1, found a sum of {}", file, p, y, sum);
      double running = 0;
      const double scale = std::abs(sum - 1) > 1e-12 ? sum : 1;  // what was normalised once stays as it is
      for (std::size_t i = begin; i < end; ++i) {
        piece.weights[i] /= scale;
        piece.sums[i] = running += piece.weights[i];
      }
    }
  }
  for (const MatrixPiece& piece : pieces_) {
    for (const std::int64_t offset : piece.offsets) offsets_.push_back(offset + static_cast<std::int64_t>(rows_.size()));
    rows_.insert(rows_.end(), piece.rows.begin(), piece.rows.end());
    weights_.insert(weights_.end(), piece.weights.begin(), piece.weights.end());
  }
}

const MatrixPiece& MatrixProcess::piece_at(double t) const {
  for (const MatrixPiece& piece : pieces_)
    if (t < piece.end) return piece;
  return pieces_.back();
}

double MatrixProcess::clock(double t) const {
  double sum = 0;
  for (const MatrixPiece& piece : pieces_)
    if (piece.begin < t) sum += piece.fastest * (schedule().Lambda(std::min(t, piece.end)) - schedule().Lambda(piece.begin));
  return sum;
}

double MatrixProcess::time_of(double c) const {
  for (const MatrixPiece& piece : pieces_) {
    const double whole = piece.fastest * (schedule().Lambda(piece.end) - schedule().Lambda(piece.begin));
    if (c < whole) return std::clamp(schedule().time_of(schedule().Lambda(piece.begin) + c / piece.fastest), piece.begin, std::nextafter(piece.end, 0.0));
    c -= whole;
  }
  return 1;
}

std::int32_t MatrixProcess::column_draw(const MatrixPiece& piece, std::int32_t y, double u) const {
  const auto begin = piece.sums.begin() + piece.offsets[static_cast<std::size_t>(y)], end = piece.sums.begin() + piece.offsets[static_cast<std::size_t>(y) + 1];
  const auto found = std::min(std::upper_bound(begin, end, u * *(end - 1)), end - 1);
  return piece.rows[static_cast<std::size_t>(found - piece.sums.begin())];
}

std::optional<Jump> MatrixProcess::jump(std::int32_t y, double t, TokenRandom& random) const {
  const MatrixPiece& piece = piece_at(t);
  if (random.unit() * piece.fastest >= piece.exit[static_cast<std::size_t>(y)]) return std::nullopt;
  return Jump{column_draw(piece, y, random.unit()), false};
}

double MatrixProcess::stays(std::int32_t y, double t) const {
  double sum = 0;
  for (const MatrixPiece& piece : pieces_)
    if (piece.begin < t) sum += piece.exit[static_cast<std::size_t>(y)] * (schedule().Lambda(std::min(t, piece.end)) - schedule().Lambda(piece.begin));
  return std::exp(-sum);
}

void MatrixProcess::rates_from(std::int32_t y, double t, std::span<double> out) const {
  const MatrixPiece& piece = piece_at(t);
  const double rate = schedule().f(t) * piece.exit[static_cast<std::size_t>(y)];
  std::fill(out.begin(), out.end(), 0.0);
  for (auto i = static_cast<std::size_t>(piece.offsets[static_cast<std::size_t>(y)]); i < static_cast<std::size_t>(piece.offsets[static_cast<std::size_t>(y) + 1]); ++i)
    out[static_cast<std::size_t>(piece.rows[i])] += rate * piece.weights[i];
  if (rate > 0) out[static_cast<std::size_t>(y)] -= rate;
}

// Within a piece nothing depends on time, so the number of candidates is all there is to draw of them.
void MatrixProcess::noise(const kernels::Snapshots& b, std::span<const double> times) const {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads())
  for (std::int64_t s = 0; s < b.sequences; ++s) {
    const double t = times[static_cast<std::size_t>(s)];
    for (std::int64_t l = 0; l < b.length; ++l) {
      TokenRandom random(b.seed, kernels::kForSnapshots, b.numbers[s], static_cast<std::uint32_t>(l));
      std::int32_t state = b.x0[s * b.length + l];
      bool jumped = false;
      for (const MatrixPiece& piece : pieces_) {
        if (piece.begin >= t) break;
        double mean = piece.fastest * (schedule().Lambda(std::min(t, piece.end)) - schedule().Lambda(piece.begin));
        for (; mean > 0; mean -= kLongest) {
          const double part = std::min(mean, kLongest);
          for (int n = kernels::poisson_inverse(part, kernels::natural_exp(-part), random.unit()); n > 0; --n) {
            if (random.unit() * piece.fastest >= piece.exit[static_cast<std::size_t>(state)]) continue;
            state = column_draw(piece, state, random.unit());
            jumped = true;
          }
        }
      }
      b.xt[s * b.length + l] = state;
      b.jumped[s * b.length + l] = jumped;
    }
  }
}

std::unique_ptr<Transition> MatrixProcess::transition(double s, double t) const { return std::make_unique<MatrixTransition>(*this, s, t); }

// Where a uniform token ends up.
std::vector<double> MatrixProcess::prior() const {
  const std::vector<double> uniform(static_cast<std::size_t>(m()), 1.0 / m());
  std::vector<double> p(uniform.size());
  transition(0, 1)->apply(uniform, p);
  return p;
}

std::string MatrixProcess::config() const { return Json{{"name", name()}, {"schedule", to_json(schedule())}}.dump(); }

std::vector<NamedArray> MatrixProcess::arrays() const {
  const std::uint64_t count = pieces_.size(), n = static_cast<std::uint64_t>(m());
  return {{"/matrix/times", {times_.size()}, std::span<const double>(times_)},
          {"/matrix/exit", {count, n}, std::span<const double>(exits_)},
          {"/matrix/offsets", {count, n + 1}, std::span<const std::int64_t>(offsets_)},
          {"/matrix/rows", {rows_.size()}, std::span<const std::int32_t>(rows_)},
          {"/matrix/weights", {weights_.size()}, std::span<const double>(weights_)}};
}

std::vector<std::pair<std::string, std::string>> MatrixProcess::facts() const {
  std::vector<std::pair<std::string, std::string>> rows = {{"pieces of time", std::to_string(pieces_.size())}, {"entries", std::to_string(rows_.size())},
                                                           {"largest exit rate, in units of f", fmt::format("{:.6g}", *std::max_element(exits_.begin(), exits_.end()))}};
  if (m() > 1024) return rows;
  const auto prior = this->prior();
  const auto last = transition(0, 1);
  double worst = 0;
  std::vector<double> column(prior.size());
  for (std::int32_t y = 0; y < m(); ++y) {
    last->column(y, column);
    double distance = 0;
    for (std::size_t x = 0; x < column.size(); ++x) distance += 0.5 * std::abs(column[x] - prior[x]);
    worst = std::max(worst, distance);
  }
  rows.emplace_back("total variation of q_1 from the prior, at most", fmt::format("{:.3g}", worst));
  return rows;
}

}  // namespace gdds::diffusion
