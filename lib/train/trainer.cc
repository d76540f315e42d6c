// See trainer.h.
#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include <malloc.h>
#include <sched.h>

#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/stop.h"
#include "base/threads.h"

namespace gdds::train {
namespace {

using Clock = std::chrono::steady_clock;
using diffusion::SnapshotBatch;

const std::vector<std::string> kColumns = {"step", "loss", "gradient_norm", "learning_rate", "validation_loss"};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// What a validation loss is of: only such can be compared.
nlohmann::ordered_json validation_json(const Run& run) {
  if (run.validation == nullptr) return nullptr;
  return {{"data", run.validation_data}, {"sequences", run.options.validation_sequences}};
}

// All that must be the same for a run to be continued, and the validation, which may be another.
std::string training_json(const Run& run) {
  const TrainOptions& o = run.options;
  return nlohmann::ordered_json{{"objective", o.objective.objective}, {"posterior", o.objective.predicted()}, {"batch_size", o.batch_size}, {"micro_batch", o.micro_batch},
                                {"seed", o.seed.value}, {"times", o.time.times}, {"t_min", o.time.t_min}, {"strata", o.time.strata}, {"precision", o.bf16() ? "bf16" : "fp32"},
                                {"learning_rate", o.optimizer.rate}, {"beta1", o.optimizer.beta1}, {"beta2", o.optimizer.beta2}, {"adam_eps", o.optimizer.eps},
                                {"weight_decay", o.optimizer.weight_decay}, {"clip", o.optimizer.clip}, {"warm_up", o.optimizer.warm_up}, {"decay", o.optimizer.decay}, {"ema", o.optimizer.ema},
                                {"decay_steps", o.optimizer.decay == "none" ? 0 : o.steps}, {"data", run.data}, {"validation", validation_json(run)}}
      .dump();
}

// The options of this run must be those of the checkpoint.
void check_same_training(const std::string& file, const std::string& found, const std::string& wanted) {
  const auto a = nlohmann::json::parse(found, nullptr, false), b = nlohmann::json::parse(wanted);
  for (const auto& [name, value] : b.items())
    if (name != "validation" && (!a.is_object() || !a.contains(name) || a[name] != value))
      bad_usage("--resume: {} was trained with {} {}, and is to go on with {}", file, name, a.is_object() && a.contains(name) ? a[name].dump() : "unknown", value.dump());
}

class TokensSource final : public BatchSource {
 public:
  TokensSource(const diffusion::Sequences& sequences, const diffusion::Process& process, const TrainOptions& o, bool paths)
      : options_{o.time, o.seed, paths}, source_(sequences, process, options_, true), size_(o.batch_size), length_(sequences.length()) {
    if (paths) options_.time.time = 1;
  }
  std::unique_ptr<SnapshotBatch> batch(std::int64_t step) override {
    return std::make_unique<SnapshotBatch>(source_.batch(static_cast<std::uint64_t>(step * size_), size_));
  }
  std::int64_t length() const override { return length_; }

 private:
  diffusion::SnapshotOptions options_;
  diffusion::SnapshotSource source_;
  std::int64_t size_, length_;
};

// One batch ahead, so that the length of the sequences is known before the first step.
class StreamSource final : public BatchSource {
 public:
  StreamSource(std::unique_ptr<h5::StreamReader> stream, h5::Input first, const diffusion::Process& process, const TrainOptions& o, bool paths, std::int64_t step)
      : stream_(std::move(stream)), first_(std::move(first)), digest_(process.digest()), states_(process.states()), size_(o.batch_size), is_bound_(o.objective.objective == "path"), paths_(paths) {
    const std::string name = first_->name().substr(0, first_->name().rfind(':'));
    for (std::int64_t next = 0; next < step; ++next)
      if (!next_input()) reject("{}: the stream ends before step {}, where the checkpoint is", name, step);
    ahead_ = read();
    if (!ahead_) reject("{}: the stream ends at step {}, where the checkpoint is", name, step);
    length_ = ahead_->length;
  }
  std::unique_ptr<SnapshotBatch> batch(std::int64_t) override {
    auto batch = ahead_ ? std::move(ahead_) : read();
    return batch;
  }
  std::int64_t length() const override { return length_; }

