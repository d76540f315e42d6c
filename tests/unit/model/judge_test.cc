// Judges against plain loops over doubles, written from INTEROP and not from the code, on small random networks in files that
// the test writes byte by byte; and the real SmolLM2, which knows English from its words in another order.
#include <torch/torch.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "h5/types.h"
#include "model/judge.h"
#include "support/folder.h"
#include "text/encoder.h"

namespace gdds::model {
namespace {

using test::error_of;
using test::Folder;
using Row = std::vector<double>;
using Rows = std::vector<Row>;

struct Weight {
  std::vector<std::uint64_t> shape;  // slowest first
  std::vector<float> values;
  double at(std::size_t i, std::size_t j) const { return values[i * shape.back() + j]; }
};
using Weights = std::map<std::string, Weight>;

// ---- files ------------------------------------------------------------------------------------------------------------

template <typename T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string bytes_of(const std::vector<float>& values) { return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}; }

std::string safetensors(const Weights& weights) {
  std::string header, data;
  for (const auto& [name, weight] : weights) {
    const std::size_t begin = data.size();
    data += bytes_of(weight.values);
    header += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})", header.empty() ? "{" : ",", name, fmt::join(weight.shape, ","), begin, data.size());
  }
  header += "}";
  return bytes_of(std::uint64_t{header.size()}) + header + data;
}

std::string gguf_text(const std::string& text) { return bytes_of(std::uint64_t{text.size()}) + text; }
std::string key(const std::string& name, std::uint32_t value) { return gguf_text(name) + bytes_of(std::uint32_t{4}) + bytes_of(value); }
std::string key(const std::string& name, float value) { return gguf_text(name) + bytes_of(std::uint32_t{6}) + bytes_of(value); }
std::string key(const std::string& name, const std::string& value) { return gguf_text(name) + bytes_of(std::uint32_t{8}) + gguf_text(value); }

// Q8_0: blocks of 32, an f16 scale and 32 signed bytes. The weight takes the values that the file says.
std::string quantised(Weight& weight) {
  std::string bytes;
  for (std::size_t at = 0; at < weight.values.size(); at += 32) {
    float most = 0;
    for (std::size_t i = 0; i < 32; ++i) most = std::max(most, std::abs(weight.values[at + i]));
    const std::uint16_t scale = h5::float_to_half(most / 127);
    bytes += bytes_of(scale);
    for (std::size_t i = 0; i < 32; ++i) {
      const auto q = static_cast<signed char>(std::clamp(std::lround(weight.values[at + i] / h5::half_to_float(scale)), -127L, 127L));
      bytes += static_cast<char>(q);
      weight.values[at + i] = h5::half_to_float(scale) * static_cast<float>(q);
    }
  }
  return bytes;
}

std::string gguf(Weights& weights, const std::vector<std::string>& keys, bool q8) {
  std::string header = "GGUF" + bytes_of(std::uint32_t{3}) + bytes_of(std::uint64_t{weights.size()}) + bytes_of(std::uint64_t{keys.size()}), data;
  for (const std::string& entry : keys) header += entry;
  for (auto& [name, weight] : weights) {
    const bool small = q8 && weight.shape.size() == 2;
    header += gguf_text(name) + bytes_of(static_cast<std::uint32_t>(weight.shape.size()));
    for (auto n = weight.shape.rbegin(); n != weight.shape.rend(); ++n) header += bytes_of(*n);
    header += bytes_of(std::uint32_t{small ? 8U : 0U}) + bytes_of(std::uint64_t{data.size()});
    data += small ? quantised(weight) : bytes_of(weight.values);
    data.append((32 - data.size() % 32) % 32, '\0');
  }
  header.append((32 - header.size() % 32) % 32, '\0');
  return header + data;
}

