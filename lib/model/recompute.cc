// See recompute.h. The backward pass builds the piece's graph anew and asks autograd for its gradients, inside the backward
// pass of the whole: LibTorch's engine is re-entrant.
#include "model/recompute.h"

#include "model/autocast.h"

namespace gdds::model {
namespace {

using Piece = std::function<at::Tensor(const std::vector<at::Tensor>&)>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Recomputed : torch::autograd::Function<Recomputed> {
  static at::Tensor forward(AutogradContext* context, const Piece& piece, at::TensorList inputs, at::TensorList parameters) {
    const auto device = inputs.front().device().type();
    variable_list saved = inputs.vec();
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["inputs"] = static_cast<std::int64_t>(inputs.size());
    context->saved_data["type"] = static_cast<std::int64_t>(Autocast::current(device));
    context->saved_data["piece"] = c10::IValue::make_capsule(c10::make_intrusive<Kept>(piece));
    return piece(inputs.vec());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list saved = context->get_saved_variables();
    const auto count = static_cast<std::size_t>(context->saved_data["inputs"].toInt());
    const auto device = saved.front().device().type();
    variable_list inputs;
    for (std::size_t i = 0; i < count; ++i) inputs.push_back(saved[i].detach().requires_grad_(saved[i].requires_grad()));

    variable_list wanted;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < saved.size(); ++i) {
      const at::Tensor& leaf = i < count ? inputs[i] : saved[i];
      if (!leaf.requires_grad()) continue;
      wanted.push_back(leaf);
      places.push_back(i + 1);  // after the piece itself
    }
    const torch::AutoGradMode with_gradients(true);
    at::Tensor y;
    {
      const Autocast as_before(device, static_cast<at::ScalarType>(context->saved_data["type"].toInt()));
      y = static_cast<const Kept*>(context->saved_data["piece"].toCapsule().get())->piece(inputs);
    }
    const variable_list found = torch::autograd::grad({y}, wanted, {gradients.front()}, std::nullopt, false, /*allow_unused=*/true);
    variable_list result(saved.size() + 1);
    for (std::size_t i = 0; i < places.size(); ++i) result[places[i]] = found[i];
    return result;
  }

 private:
  struct Kept : torch::CustomClassHolder {
    Piece piece;
    explicit Kept(Piece p) : piece(std::move(p)) {}
  };
};

}  // namespace

at::Tensor recomputed(Piece f, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& parameters) {
  if (!torch::GradMode::is_enabled()) return f(inputs);
  return Recomputed::apply(f, at::TensorList(inputs), at::TensorList(parameters));
}

}  // namespace gdds::model
