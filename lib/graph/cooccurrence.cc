// See cooccurrence.h.
#include "graph/cooccurrence.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/progress.h"
#include "base/threads.h"
#include "graph/gaussian.h"

namespace gdds::graph {
namespace {

constexpr std::uint64_t kMostPairs = std::uint64_t{1} << 28;  // 8 GB with their table
constexpr std::uint64_t kLongest = 1 << 26;                   // tokens of a sequence, which is held in memory
constexpr int kPowerIterations = 3;
constexpr int kOversampling = 10;

// Parts of [0, count) on all threads; what a part computes must not depend on where it begins.
void in_parts(std::uint64_t count, const std::function<void(std::uint64_t, std::uint64_t)>& work) {
  const auto parts = static_cast<std::uint64_t>(threads());
  std::vector<std::thread> workers;
  for (std::uint64_t i = 1; i < parts; ++i) workers.emplace_back(work, count * i / parts, count * (i + 1) / parts);
  work(0, count / parts);
  for (std::thread& worker : workers) worker.join();
}

// Row-major [rows, columns], in double: orthogonality is lost soon enough.
struct Dense {
  std::uint64_t rows, columns;
  std::vector<double> values;
  Dense(std::uint64_t r, std::uint64_t c) : rows(r), columns(c), values(r * c, 0.0) {}
  double* row(std::uint64_t i) { return values.data() + i * columns; }
  const double* row(std::uint64_t i) const { return values.data() + i * columns; }
};

Dense transposed(const Dense& in) {
  Dense out(in.columns, in.rows);
  for (std::uint64_t i = 0; i < in.rows; ++i)
    for (std::uint64_t j = 0; j < in.columns; ++j) out.values[j * in.rows + i] = in.values[i * in.columns + j];
  return out;
}

Sparse transposed(const Sparse& in) {
  Sparse out;
  out.columns = in.rows();
  out.begin.assign(in.columns + 1, 0);
  out.column.resize(in.column.size());
  out.value.resize(in.value.size());
  for (const std::uint32_t j : in.column) ++out.begin[j + 1];
  std::partial_sum(out.begin.begin(), out.begin.end(), out.begin.begin());
  std::vector<std::uint64_t> next(out.begin.begin(), out.begin.end() - 1);
  for (std::uint64_t i = 0; i < in.rows(); ++i) {
    for (std::uint64_t at = in.begin[i]; at < in.begin[i + 1]; ++at) {
      const std::uint64_t to = next[in.column[at]]++;
      out.column[to] = static_cast<std::uint32_t>(i);
      out.value[to] = in.value[at];
    }
  }
  return out;
}

Dense multiply(const Sparse& a, const Dense& b) {
  Dense out(a.rows(), b.columns);
  in_parts(a.rows(), [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i) {
      double* const sum = out.row(i);
      for (std::uint64_t at = a.begin[i]; at < a.begin[i + 1]; ++at) {
        const double value = a.value[at];
        const double* const other = b.row(a.column[at]);
        for (std::uint64_t j = 0; j < b.columns; ++j) sum[j] += value * other[j];
      }
    }
  });
  return out;
}

double dot(const double* a, const double* b, std::uint64_t n) {
  double sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Columns to an orthonormal basis of what they span: modified Gram-Schmidt, twice over since once is not enough. A
// column that adds nothing becomes zero.
void orthonormalise(Dense& block) {
  Dense columns = transposed(block);
  const std::uint64_t n = block.rows;
  for (std::uint64_t j = 0; j < columns.rows; ++j) {
    double* const mine = columns.row(j);
    const double before = std::sqrt(dot(mine, mine, n));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::uint64_t k = 0; k < j; ++k) {
        const double* const other = columns.row(k);
        const double share = dot(mine, other, n);
        for (std::uint64_t i = 0; i < n; ++i) mine[i] -= share * other[i];
      }
    }
    const double after = std::sqrt(dot(mine, mine, n));
    const double scale = after > 1e-10 * before && after > 0 ? 1 / after : 0;
    for (std::uint64_t i = 0; i < n; ++i) mine[i] *= scale;
  }
  block = transposed(columns);
}

