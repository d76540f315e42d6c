// See campbell.h.
#include "train/campbell.h"

#include <algorithm>

#include "base/error.h"
#include "base/seed.h"
#include "model/two_stream.h"
#include "train/readout.h"
#include "train/slice.h"

namespace gdds::train {
namespace {

using diffusion::SnapshotBatch;

struct Change {
  double time;
  std::int64_t before, after;
};

// The changes of token l of sequence s, in time.
std::vector<Change> changes(const SnapshotBatch& b, std::int64_t s, std::int64_t l) {
  const auto offset = static_cast<std::size_t>(s * (b.length + 1) + l);
  std::vector<Change> out;
  std::int32_t at = b.x0[static_cast<std::size_t>(s * b.length + l)];
  for (auto jump = static_cast<std::size_t>(b.path_offsets[offset]); jump < static_cast<std::size_t>(b.path_offsets[offset + 1]); ++jump) {
    if (b.path_states[jump] != at) out.push_back({b.path_times[jump], at, b.path_states[jump]});
    at = b.path_states[jump];
  }
  return out;
}

class CampbellObjective final : public Objective {
 public:
  explicit CampbellObjective(std::shared_ptr<const diffusion::Process> process)
      : process_(std::move(process)), only_masks_(process_->name() == "absorb" || process_->name() == "mask-rates") {}
  model::Arch arch() const override { return model::Arch::two_stream; }
  bool needs_paths() const override { return true; }

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    at::Tensor sum = torch::zeros({}, device_of(model));
    each_part(model, batch, first, n, pass, [&](const at::Tensor& part) { sum = sum + part; });
    return {sum, tokens(batch, first, n)};
  }
  // A part is a round.
  void each_part(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass, const Take& take) const override {
    const Slice slice(batch, first, n, device_of(model));
    std::uint64_t k = 0;
    for (const CampbellRound& round : campbell_rounds(batch, first, n, only_masks_)) {
      model::Pass own = pass;
      own.seed = mixed(pass.seed, k++);  // a dropout of its own
      take(round_sum(dynamic_cast<const model::TwoStream&>(model), slice, round, own));
    }
  }

 private:
  at::Tensor round_sum(const model::TwoStream& model, const Slice& slice, const CampbellRound& round, const model::Pass& pass) const {
    const auto device = device_of(model);
    const auto tensor = [&](const auto& values) { return torch::tensor(values).view({slice.n(), slice.batch().length}).to(device); };
    std::vector<float> sigma;
    for (const double t : round.times) sigma.push_back(t >= 0 && t <= 1 ? static_cast<float>(process_->schedule().Lambda(t)) : 0.0F);
    const at::Tensor target = tensor(round.before), when = torch::tensor(round.times, torch::kDouble).view_as(target).to(device);
    const at::Tensor features = [&] {
      const model::Autocast cast = precision_of(model, pass);
      return model.features(target, tensor(round.after), model::ranks_of_times(when), tensor(sigma), pass).flatten(0, 1);
    }();
    return cross_entropy_sum(features, model.output(), pass.bf16, target.flatten(), (tensor(round.weight) * slice.counts()).flatten());
  }

  std::shared_ptr<const diffusion::Process> process_;
  bool only_masks_;
};

}  // namespace

std::vector<CampbellRound> campbell_rounds(const SnapshotBatch& b, std::int64_t first, std::int64_t n, bool only_masks) {
  const auto count = static_cast<std::size_t>(n * b.length);
  std::vector<std::vector<Change>> paths(count);
  std::size_t rounds = 1;
  for (std::size_t i = 0; i < count; ++i) {
    paths[i] = changes(b, first + static_cast<std::int64_t>(i) / b.length, static_cast<std::int64_t>(i) % b.length);
    rounds = std::max(rounds, paths[i].size());
  }
  constexpr double kAlwaysKnown = 2, kNeverKnown = -1;
  std::vector<CampbellRound> out;
  for (std::size_t k = 1; k <= rounds; ++k) {
    CampbellRound round{std::vector<double>(count, only_masks ? kAlwaysKnown : kNeverKnown), std::vector<std::int64_t>(count), std::vector<std::int64_t>(count), std::vector<float>(count, 0.0F)};
    for (std::size_t i = 0; i < count; ++i) {
      round.before[i] = round.after[i] = b.x0[static_cast<std::size_t>(first * b.length) + i];
      if (paths[i].size() < k) continue;
      const Change& change = paths[i][paths[i].size() - k];
      round.times[i] = change.time;
      round.before[i] = change.before;
      round.after[i] = change.after;
      round.weight[i] = 1;
    }
    out.push_back(std::move(round));
  }
  return out;
}

std::unique_ptr<Objective> make_campbell_objective(std::shared_ptr<const diffusion::Process> process) {
  if (process->states() != process->m())
    bad_usage("--objective campbell: process {} has {} states that are no tokens, which the network cannot name", process->name(), process->states() - process->m());
  return std::make_unique<CampbellObjective>(std::move(process));
}

}  // namespace gdds::train
