// Training: batches in, a network out, with everything in between saved often enough that nothing is lost. Data order, noise
// and dropout depend on the seed and the step alone, so a run that was stopped and resumed is the run that was not, bit for
// bit on the same machine, and snapshots from a pipe train the same network as those made here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/device.h"
#include "base/options.h"
#include "base/seed.h"
#include "diffusion/snapshots.h"
#include "h5/input.h"
#include "h5/output.h"
#include "model/checkpoint.h"
#include "model/config.h"
#include "train/objective.h"
#include "train/optimizer.h"

namespace gdds::train {

struct TrainOptions {
  ObjectiveOptions objective;
  model::ModelOptions model;
  OptimizerOptions optimizer;
  diffusion::TimeOptions time;
  Seed seed;
  std::int64_t steps = 1000000, batch_size = 512, micro_batch = 16;
  double max_minutes = 0;
  std::string precision = "auto";  // bf16 where the device is fast with it, else fp32
  bool recompute = false;
  std::string validation;
  std::int64_t validate_every = 1000, validation_sequences = 256, save_every = 1000, report_every = 50;
  std::string resume, log_file;
  DeviceOption device;
  void add_to(Options& options);
  void validate() const;
  bool bf16() const;
};

// Where batches come from.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The batch of a step; steps are asked for in order. Nothing where a stream has ended.
  virtual std::unique_ptr<diffusion::SnapshotBatch> batch(std::int64_t step) = 0;
  // Tokens of a sequence.
  virtual std::int64_t length() const = 0;
};

// Noised here, from a tokens file.
std::unique_ptr<BatchSource> tokens_source(const diffusion::Sequences& sequences, const diffusion::Process& process, const TrainOptions& options, bool paths);
// A stream of `snapshots` with the batch that was read from it already. They must be of that process and, if asked for, have
// whole paths to t = 1; those of the steps before `step` are passed over.
std::unique_ptr<BatchSource> stream_source(std::unique_ptr<h5::StreamReader> stream, h5::Input first, const diffusion::Process& process, const TrainOptions& options, bool paths,
                                           std::int64_t step);

// Everything a run needs, put together by the tool.
struct Run {
  const TrainOptions& options;
  std::shared_ptr<const diffusion::Process> process;  // of ar: any
  diffusion::VocabularyName vocabulary_name;
  std::optional<text::Vocabulary> vocabulary;
  std::int64_t length = 0;
  std::string data;  // digest of the tokens; of a stream nothing is known
  BatchSource* source = nullptr;
  const diffusion::Sequences* validation = nullptr;  // none: no validation
  // Opens the checkpoint, "" for the last one and ".best" for the best; called each time one is written.
  std::function<h5::Output(const std::string& suffix)> open;
  std::string validation_data = {};  // digest of the validation file
};

struct TrainSummary {
  std::int64_t steps = 0, done = 0;  // in all, and in this run
  double loss = 0;             // mean over the last report
  double best_validation = 0;  // 0: none
};

// "model.h5" and ".best" give "model.best.h5".
std::string with_suffix(const std::string& path, const std::string& suffix);
// "LibTorch 2.14.1", for --version.
std::string torch_version();

// Of the dropout of a micro-batch, the part-th of a step.
constexpr std::uint64_t dropout_seed(std::uint64_t seed, std::int64_t step, std::int64_t part) {
  return mixed(mixed(mixed(0x64726f70, seed), static_cast<std::uint64_t>(step)), static_cast<std::uint64_t>(part));
}

// Runs until the steps or the minutes are over, or the stream ends; throws Stopped after a signal, once saved.
TrainSummary train(const Run& run);

}  // namespace gdds::train
