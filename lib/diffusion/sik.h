// Semantic kernels (SIK, MATH 2): a token jumps to its neighbours in an embedding, and now and then, more and more often
// as t grows, is reset to any token. SikProcess is what sik-knn (over a neighbour table) and sik-dense (over the whole
// vocabulary) have in common: the two clocks.
#pragma once

#include <mutex>

#include "diffusion/clock.h"
#include "diffusion/config.h"
#include "diffusion/neighbour_table.h"
#include "diffusion/process.h"

namespace gdds::diffusion {

class SikProcess : public Process {
 public:
  SikProcess(const std::string& name, const Schedule& schedule, const VocabularyName& vocabulary, const ResetShare& share)
      : Process(name, schedule, vocabulary), share_(share), clock_(schedule, share, vocabulary.size) {}

  const Clock& clocks() const { return clock_; }
  double clock(double t) const override { return clock_.total(t); }
  double time_of(double c) const override { return clock_.time_of_total(c); }
  double stays(std::int32_t, double t) const override;
  std::optional<Jump> jump(std::int32_t y, double t, TokenRandom& random) const override;
  void rates_from(std::int32_t y, double t, std::span<double> out) const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 protected:
  // A draw from F_t(., y), and F_t(., y) itself.
  virtual std::int32_t semantic_jump(std::int32_t y, double t, TokenRandom& random) const = 0;
  virtual void kernel_column(std::int32_t y, double t, std::span<double> out) const = 0;
  std::vector<kernels::SikTime> kernel_times(std::span<const double> times) const;

  const ResetShare share_;
  const Clock clock_;
};

// F by columns and by rows. A column has k entries, a row as many as there are tokens that it is a neighbour of.
struct SparseKernel {
  std::int32_t m = 0, k = 0;
  std::vector<std::int32_t> ids;    // [m, k]
  std::vector<double> weights;      // [m, k]
  std::vector<std::int64_t> row_begin;  // [m + 1]
  std::vector<std::int32_t> row_ids;    // sources of each token
  std::vector<double> row_weights;

  void apply(std::span<const double> p, std::span<double> out) const;             // F p
  void apply_transposed(std::span<const double> h, std::span<double> out) const;  // F^T h
};
SparseKernel sparse_kernel(const NeighbourTable& table, double epsilon);

// Pois(n; mean) for n = 0, 1, ... until the rest is negligible; and c_n(t, s), n as far as Pois(n; A_t - A_s) goes. MATH 3.
std::vector<double> poisson_weights(double mean);
std::vector<double> reset_coefficients(const Clock& clock, double s, double t);

class SikKnnProcess final : public SikProcess {
 public:
  SikKnnProcess(const Schedule& schedule, const VocabularyName& vocabulary, const ResetShare& share, NeighbourTable table, double epsilon);

  void noise(const kernels::Snapshots& batch, std::span<const double> times) const override;
  std::unique_ptr<Transition> transition(double s, double t) const override;
  std::unique_ptr<Bridge> bridge(double s, double t) const override;
  std::vector<double> prior() const override;
  std::string config() const override;
  std::vector<NamedArray> arrays() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

  const SparseKernel& kernel() const { return kernel_; }
  // p_n(x), n = 0, 1, ..., with p_n = F^n (1/m) 1: every v_{t,s}(x) is made of these few numbers.
  const double* spread_of(std::int32_t x) const;
  // A draw from F(., y).
  std::int32_t neighbour(std::int32_t y, TokenRandom& random) const;

 private:
  std::int32_t semantic_jump(std::int32_t y, double t, TokenRandom& random) const override;
  void kernel_column(std::int32_t y, double t, std::span<double> out) const override;

  const NeighbourTable table_;
  const double epsilon_;
  const SparseKernel kernel_;
  std::vector<kernels::AliasSlot<std::uint16_t>> narrow_;  // of vocabularies of up to 65,536 tokens
  std::vector<kernels::AliasSlot<std::int32_t>> wide_;
  mutable std::once_flag spread_once_;
  mutable std::size_t spread_count_ = 0;
  mutable std::vector<double> spreads_;  // [m, spread_count]
};

// The affinity over the whole vocabulary at the temperature tau(t) = begin^(1-t) end^t.
struct Temperature {
  double begin = 0.01, end = 0.01;
  double operator()(double t) const;
};

class SikDenseProcess final : public SikProcess {
 public:
  // The table's ranking must be normalised: its last neighbour bounds the affinity of all tokens that are not in it.
  SikDenseProcess(const Schedule& schedule, const VocabularyName& vocabulary, const ResetShare& share, NeighbourTable table, std::vector<float> points, std::int32_t d,
                  const Temperature& temperature);

  void noise(const kernels::Snapshots& batch, std::span<const double> times) const override;
  bool constant_temperature() const { return temperature_.begin == temperature_.end; }
  // From all weights of each column, slowly: the definition.
  void noise_blockwise(const kernels::Snapshots& batch, std::span<const double> times) const;
  std::unique_ptr<Transition> transition(double s, double t) const override;
  std::vector<double> prior() const override;
  std::string config() const override;
  std::vector<NamedArray> arrays() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  std::int32_t semantic_jump(std::int32_t y, double t, TokenRandom& random) const override;
  void kernel_column(std::int32_t y, double t, std::span<double> out) const override;
  kernels::DenseTables tables() const;
  void check_head() const;
  // K_{t,s} of a constant temperature, from powers of F.
  std::vector<double> matrix_of_powers(double s, double t) const;

  const NeighbourTable table_;
  const std::vector<float> points_;
  const std::int32_t d_;
  const Temperature temperature_;
  std::vector<std::int32_t> by_id_;
  std::vector<double> scaled_, scales_, lengths_;
  mutable std::once_flag powers_once_;
  mutable std::vector<std::vector<double>> powers_;  // F^n, [m, m] each, where they were asked for
};

}  // namespace gdds::diffusion
