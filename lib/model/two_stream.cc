// See two_stream.h.
#include "model/two_stream.h"

#include <cassert>

#include "model/autocast.h"
#include "model/blocks.h"
#include "model/recompute.h"

namespace gdds::model {
namespace {

struct Streams : torch::nn::Module {
  explicit Streams(const ModelConfig& config) {
    vocab_embed = register_module("vocab_embed", std::make_shared<Embedding>(config.states, config.d));
    sigma_map = register_module("sigma_map", std::make_shared<TimeEmbedding>(config.conditioning));
    const auto contents = register_module("content", std::make_shared<torch::nn::ModuleListImpl>());
    for (std::int64_t n = 0; n < config.blocks / 2; ++n) contents->push_back(content.emplace_back(std::make_shared<Block>(config, false)));
    content_norm = register_module("content_norm", std::make_shared<LayerNorm>(config.d));
    const auto queries = register_module("blocks", std::make_shared<torch::nn::ModuleListImpl>());
    for (std::int64_t n = 0; n < config.blocks / 2; ++n) queries->push_back(blocks.emplace_back(std::make_shared<QueryBlock>(config)));
    output_layer = register_module("output_layer", std::make_shared<OutputLayer>(config, true));
  }
  std::shared_ptr<Embedding> vocab_embed;
  std::shared_ptr<TimeEmbedding> sigma_map;
  std::vector<std::shared_ptr<Block>> content;
  std::shared_ptr<LayerNorm> content_norm;
  std::vector<std::shared_ptr<QueryBlock>> blocks;
  std::shared_ptr<OutputLayer> output_layer;
};

class StreamNetwork final : public TwoStream {
 public:
  StreamNetwork(const ModelConfig& config, std::shared_ptr<Streams> net) : TwoStream(config, net), net_(std::move(net)) {}

  at::Tensor features(const at::Tensor& x0, const at::Tensor& z, const at::Tensor& ranks, const at::Tensor& sigma, const Pass& pass) const override {
    assert(x0.dim() == 2 && x0.size(1) <= config().length && z.sizes() == x0.sizes() && ranks.sizes() == x0.sizes() && sigma.sizes() == x0.sizes());
    at::Tensor content = (*net_->vocab_embed)(x0);
    const Rotary rotary(x0.size(1), config().d / config().heads, config().rotary_base, content.options());

    const at::Tensor of_query = ranks.unsqueeze(2), of_key = ranks.unsqueeze(1);  // [B, L, 1], [B, 1, L]
    const Sight up_to_itself = {.causal = false, .mask = (of_key <= of_query).unsqueeze(1)};
    // A softmax over no keys is not a number: rank 0 is let see everything, and what it saw is taken times zero.
    const Sight before_itself = {.causal = false, .mask = ((of_key < of_query) | (of_query == 0)).unsqueeze(1)};
    const at::Tensor sees = of_query > 0;

    std::size_t site = 0;
    for (const auto& block : net_->content) {
      const auto run = [block, rotary, up_to_itself, dropout = Dropout::of(config(), pass, site++)](const std::vector<at::Tensor>& in) {
        return block->forward(in[0], at::Tensor(), rotary, up_to_itself, dropout);
      };
      content = pass.recompute ? recomputed(run, {content}, block->parameters()) : run({content});
    }
    content = (*net_->content_norm)(content);

    at::Tensor x = (*net_->vocab_embed)(z);
    const at::Tensor condition = (*net_->sigma_map)(config().time_conditioning ? sigma : at::zeros_like(sigma));  // [B, L, c]
    for (const auto& block : net_->blocks) {
      const auto run = [block, rotary, before_itself, sees, dropout = Dropout::of(config(), pass, site++)](const std::vector<at::Tensor>& in) {
        return block->forward(in[0], in[1], in[2], rotary, before_itself, sees, dropout);
      };
      x = pass.recompute ? recomputed(run, {x, content, condition}, block->parameters()) : run({x, content, condition});
    }
    return net_->output_layer->features(x, condition);
  }

  at::Tensor readout(const at::Tensor& features) const override { return net_->output_layer->readout(features); }
  Output output() const override { return {net_->output_layer->linear->weight, net_->output_layer->linear->bias}; }

 private:
  std::shared_ptr<Streams> net_;
};

}  // namespace

at::Tensor TwoStream::logits(const at::Tensor& x0, const at::Tensor& z, const at::Tensor& ranks, const at::Tensor& sigma, const Pass& pass) const {
  const Autocast cast(x0.device().type(), pass.bf16 ? at::kBFloat16 : Autocast::current(x0.device().type()));
  return readout(features(x0, z, ranks, sigma, pass));
}

std::unique_ptr<TwoStream> make_two_stream(const ModelConfig& config, std::uint64_t seed) {
  assert(config.fault().empty() && config.arch == Arch::two_stream);
  auto net = std::make_shared<Streams>(config);
  initialise(*net, seed);
  return std::make_unique<StreamNetwork>(config, std::move(net));
}

at::Tensor ranks_of_times(const at::Tensor& times) {
  const at::Tensor order = at::argsort(times, /*stable=*/true, /*dim=*/1, /*descending=*/true);  // the position of each rank
  return at::argsort(order, /*stable=*/true, /*dim=*/1, /*descending=*/false);                   // its inverse
}

}  // namespace gdds::model
