// See tiles.h.
//
// Each row keeps a reservoir of twice the candidates it wants; when it is full the better half stays and the threshold
// falls to the worst of them, so most pairs cost one comparison. For the ranking by d weighted with the other token's
// bandwidth rho, which is known only at the end, the reservoirs use what is known so far: the distance to the n-th
// nearest found yet is never below rho, so a weight made of it is never above the true one, and every value that is
// compared is a lower bound. The least threshold that a row ever used is then a lower bound for all that it turned down.
#include "graph/tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <cblas.h>
#include <omp.h>

#include "base/progress.h"
#include "base/threads.h"
#include "graph/distance.h"

namespace gdds::graph {
namespace {

constexpr std::int64_t kTile = 1024;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Reservoirs of all rows, in one piece of memory.
class Reservoirs {
 public:
  Reservoirs(std::int64_t m, std::int64_t wanted)
      : wanted_(wanted), capacity_(2 * wanted), slots_(static_cast<std::size_t>(m * capacity_)), counts_(static_cast<std::size_t>(m)),
        thresholds_(static_cast<std::size_t>(m), kInfinity) {}

  const float* thresholds() const { return thresholds_.data(); }
  float threshold(std::int64_t i) const { return thresholds_[static_cast<std::size_t>(i)]; }
  Candidate* begin(std::int64_t i) { return slots_.data() + i * capacity_; }
  Candidate* end(std::int64_t i) { return begin(i) + counts_[static_cast<std::size_t>(i)]; }
  // True: it is full now, and must be halved before the next one.
  bool add(std::int64_t i, Candidate c) {
    auto& count = counts_[static_cast<std::size_t>(i)];
    begin(i)[count++] = c;
    return count == capacity_;
  }
  // Keeps the better half by value(candidate); the threshold becomes the worst value kept.
  template <typename Value>
  void halve(std::int64_t i, Value value) {
    if (counts_[static_cast<std::size_t>(i)] < capacity_) return;
    const auto better = [&](const Candidate& a, const Candidate& b) { return value(a) < value(b); };
    Candidate* const last = begin(i) + wanted_ - 1;
    std::nth_element(begin(i), last, end(i), better);
    counts_[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(wanted_);
    thresholds_[static_cast<std::size_t>(i)] = value(*last);
  }

 private:
  std::int64_t wanted_, capacity_;
  std::vector<Candidate> slots_;
  std::vector<std::int32_t> counts_;
  std::vector<float> thresholds_;
};

class Search final : public CandidateSource {
 public:
  Search(const Prepared& p, std::int64_t near, std::int64_t ranked, std::int64_t bandwidth_neighbour, const Weight& weight)
      : p_(p), m_(p.points.m), bandwidth_neighbour_(bandwidth_neighbour), weight_(weight), has_ranking_(ranked > 0), near_(m_, near),
        ranked_(has_ranking_ ? m_ : 0, std::max<std::int64_t>(1, ranked)), weights_(static_cast<std::size_t>(m_), 0.0F), next_weights_(weights_), reach_(static_cast<std::size_t>(m_), kInfinity), least_(static_cast<std::size_t>(m_), kInfinity) {}

  void run();
  void give(std::int64_t i, RowCandidates& out) override;

 private:
  void filter_rows(std::int64_t i0, std::int64_t rows, std::int64_t j0, std::int64_t columns, bool diagonal);
  void filter_columns(std::int64_t i0, std::int64_t rows, std::int64_t j0, std::int64_t columns);
  void consider(std::int64_t row, std::int64_t other, float d);
  void lower_bandwidth(std::int64_t row, float d);
  void estimate_bandwidths(std::int64_t i0, std::int64_t rows);
  void multiply(std::int64_t i0, std::int64_t rows, std::int64_t j0, std::int64_t columns);

