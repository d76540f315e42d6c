// Objectives against formulas of others and against what a perfect model must give.
#include <cmath>
#include <random>

#include <torch/torch.h>

#include <gtest/gtest.h>

#include "diffusion/matrix.h"
#include "diffusion/resets.h"
#include "h5/output.h"
#include "model/network.h"
#include "support/folder.h"
#include "train/objective.h"

namespace gdds::train {
namespace {

using diffusion::Process;
using diffusion::SnapshotBatch;

constexpr std::int32_t kM = 7, kMask = 6;

diffusion::VocabularyName seven() { return {"seven", "00112233445566778899aabbccddeeff", kM, kMask}; }

std::shared_ptr<const Process> resets(const std::string& name) { return std::make_shared<diffusion::ResetProcess>(name, diffusion::Schedule(), seven()); }

// Tokens drawn from p, noised by the process at its times.
SnapshotBatch batch_of(const Process& process, const std::vector<double>& p, std::int64_t n, std::int64_t length, double t_min, unsigned seed) {
  SnapshotBatch b;
  b.n = n;
  b.length = length;
  std::mt19937 random(seed);
  std::discrete_distribution<std::int32_t> draw(p.begin(), p.end());
  std::vector<std::uint64_t> numbers;
  for (std::int64_t i = 0; i < n * length; ++i) b.x0.push_back(draw(random));
  for (std::int64_t s = 0; s < n; ++s) {
    b.times.push_back(t_min + (1 - t_min) * (static_cast<double>(s) + 0.5) / static_cast<double>(n));
    b.sequences.push_back(s);
    numbers.push_back(static_cast<std::uint64_t>(s));
  }
  b.xt.resize(b.x0.size());
  b.jumped.resize(b.x0.size());
  process.noise({b.x0.data(), numbers.data(), n, length, seed, b.xt.data(), b.jumped.data()}, b.times);
  return b;
}

std::unique_ptr<model::Network> network(std::int64_t length) {
  model::ModelConfig config;
  config.states = config.m = kM;
  config.d = 16;
  config.blocks = 1;
  config.heads = 2;
  config.dropout = 0;
  config.length = length;
  auto net = model::make_network(config, 3);
  const torch::NoGradGuard guard;
  std::uint64_t seed = 0;
  for (auto& p : net->parameters()) {  // nothing stays zero
    auto generator = at::detail::createCPUGenerator(++seed);
    p.value.add_(torch::randn(p.value.sizes(), generator) * 0.3);
  }
  return net;
}

// The softmax of the network at every position, in double, without the mask where `without_mask`.
std::vector<std::vector<double>> softmax_of(const model::Network& net, const Process& process, const SnapshotBatch& b, bool without_mask) {
  const torch::NoGradGuard guard;
  std::vector<float> sigma;
  for (const double t : b.times) sigma.push_back(static_cast<float>(process.schedule().Lambda(t)));
  const auto ids = torch::tensor(std::vector<std::int64_t>(b.xt.begin(), b.xt.end())).view({b.n, b.length});
  const auto logits = net.logits(ids, torch::tensor(sigma)).to(torch::kDouble).view({-1, kM}).contiguous();
  std::vector<std::vector<double>> all;
  for (std::int64_t i = 0; i < logits.size(0); ++i) {
    std::vector<double> row(kM);
    double sum = 0;
    for (std::int64_t c = 0; c < kM; ++c) sum += row[static_cast<std::size_t>(c)] = without_mask && c == kMask ? 0.0 : std::exp(logits[i][c].item<double>());
    for (double& v : row) v /= sum;
    all.push_back(row);
  }
  return all;
}

double loss_of(const ObjectiveOptions& o, std::shared_ptr<const Process> process, const model::Model& net, const SnapshotBatch& b) {
  const torch::NoGradGuard guard;
  return make_objective(o, std::move(process))->loss(net, b, 0, b.n, {}).sum.item<double>();
}

const std::vector<double> kFlat = {1, 1, 1, 1, 1, 1, 0};

TEST(Objective, SnapshotIsTheCrossEntropy) {
  const auto process = resets("uniform");
  const SnapshotBatch b = batch_of(*process, kFlat, 6, 9, 1e-3, 1);
  const auto net = network(9);
  const auto mu = softmax_of(*net, *process, b, false);
  double full = 0, jumped = 0;
  for (std::size_t i = 0; i < b.x0.size(); ++i) {
    const double loss = -std::log(mu[i][static_cast<std::size_t>(b.x0[i])]);
    full += loss;
    jumped += b.jumped[i] != 0 ? loss : 0;
  }
  EXPECT_NEAR(loss_of({"snapshot", "full"}, process, *net, b), full, 1e-4 * full);
  EXPECT_NEAR(loss_of({"snapshot", "jumped"}, process, *net, b), jumped, 1e-4 * full);
}

// MDM: -alpha'/(1-alpha) times the cross-entropy of masked tokens.
TEST(Objective, PathOnAbsorbIsTheMaskedLoss) {
  const auto process = resets("absorb");
  const SnapshotBatch b = batch_of(*process, kFlat, 6, 9, 0.05, 2);
  const auto net = network(9);
  const auto l = softmax_of(*net, *process, b, true);
  double expected = 0;
  for (std::size_t i = 0; i < b.x0.size(); ++i) {
    const double t = b.times[i / 9], a = process->schedule().alpha(t);
    if (b.xt[i] == kMask) expected += process->schedule().f(t) * a / (1 - a) * -std::log(l[i][static_cast<std::size_t>(b.x0[i])]);
  }
  EXPECT_NEAR(loss_of({"path", "full"}, process, *net, b), expected, 2e-4 * expected);
}

// UDLM (Schiff et al. 2024), equation for continuous time: with x_bar = m alpha x + (1 - alpha) 1, i = x_t,
//   -alpha'/(m alpha) [ m/xbar_theta_i - m/xbar_i - sum_j (xbar_j/xbar_i) log( xbar_theta_j xbar_i / (xbar_theta_i xbar_j) ) ].
TEST(Objective, PathOnUniformIsUdlm) {
  const auto process = resets("uniform");
  const SnapshotBatch b = batch_of(*process, {1, 1, 1, 1, 1, 1, 1}, 6, 9, 0.05, 3);
  const auto net = network(9);
  const auto l = softmax_of(*net, *process, b, false);
  double expected = 0;
  for (std::size_t i = 0; i < b.x0.size(); ++i) {
    const double t = b.times[i / 9], a = process->schedule().alpha(t), f = process->schedule().f(t);
    const auto at = static_cast<std::size_t>(b.xt[i]);
    const auto bar = [&](std::size_t j) { return kM * a * (static_cast<std::size_t>(b.x0[i]) == j ? 1 : 0) + 1 - a; };
    const auto bar_theta = [&](std::size_t j) { return kM * a * l[i][j] + 1 - a; };
    double sum = kM / bar_theta(at) - kM / bar(at);
    for (std::size_t j = 0; j < kM; ++j) sum -= bar(j) / bar(at) * std::log(bar_theta(j) * bar(at) / (bar_theta(at) * bar(j)));
    expected += f / kM * sum;
  }
  EXPECT_NEAR(loss_of({"path", "full"}, process, *net, b), expected, 2e-4 * expected);
}

// GIDD's process with the bound summed over all states from K_t and Q_t themselves.
TEST(Objective, PathOnHybridIsTheBoundOfItsMatrices) {
  const auto process = resets("hybrid");
  const SnapshotBatch b = batch_of(*process, kFlat, 6, 9, 0.05, 4);
  const auto net = network(9);
  const auto l = softmax_of(*net, *process, b, true);
  double expected = 0;
  for (std::size_t i = 0; i < b.x0.size(); ++i) {
    const double t = b.times[i / 9];
    const auto K = process->transition(0, t);
    std::vector<double> p(kM), q(kM), rates(kM);
    K->apply(l[i], p);
    K->column(b.x0[i], q);
    const auto at = static_cast<std::size_t>(b.xt[i]);
    for (std::size_t y = 0; y < kM; ++y) {
      if (y == at) continue;
      process->rates_from(static_cast<std::int32_t>(y), t, rates);
      const double rho0 = q[y] / q[at], rho = p[y] / p[at];
      expected += rates[at] * (rho0 * std::log(rho0 / rho) - rho0 + rho);
    }
  }
  EXPECT_NEAR(loss_of({"path", "full"}, process, *net, b), expected, 2e-4 * expected);
}

// A matrix process that is uniform has the loss of the uniform one.
TEST(Objective, PathByMatricesIsTheClosedForm) {
  const test::Folder folder;
  const auto v = seven();
  {
    h5::Output output(h5::OutputOptions{folder.file("m.h5")}, "process", {"test", "1", {}, {}}, {});
    output.attribute("/vocab@name", v.name);
    output.attribute("/vocab@hash", v.hash);
    output.attribute("/vocab@size", std::int64_t{v.size});
    output.attribute("/process@name", std::string("matrix"));
    output.attribute("/process@schedule", std::string("log-linear"));
    output.text("/process/config", "{}");
    output.write("/matrix/dense", {1, kM, kM}, std::span<const double>(std::vector<double>(kM * kM, 1.0 / kM)));
    output.commit();
  }
  const h5::Input input(folder.file("m.h5"), "process");
  const std::shared_ptr<const Process> matrix = std::make_shared<diffusion::MatrixProcess>(input, diffusion::Schedule(), v), uniform = resets("uniform");
  const SnapshotBatch b = batch_of(*uniform, {1, 1, 1, 1, 1, 1, 1}, 6, 9, 0.05, 5);
  const auto net = network(9);
  const double closed = loss_of({"path", "full"}, uniform, *net, b);
  EXPECT_NEAR(loss_of({"path", "full"}, matrix, *net, b), closed, 2e-4 * closed);
}

// MATH 9: one i.i.d. token with entropy H and the perfect model. Its logits are log p whatever the input, which is the
// leave-one-out distribution. The path bound is H; the snapshot loss of absorb is H/2. Error bars: 6 standard errors of the
// mean over sequences, a false alarm of 2e-9.
TEST(Objective, PerfectModelReachesTheEntropy) {
  at::set_num_threads(1);
  const std::vector<double> p = {0.4, 0.25, 0.15, 0.1, 0.06, 0.04, 0};
  double entropy = 0;
  for (const double v : p) entropy -= v > 0 ? v * std::log(v) : 0;
  auto net = network(64);
  {
    const torch::NoGradGuard guard;
    for (auto& parameter : net->parameters()) {
      if (parameter.name == "output_layer.linear.weight") parameter.value.zero_();
      if (parameter.name == "output_layer.linear.bias")
        for (std::int64_t c = 0; c < kM; ++c) parameter.value[c] = p[static_cast<std::size_t>(c)] > 0 ? std::log(p[static_cast<std::size_t>(c)]) : -1e4;
    }
  }
  const auto mean_loss = [&](const ObjectiveOptions& o, const std::shared_ptr<const Process>& process, double& error) {
    const SnapshotBatch b = batch_of(*process, p, 2000, 64, 1e-3, 6);
    const torch::NoGradGuard guard;
    const auto objective = make_objective(o, process);
    double sum = 0, squares = 0;
    for (std::int64_t s = 0; s < b.n; ++s) {
      const double loss = objective->loss(*net, b, s, 1, {}).sum.item<double>() / 64;
      sum += loss;
      squares += loss * loss;
    }
    const double mean = sum / 2000;
    error = 6 * std::sqrt((squares / 2000 - mean * mean) / 2000) + 3e-3;  // and t below 1e-3, which is left out
    return mean;
  };
  for (const char* name : {"absorb", "hybrid"}) {
    double error = 0;
    const double loss = mean_loss({"path", "full"}, resets(name), error);
    EXPECT_NEAR(loss, entropy, error) << name;
    EXPECT_LT(error, 0.2) << name;
  }
  double error = 0;
  const double loss = mean_loss({"snapshot", "jumped"}, resets("absorb"), error);
  EXPECT_NEAR(loss, entropy / 2, error);
}

}  // namespace
}  // namespace gdds::train
