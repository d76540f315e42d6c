// See snapshots.h.
#include "diffusion/snapshots.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/progress.h"
#include "base/threads.h"

namespace gdds::diffusion {
namespace {

constexpr std::uint64_t kMostInMemory = std::uint64_t{2} << 30;  // bytes of token ids
constexpr std::int64_t kRows = 256;                              // sequences at a time, for one file

template <typename T>
std::vector<T> narrowed(const std::vector<std::int32_t>& ids) {
  return {ids.begin(), ids.end()};
}

void append_ids(h5::Writer& writer, const std::vector<std::int32_t>& ids, bool narrow) {
  if (narrow) writer.append(std::span<const std::uint16_t>(narrowed<std::uint16_t>(ids)));
  else writer.append(std::span<const std::int32_t>(ids));
}

// The datasets of a file, filled batch by batch.
class SnapshotWriter {
 public:
  SnapshotWriter(h5::Output& output, const Process& process, std::uint64_t n, std::uint64_t length, bool paths, bool lengths)
      : narrow_ids_(process.m() <= 65536), narrow_states_(process.states() <= 65536),
        x0_(output.dataset("/x0", {n, length}, ids(narrow_ids_))), xt_(output.dataset("/xt", {n, length}, ids(narrow_states_))),
        time_(output.dataset("/time", {n}, h5::Type::float64)), jumped_(output.dataset("/jumped", {n, length}, h5::Type::uint8)),
        sequence_(output.dataset("/sequence", {n}, h5::Type::int64)) {
    if (lengths) parts_.push_back(output.dataset("/lengths", {n}, h5::Type::int32));
    if (paths) {
      parts_.push_back(output.dataset("/path/offsets", {n, length + 1}, h5::Type::int64));
      parts_.push_back(output.dataset("/path/times", {h5::kUnknown}, h5::Type::float64));
      parts_.push_back(output.dataset("/path/states", {h5::kUnknown}, ids(narrow_states_)));
    }
    output.attribute("/process@digest", process.digest());
    output.attribute("/process@name", process.name());
    output.attribute("/process@states", std::int64_t{process.states()});
  }
  void append(SnapshotBatch& b) {
    append_ids(x0_, b.x0, narrow_ids_);
    append_ids(xt_, b.xt, narrow_states_);
    time_.append(std::span<const double>(b.times));
    jumped_.append(std::span<const std::uint8_t>(b.jumped));
    sequence_.append(std::span<const std::int64_t>(b.sequences));
    std::size_t part = 0;
    if (!b.lengths.empty()) parts_[part++].append(std::span<const std::int32_t>(b.lengths));
    if (b.path_offsets.empty()) return;
    for (std::int64_t& offset : b.path_offsets) offset += jumps_;
    jumps_ += static_cast<std::int64_t>(b.path_times.size());
    parts_[part].append(std::span<const std::int64_t>(b.path_offsets));
    parts_[part + 1].append(std::span<const double>(b.path_times));
    append_ids(parts_[part + 2], b.path_states, narrow_states_);
  }

 private:
  static h5::Type ids(bool narrow) { return narrow ? h5::Type::uint16 : h5::Type::int32; }
  bool narrow_ids_, narrow_states_;
  h5::Writer x0_, xt_, time_, jumped_, sequence_;
  std::vector<h5::Writer> parts_;
  std::int64_t jumps_ = 0;
};

void write_vocabulary(const Process& process, const text::Vocabulary* vocabulary, h5::Output& output) {
  if (vocabulary != nullptr) return text::write(*vocabulary, output);
  output.attribute("/vocab@name", process.vocabulary().name);
  output.attribute("/vocab@hash", process.vocabulary().hash);
  output.attribute("/vocab@size", std::int64_t{process.m()});
}

std::optional<text::Vocabulary> whole_vocabulary(const h5::Input& tokens) {
  if (!tokens.has("/vocab/bytes")) return std::nullopt;
  return text::read_vocabulary(tokens);
}

void count(const SnapshotBatch& batch, NoiseSummary& sum) {
  sum.sequences += static_cast<std::uint64_t>(batch.n);
  sum.tokens += batch.lengths.empty() ? batch.x0.size() : std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::uint64_t{0});
  for (const std::uint8_t j : batch.jumped) sum.jumped += j;
}

}  // namespace

// ---- times -----------------------------------------------------------------------------------------------------------------

