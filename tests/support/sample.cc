// See sample.h.
#include "support/sample.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "h5/schema.h"
#include "text/vocabulary.h"

namespace gdds::test {
namespace {

constexpr std::uint64_t kTokens = 11;

std::uint64_t letter_value(const std::string& letter, std::uint64_t n) {
  static const std::map<std::string, std::uint64_t> sizes = {{"L", 7}, {"m", kTokens}, {"d", 4}, {"k", 3}, {"b", 11},
                                                             {"r", 4}, {"p", 1},       {"z", 22}, {"e", 9}, {"s", 2}, {"f", 3}};
  if (letter == "n") return n;
  return sizes.at(letter);
}

h5::Shape sample_shape(std::string_view text, std::uint64_t n) {
  h5::Shape shape;
  std::string word;
  const auto finish = [&] {
    const bool more = word.size() > 2 && word.ends_with("+1");
    if (more) word.resize(word.size() - 2);
    shape.push_back(std::isdigit(static_cast<unsigned char>(word[0])) ? std::stoull(word) : letter_value(word, n) + (more ? 1 : 0));
    word.clear();
  };
  for (const char c : text) {
    if (c == ',') finish();
    else if (c != ' ') word += c;
  }
  finish();
  return shape;
}

// Values that keep the invariants: ids below m, offsets that do not decrease, flags 0 or 1, weights that sum to 1.
std::int64_t integer_at(const h5::Field& field, std::uint64_t i, std::uint64_t variant) {
  if (field.path.ends_with("/offsets")) return static_cast<std::int64_t>(std::min<std::uint64_t>(i / 2, 9));
  if (field.path == "/lengths") return 7;
  if (field.invariant == "0 or 1") return static_cast<std::int64_t>((i + variant) % 2);
  if (field.path.ends_with("/ids") || field.path == "/ids") return static_cast<std::int64_t>((i / 3 + i % 3 + 1) % kTokens);
  return static_cast<std::int64_t>((i * 7 + 3 + variant) % kTokens);
}

double real_at(const h5::Field& field, std::uint64_t i, std::uint64_t count, std::uint64_t variant) {
  if (field.path == "/matrix/dense") return 1.0 / kTokens;
  if (field.path == "/matrix/weights") return 0.5;
  if (field.path.ends_with("times")) return field.path == "/times" ? 1.0 - static_cast<double>(i) / static_cast<double>(count) : static_cast<double>(i);
  return (static_cast<double>((i * 37 + 11 + variant) % 101) + 1) / 128.0;
}

std::string string_at(const h5::Field& field) {
  if (field.invariant.starts_with("32 hex")) return hash_hex(field.path);
  const std::string_view first = field.invariant.substr(0, field.invariant.find_first_of(" ,"));
  return field.invariant.empty() ? "sample" : std::string(first);
}

template <typename T, typename F>
void fill(h5::Output& output, const std::string& path, const h5::Shape& shape, F value) {
  std::vector<T> values(h5::element_count(shape));
  for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(value(i));
  output.write(path, shape, std::span<const T>(values));
}

void write_dataset(h5::Output& output, const h5::Field& field, std::uint64_t n, std::uint64_t variant) {
  std::string path(field.path);
  if (field.type == "text") return output.text(path, "{\"variant\":" + std::to_string(variant) + "}\n");
  h5::Shape shape = field.shape == "..." ? h5::Shape{3, 2} : sample_shape(field.shape, n);
  if (path.back() == '*') path.replace(path.size() - 1, 1, "block.0.weight");
  const std::string_view type = field.type.substr(0, field.type.find('|'));
  const auto whole = [&](std::uint64_t i) { return integer_at(field, i, variant); };
  const auto real = [&](std::uint64_t i) { return real_at(field, i, h5::element_count(shape), variant); };
  if (type == "uint8") return fill<std::uint8_t>(output, path, shape, whole);
  if (type == "uint16") return fill<std::uint16_t>(output, path, shape, whole);
  if (type == "int32") return fill<std::int32_t>(output, path, shape, whole);
  if (type == "int64") return fill<std::int64_t>(output, path, shape, whole);
  if (type == "float64") return fill<double>(output, path, shape, real);
  if (type == "float32") return fill<float>(output, path, shape, real);
  std::vector<std::uint16_t> bits(h5::element_count(shape));
  for (std::uint64_t i = 0; i < bits.size(); ++i) bits[i] = h5::float_to_half(static_cast<float>(real(i)));
  output.dataset(path, shape, h5::Type::float16).append_stored(bits.data(), bits.size());
}

// The letters a to i, end of text and a mask.
text::Vocabulary sample_vocabulary() {
  text::Vocabulary v;
  v.name = "sample";
  v.model = "characters";
  for (char c = 'a'; c < 'j'; ++c) v.add({&c, 1}, false);
  v.eos = v.add("<|endoftext|>", true);
  v.mask = v.add("<|mask|>", true);
  return v;
}

// A network that could be: a DDiT of one block for the sample's vocabulary, on absorb. What it is made of is not written
// twice: the reader of the file compares the shapes with the network's own.
constexpr std::uint64_t kWidth = 4, kTime = 3;
const char* const kModel =
    R"({"model":{"arch":"ddit","states":11,"m":11,"d":4,"blocks":1,"heads":2,"conditioning":3,"mlp_ratio":4,"length":7,)"
    R"("dropout":0.1,"rotary_base":10000.0,"time_conditioning":true},"training":{"objective":"snapshot","posterior":"full"}})";
const char* const kAbsorb = R"({"name":"absorb","schedule":{"name":"log-linear","eps":0.001},"mask":10})";
const std::vector<std::pair<std::string, h5::Shape>>& model_parameters() {
  static const std::vector<std::pair<std::string, h5::Shape>> shapes = {
      {"vocab_embed.embedding", {kTokens, kWidth}},
      {"sigma_map.mlp.0.weight", {kTime, 256}},
      {"sigma_map.mlp.0.bias", {kTime}},
      {"sigma_map.mlp.2.weight", {kTime, kTime}},
      {"sigma_map.mlp.2.bias", {kTime}},
      {"blocks.0.norm1.weight", {kWidth}},
      {"blocks.0.attn_qkv.weight", {3 * kWidth, kWidth}},
      {"blocks.0.attn_out.weight", {kWidth, kWidth}},
      {"blocks.0.norm2.weight", {kWidth}},
      {"blocks.0.mlp.0.weight", {4 * kWidth, kWidth}},
      {"blocks.0.mlp.0.bias", {4 * kWidth}},
      {"blocks.0.mlp.2.weight", {kWidth, 4 * kWidth}},
      {"blocks.0.mlp.2.bias", {kWidth}},
      {"blocks.0.adaLN_modulation.weight", {6 * kWidth, kTime}},
      {"blocks.0.adaLN_modulation.bias", {6 * kWidth}},
      {"output_layer.norm_final.weight", {kWidth}},
      {"output_layer.linear.weight", {kTokens, kWidth}},
      {"output_layer.linear.bias", {kTokens}},
      {"output_layer.adaLN_modulation.weight", {2 * kWidth, kTime}},
      {"output_layer.adaLN_modulation.bias", {2 * kWidth}},
  };
  return shapes;
}

void write_model(h5::Output& output, std::uint64_t variant) {
  output.attribute("/@step", std::int64_t{1});
  output.attribute("/@position", std::int64_t{1} + static_cast<std::int64_t>(variant));
  output.text("/config", kModel);
  output.attribute("/process@name", std::string("absorb"));
  output.attribute("/process@schedule", std::string("log-linear"));
  output.text("/process/config", kAbsorb);
  output.write("/curve", {2, 2}, std::span<const double>(std::vector<double>{1, 2.5, 2, 2.25}));
  output.attribute("/curve@columns", std::string("step,loss"));
  for (const std::uint64_t group : {0, 1, 2}) {
    for (const auto& [name, shape] : model_parameters()) {
      const std::string path = (group == 0 ? "/parameters/" : group == 1 ? "/ema/" : "/optimizer/exp_avg/") + name;
      fill<float>(output, path, shape, [&](std::uint64_t i) { return (static_cast<double>((i * 37 + 11 + variant + 5 * group) % 101) - 50) / 128.0; });
    }
  }
}

}  // namespace

void write_sample(h5::Output& output, std::string_view kind, std::uint64_t n, std::uint64_t variant) {
  const text::Vocabulary vocabulary = sample_vocabulary();
  const auto& fields = h5::find_kind(kind)->fields;
  const bool whole = std::any_of(fields.begin(), fields.end(), [](const h5::Field& f) { return f.path == "/vocab/bytes"; });
  whole ? write(vocabulary, output) : write_name(vocabulary, output);
  if (kind == "model") return write_model(output, variant);
  for (const h5::Field& field : fields) {
    if (field.path.starts_with("/@gdds_") || field.path.starts_with("/vocab") || field.path == "/history") continue;
    if (field.path.find('@') == std::string_view::npos) {
      write_dataset(output, field, n, variant);
    } else if (field.type == "string") {
      output.attribute(std::string(field.path), string_at(field));
    } else {
      output.attribute(std::string(field.path), std::int64_t{1});
    }
  }
}

Invocation sample_invocation() { return {"make-sample", "1", {{"", "sample"}}, std::uint64_t{1}}; }

}  // namespace gdds::test
