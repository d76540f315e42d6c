// Candidates for the neighbours of all tokens by tiles of the matrix of distances, each pair once (the matrix is
// symmetric): a tile is one matrix product, and both its sides are filtered by the thresholds of their rows.
// Private to lib/graph.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "graph/knn.h"

namespace gdds::graph {

struct Candidate {
  float d;
  std::int32_t id;
};

// The candidates of a row and what is known of the rest.
struct RowCandidates {
  std::vector<Candidate> near;   // by d: the nearest are all here ...
  float near_bound = 0;          // ... every token that is not has a d of at least this
  std::vector<Candidate> ranked; // by the ranking (empty for the raw one, where `near` serves)
  double ranked_bound = 0;       // every token that is not here has a rank value (d weighted by its rho) of at least this
  float error = 0;               // of every d above
};

// How the ranking weighs a distance to a token of bandwidth rho: d * weight(rho). It must not increase with rho.
using Weight = std::function<double(double rho)>;

// Vectors as the products see them: unit length for the cosine. norms[i] + norms[j] - scale * (x_i . x_j) is d.
struct Prepared {
  std::vector<float> unit;  // cosine only
  Points points;
  std::vector<float> norms;
  float scale = 2;
  std::vector<float> errors;  // of a row's d in single precision
};
Prepared prepare(const Points& points, bool cosine);

// For a few rows, every token j whose d could be, the error taken off, at most bounds[r] / weights[j] (no weights: 1):
// all that a bound known from other candidates leaves possible.
std::vector<std::vector<std::int32_t>> tokens_within(const Prepared& prepared, const std::vector<std::int64_t>& rows, const std::vector<double>& bounds,
                                                     const std::vector<double>& weights);

// Where the candidates of a row come from.
class CandidateSource {
 public:
  virtual ~CandidateSource() = default;
  virtual void give(std::int64_t i, RowCandidates& out) = 0;
};

// `near` asks for that many nearest (at least), `ranked` for that many by the ranking, 0 for none. By integers or by BLAS
// (products.h).
std::unique_ptr<CandidateSource> tile_candidates(const Prepared& prepared, bool integers, std::int64_t near, std::int64_t ranked,
                                                 std::int64_t bandwidth_neighbour, const Weight& weight);
// The nearest alone, all pairs through FAISS, on a GPU where it is asked for.
std::unique_ptr<CandidateSource> faiss_candidates(const Prepared& prepared, std::int64_t near, const Device& device);

}  // namespace gdds::graph
