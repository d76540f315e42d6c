// Networks of the public DDiT code (MDLM, Duo, UDLM, the GDDS authors') as checkpoints of ours. The shapes in the file decide
// what the network is; what shapes do not tell is typed, or in the metadata of our own exports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "diffusion/open.h"
#include "model/checkpoint.h"

namespace gdds::model {

struct ImportOptions {
  std::string vocabulary;
  diffusion::ProcessOptions process;
  std::string posterior = "full";
  std::int64_t heads = 0, length = 0;
  double dropout = 0.1, rotary_base = 10000;
  bool no_time_conditioning = false;
  void add_to(Options& options);
  // Status 2, before any file is opened.
  void validate() const;
};

// Reads a safetensors file; names may begin with "backbone.", "rotary_emb.inv_freq" is passed over, and without "sigma_map"
// the network is autoregressive. A vocabulary that lacks just the mask, for a network that has one more class than it has
// tokens, gets one. Status 3 for what does not fit, by name. What was read is added to `sources`.
Checkpoint import_checkpoint(const std::string& path, const ImportOptions& options, std::vector<h5::Source>& sources);

}  // namespace gdds::model
