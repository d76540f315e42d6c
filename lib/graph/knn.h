// Exact nearest neighbours of every token. Distances are computed roughly by matrix products (products.h), each pair once;
// what could be among the neighbours is computed again in double precision, in an order of summation that does not
// depend on the machine, and a row is accepted only if the error bound proves that nothing was missed; the others are
// done by brute force. So the result is that of a brute force in double precision, whatever threads, BLAS or FAISS.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/device.h"
#include "base/options.h"

namespace gdds::graph {

// Row-major [m, d], borrowed.
struct Points {
  const float* values = nullptr;
  std::int64_t m = 0;
  std::int64_t d = 0;
  const float* row(std::int64_t i) const { return values + i * d; }
};

struct KnnOptions {
  std::int64_t k = 64;
  std::string metric = "gauss";        // squared Euclidean distance, or 1 - cos
  std::string ranking = "normalised";  // by d / sqrt(rho_x rho_y), or raw: by d
  std::string bandwidth = "paper";     // how rho enters: sqrt(rho_x rho_y), or code: rho_x rho_y. MATH 2
  std::int64_t bandwidth_neighbour = 7;
  std::string method = "tiles";        // each pair once, through integers or blas (products.h); or faiss: all pairs through FAISS
  DeviceOption device;
  void add_to(Options& options);
  // Status 2 where m tokens cannot have as many neighbours.
  void validate(std::int64_t m) const;
};

struct Neighbours {
  std::int64_t k = 0;
  std::vector<std::int32_t> ids;   // [m, k], by the ranking, ties by id
  std::vector<double> distances;   // [m, k], d
  std::vector<double> bandwidths;  // [m], rho: d to the bandwidth neighbour, at least kSmallestBandwidth times its median
  std::int64_t recomputed = 0;     // rows that could not be certified at first
};

constexpr double kSmallestBandwidth = 1e-6;

// Status 3 for a number that is not finite, naming the row.
void check_finite(const Points& points, const std::string& name);

Neighbours find_neighbours(const Points& points, const KnnOptions& options);

// The definition: all distances in double precision, sorted. Slow.
Neighbours brute_force(const Points& points, const KnnOptions& options);

// d(i, j) in double precision, the same on every machine.
double exact_distance(const Points& points, std::int64_t i, std::int64_t j, bool cosine);

// The k nearest of one token by d: for a look at a few.
std::vector<std::pair<double, std::int32_t>> nearest(const Points& points, std::int64_t i, std::int64_t k, bool cosine);

// exp of the entropy of each column of the jump kernel F with that epsilon (MATH 2), sorted.
std::vector<double> row_perplexities(const Neighbours& neighbours, double epsilon, const std::string& bandwidth);

// "FAISS 1.7.3", for --version.
std::string faiss_version();

}  // namespace gdds::graph
