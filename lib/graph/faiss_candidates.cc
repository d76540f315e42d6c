// Candidates from FAISS: the plain way, and the one that runs on a GPU where FAISS was built so. FAISS aborts on any CUDA
// error, so the device was probed before (lib/base/device).
#include <algorithm>
#include <cmath>

#include <faiss/Index.h>
#include <faiss/utils/distances.h>
#include <omp.h>
#ifdef GDDS_FAISS_GPU
#include <faiss/gpu/GpuDistance.h>
#include <faiss/gpu/StandardGpuResources.h>
#endif

#include <cblas.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/threads.h"
#include "graph/tiles.h"

namespace gdds::graph {
namespace {

class FaissCandidates final : public CandidateSource {
 public:
  FaissCandidates(const Prepared& p, std::int64_t near, const Device& device)
      : count_(std::min(near + 1, p.points.m)), half_(p.scale == 1), whole_(count_ == p.points.m), errors_(p.errors), d_(static_cast<std::size_t>(p.points.m * count_)), ids_(d_.size()) {
    const auto m = static_cast<std::size_t>(p.points.m), width = static_cast<std::size_t>(p.points.d);
    if (device.cuda) {
      search_on_gpu(p, device);
      return;
    }
    omp_set_num_threads(threads());
    openblas_set_num_threads(threads());
    faiss::knn_L2sqr(p.points.values, p.points.values, width, m, m, static_cast<std::size_t>(count_), d_.data(), ids_.data());
  }

  void give(std::int64_t i, RowCandidates& out) override {
    out.near.clear();
    float worst = 0;
    for (std::int64_t c = 0; c < count_; ++c) {
      const auto at = static_cast<std::size_t>(i * count_ + c);
      const float d = half_ ? d_[at] / 2 : d_[at];
      worst = std::max(worst, d);
      if (ids_[at] != i && ids_[at] >= 0) out.near.push_back({d, static_cast<std::int32_t>(ids_[at])});
    }
    out.near_bound = whole_ ? INFINITY : worst;
    out.error = errors_[static_cast<std::size_t>(i)];
    out.ranked.clear();
  }

 private:
  void search_on_gpu(const Prepared& p, const Device& device);

  std::int64_t count_;
  bool half_, whole_;
  const std::vector<float>& errors_;
  std::vector<float> d_;
  std::vector<std::int64_t> ids_;
};

#ifdef GDDS_FAISS_GPU
void FaissCandidates::search_on_gpu(const Prepared& p, const Device& device) {
  if (count_ > 2048) fail("--device cuda: FAISS finds at most 2048 neighbours on a GPU, {} are needed", count_);
  faiss::gpu::StandardGpuResources resources;
  faiss::gpu::GpuDistanceParams params;
  params.metric = faiss::METRIC_L2;
  params.k = static_cast<int>(count_);
  params.dims = static_cast<int>(p.points.d);
  params.vectors = params.queries = p.points.values;
  params.numVectors = params.numQueries = p.points.m;
  params.outDistances = d_.data();
  params.outIndices = ids_.data();
  params.device = device.index;
  faiss::gpu::bfKnn(&resources, params);
}
#else
void FaissCandidates::search_on_gpu(const Prepared&, const Device&) {
  fail("--device cuda: this program was built with a FAISS that knows no GPU");
}
#endif

}  // namespace

std::unique_ptr<CandidateSource> faiss_candidates(const Prepared& prepared, std::int64_t near, const Device& device) {
  return std::make_unique<FaissCandidates>(prepared, near, device);
}

std::string faiss_version() { return fmt::format("FAISS {}.{}.{}", FAISS_VERSION_MAJOR, FAISS_VERSION_MINOR, FAISS_VERSION_PATCH); }

}  // namespace gdds::graph
