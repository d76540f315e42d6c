// AdamW with warm-up, decay and clipping, and the moving average of the weights (MATH 7), as plain state that a checkpoint
// holds: the same state and the same gradients give the same step, bit for bit, on the same machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "model/network.h"

namespace gdds::train {

struct OptimizerOptions {
  double rate = 3.5e-4;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.01;
  double clip = 1;
  std::int64_t warm_up = 2500;
  std::string decay = "none";  // none, cosine: to a tenth of the rate at the last step
  double ema = 0.9999;
  void add_to(Options& options);
  // Of step n, the first being 0; `steps` in all.
  double rate_at(std::int64_t n, std::int64_t steps) const;
  // min(ema, (1+n)/(10+n))
  double ema_at(std::int64_t n) const;
};

class Optimizer {
 public:
  Optimizer(const model::Model& model, const OptimizerOptions& options);

  // The norm of all gradients; not finite where one of them is not.
  double gradient_norm() const;
  // One step with the gradients of the parameters, which are clipped to the norm and then forgotten.
  void step(std::int64_t n, std::int64_t steps, double norm);
  void clear_gradients();

  // Named as in a checkpoint: "exp_avg/<parameter>", "exp_avg_sq/<parameter>"; shared with the optimiser.
  std::vector<model::Parameter> state() const;
  std::vector<model::Parameter> average() const;
  // From a checkpoint; status 3 naming what does not fit.
  void restore(const std::vector<model::Parameter>& state, const std::vector<model::Parameter>& average, const std::string& file);

 private:
  std::vector<model::Parameter> parameters_;
  std::vector<at::Tensor> first_, second_, average_;
  OptimizerOptions options_;
};

}  // namespace gdds::train