  const Prepared& p_;
  const std::int64_t m_, bandwidth_neighbour_;
  const Weight weight_;
  const bool has_ranking_;
  Reservoirs near_, ranked_;
  std::vector<float> weights_;       // lower bounds of weight(rho); 0 as long as nothing is known
  std::vector<float> next_weights_;  // better ones, for the next tile: while one is filtered, weights_ stays as it is
  std::vector<float> reach_;         // d of the n-th nearest found yet
  std::vector<float> least_;         // the least threshold of the ranking that was used
  std::vector<float> tile_;
};

// Marks which of `count` distances d_j = (norm + norms[j]) - scale * products[j] are below the threshold of their row, or
// below it when weighted; writes the distances. Returns whether any is.
GDDS_CLONES bool find_hits(const float* products, const float* norms, const float* weights, std::int64_t count, float norm, float scale,
                           float near, float ranked, float* distances, unsigned char* hits) {
  unsigned char any = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    const float d = (norm + norms[j]) - scale * products[j];
    distances[j] = d;
    const unsigned char hit = static_cast<unsigned char>((d < near) | (d * weights[j] < ranked));
    hits[j] = hit;
    any |= hit;
  }
  return any != 0;
}

// The same for the other side: the thresholds belong to the columns, the weight to the row.
GDDS_CLONES bool find_column_hits(const float* products, const float* norms, const float* near, const float* ranked, std::int64_t count, float norm,
                                  float scale, float weight, float* distances, unsigned char* hits) {
  unsigned char any = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    const float d = (norm + norms[j]) - scale * products[j];
    distances[j] = d;
    const unsigned char hit = static_cast<unsigned char>((d < near[j]) | (d * weight < ranked[j]));
    hits[j] = hit;
    any |= hit;
  }
  return any != 0;
}

// d of the n-th nearest found yet bounds rho from above, its error included, and so its weight from below; rounding to
// float goes the same way.
void Search::lower_bandwidth(std::int64_t row, float d) {
  const auto r = static_cast<std::size_t>(row);
  reach_[r] = std::min(reach_[r], d);
  const double bound = weight_(static_cast<double>(d) + static_cast<double>(p_.errors[r]));
  next_weights_[r] = std::max(next_weights_[r], std::nextafter(static_cast<float>(bound), 0.0F));
}

// First bounds, from the tokens of the same block alone: without any, all would look alike.
void Search::estimate_bandwidths(std::int64_t i0, std::int64_t rows) {
  if (rows <= bandwidth_neighbour_) return;
#pragma omp parallel for schedule(static) num_threads(threads())
  for (std::int64_t i = 0; i < rows; ++i) {
    std::vector<float> d;
    for (std::int64_t j = 0; j < rows; ++j)
      if (j != i) d.push_back((p_.norms[static_cast<std::size_t>(i0 + i)] + p_.norms[static_cast<std::size_t>(i0 + j)]) - p_.scale * tile_[static_cast<std::size_t>(i * kTile + j)]);
    const auto nth = d.begin() + bandwidth_neighbour_ - 1;
    std::nth_element(d.begin(), nth, d.end());
    lower_bandwidth(i0 + i, *nth);
  }
}

void Search::consider(std::int64_t row, std::int64_t other, float d) {
  const auto r = static_cast<std::size_t>(row);
  const Candidate c{d, static_cast<std::int32_t>(other)};
  if (d < near_.threshold(row)) {
    if (near_.add(row, c)) near_.halve(row, [](const Candidate& x) { return x.d; });
    if (has_ranking_ && d < reach_[r] && near_.end(row) - near_.begin(row) >= bandwidth_neighbour_) {
      Candidate* const nth = near_.begin(row) + bandwidth_neighbour_ - 1;
      std::nth_element(near_.begin(row), nth, near_.end(row), [](const Candidate& a, const Candidate& b) { return a.d < b.d; });
      lower_bandwidth(row, nth->d);
    }
  }
  if (!has_ranking_ || !(d * weights_[static_cast<std::size_t>(other)] < ranked_.threshold(row)) || !ranked_.add(row, c)) return;
  ranked_.halve(row, [&](const Candidate& x) { return x.d * weights_[static_cast<std::size_t>(x.id)]; });
  least_[r] = std::min(least_[r], ranked_.threshold(row));
}

void Search::filter_rows(std::int64_t i0, std::int64_t rows, std::int64_t j0, std::int64_t columns, bool diagonal) {
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads())
  for (std::int64_t i = 0; i < rows; ++i) {
    float distances[kTile];
    unsigned char hits[kTile];
    const std::int64_t row = i0 + i;
    const float norm = p_.norms[static_cast<std::size_t>(row)];
    const float ranked = has_ranking_ ? ranked_.threshold(row) : -1.0F;
    if (!find_hits(tile_.data() + i * kTile, p_.norms.data() + j0, weights_.data() + j0, columns, norm, p_.scale, near_.threshold(row), ranked, distances, hits)) continue;
    for (std::int64_t j = 0; j < columns; ++j)
      if (hits[j] && !(diagonal && i == j)) consider(row, j0 + j, distances[j]);
  }
}

