// From features to a loss, a part of the positions at a time. The logits of a batch are by far its largest numbers (16
// sequences of 1,024 tokens of GPT-2: 3.3 GB, and a loss keeps several such tensors), and no more than one part of them is
// ever there: where gradients are wanted, each part's are taken at once and only those of the features and of the output
// layer are kept. Value and gradient are those of the loss of all logits, which the tests compare them with.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

#include "model/network.h"

namespace gdds::train {

// The loss [] of a part's logits [rows, m], fp32, of positions begin ... begin + rows - 1; built of differentiable steps.
using LossOfLogits = std::function<at::Tensor(const at::Tensor& logits, std::int64_t begin)>;

// Sum of the losses of all parts, each of `rows` positions but for the last. features [positions, d]; bf16: the products of
// the output layer are in bfloat16.
at::Tensor sum_over_parts(const at::Tensor& features, const model::Output& output, std::int64_t rows, bool bf16, const LossOfLogits& loss);
// How many rows of m logits fit the caches well.
std::int64_t rows_of_part(std::int64_t m);

// sum_p weight[p] (-log softmax(logits[p])[target[p]]), with class `without` (if not negative) taken out of the softmax.
// Positions of weight 0 cost nothing, not even time.
at::Tensor cross_entropy_sum(const at::Tensor& features, const model::Output& output, bool bf16, const at::Tensor& target, const at::Tensor& weight, std::int64_t without = -1);

}  // namespace gdds::train
