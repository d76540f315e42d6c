// See describe.h.
#include "model/describe.h"

#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace gdds::model {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t count_below(const h5::Input& input, const std::string& group) {
  std::int64_t count = 0;
  for (const auto& dataset : input.contents().datasets)
    if (dataset.path.starts_with(group)) count += static_cast<std::int64_t>(h5::element_count(dataset.shape));
  return count;
}

Json facts(const Checkpoint& checkpoint, const h5::Input& input) {
  const ModelConfig& config = checkpoint.config;
  Json json = Json::parse(config.json());
  json["parameters"] = count_below(input, "/parameters/");
  json["parameters_without_vocabulary"] = config.parameters_without_vocabulary();
  json["ema"] = count_below(input, "/ema/") > 0;
  json["optimizer"] = count_below(input, "/optimizer/") > 0;
  json["step"] = checkpoint.step;
  json["position"] = checkpoint.position;
  // What was trained for, if it says so; the rest of the recipe is in /config.
  const Json training = Json::parse(checkpoint.training);
  for (const char* name : {"objective", "posterior"})
    if (training.contains(name)) json[name] = training[name];
  json["process"] = checkpoint.process ? Json(checkpoint.process->name()) : Json();
  if (checkpoint.process) {
    json["schedule"] = checkpoint.process->schedule().name;
    json["process_digest"] = checkpoint.process->digest();
  }
  json["vocabulary"] = checkpoint.vocabulary_name.name;
  json["vocabulary_hash"] = checkpoint.vocabulary_name.hash;
  json["vocabulary_whole"] = checkpoint.vocabulary.has_value();
  return json;
}

std::string word(const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return one_line(value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace

std::string describe(const Checkpoint& checkpoint, const h5::Input& input, bool json) {
  const Json all = facts(checkpoint, input);
  if (json) return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  std::string text = "what\tvalue\n";
  for (const auto& [what, value] : all.items()) text += fmt::format("{}\t{}\n", what, word(value));
  return text;
}

std::string library_version() { return "LibTorch " TORCH_VERSION; }

}  // namespace gdds::model
