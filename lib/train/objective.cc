// See objective.h.
#include "train/objective.h"

#include <algorithm>

#include "base/error.h"
#include "train/campbell.h"
#include "train/readout.h"
#include "train/slice.h"

namespace gdds::train {
namespace {

using diffusion::SnapshotBatch;

class SnapshotObjective final : public Objective {
 public:
  SnapshotObjective(std::shared_ptr<const diffusion::Process> process, bool jumped) : process_(std::move(process)), jumped_(jumped) {}
  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const at::Tensor weight = jumped_ ? slice.counts() * slice.jumped() : slice.counts();
    return {cross_entropy_sum(features_of(model, *process_, slice, pass), model.output(), pass.bf16, slice.x0().flatten(), weight.flatten()), tokens(batch, first, n)};
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
    const at::Tensor x0 = slice.x0(), next = x0.slice(1, 1), counts = slice.counts().slice(1, 1);
    const at::Tensor features = [&] {
      const model::Autocast cast = precision_of(model, pass);
      return dynamic_cast<const model::Network&>(model).features(x0.slice(1, 0, -1), at::Tensor(), pass).flatten(0, 1);
    }();
    return {cross_entropy_sum(features, model.output(), pass.bf16, next.flatten(), counts.flatten()), tokens(batch, first, n)};
  }
  std::int64_t tokens(const SnapshotBatch& batch, std::int64_t first, std::int64_t n) const override { return counted(batch, first, n, 1); }
};

}  // namespace

void Objective::each_part(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass, const Take& take) const {
  take(loss(model, batch, first, n, pass).sum);
}

std::string_view ObjectiveOptions::predicted() const {
  if (objective == "snapshot") return posterior == "full" ? "full" : "jumped";
  return objective == "path" ? "leave-one-out" : objective == "campbell" ? "before-jump" : "next-token";
}

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
