// See knn.h.
#include "graph/knn.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/progress.h"
#include "base/threads.h"
#include "graph/distance.h"
#include "graph/products.h"
#include "graph/tiles.h"

namespace gdds::graph {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::int64_t kSpare = 16;      // candidates beyond those wanted, for certification
constexpr std::size_t kMostRaised = 1024;  // bandwidths that were raised to the floor

// Below this width products cost little, and neighbours may be nearer than 16 bits can tell.
constexpr std::int64_t kLeastIntegerWidth = 64;

// Neighbours are sorted by (value, id); d is kept beside them.
struct Ranked {
  double value;
  std::int32_t id;
  double d;
  bool operator<(const Ranked& o) const { return value != o.value ? value < o.value : id < o.id; }
};

// A row that could not be certified, and the value that its last neighbour cannot exceed.
struct Open {
  std::int64_t row;
  double bound;
};

class Metric {
 public:
  Metric(const Points& points, bool cosine) : points_(points), cosine_(cosine) {
    if (!cosine) return;
    lengths_.resize(static_cast<std::size_t>(points.m));
    for (std::int64_t i = 0; i < points.m; ++i) lengths_[static_cast<std::size_t>(i)] = std::sqrt(dot_product(points.row(i), points.row(i), points.d));
  }
  // A vector of length zero has cosine 0 with every other.
  double operator()(std::int64_t i, std::int64_t j) const {
    if (!cosine_) return squared_distance(points_.row(i), points_.row(j), points_.d);
    const double lengths = lengths_[static_cast<std::size_t>(i)] * lengths_[static_cast<std::size_t>(j)];
    if (lengths == 0) return 1;
    return std::max(0.0, 1 - dot_product(points_.row(i), points_.row(j), points_.d) / lengths);
  }
  // That j will be wanted soon: candidates lie anywhere in memory.
  void fetch(std::int64_t j) const {
    constexpr std::int64_t kCacheLine = 64 / sizeof(float);
    for (std::int64_t c = 0; c < points_.d; c += kCacheLine) __builtin_prefetch(points_.row(j) + c, 0, 2);
  }

 private:
  const Points points_;
  const bool cosine_;
  std::vector<double> lengths_;
};

// What the ranking multiplies d with, for the other token's rho; the own one is the same for the whole row.
Weight ranking_weight(const std::string& bandwidth) {
  if (bandwidth == "code") return [](double rho) { return 1 / rho; };
  return [](double rho) { return 1 / std::sqrt(rho); };
}

// The floor keeps tokens with many exact copies (rho = 0) from dividing by zero. Returns those that were raised.
std::vector<std::int32_t> raise_bandwidths(std::vector<double>& rho) {
  std::vector<double> sorted = rho;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const double floor = *middle > 0 ? kSmallestBandwidth * *middle : 1;
  std::vector<std::int32_t> raised;
  for (std::size_t i = 0; i < rho.size(); ++i) {
    if (rho[i] >= floor) continue;
    rho[i] = floor;
    raised.push_back(static_cast<std::int32_t>(i));
  }
  return raised;
}

class Finder {
 public:
  Finder(const Points& points, const KnnOptions& options)
      : m_(points.m), options_(options), metric_(points, options.metric == "cosine"), weight_(ranking_weight(options.bandwidth)) {
    result_.k = options.k;
    result_.ids.resize(static_cast<std::size_t>(m_ * options.k));
    result_.distances.resize(result_.ids.size());
    result_.bandwidths.resize(static_cast<std::size_t>(m_));
  }

  Neighbours find(const Points& points);
  Neighbours find_by_brute_force();

 private:
  Ranked ranked(std::int64_t i, std::int32_t id, double weight) const {
    const double d = metric_(i, id);
    return {d * weight, id, d};
  }
  void append(std::int64_t i, const std::vector<std::int32_t>& ids, bool weighted, std::vector<Ranked>& out) const;
  bool by_ranking() const { return options_.ranking == "normalised"; }
  bool by_integers(std::int64_t d) const { return options_.method == "integers" || (options_.method == "tiles" && d >= kLeastIntegerWidth && has_integer_products()); }
  std::vector<Ranked> all_distances(std::int64_t i) const;
  std::vector<Ranked> nearest_of(std::int64_t i, std::int64_t count) const;
  std::vector<Ranked> ranked_of(std::int64_t i) const;
  bool certify_near(std::int64_t i, std::int64_t count, const RowCandidates& row, std::vector<Ranked>& out) const;
  bool certify_ranked(std::int64_t i, const RowCandidates& row, std::vector<Ranked>& out) const;
  void store(std::int64_t i, const std::vector<Ranked>& ranked);
  std::vector<Ranked> best_of(std::int64_t i, const std::vector<std::int32_t>& ids, std::int64_t count, bool weighted) const;
  template <typename Take>
  void look_again(const Prepared& prepared, const std::vector<Open>& open, std::int64_t count, bool weighted, Take take);
  void find_bandwidths(const Prepared& prepared, CandidateSource& source);
  void find_ranked(const Prepared& prepared, CandidateSource& source);

