// See network.h: ddit and ar, of the blocks of blocks.h.
#include "model/network.h"

#include <cassert>

#include "model/autocast.h"
#include "model/blocks.h"
#include "model/recompute.h"
#include "model/two_stream.h"

namespace gdds::model {
namespace {

struct Ddit : torch::nn::Module {
  explicit Ddit(const ModelConfig& config) {
    const bool conditioned = config.arch == Arch::ddit;
    vocab_embed = register_module("vocab_embed", std::make_shared<Embedding>(config.states, config.d));
    if (conditioned) sigma_map = register_module("sigma_map", std::make_shared<TimeEmbedding>(config.conditioning));
    const auto list = register_module("blocks", std::make_shared<torch::nn::ModuleListImpl>());
    for (std::int64_t n = 0; n < config.blocks; ++n) list->push_back(blocks.emplace_back(std::make_shared<Block>(config, conditioned)));
    output_layer = register_module("output_layer", std::make_shared<OutputLayer>(config, conditioned));
  }
  std::shared_ptr<Embedding> vocab_embed;
  std::shared_ptr<TimeEmbedding> sigma_map;
  std::vector<std::shared_ptr<Block>> blocks;
  std::shared_ptr<OutputLayer> output_layer;
};

class DditNetwork final : public Network {
 public:
  DditNetwork(const ModelConfig& config, std::shared_ptr<Ddit> net) : Network(config, net), net_(std::move(net)) {}

  at::Tensor features(const at::Tensor& ids, const at::Tensor& sigma, const Pass& pass) const override {
    assert(ids.dim() == 2 && ids.size(1) <= config().length);
    at::Tensor x = (*net_->vocab_embed)(ids);  // [B, L, d]
    at::Tensor condition;                      // [B, 1, c]
    if (net_->sigma_map) {
      assert(sigma.dim() == 1 && sigma.size(0) == ids.size(0));
      condition = (*net_->sigma_map)(config().time_conditioning ? sigma : at::zeros_like(sigma)).unsqueeze(1);
    }
    const Rotary rotary(ids.size(1), config().d / config().heads, config().rotary_base, x.options());
    const Sight sight = {.causal = config().arch == Arch::ar, .mask = {}};
    for (std::size_t n = 0; n < net_->blocks.size(); ++n) {
      const auto run = [block = net_->blocks[n], rotary, sight, dropout = Dropout::of(config(), pass, n)](const std::vector<at::Tensor>& in) {
        return block->forward(in[0], in.size() > 1 ? in[1] : at::Tensor(), rotary, sight, dropout);
      };
      std::vector<at::Tensor> inputs = {x};
      if (condition.defined()) inputs.push_back(condition);
      x = pass.recompute ? recomputed(run, inputs, net_->blocks[n]->parameters()) : run(inputs);
    }
    return net_->output_layer->features(x, condition);
  }

  at::Tensor readout(const at::Tensor& features) const override { return net_->output_layer->readout(features); }
  Output output() const override { return {net_->output_layer->linear->weight, net_->output_layer->linear->bias}; }

 private:
  std::shared_ptr<Ddit> net_;
};

}  // namespace

Model::Model(ModelConfig config, std::shared_ptr<torch::nn::Module> module) : config_(config), module_(std::move(module)) {}
Model::~Model() = default;

std::vector<Parameter> Model::parameters() const {
  std::vector<Parameter> all;
  for (const auto& item : module_->named_parameters()) all.push_back({item.key(), item.value()});
  return all;
}

void Model::to(at::Device device) { module_->to(device); }
void Model::to(at::ScalarType type) { module_->to(type); }

at::Tensor Network::logits(const at::Tensor& ids, const at::Tensor& sigma, const Pass& pass) const {
  const Autocast cast(ids.device().type(), pass.bf16 ? at::kBFloat16 : Autocast::current(ids.device().type()));
  return readout(features(ids, sigma, pass));
}

std::unique_ptr<Network> make_network(const ModelConfig& config, std::uint64_t seed) {
  assert(config.fault().empty() && config.arch != Arch::two_stream);
  auto net = std::make_shared<Ddit>(config);
  initialise(*net, seed);
  return std::make_unique<DditNetwork>(config, std::move(net));
}

std::unique_ptr<Model> make_model(const ModelConfig& config, std::uint64_t seed) {
  if (config.arch == Arch::two_stream) return make_two_stream(config, seed);
  return make_network(config, seed);
}

}  // namespace gdds::model
