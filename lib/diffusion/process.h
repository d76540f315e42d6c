// A forward process: how a token is noised, independently of the others. It is a jump process on the tokens (and, where a
// process has states of its own, on these) with rates Q_t(x, y), to x from y. A process knows three things about itself:
// how to draw x_t and whole paths, exactly; what its transition operators K_{t,s} and bridges are; and how to write itself
// into a file, so that training, evaluation and sampling use one description. MATH 2, 3, 5.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "diffusion/schedule.h"
#include "h5/input.h"
#include "h5/output.h"
#include "noise.h"

namespace gdds::diffusion {

using kernels::TokenRandom;

// The vocabulary that a process belongs to, by name.
struct VocabularyName {
  std::string name, hash;
  std::int32_t size = 0;
  std::int32_t mask = -1;  // the mask's id, -1: none
};
VocabularyName vocabulary_name(const h5::Input& input);

// K_{t,s}, column-stochastic [states, states]: never stored where the vocabulary is large.
class Transition {
 public:
  virtual ~Transition() = default;
  virtual double entry(std::int32_t x, std::int32_t y) const = 0;               // to x from y
  virtual void column(std::int32_t y, std::span<double> out) const = 0;         // K(., y)
  virtual void row(std::int32_t x, std::span<double> out) const = 0;            // K(x, .)
  virtual void apply(std::span<const double> p, std::span<double> out) const = 0;       // K p
  virtual void apply_transposed(std::span<const double> h, std::span<double> out) const = 0;  // K^T h
};

// q(x_s | x_t, x_0), proportional to K_{t,s}(x_t, x_s) K_{s,0}(x_s, x_0). MATH 5.
class Bridge {
 public:
  virtual ~Bridge() = default;
  virtual std::int32_t draw(std::int32_t xt, std::int32_t x0, TokenRandom& random) const = 0;
};

// Where a jump leads. A reset forgets where it came from; other jumps are of a kernel that knows.
struct Jump {
  std::int32_t to;
  bool reset;
};

// A path up to t: the jumps, and when they were. A jump may lead to where it came from.
struct Path {
  std::vector<double> times;
  std::vector<Jump> jumps;
};

// An array that a process keeps in its file.
struct NamedArray {
  std::string path;
  h5::Shape shape;
  std::variant<std::span<const double>, std::span<const std::int64_t>, std::span<const std::int32_t>, std::span<const float>> values;
};

class Process {
 public:
  Process(std::string name, Schedule schedule, VocabularyName vocabulary) : name_(std::move(name)), schedule_(std::move(schedule)), vocabulary_(std::move(vocabulary)) {}
  virtual ~Process() = default;

  const std::string& name() const { return name_; }
  const Schedule& schedule() const { return schedule_; }
  const VocabularyName& vocabulary() const { return vocabulary_; }
  std::int32_t m() const { return vocabulary_.size; }
  virtual std::int32_t states() const { return m(); }

  // ---- the general way: candidates for a jump come as a Poisson process with mean clock(t) up to t
  virtual double clock(double t) const { return schedule_.Lambda(t); }
  virtual double time_of(double clock) const { return schedule_.time_of(clock); }
  // A candidate at time t finds the token at y: where it goes, or nowhere if it is turned down (thinning).
  virtual std::optional<Jump> jump(std::int32_t y, double t, TokenRandom& random) const = 0;
  // The probability that a token y at time 0 has not jumped by t.
  virtual double stays(std::int32_t y, double t) const = 0;
  // Q_t(., y), the diagonal included.
  virtual void rates_from(std::int32_t y, double t, std::span<double> out) const = 0;
  // N ~ Poisson(clock(t)), its N times sorted among themselves, a column draw for each. MATH 2.1.
  virtual Path path(std::int32_t x0, double t, TokenRandom& random) const;

  // ---- the fast way: x_t alone, of a batch; times[s] is t of sequence s
  virtual void noise(const kernels::Snapshots& batch, std::span<const double> times) const = 0;

  // ---- operators
  virtual std::unique_ptr<Transition> transition(double s, double t) const = 0;
  // Where none better is known: from a row of K_{t,s} and a column of K_{s,0}.
  virtual std::unique_ptr<Bridge> bridge(double s, double t) const;
  // The law that sampling starts from at t = 1; q_1(. | x0) is near it for every x0.
  virtual std::vector<double> prior() const = 0;

  // ---- as a file: its options as a JSON object, and its arrays
  virtual std::string config() const = 0;
  virtual std::vector<NamedArray> arrays() const { return {}; }
  std::string digest() const;
  // What there is to know beyond the schedule, as (name, value) rows.
  virtual std::vector<std::pair<std::string, std::string>> facts() const { return {}; }

 private:
  std::string name_;
  Schedule schedule_;
  VocabularyName vocabulary_;
};

// A file of kind `process`; or the process alone, into a file of another kind that carries one (a model).
void write(const Process& process, h5::Output& output);
void write_parts(const Process& process, h5::Output& output);

// Draws an index with these weights (not negative, not all zero); they need not be normalised.
std::int32_t draw_index(std::span<const double> weights, double u);

}  // namespace gdds::diffusion
