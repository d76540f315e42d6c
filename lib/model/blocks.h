// What the networks are made of. The members are named as in the public DDiT checkpoints, so that a parameter's path is its
// name there ("blocks.0.mlp.2.bias"). Only for lib/model and its tests: others see network.h.
#pragma once

#include <optional>

#include <torch/torch.h>

#include "model/config.h"
#include "model/network.h"

namespace gdds::model {

// y = x W^T + b, weight [out, in]; LibTorch's own would draw from the global generator when it is made.
struct Linear : torch::nn::Module {
  Linear(std::int64_t in, std::int64_t out, bool with_bias);
  at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
  at::Tensor weight, bias;
};

// (x - mean) / sqrt(var + 1e-5) * weight over the last dimension, in fp32 or wider, whatever the type of x.
struct LayerNorm : torch::nn::Module {
  explicit LayerNorm(std::int64_t d);
  at::Tensor operator()(const at::Tensor& x) const;
  at::Tensor weight;
};

struct Embedding : torch::nn::Module {
  Embedding(std::int64_t states, std::int64_t d);
  at::Tensor operator()(const at::Tensor& ids) const { return at::embedding(embedding, ids); }
  at::Tensor embedding;
};

// d -> ratio d -> GELU(tanh) -> d; its members are called 0 and 2.
struct Mlp : torch::nn::Module {
  Mlp(std::int64_t d, std::int64_t ratio);
  at::Tensor operator()(const at::Tensor& x) const { return (*out)(at::gelu((*in)(x), "tanh")); }
  std::shared_ptr<Linear> in, out;
};

// 256 sinusoids of sigma, [cos, sin] of sigma 10000^(-i/128), then Linear, SiLU, Linear, and the SiLU that all adaLN share:
// sigma [...] -> [..., c]. In fp32 or wider.
struct TimeEmbedding : torch::nn::Module {
  explicit TimeEmbedding(std::int64_t c);
  at::Tensor operator()(const at::Tensor& sigma) const;
  std::shared_ptr<Linear> in, out;
};
at::Tensor sinusoids(const at::Tensor& sigma);

// Angles of the rotary positions: cos and sin [L, 1, h/2] of position times base^(-2i/h), h the width of a head.
struct Rotary {
  at::Tensor cos, sin;
  Rotary(std::int64_t length, std::int64_t head, double base, at::TensorOptions like);
  // x [B, L, H, h]: (x_i, x_{i+h/2}) turned by the angle i of its position; computed in the angles' type, returned in x's.
  at::Tensor operator()(const at::Tensor& x) const;
};

// Which keys a query sees: all, those up to its own position, or those of a mask [B, 1, L, L] (query, key).
struct Sight {
  bool causal = false;
  at::Tensor mask;
};

// softmax(q k^T / sqrt(h)) v, q k v [B, L, H, h] -> [B, L, H h].
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight);

// The dropout of one block in one pass: y with each element zero with probability p, the others over 1 - p. The two places
// of a block, after the attention and after the MLP, draw apart.
struct Dropout {
  double p = 0;
  std::uint64_t seed = 0;
  static Dropout of(const ModelConfig& config, const Pass& pass, std::uint64_t block);
  at::Tensor operator()(const at::Tensor& y, std::uint64_t place) const;
};

// One block: x [B, L, d], condition [B, 1 or L, c] or undefined:
//   x <- x + gate1 dropout(attn_out(attention(rotary(qkv(norm1(x) (1 + scale1) + shift1)))))
//   x <- x + gate2 dropout(mlp(norm2(x) (1 + scale2) + shift2))
// [shift1, scale1, gate1, shift2, scale2, gate2] = adaLN_modulation(condition); unconditioned: 0, 0, 1.
struct Block : torch::nn::Module {
  Block(const ModelConfig& config, bool conditioned);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& condition, const Rotary& rotary, const Sight& sight, const Dropout& dropout) const;
  std::int64_t heads;
  std::shared_ptr<LayerNorm> norm1, norm2;
  std::shared_ptr<Linear> attn_qkv, attn_out, adaLN_modulation;
  std::shared_ptr<Mlp> mlp;
};

// As a conditioned Block, but with keys and values of the content [B, L, d], and `sees` [B, L, 1] zero where a query sees nothing.
struct QueryBlock : torch::nn::Module {
  explicit QueryBlock(const ModelConfig& config);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& content, const at::Tensor& condition, const Rotary& rotary, const Sight& sight,
                     const at::Tensor& sees, const Dropout& dropout) const;
  std::int64_t heads;
  std::shared_ptr<LayerNorm> norm1, norm2;
  std::shared_ptr<Linear> attn_q, attn_kv, attn_out, adaLN_modulation;
  std::shared_ptr<Mlp> mlp;
};

// features: norm_final(x) (1 + scale) + shift; readout: linear, in fp32 or wider.
struct OutputLayer : torch::nn::Module {
  OutputLayer(const ModelConfig& config, bool conditioned);
  at::Tensor features(const at::Tensor& x, const at::Tensor& condition) const;
  at::Tensor readout(const at::Tensor& features) const;
  std::shared_ptr<LayerNorm> norm_final;
  std::shared_ptr<Linear> linear, adaLN_modulation;
};

// Fresh values for all parameters; see make_network.
void initialise(torch::nn::Module& module, std::uint64_t seed);

}  // namespace gdds::model
