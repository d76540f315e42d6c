// A forward process by what was typed: its name with its options and the files it is made of, or a `process` file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "diffusion/clock.h"
#include "diffusion/process.h"
#include "diffusion/resets.h"

namespace gdds::diffusion {

struct ProcessOptions {
  std::string process = "absorb";
  ScheduleOptions schedule;
  HybridShape hybrid;
  ResetShare resets;
  std::string neighbours, embedding;
  double epsilon = 0.01, epsilon_end = 0, kernel_perplexity = 0;
  std::string clusters, mask_rates;
  double cluster_rate = 1;
  std::string mask_form = "rate";
  void add_to(Options& options);
  // Status 2 for what cannot be, before any file is opened.
  void validate() const;

  bool is_file() const;
  // A file that names the vocabulary (a process, neighbours or an embedding), or nothing.
  std::string file_with_vocabulary() const;
};

// Checks everything; a file of another vocabulary is status 3. What was read is added to `sources`.
std::unique_ptr<Process> open_process(const ProcessOptions& options, const VocabularyName& vocabulary, std::vector<h5::Source>& sources);

// Status 3 where the file's vocabulary is another one.
void check_vocabulary(const h5::Input& input, const VocabularyName& wanted);

// A text file; status 1 if it cannot be read.
std::string read_text(const std::string& path);

// From a `process` file, or from any file that carries a process (a model).
std::unique_ptr<Process> read_process(const h5::Input& input);

}  // namespace gdds::diffusion