  const std::int64_t m_;
  const KnnOptions& options_;
  const Metric metric_;
  const Weight weight_;
  std::vector<double> weights_;       // of the final bandwidths
  std::vector<std::int32_t> raised_;  // tokens whose bandwidth was raised: their weight is below what the search assumed
  Neighbours result_;
};

void Finder::append(std::int64_t i, const std::vector<std::int32_t>& ids, bool weighted, std::vector<Ranked>& out) const {
  for (std::size_t c = 0; c < ids.size(); ++c) {
    if (c + 1 < ids.size()) metric_.fetch(ids[c + 1]);
    out.push_back(ranked(i, ids[c], weighted ? weights_[static_cast<std::size_t>(ids[c])] : 1.0));
  }
}

std::vector<Ranked> Finder::all_distances(std::int64_t i) const {
  std::vector<Ranked> all;
  all.reserve(static_cast<std::size_t>(m_));
  for (std::int64_t j = 0; j < m_; ++j)
    if (j != i) all.push_back(ranked(i, static_cast<std::int32_t>(j), 1));
  return all;
}

std::vector<Ranked> Finder::nearest_of(std::int64_t i, std::int64_t count) const {
  std::vector<Ranked> all = all_distances(i);
  std::partial_sort(all.begin(), all.begin() + count, all.end());
  all.resize(static_cast<std::size_t>(count));
  return all;
}

// (d weighted, id) of the k best by the ranking.
std::vector<Ranked> Finder::ranked_of(std::int64_t i) const {
  std::vector<Ranked> all = all_distances(i);
  for (Ranked& r : all) r.value = r.d * weights_[static_cast<std::size_t>(r.id)];
  std::partial_sort(all.begin(), all.begin() + options_.k, all.end());
  all.resize(static_cast<std::size_t>(options_.k));
  return all;
}

// The `count` nearest among the candidates, exactly; false if another token could be among them.
bool Finder::certify_near(std::int64_t i, std::int64_t count, const RowCandidates& row, std::vector<Ranked>& out) const {
  out.clear();
  if (static_cast<std::int64_t>(row.near.size()) < count) return false;
  std::vector<Candidate> sorted = row.near;
  const auto by_d = [](const Candidate& a, const Candidate& b) { return a.d < b.d; };
  std::nth_element(sorted.begin(), sorted.begin() + count - 1, sorted.end(), by_d);
  const float reach = sorted[static_cast<std::size_t>(count - 1)].d + 2 * row.error;
  std::vector<std::int32_t> ids;
  for (const Candidate& c : sorted)
    if (c.d <= reach) ids.push_back(c.id);
  append(i, ids, false, out);
  std::sort(out.begin(), out.end());
  out.resize(static_cast<std::size_t>(count));
  return out.back().value < static_cast<double>(row.near_bound) - static_cast<double>(row.error);
}

// The k best by the ranking among all candidates, exactly; false if another token could be among them.
bool Finder::certify_ranked(std::int64_t i, const RowCandidates& row, std::vector<Ranked>& out) const {
  const auto error = static_cast<double>(row.error);
  std::vector<Candidate> all = row.ranked;
  all.insert(all.end(), row.near.begin(), row.near.end());
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  all.erase(std::unique(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.id == b.id; }), all.end());
  out.clear();
  if (static_cast<std::int64_t>(all.size()) < options_.k) return false;
  // Only those whose least possible value is not above the k-th largest possible one are worth an exact distance.
  std::vector<double> most(all.size());
  const auto weight = [&](const Candidate& c) { return weights_[static_cast<std::size_t>(c.id)]; };
  for (std::size_t c = 0; c < all.size(); ++c) most[c] = (static_cast<double>(all[c].d) + error) * weight(all[c]);
  std::nth_element(most.begin(), most.begin() + options_.k - 1, most.end());
  const double reach = most[static_cast<std::size_t>(options_.k - 1)];
  std::vector<std::int32_t> ids;
  for (const Candidate& c : all)
    if ((static_cast<double>(c.d) - error) * weight(c) <= reach) ids.push_back(c.id);
  for (const std::int32_t id : raised_)
    if (raised_.size() <= kMostRaised && id != i && !std::binary_search(all.begin(), all.end(), Candidate{0, id}, [](const Candidate& a, const Candidate& b) { return a.id < b.id; }))
      ids.push_back(id);
  append(i, ids, true, out);
  std::partial_sort(out.begin(), out.begin() + options_.k, out.end());
  out.resize(static_cast<std::size_t>(options_.k));
  // Every other token has a d of at least near_bound and a value of at least ranked_bound, up to the error of d.
  if (std::isinf(row.near_bound) || std::isinf(row.ranked_bound)) return true;
  if (row.near_bound <= row.error) return false;  // it may even be negative, where an error is as large as d
  const double relative = error / static_cast<double>(row.near_bound);
  return out.back().value < row.ranked_bound * (1 - relative) * (1 - 1e-6);
}