struct Random {
  std::mt19937 engine{7};
  Weight operator()(std::vector<std::uint64_t> shape, double scale, double middle = 0) {
    Weight weight{std::move(shape), {}};
    weight.values.resize(h5::element_count(weight.shape));
    std::normal_distribution<double> normal;
    for (float& value : weight.values) value = static_cast<float>(middle + scale * normal(engine));
    return weight;
  }
};

// ---- plain loops ------------------------------------------------------------------------------------------------------

// softmax(q_l . k_j / sqrt(h), j <= l) v_j; the query head n looks at the key head n / (heads / key_heads).
Rows plain_attention(const Rows& q, const Rows& k, const Rows& v, std::size_t heads, std::size_t key_heads) {
  const std::size_t h = q[0].size() / heads;
  Rows out(q.size(), Row(q[0].size(), 0.0));
  for (std::size_t n = 0; n < heads; ++n) {
    const std::size_t a = n * h, b = n / (heads / key_heads) * h;
    for (std::size_t l = 0; l < q.size(); ++l) {
      Row p(l + 1);
      double total = 0;
      for (std::size_t j = 0; j <= l; ++j) {
        double s = 0;
        for (std::size_t i = 0; i < h; ++i) s += q[l][a + i] * k[j][b + i];
        total += p[j] = std::exp(s / std::sqrt(static_cast<double>(h)));
      }
      for (std::size_t j = 0; j <= l; ++j)
        for (std::size_t i = 0; i < h; ++i) out[l][a + i] += p[j] / total * v[j][b + i];
    }
  }
  return out;
}

Rows columns(const Rows& x, std::size_t first, std::size_t count) {
  Rows out;
  for (const Row& row : x) out.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(first), row.begin() + static_cast<std::ptrdiff_t>(first + count));
  return out;
}

void add(Rows& x, const Rows& y) {
  for (std::size_t l = 0; l < x.size(); ++l)
    for (std::size_t i = 0; i < x[l].size(); ++i) x[l][i] += y[l][i];
}

Rows gpt2_logits(const Weights& w, const std::vector<std::int64_t>& ids, std::size_t blocks) {
  const auto norm = [&](const Rows& x, const std::string& name) {
    Rows out = x;
    for (Row& row : out) {
      double mean = 0, variance = 0;
      for (const double v : row) mean += v / static_cast<double>(row.size());
      for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(row.size());
      for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = (row[i] - mean) / std::sqrt(variance + 1e-5) * w.at(name + ".weight").values[i] + w.at(name + ".bias").values[i];
    }
    return out;
  };
  const auto affine = [&](const Rows& x, const std::string& name) {  // stored [in, out]
    const Weight& weight = w.at(name + ".weight");
    Rows out;
    for (const Row& row : x) {
      Row y(weight.shape[1]);
      for (std::size_t j = 0; j < y.size(); ++j) {
        y[j] = w.at(name + ".bias").values[j];
        for (std::size_t i = 0; i < row.size(); ++i) y[j] += row[i] * weight.at(i, j);
      }
      out.push_back(y);
    }
    return out;
  };
  const Weight& wte = w.at("wte.weight");
  const std::size_t d = wte.shape[1];
  Rows x;
  for (std::size_t l = 0; l < ids.size(); ++l) {
    x.emplace_back(d);
    for (std::size_t i = 0; i < d; ++i) x[l][i] = wte.at(static_cast<std::size_t>(ids[l]), i) + w.at("wpe.weight").at(l, i);
  }
  for (std::size_t n = 0; n < blocks; ++n) {
    const std::string h = "h." + std::to_string(n) + ".";
    const Rows qkv = affine(norm(x, h + "ln_1"), h + "attn.c_attn");
    add(x, affine(plain_attention(columns(qkv, 0, d), columns(qkv, d, d), columns(qkv, 2 * d, d), d / 64, d / 64), h + "attn.c_proj"));
    Rows y = affine(norm(x, h + "ln_2"), h + "mlp.c_fc");
    for (Row& row : y)
      for (double& v : row) v = 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    add(x, affine(y, h + "mlp.c_proj"));
  }
  Rows logits;
  for (const Row& row : norm(x, "ln_f")) {
    logits.emplace_back(wte.shape[0]);
    for (std::size_t t = 0; t < wte.shape[0]; ++t)
      for (std::size_t i = 0; i < d; ++i) logits.back()[t] += row[i] * wte.at(t, i);
  }
  return logits;
}