void TimeOptions::add_to(Options& options) {
  options.option("time", time, "t of every sequence; -1: drawn for each from --t-min to 1").range(-1, 1);
  add_drawn_to(options);
}

void TimeOptions::add_drawn_to(Options& options) {
  options.option("t-min", t_min, "the smallest t that is drawn").range(0, 1);
  options.option("times", times, "how t is drawn: each by itself, in pairs that mirror each other, or one in each of --strata equal parts in turn")
      .choices({"uniform", "antithetic", "stratified"});
  options.option("strata", strata, "parts of --times stratified").range(1, 1 << 20);
}

void TimeOptions::validate() const {
  if (time < 0 && time != -1) bad_usage("--time: expected from 0 to 1, or -1, found {}", time);
}

double TimeOptions::of_sample(std::uint64_t i, Seed seed) const {
  if (time >= 0) return time;
  const bool pairs = times == "antithetic";
  double u = TokenRandom(seed.value, kernels::kForTimes, pairs ? i / 2 : i, 0).unit();
  if (pairs && i % 2 == 1) u = 1 - u;
  if (times == "stratified") u = (static_cast<double>(i % static_cast<std::uint64_t>(strata)) + u) / static_cast<double>(strata);
  return t_min + (1 - t_min) * u;
}

void SnapshotOptions::add_to(Options& options) {
  time.add_to(options);
  options.option("paths", paths, "keep whole paths: when each token jumped, and to what");
  seed.add_to(options);
}

// ---- sequences -----------------------------------------------------------------------------------------------------------------

Sequences::Sequences(const h5::Input& input)
    : input_(input), count_(static_cast<std::int64_t>(input.shape("/tokens")[0])), length_(static_cast<std::int64_t>(input.shape("/tokens")[1])), m_(input.integer_attribute("/vocab@size")) {
  if (count_ == 0 || length_ == 0) reject("{}: /tokens: expected sequences, found none", input.name());
  const bool narrow = input.type("/tokens") == h5::Type::uint16;
  const std::uint64_t bytes = static_cast<std::uint64_t>(count_ * length_) * (narrow ? 2 : 4);
  if (bytes <= kMostInMemory && narrow) narrow_ = input.read<std::uint16_t>("/tokens");
  else if (bytes <= kMostInMemory) wide_ = input.read<std::int32_t>("/tokens");
  if (!input.has("/lengths")) return;
  lengths_ = input.read<std::int32_t>("/lengths");
  for (std::size_t i = 0; i < lengths_.size(); ++i)
    if (lengths_[i] < 0 || lengths_[i] > length_) reject("{}: /lengths[{}]: expected from 0 to {}, found {}", input.name(), i, length_, lengths_[i]);
}

void Sequences::copy(std::int64_t i, std::int32_t* out) const {
  const std::int64_t at = i * length_;
  if (!narrow_.empty()) std::copy_n(narrow_.begin() + at, length_, out);
  else if (!wide_.empty()) std::copy_n(wide_.begin() + at, length_, out);
  else input_.read_rows("/tokens", static_cast<std::uint64_t>(i), 1, std::span<std::int32_t>(out, static_cast<std::size_t>(length_)));
  for (std::int64_t l = 0; l < length_; ++l)
    if (out[l] < 0 || out[l] >= m_) reject("{}: /tokens[{}, {}]: expected an id below {}, found {}", input_.name(), i, l, m_, out[l]);
}

std::int64_t SampleOrder::sequence(std::uint64_t sample) {
  const auto n = static_cast<std::uint64_t>(count_);
  if (!shuffled_) return static_cast<std::int64_t>(sample % n);
  if (epoch_ != sample / n) {
    epoch_ = sample / n;
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    TokenRandom random(seed_.value, kernels::kForOrder, epoch_, 0);
    for (std::uint64_t left = n; left > 1; --left) {
      const auto pick = static_cast<std::uint64_t>((static_cast<unsigned __int128>(random.next()) * left) >> 64);
      std::swap(order_[left - 1], order_[pick]);
    }
  }
  return order_[sample % n];
}

// ---- batches -------------------------------------------------------------------------------------------------------------------

