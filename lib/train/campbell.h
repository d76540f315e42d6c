// The Campbell estimator (the paper's Algorithm 4): the cross-entropy of the token before every jump of whole paths to t = 1.
// What leads to where it came from (a mask that is masked again, a reset to the same token) cannot be seen and costs nothing;
// the other jumps are called changes. In round k each position is at its k-th change from the end: the query has the token
// after it and its time, and is to tell the token before it, knowing the tokens before the k-th changes that were later.
// So every term knows only what the reverse process knows by then: what happened after it. That a position has fewer than
// k changes is not among that, since it speaks of what was before; such a position is seen by none, unless the process can
// do nothing but mask: then a token that is no mask is clean, and a position that never jumps is known from the beginning.
// There are as many rounds as the longest path has changes: one for absorb.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "diffusion/process.h"
#include "diffusion/snapshots.h"
#include "train/objective.h"

namespace gdds::train {

// Of n sequences, [n, L] each.
struct CampbellRound {
  std::vector<double> times;                // who sees whom: a position sees those with later times
  std::vector<std::int64_t> before, after;  // tokens
  std::vector<float> weight;                // 1 where there is a k-th change from the end
};
std::vector<CampbellRound> campbell_rounds(const diffusion::SnapshotBatch& batch, std::int64_t first, std::int64_t n, bool only_masks);

// Status 2 where the process has states that are no tokens.
std::unique_ptr<Objective> make_campbell_objective(std::shared_ptr<const diffusion::Process> process);

}  // namespace gdds::train
