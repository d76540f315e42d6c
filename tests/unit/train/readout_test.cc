// The loss of a part of the positions after the other against that of all logits at once: values, and gradients of features,
// weight and bias.
#include <torch/torch.h>

#include <gtest/gtest.h>

#include "train/readout.h"

namespace gdds::train {
namespace {

struct Leaves {
  at::Tensor features;
  model::Output output;
};

Leaves leaves(std::int64_t positions, std::int64_t d, std::int64_t m, at::ScalarType type = at::kDouble) {
  auto random = at::detail::createCPUGenerator(5);
  const auto leaf = [&](at::IntArrayRef shape, double scale) { return (torch::randn(shape, random, type) * scale).requires_grad_(); };
  return {leaf({positions, d}, 1), {leaf({m, d}, 1), leaf({m}, 0.5)}};
}

// A loss and the gradients of three leaves, each to be compared on its own scale.
std::vector<at::Tensor> with_gradients(const at::Tensor& sum, const Leaves& x) {
  std::vector<at::Tensor> all = torch::autograd::grad({sum}, {x.features, x.output.weight, x.output.bias});
  all.push_back(sum.detach());
  return all;
}
void expect_same(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), tolerance * expected[i].abs().max().item<double>()) << i;
}

// 150 positions of 300,000 classes are three parts. A third of them counts for nothing, the others by different weights.
TEST(Readout, CrossEntropyInPartsIsThatOfAllLogits) {
  constexpr std::int64_t kPositions = 150, kM = 300000;
  ASSERT_LT(rows_of_part(kM), kPositions / 2);
  const Leaves x = leaves(kPositions, 6, kM);
  const at::Tensor target = torch::arange(kPositions) * 1999, weight = (torch::arange(kPositions) % 3).to(at::kDouble) * 0.7;
  for (const std::int64_t without : {-1, 7}) {
    at::Tensor logits = torch::addmm(x.output.bias, x.features, x.output.weight.t());
    if (without >= 0) logits = logits.index_fill(1, torch::tensor({without}), -std::numeric_limits<float>::infinity());
    const at::Tensor expected = -(torch::log_softmax(logits, 1).gather(1, target.unsqueeze(1)).squeeze(1) * weight).sum();
    const auto whole = with_gradients(expected, x), parts = with_gradients(cross_entropy_sum(x.features, x.output, false, target, weight, without), x);
    expect_same(parts, whole, 1e-12);
    EXPECT_EQ(parts[0][3].abs().max().item<double>(), 0) << "a position that does not count";
    const torch::NoGradGuard guard;
    EXPECT_NEAR(cross_entropy_sum(x.features, x.output, false, target, weight, without).item<double>(), expected.item<double>(), 1e-12 * expected.item<double>());
  }
}

// In bfloat16 every product is rounded to 8 bits, of which sums of six make no more than a few hundredths.
TEST(Readout, CrossEntropyInBfloat16IsNear) {
  const Leaves x = leaves(40, 6, 50, at::kFloat);
  const at::Tensor target = torch::arange(40), weight = torch::ones({40});
  expect_same(with_gradients(cross_entropy_sum(x.features, x.output, true, target, weight), x), with_gradients(cross_entropy_sum(x.features, x.output, false, target, weight), x), 0.03);
}

TEST(Readout, NothingCounts) {
  const Leaves x = leaves(10, 6, 50);
  for (const at::Tensor& value : with_gradients(cross_entropy_sum(x.features, x.output, false, torch::arange(10), torch::zeros({10})), x)) EXPECT_EQ(value.abs().max().item<double>(), 0);
}

// Any other loss, in parts of 7 of 20 positions; the sum enters something else, so that its gradient is not one.
TEST(Readout, AnyLossInPartsIsThatOfAllLogits) {
  const Leaves x = leaves(20, 6, 11);
  const at::Tensor of_positions = torch::arange(20).to(torch::kDouble).unsqueeze(1);
  const auto loss = [&](const at::Tensor& logits, std::int64_t begin) { return (torch::softmax(logits, 1).square() * of_positions.slice(0, begin, begin + logits.size(0))).sum(); };
  const at::Tensor logits = torch::addmm(x.output.bias, x.features, x.output.weight.t());
  expect_same(with_gradients(sum_over_parts(x.features, x.output, 7, false, loss).square(), x), with_gradients(loss(logits, 0).square(), x), 1e-12);
}

}  // namespace
}  // namespace gdds::train
