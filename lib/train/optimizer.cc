// See optimizer.h.
#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include <torch/torch.h>

#include "base/error.h"

namespace gdds::train {

void OptimizerOptions::add_to(Options& options) {
  options.option("learning-rate", rate, "learning rate of AdamW").range(0, 10);
  options.option("beta1", beta1, "AdamW: decay of the mean gradient").range(0, 0.999999);
  options.option("beta2", beta2, "AdamW: decay of the mean square").range(0, 0.999999);
  options.option("adam-eps", eps, "AdamW: added to the root of the mean square").range(1e-16, 1);
  options.option("weight-decay", weight_decay, "AdamW: weight decay").range(0, 10);
  options.option("clip", clip, "largest norm of the gradient; 0: any").range(0, 1e9);
  options.option("warm-up", warm_up, "steps in which the learning rate rises from 0").range(0, 1e12);
  options.option("decay", decay, "the learning rate after that: constant, or by a cosine to a tenth at the last step").choices({"none", "cosine"});
  options.option("ema", ema, "decay of the moving average of the weights, less in the first steps").range(0, 0.9999999);
}

double OptimizerOptions::rate_at(std::int64_t n, std::int64_t steps) const {
  if (n < warm_up) return rate * static_cast<double>(n + 1) / static_cast<double>(warm_up);
  if (decay == "none" || steps <= warm_up) return rate;
  const double done = std::min(1.0, static_cast<double>(n - warm_up) / static_cast<double>(std::max<std::int64_t>(1, steps - warm_up)));
  return rate * (0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi * done)));
}

double OptimizerOptions::ema_at(std::int64_t n) const { return std::min(ema, (1 + static_cast<double>(n)) / (10 + static_cast<double>(n))); }

Optimizer::Optimizer(const model::Model& model, const OptimizerOptions& options) : parameters_(model.parameters()), options_(options) {
  const torch::NoGradGuard guard;
  for (const auto& p : parameters_) {
    first_.push_back(torch::zeros_like(p.value));
    second_.push_back(torch::zeros_like(p.value));
    average_.push_back(p.value.detach().clone());
  }
}

double Optimizer::gradient_norm() const {
  double sum = 0;
  for (const auto& p : parameters_)
    if (p.value.grad().defined()) sum += p.value.grad().to(torch::kDouble).square().sum().item<double>();
  return std::sqrt(sum);
}

void Optimizer::clear_gradients() {
  for (auto& p : parameters_) p.value.mutable_grad() = at::Tensor();
}

// Decay, moments and step as in Loshchilov and Hutter: p -= rate (m^ / (sqrt(v^) + eps) + weight_decay p).
void Optimizer::step(std::int64_t n, std::int64_t steps, double norm) {
  const torch::NoGradGuard guard;
  const double rate = options_.rate_at(n, steps), keep = options_.ema_at(n);
  const double scale = options_.clip > 0 && norm > options_.clip ? options_.clip / norm : 1.0;
  const double first_bias = 1 - std::pow(options_.beta1, static_cast<double>(n + 1)), second_bias = 1 - std::pow(options_.beta2, static_cast<double>(n + 1));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& p = parameters_[i].value;
    if (p.grad().defined()) {
      const at::Tensor gradient = scale == 1.0 ? p.grad() : p.grad() * scale;
      first_[i].lerp_(gradient, 1 - options_.beta1);
      second_[i].mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
      p.mul_(1 - rate * options_.weight_decay);
      p.addcdiv_(first_[i], second_[i].sqrt().div_(std::sqrt(second_bias)).add_(options_.eps), -rate / first_bias);
    }
    average_[i].lerp_(p, 1 - keep);
  }
  clear_gradients();
}

std::vector<model::Parameter> Optimizer::state() const {
  std::vector<model::Parameter> all;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    all.push_back({"exp_avg/" + parameters_[i].name, first_[i]});
    all.push_back({"exp_avg_sq/" + parameters_[i].name, second_[i]});
  }
  return all;
}

std::vector<model::Parameter> Optimizer::average() const {
  std::vector<model::Parameter> all;
  for (std::size_t i = 0; i < parameters_.size(); ++i) all.push_back({parameters_[i].name, average_[i]});
  return all;
}

void Optimizer::restore(const std::vector<model::Parameter>& state, const std::vector<model::Parameter>& average, const std::string& file) {
  const torch::NoGradGuard guard;
  const auto copy = [&](const std::vector<model::Parameter>& from, const std::vector<model::Parameter>& to, const char* what) {
    std::map<std::string, at::Tensor> named;
    for (const auto& p : from) named.emplace(p.name, p.value);
    for (const auto& p : to) {
      const auto found = named.find(p.name);
      if (found == named.end()) reject("{}: {}{} is missing: a checkpoint that training can go on from has it", file, what, p.name);
      if (found->second.sizes() != p.value.sizes()) reject("{}: {}{}: its shape is not that of the parameter", file, what, p.name);
      p.value.copy_(found->second);
    }
  };
  copy(state, this->state(), "/optimizer/");
  copy(average, this->average(), "/ema/");
}

}  // namespace gdds::train