void Search::filter_columns(std::int64_t i0, std::int64_t rows, std::int64_t j0, std::int64_t columns) {
  // A thread owns a stripe of columns, so no two write to one row's reservoir.
  const std::int64_t stripes = std::min<std::int64_t>(columns, 2 * threads());
  const std::vector<float> none(has_ranking_ ? 0 : kTile, -1.0F);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads())
  for (std::int64_t s = 0; s < stripes; ++s) {
    const std::int64_t first = columns * s / stripes, count = columns * (s + 1) / stripes - first;
    float distances[kTile];
    unsigned char hits[kTile];
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = i0 + i;
      const float* const ranked = has_ranking_ ? ranked_.thresholds() + j0 + first : none.data();
      if (!find_column_hits(tile_.data() + i * kTile + first, p_.norms.data() + j0 + first, near_.thresholds() + j0 + first, ranked, count,
                            p_.norms[static_cast<std::size_t>(row)], p_.scale, weights_[static_cast<std::size_t>(row)], distances, hits))
        continue;
      for (std::int64_t j = 0; j < count; ++j)
        if (hits[j]) consider(j0 + first + j, row, distances[j]);
    }
  }
}

void Search::multiply(std::int64_t i0, std::int64_t rows, std::int64_t j0, std::int64_t columns) {
  const int d = static_cast<int>(p_.points.d);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(rows), static_cast<int>(columns), d, 1.0F, p_.points.row(i0), d, p_.points.row(j0), d,
              0.0F, tile_.data(), kTile);
}

void Search::run() {
  tile_.resize(static_cast<std::size_t>(kTile * kTile));
  const std::int64_t blocks = (m_ + kTile - 1) / kTile;
  Progress progress("comparing", static_cast<std::uint64_t>(blocks * (blocks + 1) / 2), "tiles");
  openblas_set_num_threads(threads());
  for (std::int64_t i0 = 0; has_ranking_ && i0 < m_; i0 += kTile) {
    multiply(i0, std::min(kTile, m_ - i0), i0, std::min(kTile, m_ - i0));
    estimate_bandwidths(i0, std::min(kTile, m_ - i0));
  }
  weights_ = next_weights_;
  // Round the circle of blocks, each with the one `apart` blocks on: all rows come forward alike, so when a row has seen most
  // tokens, so has every other, and the bounds of their bandwidths are near.
  for (std::int64_t apart = 0; 2 * apart <= blocks; ++apart) {
    const std::int64_t pairs = 2 * apart == blocks ? apart : blocks;
    for (std::int64_t bi = 0; bi < pairs; ++bi) {
      const std::int64_t bj = (bi + apart) % blocks;
      const std::int64_t i0 = bi * kTile, j0 = bj * kTile;
      const std::int64_t rows = std::min(kTile, m_ - i0), columns = std::min(kTile, m_ - j0);
      multiply(i0, rows, j0, columns);
      filter_rows(i0, rows, j0, columns, bi == bj);
      if (bi != bj) filter_columns(i0, rows, j0, columns);
      std::copy_n(next_weights_.begin() + i0, rows, weights_.begin() + i0);
      std::copy_n(next_weights_.begin() + j0, columns, weights_.begin() + j0);
      progress.advance();
    }
  }
}

void Search::give(std::int64_t i, RowCandidates& out) {
  out.near.assign(near_.begin(i), near_.end(i));
  out.near_bound = near_.threshold(i);
  if (!has_ranking_) return;
  out.ranked.assign(ranked_.begin(i), ranked_.end(i));
  out.ranked_bound = static_cast<double>(least_[static_cast<std::size_t>(i)]);
}

}  // namespace

