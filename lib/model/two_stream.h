// The paper's network for the Campbell estimator ("Architectural details for Campbell"): every position of a sequence
// predicts the token before its jump, in one pass, though each sees another part of the sequence.
//
// A position l jumps at tau_l. What is known at that moment are the tokens that jump later, {j : tau_j > tau_l}. The ranks
// are the order of the times, latest first: tau_j > tau_l iff r_j < r_l. Two streams of [B, L, d]:
//
//   content  starts from embed(x0), knows no time. Position i attends to the contents j with r_j <= r_i, itself included:
//            c <- c + attn(norm c), c <- c + mlp(norm c), blocks/2 times, then a norm.
//   queries  start from embed(z), z the token after the jump (the mask of an absorbing process), and are conditioned on
//            their own time, sigma_l = -log alpha(tau_l), by adaLN as in the DDiT. Position l attends to the contents j
//            with r_j < r_l, not to itself and to no other query:
//            q_l <- q_l + gate attn(norm q_l (1 + scale) + shift; {c_j : r_j < r_l}), and the MLP likewise.
//            The position of rank 0 sees nothing: its attention is zero.
//
// So logits_l = f(z_l, sigma_l, {x0_j : r_j < r_l}): content j carries tokens of ranks up to r_j < r_l only, and x0_l and
// what is not yet revealed cannot reach l, in any number of blocks. Rotary positions on queries and keys of both streams.
#pragma once

#include "model/network.h"

namespace gdds::model {

class TwoStream : public Model {
 public:
  // x0, z [B, L] int64; ranks [B, L] int64, a permutation of 0..L-1 in each row; sigma [B, L]. Logits [B, L, m], fp32.
  at::Tensor logits(const at::Tensor& x0, const at::Tensor& z, const at::Tensor& ranks, const at::Tensor& sigma, const Pass& pass = {}) const;

  virtual at::Tensor features(const at::Tensor& x0, const at::Tensor& z, const at::Tensor& ranks, const at::Tensor& sigma, const Pass& pass = {}) const = 0;
  virtual at::Tensor readout(const at::Tensor& features) const = 0;

 protected:
  using Model::Model;
};

std::unique_ptr<TwoStream> make_two_stream(const ModelConfig& config, std::uint64_t seed);

// Ranks of jump times [B, L]: the latest has rank 0, ties go by position. A position that does not jump is one that jumps
// at infinity.
at::Tensor ranks_of_times(const at::Tensor& times);

}  // namespace gdds::model