 private:
  std::optional<h5::Input> next_input() {
    if (!first_) return stream_->next();
    return std::exchange(first_, std::nullopt);
  }
  std::unique_ptr<SnapshotBatch> read() {
    const auto input = next_input();
    if (!input) return nullptr;
    if (input->string_attribute("/process@digest") != digest_) reject("{}: noised by another process than the one given", input->name());
    auto b = std::make_unique<SnapshotBatch>(diffusion::read_snapshots(*input, states_));
    if (b->n != size_) reject("{}: expected {} sequences (--batch-size), found {}", input->name(), size_, b->n);
    if (length_ > 0 && b->length != length_) reject("{}: expected sequences of {} tokens, found {}", input->name(), length_, b->length);
    if (is_bound_ && std::any_of(b->times.begin(), b->times.end(), [](double t) { return t <= 0; })) reject("{}: /time: the bound's integrand is not finite at t = 0", input->name());
    if (paths_ && b->path_offsets.empty()) reject("{}: the objective campbell needs whole paths (gdds-noise --paths --time 1)", input->name());
    if (paths_ && std::any_of(b->times.begin(), b->times.end(), [](double t) { return t != 1; }))
      reject("{}: the objective campbell needs paths to t = 1 (gdds-noise --paths --time 1)", input->name());
    return b;
  }

  std::unique_ptr<h5::StreamReader> stream_;
  std::optional<h5::Input> first_;
  std::string digest_;
  std::int32_t states_;
  std::int64_t size_, length_ = 0;
  bool is_bound_, paths_;
  std::unique_ptr<SnapshotBatch> ahead_;
};

at::Device chosen(const Device& device) { return device.cuda ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.index)) : at::Device(at::kCPU); }

// Where every core has its thread, each stays on its own. Threads that wait for each other by spinning are slow beyond measure
// when two of them come to share a core, and the kernel may leave them there for seconds.
void settle_threads() {
  const int count = threads();
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (count < 2 || count != available_cores() || std::getenv("OMP_PROC_BIND") != nullptr || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  set_threads(count);  // from here on this thread may run on one core only
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  at::parallel_for(0, count, 1, [&](std::int64_t, std::int64_t) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cores[static_cast<std::size_t>(at::get_thread_num()) % cores.size()], &own);
    sched_setaffinity(0, sizeof own, &own);  // a wish, not a need
  });
}

// A step asks for the memory of the step before. Large blocks would go back to the kernel each time, to be cleared by it and
// handed out again page by page, a sixth of the time of a small network; so they stay here.
void keep_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 1 << 26);
}

