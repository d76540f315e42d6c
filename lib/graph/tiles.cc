// See tiles.h.
//
// Each row keeps a reservoir of twice the candidates it wants; when it is full the better half stays and the threshold
// falls to the worst of them, so most pairs cost one comparison. For the ranking by d weighted with the other token's
// bandwidth rho, which is known only at the end, the reservoirs use what is known so far: the distance to the n-th
// nearest found yet is never below rho, so a weight made of it is never above the true one, and every value that is
// compared is a lower bound. The least threshold that a row ever used is then a lower bound for all that it turned down.
//
// A thread multiplies and filters a pair of blocks by itself, and no block is in two hands at once: rows need no locks, and
// one thread filters while another multiplies. Which candidates are found depends on who comes first; the result that is
// made of them, being exact, does not.
#include "graph/tiles.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>

#include <cblas.h>
#include <omp.h>

#include "base/progress.h"
#include "base/threads.h"
#include "graph/distance.h"
#include "graph/products.h"

namespace gdds::graph {
namespace {

constexpr std::int64_t kTile = 1024;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Reservoirs of all rows, in one piece of memory.
class Reservoirs {
 public:
  Reservoirs(std::int64_t rows, std::int64_t wanted)
      : wanted_(wanted), capacity_(2 * wanted), slots_(static_cast<std::size_t>(rows * capacity_)), counts_(static_cast<std::size_t>(rows)),
        thresholds_(static_cast<std::size_t>(rows), wanted > 0 ? kInfinity : -kInfinity) {}

  const float* thresholds() const { return thresholds_.data(); }
  float threshold(std::int64_t i) const { return thresholds_[static_cast<std::size_t>(i)]; }
  Candidate* begin(std::int64_t i) { return slots_.data() + i * capacity_; }
  Candidate* end(std::int64_t i) { return begin(i) + counts_[static_cast<std::size_t>(i)]; }
  // When it is full, the half with the least values stays, and the threshold becomes the largest of these. True if so.
  template <typename Value>
  bool add(std::int64_t i, Candidate c, Value value) {
    auto& count = counts_[static_cast<std::size_t>(i)];
    begin(i)[count++] = c;
    if (count < capacity_) return false;
    // The values are taken once: those of the ranking change while other threads find neighbours.
    struct Valued {
      float value;
      Candidate candidate;
    };
    thread_local std::vector<Valued> all;
    all.clear();
    for (const Candidate* x = begin(i); x != end(i); ++x) all.push_back({value(*x), *x});
    std::nth_element(all.begin(), all.begin() + wanted_ - 1, all.end(), [](const Valued& a, const Valued& b) { return a.value < b.value; });
    for (std::int64_t x = 0; x < wanted_; ++x) begin(i)[x] = all[static_cast<std::size_t>(x)].candidate;
    count = static_cast<std::int32_t>(wanted_);
    thresholds_[static_cast<std::size_t>(i)] = all[static_cast<std::size_t>(wanted_ - 1)].value;
    return true;
  }

 private:
  std::int64_t wanted_, capacity_;
  std::vector<Candidate> slots_;
  std::vector<std::int32_t> counts_;
  std::vector<float> thresholds_;
};

// Pairs of different blocks, each once, for threads that ask for one; no block is given to two at a time. Round the circle
// of blocks, each with the one `apart` blocks on: all rows come forward alike, so when a row has seen most tokens, so has
// every other, and the bounds of their bandwidths are near.
class Pairs {
 public:
  struct Pair {
    std::int64_t a, b;
  };
  explicit Pairs(std::int64_t blocks) : busy_(static_cast<std::size_t>(blocks)) {
    for (std::int64_t apart = 1; 2 * apart <= blocks; ++apart)
      for (std::int64_t a = 0; a < (2 * apart == blocks ? apart : blocks); ++a) pairs_.push_back({a, (a + apart) % blocks});
  }
  // Waits until there is one; false when all are done or in hands.
  bool take(Pair& pair) {
    std::unique_lock lock(mutex_);
    for (;; freed_.wait(lock)) {
      const auto first = pairs_.begin() + next_;
      if (first == pairs_.end()) return false;
      const auto found = std::find_if(first, pairs_.end(), [&](const Pair& p) { return !is_busy(p.a) && !is_busy(p.b); });
      if (found == pairs_.end()) continue;
      pair = *found;
      std::rotate(first, found, found + 1);  // those that were passed over keep their order
      ++next_;
      set_busy(pair, true);
      return true;
    }
  }
  void give_back(const Pair& pair) {
    {
      const std::lock_guard lock(mutex_);
      set_busy(pair, false);
    }
    freed_.notify_all();
  }

 private:
  bool is_busy(std::int64_t block) const { return busy_[static_cast<std::size_t>(block)]; }
  void set_busy(const Pair& p, bool busy) { busy_[static_cast<std::size_t>(p.a)] = busy_[static_cast<std::size_t>(p.b)] = busy; }

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Pair> pairs_;
  std::ptrdiff_t next_ = 0;
  std::vector<bool> busy_;
};

class Search final : public CandidateSource {
 public:
  Search(const Prepared& p, std::unique_ptr<Products> products, std::int64_t near, std::int64_t ranked, std::int64_t bandwidth_neighbour, const Weight& weight);
  void run();
  void give(std::int64_t i, RowCandidates& out) override;

