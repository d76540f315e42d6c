// See judge.h.
#include "model/judge.h"

#include <torch/torch.h>

#include <cassert>
#include <functional>

#include "base/error.h"
#include "model/blocks.h"
#include "model/tensor_file.h"
#include "text/gguf.h"
#include "text/readers.h"

namespace gdds::model {
namespace {

constexpr std::int64_t kRows = 256;  // of logits at a time
constexpr std::int64_t kHead = 64;   // the width of a head in all sizes of GPT-2

using Size = std::uint64_t;
Size size(std::int64_t n) { return static_cast<Size>(n); }

// softmax over the positions up to one's own; q [B, L, H, h], k v [B, L, H', h] with H' dividing H -> [B, L, H h].
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const std::int64_t share = q.size(2) / k.size(2);  // query heads a key head
  const auto shared = [&](const at::Tensor& x) { return share == 1 ? x : x.repeat_interleave(share, 2); };
  return attention(q, shared(k), shared(v), {.causal = true, .mask = {}});
}

// Tensors that are neither read nor known to be of no use are a network that we would read wrongly.
void refuse_left_over(const TensorFile& file, const std::function<bool(const std::string&)>& is_useless) {
  for (const std::string& name : file.unread())
    if (!is_useless(name)) reject("{}: tensor '{}' belongs to another architecture", file.path(), one_line(name));
}

// ---- GPT-2 ------------------------------------------------------------------------------------------------------------

class Gpt2 final : public Judge {
 public:
  static std::unique_ptr<Gpt2> open(const TensorFile& file) {
    const std::string prefix = file.has("transformer.wte.weight") ? "transformer." : "";
    const h5::Shape embedding = file.shape(prefix + "wte.weight"), positions = file.shape(prefix + "wpe.weight");
    if (embedding.size() != 2 || positions.size() != 2 || embedding[1] == 0 || embedding[1] % kHead != 0 || embedding[1] > 1 << 16)
      reject("{}: tensor '{}wte.weight' is {}; expected a matrix of rows of heads of {}", file.path(), prefix, h5::shape_text(embedding), kHead);
    JudgeShape shape;
    shape.arch = "gpt2";
    shape.tokens = static_cast<std::int64_t>(embedding[0]);
    shape.d = static_cast<std::int64_t>(embedding[1]);
    shape.heads = shape.key_heads = shape.d / kHead;
    shape.context = static_cast<std::int64_t>(positions[0]);
    while (file.has(fmt::format("{}h.{}.ln_1.weight", prefix, shape.blocks))) ++shape.blocks;
    return std::unique_ptr<Gpt2>(new Gpt2(shape, file, prefix));
  }

  void to(at::Device device) override {
    wte_ = wte_.to(device), wpe_ = wpe_.to(device);
    norm_.to(device);
    for (Block& block : blocks_) {
      block.norm1.to(device), block.norm2.to(device);
      for (Affine* part : {&block.qkv, &block.out, &block.widen, &block.narrow}) part->to(device);
    }
  }

 protected:
  at::Tensor features(const at::Tensor& ids) const override {
    at::Tensor x = at::embedding(wte_, ids) + wpe_.narrow(0, 0, ids.size(1));
    for (const Block& block : blocks_) {
      const auto qkv = block.qkv(block.norm1.normalised(x)).unflatten(-1, {3, shape().heads, kHead}).unbind(2);
      x = x + block.out(causal_attention(qkv[0], qkv[1], qkv[2]));
      x = x + block.narrow(at::gelu(block.widen(block.norm2.normalised(x)), "tanh"));
    }
    return norm_.normalised(x);
  }
  at::Tensor readout(const at::Tensor& features) const override { return at::linear(features, wte_); }

 private:
  // x W + b, W stored [in, out]; as a norm, weight and bias.
  struct Affine {
    at::Tensor weight, bias;
    at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight.t(), bias); }
    at::Tensor normalised(const at::Tensor& x) const { return at::layer_norm(x, weight.sizes(), weight, bias, 1e-5); }
    void to(at::Device device) { weight = weight.to(device), bias = bias.to(device); }
  };
  struct Block {
    Affine norm1, qkv, out, norm2, widen, narrow;
  };

  Gpt2(const JudgeShape& shape, const TensorFile& file, const std::string& prefix) : Judge(shape) {
    const Size d = size(shape.d);
    const auto affine = [&](const std::string& name, Size in, Size out) {
      return Affine{file.read(prefix + name + ".weight", {in, out}), file.read(prefix + name + ".bias", {out})};
    };
    const auto norm = [&](const std::string& name) { return Affine{file.read(prefix + name + ".weight", {d}), file.read(prefix + name + ".bias", {d})}; };
    wte_ = file.read(prefix + "wte.weight", {size(shape.tokens), d});
    wpe_ = file.read(prefix + "wpe.weight", {size(shape.context), d});
    for (std::int64_t n = 0; n < shape.blocks; ++n) {
      const std::string h = fmt::format("h.{}.", n);
      blocks_.push_back({norm(h + "ln_1"), affine(h + "attn.c_attn", d, 3 * d), affine(h + "attn.c_proj", d, d), norm(h + "ln_2"),
                         affine(h + "mlp.c_fc", d, 4 * d), affine(h + "mlp.c_proj", 4 * d, d)});
    }
    norm_ = norm("ln_f");
    // The masks of the attention are buffers; a head beside the embedding is the embedding again.
    refuse_left_over(file, [](const std::string& name) { return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name == "lm_head.weight"; });
    if (file.has("lm_head.weight") && !at::equal(file.read("lm_head.weight", {size(shape.tokens), d}), wte_))
      reject("{}: tensor 'lm_head.weight' differs from the embedding; in GPT-2 they are one", file.path());
  }

  at::Tensor wte_, wpe_;
  std::vector<Block> blocks_;
  Affine norm_;
};

