// See objective.h.
#include "train/objective.h"

#include <algorithm>

#include "base/error.h"
#include "model/two_stream.h"
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
    return {each.sum(), slice.tokens()};
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
    return {(cross_entropy(logits, x0.slice(1, 1)) * counts).sum(), slice.tokens() - n};
  }
};

// The jumps of paths to t = 1 that changed a token, [n, L] lists; what leads to where it came from (a mask that is masked
// again, a reset to the same token) cannot be seen and costs nothing.
struct Change {
  double time;
  std::int64_t before, after;
};
std::vector<std::vector<Change>> changes(const Slice& slice) {
  const SnapshotBatch& b = slice.batch();
  std::vector<std::vector<Change>> out(static_cast<std::size_t>(slice.n() * b.length));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t s = slice.first() + static_cast<std::int64_t>(i) / b.length, l = static_cast<std::int64_t>(i) % b.length;
    const auto offset = static_cast<std::size_t>(s * (b.length + 1) + l);
    std::int32_t at = b.x0[static_cast<std::size_t>(s * b.length + l)];
    for (auto jump = static_cast<std::size_t>(b.path_offsets[offset]); jump < static_cast<std::size_t>(b.path_offsets[offset + 1]); ++jump) {
      if (b.path_states[jump] != at) out[i].push_back({b.path_times[jump], at, b.path_states[jump]});
      at = b.path_states[jump];
    }
  }
  return out;
}

// Cross-entropy of the token before every change of the paths to t = 1 (the paper's Algorithm 4). In round k each position is
// at its k-th change from the end: the query has the token after it and its time, and is to tell the token before it, knowing
// the same of the positions whose k-th change was later. One that has fewer changes is known to be x0 from its first on, one
// that has none always. So every term knows only what the reverse process knows by then, and there are as many rounds as the
// longest path has changes: one for absorb.
class CampbellObjective final : public Objective {
 public:
  explicit CampbellObjective(std::shared_ptr<const diffusion::Process> process) : process_(std::move(process)) {}
  model::Arch arch() const override { return model::Arch::two_stream; }
  bool needs_paths() const override { return true; }
  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const auto paths = changes(slice);
    std::size_t rounds = 1;
    for (const auto& path : paths) rounds = std::max(rounds, path.size());
    at::Tensor sum;
    for (std::size_t k = 1; k <= rounds; ++k) {
      model::Pass round = pass;
      round.seed += static_cast<std::uint64_t>(k - 1) << 40;  // a dropout of its own
      const at::Tensor part = round_sum(dynamic_cast<const model::TwoStream&>(model), slice, paths, k, round);
      sum = k == 1 ? part : sum + part;
    }
    return {sum, slice.tokens()};
  }

 private:
  at::Tensor round_sum(const model::TwoStream& model, const Slice& slice, const std::vector<std::vector<Change>>& paths, std::size_t k, const model::Pass& pass) const {
    std::vector<double> times(paths.size(), 2.0);  // later than any: known from the beginning
    std::vector<float> sigma(paths.size(), 0.0F), weight(paths.size(), 0.0F);
    std::vector<std::int64_t> before(paths.size()), after(paths.size());
    const SnapshotBatch& b = slice.batch();
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (paths[i].empty()) {
        before[i] = after[i] = b.x0[static_cast<std::size_t>(slice.first() * b.length) + i];
        continue;
      }
      const Change& change = paths[i][paths[i].size() - std::min(k, paths[i].size())];
      times[i] = change.time;
      sigma[i] = static_cast<float>(process_->schedule().Lambda(change.time));
      before[i] = change.before;
      after[i] = change.after;
      weight[i] = paths[i].size() >= k ? 1.0F : 0.0F;
    }
    const auto device = device_of(model);
    const auto tensor = [&](const auto& values) { return torch::tensor(values).view({slice.n(), b.length}).to(device); };
    const at::Tensor target = tensor(before), when = torch::tensor(times, torch::kDouble).view_as(target).to(device);
    const at::Tensor logits = model.logits(target, tensor(after), model::ranks_of_times(when), tensor(sigma), pass);
    return (cross_entropy(logits, target) * tensor(weight) * slice.counts()).sum();
  }

  std::shared_ptr<const diffusion::Process> process_;
};

}  // namespace

void ObjectiveOptions::add_to(Options& options) {
  options.option("objective", objective, "what is minimised").choices({"snapshot", "path", "campbell", "ar"});
  options.option("posterior", posterior, "snapshot: the cross-entropy of every token, or of those that jumped").choices({"full", "jumped"});
}

std::unique_ptr<Objective> make_objective(const ObjectiveOptions& o, std::shared_ptr<const diffusion::Process> process) {
  if (o.objective == "ar") return std::make_unique<NextTokenObjective>();
  if (o.objective == "snapshot") return std::make_unique<SnapshotObjective>(std::move(process), o.posterior == "jumped");
  if (o.objective == "campbell") {
    if (process->states() != process->m())
      bad_usage("--objective campbell: process {} has {} states that are no tokens, which the network cannot name", process->name(), process->states() - process->m());
    return std::make_unique<CampbellObjective>(std::move(process));
  }
  return make_path_objective(std::move(process));
}

}  // namespace gdds::train
