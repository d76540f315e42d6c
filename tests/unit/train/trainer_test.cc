// Training keeps its promises: resumed is uninterrupted, a pipe is the built-in noising, micro-batches add up, threads change
// nothing but the rounding, a loss that is not finite ends the run.
#include <algorithm>
#include <cmath>

#include <torch/torch.h>

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/seed.h"
#include "base/threads.h"
#include "diffusion/snapshots.h"
#include "support/folder.h"
#include "text/vocabulary.h"
#include "train/data.h"
#include "unit/model/stirred.h"

namespace gdds::train {
namespace {

class Training : public testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::quiet);
    set_threads(1);
    at::set_num_threads(1);
    write_tokens("tokens.h5", {});
    options_.model.size = "tiny";
    options_.model.d = 32;
    options_.model.blocks = 2;
    options_.model.heads = 2;
    options_.batch_size = 8;
    options_.micro_batch = 8;
    options_.precision = "fp32";
    options_.optimizer.warm_up = 2;
    options_.optimizer.rate = 3e-3;
    options_.device.text = "cpu";
    options_.report_every = 5;
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  // Eight sequences of twelve letters, all of which count where no lengths are given.
  void write_tokens(const std::string& name, const std::vector<std::int32_t>& lengths) const {
    text::Vocabulary v;
    v.name = "letters";
    v.model = "characters";
    for (char c = 'a'; c < 'l'; ++c) v.add({&c, 1}, false);
    v.mask = v.add("<|mask|>", true);
    h5::Output output(h5::OutputOptions{file(name)}, "tokens", {"test", "1", {}, {}}, {});
    write(v, output);
    std::vector<std::uint16_t> ids;
    for (int s = 0; s < 8; ++s)
      for (int l = 0; l < 12; ++l) ids.push_back(static_cast<std::uint16_t>((s * 5 + l * (1 + s % 3) + l * l) % 11));
    output.write("/tokens", {8, 12}, std::span<const std::uint16_t>(ids));
    if (!lengths.empty()) output.write("/lengths", lengths);
    output.commit();
  }

  TrainSummary run(const std::string& output, const std::string& input = "") {
    Data data(input.empty() ? file("tokens.h5") : input, process_, options_);
    const gdds::train::Run made = data.run([&](const std::string& suffix) {
      return h5::Output(h5::OutputOptions{with_suffix(file(output), suffix)}, "model", {"gdds-train", "1", {}, {}}, data.sources());
    });
    return train(made);
  }
  // All parameters, one after the other.
  at::Tensor weights(const std::string& name, bool average = false) const {
    const model::Checkpoint c = model::read_checkpoint(h5::Input(file(name), "model"));
    std::vector<at::Tensor> flat;
    for (const auto& p : average ? c.ema : c.parameters) flat.push_back(p.value.flatten());
    return torch::cat(flat);
  }

  // Losses and norms of the gradients; not weights, since the first steps of Adam turn the last digits of tiny gradients into
  // whole steps.
  void expect_same_curves(const std::string& first, const std::string& second, double tolerance) const {
    const auto curve = [&](const std::string& name) { return model::read_checkpoint(h5::Input(file(name), "model")).curve; };
    const auto a = curve(first), b = curve(second);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t row = 0; row < a.size(); row += 5)
      for (const std::size_t column : {1, 2}) EXPECT_NEAR(a[row + column], b[row + column], tolerance * a[row + column]) << options_.objective.objective << ", row " << row / 5;
  }

  test::Folder folder_;
  TrainOptions options_;
  diffusion::ProcessOptions process_;
};

TEST_F(Training, ResumedIsUninterrupted) {
  for (const char* objective : {"snapshot", "path", "campbell", "ar"}) {
    options_.objective.objective = objective;
    options_.resume = "";
    options_.steps = 8;
    run("whole.h5");
    options_.steps = 5;
    run("half.h5");
    options_.steps = 8;
    options_.resume = file("half.h5");
    run("resumed.h5");
    EXPECT_TRUE(torch::equal(weights("whole.h5"), weights("resumed.h5"))) << objective;
    EXPECT_TRUE(torch::equal(weights("whole.h5", true), weights("resumed.h5", true))) << objective;
    EXPECT_FALSE(torch::equal(weights("whole.h5"), weights("half.h5"))) << objective;
  }
}

// A rate that falls until the last step falls otherwise where there are more steps.
TEST_F(Training, ResumingWithOtherStepsIsRefusedWhereTheRateFalls) {
  options_.optimizer.decay = "cosine";
  options_.steps = 2;
  run("half.h5");
  options_.resume = file("half.h5");
  options_.steps = 4;
  EXPECT_EQ(test::error_of([&] { run("x.h5"); }), "2 --resume: " + file("half.h5") + " was trained with decay_steps 2, and is to go on with 4");
}