// ---- Llama ------------------------------------------------------------------------------------------------------------

// The keys of a GGUF header, checked.
class Keys {
 public:
  explicit Keys(const TensorFile& file) : file_(file.path()), gguf_(text::parse_gguf(file.bytes(), file.bytes().size(), file.path())) {}

  std::int64_t integer(const std::string& name, std::int64_t otherwise, std::int64_t high) const {
    const auto found = gguf_.values.find(name);
    if (found == gguf_.values.end() && otherwise > 0) return otherwise;
    std::int64_t value = 0;
    if (found == gguf_.values.end()) reject("{}: key '{}' is missing", file_, name);
    if (const auto* number = std::get_if<std::uint64_t>(&found->second)) value = *number > size(high) ? 0 : static_cast<std::int64_t>(*number);
    if (const auto* number = std::get_if<std::int64_t>(&found->second)) value = *number;
    if (value < 1 || value > high) reject("{}: key '{}': expected a whole number from 1 to {}", file_, name, high);
    return value;
  }
  double real(const std::string& name, double otherwise, double low, double high) const {
    const auto found = gguf_.values.find(name);
    if (found == gguf_.values.end()) return otherwise;
    const auto* const number = std::get_if<double>(&found->second);
    if (number == nullptr || !(*number >= low && *number <= high)) reject("{}: key '{}': expected a number from {} to {}", file_, name, low, high);
    return *number;
  }
  std::string word(const std::string& name) const {
    const auto found = gguf_.values.find(name);
    const auto* const text = found == gguf_.values.end() ? nullptr : std::get_if<std::string_view>(&found->second);
    return text == nullptr ? "" : std::string(*text);
  }

 private:
  std::string file_;
  text::Gguf gguf_;
};

class Llama final : public Judge {
 public:
  static std::unique_ptr<Llama> open(const TensorFile& file) {
    const Keys keys(file);
    if (const std::string arch = keys.word("general.architecture"); arch != "llama")
      reject("{}: architecture '{}'; expected llama", file.path(), one_line(arch));
    JudgeShape shape;
    shape.arch = "llama";
    shape.d = keys.integer("llama.embedding_length", 0, 1 << 16);
    shape.blocks = keys.integer("llama.block_count", 0, 1024);
    shape.heads = keys.integer("llama.attention.head_count", 0, 1 << 12);
    shape.key_heads = keys.integer("llama.attention.head_count_kv", shape.heads, 1 << 12);
    shape.context = keys.integer("llama.context_length", 0, 1 << 24);
    const h5::Shape embedding = file.shape("token_embd.weight");
    shape.tokens = embedding.size() == 2 ? static_cast<std::int64_t>(embedding[0]) : 0;
    if (shape.d % shape.heads != 0 || shape.heads % shape.key_heads != 0 || shape.d / shape.heads % 2 != 0)
      reject("{}: a width of {} for {} heads and {} key heads", file.path(), shape.d, shape.heads, shape.key_heads);
    // Variants that are told by keys alone.
    const std::int64_t head = shape.d / shape.heads;
    for (const char* key : {"llama.rope.dimension_count", "llama.attention.key_length", "llama.attention.value_length"})
      if (const std::int64_t found = keys.integer(key, head, 1 << 16); found != head) reject("{}: key '{}': expected {}, found {}", file.path(), key, head, found);
    if (const std::string scaling = keys.word("llama.rope.scaling.type"); !scaling.empty() && scaling != "none")
      reject("{}: rotary positions scaled by '{}', which is not known here", file.path(), one_line(scaling));
    return std::unique_ptr<Llama>(new Llama(shape, file, keys));
  }

  void to(at::Device device) override {
    for (at::Tensor* part : {&embedding_, &norm_, &output_}) *part = part->to(device);
    for (Block& b : blocks_)
      for (at::Tensor* part : {&b.norm1, &b.q, &b.k, &b.v, &b.out, &b.norm2, &b.gate, &b.up, &b.down}) *part = part->to(device);
  }