class Trainer {
 public:
  explicit Trainer(const Run& run)
      : run_(run), options_(run.options), objective_(make_objective(options_.objective, run.process)), device_(chosen(options_.device.choose())), model_(make()),
        optimizer_(*model_, options_.optimizer) {
    keep_memory();
    torch::set_num_threads(threads());
    settle_threads();
    if (!options_.resume.empty()) resume();
    if (step_ >= options_.steps) bad_usage("--steps: {} is at step {} already; expected more than that, found {}", options_.resume, step_, options_.steps);
    if (!options_.log_file.empty()) open_log();
  }
  ~Trainer() {
    if (log_ != nullptr) std::fclose(log_);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  TrainSummary run();

 private:
  std::unique_ptr<model::Model> make() const {
    auto model = model::make_model(options_.model.config(objective_->arch(), run_.process->states(), run_.process->m(), run_.length), options_.seed.value);
    model->to(device_);
    return model;
  }
  bool is_validated(std::int64_t step) const { return run_.validation != nullptr && options_.validate_every > 0 && step % options_.validate_every == 0; }
  bool is_reported(std::int64_t step) const { return step % options_.report_every == 0 || is_validated(step); }
  void resume();
  void forget_the_end();
  void open_log();
  void rewrite_log();
  double step(const SnapshotBatch& batch);
  void report(double validation);
  void report_and_keep_best(bool validates);
  double validate();
  std::unique_ptr<SnapshotBatch> next_batch();
  void finish();
  void save(const std::string& suffix);
  [[noreturn]] void fail_numerically(const std::string& what) const;

  const Run& run_;
  const TrainOptions& options_;
  std::unique_ptr<Objective> objective_;
  const at::Device device_;
  const bool bf16_ = options_.bf16();
  std::unique_ptr<model::Model> model_, average_;
  Optimizer optimizer_;
  std::int64_t step_ = 0, saved_ = -1, validated_ = -1;
  double sum_ = 0, norm_ = 0, last_loss_ = 0, best_ = std::numeric_limits<double>::infinity();
  std::int64_t summed_ = 0;
  std::vector<double> curve_;
  std::FILE* log_ = nullptr;
};

void Trainer::resume() {
  const h5::Input input(options_.resume, "model");
  const model::Checkpoint c = model::read_checkpoint(input);
  if (c.config != model_->config()) bad_usage("--resume: {} holds another network: {}", options_.resume, c.config.difference(model_->config()));
  if (c.optimizer.empty()) bad_usage("--resume: {} has no state of an optimiser to go on from", options_.resume);
  check_same_training(options_.resume, c.training, training_json(run_));
  if (c.process != nullptr && c.process->digest() != run_.process->digest()) bad_usage("--resume: {} was trained on another process", options_.resume);
  model::copy_into(c.parameters, *model_, options_.resume);
  optimizer_.restore(c.optimizer, c.ema, options_.resume);
  step_ = saved_ = c.step;
  curve_ = c.curve;
  sum_ = c.pending_loss;
  summed_ = c.pending_steps;
  const auto before = nlohmann::json::parse(c.training);
  if (before.contains("validation") && before["validation"] == nlohmann::json(validation_json(run_))) best_ = c.best_validation;
  forget_the_end();
}

// What the end of a run added to the curve, a row or a validation that the run in one would not have.
void Trainer::forget_the_end() {
  if (curve_.empty() || curve_[curve_.size() - kColumns.size()] != static_cast<double>(step_)) return;
  if (!is_validated(step_)) curve_.back() = kNone;
  if (!is_reported(step_)) curve_.resize(curve_.size() - kColumns.size());
}

void Trainer::open_log() {
  log_ = std::fopen(options_.log_file.c_str(), "w");
  if (log_ == nullptr) fail_errno(options_.log_file, "cannot open", errno);
  rewrite_log();
}

// The whole curve.
void Trainer::rewrite_log() {
  std::rewind(log_);
  for (std::size_t i = 0; i < kColumns.size(); ++i) std::fprintf(log_, "%s%c", kColumns[i].c_str(), i + 1 < kColumns.size() ? '\t' : '\n');
  for (std::size_t i = 0; i < curve_.size(); ++i) std::fprintf(log_, "%.9g%c", curve_[i], (i + 1) % kColumns.size() == 0 ? '\n' : '\t');
  if (std::fflush(log_) != 0) fail_errno(options_.log_file, "cannot write", errno);
}

void Trainer::fail_numerically(const std::string& what) const {
  throw Error(Status::numerical, fmt::format("step {}: {} is not finite; {}", step_ + 1, what,
                                             saved_ >= 0 ? fmt::format("the checkpoint of step {} is kept", saved_) : "no checkpoint was written yet"));
}

// One optimiser step over the batch, in micro-batches; the loss a token.
double Trainer::step(const SnapshotBatch& batch) {
  const std::int64_t micro = std::min(options_.micro_batch, batch.n);
  const std::int64_t tokens = objective_->tokens(batch, 0, batch.n);
  if (tokens == 0) throw Error(Status::rejected, fmt::format("step {}: no token of the batch counts: its sequences are too short", step_));
  double loss = 0;
  for (std::int64_t first = 0; first < batch.n; first += micro) {
    const model::Pass pass{true, dropout_seed(options_.seed.value, step_, first / micro), options_.recompute, bf16_};
    objective_->each_part(*model_, batch, first, std::min(micro, batch.n - first), pass, [&](const at::Tensor& sum) {
      const at::Tensor part = sum / static_cast<double>(tokens);
      part.backward();
      loss += part.item<double>();
    });
  }
  norm_ = optimizer_.gradient_norm();
  if (!std::isfinite(loss)) fail_numerically("the loss");
  if (!std::isfinite(norm_)) fail_numerically("the gradient");
  optimizer_.step(step_, options_.steps, norm_);
  ++step_;
  return loss;
}

// Mean loss a token over the first sequences of the validation file, with the averaged weights; the same times and noise
// every time.
double Trainer::validate() {
  const torch::NoGradGuard guard;
  if (!average_) average_ = model::make_model(model_->config(), 0);
  average_->to(device_);
  model::copy_into(optimizer_.average(), *average_, "average");
  diffusion::SnapshotOptions o{options_.time, options_.seed, objective_->needs_paths()};
  const std::int64_t count = std::min(options_.validation_sequences, run_.validation->count());
  o.time.times = "stratified";
  o.time.strata = count;
  if (o.paths) o.time.time = 1;
  diffusion::SnapshotSource source(*run_.validation, *run_.process, o, false);
  double sum = 0;
  std::int64_t tokens = 0;
  for (std::int64_t first = 0; first < count; first += options_.micro_batch) {
    const SnapshotBatch batch = source.batch(static_cast<std::uint64_t>(first), std::min(options_.micro_batch, count - first));
    objective_->each_part(*average_, batch, 0, batch.n, {.bf16 = bf16_}, [&](const at::Tensor& part) { sum += part.item<double>(); });
    tokens += objective_->tokens(batch, 0, batch.n);
  }
  if (tokens == 0) throw Error(Status::rejected, fmt::format("{}: no token counts: its sequences are too short", options_.validation));
  return sum / static_cast<double>(tokens);
}

void Trainer::report(double validation) {
  if (!curve_.empty() && curve_[curve_.size() - kColumns.size()] == static_cast<double>(step_)) {  // a row of this step: it lacks the validation
    curve_.back() = validation;
    if (log_ != nullptr) rewrite_log();
    return;
  }
  last_loss_ = summed_ > 0 ? sum_ / static_cast<double>(summed_) : last_loss_;
  const double row[] = {static_cast<double>(step_), last_loss_, norm_, options_.optimizer.rate_at(step_ - 1, options_.steps), validation};
  curve_.insert(curve_.end(), std::begin(row), std::end(row));
  if (is_reported(step_)) sum_ = 0, summed_ = 0;  // else a run that goes on from here has more to add
  if (log_ == nullptr) return;
  std::fprintf(log_, "%.0f\t%.9g\t%.9g\t%.9g\t%.9g\n", row[0], row[1], row[2], row[3], row[4]);
  if (std::fflush(log_) != 0) fail_errno(options_.log_file, "cannot write", errno);
}

// What is not finite is never saved over what is.
void Trainer::save(const std::string& suffix) {
  for (const auto& p : model_->parameters())
    if (!torch::isfinite(p.value).all().item<bool>()) fail_numerically(fmt::format("parameter {}", p.name));
  model::Checkpoint c;
  c.config = model_->config();
  c.training = training_json(run_);
  c.step = step_;
  c.position = step_ * options_.batch_size;
  c.parameters = model_->parameters();
  c.ema = optimizer_.average();
  c.optimizer = optimizer_.state();
  c.curve_columns = kColumns;
  c.curve = curve_;
  c.pending_loss = sum_;
  c.pending_steps = summed_;
  c.best_validation = best_;
  if (c.config.arch != model::Arch::ar) c.process = run_.process;
  c.vocabulary_name = run_.vocabulary_name;
  c.vocabulary = run_.vocabulary;
  h5::Output output = run_.open(suffix);
  model::write_checkpoint(c, output);
  output.commit();
  if (suffix.empty()) saved_ = step_;
}

void Trainer::report_and_keep_best(bool validates) {
  const double validation = validates ? validate() : kNone;
  if (validates) validated_ = step_;
  report(validation);
  if (!(validation < best_)) return;
  best_ = validation;
  save(".best");
}

// Where the input is broken off or damaged, what was learned so far is saved before the error is told.
std::unique_ptr<SnapshotBatch> Trainer::next_batch() {
  try {
    return run_.source->batch(step_);
  } catch (const Error&) {
    if (step_ > 0) finish();
    throw;
  }
}

// The last row of the curve, and the last checkpoint.
void Trainer::finish() {
  const bool validates = run_.validation != nullptr && validated_ != step_, adds_row = step_ > 0 && (summed_ > 0 || validates);
  if (adds_row) report_and_keep_best(validates);
  if (saved_ != step_ || adds_row) save("");  // with that row
}

TrainSummary Trainer::run() {
  const StopRequest stop;
  const std::int64_t first = step_;
  const auto started = Clock::now();
  const auto minutes = [&] { return std::chrono::duration<double>(Clock::now() - started).count() / 60; };
  Progress progress("training", static_cast<std::uint64_t>((options_.steps - step_) * options_.batch_size * run_.length), "tokens", 60 * options_.max_minutes);
  const auto config = model_->config();
  log::info("{} parameters ({} without vocabulary), {}, process {}, {} tokens a step", config.parameters(), config.parameters_without_vocabulary(), model::arch_name(config.arch),
            run_.process->name(), options_.batch_size * run_.length);
  while (step_ < options_.steps && stop.signal() == 0 && (options_.max_minutes <= 0 || minutes() < options_.max_minutes)) {
    const auto batch = next_batch();
    if (!batch) break;
    sum_ += step(*batch);
    ++summed_;
    progress.advance(batch->x0.size());
    progress.note(fmt::format("step {}, loss {:.4f}", step_, sum_ / static_cast<double>(summed_)));
    if (is_reported(step_)) report_and_keep_best(is_validated(step_));
    if (options_.save_every > 0 && step_ % options_.save_every == 0) save("");
  }
  finish();
  if (stop.signal() != 0) throw Stopped{stop.signal()};
  return {step_, step_ - first, last_loss_, std::isfinite(best_) ? best_ : 0};
}

}  // namespace

