// What a run is made of, opened and checked before the first step: tokens or a stream of snapshots, the process, the
// validation file, the vocabulary.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diffusion/open.h"
#include "train/trainer.h"

namespace gdds::train {

class Data {
 public:
  Data(const std::string& input, const diffusion::ProcessOptions& process, const TrainOptions& options);
  // `open` makes an output for a checkpoint.
  Run run(std::function<h5::Output(const std::string&)> open);
  const std::vector<h5::Source>& sources() const { return sources_; }
  // Status 2 where the log would be written over one of these files, or over what the run reads.
  void check_log(const std::vector<std::string>& outputs) const;

 private:
  void open_tokens(const diffusion::ProcessOptions& process);
  void open_snapshots(std::unique_ptr<h5::StreamReader> stream, h5::Input first, const diffusion::ProcessOptions& process);
  void open_validation();

  const TrainOptions& options_;
  std::vector<std::string> files_;  // that are read
  std::vector<h5::Source> sources_;
  std::unique_ptr<h5::Input> tokens_, validation_file_;
  std::unique_ptr<diffusion::Sequences> sequences_, validation_;
  std::shared_ptr<const diffusion::Process> process_;
  std::unique_ptr<BatchSource> source_;
  diffusion::VocabularyName vocabulary_name_;
  std::optional<text::Vocabulary> vocabulary_;
  std::int64_t length_ = 0;
  std::string data_;
};

}  // namespace gdds::train
