// See blocks.h.
#include "model/blocks.h"

#include <cmath>

#include "base/hash.h"
#include "base/seed.h"
#include "model/autocast.h"

namespace gdds::model {
namespace {

// fp32 for what is narrower, else the type itself.
at::ScalarType at_least_float(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

// The rotation is linear and its transpose is the rotation back, so the backward pass needs the angles and nothing else.
struct Turned : torch::autograd::Function<Turned> {
  static at::Tensor turn(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, double direction) {
    const auto parts = x.to(cos.scalar_type()).chunk(2, -1);
    at::Tensor y = at::empty(x.sizes(), cos.options());
    const auto turned = y.chunk(2, -1);
    at::Tensor first = turned[0], second = turned[1];
    at::mul_out(first, parts[0], cos).addcmul_(parts[1], sin, -direction);
    at::mul_out(second, parts[1], cos).addcmul_(parts[0], sin, direction);
    return y.to(x.scalar_type());
  }
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return turn(x, cos, sin, 1);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    return {turn(gradients[0], saved[0], saved[1], -1), at::Tensor(), at::Tensor()};
  }
};

// [shift, scale, gate, ...] of a block or the output, each [B, 1 or L, d], in the type of the residual stream.
std::vector<at::Tensor> modulation(const Linear& linear, const at::Tensor& condition, std::int64_t parts, at::ScalarType type) {
  return linear(condition).to(type).chunk(parts, -1);
}

// y (1 + scale) + shift
at::Tensor modulated(const at::Tensor& y, const at::Tensor& shift, const at::Tensor& scale) { return at::addcmul(shift, y, 1 + scale); }

// x + gate y; without a gate x + y.
at::Tensor added(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y) {
  const at::Tensor wide = y.to(x.scalar_type());
  return gate.defined() ? at::addcmul(x, gate, wide) : x + wide;
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias) {
  weight = register_parameter("weight", at::empty({out, in}));
  if (with_bias) bias = register_parameter("bias", at::empty({out}));
}

LayerNorm::LayerNorm(std::int64_t d) { weight = register_parameter("weight", at::empty({d})); }

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  const at::ScalarType wide = at_least_float(x.scalar_type());
  return at::layer_norm(x.to(wide), weight.sizes(), weight.to(wide), {}, 1e-5).to(weight.scalar_type());
}

Embedding::Embedding(std::int64_t states, std::int64_t d) { embedding = register_parameter("embedding", at::empty({states, d})); }

Mlp::Mlp(std::int64_t d, std::int64_t ratio)
    : in(register_module("0", std::make_shared<Linear>(d, ratio * d, true))), out(register_module("2", std::make_shared<Linear>(ratio * d, d, true))) {}

TimeEmbedding::TimeEmbedding(std::int64_t c) {
  const auto mlp = register_module("mlp", std::make_shared<torch::nn::Module>());
  in = mlp->register_module("0", std::make_shared<Linear>(256, c, true));
  out = mlp->register_module("2", std::make_shared<Linear>(c, c, true));
}

at::Tensor sinusoids(const at::Tensor& sigma) {
  const at::Tensor wide = sigma.to(at_least_float(sigma.scalar_type()));
  const at::Tensor frequencies = at::exp(at::arange(128, wide.options()) * (-std::log(10000.0) / 128));
  const at::Tensor angles = wide.unsqueeze(-1) * frequencies;
  return at::cat({angles.cos(), angles.sin()}, -1);
}

at::Tensor TimeEmbedding::operator()(const at::Tensor& sigma) const {
  const Autocast off(sigma.device().type(), at::kFloat);
  return at::silu((*out)(at::silu((*in)(sinusoids(sigma).to(in->weight.scalar_type())))));
}

Rotary::Rotary(std::int64_t length, std::int64_t head, double base, at::TensorOptions like) {
  const auto options = like.dtype(at_least_float(c10::typeMetaToScalarType(like.dtype())));
  const at::Tensor frequencies = at::pow(base, at::arange(0, head, 2, options) / static_cast<double>(head)).reciprocal();
  const at::Tensor angles = at::arange(length, options).unsqueeze(1) * frequencies;
  cos = angles.cos().unsqueeze(1);
  sin = angles.sin().unsqueeze(1);
}

at::Tensor Rotary::operator()(const at::Tensor& x) const { return Turned::apply(x, cos, sin); }

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight) {
  std::optional<at::Tensor> mask;
  if (sight.mask.defined()) mask = sight.mask;
  const at::Tensor y = at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask, 0.0, sight.causal);
  return y.transpose(1, 2).flatten(2);
}

Dropout Dropout::of(const ModelConfig& config, const Pass& pass, std::uint64_t block) { return {pass.dropout ? config.dropout : 0, mixed(pass.seed, block)}; }

at::Tensor Dropout::operator()(const at::Tensor& y, std::uint64_t place) const {
  if (p == 0) return y;
  at::Generator generator = at::globalContext().defaultGenerator(y.device()).clone();
  generator.set_current_seed(mixed(seed, place));
  const at::Tensor kept = at::empty(y.sizes(), y.options().dtype(at::kBool)).bernoulli_(1 - p, generator);
  return at::native_dropout_backward(y, kept, 1 / (1 - p));  // y kept / (1 - p), in one kernel; dropout is its own transpose
}