 protected:
  at::Tensor features(const at::Tensor& ids) const override {
    const std::int64_t head = shape().d / shape().heads;
    const Rotary angles(ids.size(1), head, base_, embedding_.options());
    // (x_2i, x_2i+1) turned by the angle i of its position.
    const auto turned = [&](const at::Tensor& x) {
      const auto pair = x.unflatten(-1, {head / 2, 2}).unbind(-1);
      return at::stack({pair[0] * angles.cos - pair[1] * angles.sin, pair[0] * angles.sin + pair[1] * angles.cos}, -1).flatten(-2);
    };
    const auto heads = [&](const at::Tensor& x) { return x.unflatten(-1, {-1, head}); };
    at::Tensor x = at::embedding(embedding_, ids);
    for (const Block& b : blocks_) {
      at::Tensor y = normalised(x, b.norm1);
      y = causal_attention(turned(heads(at::linear(y, b.q))), turned(heads(at::linear(y, b.k))), heads(at::linear(y, b.v)));
      x = x + at::linear(y, b.out);
      y = normalised(x, b.norm2);
      x = x + at::linear(at::silu(at::linear(y, b.gate)) * at::linear(y, b.up), b.down);
    }
    return normalised(x, norm_);
  }
  at::Tensor readout(const at::Tensor& features) const override { return at::linear(features, output_); }

 private:
  struct Block {
    at::Tensor norm1, q, k, v, out, norm2, gate, up, down;
  };

  Llama(const JudgeShape& shape, const TensorFile& file, const Keys& keys) : Judge(shape) {
    const Size d = size(shape.d), keyed = size(shape.d / shape.heads * shape.key_heads), wide = size(keys.integer("llama.feed_forward_length", 0, 1 << 20));
    base_ = keys.real("llama.rope.freq_base", 10000, 1.001, 1e12);
    epsilon_ = keys.real("llama.attention.layer_norm_rms_epsilon", 1e-5, 0, 1);
    embedding_ = file.read("token_embd.weight", {size(shape.tokens), d});
    for (std::int64_t n = 0; n < shape.blocks; ++n) {
      const auto part = [&](const char* name, const h5::Shape& expected) { return file.read(fmt::format("blk.{}.{}.weight", n, name), expected); };
      blocks_.push_back({part("attn_norm", {d}), part("attn_q", {d, d}), part("attn_k", {keyed, d}), part("attn_v", {keyed, d}), part("attn_output", {d, d}),
                         part("ffn_norm", {d}), part("ffn_gate", {wide, d}), part("ffn_up", {wide, d}), part("ffn_down", {d, wide})});
    }
    norm_ = file.read("output_norm.weight", {d});
    output_ = file.has("output.weight") ? file.read("output.weight", {size(shape.tokens), d}) : embedding_;
    refuse_left_over(file, [](const std::string&) { return false; });
  }

  // x / sqrt(mean x^2 + epsilon) weight
  at::Tensor normalised(const at::Tensor& x, const at::Tensor& weight) const { return x * at::rsqrt(x.square().mean(-1, true) + epsilon_) * weight; }

  double base_ = 0, epsilon_ = 0;
  at::Tensor embedding_, norm_, output_;
  std::vector<Block> blocks_;
};

}  // namespace

Judge::~Judge() = default;

at::Tensor Judge::logits(const at::Tensor& ids) const {
  assert(ids.dim() == 2 && ids.size(1) <= context());
  const at::NoGradGuard guard;
  return readout(features(ids));
}

at::Tensor Judge::log_likelihoods(const at::Tensor& ids) const {
  assert(ids.dim() == 2 && ids.size(1) >= 1 && ids.size(1) <= context());
  const at::NoGradGuard guard;
  const std::int64_t scored = ids.size(1) - 1;
  const at::Tensor rows = features(ids).narrow(1, 0, scored).flatten(0, 1);
  const at::Tensor targets = ids.narrow(1, 1, scored).flatten();
  const at::Tensor result = at::empty({rows.size(0)}, rows.options());
  for (std::int64_t at = 0; at < rows.size(0); at += kRows) {
    const std::int64_t count = std::min(kRows, rows.size(0) - at);
    const at::Tensor logits = readout(rows.narrow(0, at, count));
    const at::Tensor chosen = logits.gather(1, targets.narrow(0, at, count).unsqueeze(1)).squeeze(1);
    result.narrow(0, at, count).copy_(chosen - logits.logsumexp(1));
  }
  return result.view({ids.size(0), scored});
}

std::unique_ptr<Judge> open_judge(const std::string& path, const std::string& vocabulary, std::vector<h5::Source>& sources) {
  const TensorFile file(path);
  std::unique_ptr<Judge> judge;
  if (file.is_gguf()) judge = Llama::open(file);
  else judge = Gpt2::open(file);
  sources.push_back(file.source());
  if (!vocabulary.empty()) judge->vocabulary_ = text::open_vocabulary(vocabulary, sources);
  else if (file.is_gguf() && !Keys(file).word("tokenizer.ggml.model").empty()) judge->vocabulary_ = text::read_gguf_vocabulary(file.bytes(), path);
  if (judge->vocabulary_ && judge->vocabulary_->size() != judge->shape().tokens)
    reject("{}: a model of {} tokens, but the vocabulary '{}' has {}", path, judge->shape().tokens, one_line(judge->vocabulary_->name), judge->vocabulary_->size());
  return judge;
}

}  // namespace gdds::model
