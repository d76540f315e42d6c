// Objectives against formulas of others and against what a perfect model must give.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <typeinfo>

#include <torch/torch.h>

#include <gtest/gtest.h>

#include "diffusion/masks.h"
#include "diffusion/matrix.h"
#include "diffusion/resets.h"
#include "diffusion/sik.h"
#include "diffusion/sik_bound.h"
#include "diffusion/snapshots.h"
#include "graph/knn.h"
#include "h5/output.h"
#include "model/network.h"
#include "support/folder.h"
#include "train/campbell.h"
#include "train/objective.h"
#include "unit/diffusion/zoo.h"

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

std::unique_ptr<model::Network> network(std::int64_t length, std::int64_t states = kM, std::int64_t m = kM, double stirred = 0.3,
                                        model::Arch arch = model::Arch::ddit) {
  model::ModelConfig config;
  config.arch = arch;
  config.states = states;
  config.m = m;
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
    p.value.add_(torch::randn(p.value.sizes(), generator) * stirred);
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

// The cross-entropy of each token given those before it, by the network's answer to just those; a sequence of l tokens has
// l - 1 of them, one of 1 or 0 tokens has none, and what follows its end is nothing.
TEST(Objective, NextTokenIsTheCrossEntropyGivenThoseBefore) {
  SnapshotBatch b;
  b.n = 6;
  b.length = 9;
  b.lengths = {9, 4, 1, 0, 2, 6};
  std::mt19937 random(31);
  for (std::int64_t i = 0; i < b.n * b.length; ++i) b.x0.push_back(static_cast<std::int32_t>(random() % kM));
  const auto net = network(9, kM, kM, 0.3, model::Arch::ar);
  const auto objective = make_objective({"ar", "full"}, nullptr);
  const torch::NoGradGuard guard;
  std::vector<double> losses;
  for (std::int64_t s = 0; s < b.n; ++s) {
    const std::vector<std::int64_t> ids(b.x0.begin() + 9 * s, b.x0.begin() + 9 * s + b.lengths[static_cast<std::size_t>(s)]);
    losses.push_back(0);
    for (std::size_t next = 1; next < ids.size(); ++next) {
      const at::Tensor before = torch::tensor(ids).view({1, -1}).slice(1, 0, static_cast<std::int64_t>(next));
      losses.back() -= torch::log_softmax(net->logits(before, at::Tensor()).to(torch::kDouble)[0][-1], 0)[ids[next]].item<double>();
    }
  }
  const auto expect = [&](std::int64_t first, std::int64_t n, std::int64_t tokens) {
    const double expected = std::accumulate(losses.begin() + first, losses.begin() + first + n, 0.0);
    const LossSum found = objective->loss(*net, b, first, n, {});
    EXPECT_NEAR(found.sum.item<double>(), expected, 1e-5 * expected) << first;
    EXPECT_EQ(found.tokens, tokens) << first;
    EXPECT_EQ(objective->tokens(b, first, n), tokens) << first;
  };
  expect(0, 6, 8 + 3 + 1 + 5);
  expect(1, 4, 3 + 1);
  expect(2, 2, 0);
  b.lengths.clear();
  EXPECT_EQ(objective->loss(*net, b, 1, 4, {}).tokens, 4 * 8);
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

// GIDD (von Ruette et al. 2025): q_t = a_t x + b_t pi_t, and the loss is
//   w(z)/q(z|x) [ KL(q(.|x) || q(.|x_theta)) + IS(q(z|x) || q(z|x_theta)) ],  IS(p||q) = p/q - log(p/q) - 1,
//   w = (b pi)' - (a'/a) b pi, here from its masses (a x + (1-a) mask + c 1)/C by differences, C = 1 + m c.
TEST(Objective, PathOnHybridIsGidd) {
  const auto process = resets("hybrid");
  const diffusion::HybridShape shape;
  const SnapshotBatch b = batch_of(*process, kFlat, 6, 9, 0.05, 12);
  const auto net = network(9);
  const auto l = softmax_of(*net, *process, b, true);
  const auto marginal = [&](double t, const std::vector<double>& x) {
    const double a = process->schedule().alpha(t), c = std::pow(2, shape.gamma) * shape.share / (kM * (1 - shape.share)) * std::pow(a * (1 - a), shape.gamma / 2);
    std::vector<double> q(kM);
    for (std::size_t z = 0; z < kM; ++z) q[z] = (a * x[z] + (z == kMask ? 1 - a : 0) + c) / (1 + kM * c);
    return q;
  };
  const std::vector<double> nothing(kM, 0.0);
  double expected = 0;
  for (std::size_t i = 0; i < b.x0.size(); ++i) {
    const double t = b.times[i / 9], h = 1e-6;
    const auto z = static_cast<std::size_t>(b.xt[i]);
    std::vector<double> x(kM, 0.0);
    x[static_cast<std::size_t>(b.x0[i])] = 1;
    const auto q = marginal(t, x), p = marginal(t, l[i]);
    const auto a = [&](double u) { return marginal(u, x)[static_cast<std::size_t>(b.x0[i])] - marginal(u, nothing)[static_cast<std::size_t>(b.x0[i])]; };
    const double end = std::min(1.0, t + h), w = (marginal(end, nothing)[z] - marginal(t - h, nothing)[z]) / (end - t + h) - (std::log(a(end)) - std::log(a(t - h))) / (end - t + h) * marginal(t, nothing)[z];
    double inside = q[z] / p[z] - std::log(q[z] / p[z]) - 1;
    for (std::size_t y = 0; y < kM; ++y) inside += q[y] * std::log(q[y] / p[y]);
    expected += w / q[z] * inside;
  }
  EXPECT_NEAR(loss_of({"path", "full"}, process, *net, b), expected, 1e-3 * expected);
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

// Closed forms against the matrices, for every process that has one: values, and gradients of the logits by way of the
// output's bias, of each sequence, at a time of its own, and of all at once. The others have none, and path is that of the matrices.
TEST(Objective, PathInClosedFormIsThatOfTheMatrices) {
  at::set_num_threads(1);
  const test::Folder folder;
  std::set<std::string> closed_forms;
  for (auto& specimen : diffusion::zoo({}, folder)) {
    const std::shared_ptr<const Process> process = std::move(specimen.process);
    const auto chosen = make_path_objective(process), dense = make_dense_path(process);
    const Objective &closed = *chosen, &matrices = *dense;
    if (typeid(closed) == typeid(matrices)) continue;
    closed_forms.insert(specimen.name);
    const SnapshotBatch b = batch_of(*process, {1, 2, 1, 1, 3, 1, 1, 1, 0}, 8, 9, 0.02, 21);
    const auto net = network(9, process->states(), process->m(), 0.1);
    const auto parameters = net->parameters();
    const auto bias = std::find_if(parameters.begin(), parameters.end(), [](const auto& p) { return p.name == "output_layer.linear.bias"; });
    int counted = 0;
    const auto compare = [&](std::int64_t first, std::int64_t n) {
      const auto found = [&](const Objective& objective) {
        const at::Tensor loss = objective.loss(*net, b, first, n, {}).sum;
        return std::pair(loss.item<double>(), torch::autograd::grad({loss}, {bias->value})[0]);
      };
      const auto ours = found(closed), theirs = found(matrices);
      counted += theirs.first > 0.01;
      EXPECT_NEAR(ours.first, theirs.first, 3e-4 * theirs.first) << specimen.name << " " << first;
      EXPECT_LE((ours.second - theirs.second).norm().item<double>(), 3e-4 * theirs.second.norm().item<double>()) << specimen.name << " " << first;
    };
    for (std::int64_t s = 0; s < b.n; ++s) compare(s, 1);
    compare(0, b.n);
    EXPECT_GE(counted, 8) << specimen.name;
  }
  EXPECT_EQ(closed_forms, (std::set<std::string>{"absorb", "uniform", "hybrid", "hierarchical 1.0", "hierarchical 2.5", "hierarchical 0.4", "mask-rates", "mask-rates power"}));
}

// A network whose logits are its one parameter, [B, L, m], whatever it is asked.
class Table final : public model::Network {
 public:
  Table(const Process& process, const at::Tensor& logits) : Network(config(process), module(logits)) {}
  at::Tensor features(const at::Tensor&, const at::Tensor&, const model::Pass&) const override { return parameters()[0].value; }
  at::Tensor readout(const at::Tensor& features) const override { return features; }
  model::Output output() const override { return {torch::eye(Model::config().m), torch::zeros({Model::config().m})}; }

 private:
  static model::ModelConfig config(const Process& process) {
    model::ModelConfig c;
    c.states = process.states();
    c.m = process.m();
    return c;
  }
  static std::shared_ptr<torch::nn::Module> module(const at::Tensor& logits) {
    auto m = std::make_shared<torch::nn::Module>("table");
    m->register_parameter("logits", logits.clone());
    return m;
  }
};

// Where x_t is a token that nothing leads to, a network that rules it out altogether, and x0 with it, changes nothing: neither
// the loss nor a gradient, to the bit, and what it says there has no gradient.
TEST(Objective, PathTakesNothingFromWhereNothingLeads) {
  const test::Folder folder;
  int processes = 0;
  for (auto& specimen : diffusion::zoo({}, folder)) {
    if (specimen.name != "absorb" && !specimen.name.starts_with("mask-rates") && !specimen.name.starts_with("hierarchical")) continue;
    ++processes;
    const std::shared_ptr<const Process> process = std::move(specimen.process);
    const SnapshotBatch b = batch_of(*process, {1, 1, 1, 1, 1, 1, 1, 1, 0}, 8, 9, 0.05, 22);
    const at::Tensor xt = torch::tensor(std::vector<std::int64_t>(b.xt.begin(), b.xt.end())).view({8, 9}), nothing_leads = xt < 8;
    ASSERT_GT(nothing_leads.sum().item<std::int64_t>(), 10) << specimen.name;
    ASSERT_LT(nothing_leads.sum().item<std::int64_t>(), 62) << specimen.name;
    const at::Tensor logits = torch::randn({8, 9, 9}, at::detail::createCPUGenerator(5));
    at::Tensor others = logits.clone();
    for (std::int64_t s = 0; s < 8; ++s)
      for (std::int64_t l = 0; l < 9; ++l)
        if (nothing_leads[s][l].item<bool>()) others[s][l].copy_(torch::randn({9}, at::detail::createCPUGenerator(static_cast<std::uint64_t>(9 * s + l)))), others[s][l][xt[s][l]] = -1e4;
    for (const auto& objective : {make_path_objective(process), make_dense_path(process)}) {
      const auto found = [&](const at::Tensor& table) {
        const Table net(*process, table);
        const at::Tensor loss = objective->loss(net, b, 0, b.n, {}).sum;
        return std::pair(loss.detach(), torch::autograd::grad({loss}, {net.parameters()[0].value})[0]);
      };
      const auto plain = found(logits), ruled_out = found(others);
      EXPECT_GT(plain.first.item<double>(), 1) << specimen.name;
      EXPECT_TRUE(torch::equal(plain.first, ruled_out.first)) << specimen.name << " " << plain.first << ruled_out.first;
      EXPECT_TRUE(torch::equal(plain.second, ruled_out.second)) << specimen.name;
      EXPECT_TRUE(torch::equal(plain.second.abs().sum(-1) > 0, nothing_leads.logical_not())) << specimen.name;
    }
  }
  EXPECT_EQ(processes, 6);
}

// A network that is sure beyond what a float can say, also of what is wrong: finite, with finite gradients.
TEST(Objective, PathStandsANetworkThatIsSure) {
  const test::Folder folder;
  for (auto& specimen : diffusion::zoo({}, folder)) {
    if (specimen.name != "absorb" && !specimen.name.starts_with("mask-rates") && !specimen.name.starts_with("hierarchical")) continue;
    const std::shared_ptr<const Process> process = std::move(specimen.process);
    const SnapshotBatch b = batch_of(*process, {0, 1, 1, 1, 1, 1, 1, 1, 0}, 8, 9, 0.05, 22);
    const auto net = network(9, process->states(), process->m());
    for (auto& p : net->parameters())
      if (p.name == "output_layer.linear.bias") {
        const torch::NoGradGuard guard;
        for (std::int64_t y = 1; y < 8; ++y) p.value[y] += y == 1 ? 0 : -300 - 50 * static_cast<double>(y);
      }
    for (const auto& objective : {make_path_objective(process), make_dense_path(process)}) {
      net->module().zero_grad();
      const at::Tensor loss = objective->loss(*net, b, 0, b.n, {}).sum;
      loss.backward();
      EXPECT_TRUE(std::isfinite(loss.item<double>())) << specimen.name;
      for (const auto& p : net->parameters()) EXPECT_TRUE(!p.value.grad().defined() || torch::isfinite(p.value.grad()).all().item<bool>()) << specimen.name << " " << p.name;
    }
  }
}

// A semantic kernel over seven points.
std::shared_ptr<const Process> semantic() {
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  std::vector<float> points(kM * 3);
  for (float& x : points) x = normal(random);
  graph::KnnOptions options;
  options.k = 4;
  options.bandwidth_neighbour = 2;
  const graph::Neighbours n = graph::brute_force({points.data(), kM, 3}, options);
  return std::make_shared<diffusion::SikKnnProcess>(diffusion::Schedule(), seven(), diffusion::ResetShare(), diffusion::NeighbourTable{kM, 4, n.ids, n.distances, n.bandwidths, "gauss", "normalised", "paper"}, 0.4);
}

// What the estimate for large vocabularies is made of, against the matrices: each of the four rows is that of the token it says
// it is of, and these are x_t, x0, a source of x_t other than x0 (x_t itself where there is none), and any.
TEST(Objective, BoundRowsAreThoseOfTheMatrices) {
  const auto process = semantic();
  const SnapshotBatch b = batch_of(*process, {1, 1, 1, 1, 1, 1, 1}, 8, 9, 1e-3, 13);
  const diffusion::BoundRows rows = diffusion::bound_rows(dynamic_cast<const diffusion::SikKnnProcess&>(*process), b, 2, 5);
  std::vector<double> l = {0.1, 0.3, 0.05, 0.15, 0.2, 0.12, 0.08}, p(kM), q(kM), rates(kM);
  int sources = 0;
  for (std::size_t i = 0; i < 45; ++i) {
    const std::size_t at = 18 + i;
    const double t = b.times[at / 9];
    const auto K = process->transition(0, t);
    K->apply(l, p);
    K->column(b.x0[at], q);
    double from_x0 = 0;
    for (std::int32_t y = 0; y < kM; ++y) {
      process->rates_from(y, t, rates);
      const double rate = rates[static_cast<std::size_t>(b.xt[at])];
      if (y == b.x0[at] && y != b.xt[at]) from_x0 = rate - rows.reset[i];
    }
    EXPECT_NEAR(rows.from_x0[i], from_x0, 1e-5 * from_x0 + 1e-7);
    const auto token = [&](std::size_t r) { return static_cast<std::int32_t>(rows.tokens[4 * i + r]); };
    EXPECT_EQ(token(0), b.xt[at]);
    EXPECT_EQ(token(1), b.x0[at]);
    if (rows.semantic[i] > 0) {
      ++sources;
      process->rates_from(token(2), t, rates);
      EXPECT_NE(token(2), b.x0[at]);
      EXPECT_NE(token(2), b.xt[at]);
      const double near = rates[static_cast<std::size_t>(b.xt[at])] - rows.reset[i];
      EXPECT_GT(near, 1e-3 * rows.reset[i]) << token(2) << " is no source of " << b.xt[at];
      EXPECT_GE(rows.semantic[i], near * (1 - 1e-5)) << "a probability above one";
    } else {
      EXPECT_EQ(token(2), b.xt[at]);
    }
    const double others = 1 - q[static_cast<std::size_t>(b.xt[at])] - (b.xt[at] == b.x0[at] ? 0 : q[static_cast<std::size_t>(b.x0[at])]);
    EXPECT_NEAR(rows.elsewhere[i], others, 1e-4 * others + 1e-6);
    EXPECT_NE(token(3), b.x0[at]);
    EXPECT_NE(token(3), b.xt[at]);
    for (std::size_t r = 4 * i; r < 4 * i + 4; ++r) {
      double found = rows.v[r];
      for (auto e = static_cast<std::size_t>(rows.begin[r]); e < static_cast<std::size_t>(rows.begin[r + 1]); ++e) found += rows.weights[e] * l[static_cast<std::size_t>(rows.ids[e])];
      const auto y = static_cast<std::size_t>(rows.tokens[r]);
      EXPECT_NEAR(found, p[y], 2 * diffusion::kTolerance * p[y]) << t << " " << r % 4;
      EXPECT_NEAR(rows.q[r], q[y], 2 * diffusion::kTolerance * q[y]) << t << " " << r % 4;
    }
  }
  EXPECT_GT(sources, 30);
}

// By powers of F there is nothing to draw: at six times the value and the gradient of each parameter are those of the matrices.
TEST(Objective, SampledPathByPowersIsTheBoundOfTheMatrices) {
  at::set_num_threads(1);
  const auto process = semantic();
  const SnapshotBatch b = batch_of(*process, {1, 1, 1, 1, 1, 1, 1}, 6, 9, 1e-3, 17);
  const auto net = network(9, kM, kM, 0.1);
  const auto parameters = net->parameters();
  std::vector<at::Tensor> weights;
  for (const auto& p : parameters) weights.push_back(p.value);
  const auto exact = make_dense_path(process), powers = make_sampled_path(process, SampledPath::powers);
  for (std::int64_t s = 0; s < b.n; ++s) {
    const double t = b.times[static_cast<std::size_t>(s)];
    const auto found = [&](const Objective& objective) {
      const at::Tensor loss = objective.loss(*net, b, s, 1, {}).sum;
      return std::pair(loss.item<double>(), torch::autograd::grad({loss}, weights, {}, {}, false, true));
    };
    const auto ours = found(*powers), theirs = found(*exact);
    EXPECT_NEAR(ours.first, theirs.first, 1e-3 * theirs.first) << t;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      ASSERT_TRUE(ours.second[i].defined() && theirs.second[i].defined()) << parameters[i].name;
      EXPECT_LE((ours.second[i] - theirs.second[i]).norm().item<double>(), 1e-3 * theirs.second[i].norm().item<double>()) << parameters[i].name << " at " << t;
    }
  }
}

// The estimate for large vocabularies, averaged over its draws, is the bound of the matrices, and so is its gradient. 6 standard
// errors, from 60 groups: a false alarm of 1e-7 by Student's law, for each of six times and seven gradients.
TEST(Objective, SampledPathIsUnbiased) {
  at::set_num_threads(1);
  const auto process = semantic();
  const SnapshotBatch b = batch_of(*process, {1, 1, 1, 1, 1, 1, 1}, 6, 9, 0.05, 11);
  const auto net = network(9, kM, kM, 0.1);
  const auto exact = make_dense_path(process), sampled = make_sampled_path(process, SampledPath::rows);
  // The loss of a sequence and the gradient of the output's bias, [8].
  const auto found = [&](const Objective& objective, const SnapshotBatch& batch, std::int64_t first, std::int64_t n) {
    const at::Tensor loss = objective.loss(*net, batch, first, n, {}).sum / static_cast<double>(n);
    for (const auto& p : net->parameters())
      if (p.name == "output_layer.linear.bias") return torch::cat({loss.detach().view({1}), torch::autograd::grad({loss}, {p.value})[0]}).to(torch::kDouble);
    return at::Tensor();
  };
  for (std::int64_t s = 0; s < b.n; ++s) {
    constexpr std::int64_t kGroups = 60, kDraws = 100;
    SnapshotBatch copies;
    copies.n = kDraws;
    copies.length = b.length;
    for (std::int64_t i = 0; i < kDraws; ++i) {
      copies.x0.insert(copies.x0.end(), b.x0.begin() + s * 9, b.x0.begin() + (s + 1) * 9);
      copies.xt.insert(copies.xt.end(), b.xt.begin() + s * 9, b.xt.begin() + (s + 1) * 9);
      copies.times.push_back(b.times[static_cast<std::size_t>(s)]);
    }
    std::vector<at::Tensor> groups;
    for (std::int64_t g = 0; g < kGroups; ++g) {
      copies.sequences.clear();
      for (std::int64_t i = 0; i < kDraws; ++i) copies.sequences.push_back(g * kDraws + i);
      groups.push_back(found(*sampled, copies, 0, kDraws));
    }
    const at::Tensor all = torch::stack(groups), error = all.std(0) / std::sqrt(static_cast<double>(kGroups)), expected = found(*exact, b, s, 1);
    const double whole = expected[0].item<double>();
    EXPECT_TRUE(((all.mean(0) - expected).abs() <= 6 * error + 5e-4 * whole).all().item<bool>()) << b.times[static_cast<std::size_t>(s)] << "\n" << all.mean(0) << error << expected;
    EXPECT_LT(error[0].item<double>(), 0.03 * whole) << b.times[static_cast<std::size_t>(s)];
  }
}

// The same where there is much to draw from: 300 random points, from each of which the jumps go to about five of its 16 neighbours.
// The loss, and the slopes of all parameters along eight random directions, at three times, within 8 standard errors from 40
// groups: a false alarm of 3e-8 by Student's law for all 27. What the standard error of the loss may be, of 400 draws of a
// sequence of 10 tokens, is said for each time: an estimate that scatters more tells a step little.
TEST(Objective, SampledPathIsUnbiasedWithManyTokens) {
  at::set_num_threads(1);
  constexpr std::int32_t kMany = 300;
  constexpr std::int64_t kLong = 10, kGroups = 40, kDraws = 10;
  std::mt19937 random(41);
  std::normal_distribution<float> normal;
  std::vector<float> points(kMany * 8);
  for (float& x : points) x = normal(random);
  graph::KnnOptions options;
  options.k = 16;
  const graph::Neighbours n = graph::brute_force({points.data(), kMany, 8}, options);
  const auto process = std::make_shared<diffusion::SikKnnProcess>(diffusion::Schedule(), diffusion::VocabularyName{"many", "00112233445566778899aabbccddeeff", kMany, -1}, diffusion::ResetShare(),
                                                                  diffusion::NeighbourTable{kMany, 16, n.ids, n.distances, n.bandwidths, "gauss", "normalised", "paper"}, 0.15);
  std::vector<double> perplexities;
  for (std::size_t y = 0; y < kMany; ++y) {
    double entropy = 0;
    for (std::size_t i = 16 * y; i < 16 * y + 16; ++i)
      if (const double w = process->kernel().weights[i]; w > 0) entropy -= w * std::log(w);
    perplexities.push_back(std::exp(entropy));
  }
  std::nth_element(perplexities.begin(), perplexities.begin() + kMany / 2, perplexities.end());
  EXPECT_GT(perplexities[kMany / 2], 4);
  EXPECT_LT(perplexities[kMany / 2], 8);

  const auto net = network(kLong, kMany, kMany, 0.3);
  std::vector<at::Tensor> weights;
  for (const auto& p : net->parameters()) weights.push_back(p.value);
  std::int64_t numbers = 0;
  for (const auto& w : weights) numbers += w.numel();
  const at::Tensor along = torch::randn({8, numbers}, at::detail::createCPUGenerator(6), torch::kDouble);
  const auto exact = make_dense_path(process), sampled = make_sampled_path(process, SampledPath::rows);
  // The mean loss of n sequences and its slopes, [9].
  const auto found = [&](const Objective& objective, const SnapshotBatch& batch) {
    const at::Tensor loss = objective.loss(*net, batch, 0, batch.n, {}).sum / static_cast<double>(batch.n);
    std::vector<at::Tensor> flat;
    for (const at::Tensor& g : torch::autograd::grad({loss}, weights)) flat.push_back(g.flatten());
    return torch::cat({loss.detach().to(torch::kDouble).view({1}), torch::mv(along, torch::cat(flat).to(torch::kDouble))});
  };
  struct At {
    double t, most;  // standard error, as a part of the loss
  };
  for (const At& at : {At{0.1, 0.06}, At{0.5, 0.02}, At{0.9, 0.035}}) {
    SnapshotBatch one = batch_of(*process, std::vector<double>(kMany, 1.0), 1, kLong, at.t, 43);
    one.times = {at.t};
    std::vector<std::uint64_t> number = {43};
    process->noise({one.x0.data(), number.data(), 1, kLong, 43, one.xt.data(), one.jumped.data()}, one.times);
    SnapshotBatch copies;
    copies.n = kDraws;
    copies.length = kLong;
    for (std::int64_t i = 0; i < kDraws; ++i) {
      copies.x0.insert(copies.x0.end(), one.x0.begin(), one.x0.end());
      copies.xt.insert(copies.xt.end(), one.xt.begin(), one.xt.end());
      copies.times.push_back(at.t);
    }
    std::vector<at::Tensor> groups;
    for (std::int64_t g = 0; g < kGroups; ++g) {
      copies.sequences.clear();
      for (std::int64_t i = 0; i < kDraws; ++i) copies.sequences.push_back(g * kDraws + i);
      groups.push_back(found(*sampled, copies));
    }
    const at::Tensor all = torch::stack(groups), error = all.std(0) / std::sqrt(static_cast<double>(kGroups)), expected = found(*exact, one);
    const double whole = expected[0].item<double>();
    EXPECT_TRUE(((all.mean(0) - expected).abs() <= 8 * error + 5e-4 * expected.abs()).all().item<bool>()) << at.t << "\n" << all.mean(0) << error << expected;
    EXPECT_LT(error[0].item<double>(), at.most * whole) << at.t;
  }
}

// Rates so small that hardly anything is masked, and at the beginning: finite, with finite gradients.
TEST(Objective, PathOnMaskRatesStandsExtremes) {
  const auto nine = diffusion::nine_tokens();
  for (const char* form : {"rate", "power"}) {
    const std::vector<double> rates = {1e-6, 3, 1e-12, 8, 1, 1e-3, 5, 1, 1};
    const auto process = std::make_shared<diffusion::MaskRatesProcess>(diffusion::Schedule(), nine, rates, form);
    SnapshotBatch b = batch_of(*process, {1, 1, 1, 1, 1, 1, 1, 1, 0}, 4, 9, 1e-3, 23);
    for (std::size_t i = 0; i < b.xt.size(); i += 2) b.xt[i] = 8;
    b.times = {1e-3, 2e-3, 0.5, 1};
    const auto net = network(9, 9, 9, 0.1);
    const at::Tensor loss = make_path_objective(process)->loss(*net, b, 0, b.n, {}).sum;
    loss.backward();
    EXPECT_TRUE(std::isfinite(loss.item<double>())) << form;
    for (const auto& p : net->parameters()) EXPECT_TRUE(!p.value.grad().defined() || torch::isfinite(p.value.grad()).all().item<bool>()) << form << " " << p.name;
  }
}

// What a query of the Campbell estimator knows is what happened after its time: cutting off the paths' beginnings at some T
// (so that x_T is the clean sequence) changes no query later than T, neither what it is asked nor what it sees.
TEST(Objective, CampbellKnowsOnlyWhatWasLater) {
  for (const auto& process : {resets("uniform"), semantic()}) {
    SnapshotBatch whole, cut;
    for (SnapshotBatch* b : {&whole, &cut}) {
      b->n = 4;
      b->length = 10;
    }
    constexpr double kT = 0.5;
    for (std::int64_t i = 0; i < 4; ++i) {
      for (SnapshotBatch* b : {&whole, &cut}) b->path_offsets.push_back(static_cast<std::int64_t>(b->path_times.size()));
      for (std::int64_t l = 0; l < 10; ++l) {
        diffusion::TokenRandom random(3, kernels::kForPaths, static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(l));
        std::int32_t at = static_cast<std::int32_t>((2 * i + l) % kM);
        whole.x0.push_back(at);
        const diffusion::Path path = process->path(at, 1, random);
        for (std::size_t j = 0; j < path.jumps.size(); ++j)
          if (path.times[j] <= kT) at = path.jumps[j].to;
        cut.x0.push_back(at);
        for (std::size_t j = 0; j < path.jumps.size(); ++j)
          for (SnapshotBatch* b : {&whole, &cut})
            if (b == &whole || path.times[j] > kT) {
              b->path_times.push_back(path.times[j]);
              b->path_states.push_back(path.jumps[j].to);
            }
        for (SnapshotBatch* b : {&whole, &cut}) b->path_offsets.push_back(static_cast<std::int64_t>(b->path_times.size()));
      }
    }
    const auto all = campbell_rounds(whole, 0, 4, false), later = campbell_rounds(cut, 0, 4, false);
    ASSERT_GT(whole.path_times.size(), cut.path_times.size() + 10);
    ASSERT_GE(all.size(), later.size());
    int queries = 0, seen = 0;
    for (std::size_t k = 0; k < later.size(); ++k)
      for (std::size_t i = 0; i < 40; ++i) {
        if (later[k].weight[i] == 0) continue;
        ++queries;
        EXPECT_EQ(all[k].weight[i], 1);
        EXPECT_EQ(all[k].times[i], later[k].times[i]);
        EXPECT_EQ(all[k].before[i], later[k].before[i]);
        EXPECT_EQ(all[k].after[i], later[k].after[i]);
        for (std::size_t j = i / 10 * 10; j < i / 10 * 10 + 10; ++j) {
          const bool sees = later[k].times[j] > later[k].times[i];
          seen += sees;
          EXPECT_EQ(all[k].times[j] > all[k].times[i], sees) << k << " " << i << " " << j;
          EXPECT_TRUE(!sees || all[k].before[j] == later[k].before[j]);
        }
      }
    EXPECT_GT(queries, 60) << process->name();
    EXPECT_GT(seen, 60) << process->name();
  }
}

// A network whose logits are all equal pays log m for each jump that changed a token, and nothing else: at most one for absorb.
TEST(Objective, CampbellCountsEveryChangeOnce) {
  for (const auto& process : {resets("absorb"), resets("uniform"), semantic()}) {
    SnapshotBatch b;
    b.n = 3;
    b.length = 8;
    std::int64_t changes = 0;
    for (std::int64_t i = 0; i < b.n; ++i) {
      b.times.push_back(1);
      b.sequences.push_back(i);
      b.path_offsets.push_back(static_cast<std::int64_t>(b.path_times.size()));
      for (std::int64_t l = 0; l < b.length; ++l) {
        b.x0.push_back(static_cast<std::int32_t>((i + l) % (kM - 1)));
        diffusion::TokenRandom random(1, kernels::kForPaths, static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(l));
        const diffusion::Path path = process->path(b.x0.back(), 1, random);
        b.xt.push_back(path.jumps.empty() ? b.x0.back() : path.jumps.back().to);
        b.jumped.push_back(!path.jumps.empty());
        b.path_times.insert(b.path_times.end(), path.times.begin(), path.times.end());
        for (std::int32_t at = b.x0.back(); const auto& jump : path.jumps) {
          changes += jump.to != at;
          at = jump.to;
          b.path_states.push_back(at);
        }
        b.path_offsets.push_back(static_cast<std::int64_t>(b.path_times.size()));
      }
    }
    if (process->name() == "absorb") {
      EXPECT_EQ(changes, std::count(b.xt.begin(), b.xt.end(), kMask));
    }
    ASSERT_LT(changes, static_cast<std::int64_t>(b.path_times.size())) << "no jump led to where it came from";
    ASSERT_GT(changes, 0);
    model::ModelConfig config;
    config.arch = model::Arch::two_stream;
    config.states = config.m = kM;
    config.d = 16;
    config.blocks = 2;
    config.heads = 2;
    config.length = b.length;
    const auto net = model::make_model(config, 1);
    EXPECT_NEAR(loss_of({"campbell", "full"}, process, *net, b), static_cast<double>(changes) * std::log(kM), 1e-3) << process->name();
  }
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