SnapshotBatch SnapshotSource::batch(std::uint64_t first, std::int64_t n) {
  SnapshotBatch b;
  b.n = n;
  b.length = sequences_.length();
  const auto size = static_cast<std::size_t>(n * b.length);
  b.x0.resize(size);
  b.xt.resize(size);
  b.jumped.resize(size);
  std::vector<std::uint64_t> numbers;
  for (std::int64_t i = 0; i < n; ++i) {
    numbers.push_back(first + static_cast<std::uint64_t>(i));
    b.sequences.push_back(order_.sequence(numbers.back()));
    b.times.push_back(options_.time.of_sample(numbers.back(), options_.seed));
    sequences_.copy(b.sequences.back(), b.x0.data() + i * b.length);
    if (sequences_.has_lengths()) b.lengths.push_back(sequences_.length_of(b.sequences.back()));
  }
  if (options_.paths) draw_paths(b, first);
  else process_.noise({b.x0.data(), numbers.data(), n, b.length, options_.seed.value, b.xt.data(), b.jumped.data()}, b.times);
  for (std::size_t s = 0; s < b.lengths.size(); ++s)  // what does not count stays as it is
    for (std::int64_t l = b.lengths[s]; l < b.length; ++l) {
      const std::size_t at = s * static_cast<std::size_t>(b.length) + static_cast<std::size_t>(l);
      b.xt[at] = b.x0[at];
      b.jumped[at] = 0;
    }
  return b;
}

void SnapshotSource::draw_paths(SnapshotBatch& b, std::uint64_t first) const {
  std::vector<Path> paths(b.x0.size());
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads())
  for (std::int64_t s = 0; s < b.n; ++s)
    for (std::int64_t l = 0; l < (b.lengths.empty() ? b.length : b.lengths[static_cast<std::size_t>(s)]); ++l) {
      TokenRandom random(options_.seed.value, kernels::kForPaths, first + static_cast<std::uint64_t>(s), static_cast<std::uint32_t>(l));
      const auto at = static_cast<std::size_t>(s * b.length + l);
      paths[at] = process_.path(b.x0[at], b.times[static_cast<std::size_t>(s)], random);
    }
  for (std::size_t at = 0; at < paths.size(); ++at) {
    if (at % static_cast<std::size_t>(b.length) == 0) b.path_offsets.push_back(static_cast<std::int64_t>(b.path_times.size()));
    const Path& path = paths[at];
    b.xt[at] = path.jumps.empty() ? b.x0[at] : path.jumps.back().to;
    b.jumped[at] = !path.jumps.empty();
    b.path_times.insert(b.path_times.end(), path.times.begin(), path.times.end());
    for (const Jump& jump : path.jumps) b.path_states.push_back(jump.to);
    b.path_offsets.push_back(static_cast<std::int64_t>(b.path_times.size()));
  }
}

void write(const SnapshotBatch& batch, const Process& process, h5::Output& output, const text::Vocabulary* vocabulary) {
  write_vocabulary(process, vocabulary, output);
  SnapshotBatch copy = batch;
  SnapshotWriter(output, process, static_cast<std::uint64_t>(batch.n), static_cast<std::uint64_t>(batch.length), !batch.path_offsets.empty(), !batch.lengths.empty()).append(copy);
}

