// What the tests of the networks share: a small shape, parameters none of which is zero or one, and gradients by finite
// differences.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "model/network.h"

namespace gdds::model {

inline ModelConfig shape(Arch arch) {
  ModelConfig config;
  config.arch = arch;
  config.states = 12;
  config.m = 11;
  config.d = 16;
  config.blocks = 2;
  config.heads = 2;
  config.conditioning = 6;
  config.mlp_ratio = 2;
  config.length = 64;
  return config;
}

// The same number of draws for the same seed, whatever else draws.
inline at::Tensor random(at::IntArrayRef sizes, std::uint64_t seed, double scale = 1) {
  return at::empty(sizes, at::kDouble).normal_(0, scale, at::detail::createCPUGenerator(seed));
}
inline at::Tensor random_ids(at::IntArrayRef sizes, std::int64_t below, std::uint64_t seed) {
  return at::empty(sizes, at::kLong).random_(0, below, at::detail::createCPUGenerator(seed));
}

// Moves every parameter away from where it starts, adaLN and output included.
inline void stir(torch::nn::Module& module, double scale = 0.3) {
  const torch::NoGradGuard no_gradients;
  std::uint64_t seed = 100;
  for (auto& p : module.parameters()) p.add_(random(p.sizes(), ++seed, scale).to(p.options()));
}

// The largest difference between autograd's gradients of f with respect to the leaves and central differences, entry by
// entry, over the largest gradient. Leaves are double and ask for gradients.
inline double gradient_error(const std::function<at::Tensor()>& f, std::vector<at::Tensor> leaves) {
  for (auto& leaf : leaves) leaf.mutable_grad() = at::Tensor();
  f().backward();
  double worst = 0, largest = 0;
  const torch::NoGradGuard no_gradients;
  for (auto& leaf : leaves) {
    const at::Tensor gradient = leaf.grad().contiguous();
    double* const entry = leaf.data_ptr<double>();
    for (std::int64_t i = 0; i < leaf.numel(); ++i) {
      const double at = entry[i], step = 1e-5;
      entry[i] = at + step;
      const double up = f().item<double>();
      entry[i] = at - step;
      const double down = f().item<double>();
      entry[i] = at;
      const double found = gradient.data_ptr<double>()[i];
      worst = std::max(worst, std::abs(found - (up - down) / (2 * step)));
      largest = std::max(largest, std::abs(found));
    }
  }
  return worst / largest;
}

}  // namespace gdds::model
