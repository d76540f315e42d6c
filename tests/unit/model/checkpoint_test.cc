// Checkpoints: what is written comes back bit for bit, whatever its type and however many there are; what is damaged,
// missing, of another shape or not finite is refused by name.
#include <torch/torch.h>

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "diffusion/masks.h"
#include "diffusion/resets.h"
#include "model/checkpoint.h"
#include "support/folder.h"
#include "support/sample.h"

namespace gdds::model {
namespace {

using test::error_of;
using test::Folder;

text::Vocabulary letters() {
  text::Vocabulary vocabulary = text::text8_vocabulary();
  vocabulary.mask = vocabulary.add("<|mask|>", true);
  return vocabulary;
}

ModelConfig tiny(std::int64_t blocks, std::int64_t states = 28) {
  ModelConfig config;
  config.states = states;
  config.m = 28;
  config.d = 8;
  config.blocks = blocks;
  config.heads = 2;
  config.conditioning = 4;
  config.length = 16;
  return config;
}

// Other values than fresh ones, with signed zeros and the smallest numbers among them.
std::vector<Parameter> stirred(const Model& model, int seed) {
  std::vector<Parameter> all;
  std::mt19937 random(static_cast<unsigned>(seed));
  for (const Parameter& parameter : model.parameters()) {
    at::Tensor value = at::empty(parameter.value.sizes());
    float* const data = value.data_ptr<float>();
    for (std::int64_t i = 0; i < value.numel(); ++i) data[i] = std::ldexp(static_cast<float>(random()) - 2147483648.0F, static_cast<int>(random() % 60) - 60);
    data[0] = -0.0F;
    if (value.numel() > 1) data[1] = std::numeric_limits<float>::denorm_min();
    all.push_back({parameter.name, value});
  }
  return all;
}

Checkpoint example(const ModelConfig& config) {
  const auto model = make_model(config, 1);
  Checkpoint c;
  c.config = config;
  c.training = R"({"objective":"snapshot","lr":0.00035,"nested":{"a":[1,2,null]}})";
  c.step = 1234567890123;
  c.position = 98765;
  c.parameters = stirred(*model, 1);
  c.ema = stirred(*model, 2);
  for (const Parameter& p : stirred(*model, 3)) c.optimizer.push_back({"exp_avg/" + p.name, p.value});
  c.optimizer.push_back({"step", at::full({1}, std::int64_t{1} << 53, at::kLong) + 1});
  c.curve_columns = {"step", "loss"};
  c.curve = {1, 2.5, 2, std::numeric_limits<double>::quiet_NaN(), 3, 0.1};
  c.set_vocabulary(letters());
  return c;
}

void write(const Checkpoint& checkpoint, const std::string& path) {
  h5::Output output({path, 0, false}, "model", test::sample_invocation(), {});
  write_checkpoint(checkpoint, output);
  output.commit();
}

Checkpoint read(const std::string& path) { return read_checkpoint(h5::Input(path, "model")); }

std::string bits(const at::Tensor& value) { return {static_cast<const char*>(value.data_ptr()), value.nbytes()}; }

void expect_same(std::vector<Parameter> a, std::vector<Parameter> b) {
  const auto by_name = [](const Parameter& x, const Parameter& y) { return x.name < y.name; };
  std::sort(a.begin(), a.end(), by_name);
  std::sort(b.begin(), b.end(), by_name);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].name, b[i].name);
    ASSERT_EQ(a[i].value.sizes(), b[i].value.sizes()) << a[i].name;
    ASSERT_EQ(a[i].value.scalar_type(), b[i].value.scalar_type()) << a[i].name;
    ASSERT_EQ(bits(a[i].value), bits(b[i].value)) << a[i].name;
  }
}

TEST(Checkpoint, HundredsOfParametersComeBackBitForBit) {
  const Folder folder;
  Checkpoint c = example(tiny(30));
  c.process = std::make_shared<diffusion::ResetProcess>("absorb", diffusion::Schedule(), c.vocabulary_name);
  write(c, folder.file("c.h5"));
  const Checkpoint back = read(folder.file("c.h5"));
  EXPECT_GT(c.parameters.size(), 300U);
  expect_same(c.parameters, back.parameters);
  expect_same(c.ema, back.ema);
  expect_same(c.optimizer, back.optimizer);
  EXPECT_EQ(back.config, c.config);
  EXPECT_EQ(back.training, c.training);
  EXPECT_EQ(back.step, c.step);
  EXPECT_EQ(back.position, c.position);
  EXPECT_EQ(back.curve_columns, c.curve_columns);
  ASSERT_EQ(back.curve.size(), c.curve.size());
  EXPECT_EQ(0, std::memcmp(back.curve.data(), c.curve.data(), c.curve.size() * sizeof(double)));
  ASSERT_TRUE(back.vocabulary);
  EXPECT_EQ(back.vocabulary->hash(), letters().hash());
  ASSERT_TRUE(back.process);
  EXPECT_EQ(back.process->digest(), c.process->digest());
  write(back, folder.file("again.h5"));
  EXPECT_TRUE(test::file_bytes(folder.file("again.h5")) == test::file_bytes(folder.file("c.h5"))) << "written again it is the same file";
}

