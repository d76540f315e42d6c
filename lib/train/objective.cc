// See objective.h.
#include "train/objective.h"

#include <algorithm>

#include "base/error.h"
#include "train/campbell.h"
#include "train/slice.h"

namespace gdds::train {
namespace {

using diffusion::SnapshotBatch;

class SnapshotObjective final : public Objective {
 public:
  SnapshotObjective(std::shared_ptr<const diffusion::Process> process, bool jumped) : process_(std::move(process)), jumped_(jumped) {}
  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    at::Tensor each = cross_entropy(logits_of(model, *process_, slice, pass), slice.x0()) * slice.counts();
    if (jumped_) each = each * slice.jumped();
    return {each.sum(), tokens(batch, first, n)};
  }

 private:
  std::shared_ptr<const diffusion::Process> process_;
  bool jumped_;
};

class NextTokenObjective final : public Objective {
 public:
  model::Arch arch() const override { return model::Arch::ar; }
  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const at::Tensor x0 = slice.x0(), counts = slice.counts().slice(1, 1);
    const at::Tensor logits = dynamic_cast<const model::Network&>(model).logits(x0.slice(1, 0, -1), at::Tensor(), pass);
    return {(cross_entropy(logits, x0.slice(1, 1)) * counts).sum(), tokens(batch, first, n)};
  }
  std::int64_t tokens(const SnapshotBatch& batch, std::int64_t first, std::int64_t n) const override { return counted(batch, first, n, 1); }
};

}  // namespace

void ObjectiveOptions::add_to(Options& options) {
  options.option("objective", objective, "what is minimised").choices({"snapshot", "path", "campbell", "ar"});
  options.option("posterior", posterior, "snapshot: the cross-entropy of every token, or of those that jumped").choices({"full", "jumped"});
}

std::int64_t Objective::counted(const SnapshotBatch& batch, std::int64_t first, std::int64_t n, std::int64_t less) {
  std::int64_t sum = 0;
  for (std::int64_t s = first; s < first + n; ++s) sum += std::max<std::int64_t>(0, (batch.lengths.empty() ? batch.length : batch.lengths[static_cast<std::size_t>(s)]) - less);
  return sum;
}

std::unique_ptr<Objective> make_objective(const ObjectiveOptions& o, std::shared_ptr<const diffusion::Process> process) {
  if (o.objective == "ar") return std::make_unique<NextTokenObjective>();
  if (o.objective == "snapshot") return std::make_unique<SnapshotObjective>(std::move(process), o.posterior == "jumped");
  if (o.objective == "campbell") return make_campbell_objective(std::move(process));
  return make_path_objective(std::move(process));
}

}  // namespace gdds::train