SnapshotBatch read_snapshots(const h5::Input& input, std::int32_t states) {
  SnapshotBatch b;
  b.n = static_cast<std::int64_t>(input.shape("/x0")[0]);
  b.length = static_cast<std::int64_t>(input.shape("/x0")[1]);
  if (b.n == 0 || b.length == 0) reject("{}: /x0: expected sequences, found none", input.name());
  b.x0 = input.read<std::int32_t>("/x0");
  b.xt = input.read<std::int32_t>("/xt");
  b.jumped = input.read<std::uint8_t>("/jumped");
  b.times = input.read<double>("/time");
  b.sequences = input.read<std::int64_t>("/sequence");
  const std::int64_t m = input.integer_attribute("/vocab@size");
  for (std::size_t i = 0; i < b.x0.size(); ++i) {
    if (b.x0[i] < 0 || b.x0[i] >= m) reject("{}: /x0: expected ids below {}, found {}", input.name(), m, b.x0[i]);
    if (b.xt[i] < 0 || b.xt[i] >= states) reject("{}: /xt: expected states below {}, found {}", input.name(), states, b.xt[i]);
  }
  for (const double t : b.times)
    if (!(t >= 0 && t <= 1)) reject("{}: /time: expected from 0 to 1, found {}", input.name(), t);
  if (input.has("/lengths")) b.lengths = input.read<std::int32_t>("/lengths");
  for (const std::int32_t length : b.lengths)
    if (length < 0 || length > b.length) reject("{}: /lengths: expected from 0 to {}, found {}", input.name(), b.length, length);
  if (!input.has("/path/offsets")) return b;
  for (const char* part : {"/path/times", "/path/states"})
    if (!input.has(part)) reject("{}: {} is missing", input.name(), part);
  b.path_offsets = input.read<std::int64_t>("/path/offsets");
  b.path_times = input.read<double>("/path/times");
  b.path_states = input.read<std::int32_t>("/path/states");
  for (const std::int32_t state : b.path_states)
    if (state < 0 || state >= states) reject("{}: /path/states: expected states from 0 to {}, found {}", input.name(), states - 1, state);
  const auto jumps = static_cast<std::int64_t>(std::min(b.path_times.size(), b.path_states.size()));
  for (std::size_t i = 0; i < b.path_offsets.size(); ++i)
    if (b.path_offsets[i] < (i > 0 ? b.path_offsets[i - 1] : 0) || b.path_offsets[i] > jumps) reject("{}: /path/offsets: not increasing, or beyond the {} jumps", input.name(), jumps);
  for (const double t : b.path_times)
    if (!(t >= 0 && t <= 1)) reject("{}: /path/times: expected from 0 to 1, found {}", input.name(), t);
  for (std::size_t i = 0; i + 1 < b.path_offsets.size(); ++i)
    if (!std::is_sorted(b.path_times.begin() + b.path_offsets[i], b.path_times.begin() + b.path_offsets[i + 1])) reject("{}: /path/times: the jumps of a token are not in their order", input.name());
  return b;
}

// ---- files and streams -----------------------------------------------------------------------------------------------------------

void NoiseOptions::add_to(Options& options) {
  snapshots.add_to(options);
  options.option("batch-size", batch_size, "write a stream of batches of this many sequences, shuffled anew each epoch; 0: one file, each sequence once, in order").range(0, 1 << 24);
  options.option("batches", batches, "end the stream after this many batches; 0: endless").range(0, 1e15);
}

void NoiseOptions::validate(const std::string& output) const {
  snapshots.time.validate();
  if (batches > 0 && batch_size == 0) bad_usage("--batches: goes with --batch-size");
  struct stat status {};
  const bool into_file = output != "-" || (fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode));
  if (batch_size > 0 && batches == 0 && into_file) bad_usage("--batches: an endless stream goes into a pipe only; say how many batches");
}

NoiseSummary noise_file(const h5::Input& tokens, const Process& process, const NoiseOptions& options, h5::Output& output) {
  const Sequences sequences(tokens);
  SnapshotSource source(sequences, process, options.snapshots, false);
  SnapshotWriter writer(output, process, static_cast<std::uint64_t>(sequences.count()), static_cast<std::uint64_t>(sequences.length()), options.snapshots.paths, sequences.has_lengths());
  const auto vocabulary = whole_vocabulary(tokens);
  write_vocabulary(process, vocabulary ? &*vocabulary : nullptr, output);
  Progress progress("noising", static_cast<std::uint64_t>(sequences.count() * sequences.length()), "tokens");
  NoiseSummary sum;
  for (std::int64_t first = 0; first < sequences.count(); first += kRows) {
    SnapshotBatch batch = source.batch(static_cast<std::uint64_t>(first), std::min(kRows, sequences.count() - first));
    writer.append(batch);
    count(batch, sum);
    progress.advance(batch.x0.size());
  }
  return sum;
}

NoiseSummary noise_stream(const h5::Input& tokens, const Process& process, const NoiseOptions& options, h5::StreamWriter& stream) {
  const Sequences sequences(tokens);
  SnapshotSource source(sequences, process, options.snapshots, true);
  Progress progress("noising", static_cast<std::uint64_t>(options.batches) * static_cast<std::uint64_t>(options.batch_size * sequences.length()), "tokens");
  const auto vocabulary = whole_vocabulary(tokens);
  NoiseSummary sum;
  for (std::int64_t i = 0; options.batches == 0 || i < options.batches; ++i) {
    const SnapshotBatch batch = source.batch(static_cast<std::uint64_t>(i * options.batch_size), options.batch_size);
    h5::Output output = stream.batch();
    write(batch, process, output, i == 0 && vocabulary ? &*vocabulary : nullptr);
    output.commit();
    count(batch, sum);
    progress.advance(batch.x0.size());
  }
  return sum;
}

}  // namespace gdds::diffusion
