// See readout.h.
#include "train/readout.h"

#include <algorithm>

#include <torch/torch.h>

namespace gdds::train {
namespace {

// Of a part: its loss and, where it is wanted, the gradient of the logits.
struct PartLoss {
  at::Tensor sum, gradient;
};
using PartOf = std::function<PartLoss(const at::Tensor& logits, std::int64_t begin, bool with_gradient)>;

class Readout : public torch::autograd::Function<Readout> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& features, const at::Tensor& weight, const at::Tensor& bias, std::int64_t rows, bool bf16,
                            bool with_gradient, const PartOf& part_of) {
    const auto narrow = [&](const at::Tensor& x) { return bf16 ? x.to(torch::kBFloat16) : x.to(weight.scalar_type()); };
    const at::Tensor x = narrow(features), w = narrow(weight), b = narrow(bias);
    at::Tensor sum = torch::zeros({}, weight.options()), of_features, of_weight, of_bias;
    if (with_gradient) of_features = torch::empty_like(features), of_weight = torch::zeros_like(weight), of_bias = torch::zeros_like(bias);
    for (std::int64_t begin = 0; begin < x.size(0); begin += rows) {
      const std::int64_t end = std::min(begin + rows, x.size(0));
      const at::Tensor here = x.slice(0, begin, end);
      const PartLoss part = part_of(torch::addmm(b, here, w.t()).to(weight.scalar_type()), begin, with_gradient);
      sum = sum + part.sum;
      if (!with_gradient) continue;
      const at::Tensor gradient = narrow(part.gradient);
      of_features.slice(0, begin, end).copy_(torch::mm(gradient, w));
      if (bf16) of_weight.add_(torch::mm(gradient.t(), here));
      else of_weight.addmm_(gradient.t(), here);
      of_bias.add_(part.gradient.sum(0));
    }
    if (with_gradient) context->save_for_backward({of_features, of_weight, of_bias});
    return sum;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, const torch::autograd::variable_list& gradients) {
    torch::autograd::variable_list of_inputs(7);
    const auto saved = context->get_saved_variables();
    for (std::size_t i = 0; i < saved.size(); ++i) of_inputs[i] = saved[i] * gradients[0];
    return of_inputs;
  }
};

at::Tensor summed(const at::Tensor& features, const model::Output& output, std::int64_t rows, bool bf16, const PartOf& part_of) {
  return Readout::apply(features, output.weight, output.bias, rows, bf16, torch::GradMode::is_enabled(), part_of);
}

}  // namespace

std::int64_t rows_of_part(std::int64_t m) {
  constexpr std::int64_t kNumbers = 1 << 24;
  return std::max<std::int64_t>(64, kNumbers / m);
}

at::Tensor sum_over_parts(const at::Tensor& features, const model::Output& output, std::int64_t rows, bool bf16, const LossOfLogits& loss) {
  return summed(features, output, rows, bf16, [&](const at::Tensor& logits, std::int64_t begin, bool with_gradient) -> PartLoss {
    if (!with_gradient) return {loss(logits, begin), at::Tensor()};
    const torch::AutoGradMode guard(true);
    const at::Tensor leaf = logits.detach().requires_grad_();
    const at::Tensor sum = loss(leaf, begin);
    return {sum.detach(), torch::autograd::grad({sum}, {leaf})[0]};
  });
}

// The gradient is softmax less one at the target, made in the place of the logarithms.
at::Tensor cross_entropy_sum(const at::Tensor& features, const model::Output& output, bool bf16, const at::Tensor& target, const at::Tensor& weight, std::int64_t without) {
  const at::Tensor counted = weight.nonzero().squeeze(1);
  const at::Tensor x = counted.size(0) < weight.size(0) ? features.index_select(0, counted) : features, y = target.index_select(0, counted).unsqueeze(1), w = weight.index_select(0, counted).unsqueeze(1);
  return summed(x, output, rows_of_part(output.weight.size(0)), bf16, [&](at::Tensor logits, std::int64_t begin, bool with_gradient) -> PartLoss {
    const std::int64_t end = begin + logits.size(0);
    if (without >= 0) logits.select(1, without).fill_(-1e30);
    const at::Tensor targets = y.slice(0, begin, end), weights = w.slice(0, begin, end);
    at::Tensor log_p = torch::log_softmax(logits, 1);
    const at::Tensor sum = -(log_p.gather(1, targets) * weights).sum();
    if (!with_gradient) return {sum, at::Tensor()};
    return {sum, log_p.exp_().scatter_add_(1, targets, torch::full_like(weights, -1)).mul_(weights)};
  });
}

}  // namespace gdds::train
