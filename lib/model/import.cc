// See import.h.
#include "model/import.h"

#include <torch/torch.h>

#include <charconv>
#include <map>

#include "base/error.h"
#include "model/tensor_file.h"
#include "text/readers.h"

namespace gdds::model {
namespace {

const std::string kPrefix = "backbone.";
constexpr std::int64_t kHead = 64;  // the width of a head in all public networks

// Our name -> the file's.
std::map<std::string, std::string> network_names(const TensorFile& file) {
  std::map<std::string, std::string> names;
  for (const std::string& name : file.names()) {
    const std::string own = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
    if (own == "rotary_emb.inv_freq") continue;
    if (!names.emplace(own, name).second) reject("{}: tensor '{}' occurs with and without '{}'", file.path(), own, kPrefix);
  }
  return names;
}

class Shapes {
 public:
  Shapes(const TensorFile& file, const std::map<std::string, std::string>& names) : file_(file), names_(names) {}
  bool has(const std::string& name) const { return names_.count(name) > 0; }
  // Of a matrix.
  std::pair<std::int64_t, std::int64_t> operator()(const std::string& name) const {
    if (!has(name)) reject("{}: tensor '{}' is missing", file_.path(), name);
    const h5::Shape& shape = file_.shape(names_.at(name));
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0 || shape[0] > 1U << 31 || shape[1] > 1U << 31)
      reject("{}: tensor '{}' is {}; expected a matrix", file_.path(), name, h5::shape_text(shape));
    return {static_cast<std::int64_t>(shape[0]), static_cast<std::int64_t>(shape[1])};
  }
  // Blocks are counted by their numbers; that none is left out shows when they are read.
  std::int64_t blocks() const {
    std::int64_t count = 0;
    for (const auto& [name, theirs] : names_) {
      std::int64_t number = -1;
      if (name.starts_with("blocks.")) std::from_chars(name.data() + 7, name.data() + name.size(), number);
      if (number < 1 << 20) count = std::max(count, number + 1);
    }
    return count;
  }

 private:
  const TensorFile& file_;
  const std::map<std::string, std::string>& names_;
};

// What an export of ours says about itself, but for what was typed.
ModelConfig config_of_export(const TensorFile& tensors, const ImportOptions& options) {
  const ImportOptions untyped;
  ModelConfig config = ModelConfig::from_json(tensors.network(), tensors.path());
  if (options.heads != untyped.heads) config.heads = options.heads;
  if (options.length != untyped.length) config.length = options.length;
  if (options.dropout != untyped.dropout) config.dropout = options.dropout;
  if (options.rotary_base != untyped.rotary_base) config.rotary_base = options.rotary_base;
  if (options.no_time_conditioning) config.time_conditioning = false;
  if (const std::string fault = config.fault(); !fault.empty()) reject("{}: {}", tensors.path(), fault);
  return config;
}

ModelConfig config_of(const Shapes& shapes, const ImportOptions& options, const std::string& file) {
  ModelConfig config;
  config.arch = shapes.has("sigma_map.mlp.0.weight") ? Arch::ddit : Arch::ar;
  std::tie(config.states, config.d) = shapes("vocab_embed.embedding");
  config.m = shapes("output_layer.linear.weight").first;
  config.blocks = shapes.blocks();
  config.conditioning = config.arch == Arch::ddit ? shapes("sigma_map.mlp.0.weight").first : 128;
  config.mlp_ratio = shapes("blocks.0.mlp.0.weight").first / config.d;
  if (options.heads == 0 && config.d % kHead != 0) reject("{}: a width of {} is no number of heads of {}; --heads says how many there are", file, config.d, kHead);
  config.heads = options.heads > 0 ? options.heads : config.d / kHead;
  config.length = options.length > 0 ? options.length : 1024;
  config.dropout = options.dropout;
  config.rotary_base = options.rotary_base;
  config.time_conditioning = !options.no_time_conditioning;
  if (const std::string fault = config.fault(); !fault.empty()) reject("{}: {}", file, fault);
  return config;
}

}  // namespace

void ImportOptions::add_to(Options& options) {
  options.option("vocab", vocabulary, "vocabulary of the network: text8, bytes, or a file in any form that is known").placeholder("NAME|FILE");
  options.option("posterior", posterior, "what it was trained to predict: x0 on every position, on those that jumped, or given the rest of the sequence (the bounds of MDLM, UDLM, Duo)").choices({"full", "jumped", "leave-one-out"});
  options.option("heads", heads, "attention heads; 0: as the file says, or each of width 64").range(0, 1 << 15);
  options.option("length", length, "longest sequence; 0: as the file says, or 1024").range(0, 1 << 24);
  options.option("dropout", dropout, "dropout, where training goes on").range(0, 0.99);
  options.option("rotary-base", rotary_base, "base of the rotary positions").range(1.001, 1e12);
  options.option("no-time-conditioning", no_time_conditioning, "it was trained with sigma = 0 for every time, as MDLM's");
  process.add_to(options);
}

void ImportOptions::validate() const {
  if (vocabulary.empty()) bad_usage("--vocab: missing; ids mean nothing without their vocabulary");
  process.validate();
}

Checkpoint import_checkpoint(const std::string& path, const ImportOptions& options, std::vector<h5::Source>& sources) {
  const TensorFile file(path);
  if (file.is_gguf()) reject("{}: a GGUF file; expected safetensors", path);
  const auto names = network_names(file);
  Checkpoint checkpoint;
  checkpoint.config = file.network().empty() ? config_of(Shapes(file, names), options, path) : config_of_export(file, options);
  sources.push_back(file.source());

  text::Vocabulary vocabulary = text::open_vocabulary(options.vocabulary, sources);
  if (vocabulary.size() + 1 == checkpoint.config.m && vocabulary.mask < 0) vocabulary.mask = vocabulary.add("<|mask|>", true);
  if (vocabulary.size() != checkpoint.config.m)
    reject("{}: a network of {} classes, but the vocabulary '{}' has {} tokens{}", path, checkpoint.config.m, one_line(vocabulary.name), vocabulary.size(),
           vocabulary.mask < 0 ? " and no mask" : "");
  checkpoint.set_vocabulary(std::move(vocabulary));
  if (checkpoint.config.arch != Arch::ar) {
    checkpoint.process = diffusion::open_process(options.process, checkpoint.vocabulary_name, sources);
    if (checkpoint.process->states() != checkpoint.config.states)
      reject("{}: a network of {} states, but the process {} has {}", path, checkpoint.config.states, checkpoint.process->name(), checkpoint.process->states());
    checkpoint.training = fmt::format(R"({{"posterior":"{}"}})", options.posterior);
  }

  const auto model = make_model(checkpoint.config, 1);
  std::vector<Parameter> found;
  for (const auto& [own, theirs] : names) found.push_back({own, file.read(theirs)});
  copy_into(found, *model, path);
  checkpoint.parameters = model->parameters();
  return checkpoint;
}

}  // namespace gdds::model