Block::Block(const ModelConfig& config, bool conditioned) : heads(config.heads) {
  const std::int64_t d = config.d;
  norm1 = register_module("norm1", std::make_shared<LayerNorm>(d));
  attn_qkv = register_module("attn_qkv", std::make_shared<Linear>(d, 3 * d, false));
  attn_out = register_module("attn_out", std::make_shared<Linear>(d, d, false));
  norm2 = register_module("norm2", std::make_shared<LayerNorm>(d));
  mlp = register_module("mlp", std::make_shared<Mlp>(d, config.mlp_ratio));
  if (conditioned) adaLN_modulation = register_module("adaLN_modulation", std::make_shared<Linear>(config.conditioning, 6 * d, true));
}

at::Tensor Block::forward(const at::Tensor& x, const at::Tensor& condition, const Rotary& rotary, const Sight& sight, const Dropout& dropout) const {
  std::vector<at::Tensor> part(6);
  if (adaLN_modulation) part = modulation(*adaLN_modulation, condition, 6, x.scalar_type());

  at::Tensor y = (*norm1)(x);
  if (adaLN_modulation) y = modulated(y, part[0], part[1]);
  const auto qkv = (*attn_qkv)(y).unflatten(-1, {3, heads, -1}).unbind(2);  // each [B, L, H, h]
  y = attention(rotary(qkv[0]), rotary(qkv[1]), qkv[2], sight);
  const at::Tensor middle = added(x, part[2], dropout((*attn_out)(y), 0));

  y = (*norm2)(middle);
  if (adaLN_modulation) y = modulated(y, part[3], part[4]);
  return added(middle, part[5], dropout((*mlp)(y), 1));
}

QueryBlock::QueryBlock(const ModelConfig& config) : heads(config.heads) {
  const std::int64_t d = config.d;
  norm1 = register_module("norm1", std::make_shared<LayerNorm>(d));
  attn_q = register_module("attn_q", std::make_shared<Linear>(d, d, false));
  attn_kv = register_module("attn_kv", std::make_shared<Linear>(d, 2 * d, false));
  attn_out = register_module("attn_out", std::make_shared<Linear>(d, d, false));
  norm2 = register_module("norm2", std::make_shared<LayerNorm>(d));
  mlp = register_module("mlp", std::make_shared<Mlp>(d, config.mlp_ratio));
  adaLN_modulation = register_module("adaLN_modulation", std::make_shared<Linear>(config.conditioning, 6 * d, true));
}

at::Tensor QueryBlock::forward(const at::Tensor& x, const at::Tensor& content, const at::Tensor& condition, const Rotary& rotary, const Sight& sight,
                               const at::Tensor& sees, const Dropout& dropout) const {
  const auto part = modulation(*adaLN_modulation, condition, 6, x.scalar_type());
  const at::Tensor q = (*attn_q)(modulated((*norm1)(x), part[0], part[1])).unflatten(-1, {heads, -1});
  const auto kv = (*attn_kv)(content).unflatten(-1, {2, heads, -1}).unbind(2);
  const at::Tensor y = attention(rotary(q), rotary(kv[0]), kv[1], sight);
  const at::Tensor middle = added(x, part[2], dropout((*attn_out)(y * sees.to(y.scalar_type())), 0));
  return added(middle, part[5], dropout((*mlp)(modulated((*norm2)(middle), part[3], part[4])), 1));
}

OutputLayer::OutputLayer(const ModelConfig& config, bool conditioned) {
  norm_final = register_module("norm_final", std::make_shared<LayerNorm>(config.d));
  linear = register_module("linear", std::make_shared<Linear>(config.d, config.m, true));
  if (conditioned) adaLN_modulation = register_module("adaLN_modulation", std::make_shared<Linear>(config.conditioning, 2 * config.d, true));
}

at::Tensor OutputLayer::features(const at::Tensor& x, const at::Tensor& condition) const {
  const at::Tensor y = (*norm_final)(x);
  if (!adaLN_modulation) return y;
  const auto part = modulation(*adaLN_modulation, condition, 2, x.scalar_type());
  return modulated(y, part[0], part[1]);
}

at::Tensor OutputLayer::readout(const at::Tensor& features) const {
  const at::Tensor y = (*linear)(features);
  return y.to(at_least_float(y.scalar_type()));
}

void initialise(torch::nn::Module& module, std::uint64_t seed) {
  const torch::NoGradGuard no_gradients;
  const auto all = module.named_parameters();
  for (const auto& item : all) {
    const std::string& name = item.key();
    at::Tensor value = item.value();
    const auto is_part_of = [&](const char* part) { return name.find(part) != std::string::npos; };
    const bool is_bias = name.ends_with("bias");
    if (is_part_of("adaLN_modulation.") || is_part_of("output_layer.linear.")) {
      value.zero_();
    } else if (value.dim() == 1 && !is_bias) {
      value.fill_(1);
    } else {
      const at::Tensor weight = is_bias ? all[name.substr(0, name.size() - 4) + "weight"] : value;
      const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
      // One generator a parameter. uniform_ draws one number after the other, whatever the threads; normal_ would not.
      const std::string hash = hash_hex(std::to_string(seed) + " " + name);
      value.uniform_(-bound, bound, at::detail::createCPUGenerator(std::stoull(hash.substr(0, 8), nullptr, 16)));
    }
  }
}

}  // namespace gdds::model