struct LlamaNumbers {
  std::size_t d = 64, heads = 4, key_heads = 2, wide = 96, blocks = 2, tokens = 40;
  double base = 500, epsilon = 1e-4;
};

Rows llama_logits(const Weights& w, const std::vector<std::int64_t>& ids, const LlamaNumbers& c) {
  const auto norm = [&](const Rows& x, const std::string& name) {
    Rows out = x;
    for (Row& row : out) {
      double square = 0;
      for (const double v : row) square += v * v / static_cast<double>(row.size());
      for (std::size_t i = 0; i < row.size(); ++i) row[i] *= w.at(name).values[i] / std::sqrt(square + c.epsilon);
    }
    return out;
  };
  const auto linear = [&](const Rows& x, const std::string& name) {  // stored [out, in]
    const Weight& weight = w.at(name);
    Rows out;
    for (const Row& row : x) {
      Row y(weight.shape[0], 0.0);
      for (std::size_t j = 0; j < y.size(); ++j)
        for (std::size_t i = 0; i < row.size(); ++i) y[j] += row[i] * weight.at(j, i);
      out.push_back(y);
    }
    return out;
  };
  const std::size_t head = c.d / c.heads;
  const auto turned = [&](Rows x) {
    for (std::size_t l = 0; l < x.size(); ++l)
      for (std::size_t i = 0; i < x[l].size(); i += 2) {
        const double angle = static_cast<double>(l) * std::pow(c.base, -static_cast<double>(i % head) / static_cast<double>(head));
        const double a = x[l][i], b = x[l][i + 1];
        x[l][i] = a * std::cos(angle) - b * std::sin(angle);
        x[l][i + 1] = a * std::sin(angle) + b * std::cos(angle);
      }
    return x;
  };
  Rows x;
  for (const std::int64_t id : ids) {
    x.emplace_back(c.d);
    for (std::size_t i = 0; i < c.d; ++i) x.back()[i] = w.at("token_embd.weight").at(static_cast<std::size_t>(id), i);
  }
  for (std::size_t n = 0; n < c.blocks; ++n) {
    const std::string b = "blk." + std::to_string(n) + ".";
    Rows y = norm(x, b + "attn_norm.weight");
    y = plain_attention(turned(linear(y, b + "attn_q.weight")), turned(linear(y, b + "attn_k.weight")), linear(y, b + "attn_v.weight"), c.heads, c.key_heads);
    add(x, linear(y, b + "attn_output.weight"));
    y = norm(x, b + "ffn_norm.weight");
    Rows gate = linear(y, b + "ffn_gate.weight");
    const Rows up = linear(y, b + "ffn_up.weight");
    for (std::size_t l = 0; l < gate.size(); ++l)
      for (std::size_t i = 0; i < gate[l].size(); ++i) gate[l][i] *= up[l][i] / (1 + std::exp(-gate[l][i]));
    add(x, linear(gate, b + "ffn_down.weight"));
  }
  return linear(norm(x, "output_norm.weight"), w.count("output.weight") > 0 ? "output.weight" : "token_embd.weight");
}

// ---- the networks of the tests ----------------------------------------------------------------------------------------

