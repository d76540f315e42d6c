// The DDiT and its autoregressive sibling are what MATH 7 and INTEROP say: against plain loops, against finite differences,
// and in what they promise (names, counts, sight, determinism, precision, recomputing).
#include <map>

#include <torch/torch.h>

#include <gtest/gtest.h>

#include "model/autocast.h"
#include "model/blocks.h"
#include "model/network.h"
#include "model/two_stream.h"
#include "reference.h"
#include "stirred.h"

namespace gdds::model {
namespace {

using torch::indexing::Slice;

// The tensors are small: threads would only wait for one another. Tests of threads set their own.
class OneThread : public testing::Environment {
  void SetUp() override { at::set_num_threads(1); }
};
[[maybe_unused]] const auto* const one_thread = testing::AddGlobalTestEnvironment(new OneThread);

std::vector<at::Tensor> leaves_of(const torch::nn::Module& module) { return module.parameters(); }

// ---- names, counts, first values

TEST(Names, AreThePublicOnes) {
  ModelConfig config = shape(Arch::ddit);
  const auto names = [](const ModelConfig& c) {
    std::map<std::string, std::vector<std::int64_t>> all;
    for (const Parameter& p : make_network(c, 1)->parameters()) all[p.name] = p.value.sizes().vec();
    return all;
  };
  std::map<std::string, std::vector<std::int64_t>> expected = {
      {"vocab_embed.embedding", {12, 16}},
      {"output_layer.norm_final.weight", {16}},
      {"output_layer.linear.weight", {11, 16}},
      {"output_layer.linear.bias", {11}},
  };
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    expected[block + "norm1.weight"] = {16};
    expected[block + "attn_qkv.weight"] = {48, 16};
    expected[block + "attn_out.weight"] = {16, 16};
    expected[block + "norm2.weight"] = {16};
    expected[block + "mlp.0.weight"] = {32, 16};
    expected[block + "mlp.0.bias"] = {32};
    expected[block + "mlp.2.weight"] = {16, 32};
    expected[block + "mlp.2.bias"] = {16};
  }
  EXPECT_EQ(names(shape(Arch::ar)), expected);
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    expected[block + "adaLN_modulation.weight"] = {96, 6};
    expected[block + "adaLN_modulation.bias"] = {96};
  }
  expected["output_layer.adaLN_modulation.weight"] = {32, 6};
  expected["output_layer.adaLN_modulation.bias"] = {32};
  expected["sigma_map.mlp.0.weight"] = {6, 256};
  expected["sigma_map.mlp.0.bias"] = {6};
  expected["sigma_map.mlp.2.weight"] = {6, 6};
  expected["sigma_map.mlp.2.bias"] = {6};
  EXPECT_EQ(names(config), expected);
}

std::pair<std::int64_t, std::int64_t> counted(const Model& model) {
  std::int64_t all = 0, without = 0;
  for (const Parameter& p : model.parameters()) {
    all += p.value.numel();
    if (!p.name.starts_with("vocab_embed.") && !p.name.starts_with("output_layer.linear.")) without += p.value.numel();
  }
  return {all, without};
}

TEST(Counts, AreTheClosedForm) {
  for (const Arch arch : {Arch::ddit, Arch::ar, Arch::two_stream}) {
    ModelConfig config = shape(arch);
    config.mlp_ratio = 3;
    EXPECT_EQ(counted(*make_model(config, 1)), std::pair(config.parameters(), config.parameters_without_vocabulary())) << arch_name(arch);
  }
}

// 92.4 M and 85.0 M without embedding and output; see config_test.cc for what the paper writes.
TEST(Counts, AtThePapersSize) {
  for (const auto& [arch, millions] : {std::pair(Arch::ddit, 92.4), std::pair(Arch::ar, 85.0), std::pair(Arch::two_stream, 88.8)}) {
    ModelConfig config;
    config.arch = arch;
    config.states = 28;
    config.m = 27;
    const auto [all, without] = counted(*make_model(config, 1));
    EXPECT_EQ(all, config.parameters());
    EXPECT_EQ(without, config.parameters_without_vocabulary());
    EXPECT_NEAR(static_cast<double>(without) / 1e6, millions, 0.05);
  }
}