Prepared prepare(const Points& points, bool cosine) {
  Prepared p;
  p.points = points;
  p.norms.resize(static_cast<std::size_t>(points.m));
  std::vector<double> lengths(static_cast<std::size_t>(points.m));
  for (std::int64_t i = 0; i < points.m; ++i) lengths[static_cast<std::size_t>(i)] = std::sqrt(dot_product(points.row(i), points.row(i), points.d));
  if (cosine) {
    p.scale = 1;
    p.unit.resize(static_cast<std::size_t>(points.m * points.d));
    for (std::int64_t i = 0; i < points.m; ++i) {
      double& length = lengths[static_cast<std::size_t>(i)];
      for (std::int64_t c = 0; c < points.d; ++c)
        p.unit[static_cast<std::size_t>(i * points.d + c)] = length > 0 ? static_cast<float>(points.row(i)[c] / length) : 0.0F;
      length = length > 0 ? 1 : 0;
      p.norms[static_cast<std::size_t>(i)] = 0.5F;
    }
    p.points.values = p.unit.data();
  } else {
    for (std::int64_t i = 0; i < points.m; ++i) {
      const double length = lengths[static_cast<std::size_t>(i)];
      p.norms[static_cast<std::size_t>(i)] = static_cast<float>(length * length);
    }
  }
  // |error of d| <= (d + 16) u (|x| + |y|)^2 with u = 2^-24: the products, the norms, their sum, and for the cosine the
  // rounding to unit length.
  const double longest = *std::max_element(lengths.begin(), lengths.end());
  const double unit_roundoff = std::ldexp(1.0, -24);
  for (const double length : lengths) {
    const double reach = length + longest + (cosine ? 1 : 0);
    p.errors.push_back(static_cast<float>(1.01 * (static_cast<double>(points.d) + 16) * unit_roundoff * reach * reach));
  }
  return p;
}

std::vector<std::vector<std::int32_t>> tokens_within(const Prepared& p, const std::vector<std::int64_t>& rows, const std::vector<double>& bounds,
                                                     const std::vector<double>& weights) {
  std::vector<std::vector<std::int32_t>> found(rows.size());
  const std::int64_t m = p.points.m, d = p.points.d;
  std::vector<float> chosen, products(static_cast<std::size_t>(kTile * kTile));
  openblas_set_num_threads(threads());
  for (std::int64_t r0 = 0; r0 < static_cast<std::int64_t>(rows.size()); r0 += kTile) {
    const std::int64_t count = std::min<std::int64_t>(kTile, static_cast<std::int64_t>(rows.size()) - r0);
    chosen.resize(static_cast<std::size_t>(count * d));
    for (std::int64_t r = 0; r < count; ++r) std::copy_n(p.points.row(rows[static_cast<std::size_t>(r0 + r)]), d, chosen.begin() + r * d);
    for (std::int64_t j0 = 0; j0 < m; j0 += kTile) {
      const std::int64_t columns = std::min(kTile, m - j0);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(count), static_cast<int>(columns), static_cast<int>(d), 1.0F, chosen.data(),
                  static_cast<int>(d), p.points.row(j0), static_cast<int>(d), 0.0F, products.data(), kTile);
#pragma omp parallel for schedule(static) num_threads(threads())
      for (std::int64_t r = 0; r < count; ++r) {
        const auto at = static_cast<std::size_t>(r0 + r);
        const auto row = static_cast<std::size_t>(rows[at]);
        for (std::int64_t j = 0; j < columns; ++j) {
          const auto other = static_cast<std::size_t>(j0 + j);
          const double distance = static_cast<double>((p.norms[row] + p.norms[other]) - p.scale * products[static_cast<std::size_t>(r * kTile + j)]);
          const double least = (distance - static_cast<double>(p.errors[row])) * (weights.empty() ? 1.0 : weights[other]);
          if (least <= bounds[at] && other != row) found[at].push_back(static_cast<std::int32_t>(other));
        }
      }
    }
  }
  return found;
}

std::unique_ptr<CandidateSource> tile_candidates(const Prepared& prepared, std::int64_t near, std::int64_t ranked, std::int64_t bandwidth_neighbour,
                                                 const Weight& weight) {
  auto search = std::make_unique<Search>(prepared, near, ranked, bandwidth_neighbour, weight);
  search->run();
  return search;
}

}  // namespace gdds::graph