 private:
  // What a thread works with.
  struct Desk {
    std::vector<float> tile, distances;
    std::vector<unsigned char> hits;
  };
  Desk make_desk() const;
  void compare(std::int64_t block, Desk& desk);
  void compare(const Pairs::Pair& pair, Desk& desk);
  void filter_row(std::int64_t row, std::int64_t first, std::int64_t count, const float* products, Desk& desk);
  void consider(std::int64_t row, std::int64_t other, float d);
  void lower_bandwidth(std::int64_t row, float d);
  void estimate_bandwidths(std::int64_t block, Desk& desk);
  float weight_of(std::int64_t row) { return std::atomic_ref(weights_[static_cast<std::size_t>(row)]).load(std::memory_order_relaxed); }

  const Prepared& p_;
  const std::unique_ptr<Products> products_;
  const Blocks blocks_;
  const std::int64_t bandwidth_neighbour_;
  const Weight weight_;
  const bool has_ranking_;
  // By place; the rows of a block belong to the thread that has it, only their weights are read by all.
  Reservoirs near_, ranked_;
  std::vector<float> norms_;
  std::vector<float> weights_;  // lower bounds of weight(rho); 0 as long as nothing is known
  std::vector<float> reach_;    // d of the n-th nearest found yet
  std::vector<float> least_;    // the least threshold of the ranking that was used
};

constexpr unsigned char kRowHit = 1, kColumnHit = 2;

// One row of a tile and what is compared with it. d_j = (norm + norms[j]) - scale * products[j]; a candidate is what is below
// the threshold of its row, or below the ranking's when weighted; and the same for the other side, where the thresholds belong
// to the columns and the weight to the row.
struct TileRow {
  const float *products, *norms, *weights, *near_of_columns, *ranked_of_columns;
  float norm, weight, near, ranked, scale;
};

// Writes the distances and which are candidates of what. Returns whether any is.
GDDS_CLONES bool find_hits(const TileRow& row, std::int64_t count, float* __restrict distances, unsigned char* __restrict hits) {
  const TileRow r = row;
  unsigned char any = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    const float d = (r.norm + r.norms[j]) - r.scale * r.products[j];
    distances[j] = d;
    const bool of_row = (d < r.near) | (d * r.weights[j] < r.ranked);
    const bool of_column = (d < r.near_of_columns[j]) | (d * r.weight < r.ranked_of_columns[j]);
    const auto hit = static_cast<unsigned char>((of_row ? kRowHit : 0) | (of_column ? kColumnHit : 0));
    hits[j] = hit;
    any |= hit;
  }
  return any != 0;
}

Search::Search(const Prepared& p, std::unique_ptr<Products> products, std::int64_t near, std::int64_t ranked, std::int64_t bandwidth_neighbour, const Weight& weight)
    : p_(p), products_(std::move(products)), blocks_(products_->blocks), bandwidth_neighbour_(bandwidth_neighbour), weight_(weight), has_ranking_(ranked > 0),
      near_(blocks_.places(), near), ranked_(blocks_.places(), ranked), norms_(static_cast<std::size_t>(blocks_.places())), weights_(norms_.size(), 0.0F),
      reach_(norms_.size(), kInfinity), least_(norms_.size(), kInfinity) {
  for (std::int64_t i = 0; i < blocks_.m; ++i) norms_[static_cast<std::size_t>(blocks_.place(i))] = p.norms[static_cast<std::size_t>(i)];
}

Search::Desk Search::make_desk() const {
  const auto size = static_cast<std::size_t>(blocks_.size);
  return {std::vector<float>(size * size), std::vector<float>(size), std::vector<unsigned char>(size + 8)};
}

// d of the n-th nearest found yet bounds rho from above, its error included, and so its weight from below; rounding to
// float goes the same way.
void Search::lower_bandwidth(std::int64_t row, float d) {
  const auto r = static_cast<std::size_t>(row);
  reach_[r] = std::min(reach_[r], d);
  const double bound = weight_(static_cast<double>(d) + static_cast<double>(products_->errors()[static_cast<std::size_t>(blocks_.token(row))]));
  const float weight = std::max(weights_[r], std::nextafter(static_cast<float>(bound), 0.0F));
  std::atomic_ref(weights_[r]).store(weight, std::memory_order_relaxed);
}

// First bounds, from the tokens of the same block alone: without any, all would look alike.
void Search::estimate_bandwidths(std::int64_t block, Desk& desk) {
  const std::int64_t rows = blocks_.rows(block), from = block * blocks_.size;
  if (rows <= bandwidth_neighbour_) return;
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* const products = desk.tile.data() + i * blocks_.size;
    const float* const norms = norms_.data() + from;
    float* const d = desk.distances.data();
    for (std::int64_t j = 0; j < rows; ++j) d[j] = (norms[i] + norms[j]) - p_.scale * products[j];
    d[i] = kInfinity;
    std::nth_element(d, d + bandwidth_neighbour_ - 1, d + rows);
    lower_bandwidth(from + i, d[bandwidth_neighbour_ - 1]);
  }
}