void Finder::store(std::int64_t i, const std::vector<Ranked>& ranked) {
  for (std::int64_t c = 0; c < options_.k; ++c) {
    const auto at = static_cast<std::size_t>(i * options_.k + c);
    result_.ids[at] = ranked[static_cast<std::size_t>(c)].id;
    result_.distances[at] = ranked[static_cast<std::size_t>(c)].d;
  }
}

// The best of these tokens, exactly.
std::vector<Ranked> Finder::best_of(std::int64_t i, const std::vector<std::int32_t>& ids, std::int64_t count, bool weighted) const {
  std::vector<Ranked> all;
  append(i, ids, weighted, all);
  std::partial_sort(all.begin(), all.begin() + count, all.end());
  all.resize(static_cast<std::size_t>(count));
  return all;
}

// Rows that could not be certified: with a bound on the last neighbour's value in hand, one more product finds all tokens
// that could be below it, and these are computed exactly. Nothing is left to certify.
template <typename Take>
void Finder::look_again(const Prepared& prepared, const std::vector<Open>& open, std::int64_t count, bool weighted, Take take) {
  result_.recomputed += static_cast<std::int64_t>(open.size());
  for (std::size_t first = 0; first < open.size(); first += 1024) {  // so that what is found stays small
    std::vector<std::int64_t> rows;
    std::vector<double> bounds;
    for (std::size_t r = first; r < std::min(open.size(), first + 1024); ++r) rows.push_back(open[r].row), bounds.push_back(open[r].bound);
    const auto found = tokens_within(prepared, rows, bounds, weighted ? weights_ : std::vector<double>());
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads())
    for (std::size_t r = 0; r < rows.size(); ++r) take(rows[r], best_of(rows[r], found[r], count, weighted));
  }
}

// rho of every row and, for the raw ranking, the neighbours.
void Finder::find_bandwidths(const Prepared& prepared, CandidateSource& source) {
  const std::int64_t count = by_ranking() ? options_.bandwidth_neighbour : std::max(options_.k, options_.bandwidth_neighbour);
  std::vector<Open> open;
  const auto take = [&](std::int64_t i, const std::vector<Ranked>& near) {
    result_.bandwidths[static_cast<std::size_t>(i)] = near[static_cast<std::size_t>(options_.bandwidth_neighbour - 1)].d;
    if (!by_ranking()) store(i, near);
  };
#pragma omp parallel num_threads(threads())
  {
    RowCandidates row;
    std::vector<Ranked> near;
#pragma omp for schedule(dynamic, 16)
    for (std::int64_t i = 0; i < m_; ++i) {
      source.give(i, row);
      if (certify_near(i, count, row, near)) {
        take(i, near);
      } else {
#pragma omp critical
        open.push_back({i, near.empty() ? kInfinite : near.back().value});
      }
    }
  }
  look_again(prepared, open, count, false, take);
}

void Finder::find_ranked(const Prepared& prepared, CandidateSource& source) {
  std::vector<Open> open;
  const auto take = [&](std::int64_t i, const std::vector<Ranked>& ranked) { store(i, ranked); };
#pragma omp parallel num_threads(threads())
  {
    RowCandidates row;
    std::vector<Ranked> ranked;
#pragma omp for schedule(dynamic, 16)
    for (std::int64_t i = 0; i < m_; ++i) {
      source.give(i, row);
      if (certify_ranked(i, row, ranked) && raised_.size() <= kMostRaised) {
        take(i, ranked);
      } else {
#pragma omp critical
        open.push_back({i, ranked.empty() ? kInfinite : ranked.back().value});
      }
    }
  }
  look_again(prepared, open, options_.k, true, take);
}

Neighbours Finder::find(const Points& points) {
  const Prepared prepared = prepare(points, options_.metric == "cosine");
  const std::int64_t near = (by_ranking() ? options_.bandwidth_neighbour : std::max(options_.k, options_.bandwidth_neighbour)) + kSpare;
  const Device device = options_.device.choose();
  const bool faiss = options_.method == "faiss" || device.cuda;
  const auto source = faiss ? faiss_candidates(prepared, near, device)
                            : tile_candidates(prepared, by_integers(points.d), near, by_ranking() ? 2 * options_.k + kSpare : 0, options_.bandwidth_neighbour, weight_);
  find_bandwidths(prepared, *source);
  raised_ = raise_bandwidths(result_.bandwidths);
  if (by_ranking()) {
    for (const double rho : result_.bandwidths) weights_.push_back(weight_(rho));
    find_ranked(prepared, *source);
  }
  return std::move(result_);
}