void TrainOptions::add_to(Options& options) {
  objective.add_to(options);
  model.add_to(options);
  options.option("steps", steps, "optimiser steps in all").range(1, 1e15);
  options.option("batch-size", batch_size, "sequences a step").range(1, 1 << 24);
  options.option("micro-batch", micro_batch, "sequences at a time within a step: less memory, the same step").range(1, 1 << 20);
  options.option("max-minutes", max_minutes, "stop after so many minutes; 0: never").range(0, 1e9);
  optimizer.add_to(options);
  time.add_drawn_to(options);
  options.option("precision", precision, "matrix products in bfloat16, the rest and all that is kept in float, or all in float; auto: bf16 where the device has it")
      .choices({"auto", "bf16", "fp32"});
  options.option("recompute", recompute, "keep less of the forward pass and run it again in the backward one: less memory, a third more time");
  options.option("validation", validation, "tokens file to validate on").placeholder("FILE");
  options.option("validate-every", validate_every, "steps between validations, with the averaged weights").range(0, 1e15);
  options.option("validation-sequences", validation_sequences, "sequences of a validation").range(1, 1e9);
  options.option("save-every", save_every, "steps between checkpoints; 0: only at the end").range(0, 1e15);
  options.option("report-every", report_every, "steps between rows of the curve").range(1, 1e15);
  options.option("resume", resume, "go on from this checkpoint, with the same options").placeholder("FILE");
  options.option("log-file", log_file, "write the curve as tab-separated text, too").placeholder("FILE").neutral();
  device.add_to(options);
  seed.add_to(options);
}