TEST(Initial, DependsOnSeedNameAndShapeAlone) {
  for (const Arch arch : {Arch::ddit, Arch::ar, Arch::two_stream}) {
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
    const auto one = make_model(shape(arch), 7)->parameters();
    at::set_num_threads(4);
    const auto two = make_model(shape(arch), 7)->parameters(), other = make_model(shape(arch), 8)->parameters();
    ModelConfig wider = shape(arch);
    wider.states += 5;
    const auto third = make_model(wider, 7)->parameters();
    at::set_num_threads(threads);
    EXPECT_TRUE(at::equal(state, at::detail::getDefaultCPUGenerator().get_state()));  // the global generator is left alone

    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_TRUE(at::equal(one[i].value, two[i].value)) << one[i].name;
      if (one[i].name != "vocab_embed.embedding") {
        EXPECT_TRUE(at::equal(one[i].value, third[i].value)) << one[i].name;
      }
      const bool is_constant = one[i].value.min().item<float>() == one[i].value.max().item<float>();
      EXPECT_NE(at::equal(one[i].value, other[i].value), !is_constant) << one[i].name;
      EXPECT_TRUE(one[i].value.requires_grad());
    }
  }
}

// U(-b, b) with b = 1/sqrt(inputs): within it, mean 0, standard deviation b/sqrt(3).
TEST(Initial, HasItsDistribution) {
  ModelConfig config = shape(Arch::ddit);
  config.d = 128;
  for (const Parameter& p : make_network(config, 3)->parameters()) {
    const double low = p.value.min().item<double>(), high = p.value.max().item<double>();
    if (p.name.find("adaLN") != std::string::npos || p.name.starts_with("output_layer.linear")) {
      EXPECT_EQ(low, 0) << p.name;
      EXPECT_EQ(high, 0) << p.name;
    } else if (p.name.find("norm") != std::string::npos) {
      EXPECT_EQ(low, 1) << p.name;
      EXPECT_EQ(high, 1) << p.name;
    } else if (p.value.dim() == 2) {
      const double b = 1 / std::sqrt(static_cast<double>(p.value.size(1))), n = static_cast<double>(p.value.numel());
      EXPECT_GE(low, -b) << p.name;
      EXPECT_LE(high, b) << p.name;
      EXPECT_NEAR(p.value.mean().item<double>(), 0, 5 * b / std::sqrt(3 * n)) << p.name;
      EXPECT_NEAR(p.value.std().item<double>() / (b / std::sqrt(3.0)), 1, 5 / std::sqrt(n)) << p.name;
    }
  }
}

TEST(Initial, LogitsAreAllEqual) {
  for (const Arch arch : {Arch::ddit, Arch::ar}) {
    const auto network = make_network(shape(arch), 1);
    const at::Tensor logits = network->logits(random_ids({2, 9}, 12, 1), at::full({2}, 0.5));
    EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{2, 9, 11}));
    EXPECT_EQ(logits.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(logits, at::zeros_like(logits)));
  }
}

// ---- against plain loops

TEST(Rotary, IsAComplexRotation) {
  const at::Tensor x = random({1, 40, 1, 8}, 1);
  const Rotary rotary(40, 8, 10000, x.options());
  const at::Tensor y = rotary(x);
  EXPECT_LT(reference::difference(y[0].squeeze(1), reference::turned(reference::rows_of(x[0].squeeze(1)), 10000)), 1e-12);
  // fp32 at the longest position: the angle itself is rounded, as in the public code.
  const at::Tensor far = random({1, 1024, 3, 64}, 2).to(at::kFloat), turned = Rotary(1024, 64, 10000, far.options())(far);
  for (std::int64_t h = 0; h < 3; ++h)
    EXPECT_LT(reference::difference(turned[0].select(1, h), reference::turned(reference::rows_of(far[0].select(1, h)), 10000)), 5e-4);
  EXPECT_EQ(rotary(x.to(at::kBFloat16)).scalar_type(), at::kBFloat16);
}

