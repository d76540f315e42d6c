// Distances in double precision whose value does not depend on the width of the machine's vectors: eight partial sums,
// always the same eight, added up in one order. Private to lib/graph.
#pragma once

#include <cmath>
#include <cstdint>

namespace gdds::graph {

constexpr int kLanes = 8;

inline double add_up(const double* sums) {
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define GDDS_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define GDDS_CLONES
#endif

// sum (a-b)^2
double squared_distance(const float* a, const float* b, std::int64_t d);
// sum a b
double dot_product(const float* a, const float* b, std::int64_t d);

}  // namespace gdds::graph