bool TrainOptions::bf16() const {
  if (precision != "auto") return precision == "bf16";
  if (device.choose().cuda) return true;
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

void TrainOptions::validate() const {
  time.validate();
  if (objective.objective == "path" && time.t_min <= 0) bad_usage("--t-min: the bound's integrand is not finite at t = 0; expected more than 0");
}

std::unique_ptr<BatchSource> tokens_source(const diffusion::Sequences& sequences, const diffusion::Process& process, const TrainOptions& options, bool paths) {
  return std::make_unique<TokensSource>(sequences, process, options, paths);
}

std::unique_ptr<BatchSource> stream_source(std::unique_ptr<h5::StreamReader> stream, h5::Input first, const diffusion::Process& process, const TrainOptions& options, bool paths,
                                           std::int64_t step) {
  return std::make_unique<StreamSource>(std::move(stream), std::move(first), process, options, paths, step);
}

std::string with_suffix(const std::string& path, const std::string& suffix) {
  const std::size_t dot = path.ends_with(".h5") ? path.size() - 3 : path.size();
  return path.substr(0, dot) + suffix + path.substr(dot);
}

std::string torch_version() { return "LibTorch " TORCH_VERSION; }

// LibTorch tells of too little memory in an error of its own, with all its frames.
TrainSummary train(const Run& run) {
  try {
    return Trainer(run).run();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    if (text.find("alloc") == std::string::npos && text.find("out of memory") == std::string::npos) throw;
    fail("not enough memory; a smaller --micro-batch, --recompute or a smaller network needs less");
  }
}

}  // namespace gdds::train
