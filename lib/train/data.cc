// See data.h.
#include "train/data.h"

#include <filesystem>

#include "base/error.h"
#include "diffusion/resets.h"

namespace gdds::train {
namespace {

// The step that a checkpoint is at, 0 without one.
std::int64_t first_step(const TrainOptions& options) {
  if (options.resume.empty()) return 0;
  const h5::Input input(options.resume, "model");
  return input.integer_attribute("/@step");
}

}  // namespace

Data::Data(const std::string& input, const diffusion::ProcessOptions& process, const TrainOptions& options)
    : options_(options), files_{input, options.validation, options.resume, process.process, process.neighbours, process.embedding, process.clusters, process.mask_rates} {
  if (!options.validation.empty()) {
    validation_file_ = std::make_unique<h5::Input>(options.validation, "tokens");
    validation_ = std::make_unique<diffusion::Sequences>(*validation_file_);
  }
  const bool piped = input == "-" || h5::is_stream(input);
  const std::string name = input == "-" ? "standard input" : input;
  std::unique_ptr<h5::StreamReader> stream;
  if (piped) stream = std::make_unique<h5::StreamReader>(input, "");
  h5::Input first = piped ? std::move(*stream->next()) : h5::Input(input, "");
  if (first.kind() == "tokens") {
    if (piped && stream->next()) reject("{}: expected one file of kind 'tokens', found several", name);
    tokens_ = std::make_unique<h5::Input>(std::move(first));
    open_tokens(process);
  } else if (first.kind() == "snapshots") {
    if (!piped) stream = std::make_unique<h5::StreamReader>(input, "snapshots"), first = std::move(*stream->next());
    open_snapshots(std::move(stream), std::move(first), process);
  } else {
    reject("{}: expected kind 'tokens' or 'snapshots', found '{}'", name, first.kind());
  }
  if (validation_) open_validation();
  if (!options.resume.empty()) sources_.push_back(h5::Input(options.resume, "model").source());
}

void Data::open_tokens(const diffusion::ProcessOptions& process) {
  vocabulary_name_ = diffusion::vocabulary_name(*tokens_);
  if (tokens_->has("/vocab/bytes")) vocabulary_ = text::read_vocabulary(*tokens_);
  if (options_.objective.objective == "ar") process_ = std::make_shared<diffusion::ResetProcess>("uniform", diffusion::Schedule(), vocabulary_name_);  // never used
  else process_ = open_process(process, vocabulary_name_, sources_);
  data_ = tokens_->source().digest;
  sources_.insert(sources_.begin(), tokens_->source());
  sequences_ = std::make_unique<diffusion::Sequences>(*tokens_);
  length_ = sequences_->length();
  source_ = tokens_source(*sequences_, *process_, options_, options_.objective.objective == "campbell");
}

// Snapshots name their process by its hash only: the process is a file. The first batch may have the vocabulary.
void Data::open_snapshots(std::unique_ptr<h5::StreamReader> stream, h5::Input first, const diffusion::ProcessOptions& process) {
  if (!process.is_file()) bad_usage("--process: snapshots need the process that made them as a file ('gdds-noise process' writes it)");
  const h5::Input file(process.process, "process");
  vocabulary_name_ = diffusion::vocabulary_name(file);
  diffusion::check_vocabulary(first, vocabulary_name_);
  if (first.has("/vocab/bytes")) vocabulary_ = text::read_vocabulary(first);
  process_ = diffusion::read_process(file);
  vocabulary_name_.mask = process_->vocabulary().mask;
  sources_.push_back(file.source());
  source_ = stream_source(std::move(stream), std::move(first), *process_, options_, options_.objective.objective == "campbell", first_step(options_));
  length_ = source_->length();
}

void Data::open_validation() {
  diffusion::check_vocabulary(*validation_file_, vocabulary_name_);
  if (validation_->length() > length_) reject("{}: sequences of {} tokens, longer than the {} of training", options_.validation, validation_->length(), length_);
  if (!vocabulary_ && validation_file_->has("/vocab/bytes")) vocabulary_ = text::read_vocabulary(*validation_file_);
  sources_.push_back(validation_file_->source());
}

void Data::check_log(const std::vector<std::string>& outputs) const {
  const std::string& log = options_.log_file;
  if (log.empty()) return;
  if (log == "-") bad_usage("--log-file: expected a file, found '-'");
  const auto same = [&](const std::string& other) {
    std::error_code none;
    return log == other || std::filesystem::equivalent(log, other, none);
  };
  for (const auto* files : {&files_, &outputs})
    for (const std::string& file : *files)
      if (!file.empty() && same(file)) bad_usage("--log-file: {} is another file of this run", log);
}

Run Data::run(std::function<h5::Output(const std::string&)> open) {
  return {options_, process_, vocabulary_name_, vocabulary_, length_, data_, source_.get(), validation_.get(), std::move(open), validation_ ? validation_file_->source().digest : ""};
}

}  // namespace gdds::train