// block^T block, [k, k]
Dense gram(const Dense& block) {
  const std::uint64_t k = block.columns;
  Dense out(k, k);
  in_parts(k, [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = 0; i < block.rows; ++i) {
      const double* const row = block.row(i);
      for (std::uint64_t a = first; a < last; ++a)
        for (std::uint64_t b = 0; b < k; ++b) out.values[a * k + b] += row[a] * row[b];
    }
  });
  return out;
}

// One rotation that makes element (p, q) of the symmetric matrix zero.
void rotate(Dense& matrix, Dense& vectors, std::uint64_t p, std::uint64_t q) {
  const std::uint64_t k = matrix.rows;
  const double off = matrix.row(p)[q];
  if (off == 0) return;
  const double theta = (matrix.row(q)[q] - matrix.row(p)[p]) / (2 * off);
  const double t = (theta >= 0 ? 1.0 : -1.0) / (std::abs(theta) + std::hypot(theta, 1.0));
  const double c = 1 / std::hypot(t, 1.0), s = t * c;
  const auto turn = [&](double& a, double& b) {
    const double x = a, y = b;
    a = c * x - s * y;
    b = s * x + c * y;
  };
  for (std::uint64_t i = 0; i < k; ++i) turn(matrix.row(i)[p], matrix.row(i)[q]);
  for (std::uint64_t i = 0; i < k; ++i) turn(matrix.row(p)[i], matrix.row(q)[i]);
  for (std::uint64_t i = 0; i < k; ++i) turn(vectors.row(p)[i], vectors.row(q)[i]);
}

// Jacobi's method: the symmetric matrix becomes diagonal; row i of the result is the eigenvector of element (i, i).
Dense diagonalise(Dense& matrix) {
  const std::uint64_t k = matrix.rows;
  Dense vectors(k, k);
  for (std::uint64_t i = 0; i < k; ++i) vectors.row(i)[i] = 1;
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0, on = 0;
    for (std::uint64_t i = 0; i < k; ++i)
      for (std::uint64_t j = 0; j < k; ++j) (i == j ? on : off) += matrix.row(i)[j] * matrix.row(i)[j];
    if (off <= 1e-26 * on) break;
    for (std::uint64_t p = 0; p + 1 < k; ++p)
      for (std::uint64_t q = p + 1; q < k; ++q) rotate(matrix, vectors, p, q);
  }
  return vectors;
}

// A vector and its negative are as good: the one whose largest element is positive is taken.
void fix_sign(Dense& columns) {
  for (std::uint64_t j = 0; j < columns.columns; ++j) {
    double largest = 0;
    for (std::uint64_t i = 0; i < columns.rows; ++i)
      if (std::abs(columns.row(i)[j]) > std::abs(largest)) largest = columns.row(i)[j];
    if (largest >= 0) continue;
    for (std::uint64_t i = 0; i < columns.rows; ++i) columns.row(i)[j] = -columns.row(i)[j];
  }
}

// An orthonormal basis of nearly all that the matrix's columns span, as far as its large singular values go.
Dense find_range(const Sparse& matrix, const Sparse& turned, std::uint64_t size, Seed seed) {
  Dense sketch(matrix.columns, size);
  Gaussian random(seed.value);
  for (double& value : sketch.values) value = random.next();
  Progress progress("factorising", 2 * kPowerIterations + 1, "products");
  Dense basis = multiply(matrix, sketch);
  orthonormalise(basis);
  progress.advance();
  for (int i = 0; i < kPowerIterations; ++i) {
    Dense other = multiply(turned, basis);
    orthonormalise(other);
    progress.advance();
    basis = multiply(matrix, other);
    orthonormalise(basis);
    progress.advance();
  }
  return basis;
}

std::uint64_t mixed(std::uint64_t key) {
  key ^= key >> 31;
  key *= 0x9e3779b97f4a7c15;
  return key ^ key >> 29;
}

