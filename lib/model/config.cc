// See config.h.
#include "model/config.h"

#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/number.h"

namespace gdds::model {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kSinusoids = 256;  // of the time embedding

struct Size {
  const char* name;
  std::int64_t blocks, d, heads;
};
// small is the paper's; tiny trains on a laptop; medium is that of the public medium DDiT.
constexpr std::array<Size, 4> kSizes = {{{"tiny", 4, 128, 4}, {"mini", 6, 384, 6}, {"small", 12, 768, 12}, {"medium", 24, 1024, 16}}};

constexpr std::array<Arch, 3> kArchs = {Arch::ddit, Arch::ar, Arch::two_stream};

// Members that are whole numbers, with their limits: wide enough for every network, narrow enough for no product to overflow.
struct Member {
  const char* name;
  std::int64_t ModelConfig::* value;
  std::int64_t low, high;
};
constexpr std::array<Member, 8> kMembers = {{{"states", &ModelConfig::states, 1, 1LL << 31},
                                             {"m", &ModelConfig::m, 1, 1LL << 31},
                                             {"d", &ModelConfig::d, 2, 1 << 16},
                                             {"blocks", &ModelConfig::blocks, 1, 1024},
                                             {"heads", &ModelConfig::heads, 1, 1 << 15},
                                             {"conditioning", &ModelConfig::conditioning, 1, 1 << 16},
                                             {"mlp_ratio", &ModelConfig::mlp_ratio, 1, 64},
                                             {"length", &ModelConfig::length, 1, 1 << 24}}};

}  // namespace

std::string_view arch_name(Arch arch) {
  switch (arch) {
    case Arch::ddit: return "ddit";
    case Arch::ar: return "ar";
    case Arch::two_stream: return "two-stream";
  }
  return "";
}

std::string ModelConfig::fault() const {
  for (const Member& member : kMembers)
    if (this->*member.value < member.low || this->*member.value > member.high)
      return fmt::format("{}: expected a number from {} to {}, found {}", member.name, member.low, member.high, this->*member.value);
  if (m > states) return fmt::format("m: {} output classes, but only {} input ids", m, states);
  if (d % heads != 0) return fmt::format("heads: a width of {} cannot be divided among {} heads", d, heads);
  if (d / heads % 2 != 0) return fmt::format("heads: rotary positions turn pairs, but a head is {} wide", d / heads);
  if (arch == Arch::two_stream && blocks % 2 != 0) return fmt::format("blocks: the two streams share them evenly, found {}", blocks);
  if (!(dropout >= 0 && dropout < 1)) return fmt::format("dropout: expected a number from 0 to below 1, found {}", number_text(dropout));
  if (!(rotary_base > 1 && std::isfinite(rotary_base))) return fmt::format("rotary_base: expected a number above 1, found {}", number_text(rotary_base));
  return "";
}

void ModelConfig::validate() const {
  if (const std::string text = fault(); !text.empty()) bad_usage("model: {}", text);
}

std::string ModelConfig::difference(const ModelConfig& other) const {
  std::string text;
  const Json here = Json::parse(json()), there = Json::parse(other.json());
  for (const auto& [name, value] : here.items())
    if (value != there[name]) text += fmt::format("{}{} {} and not {}", text.empty() ? "" : ", ", name, value.dump(), there[name].dump());
  return text;
}

std::int64_t ModelConfig::parameters_without_vocabulary() const {
  // A block: qkv 3dd, out dd, MLP 2rdd with biases rd + d, two norms of d.
  const std::int64_t block = (4 + 2 * mlp_ratio) * d * d + (mlp_ratio + 3) * d;
  // Time: the embedding once; shift, scale and gate twice a block; shift and scale of the output.
  const std::int64_t time = conditioning * (kSinusoids + 1) + conditioning * (conditioning + 1);
  const std::int64_t modulation = 6 * d * (conditioning + 1), output_modulation = 2 * d * (conditioning + 1);
  const std::int64_t plain = blocks * block + d;  // and the norm of the output
  switch (arch) {
    case Arch::ddit: return plain + time + blocks * modulation + output_modulation;
    case Arch::ar: return plain;
    case Arch::two_stream: return plain + d + time + blocks / 2 * modulation + output_modulation;  // and the norm of the content
  }
  return 0;
}