// q_l . k_j depends on l - j alone.
TEST(Rotary, ScoresDependOnTheDistanceAlone) {
  const at::Tensor q = random({8}, 1).expand({1, 30, 1, 8}), k = random({8}, 2).expand({1, 30, 1, 8});
  const Rotary rotary(30, 8, 100, q.options());
  const at::Tensor scores = rotary(q).squeeze().matmul(rotary(k).squeeze().t());
  EXPECT_LT((scores.index({Slice(1), Slice(1)}) - scores.index({Slice(0, -1), Slice(0, -1)})).abs().max().item<double>(), 1e-13);
}

TEST(Attention, IsThePlainLoop) {
  const std::int64_t L = 13, H = 3, h = 4;
  const at::Tensor q = random({2, L, H, h}, 1), k = random({2, L, H, h}, 2), v = random({2, L, H, h}, 3);
  const at::Tensor mask = random_ids({2, 1, L, L}, 2, 4).to(at::kBool) | at::eye(L).to(at::kBool);
  for (const int kind : {0, 1, 2}) {
    const Sight sight = {.causal = kind == 1, .mask = kind == 2 ? mask : at::Tensor()};
    for (const auto type : {at::kDouble, at::kFloat}) {
      const at::Tensor y = attention(q.to(type), k.to(type), v.to(type), sight);
      ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{2, L, H * h}));
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t n = 0; n < H; ++n) {
          const auto head = [&](const at::Tensor& t) { return reference::rows_of(t[b].select(1, n)); };
          const auto expected = reference::attention(head(q), head(k), head(v), [&](std::size_t l, std::size_t j) {
            return kind == 0 || (kind == 1 ? j <= l : mask[b][0][static_cast<std::int64_t>(l)][static_cast<std::int64_t>(j)].item<bool>());
          });
          EXPECT_LT(reference::difference(y[b].slice(1, n * h, (n + 1) * h), expected), type == at::kDouble ? 1e-13 : 2e-6) << kind;
        }
    }
  }
}

class Both : public testing::TestWithParam<Arch> {};
INSTANTIATE_TEST_SUITE_P(, Both, testing::Values(Arch::ddit, Arch::ar), [](const auto& info) { return std::string(arch_name(info.param)); });

TEST_P(Both, LogitsAreThePlainLoops) {
  const auto network = make_network(shape(GetParam()), 1);
  stir(network->module());
  const reference::Reference plain(*network);
  const at::Tensor ids = random_ids({3, 17}, 12, 5), sigma = at::tensor({0.01, 0.7, 6.9}, at::kDouble);
  for (const auto type : {at::kFloat, at::kDouble}) {
    network->to(type);
    const at::Tensor logits = network->logits(ids, sigma.to(type));
    EXPECT_EQ(logits.scalar_type(), type);
    for (std::int64_t b = 0; b < 3; ++b) {
      const auto expected = plain.logits(reference::ids_of(ids[b]), sigma[b].item<double>());
      EXPECT_LT(reference::difference(logits[b], expected), type == at::kFloat ? 1e-4 : 1e-11);
    }
  }
}

// ---- gradients by finite differences, in double precision

constexpr double kGradientError = 2e-8;  // of the largest; central differences at 1e-5 are good to 1e-9 or so

