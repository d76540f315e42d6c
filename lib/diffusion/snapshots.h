// Snapshots: sequences x0 of a tokens file, a time t for each, and x_t. One file with every sequence once, or a stream of
// batches over epochs in a seeded order, bounded or endless. Sample i of a run has the same sequence, time and noise
// whatever the batch size, so a stream cut into other batches, or made inside the training program, is the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/seed.h"
#include "diffusion/process.h"
#include "h5/input.h"
#include "h5/output.h"
#include "text/vocabulary.h"

namespace gdds::diffusion {

struct TimeOptions {
  double time = -1;            // the same for all; -1: drawn
  double t_min = 1e-3;
  std::string times = "uniform";  // uniform, antithetic, stratified
  std::int64_t strata = 64;
  void add_to(Options& options);
  void add_drawn_to(Options& options);  // without --time
  void validate() const;
  // t of sample i.
  double of_sample(std::uint64_t i, Seed seed) const;
};

struct SnapshotOptions {
  TimeOptions time;
  Seed seed;
  bool paths = false;
  void add_to(Options& options);
};

// The sequences of a tokens file: in memory where they are not too many, else read as they are asked for.
class Sequences {
 public:
  explicit Sequences(const h5::Input& input);
  std::int64_t count() const { return count_; }
  std::int64_t length() const { return length_; }
  bool has_lengths() const { return !lengths_.empty(); }
  // Copies sequence i; status 3 for an id that is not below m.
  void copy(std::int64_t i, std::int32_t* out) const;
  // How many of its tokens count.
  std::int32_t length_of(std::int64_t i) const { return lengths_.empty() ? static_cast<std::int32_t>(length_) : lengths_[static_cast<std::size_t>(i)]; }

 private:
  const h5::Input& input_;
  std::int64_t count_, length_, m_;
  std::vector<std::uint16_t> narrow_;
  std::vector<std::int32_t> wide_;
  std::vector<std::int32_t> lengths_;
};

// Which sequence is sample i: all of them in order, or each epoch in an order of its own.
class SampleOrder {
 public:
  SampleOrder(std::int64_t count, bool shuffled, Seed seed) : count_(count), shuffled_(shuffled), seed_(seed) {}
  std::int64_t sequence(std::uint64_t sample);

 private:
  std::int64_t count_;
  bool shuffled_;
  Seed seed_;
  std::uint64_t epoch_ = ~std::uint64_t{0};
  std::vector<std::int64_t> order_;
};

struct SnapshotBatch {
  std::int64_t n = 0, length = 0;
  std::vector<std::int32_t> x0, xt;
  std::vector<std::uint8_t> jumped;
  std::vector<double> times;
  std::vector<std::int64_t> sequences;
  std::vector<std::int32_t> lengths;  // empty: all tokens count
  // With paths: the jumps of token l of sequence s are those from offsets[s, l] to offsets[s, l + 1].
  std::vector<std::int64_t> path_offsets;  // [n, length + 1]
  std::vector<double> path_times;
  std::vector<std::int32_t> path_states;
};

class SnapshotSource {
 public:
  SnapshotSource(const Sequences& sequences, const Process& process, const SnapshotOptions& options, bool shuffled)
      : sequences_(sequences), process_(process), options_(options), order_(sequences.count(), shuffled, options.seed) {}
  // Samples first ... first + n - 1.
  SnapshotBatch batch(std::uint64_t first, std::int64_t n);

 private:
  void draw_paths(SnapshotBatch& batch, std::uint64_t first) const;
  const Sequences& sequences_;
  const Process& process_;
  const SnapshotOptions& options_;
  SampleOrder order_;
};

// A batch of kind `snapshots`, written and read; status 3 for an id, a time or an offset that cannot be.
SnapshotBatch read_snapshots(const h5::Input& input, std::int32_t states);
// The vocabulary is written whole where it is given, else by its name.
void write(const SnapshotBatch& batch, const Process& process, h5::Output& output, const text::Vocabulary* vocabulary = nullptr);

struct NoiseOptions {
  SnapshotOptions snapshots;
  std::int64_t batch_size = 0, batches = 0;
  void add_to(Options& options);
  // Status 2 for what cannot be, such as an endless stream into a file.
  void validate(const std::string& output) const;
};

// What gdds-noise does: all sequences as one file, or a stream; the file, or the first batch, has the whole vocabulary if the
// tokens have it. Returns how many tokens there were and how many jumped.
struct NoiseSummary {
  std::uint64_t sequences = 0, tokens = 0, jumped = 0;
};
NoiseSummary noise_file(const h5::Input& tokens, const Process& process, const NoiseOptions& options, h5::Output& output);
NoiseSummary noise_stream(const h5::Input& tokens, const Process& process, const NoiseOptions& options, h5::StreamWriter& stream);

}  // namespace gdds::diffusion
