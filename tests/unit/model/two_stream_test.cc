// The two streams of the Campbell estimator: against plain loops, and no clean token reaches a position that must not see it.
#include <limits>

#include <torch/torch.h>

#include <gtest/gtest.h>

#include "model/autocast.h"
#include "model/two_stream.h"
#include "reference.h"
#include "stirred.h"

namespace gdds::model {
namespace {

ModelConfig streams() {
  ModelConfig config = shape(Arch::two_stream);
  config.states = 20;
  config.m = 19;
  config.blocks = 6;  // three of each, so that what could leak indirectly would
  return config;
}

TEST(Ranks, AreTheOrderOfTheTimesLatestFirst) {
  const double never = std::numeric_limits<double>::infinity();
  const at::Tensor times = at::tensor({0.3, 0.9, never, 0.1, 0.3, never}, at::kDouble).unsqueeze(0);
  EXPECT_EQ(reference::ids_of(ranks_of_times(times)[0]), (std::vector<std::int64_t>{3, 2, 0, 5, 4, 1}));  // ties by position
  const at::Tensor many = random({5, 50}, 1), ranks = ranks_of_times(many);
  EXPECT_TRUE(at::equal(ranks.unsqueeze(1) < ranks.unsqueeze(2), many.unsqueeze(1) > many.unsqueeze(2)));  // tau_j > tau_l iff r_j < r_l
}

TEST(TwoStream, StartsWithEqualLogits) {
  const auto network = make_two_stream(streams(), 1);
  const at::Tensor x0 = random_ids({2, 9}, 19, 1), logits = network->logits(x0, at::full_like(x0, 19), ranks_of_times(random({2, 9}, 2)), at::ones({2, 9}));
  EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{2, 9, 19}));
  EXPECT_TRUE(at::equal(logits, at::zeros_like(logits)));
}

TEST(TwoStream, LogitsAreThePlainLoops) {
  const auto network = make_two_stream(streams(), 1);
  stir(network->module());
  const reference::Reference plain(*network);
  const std::int64_t B = 3, L = 15;
  const at::Tensor x0 = random_ids({B, L}, 19, 1), z = random_ids({B, L}, 20, 2), ranks = ranks_of_times(random({B, L}, 3)), sigma = random({B, L}, 4).abs();
  for (const auto type : {at::kFloat, at::kDouble}) {
    network->to(type);
    const at::Tensor logits = network->logits(x0, z, ranks, sigma.to(type));
    for (std::int64_t b = 0; b < B; ++b) {
      const at::Tensor s = sigma[b].contiguous();
      const auto expected = plain.logits(reference::ids_of(x0[b]), reference::ids_of(z[b]), reference::ids_of(ranks[b]), {s.data_ptr<double>(), s.data_ptr<double>() + L});
      EXPECT_LT(reference::difference(logits[b], expected), type == at::kFloat ? 2e-4 : 1e-11);
    }
  }
}

// d logits_l / d content embedding of j is exactly zero unless r_j < r_l, and is not zero if so. The clean tokens are
// all different and no query holds one, so the row of x0_j in the embedding is the content embedding of j and nothing else.
TEST(TwoStream, NothingLeaks) {
  const std::int64_t L = 18;
  const at::Tensor x0 = at::arange(L).flip(0).unsqueeze(0), z = at::full({1, L}, 19, at::kLong), ranks = ranks_of_times(random({1, L}, 3));
  for (const auto type : {at::kFloat, at::kBFloat16})
    for (const bool recompute : {false, true}) {
      const auto network = make_two_stream(streams(), 1);
      stir(network->module());
      const at::Tensor embedding = network->module().named_parameters()["vocab_embed.embedding"];
      const at::Tensor sigma = random({1, L}, 4).abs().to(at::kFloat).requires_grad_();
      const Autocast scope(at::kCPU, type);
      const at::Tensor logits = network->logits(x0, z, ranks, sigma, {.dropout = true, .seed = 1, .recompute = recompute});
      ASSERT_TRUE(logits.isfinite().all().item<bool>());
      int seen = 0;
      for (std::int64_t l = 0; l < L; ++l) {
        const auto gradients = torch::autograd::grad({logits[0][l].square().sum()}, {embedding, sigma}, {}, true);
        const at::Tensor of_content = gradients[0].index({x0[0]}).abs().sum(1), of_time = gradients[1][0].abs();
        for (std::int64_t j = 0; j < L; ++j) {
          if (ranks[0][j].item<std::int64_t>() < ranks[0][l].item<std::int64_t>()) {
            EXPECT_GT(of_content[j].item<float>(), 0) << l << " should see " << j;
            ++seen;
          } else {
            EXPECT_EQ(of_content[j].item<float>(), 0) << l << " must not see " << j;
          }
          if (j == l) EXPECT_GT(of_time[j].item<float>(), 0);
          else EXPECT_EQ(of_time[j].item<float>(), 0) << l << " must not know the time of " << j;
        }
        EXPECT_GT(gradients[0][19].abs().sum().item<float>(), 0);  // its own query
      }
      EXPECT_EQ(seen, L * (L - 1) / 2);
    }
}