void Search::consider(std::int64_t row, std::int64_t other, float d) {
  const auto r = static_cast<std::size_t>(row);
  const Candidate c{d, static_cast<std::int32_t>(other)};
  if (d < near_.threshold(row)) {
    near_.add(row, c, [](const Candidate& x) { return x.d; });
    if (has_ranking_ && d < reach_[r] && near_.end(row) - near_.begin(row) >= bandwidth_neighbour_) {
      Candidate* const nth = near_.begin(row) + bandwidth_neighbour_ - 1;
      std::nth_element(near_.begin(row), nth, near_.end(row), [](const Candidate& a, const Candidate& b) { return a.d < b.d; });
      lower_bandwidth(row, nth->d);
    }
  }
  if (!has_ranking_ || !(d * weights_[static_cast<std::size_t>(other)] < ranked_.threshold(row))) return;
  if (ranked_.add(row, c, [&](const Candidate& x) { return x.d * weight_of(x.id); })) least_[r] = std::min(least_[r], ranked_.threshold(row));
}

// The columns are `count` rows of another block, or of the same one, from `first` on.
void Search::filter_row(std::int64_t row, std::int64_t first, std::int64_t count, const float* products, Desk& desk) {
  const auto r = static_cast<std::size_t>(row);
  const TileRow tile_row{products, norms_.data() + first, weights_.data() + first, near_.thresholds() + first, ranked_.thresholds() + first,
                         norms_[r], weights_[r], near_.threshold(row), ranked_.threshold(row), p_.scale};
  unsigned char* const hits = desk.hits.data();
  if (!find_hits(tile_row, count, desk.distances.data(), hits)) return;
  for (std::int64_t j = 0; j < count; ++j) {
    std::uint64_t eight;
    std::memcpy(&eight, hits + j, sizeof eight);
    if (eight == 0) {
      j += 7;
      continue;
    }
    if (hits[j] & kRowHit) consider(row, first + j, desk.distances[static_cast<std::size_t>(j)]);
    if (hits[j] & kColumnHit) consider(first + j, row, desk.distances[static_cast<std::size_t>(j)]);
  }
}

void Search::compare(std::int64_t block, Desk& desk) {
  products_->multiply(block, block, desk.tile.data());
  if (has_ranking_) estimate_bandwidths(block, desk);
  const std::int64_t rows = blocks_.rows(block), from = block * blocks_.size;
  for (std::int64_t i = 0; i + 1 < rows; ++i) filter_row(from + i, from + i + 1, rows - i - 1, desk.tile.data() + i * blocks_.size + i + 1, desk);
}

void Search::compare(const Pairs::Pair& pair, Desk& desk) {
  products_->multiply(pair.a, pair.b, desk.tile.data());
  for (std::int64_t i = 0; i < blocks_.rows(pair.a); ++i)
    filter_row(pair.a * blocks_.size + i, pair.b * blocks_.size, blocks_.rows(pair.b), desk.tile.data() + i * blocks_.size, desk);
}

void Search::run() {
  Progress progress("comparing", static_cast<std::uint64_t>(blocks_.count * (blocks_.count + 1) / 2), "tiles");
  Pairs pairs(blocks_.count);
#pragma omp parallel num_threads(threads())
  {
    Desk desk = make_desk();
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t block = 0; block < blocks_.count; ++block) {
      compare(block, desk);
      progress.advance();
    }
    for (Pairs::Pair pair{}; pairs.take(pair); progress.advance()) {
      compare(pair, desk);
      pairs.give_back(pair);
    }
  }
}

void Search::give(std::int64_t i, RowCandidates& out) {
  const std::int64_t row = blocks_.place(i);
  const auto tokens = [&](Candidate* first, Candidate* last, std::vector<Candidate>& to) {
    to.assign(first, last);
    for (Candidate& c : to) c.id = static_cast<std::int32_t>(blocks_.token(c.id));
  };
  tokens(near_.begin(row), near_.end(row), out.near);
  out.near_bound = near_.threshold(row);
  out.error = products_->errors()[static_cast<std::size_t>(i)];
  if (!has_ranking_) return;
  tokens(ranked_.begin(row), ranked_.end(row), out.ranked);
  out.ranked_bound = static_cast<double>(least_[static_cast<std::size_t>(row)]);
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

std::unique_ptr<CandidateSource> tile_candidates(const Prepared& prepared, bool integers, std::int64_t near, std::int64_t ranked,
                                                 std::int64_t bandwidth_neighbour, const Weight& weight) {
  const Blocks blocks = divide(prepared.points.m, threads());
  auto products = integers ? integer_products(prepared, blocks) : float_products(prepared, blocks);
  auto search = std::make_unique<Search>(prepared, std::move(products), near, ranked, bandwidth_neighbour, weight);
  search->run();
  return search;
}

}  // namespace gdds::graph
