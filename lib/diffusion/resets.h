// Processes whose jumps forget where they came from: absorb (to the mask), uniform (to any token) and hybrid (to either,
// mixed over time as in GIDD). Everything about them is in closed form:
//   K_{t,s} = rho I + w 1^T,   rho = stay(t) / stay(s),   w = mass(t) - rho mass(s),
// where stay(t) + mask(t) + uniform(t) = 1 are the shares of tokens that did not jump, are at the mask, are anywhere.
#pragma once

#include "diffusion/config.h"
#include "diffusion/process.h"

namespace gdds::diffusion {

// With a = alpha of the schedule and C = 1 + B (4 a (1-a))^(gamma/2), B = share/(1-share): stay a/C, mask (1-a)/C and
// uniform (C-1)/C, which is `share` in the middle. For a = 1-t this is GIDD's.
struct HybridShape {
  double share = 0.1;
  double gamma = 1;
  void add_to(Options& options);
  bool operator==(const HybridShape&) const = default;
};

class ResetProcess final : public Process {
 public:
  // absorb, uniform or hybrid; absorb and hybrid need a mask.
  ResetProcess(const std::string& name, const Schedule& schedule, const VocabularyName& vocabulary, const HybridShape& shape = {});

  double clock(double t) const override;
  double time_of(double clock) const override;
  std::optional<Jump> jump(std::int32_t y, double t, TokenRandom& random) const override;
  double stays(std::int32_t, double t) const override { return masses(t).stay; }
  void rates_from(std::int32_t y, double t, std::span<double> out) const override;
  void noise(const kernels::Snapshots& batch, std::span<const double> times) const override;
  std::unique_ptr<Transition> transition(double s, double t) const override;
  std::unique_ptr<Bridge> bridge(double s, double t) const override;
  std::vector<double> prior() const override;
  std::string config() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

  struct Masses {
    double stay, mask, uniform;
  };
  Masses masses(double t) const;
  // Of K_{t,s}: stay is rho, the others the two parts of w.
  Masses masses(double s, double t) const;
  // Rates of jumps to the mask and to any token.
  void rates(double t, double& mask, double& uniform) const;

 private:
  bool hybrid() const { return name() == "hybrid"; }
  double excess(double a) const;  // C - 1

  HybridShape shape_;
};

}  // namespace gdds::diffusion
