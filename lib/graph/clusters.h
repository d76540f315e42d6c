// Clusters of an embedding by k-means (FAISS), for processes that know groups of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/knn.h"

namespace gdds::graph {

// The cluster of each row, from 0 on, in the order in which they first occur; none is empty. One thread and a fixed seed: the
// same points give the same clusters.
std::vector<std::int32_t> cluster_points(const Points& points, std::int64_t count);

}  // namespace gdds::graph