// The pairs of each sequence as far as it counts.
PairCounts count_pairs(const h5::Input& input, const text::Vocabulary& vocabulary, int window) {
  const h5::Shape shape = input.shape("/tokens");
  if (shape[1] > kLongest) reject("{}: sequences of {} tokens; expected at most {}", input.name(), shape[1], kLongest);
  std::vector<std::int32_t> lengths;
  if (input.has("/lengths")) lengths = input.read<std::int32_t>("/lengths");
  PairCounts counts(static_cast<std::uint32_t>(vocabulary.size()), window);
  const std::uint64_t step = std::max<std::uint64_t>(1, (1 << 20) / std::max<std::uint64_t>(1, shape[1]));
  std::vector<std::int32_t> ids(std::min(step, shape[0]) * shape[1]);
  Progress progress("counting", shape[0] * shape[1], "tokens");
  for (std::uint64_t at = 0; at < shape[0]; at += step) {
    const std::uint64_t count = std::min(step, shape[0] - at);
    input.read_rows("/tokens", at, count, std::span(ids));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::int32_t length = lengths.empty() ? static_cast<std::int32_t>(shape[1]) : lengths[at + i];
      if (length < 0 || static_cast<std::uint64_t>(length) > shape[1])
        reject("{}: /lengths: sequence {} has {} tokens of {}", input.name(), at + i, length, shape[1]);
      const std::int32_t* const row = ids.data() + i * shape[1];
      for (std::int32_t j = 0; j < length; ++j)
        if (row[j] < 0 || row[j] >= vocabulary.size())
          reject("{}: /tokens: id {} in sequence {}; the vocabulary has {} tokens", input.name(), row[j], at + i,
                 vocabulary.size());
      counts.add(row, static_cast<std::uint64_t>(length), vocabulary.pad);
    }
    progress.advance(count * shape[1]);
  }
  return counts;
}

}  // namespace

void CooccurrenceOptions::add_to(Options& options, std::vector<std::string>& given) {
  options.option("dim", dim, "of a corpus: numbers a vector").range(1, 1024).noted_in(given);
  options.option("window", window, "of a corpus: how far apart tokens may stand to count as neighbours")
      .range(1, 20)
      .noted_in(given);
  options.option("smoothing", smoothing, "of a corpus: power of the counts of the neighbour's distribution")
      .range(0, 1)
      .noted_in(given);
}

PairCounts::PairCounts(std::uint32_t tokens, int window) : tokens_(tokens), keys_(1 << 16), weights_(1 << 16) {
  std::uint64_t unit = 1;
  for (int d = 2; d <= window; ++d) unit = std::lcm(unit, static_cast<std::uint64_t>(d));
  weights_of_distance_.push_back(unit);
  for (int d = 1; d <= window; ++d) weights_of_distance_.push_back(unit / static_cast<std::uint64_t>(d));
}

void PairCounts::add_pair(std::uint64_t key, std::uint64_t weight) {
  const std::uint64_t mask = keys_.size() - 1;
  std::uint64_t at = mixed(key) & mask;
  while (weights_[at] != 0 && keys_[at] != key) at = (at + 1) & mask;
  used_ += weights_[at] == 0;
  keys_[at] = key;
  weights_[at] += weight;
  if (used_ * 4 > keys_.size() * 3) grow();
}

void PairCounts::grow() {
  if (used_ > kMostPairs)
    fail("the corpus has more than {} pairs of tokens; a smaller --window or a part of it is needed", kMostPairs);
  std::vector<std::uint64_t> keys(keys_.size() * 2), weights(keys_.size() * 2);
  keys.swap(keys_);
  weights.swap(weights_);
  used_ = 0;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (weights[i] != 0) add_pair(keys[i], weights[i]);
}

void PairCounts::add(const std::int32_t* ids, std::uint64_t count, std::int32_t skipped) {
  const std::uint64_t window = weights_of_distance_.size() - 1;
  for (std::uint64_t at = 0; at < count; ++at) {
    if (ids[at] == skipped) continue;
    for (std::uint64_t d = 1; d <= window && at + d < count; ++d) {
      if (ids[at + d] == skipped) continue;
      const auto [low, high] = std::minmax(ids[at], ids[at + d]);
      // A token beside itself is its own neighbour on both sides.
      add_pair(static_cast<std::uint64_t>(low) << 32 | static_cast<std::uint32_t>(high),
               weights_of_distance_[d] * (low == high ? 2 : 1));
    }
  }
}

double PairCounts::count(std::uint32_t i, std::uint32_t j) const {
  const std::uint64_t key = std::uint64_t{std::min(i, j)} << 32 | std::max(i, j), mask = keys_.size() - 1;
  std::uint64_t at = mixed(key) & mask;
  while (weights_[at] != 0 && keys_[at] != key) at = (at + 1) & mask;
  return static_cast<double>(weights_[at]) / static_cast<double>(weights_of_distance_[0]);
}

