// A network as a file of kind `model`: its parameters, what it was trained on, and all it takes to go on training, in plain
// HDF5 that h5py reads, a dataset a parameter under its public name. What is written comes back bit for bit. LibTorch's
// full header is not needed here.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diffusion/process.h"
#include "h5/input.h"
#include "h5/output.h"
#include "model/network.h"
#include "text/vocabulary.h"

namespace gdds::model {

struct Checkpoint {
  ModelConfig config;
  std::string training = "{}";  // a JSON object that lib/train owns: objective, posterior, recipe
  std::int64_t step = 0;        // optimiser steps done
  std::int64_t position = 0;    // sequences seen

  // fp32, fp16 or bf16 as they are; what is read is fp32. The average is fp32, the optimiser's state fp32 or int64, and its
  // names are the optimiser's own ("exp_avg/blocks.0.norm1.weight"). A tensor without dimensions comes back as [1].
  std::vector<Parameter> parameters, ema, optimizer;

  std::vector<std::string> curve_columns;  // names without commas
  std::vector<double> curve;               // row-major [reports, columns]
  double pending_loss = 0;                 // what the next row is to be a mean of: a sum, and its steps
  std::int64_t pending_steps = 0;
  double best_validation = std::numeric_limits<double>::infinity();  // so far

  std::shared_ptr<const diffusion::Process> process;  // none: unknown, or autoregressive
  diffusion::VocabularyName vocabulary_name;
  std::optional<text::Vocabulary> vocabulary;         // the tokens, where they are known

  // Both of the above.
  void set_vocabulary(text::Vocabulary tokens);
};

// Tensors on any device; nothing is kept. The output is of kind `model`.
void write_checkpoint(const Checkpoint& checkpoint, h5::Output& output);

// Which tensors are wanted; those that are not stay in the file.
struct CheckpointParts {
  bool parameters = true, ema = true, optimizer = true;
};

// Tensors on the CPU, in the order of their names, without gradients. Status 3 where config, process and vocabulary
// contradict each other; whether the tensors are those of the network is for copy_into() to say.
Checkpoint read_checkpoint(const h5::Input& input, const CheckpointParts& parts = {});

// Values into the network's own tensors, by name, in their type and on their device. Status 3, naming the file and the
// parameter, for one that is missing, not the network's, of another shape or not finite; then nothing has been copied.
void copy_into(const std::vector<Parameter>& from, const Model& to, const std::string& file);

// Which weights to evaluate, sample or export with.
struct WeightsOption {
  std::string weights = "ema";
  void add_to(Options& options);
  // The moving average, or the parameters where they are asked for or there is no average.
  std::vector<Parameter> read(const h5::Input& input) const;
};

}  // namespace gdds::model