TEST(Gradients, OfEveryBlock) {
  ModelConfig config = shape(Arch::ddit);
  config.d = 8;
  const std::int64_t B = 2, L = 5;
  const auto prepared = [](auto module) {
    initialise(*module, 1);
    stir(*module, 0.5);
    module->to(at::kDouble);
    return module;
  };
  const auto input = [](at::IntArrayRef sizes, std::uint64_t seed) { return random(sizes, seed).requires_grad_(); };
  const auto check = [](const char* name, const torch::nn::Module& module, std::vector<at::Tensor> inputs, const std::function<at::Tensor()>& f) {
    const at::Tensor weights = random(f().sizes(), 77);  // a random linear function of the output
    for (const at::Tensor& p : leaves_of(module)) inputs.push_back(p);
    const double error = gradient_error([&] { return (f() * weights).sum(); }, inputs);
    EXPECT_LT(error, kGradientError) << name;
    printf("  gradient error of %s: %.1e\n", name, error);
  };
  const Rotary rotary(L, 4, 10000, at::kDouble);
  const at::Tensor x = input({B, L, 8}, 1), c = input({B, 1, 6}, 2), local = input({B, L, 6}, 3), content = input({B, L, 8}, 4);
  const Dropout dropout = {0.25, 5};
  const at::Tensor ranks = ranks_of_times(random({B, L}, 6)), sees = ranks.unsqueeze(2) > 0;
  const Sight causal = {.causal = true, .mask = {}}, ranked = {.causal = false, .mask = ((ranks.unsqueeze(1) < ranks.unsqueeze(2)) | ~sees).unsqueeze(1)};

  const auto conditioned = prepared(std::make_shared<Block>(config, true));
  check("conditioned block", *conditioned, {x, c}, [&] { return conditioned->forward(x, c, rotary, {}, {}); });
  check("conditioned block with dropout", *conditioned, {x, c}, [&] { return conditioned->forward(x, c, rotary, {}, dropout); });
  const auto plain = prepared(std::make_shared<Block>(config, false));
  check("causal block", *plain, {x}, [&] { return plain->forward(x, {}, rotary, causal, {}); });
  const auto query = prepared(std::make_shared<QueryBlock>(config));
  check("query block", *query, {x, content, local}, [&] { return query->forward(x, content, local, rotary, ranked, sees, {}); });
  const auto output = prepared(std::make_shared<OutputLayer>(config, true));
  check("output layer", *output, {x, c}, [&] { return output->readout(output->features(x, c)); });
  const auto time = prepared(std::make_shared<TimeEmbedding>(6));
  const at::Tensor sigma = random({3}, 8).abs().requires_grad_();
  check("time embedding", *time, {sigma}, [&] { return (*time)(sigma); });
}

TEST_P(Both, GradientsOfTheWhole) {
  ModelConfig config = shape(GetParam());
  config.d = 8;
  config.mlp_ratio = 1;
  config.conditioning = 2;
  const auto network = make_network(config, 1);
  stir(network->module());
  network->to(at::kDouble);
  const at::Tensor ids = random_ids({2, 4}, 12, 5), sigma = at::tensor({0.3, 2.0}, at::kDouble), targets = random_ids({2, 4}, 11, 6);
  const auto loss = [&] { return at::cross_entropy_loss(network->logits(ids, sigma).flatten(0, 1), targets.flatten()); };
  EXPECT_LT(gradient_error(loss, leaves_of(network->module())), kGradientError);
}

// ---- promises

TEST_P(Both, RowsOfABatchAreAloneInIt) {
  const auto network = make_network(shape(GetParam()), 1);
  stir(network->module());
  const at::Tensor ids = random_ids({8, 33}, 12, 5), sigma = random({8}, 6).abs().to(at::kFloat), together = network->logits(ids, sigma);
  for (std::int64_t b = 0; b < 8; ++b) {
    const at::Tensor alone = network->logits(ids.slice(0, b, b + 1), sigma.slice(0, b, b + 1));
    // Not bit by bit: matrix products of other sizes sum in another order.
    EXPECT_LT((alone[0] - together[b]).abs().max().item<double>(), 1e-5 * together.abs().max().item<double>());
  }
}

TEST_P(Both, ReadoutOfSomePositionsIsTheirLogits) {
  const auto network = make_network(shape(GetParam()), 1);
  stir(network->module());
  const at::Tensor ids = random_ids({2, 9}, 12, 5), sigma = at::tensor({0.3f, 2.0f}), chosen = random_ids({2, 9}, 2, 6).to(at::kBool);
  const at::Tensor some = network->readout(network->features(ids, sigma).index({chosen}));
  EXPECT_TRUE(at::allclose(some, network->logits(ids, sigma).index({chosen}), 1e-5, 1e-6));
}

