// See checkpoint.h.
#include "model/checkpoint.h"

#include <torch/torch.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "diffusion/open.h"

namespace gdds::model {
namespace {

using Json = nlohmann::ordered_json;

h5::Type stored_as(at::ScalarType type) {
  switch (type) {
    case at::kHalf: return h5::Type::float16;
    case at::kBFloat16: return h5::Type::bfloat16;
    case at::kLong: return h5::Type::int64;
    default: assert(type == at::kFloat); return h5::Type::float32;
  }
}

// In the order of the names, as they are read: the same tensors give the same bytes.
void write_tensors(const std::string& group, const std::vector<Parameter>& tensors, h5::Output& output) {
  std::vector<Parameter> sorted = tensors;
  std::sort(sorted.begin(), sorted.end(), [](const Parameter& a, const Parameter& b) { return a.name < b.name; });
  for (const Parameter& tensor : sorted) {
    const at::Tensor value = tensor.value.detach().cpu().contiguous();
    const h5::Shape shape(value.sizes().begin(), value.sizes().end());
    output.dataset(group + tensor.name, shape, stored_as(value.scalar_type())).append_stored(value.data_ptr(), static_cast<std::uint64_t>(value.numel()));
  }
}

template <typename T>
at::Tensor read_tensor(const h5::Input& input, const std::string& path, const h5::Shape& shape, at::ScalarType type) {
  const at::Tensor value = at::empty(std::vector<std::int64_t>(shape.begin(), shape.end()), type);
  const std::uint64_t rows = shape.empty() ? 1 : shape[0];
  input.read_rows<T>(path, 0, rows, std::span(value.data_ptr<T>(), static_cast<std::size_t>(value.numel())));
  return value;
}

std::vector<Parameter> read_tensors(const std::string& group, const h5::Input& input) {
  std::vector<Parameter> tensors;
  for (const auto& dataset : input.contents().datasets) {
    if (!dataset.path.starts_with(group)) continue;
    const bool whole = dataset.type == h5::Type::int64;
    tensors.push_back({dataset.path.substr(group.size()), whole ? read_tensor<std::int64_t>(input, dataset.path, dataset.shape, at::kLong)
                                                                : read_tensor<float>(input, dataset.path, dataset.shape, at::kFloat)});
  }
  return tensors;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::int64_t count_of(const h5::Input& input, const std::string& path) {
  const std::int64_t count = input.integer_attribute(path);
  if (count < 0) reject("{}: {}: expected a number that is not negative, found {}", input.name(), path, count);
  return count;
}

double finite_attribute(const h5::Input& input, const std::string& path, double otherwise) {
  const auto value = input.attribute(path);
  if (!value) return otherwise;
  const double* const number = std::get_if<double>(&*value);
  if (number == nullptr || !std::isfinite(*number)) reject("{}: {}: expected a finite number", input.name(), path);
  return *number;
}

void read_curve(const h5::Input& input, Checkpoint& checkpoint) {
  if (!input.has("/curve")) return;
  checkpoint.curve = input.read<double>("/curve");
  checkpoint.curve_columns = split(input.attribute("/curve@columns") ? input.string_attribute("/curve@columns") : "");
  checkpoint.pending_loss = finite_attribute(input, "/curve@pending_loss", 0);
  checkpoint.pending_steps = input.attribute("/curve@pending_steps") ? count_of(input, "/curve@pending_steps") : 0;
  checkpoint.best_validation = finite_attribute(input, "/curve@best_validation", checkpoint.best_validation);
  const std::uint64_t columns = input.shape("/curve")[1];
  if (columns != checkpoint.curve_columns.size())
    reject("{}: /curve has {} columns, but /curve@columns names {}", input.name(), columns, checkpoint.curve_columns.size());
}

// The network's ids are those of the vocabulary and, behind them, the process's own states.
void check_agreement(const Checkpoint& checkpoint, const std::string& file) {
  const ModelConfig& config = checkpoint.config;
  const auto& name = checkpoint.vocabulary_name;
  if (config.m != name.size) reject("{}: a network of {} classes, but its vocabulary '{}' has {} tokens", file, config.m, one_line(name.name), name.size);
  if (checkpoint.process && checkpoint.process->states() != config.states)
    reject("{}: a network of {} states, but its process {} has {}", file, config.states, checkpoint.process->name(), checkpoint.process->states());
}

std::string shape_of(const at::Tensor& value) { return fmt::format("[{}]", fmt::join(value.sizes(), ", ")); }

}  // namespace

void Checkpoint::set_vocabulary(text::Vocabulary tokens) {
  vocabulary_name = {tokens.name, tokens.hash(), tokens.size(), tokens.mask};
  vocabulary = std::move(tokens);
}

void write_checkpoint(const Checkpoint& checkpoint, h5::Output& output) {
  assert(Json::accept(checkpoint.training) && checkpoint.config.fault().empty());
  if (checkpoint.vocabulary) {
    text::write(*checkpoint.vocabulary, output);
  } else {
    output.attribute("/vocab@name", checkpoint.vocabulary_name.name);
    output.attribute("/vocab@hash", checkpoint.vocabulary_name.hash);
    output.attribute("/vocab@size", std::int64_t{checkpoint.vocabulary_name.size});
  }
  output.attribute("/@step", checkpoint.step);
  output.attribute("/@position", checkpoint.position);
  output.text("/config", fmt::format("{{\"model\":{},\"training\":{}}}", checkpoint.config.json(), checkpoint.training));
  write_tensors("/parameters/", checkpoint.parameters, output);
  write_tensors("/ema/", checkpoint.ema, output);
  write_tensors("/optimizer/", checkpoint.optimizer, output);
  if (checkpoint.process) write_parts(*checkpoint.process, output);
  if (checkpoint.curve_columns.empty()) return;
  const std::size_t columns = checkpoint.curve_columns.size();
  assert(checkpoint.curve.size() % columns == 0);
  output.write("/curve", {checkpoint.curve.size() / columns, columns}, std::span<const double>(checkpoint.curve));
  output.attribute("/curve@pending_loss", checkpoint.pending_loss);
  output.attribute("/curve@pending_steps", checkpoint.pending_steps);
  if (std::isfinite(checkpoint.best_validation)) output.attribute("/curve@best_validation", checkpoint.best_validation);
  output.attribute("/curve@columns", fmt::format("{}", fmt::join(checkpoint.curve_columns, ",")));
}

Checkpoint read_checkpoint(const h5::Input& input, const CheckpointParts& parts) {
  Checkpoint checkpoint;
  const Json config = Json::parse(input.text("/config"), nullptr, false);
  if (!config.is_object() || !config.contains("model")) reject("{}: /config: expected a JSON object with the member model", input.name());
  checkpoint.config = ModelConfig::from_json(config["model"].dump(), input.name());
  if (config.contains("training")) checkpoint.training = config["training"].dump();
  if (checkpoint.training.front() != '{') reject("{}: /config: training: expected a JSON object", input.name());
  checkpoint.step = count_of(input, "/@step");
  checkpoint.position = count_of(input, "/@position");

  if (input.has("/vocab/bytes")) checkpoint.set_vocabulary(text::read_vocabulary(input));
  checkpoint.vocabulary_name = diffusion::vocabulary_name(input);
  if (input.has("/process/config")) checkpoint.process = diffusion::read_process(input);
  check_agreement(checkpoint, input.name());
  read_curve(input, checkpoint);

  if (parts.parameters) checkpoint.parameters = read_tensors("/parameters/", input);
  if (parts.ema) checkpoint.ema = read_tensors("/ema/", input);
  if (parts.optimizer) checkpoint.optimizer = read_tensors("/optimizer/", input);
  return checkpoint;
}

void copy_into(const std::vector<Parameter>& from, const Model& to, const std::string& file) {
  std::map<std::string_view, const at::Tensor*> found;
  for (const Parameter& parameter : from) found[parameter.name] = &parameter.value;
  const std::vector<Parameter> own = to.parameters();
  for (const Parameter& parameter : own) {
    const auto place = found.find(parameter.name);
    if (place == found.end()) reject("{}: parameter '{}' is missing", file, parameter.name);
    const at::Tensor& value = *place->second;
    if (value.sizes() != parameter.value.sizes())
      reject("{}: parameter '{}': expected {}, found {}", file, parameter.name, shape_of(parameter.value), shape_of(value));
    if (!at::isfinite(value).all().item<bool>()) reject("{}: parameter '{}' has a value that is not finite", file, parameter.name);
  }
  if (found.size() > own.size()) {
    for (const Parameter& parameter : own) found.erase(parameter.name);
    reject("{}: parameter '{}' is none of this network's", file, one_line(std::string(found.begin()->first)));
  }
  const at::NoGradGuard guard;
  for (const Parameter& parameter : own) parameter.value.copy_(*found.at(parameter.name));
}

void WeightsOption::add_to(Options& options) {
  options.option("weights", weights, "the moving average (where there is none, the parameters), or the parameters themselves").choices({"ema", "raw"});
}

std::vector<Parameter> WeightsOption::read(const h5::Input& input) const {
  std::vector<Parameter> found;
  if (weights == "ema") found = read_tensors("/ema/", input);
  return found.empty() ? read_tensors("/parameters/", input) : found;
}

}  // namespace gdds::model
