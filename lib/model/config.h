// What a network is, in numbers: the shape that a checkpoint records and that decides which parameters there are. It is
// plain data without LibTorch, so tools can read it, print it and compare it in milliseconds. MATH 7.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/options.h"

namespace gdds::model {

enum class Arch {
  ddit,        // bidirectional, conditioned on time: mu(x0 | xt, t)
  ar,          // the same blocks, causal, without time: the next token
  two_stream,  // the paper's network for the Campbell estimator (two_stream.h)
};
std::string_view arch_name(Arch arch);  // "ddit", "ar", "two-stream"

struct ModelConfig {
  Arch arch = Arch::ddit;
  std::int64_t states = 0;          // input ids: the vocabulary and the states of the process, such as the mask
  std::int64_t m = 0;               // output classes, the first m ids
  std::int64_t d = 768;             // width
  std::int64_t blocks = 12;         // two-stream: half of them for the content, half for the queries
  std::int64_t heads = 12;
  std::int64_t conditioning = 128;  // width of the time embedding, c
  std::int64_t mlp_ratio = 4;
  double dropout = 0.1;
  std::int64_t length = 1024;       // longest sequence
  double rotary_base = 10000;
  bool time_conditioning = true;    // off: sigma = 0 is fed, whatever the time; the parameters are there all the same

  bool operator==(const ModelConfig&) const = default;

  // What is wrong with it, in words, or nothing.
  std::string fault() const;
  // Status 2 where something is wrong.
  void validate() const;
  // Where another one differs, in words: "d 128 and not 256, heads 4 and not 8".
  std::string difference(const ModelConfig& other) const;

  // All parameters; and without vocab_embed and output_layer.linear (weight and bias), which grow with the vocabulary.
  std::int64_t parameters() const;
  std::int64_t parameters_without_vocabulary() const;

  // One line of JSON, the same for the same config. Reading is strict: what is missing, unknown, of another type or
  // faulty is status 3 and names the file.
  std::string json() const;
  static ModelConfig from_json(const std::string& text, const std::string& file);
};

// What was typed: a size, and what differs from it. The objective, the vocabulary and the process decide the rest.
struct ModelOptions {
  std::string size = "small";
  std::int64_t d = 0, blocks = 0, heads = 0;  // 0: as the size says
  std::int64_t length = 0;                    // 0: as the data are
  std::int64_t conditioning = 128, mlp_ratio = 4;
  double dropout = 0.1;
  double rotary_base = 10000;
  bool no_time_conditioning = false;
  void add_to(Options& options);
  // Checked; status 2 where it cannot be.
  ModelConfig config(Arch arch, std::int64_t states, std::int64_t m, std::int64_t data_length) const;
};

}  // namespace gdds::model