TEST_F(Training, ResumingWithOtherOptionsIsRefused) {
  options_.steps = 2;
  run("half.h5");
  options_.resume = file("half.h5");
  options_.optimizer.rate = 1e-3;
  options_.steps = 4;
  EXPECT_EQ(test::error_of([&] { run("x.h5"); }), "2 --resume: " + file("half.h5") + " was trained with learning_rate 0.003, and is to go on with 0.001");
}

TEST_F(Training, APipeIsTheBuiltInNoising) {
  options_.steps = 4;
  run("inside.h5");
  const h5::Input tokens(file("tokens.h5"), "tokens");
  std::vector<h5::Source> sources;
  const auto process = open_process(process_, diffusion::vocabulary_name(tokens), sources);
  {
    h5::Output output(h5::OutputOptions{file("p.h5")}, "process", {"test", "1", {}, {}}, {});
    write(*process, output);
    output.commit();
    diffusion::NoiseOptions noise;
    noise.batch_size = 8;
    noise.batches = 6;
    h5::StreamWriter stream(h5::OutputOptions{file("stream.h5")}, "snapshots", {"test", "1", {}, {}}, {});
    noise_stream(tokens, *process, noise, stream);
    stream.finish();
  }
  process_.process = file("p.h5");
  run("outside.h5", file("stream.h5"));
  EXPECT_TRUE(torch::equal(weights("inside.h5"), weights("outside.h5")));
}

TEST_F(Training, MicroBatchesAddUp) {
  options_.steps = 3;
  options_.report_every = 1;
  options_.model.dropout = 0;
  run("whole.h5");
  options_.micro_batch = 2;
  run("parts.h5");
  expect_same_curves("whole.h5", "parts.h5", 1e-4);
}

// Each token weighs the same, in whatever micro-batch it is: also where they have unequal numbers of tokens, and one has none.
TEST_F(Training, MicroBatchesOfUnequalLengthsAddUp) {
  write_tokens("unequal.h5", {12, 0, 7, 1, 3, 12, 1, 5});
  options_.steps = 4;
  options_.report_every = 1;
  options_.model.dropout = 0;
  for (const char* objective : {"snapshot", "path", "campbell", "ar"}) {
    options_.objective.objective = objective;
    options_.micro_batch = 8;
    run("whole.h5", file("unequal.h5"));
    for (const std::int64_t micro : {1, 2, 3}) {
      options_.micro_batch = micro;
      run("parts.h5", file("unequal.h5"));
      expect_same_curves("whole.h5", "parts.h5", 1e-4);
    }
  }
}

// The loss of a validation is that of the averaged weights, a token, without dropout, however the sequences are cut into
// micro-batches. The weights themselves, far from their average after so few steps, have another.
TEST_F(Training, ValidationIsOfTheAveragedWeights) {
  write_tokens("unequal.h5", {12, 2, 7, 1, 3, 12, 1, 5});
  options_.steps = 6;
  options_.optimizer.rate = 0.03;
  options_.micro_batch = 3;
  options_.validation = file("unequal.h5");
  options_.validate_every = options_.report_every = 3;
  options_.validation_sequences = 7;
  for (const char* objective : {"snapshot", "path", "campbell", "ar"}) {
    options_.objective.objective = objective;
    const TrainSummary summary = run("validated.h5");
    const model::Checkpoint c = model::read_checkpoint(h5::Input(file("validated.h5"), "model"));
    ASSERT_EQ(c.curve.size(), 2U * 5U);
    const h5::Input input(file("unequal.h5"), "tokens");
    std::vector<h5::Source> sources;
    const std::shared_ptr<const diffusion::Process> process = open_process(process_, diffusion::vocabulary_name(input), sources);
    const auto by_hand = [&](const std::vector<model::Parameter>& weights) {
      const auto net = model::make_model(c.config, 0);
      model::copy_into(weights, *net, "by hand");
      const auto loss = make_objective(options_.objective, process);
      diffusion::SnapshotOptions o{options_.time, options_.seed, loss->needs_paths()};
      o.time.times = "stratified";
      o.time.strata = 7;
      if (o.paths) o.time.time = 1;
      const diffusion::Sequences sequences(input);
      const LossSum sum = loss->loss(*net, diffusion::SnapshotSource(sequences, *process, o, false).batch(0, 7), 0, 7, {});
      return sum.sum.item<double>() / static_cast<double>(sum.tokens);
    };
    const double averaged = by_hand(c.ema), themselves = by_hand(c.parameters);
    EXPECT_NEAR(c.curve.back(), averaged, 1e-5 * averaged) << objective;
    EXPECT_GT(std::abs(themselves - averaged), 0.01 * averaged) << objective;
    EXPECT_EQ(summary.best_validation, std::min(c.curve[4], c.curve[9])) << objective;
  }
}