Sparse PairCounts::positive_pmi(double smoothing) const {
  std::vector<std::uint64_t> totals(tokens_, 0), sizes(tokens_ + 1, 0);
  const auto for_each = [&](const auto& action) {
    for (std::size_t at = 0; at < keys_.size(); ++at) {
      if (weights_[at] == 0) continue;
      const auto i = static_cast<std::uint32_t>(keys_[at] >> 32), j = static_cast<std::uint32_t>(keys_[at]);
      action(i, j, weights_[at]);
      if (i != j) action(j, i, weights_[at]);
    }
  };
  for_each([&](std::uint32_t i, std::uint32_t, std::uint64_t weight) { totals[i] += weight; });
  std::vector<double> logs(tokens_, 0.0);
  double all = 0;
  for (std::uint32_t i = 0; i < tokens_; ++i) {
    if (totals[i] == 0) continue;
    logs[i] = std::log(static_cast<double>(totals[i]));
    all += std::exp(smoothing * logs[i]);
  }
  const auto pmi = [&](std::uint32_t i, std::uint32_t j, std::uint64_t weight) {
    return static_cast<float>(std::log(static_cast<double>(weight)) - logs[i] - smoothing * logs[j] + std::log(all));
  };
  for_each([&](std::uint32_t i, std::uint32_t j, std::uint64_t w) { sizes[i + 1] += pmi(i, j, w) > 0; });
  std::partial_sum(sizes.begin(), sizes.end(), sizes.begin());
  Sparse matrix{tokens_, sizes, std::vector<std::uint32_t>(sizes.back()), std::vector<float>(sizes.back())};
  for_each([&](std::uint32_t i, std::uint32_t j, std::uint64_t w) {
    const float value = pmi(i, j, w);
    if (value <= 0) return;
    matrix.column[sizes[i]] = j;
    matrix.value[sizes[i]++] = value;
  });
  return transposed(transposed(matrix));  // which sorts the columns of each row
}

Factors factorise(const Sparse& matrix, int dim, Seed seed) {
  const auto wanted = static_cast<std::uint64_t>(dim);
  const std::uint64_t size = std::min<std::uint64_t>(wanted + kOversampling, std::min(matrix.rows(), matrix.columns));
  const Sparse turned = transposed(matrix);
  const Dense basis = find_range(matrix, turned, size, seed);
  // Q^T M has the singular values of M and, through Q, its left vectors; its Gram matrix is small.
  Dense small = gram(multiply(turned, basis));
  const Dense vectors = diagonalise(small);
  std::vector<std::uint64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return small.row(a)[a] > small.row(b)[b]; });
  Dense left(matrix.rows(), wanted);
  Factors factors{std::vector<double>(wanted, 0.0), {matrix.rows(), wanted, {}}};
  for (std::uint64_t j = 0; j < std::min(wanted, size); ++j) {
    factors.singular_values[j] = std::sqrt(std::max(0.0, small.row(order[j])[order[j]]));
    const double scale = std::sqrt(factors.singular_values[j]);
    for (std::uint64_t i = 0; i < matrix.rows(); ++i)
      left.row(i)[j] = scale * dot(basis.row(i), vectors.row(order[j]), size);
  }
  fix_sign(left);
  factors.rows.values.assign(left.values.begin(), left.values.end());
  return factors;
}

CooccurrenceVectors embed_corpus(const h5::Input& tokens, const text::Vocabulary& vocabulary,
                                 const CooccurrenceOptions& options, Seed seed) {
  if (options.dim > vocabulary.size())
    bad_usage("--dim {}: the vocabulary of {} has only {} tokens", options.dim, tokens.name(), vocabulary.size());
  const Sparse matrix = count_pairs(tokens, vocabulary, options.window).positive_pmi(options.smoothing);
  if (matrix.value.empty()) reject("{}: no two tokens stand near each other", tokens.name());
  CooccurrenceVectors result{factorise(matrix, options.dim, seed).rows, std::vector<std::uint8_t>(matrix.rows(), 0)};
  for (std::uint64_t i = 0; i < matrix.rows(); ++i) result.present[i] = matrix.begin[i + 1] > matrix.begin[i] ? 1 : 0;
  return result;
}

}  // namespace gdds::graph
