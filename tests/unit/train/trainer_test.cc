// Training keeps its promises: resumed is uninterrupted, a pipe is the built-in noising, micro-batches add up, threads change
// nothing but the rounding, a loss that is not finite ends the run.
#include <cmath>

#include <torch/torch.h>

#include <gtest/gtest.h>

#include "base/log.h"
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
    text::Vocabulary v;
    v.name = "letters";
    v.model = "characters";
    for (char c = 'a'; c < 'l'; ++c) v.add({&c, 1}, false);
    v.mask = v.add("<|mask|>", true);
    h5::Output output(h5::OutputOptions{file("tokens.h5")}, "tokens", {"test", "1", {}, {}}, {});
    write(v, output);
    std::vector<std::uint16_t> ids;
    for (int s = 0; s < 8; ++s)
      for (int l = 0; l < 12; ++l) ids.push_back(static_cast<std::uint16_t>((s * 5 + l * (1 + s % 3) + l * l) % 11));
    output.write("/tokens", {8, 12}, std::span<const std::uint16_t>(ids));
    output.commit();
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

// The same steps as LibTorch's own AdamW, at constant rate, with clipping by hand.
TEST(Optimizer, IsAdamW) {
  model::ModelConfig config;
  config.states = config.m = 7;
  config.d = 16;
  config.blocks = 1;
  config.heads = 2;
  config.length = 8;
  const auto ours = model::make_network(config, 1), theirs = model::make_network(config, 1);
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