// d logits_l / d embedding of position j: all ids differ, so the row of an id is the embedding of its position.
TEST_P(Both, SeesWhatItMay) {
  const auto network = make_network(shape(GetParam()), 1);
  stir(network->module());
  const std::int64_t L = 12;
  const at::Tensor ids = at::arange(L).flip(0).unsqueeze(0), logits = network->logits(ids, at::full({1}, 0.5f));
  const at::Tensor embedding = network->module().named_parameters()["vocab_embed.embedding"];
  for (std::int64_t l = 0; l < L; ++l) {
    const at::Tensor gradient = torch::autograd::grad({logits[0][l].square().sum()}, {embedding}, {}, true)[0].index({ids[0]}).abs().sum(1);
    for (std::int64_t j = 0; j < L; ++j) {
      if (GetParam() == Arch::ar && j > l) EXPECT_EQ(gradient[j].item<float>(), 0) << l << " " << j;
      else EXPECT_GT(gradient[j].item<float>(), 0) << l << " " << j;
    }
  }
}

TEST(Time, ChangesLogitsOnceAdaLNIsNotZero) {
  ModelConfig config = shape(Arch::ddit);
  const at::Tensor ids = random_ids({1, 7}, 12, 5), early = at::full({1}, 0.1f), late = at::full({1}, 3.0f);
  const auto network = make_network(config, 1);
  const torch::NoGradGuard no_gradients;
  for (const Parameter& p : network->parameters()) {
    at::Tensor value = p.value;
    if (p.name.starts_with("output_layer.linear")) value.normal_(0, 1, at::detail::createCPUGenerator(1));
  }
  EXPECT_TRUE(at::equal(network->logits(ids, early), network->logits(ids, late)));  // zero-initialised: no time yet
  for (const Parameter& p : network->parameters()) {
    at::Tensor value = p.value;
    if (p.name.find("blocks.1.adaLN_modulation") != std::string::npos) value.normal_(0, 0.5, at::detail::createCPUGenerator(2));
  }
  EXPECT_GT((network->logits(ids, early) - network->logits(ids, late)).abs().max().item<float>(), 1e-2);

  config.time_conditioning = false;
  const auto timeless = make_network(config, 1);
  stir(timeless->module());
  EXPECT_TRUE(at::equal(timeless->logits(ids, early), timeless->logits(ids, late)));
  const auto timed = make_network(shape(Arch::ddit), 1);
  stir(timed->module());
  EXPECT_TRUE(at::equal(timed->logits(ids, at::zeros({1})), timeless->logits(ids, late)));  // sigma = 0 is what it is fed
}

// ---- dropout, recomputing, precision

TEST(Dropout, ComesFromItsSeed) {
  const at::Tensor y = at::ones({64, 100, 16});
  const Dropout dropout = {0.1, 5};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state(), one = dropout(y, 0);
  at::set_num_threads(4);
  const at::Tensor again = dropout(y, 0);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(state, at::detail::getDefaultCPUGenerator().get_state()));
  EXPECT_TRUE(at::equal(one, again));
  EXPECT_FALSE(at::equal(one, dropout(y, 1)));
  EXPECT_FALSE(at::equal(one, (Dropout{0.1, 6})(y, 0)));
  // Zero with probability 0.1, else 1/0.9; 102,400 draws.
  EXPECT_NEAR((one == 0).to(at::kDouble).mean().item<double>(), 0.1, 5 * std::sqrt(0.09 / 102400));
  EXPECT_EQ(one.max().item<float>(), static_cast<float>(1 / 0.9));
}

TEST_P(Both, RecomputingChangesNothing) {
  const auto network = make_network(shape(GetParam()), 1);
  stir(network->module());
  const at::Tensor ids = random_ids({4, 19}, 12, 5), sigma = random({4}, 6).abs().to(at::kFloat), targets = random_ids({4, 19}, 11, 7);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto gradients = [&](const Pass& pass) {
      network->module().zero_grad();
      at::Tensor logits;
      {
        const Autocast mixed(at::kCPU, type);
        logits = network->logits(ids, sigma, pass);
      }
      at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten()).backward();  // outside of the mixed precision, as one does
      std::vector<at::Tensor> all = {logits.detach()};
      for (const Parameter& p : network->parameters()) all.push_back(p.value.grad().clone());
      return all;
    };
    const auto kept = gradients({.dropout = true, .seed = 3, .recompute = false}), anew = gradients({.dropout = true, .seed = 3, .recompute = true});
    const auto other = gradients({.dropout = true, .seed = 4, .recompute = true});
    for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(kept[i], anew[i])) << i;
    EXPECT_FALSE(at::equal(kept[0], other[0]));
  }
  const torch::NoGradGuard no_gradients;
  EXPECT_TRUE(at::equal(network->logits(ids, sigma, {.dropout = false, .seed = 0, .recompute = true}), network->logits(ids, sigma)));
}

