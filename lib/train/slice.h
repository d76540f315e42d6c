// What the objectives share: part of a batch as tensors, and the network's features for it. Includes LibTorch whole.
#pragma once

#include <vector>

#include <torch/torch.h>

#include "diffusion/snapshots.h"
#include "model/autocast.h"
#include "model/network.h"

namespace gdds::train {

// Part of a batch as tensors: ids [n, L] int64, flags and weights [n, L].
class Slice {
 public:
  Slice(const diffusion::SnapshotBatch& batch, std::int64_t first, std::int64_t n, at::Device device) : batch_(batch), first_(first), n_(n), device_(device) {}

  at::Tensor ids(const std::vector<std::int32_t>& values) const {
    auto* data = const_cast<std::int32_t*>(values.data() + first_ * batch_.length);
    return torch::from_blob(data, {n_, batch_.length}, torch::kInt32).to(device_, torch::kInt64);
  }
  at::Tensor x0() const { return ids(batch_.x0); }
  at::Tensor xt() const { return ids(batch_.xt); }
  at::Tensor jumped() const {
    auto* data = const_cast<std::uint8_t*>(batch_.jumped.data() + first_ * batch_.length);
    return torch::from_blob(data, {n_, batch_.length}, torch::kUInt8).to(device_, torch::kBool);
  }
  // 1 where the token counts.
  at::Tensor counts() const {
    if (batch_.lengths.empty()) return torch::ones({n_, batch_.length}, device_);
    const auto lengths = torch::from_blob(const_cast<std::int32_t*>(batch_.lengths.data() + first_), {n_, 1}, torch::kInt32).to(device_);
    return (torch::arange(batch_.length, device_).unsqueeze(0) < lengths).to(torch::kFloat);
  }
  double time(std::int64_t s) const { return batch_.times[static_cast<std::size_t>(first_ + s)]; }
  // f(t) of each sequence, [n].
  template <typename F>
  at::Tensor of_times(F f) const {
    std::vector<float> values;
    for (std::int64_t s = 0; s < n_; ++s) values.push_back(static_cast<float>(f(time(s))));
    return torch::tensor(values).to(device_);
  }
  // The same for each position, [n L, 1].
  template <typename F>
  at::Tensor of_positions(F f) const {
    return of_times(f).view({n_, 1}).expand({n_, batch_.length}).reshape({-1, 1});
  }
  const diffusion::SnapshotBatch& batch() const { return batch_; }
  std::int64_t first() const { return first_; }
  std::int64_t n() const { return n_; }

 private:
  const diffusion::SnapshotBatch& batch_;
  std::int64_t first_, n_;
  at::Device device_;
};

inline at::Device device_of(const model::Model& model) { return model.parameters().front().value.device(); }

// The scope in which a network makes its features.
inline model::Autocast precision_of(const model::Model& model, const model::Pass& pass) {
  const auto device = device_of(model).type();
  return {device, pass.bf16 ? at::kBFloat16 : model::Autocast::current(device)};
}

// Of every position, [n L, d].
inline at::Tensor features_of(const model::Model& model, const diffusion::Process& process, const Slice& slice, const model::Pass& pass) {
  const auto sigma = slice.of_times([&](double t) { return process.schedule().Lambda(t); });
  const model::Autocast cast = precision_of(model, pass);
  return dynamic_cast<const model::Network&>(model).features(slice.xt(), sigma, pass).flatten(0, 1);
}

}  // namespace gdds::train
