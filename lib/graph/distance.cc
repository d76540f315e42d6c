// See distance.h. Compiled without contraction of a*b+c, so that wider vectors change speed and nothing else.
#include "graph/distance.h"

namespace gdds::graph {

GDDS_CLONES double squared_distance(const float* a, const float* b, std::int64_t d) {
  double sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const double difference = static_cast<double>(a[i + l]) - static_cast<double>(b[i + l]);
      sums[l] += difference * difference;
    }
  for (int l = 0; i + l < d; ++l) {
    const double difference = static_cast<double>(a[i + l]) - static_cast<double>(b[i + l]);
    sums[l] += difference * difference;
  }
  return add_up(sums);
}

GDDS_CLONES double dot_product(const float* a, const float* b, std::int64_t d) {
  double sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes)
    for (int l = 0; l < kLanes; ++l) sums[l] += static_cast<double>(a[i + l]) * static_cast<double>(b[i + l]);
  for (int l = 0; i + l < d; ++l) sums[l] += static_cast<double>(a[i + l]) * static_cast<double>(b[i + l]);
  return add_up(sums);
}

}  // namespace gdds::graph