Weights small_gpt2() {
  Random random;
  const std::uint64_t d = 128, tokens = 50;
  Weights w;
  w["wte.weight"] = random({tokens, d}, 0.5);
  w["wpe.weight"] = random({24, d}, 0.5);
  for (int n = 0; n < 2; ++n) {
    const std::string h = "h." + std::to_string(n) + ".";
    for (const char* norm : {"ln_1", "ln_2"}) w[h + norm + ".weight"] = random({d}, 0.2, 1), w[h + norm + ".bias"] = random({d}, 0.2);
    const auto affine = [&](const std::string& name, std::uint64_t in, std::uint64_t out) {
      w[h + name + ".weight"] = random({in, out}, 0.1), w[h + name + ".bias"] = random({out}, 0.1);
    };
    affine("attn.c_attn", d, 3 * d);
    affine("attn.c_proj", d, d);
    affine("mlp.c_fc", d, 4 * d);
    affine("mlp.c_proj", 4 * d, d);
  }
  w["ln_f.weight"] = random({d}, 0.2, 1), w["ln_f.bias"] = random({d}, 0.2);
  return w;
}

Weights small_llama(const LlamaNumbers& c, bool tied) {
  Random random;
  Weights w;
  const std::uint64_t keyed = c.d / c.heads * c.key_heads;
  w["token_embd.weight"] = random({c.tokens, c.d}, 0.7);
  for (std::size_t n = 0; n < c.blocks; ++n) {
    const std::string b = "blk." + std::to_string(n) + ".";
    for (const char* norm : {"attn_norm", "ffn_norm"}) w[b + norm + ".weight"] = random({c.d}, 0.2, 1);
    w[b + "attn_q.weight"] = random({c.d, c.d}, 0.2);
    w[b + "attn_k.weight"] = random({keyed, c.d}, 0.2);
    w[b + "attn_v.weight"] = random({keyed, c.d}, 0.2);
    w[b + "attn_output.weight"] = random({c.d, c.d}, 0.2);
    w[b + "ffn_gate.weight"] = random({c.wide, c.d}, 0.2);
    w[b + "ffn_up.weight"] = random({c.wide, c.d}, 0.2);
    w[b + "ffn_down.weight"] = random({c.d, c.wide}, 0.2);
  }
  w["output_norm.weight"] = random({c.d}, 0.2, 1);
  if (!tied) w["output.weight"] = random({c.tokens, c.d}, 0.3);
  return w;
}

std::vector<std::string> llama_keys(const LlamaNumbers& c) {
  const auto n = [](std::size_t v) { return static_cast<std::uint32_t>(v); };
  return {key("general.architecture", std::string("llama")),
          key("llama.block_count", n(c.blocks)),
          key("llama.embedding_length", n(c.d)),
          key("llama.feed_forward_length", n(c.wide)),
          key("llama.attention.head_count", n(c.heads)),
          key("llama.attention.head_count_kv", n(c.key_heads)),
          key("llama.context_length", 32U),
          key("llama.rope.freq_base", static_cast<float>(c.base)),
          key("llama.attention.layer_norm_rms_epsilon", static_cast<float>(c.epsilon))};
}

std::vector<std::int64_t> some_ids(std::int64_t tokens, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<std::int64_t> ids(16);
  for (auto& id : ids) id = static_cast<std::int64_t>(random() % static_cast<unsigned>(tokens));
  return ids;
}

// Two sequences at once against the loops, one at a time; and the likelihoods against the logits.
void expect_agreement(const Judge& judge, const std::function<Rows(const std::vector<std::int64_t>&)>& plain) {
  const std::int64_t tokens = judge.shape().tokens;
  const auto first = some_ids(tokens, 1), second = some_ids(tokens, 2);
  std::vector<std::int64_t> both = first;
  both.insert(both.end(), second.begin(), second.end());
  const at::Tensor ids = at::tensor(both, at::kLong).view({2, 16});
  const at::Tensor logits = judge.logits(ids), likely = judge.log_likelihoods(ids);
  ASSERT_EQ(logits.sizes(), (std::vector<std::int64_t>{2, 16, tokens}));
  ASSERT_EQ(likely.sizes(), (std::vector<std::int64_t>{2, 15}));
  double worst = 0, largest = 0;
  for (int b = 0; b < 2; ++b) {
    const auto& sequence = b == 0 ? first : second;
    const Rows expected = plain(sequence);
    for (std::int64_t l = 0; l < 16; ++l) {
      double total = 0;
      for (std::int64_t t = 0; t < tokens; ++t) {
        const double e = expected[static_cast<std::size_t>(l)][static_cast<std::size_t>(t)];
        total += std::exp(e);
        largest = std::max(largest, std::abs(e));
        worst = std::max(worst, std::abs(e - logits[b][l][t].item<double>()));
      }
      if (l == 15) continue;
      const double next = expected[static_cast<std::size_t>(l)][static_cast<std::size_t>(sequence[static_cast<std::size_t>(l + 1)])];
      EXPECT_NEAR(likely[b][l].item<double>(), next - std::log(total), 1e-4);
    }
  }
  EXPECT_LT(worst, 1e-4) << "of logits up to " << largest;
  EXPECT_GT(largest, 1) << "logits that could tell";
}

