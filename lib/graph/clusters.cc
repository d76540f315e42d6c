// See clusters.h.
#include "graph/clusters.h"

#include <map>

#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>
#include <omp.h>

namespace gdds::graph {

std::vector<std::int32_t> cluster_points(const Points& points, std::int64_t count) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  faiss::ClusteringParameters parameters;
  parameters.niter = 25;
  parameters.seed = 1;
  parameters.min_points_per_centroid = 1;
  parameters.max_points_per_centroid = 1 << 30;
  faiss::Clustering clustering(static_cast<int>(points.d), static_cast<int>(count), parameters);
  faiss::IndexFlatL2 index(points.d);
  clustering.train(points.m, points.values, index);
  std::vector<std::int64_t> nearest(static_cast<std::size_t>(points.m));
  index.assign(points.m, points.values, nearest.data());
  omp_set_num_threads(before);
  std::map<std::int64_t, std::int32_t> numbers;
  std::vector<std::int32_t> clusters;
  for (const std::int64_t c : nearest) clusters.push_back(numbers.try_emplace(c, static_cast<std::int32_t>(numbers.size())).first->second);
  return clusters;
}

}  // namespace gdds::graph
