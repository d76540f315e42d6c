// The networks, seen from outside: parameters by the names of the public DDiT checkpoints (INTEROP), and logits. Nothing in
// a network has a state but its parameters: dropout is off unless the pass asks for it and comes from the seed of the pass,
// so a step of training can be repeated, resumed and recomputed. LibTorch's full header is not needed here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/config.h"

namespace torch::nn {
class Module;
}

namespace gdds::model {

// How a forward pass is made. Evaluation: as it stands.
struct Pass {
  bool dropout = false;
  std::uint64_t seed = 0;  // of the dropout: another one each step and micro-batch
  bool recompute = false;  // keep only what goes into each block, and run the block again in the backward pass: less memory, a third more time
  bool bf16 = false;       // the network alone under autocast: what is made of its logits stays in fp32
};

struct Parameter {
  std::string name;  // "blocks.0.attn_qkv.weight"
  at::Tensor value;  // a leaf that asks for its gradient; shares its memory with the network
};

// logits = features weight^T + bias.
struct Output {
  at::Tensor weight, bias;  // [m, d], [m]
};

// Parameters of some shape: what an optimiser, an average and a checkpoint need to know.
class Model {
 public:
  virtual ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const { return config_; }
  // In the order of the network, each once.
  std::vector<Parameter> parameters() const;
  // Moves or converts the parameters in place: what parameters() gave follows.
  void to(at::Device device);
  void to(at::ScalarType type);
  torch::nn::Module& module() const { return *module_; }
  virtual Output output() const = 0;

 protected:
  Model(ModelConfig config, std::shared_ptr<torch::nn::Module> module);

 private:
  ModelConfig config_;
  std::shared_ptr<torch::nn::Module> module_;
};

// ddit and ar. Under autocast to bf16 the matrix products are in bf16, that of the logits too, which are widened; the residual
// stream, norms, rotary angles and time embedding stay in fp32.
class Network : public Model {
 public:
  // ids [B, L] int64, below states; sigma [B] = -log alpha_t (ddit; ar ignores it, an undefined tensor will do).
  // Logits [B, L, m] in fp32 (in the parameters' type where that is wider); ar: position l is for the token l+1 and sees ids 0..l.
  at::Tensor logits(const at::Tensor& ids, const at::Tensor& sigma, const Pass& pass = {}) const;

  // The same in two halves, for those who need the logits of some positions only, or a few at a time:
  // logits = readout(features), features [B, L, d] after the last norm, readout of any [..., d]. These two are in the
  // precision of the scope; pass.bf16 means nothing to them.
  virtual at::Tensor features(const at::Tensor& ids, const at::Tensor& sigma, const Pass& pass = {}) const = 0;
  virtual at::Tensor readout(const at::Tensor& features) const = 0;

 protected:
  using Model::Model;
};

// A network with fresh parameters on the CPU. Each parameter depends on the seed, its name and its shape, and on nothing
// else: not on threads, nor on the other parameters. Linear maps and embedding: uniform within 1/sqrt(inputs); norms: one;
// adaLN and the output: zero, so that all logits are equal at first. The config is valid, and of ddit or ar.
std::unique_ptr<Network> make_network(const ModelConfig& config, std::uint64_t seed);

// Of any architecture.
std::unique_ptr<Model> make_model(const ModelConfig& config, std::uint64_t seed);

}  // namespace gdds::model