TEST(Checkpoint, EveryArchitectureComesBackIntoItsNetwork) {
  for (const Arch arch : {Arch::ddit, Arch::ar, Arch::two_stream}) {
    const Folder folder;
    ModelConfig config = tiny(2);
    config.arch = arch;
    write(example(config), folder.file("c.h5"));
    const Checkpoint back = read(folder.file("c.h5"));
    const auto model = make_model(back.config, 7);
    copy_into(back.ema, *model, "c.h5");
    std::vector<Parameter> now;
    for (const Parameter& p : model->parameters()) now.push_back({p.name, p.value.detach()});
    expect_same(now, back.ema);
    EXPECT_TRUE(model->parameters()[0].value.requires_grad());
  }
}

TEST(Checkpoint, HalvesAreReadAsFloats) {
  const Folder folder;
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    Checkpoint c = example(tiny(1));
    for (Parameter& p : c.parameters) p.value = at::rand_like(p.value).to(type);
    write(c, folder.file("c.h5"));
    for (Parameter& p : c.parameters) p.value = p.value.to(at::kFloat);
    expect_same(c.parameters, read(folder.file("c.h5")).parameters);
  }
}

TEST(Checkpoint, CarriesAProcessWithArraysAndANameAlone) {
  const Folder folder;
  Checkpoint c = example(tiny(1, 31));
  c.curve_columns.clear();
  c.curve.clear();
  c.vocabulary.reset();
  std::vector<std::int32_t> clusters(28);
  for (int i = 0; i < 28; ++i) clusters[static_cast<std::size_t>(i)] = i % 3;
  c.process = std::make_shared<diffusion::HierarchicalProcess>(diffusion::Schedule(), c.vocabulary_name, clusters, 0.5);
  write(c, folder.file("c.h5"));
  const Checkpoint back = read_checkpoint(h5::Input(folder.file("c.h5"), "model"), {false, true, false});
  EXPECT_TRUE(back.parameters.empty() && back.optimizer.empty() && !back.ema.empty()) << "what was not asked for stays in the file";
  EXPECT_FALSE(back.vocabulary);
  EXPECT_EQ(back.vocabulary_name.hash, letters().hash());
  EXPECT_EQ(back.process->digest(), c.process->digest());
  EXPECT_EQ(back.process->states(), 31);
}

TEST(Checkpoint, RefusesWhatContradictsItself) {
  const Folder folder;
  Checkpoint c = example(tiny(1));
  c.process = std::make_shared<diffusion::ResetProcess>("uniform", diffusion::Schedule(), c.vocabulary_name);
  c.config.states = 29;
  write(c, folder.file("c.h5"));
  EXPECT_EQ(error_of([&] { read(folder.file("c.h5")); }), "3 " + folder.file("c.h5") + ": a network of 29 states, but its process uniform has 28");
  c.config.m = 27;
  write(c, folder.file("c.h5"));
  EXPECT_EQ(error_of([&] { read(folder.file("c.h5")); }), "3 " + folder.file("c.h5") + ": a network of 27 classes, but its vocabulary 'text8' has 28 tokens");
}

TEST(Checkpoint, CopyNamesWhatIsWrongAndCopiesNothing) {
  const auto model = make_model(tiny(1), 1);
  const std::string before = bits(model->parameters()[0].value);
  const std::vector<Parameter> good = stirred(*model, 5);
  const auto error = [&](const std::function<void(std::vector<Parameter>&)>& change) {
    std::vector<Parameter> bad = good;
    change(bad);
    return error_of([&] { copy_into(bad, *model, "f"); });
  };
  EXPECT_EQ(error([](auto& p) { p.pop_back(); }), "3 f: parameter '" + good.back().name + "' is missing");
  EXPECT_EQ(error([](auto& p) { p[0].value = at::zeros({28, 9}); }), "3 f: parameter 'vocab_embed.embedding': expected [28, 8], found [28, 9]");
  EXPECT_EQ(error([](auto& p) { p.push_back({"extra.weight", at::zeros({1})}); }), "3 f: parameter 'extra.weight' is none of this network's");
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    EXPECT_EQ(error([&](auto& p) { p.back().value = at::full_like(p.back().value, wrong); }), "3 f: parameter '" + good.back().name + "' has a value that is not finite");
  EXPECT_EQ(bits(model->parameters()[0].value), before);
  copy_into(good, *model, "f");
  EXPECT_EQ(bits(model->parameters()[0].value), bits(good[0].value));
}

// With hundreds of links in a group, too (unit-damage has few).
TEST(Checkpoint, DamageIsReportedOrHarmless) {
  const Folder folder;
  Checkpoint c = example(tiny(12));
  c.optimizer.clear();
  write(c, folder.file("good.h5"));
  const std::string good = test::file_bytes(folder.file("good.h5"));
  std::mt19937_64 random(3);
  int reported = 0;
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t bit = random() % (good.size() * 8);
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    test::write_bytes(folder.file("bad.h5"), bad);
    try {
      const Checkpoint back = read(folder.file("bad.h5"));
      expect_same(c.parameters, back.parameters);
      expect_same(c.ema, back.ema);
    } catch (const Error& error) {
      ASSERT_EQ(error.status(), Status::rejected) << error.what();
      ++reported;
    }
  }
  EXPECT_GT(reported, 30);
}

}  // namespace
}  // namespace gdds::model