std::unique_ptr<Judge> opened(const Folder& folder, const std::string& bytes, const std::string& vocabulary = "") {
  test::write_bytes(folder.file("judge"), bytes);
  std::vector<h5::Source> sources;
  return open_judge(folder.file("judge"), vocabulary, sources);
}

// "3 FILE: what" as "3 what".
std::string without_file(std::string text) {
  if (const auto end = text.find(": "); end != std::string::npos) text.erase(2, end);
  return text;
}

TEST(Gpt2Judge, EqualsPlainLoops) {
  const Folder folder;
  const Weights w = small_gpt2();
  const auto judge = opened(folder, safetensors(w));
  EXPECT_EQ(judge->shape().arch, "gpt2");
  EXPECT_EQ(judge->shape().blocks, 2);
  EXPECT_EQ(judge->shape().heads, 2);
  EXPECT_EQ(judge->context(), 24);
  EXPECT_FALSE(judge->vocabulary());
  expect_agreement(*judge, [&](const auto& ids) { return gpt2_logits(w, ids, 2); });
}

TEST(Gpt2Judge, TakesThePrefixAndPassesOverBuffers) {
  const Folder folder;
  const Weights w = small_gpt2();
  Weights other;
  for (const auto& [name, weight] : w) other["transformer." + name] = weight;
  other["transformer.h.0.attn.bias"] = Random()({1, 1, 24, 24}, 1);
  other["transformer.h.0.attn.masked_bias"] = Random()({1}, 1);
  other["lm_head.weight"] = w.at("wte.weight");
  const at::Tensor ids = at::tensor(some_ids(50, 3), at::kLong).view({1, 16});
  const at::Tensor expected = opened(folder, safetensors(w))->logits(ids);
  EXPECT_TRUE(at::equal(opened(folder, safetensors(other))->logits(ids), expected));
}

TEST(Gpt2Judge, RefusesWhatIsNotGpt2) {
  const Folder folder;
  const auto error = [&](const std::function<void(Weights&)>& change, const std::string& vocabulary = "") {
    Weights w = small_gpt2();
    change(w);
    return without_file(error_of([&] { opened(folder, safetensors(w), vocabulary); }));
  };
  EXPECT_EQ(error([](auto& w) { w.erase("h.1.mlp.c_fc.bias"); }), "3 tensor 'h.1.mlp.c_fc.bias' is missing");
  EXPECT_EQ(error([](auto& w) { w.erase("wte.weight"); }), "3 tensor 'wte.weight' is missing");
  EXPECT_EQ(error([](auto& w) { std::swap(w["h.0.mlp.c_fc.weight"], w["h.0.mlp.c_proj.weight"]); }), "3 tensor 'h.0.mlp.c_fc.weight': expected [128, 512], found [512, 128]");
  EXPECT_EQ(error([](auto& w) { w["h.1.ln_2.bias"].values[3] = NAN; }), "3 tensor 'h.1.ln_2.bias' has a value that is not finite");
  EXPECT_EQ(error([](auto& w) { w["adapter.weight"] = w["ln_f.weight"]; }), "3 tensor 'adapter.weight' belongs to another architecture");
  EXPECT_EQ(error([](auto& w) { w["lm_head.weight"] = w["wte.weight"], w["lm_head.weight"].values[0] += 1; }), "3 tensor 'lm_head.weight' differs from the embedding; in GPT-2 they are one");
  EXPECT_EQ(error([](auto&) {}, "text8"), "3 a model of 50 tokens, but the vocabulary 'text8' has 27");
  const std::string good = safetensors(small_gpt2());
  EXPECT_EQ(error_of([&] { opened(folder, good.substr(0, good.size() - 4)); }).substr(0, 2), "3 ");
  EXPECT_EQ(error_of([&] { opened(folder, ""); }).substr(0, 2), "3 ");
}