// No two micro-batches of a few seeds, no two blocks in them and no two places in a block have the same seed of their dropout.
TEST(DropoutSeed, IsUsedOnce) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (std::int64_t step = 0; step <= 50; ++step)
      for (std::int64_t part = 0; part <= 5000; ++part) {
        const std::uint64_t own = dropout_seed(seed, step, part);
        all.push_back(own);
        for (std::uint64_t block = 0; block < 3; ++block) {
          all.push_back(mixed(own, block));
          for (std::uint64_t place = 0; place < 2; ++place) all.push_back(mixed(mixed(own, block), place));
        }
      }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

// The same batch at each step.
class Repeated final : public BatchSource {
 public:
  Repeated(std::int64_t n, std::int64_t length) {
    batch_.n = n;
    batch_.length = length;
    for (std::int64_t s = 0; s < n; ++s)
      for (std::int64_t l = 0; l < length; ++l) batch_.x0.push_back(static_cast<std::int32_t>(l * l % 11));
  }
  std::unique_ptr<diffusion::SnapshotBatch> batch(std::int64_t) override { return std::make_unique<diffusion::SnapshotBatch>(batch_); }
  std::int64_t length() const override { return batch_.length; }

 private:
  diffusion::SnapshotBatch batch_;
};

// The same sequence again and again, and weights that stay as they are: the norm of the gradient tells one dropout from another.
// Two micro-batches of one sequence each have the norm of one of them alone where they drop the same, as without dropout; else
// another. So have two steps.
TEST_F(Training, EachMicroBatchAndStepHasItsOwnDropout) {
  options_.objective.objective = "ar";
  options_.steps = 4;
  options_.report_every = 1;
  options_.optimizer.rate = 0;
  options_.micro_batch = 1;
  const h5::Input input(file("tokens.h5"), "tokens");
  std::vector<h5::Source> sources;
  const std::shared_ptr<const diffusion::Process> process = open_process(process_, diffusion::vocabulary_name(input), sources);
  const auto norms = [&](std::int64_t n, double dropout) {
    options_.batch_size = n;
    options_.model.dropout = dropout;
    Repeated source(n, 12);
    train({options_, process, diffusion::vocabulary_name(input), {}, 12, "", &source, nullptr,
           [&](const std::string&) { return h5::Output(h5::OutputOptions{file("repeated.h5")}, "model", {"test", "1", {}, {}}, {}); }});
    const auto curve = model::read_checkpoint(h5::Input(file("repeated.h5"), "model")).curve;
    std::vector<double> all;
    for (std::size_t row = 0; row < curve.size(); row += 5) all.push_back(curve[row + 2]);
    return all;
  };
  const auto differ = [](double a, double b) { return std::abs(a - b) > 1e-4 * a; };
  const auto still_one = norms(1, 0), still_two = norms(2, 0), one = norms(1, 0.5), two = norms(2, 0.5);
  ASSERT_EQ(one.size(), 4U);
  for (std::size_t step = 0; step < 4; ++step) {
    EXPECT_NEAR(still_two[step], still_one[0], 1e-6 * still_one[0]);
    EXPECT_TRUE(differ(two[step], one[step])) << step << " " << two[step] << " " << one[step];
    for (std::size_t other = 0; other < step; ++other) EXPECT_TRUE(differ(one[step], one[other])) << step << " " << one[step] << " " << one[other];
  }
}

// Sums are added up in another order, and nothing else: the same losses and gradients but for the last digits.
TEST_F(Training, ThreadsChangeOnlyTheRounding) {
  options_.steps = 3;
  options_.report_every = 1;
  for (const char* objective : {"snapshot", "path", "campbell", "ar"}) {
    options_.objective.objective = objective;
    set_threads(1);
    run("one.h5");
    set_threads(2);
    run("two.h5");
    set_threads(1);
    expect_same_curves("one.h5", "two.h5", 1e-4);
  }
}

// Products in bfloat16 have 8 bits; all that is kept is in float.
TEST_F(Training, Bf16IsNearFp32) {
  options_.steps = 3;
  options_.report_every = 1;
  options_.model.dropout = 0;
  for (const char* objective : {"snapshot", "path", "campbell", "ar"}) {
    options_.objective.objective = objective;
    options_.precision = "fp32";
    run("fp32.h5");
    options_.precision = "bf16";
    run("bf16.h5");
    expect_same_curves("fp32.h5", "bf16.h5", 0.03);
    EXPECT_FALSE(torch::equal(weights("fp32.h5"), weights("bf16.h5"))) << objective;
    EXPECT_EQ(weights("bf16.h5").scalar_type(), at::kFloat);
  }
}

