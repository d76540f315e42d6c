// Processes on the way to the mask in which every token has its own way: hierarchical (to the token's cluster, then to the
// mask, as in HDLM) and mask-rates (straight to the mask, each token at its own pace, as in GenMD4). A token can only be
// itself, its cluster or the mask, so everything is in closed form.
#pragma once

#include <array>

#include "diffusion/config.h"
#include "diffusion/process.h"

namespace gdds::diffusion {

// What the two have in common: the few states that a token can be in, and K between them.
class MaskingProcess : public Process {
 public:
  using Process::Process;

  void noise(const kernels::Snapshots& batch, std::span<const double> times) const override;
  std::unique_ptr<Transition> transition(double s, double t) const override;
  std::unique_ptr<Bridge> bridge(double s, double t) const override;
  std::vector<double> prior() const override;

  // y and the states after it, in order; the last is the mask. `count` of them.
  struct Way {
    std::array<std::int32_t, 3> state;
    int count;
  };
  virtual Way way(std::int32_t y) const = 0;
  // K_{t,s}(., y) on way(y).
  virtual std::array<double, 3> probabilities(std::int32_t y, double s, double t) const = 0;
  // The rate at which a state is left for the next on its way; 0 for the mask.
  virtual double exit_rate(std::int32_t y, double t) const = 0;
  double stays(std::int32_t y, double t) const override { return probabilities(y, 0, t)[0]; }
  void rates_from(std::int32_t y, double t, std::span<double> out) const override;
};

class HierarchicalProcess final : public MaskingProcess {
 public:
  // clusters[i] is the cluster of token i, from 0 on; cluster c is state m + c. A token goes to its cluster at rate f(t),
  // a cluster to the mask at rate gamma f(t).
  HierarchicalProcess(const Schedule& schedule, const VocabularyName& vocabulary, std::vector<std::int32_t> clusters, double gamma);

  std::int32_t states() const override { return m() + clusters_count_; }
  double clock(double t) const override { return std::max(1.0, gamma_) * schedule().Lambda(t); }
  double time_of(double clock) const override { return schedule().time_of(clock / std::max(1.0, gamma_)); }
  std::optional<Jump> jump(std::int32_t y, double t, TokenRandom& random) const override;
  double exit_rate(std::int32_t y, double t) const override;
  Way way(std::int32_t y) const override;
  std::array<double, 3> probabilities(std::int32_t y, double s, double t) const override;
  std::string config() const override;
  std::vector<NamedArray> arrays() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;
  // Of each token.
  const std::vector<std::int32_t>& clusters() const { return clusters_; }

 private:
  std::vector<std::int32_t> clusters_;
  std::int32_t clusters_count_ = 0;
  double gamma_;
};

class MaskRatesProcess final : public MaskingProcess {
 public:
  // form "rate": token i survives with alpha(t)^rates[i]; "power" (GenMD4): with alpha(t^rates[i]).
  MaskRatesProcess(const Schedule& schedule, const VocabularyName& vocabulary, std::vector<double> rates, const std::string& form);

  double clock(double t) const override { return largest_ * schedule().Lambda(t); }
  double time_of(double clock) const override { return schedule().time_of(clock / largest_); }
  std::optional<Jump> jump(std::int32_t y, double t, TokenRandom& random) const override;
  double exit_rate(std::int32_t y, double t) const override;
  // The one jump by inversion: no clock bounds all tokens of the form "power", and of "rate" it would be the fastest's.
  Path path(std::int32_t x0, double t, TokenRandom& random) const override;
  Way way(std::int32_t y) const override;
  std::array<double, 3> probabilities(std::int32_t y, double s, double t) const override;
  std::string config() const override;
  std::vector<NamedArray> arrays() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  double survival(std::int32_t y, double t) const;  // -log of it
  std::vector<double> rates_;
  std::string form_;
  double largest_;
};

}  // namespace gdds::diffusion