TEST(LlamaJudge, EqualsPlainLoopsInF32AndQ8) {
  const Folder folder;
  for (const bool q8 : {false, true}) {
    for (const bool tied : {false, true}) {
      const LlamaNumbers c;
      Weights w = small_llama(c, tied);
      const auto judge = opened(folder, gguf(w, llama_keys(c), q8));
      EXPECT_EQ(judge->shape().arch, "llama");
      EXPECT_EQ(judge->shape().key_heads, 2);
      EXPECT_EQ(judge->context(), 32);
      expect_agreement(*judge, [&](const auto& ids) { return llama_logits(w, ids, c); });
    }
  }
}

TEST(LlamaJudge, RefusesWhatItWouldReadWrongly) {
  const Folder folder;
  const LlamaNumbers c;
  const auto error = [&](const std::function<void(Weights&, std::vector<std::string>&)>& change) {
    Weights w = small_llama(c, true);
    auto keys = llama_keys(c);
    change(w, keys);
    return without_file(error_of([&] { opened(folder, gguf(w, keys, false)); }));
  };
  EXPECT_EQ(error([](auto&, auto& k) { k[0] = key("general.architecture", std::string("qwen2")); }), "3 architecture 'qwen2'; expected llama");
  EXPECT_EQ(error([](auto&, auto& k) { k.erase(k.begin() + 1); }), "3 key 'llama.block_count' is missing");
  EXPECT_EQ(error([](auto&, auto& k) { k[1] = key("llama.block_count", 0U); }), "3 key 'llama.block_count': expected a whole number from 1 to 1024");
  EXPECT_EQ(error([](auto&, auto& k) { k[1] = key("llama.block_count", 1U); }), "3 tensor 'blk.1.attn_k.weight' belongs to another architecture");
  EXPECT_EQ(error([](auto&, auto& k) { k[1] = key("llama.block_count", 3U); }), "3 tensor 'blk.2.attn_norm.weight' is missing");
  EXPECT_EQ(error([](auto&, auto& k) { k[4] = key("llama.attention.head_count", 5U); }), "3 a width of 64 for 5 heads and 2 key heads");
  EXPECT_EQ(error([](auto&, auto& k) { k.push_back(key("llama.rope.dimension_count", 8U)); }), "3 key 'llama.rope.dimension_count': expected 16, found 8");
  EXPECT_EQ(error([](auto&, auto& k) { k.push_back(key("llama.rope.scaling.type", std::string("yarn"))); }), "3 rotary positions scaled by 'yarn', which is not known here");
  EXPECT_EQ(error([](auto& w, auto&) { w["rope_freqs.weight"] = w["output_norm.weight"]; }), "3 tensor 'rope_freqs.weight' belongs to another architecture");
  EXPECT_EQ(error([](auto& w, auto&) { w["blk.0.attn_q.bias"] = w["output_norm.weight"]; }), "3 tensor 'blk.0.attn_q.bias' belongs to another architecture");
  EXPECT_EQ(error([](auto& w, auto&) { w["output_norm.weight"].values[0] = INFINITY; }), "3 tensor 'output_norm.weight' has a value that is not finite");
}