TEST_F(Training, ALossThatIsNotFiniteEndsTheRun) {
  options_.steps = 40;
  options_.save_every = 1;
  options_.optimizer.rate = 1e20;
  const std::string error = test::error_of([&] { run("blown.h5"); });
  EXPECT_TRUE(error.starts_with("4 step ")) << error;
  EXPECT_NE(error.find("is kept"), std::string::npos) << error;
  EXPECT_TRUE(std::isfinite(weights("blown.h5").sum().item<double>()));
}

model::ModelConfig of_seven_tokens() {
  model::ModelConfig config;
  config.states = config.m = 7;
  config.d = 16;
  config.blocks = 1;
  config.heads = 2;
  config.length = 8;
  return config;
}

// The same steps as LibTorch's own AdamW, at constant rate, with clipping by hand.
TEST(Optimizer, IsAdamW) {
  const auto ours = model::make_network(of_seven_tokens(), 1), theirs = model::make_network(of_seven_tokens(), 1);
  OptimizerOptions o;
  o.rate = 1e-2;
  o.warm_up = 0;
  o.weight_decay = 0.1;
  o.clip = 0.5;
  Optimizer optimizer(*ours, o);
  torch::optim::AdamW reference(theirs->module().parameters(), torch::optim::AdamWOptions(1e-2).betas({0.9, 0.95}).eps(1e-8).weight_decay(0.1));
  for (std::int64_t n = 0; n < 5; ++n) {
    for (const auto& net : {ours.get(), theirs.get()}) {
      std::uint64_t seed = 1000 * static_cast<std::uint64_t>(n);
      for (auto& p : net->parameters()) p.value.mutable_grad() = model::random(p.value.sizes(), ++seed).to(torch::kFloat);
    }
    optimizer.step(n, 100, optimizer.gradient_norm());
    torch::nn::utils::clip_grad_norm_(theirs->module().parameters(), 0.5);
    reference.step();
    reference.zero_grad();
  }
  const auto a = ours->parameters(), b = theirs->parameters();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::allclose(a[i].value, b[i].value, 1e-4, 2e-6)) << a[i].name;
}

// The average by hand: it starts at the weights, here 0, which are then set to 1, 2 and 4, at rate 0. It keeps 1/10, 2/11 and 1/4
// of itself in the first three steps, but never more than --ema, here .2; and it is of the weights as the step leaves them.
TEST(Optimizer, AveragesByHand) {
  const auto net = model::make_network(of_seven_tokens(), 1);
  const auto set_all = [&](double value) {
    const torch::NoGradGuard guard;
    for (auto& p : net->parameters()) {
      p.value.fill_(value);
      p.value.mutable_grad() = torch::ones_like(p.value);
    }
  };
  for (const auto& [ema, expected] : {std::pair<double, std::vector<double>>{0.9999, {0.9, 1.8, 3.45}}, {0.2, {0.9, 1.8, 3.56}}, {0, {1, 2, 4}}}) {
    OptimizerOptions o;
    o.rate = 0;
    o.ema = ema;
    set_all(0);
    Optimizer optimizer(*net, o);
    for (std::int64_t n = 0; n < 3; ++n) {
      set_all(std::pow(2, n));
      optimizer.step(n, 3, optimizer.gradient_norm());
      for (const auto& p : optimizer.average())
        EXPECT_LT((p.value - expected[static_cast<std::size_t>(n)]).abs().max().item<double>(), 1e-6) << p.name << " after step " << n + 1 << " with " << ema;
    }
  }
  OptimizerOptions o;
  o.warm_up = 0;
  o.ema = 0;
  Optimizer optimizer(*net, o);
  set_all(1);
  optimizer.step(0, 3, optimizer.gradient_norm());
  const auto weights = net->parameters(), averages = optimizer.average();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_FALSE(torch::equal(weights[i].value, torch::ones_like(weights[i].value))) << weights[i].name;
    EXPECT_TRUE(torch::equal(weights[i].value, averages[i].value)) << weights[i].name;
  }
}

TEST(Optimizer, RatesAndAverages) {
  OptimizerOptions o;
  EXPECT_DOUBLE_EQ(o.rate_at(0, 100), 3.5e-4 / 2500);
  EXPECT_DOUBLE_EQ(o.rate_at(2500, 10000), 3.5e-4);
  EXPECT_DOUBLE_EQ(o.rate_at(9999, 10000), 3.5e-4);
  o.decay = "cosine";
  EXPECT_NEAR(o.rate_at(10000, 10000), 3.5e-5, 1e-12);
  EXPECT_DOUBLE_EQ(o.ema_at(0), 0.1);
  EXPECT_DOUBLE_EQ(o.ema_at(1000000000), 0.9999);
}

}  // namespace
}  // namespace gdds::train
