// The neighbour table that semantic kernels are made of, as gdds-knn writes it, and the jump kernel F of MATH 2 on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "h5/input.h"

namespace gdds::diffusion {

struct NeighbourTable {
  std::int32_t m = 0, k = 0;
  std::vector<std::int32_t> ids;   // [m, k]
  std::vector<double> distances;   // [m, k]: d
  std::vector<double> bandwidths;  // [m]: rho
  std::string metric = "gauss", ranking = "normalised", bandwidth = "paper";

  // d(x, y) divided by this product is the exponent of the affinity at epsilon 1: D = d scale(x) scale(y).
  double scale(std::int32_t x) const;
  double D(std::int32_t y, std::int32_t i) const {
    const std::size_t at = static_cast<std::size_t>(y) * static_cast<std::size_t>(k) + static_cast<std::size_t>(i);
    return distances[at] * scale(y) * scale(ids[at]);
  }
};

// From a `neighbours` file, or from the parts of a `process` file under /neighbours. Checked: status 3 says where.
NeighbourTable read_neighbours(const h5::Input& input, const std::string& group);
void check(const NeighbourTable& table, const std::string& file);

// F(ids[y, i], y), [m, k]: the affinities exp(-D / epsilon) of each column, normalised.
std::vector<double> jump_kernel(const NeighbourTable& table, double epsilon);

// exp of the entropy of each column, sorted.
std::vector<double> row_perplexities(const NeighbourTable& table, double epsilon);
// The epsilon at which the median of them is `wanted`; status 2 if no epsilon has that.
double epsilon_for_perplexity(const NeighbourTable& table, double wanted);

}  // namespace gdds::diffusion
