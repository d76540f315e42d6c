// Activation checkpointing: a piece of a network is run without keeping what is inside it, and run again when its gradients
// are wanted. Python has torch.utils.checkpoint, LibTorch has nothing.
#pragma once

#include <functional>
#include <vector>

#include <torch/torch.h>

namespace gdds::model {

// f(inputs), a function of the inputs and the parameters alone that gives the same on every call, so dropout must come from
// a seed of its own. Gradients reach the inputs and the parameters that ask for them. Mixed precision is as in the first run.
at::Tensor recomputed(std::function<at::Tensor(const std::vector<at::Tensor>&)> f, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& parameters);

}  // namespace gdds::model