// ---- the real one -----------------------------------------------------------------------------------------------------

std::string smollm_file() {
  const char* const data = std::getenv("GDDS_DATA");
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::string folder = data != nullptr ? data : cache != nullptr ? std::string(cache) + "/gdds" : std::string(home != nullptr ? home : "") + "/.cache/gdds";
  return folder + "/smollm2/smollm2-135m-q4_1.gguf";
}

// Written for this test: no model has learned it by heart. The second is denser: where many of the words are "the" and "and",
// they are easily guessed in any order.
const char* const kReport =
    "Volcanoes form where molten rock from deep inside the Earth reaches the surface. When pressure builds up beneath the crust, magma "
    "rises through cracks and erupts as lava, ash and gas. Some eruptions are gentle, and slow rivers of lava flow down the mountain; others "
    "are violent explosions that destroy entire forests, bury towns and darken the sky for weeks. Scientists monitor active volcanoes with "
    "seismometers, satellites and gas sensors, because small earthquakes and changes in temperature often warn of an eruption. Although they "
    "are dangerous, volcanoes also create fertile soil, new islands and valuable minerals. Farmers in Italy, Indonesia and Japan have grown "
    "grapes, coffee, rice and vegetables on volcanic slopes for hundreds of years, and hot springs near old craters attract thousands of tourists.";
const char* const kProse =
    "The rain had stopped before noon, and by the time we reached the village the road was dry again. An old man sat on the bench "
    "in front of the inn and watched us come up the hill. He did not say anything until we asked him for a place to stay. Then he "
    "pointed with his pipe at a white house behind the church, where, he told us, the widow sometimes let rooms to travellers. We "
    "thanked him and went on. The house was smaller than it had looked from below, but the garden was full of roses, and a woman "
    "with grey hair opened the door before we could knock. She had seen us from the kitchen window, she said, and the kettle was "
    "already on the stove.";

double perplexity(const Judge& judge, const std::string& text) {
  std::vector<std::int32_t> ids;
  text::make_encoder(*judge.vocabulary())->encode(text, ids);
  const at::Tensor tensor = at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end()), at::kLong).unsqueeze(0);
  return std::exp(-judge.log_likelihoods(tensor).mean().item<double>());
}

TEST(SmolLmJudge, KnowsProseFromItsWordsShuffled) {
  if (!std::filesystem::exists(smollm_file())) GTEST_SKIP() << "SmolLM2 is not here (scripts/fetch-data smollm2)";
  std::vector<h5::Source> sources;
  const auto judge = open_judge(smollm_file(), "", sources);
  EXPECT_EQ(judge->shape().tokens, 49152);
  EXPECT_EQ(judge->shape().blocks, 30);
  EXPECT_EQ(judge->shape().heads, 9);
  EXPECT_EQ(judge->shape().key_heads, 3);
  ASSERT_TRUE(judge->vocabulary());
  // The mean logarithm over five orders of the words.
  const auto shuffled = [&](const char* text) {
    std::vector<std::string> words;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words.push_back(word);
    double sum = 0;
    for (unsigned seed = 1; seed <= 5; ++seed) {
      std::shuffle(words.begin(), words.end(), std::mt19937(seed));
      std::string joined;
      for (const std::string& word : words) joined += (joined.empty() ? "" : " ") + word;
      sum += std::log(perplexity(*judge, joined));
    }
    return std::exp(sum / 5);
  };
  for (const char* text : {kProse, kReport}) {
    const double prose = perplexity(*judge, text), noise = shuffled(text);
    std::printf("perplexity of the prose %.2f, of its words shuffled %.1f\n", prose, noise);
    EXPECT_GT(prose, 10);
    EXPECT_LT(prose, 50) << "rotary positions by halves, not by pairs, give hundreds";
    EXPECT_GT(noise, text == kReport ? 1000 : 500);
  }
}

}  // namespace
}  // namespace gdds::model