std::int64_t ModelConfig::parameters() const { return parameters_without_vocabulary() + states * d + m * (d + 1); }

std::string ModelConfig::json() const {
  Json json = {{"arch", arch_name(arch)}};
  for (const Member& member : kMembers) json[member.name] = this->*member.value;
  json["dropout"] = dropout;
  json["rotary_base"] = rotary_base;
  json["time_conditioning"] = time_conditioning;
  return json.dump();
}

ModelConfig ModelConfig::from_json(const std::string& text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) reject("{}: model: expected a JSON object", file);
  std::size_t read = 0;
  const auto find = [&](const char* name) -> const Json& {
    if (!json.contains(name)) reject("{}: model: {} is missing", file, name);
    ++read;
    return json[name];
  };
  const auto number = [&](const char* name) {
    const Json& value = find(name);
    if (!value.is_number()) reject("{}: model: {}: expected a number, found {}", file, name, value.dump());
    return value.get<double>();
  };

  ModelConfig config;
  const Json& arch = find("arch");
  bool known = false;
  for (const Arch candidate : kArchs)
    if (arch.is_string() && arch.get<std::string>() == arch_name(candidate)) config.arch = candidate, known = true;
  if (!known) reject("{}: model: arch: expected ddit, ar or two-stream, found {}", file, arch.dump());
  for (const Member& member : kMembers) {
    const Json& value = find(member.name);
    if (!value.is_number_integer()) reject("{}: model: {}: expected a whole number, found {}", file, member.name, value.dump());
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(member.high))
      reject("{}: model: {}: expected a number from {} to {}, found {}", file, member.name, member.low, member.high, value.dump());
    config.*member.value = value.get<std::int64_t>();
  }
  config.dropout = number("dropout");
  config.rotary_base = number("rotary_base");
  const Json& time = find("time_conditioning");
  if (!time.is_boolean()) reject("{}: model: time_conditioning: expected true or false, found {}", file, time.dump());
  config.time_conditioning = time.get<bool>();
  if (read != json.size()) reject("{}: model: it has members that this version does not know: {}", file, json.dump());
  if (const std::string fault = config.fault(); !fault.empty()) reject("{}: model: {}", file, fault);
  return config;
}

void ModelOptions::add_to(Options& options) {
  options.option("size", size, "blocks x width x heads: 4x128x4, 6x384x6, 12x768x12, 24x1024x16").choices({"tiny", "mini", "small", "medium"});
  options.option("model-dim", d, "width; 0: as --size says").range(0, 1 << 16);
  options.option("model-blocks", blocks, "blocks; 0: as --size says").range(0, 1024);
  options.option("model-heads", heads, "attention heads; 0: as --size says").range(0, 1 << 15);
  options.option("model-conditioning", conditioning, "width of the time embedding").range(1, 1 << 16);
  options.option("model-mlp-ratio", mlp_ratio, "width of the MLP's middle, in widths").range(1, 64);
  options.option("model-length", length, "longest sequence, in tokens; 0: as the data are").range(0, 1 << 24);
  options.option("dropout", dropout, "share of the activations dropped in training").range(0, 0.99);
  options.option("rotary-base", rotary_base, "longest period of the rotary positions, over 2 pi").range(1.001, 1e9);
  options.option("no-time-conditioning", no_time_conditioning, "the network is not told the time");
}

ModelConfig ModelOptions::config(Arch arch, std::int64_t states, std::int64_t m, std::int64_t data_length) const {
  if (length != 0 && data_length > length) bad_usage("--model-length: the data are sequences of {} tokens, longer than {}", data_length, length);
  ModelConfig config;
  config.arch = arch;
  for (const Size& preset : kSizes)
    if (size == preset.name) config.d = preset.d, config.blocks = preset.blocks, config.heads = preset.heads;
  if (d != 0) config.d = d;
  if (blocks != 0) config.blocks = blocks;
  if (heads != 0) config.heads = heads;
  config.states = states;
  config.m = m;
  config.length = length != 0 ? length : data_length;
  config.conditioning = conditioning;
  config.mlp_ratio = mlp_ratio;
  config.dropout = dropout;
  config.rotary_base = rotary_base;
  config.time_conditioning = !no_time_conditioning;
  config.validate();
  return config;
}

}  // namespace gdds::model