TEST_P(Both, MixedPrecisionIsClose) {
  ModelConfig config = shape(GetParam());
  config.d = 64;
  const auto network = make_network(config, 1);
  stir(network->module(), 0.1);
  const at::Tensor ids = random_ids({4, 33}, 12, 5), sigma = random({4}, 6).abs().to(at::kFloat), exact = network->logits(ids, sigma);
  at::Tensor mixed;
  {
    const Autocast scope(at::kCPU, at::kBFloat16);
    EXPECT_EQ(Autocast::current(at::kCPU), at::kBFloat16);
    mixed = network->logits(ids, sigma);
    EXPECT_EQ(network->features(ids, sigma).scalar_type(), at::kFloat);
  }
  EXPECT_EQ(Autocast::current(at::kCPU), at::kFloat);
  EXPECT_EQ(mixed.scalar_type(), at::kFloat);
  const double scale = exact.square().mean().sqrt().item<double>(), error = (mixed - exact).square().mean().sqrt().item<double>();
  EXPECT_LT(error, 0.02 * scale);
  EXPECT_GT(error, 1e-5 * scale);  // the products were in bf16 indeed
  mixed.square().mean().backward();
  for (const Parameter& p : network->parameters()) {
    ASSERT_TRUE(p.value.grad().defined()) << p.name;
    EXPECT_EQ(p.value.grad().scalar_type(), at::kFloat);
    EXPECT_TRUE(p.value.grad().isfinite().all().item<bool>()) << p.name;
  }

  network->to(at::kBFloat16);  // parameters in bf16: for judges that should be small
  const at::Tensor narrow = network->logits(ids, sigma);
  EXPECT_EQ(narrow.scalar_type(), at::kFloat);
  EXPECT_LT((narrow - exact).square().mean().sqrt().item<double>(), 0.05 * scale);
}

// ---- it learns

TEST(Learning, EightSequencesByHeart) {
  ModelConfig config;
  config.states = 28;
  config.m = 27;
  config.d = 64;
  config.blocks = 2;
  config.heads = 4;
  config.length = 16;
  config.dropout = 0;
  for (const Arch arch : {Arch::ddit, Arch::ar}) {
    config.arch = arch;
    const auto network = make_network(config, 1);
    torch::optim::AdamW optimizer(network->module().parameters(), torch::optim::AdamWOptions(3e-3).betas({0.9, 0.95}).weight_decay(0.01));
    const at::Tensor x0 = random_ids({8, 16}, 27, 5);
    // ddit: half of the tokens are masked, the same ones each time; which row it is can be told from the others. ar: token l is the next of l-1.
    const at::Tensor hidden = random_ids({8, 16}, 2, 6).to(at::kBool), mask = at::full({}, 27, at::kLong), sigma = at::full({8}, 0.69f);
    const at::Tensor ids = arch == Arch::ddit ? at::where(hidden, mask, x0) : at::cat({at::arange(8).unsqueeze(1), x0.slice(1, 0, 15)}, 1);
    double first = 0, loss = 0;
    for (int step = 0; step < 150; ++step) {
      optimizer.zero_grad();
      const at::Tensor value = at::cross_entropy_loss(network->logits(ids, sigma).flatten(0, 1), x0.flatten());
      value.backward();
      optimizer.step();
      loss = value.item<double>();
      if (step == 0) first = loss;
    }
    EXPECT_NEAR(first, std::log(27.0), 1e-5);  // all logits equal at first
    EXPECT_LT(loss, 0.02) << arch_name(arch);
    printf("  %s: loss %.4f after 150 steps\n", std::string(arch_name(arch)).c_str(), loss);
  }
}

}  // namespace
}  // namespace gdds::model
