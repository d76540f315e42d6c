// LibTorch is found, linked and works: a step of gradient descent on a least-squares problem, in fp32 and in bf16.
#include <torch/torch.h>

#include <gtest/gtest.h>

namespace {

class Torch : public testing::TestWithParam<torch::ScalarType> {};
INSTANTIATE_TEST_SUITE_P(, Torch, testing::Values(torch::kFloat32, torch::kBFloat16),
                         [](const auto& info) { return info.param == torch::kFloat32 ? "fp32" : "bf16"; });

TEST_P(Torch, AutogradStepIsTheClosedForm) {
  torch::manual_seed(1);
  // x [8, 4], w [4, 2], y [8, 2]; loss = sum (x w - y)^2, so its gradient is 2 x^T (x w - y). Small whole numbers: exact.
  const auto options = torch::TensorOptions().dtype(GetParam());
  const auto x = torch::randint(-2, 3, {8, 4}).to(options), y = torch::randint(-2, 3, {8, 2}).to(options);
  auto w = torch::randint(-2, 3, {4, 2}).to(options).requires_grad_(true);
  const auto expected = (2 * x.t().matmul(x.matmul(w) - y)).detach();
  (x.matmul(w) - y).pow(2).sum().backward();
  EXPECT_TRUE(torch::equal(w.grad(), expected));

  const auto before = w.detach().clone();
  torch::optim::SGD optimizer({w}, torch::optim::SGDOptions(0.25));
  optimizer.step();
  EXPECT_TRUE(torch::equal(w.detach(), before - 0.25 * expected));
}

TEST(TorchBuild, IsTheOneConfigured) { EXPECT_GE(TORCH_VERSION_MAJOR, 2); }

}  // namespace
