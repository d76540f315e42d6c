// What is minimised (MATH 4, 6, 7): the loss of a batch as a sum over its tokens, so that micro-batches add up to the batch.
//   snapshot  cross-entropy of x0 given x_t: of every token (posterior full), or of those that jumped (jumped)
//   path      the integrand of the path-wise bound, with the softmax as leave-one-out distribution l: MDM on absorb, UDLM on
//             uniform, GIDD on hybrid, GenMD4's on mask-rates, HDLM's on hierarchical; sik-knn of many tokens by sampling; any
//             other process of few states by its matrices
//   campbell  cross-entropy of the token before each jump of whole paths, through the two-stream network
//   ar        cross-entropy of the next token
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/options.h"
#include "diffusion/process.h"
#include "diffusion/snapshots.h"
#include "model/network.h"

namespace gdds::train {

struct ObjectiveOptions {
  std::string objective = "snapshot";
  std::string posterior = "full";
  void add_to(Options& options);
  // What the network's softmax is (MATH 4): full, jumped, leave-one-out, before-jump or next-token.
  std::string_view predicted() const;
};

// Loss summed over tokens [] (fp32, with its graph), and how many tokens it is to be divided by.
struct LossSum {
  at::Tensor sum;
  std::int64_t tokens = 0;
};

class Objective {
 public:
  virtual ~Objective() = default;
  // Sequences first ... first + n - 1 of the batch, on the network's device.
  virtual LossSum loss(const model::Model& model, const diffusion::SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const = 0;
  // The same in parts that add up to it, each with a graph of its own, so that `take` may go backward through one before the next is made.
  using Take = std::function<void(const at::Tensor& sum)>;
  virtual void each_part(const model::Model& model, const diffusion::SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass, const Take& take) const;
  // How many tokens of these sequences count.
  virtual std::int64_t tokens(const diffusion::SnapshotBatch& batch, std::int64_t first, std::int64_t n) const { return counted(batch, first, n, 0); }
  // Which network it trains, and what has to be drawn for it.
  virtual model::Arch arch() const { return model::Arch::ddit; }
  virtual bool needs_paths() const { return false; }

 protected:
  // Tokens of the sequences, less so many of each.
  static std::int64_t counted(const diffusion::SnapshotBatch& batch, std::int64_t first, std::int64_t n, std::int64_t less);
};

// Status 2 where the objective cannot be computed for the process (none is needed for ar).
std::unique_ptr<Objective> make_objective(const ObjectiveOptions& options, std::shared_ptr<const diffusion::Process> process);
// path, in the way that suits the process; and the two general ways, which the others are tested against: by sampling (sik-knn
// of any size) and by matrices (any process of few states).
std::unique_ptr<Objective> make_path_objective(std::shared_ptr<const diffusion::Process> process);
enum class SampledPath { chosen, rows, powers };  // how K_t l is made, the faster one where it is left open
std::unique_ptr<Objective> make_sampled_path(std::shared_ptr<const diffusion::Process> process, SampledPath way = SampledPath::chosen);
std::unique_ptr<Objective> make_dense_path(std::shared_ptr<const diffusion::Process> process);

}  // namespace gdds::train