Neighbours Finder::find_by_brute_force() {
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads())
  for (std::int64_t i = 0; i < m_; ++i) {
    const auto near = nearest_of(i, std::max(options_.k, options_.bandwidth_neighbour));
    result_.bandwidths[static_cast<std::size_t>(i)] = near[static_cast<std::size_t>(options_.bandwidth_neighbour - 1)].d;
    if (!by_ranking()) store(i, near);
  }
  raise_bandwidths(result_.bandwidths);
  for (const double rho : result_.bandwidths) weights_.push_back(weight_(rho));
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads())
  for (std::int64_t i = 0; i < m_; ++i)
    if (by_ranking()) store(i, ranked_of(i));
  return std::move(result_);
}

}  // namespace

void KnnOptions::add_to(Options& options) {
  options.option("k", k, "neighbours a token").range(1, 1 << 20);
  options.option("metric", metric, "distance d: squared Euclidean, or 1 - cos").choices({"gauss", "cosine"});
  options.option("ranking", ranking, "what the neighbours are nearest by: d divided by the bandwidths, or d itself").choices({"normalised", "raw"});
  options.option("bandwidth", bandwidth, "how bandwidths divide d: the root of their product, or their product").choices({"paper", "code"});
  options.option("bandwidth-neighbour", bandwidth_neighbour, "the bandwidth of a token is d to its neighbour of this rank").range(1, 1 << 20);
  options.option("method", method, "each pair once, through 16-bit integers or BLAS (tiles: what is faster), or all through FAISS (raw ranking only); the result is the same")
      .choices({"tiles", "integers", "blas", "faiss"})
      .neutral();
  device.add_to(options);
}

void KnnOptions::validate(std::int64_t m) const {
  if (k > m - 1) bad_usage("--k: {} tokens have at most {} neighbours, found {}", m, m - 1, k);
  if (bandwidth_neighbour > m - 1) bad_usage("--bandwidth-neighbour: {} tokens have at most {} neighbours, found {}", m, m - 1, bandwidth_neighbour);
  if (method == "integers" && !has_integer_products()) bad_usage("--method integers: this machine does not have AVX-512 VNNI; tiles and blas work everywhere");
  const bool faiss = method == "faiss" || device.choose().cuda;
  if (faiss && ranking != "raw") bad_usage("--ranking: FAISS, which --method faiss and a GPU use, ranks by raw distance only");
}

void check_finite(const Points& points, const std::string& name) {
  for (std::int64_t i = 0; i < points.m; ++i)
    for (std::int64_t c = 0; c < points.d; ++c)
      if (!std::isfinite(points.row(i)[c])) reject("{}: /embedding[{}, {}] is not a finite number", name, i, c);
}

Neighbours find_neighbours(const Points& points, const KnnOptions& options) { return Finder(points, options).find(points); }
Neighbours brute_force(const Points& points, const KnnOptions& options) { return Finder(points, options).find_by_brute_force(); }

double exact_distance(const Points& points, std::int64_t i, std::int64_t j, bool cosine) { return Metric(points, cosine)(i, j); }

std::vector<std::pair<double, std::int32_t>> nearest(const Points& points, std::int64_t i, std::int64_t k, bool cosine) {
  const Metric metric(points, cosine);
  std::vector<std::pair<double, std::int32_t>> all;
  for (std::int64_t j = 0; j < points.m; ++j)
    if (j != i) all.emplace_back(metric(i, j), static_cast<std::int32_t>(j));
  k = std::min<std::int64_t>(k, static_cast<std::int64_t>(all.size()));
  std::partial_sort(all.begin(), all.begin() + k, all.end());
  all.resize(static_cast<std::size_t>(k));
  return all;
}

std::vector<double> row_perplexities(const Neighbours& n, double epsilon, const std::string& bandwidth) {
  std::vector<double> result;
  std::vector<double> exponents(static_cast<std::size_t>(n.k));
  for (std::size_t i = 0; i < n.bandwidths.size(); ++i) {
    for (std::size_t c = 0; c < exponents.size(); ++c) {
      const std::size_t at = i * exponents.size() + c;
      const double product = n.bandwidths[i] * n.bandwidths[static_cast<std::size_t>(n.ids[at])];
      exponents[c] = -n.distances[at] / (epsilon * (bandwidth == "code" ? product : std::sqrt(product)));
    }
    const double most = *std::max_element(exponents.begin(), exponents.end());
    double total = 0, weighted = 0;
    for (const double e : exponents) {
      total += std::exp(e - most);
      weighted += (e - most) * std::exp(e - most);
    }
    result.push_back(std::exp(std::log(total) - weighted / total));  // entropy of the normalised weights
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace gdds::graph