// The same in the forward direction: other tokens where l must not look, the same logits to the last bit.
TEST(TwoStream, WhatIsNotSeenDoesNotMatter) {
  const auto network = make_two_stream(streams(), 1);
  stir(network->module());
  const std::int64_t L = 18;
  const at::Tensor x0 = random_ids({1, L}, 19, 1), z = random_ids({1, L}, 20, 2), ranks = ranks_of_times(random({1, L}, 3)), sigma = random({1, L}, 4).abs().to(at::kFloat);
  const at::Tensor logits = network->logits(x0, z, ranks, sigma);
  for (std::int64_t l = 0; l < L; ++l) {
    const at::Tensor hidden = ranks >= ranks[0][l];
    const at::Tensor own = at::arange(L).unsqueeze(0) == l;
    const at::Tensor others = network->logits(at::where(hidden, (x0 + 7) % 19, x0), at::where(own, z, (z + 3) % 20), ranks, at::where(own, sigma, sigma + 1));
    EXPECT_TRUE(at::equal(others[0][l], logits[0][l])) << l;
  }
}

TEST(TwoStream, GradientsOfTheWhole) {
  ModelConfig config = streams();
  config.d = 8;
  config.blocks = 2;
  config.mlp_ratio = 1;
  config.conditioning = 2;
  const auto network = make_two_stream(config, 1);
  stir(network->module());
  network->to(at::kDouble);
  const at::Tensor x0 = random_ids({2, 5}, 19, 1), z = random_ids({2, 5}, 20, 2), ranks = ranks_of_times(random({2, 5}, 3)), sigma = random({2, 5}, 4).abs();
  const double error = gradient_error([&] { return at::cross_entropy_loss(network->logits(x0, z, ranks, sigma).flatten(0, 1), x0.flatten()); }, network->module().parameters());
  EXPECT_LT(error, 2e-8);
}

TEST(TwoStream, RecomputingChangesNothing) {
  const auto network = make_two_stream(streams(), 1);
  stir(network->module());
  const at::Tensor x0 = random_ids({2, 9}, 19, 1), z = random_ids({2, 9}, 20, 2), ranks = ranks_of_times(random({2, 9}, 3)), sigma = random({2, 9}, 4).abs().to(at::kFloat);
  const auto gradients = [&](bool recompute) {
    network->module().zero_grad();
    at::cross_entropy_loss(network->logits(x0, z, ranks, sigma, {.dropout = true, .seed = 9, .recompute = recompute}).flatten(0, 1), x0.flatten()).backward();
    std::vector<at::Tensor> all;
    for (const Parameter& p : network->parameters()) all.push_back(p.value.grad().clone());
    return all;
  };
  const auto kept = gradients(false), anew = gradients(true);
  // The content's gradient is a sum over the query blocks, which may come in another order.
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::allclose(kept[i], anew[i], 1e-4, 1e-7)) << network->parameters()[i].name;
}

// An absorbing process: every token is predicted from those that are masked later. With a fixed order the network learns a
// handful of sequences by heart; the first token of each order it can tell by the time alone.
TEST(TwoStream, LearnsByHeart) {
  ModelConfig config = streams();
  config.d = 64;
  config.heads = 4;
  config.blocks = 4;
  config.conditioning = 16;
  config.dropout = 0;
  const auto network = make_two_stream(config, 1);
  torch::optim::AdamW optimizer(network->module().parameters(), torch::optim::AdamWOptions(3e-3).betas({0.9, 0.95}));
  const at::Tensor x0 = random_ids({8, 12}, 19, 5), z = at::full({8, 12}, 19, at::kLong), times = random({8, 12}, 6).sigmoid(), ranks = ranks_of_times(times);
  double loss = 0;
  for (int step = 0; step < 300; ++step) {
    optimizer.zero_grad();
    const at::Tensor value = at::cross_entropy_loss(network->logits(x0, z, ranks, -at::log1p(-0.999 * times).to(at::kFloat)).flatten(0, 1), x0.flatten());
    value.backward();
    optimizer.step();
    loss = value.item<double>();
  }
  printf("  two-stream: loss %.4f after 300 steps\n", loss);
  EXPECT_LT(loss, 0.2);  // of log 19 = 2.94; at this rate it still moves between 0.04 and 0.11
}

}  // namespace
}  // namespace gdds::model
