// The shape of a network: the paper's sizes have the paper's numbers of parameters, text and back is the same config, and
// what cannot be is refused with a word about it.
#include <list>

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/config.h"
#include "support/folder.h"

namespace gdds::model {
namespace {

using test::error_of;

class Collected : public Options {
 public:
  std::list<Option> options;
  void set(const std::string& name, const std::string& text) {
    for (const Option& option : options)
      if (option.name == name) return set_option(option, text);
    FAIL() << "no option " << name;
  }

 protected:
  Option& add(Option option) override { return options.emplace_back(std::move(option)); }
};

ModelConfig small(Arch arch) {
  ModelConfig config;
  config.arch = arch;
  config.states = 50258;
  config.m = 50257;
  return config;
}

// Counted: all parameters but vocab_embed.embedding and output_layer.linear.{weight, bias}. That is 92.4 M and 85.0 M; the
// paper writes "about 96 M" and "about 89 M non-embedding", of the same difference, and does not say what it counts.
TEST(ModelConfig, CountsAtThePapersSize) {
  EXPECT_EQ(small(Arch::ddit).parameters_without_vocabulary(), 92'380'672);
  EXPECT_EQ(small(Arch::ar).parameters_without_vocabulary(), 84'999'936);
  EXPECT_EQ(small(Arch::two_stream).parameters_without_vocabulary(), 88'814'848);
  EXPECT_EQ(small(Arch::ddit).parameters(), 92'380'672 + 50258 * 768 + 50257 * 769);
}

TEST(ModelConfig, TextAndBackIsTheSame) {
  for (const Arch arch : {Arch::ddit, Arch::ar, Arch::two_stream}) {
    ModelConfig config = small(arch);
    config.dropout = 0.1 + 0.2;
    config.time_conditioning = false;
    EXPECT_EQ(ModelConfig::from_json(config.json(), "m.h5"), config);
    EXPECT_EQ(ModelConfig::from_json(config.json(), "m.h5").json(), config.json());
    ModelConfig other = config;
    other.heads = 6;
    EXPECT_NE(other, config);
  }
}

TEST(ModelConfig, ReadingIsStrict) {
  const std::string good = small(Arch::ddit).json();
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return error_of([&] { ModelConfig::from_json(text, "m.h5"); });
  };
  EXPECT_EQ(error("\"ddit\"", "\"lstm\""), "3 m.h5: model: arch: expected ddit, ar or two-stream, found \"lstm\"");
  EXPECT_EQ(error("\"d\":768", "\"d\":768.5"), "3 m.h5: model: d: expected a whole number, found 768.5");
  EXPECT_EQ(error("\"d\":768", "\"d\":18446744073709551615"), "3 m.h5: model: d: expected a number from 2 to 65536, found 18446744073709551615");
  EXPECT_EQ(error("\"d\":768", "\"d\":-768"), "3 m.h5: model: d: expected a number from 2 to 65536, found -768");
  EXPECT_EQ(error("\"d\":768,", ""), "3 m.h5: model: d is missing");
  EXPECT_EQ(error("\"heads\":12", "\"heads\":5"), "3 m.h5: model: heads: a width of 768 cannot be divided among 5 heads");
  EXPECT_EQ(error("\"dropout\":0.1", "\"dropout\":1"), "3 m.h5: model: dropout: expected a number from 0 to below 1, found 1");
  EXPECT_EQ(error("\"m\":50257", "\"m\":50259"), "3 m.h5: model: m: 50259 output classes, but only 50258 input ids");
  EXPECT_NE(error("\"d\":768", "\"d\":768,\"experts\":8").find("does not know"), std::string::npos);
  EXPECT_EQ(error(good, "[]"), "3 m.h5: model: expected a JSON object");
  EXPECT_EQ(error(good, "{"), "3 m.h5: model: expected a JSON object");
}

TEST(ModelOptions, SizeAndWhatDiffersFromIt) {
  Collected c;
  ModelOptions options;
  options.add_to(c);
  c.set("model-dim", "512");  // before the size, and stronger
  c.set("size", "tiny");
  c.set("model-heads", "8");
  const ModelConfig config = options.config(Arch::two_stream, 28, 27, 256);
  EXPECT_EQ(config.d, 512);
  EXPECT_EQ(config.blocks, 4);
  EXPECT_EQ(config.heads, 8);
  EXPECT_EQ(config.arch, Arch::two_stream);
  EXPECT_EQ(config.states, 28);
  EXPECT_EQ(config.m, 27);
  EXPECT_EQ(config.length, 256);
  c.set("model-blocks", "3");
  EXPECT_EQ(error_of([&] { options.config(Arch::two_stream, 28, 27, 256); }), "2 model: blocks: the two streams share them evenly, found 3");
  c.set("model-blocks", "4");
  c.set("model-heads", "512");
  EXPECT_EQ(error_of([&] { options.config(Arch::two_stream, 28, 27, 256); }), "2 model: heads: rotary positions turn pairs, but a head is 1 wide");
  c.set("model-heads", "8");
  c.set("model-length", "512");
  EXPECT_EQ(options.config(Arch::ddit, 28, 27, 256).length, 512);
  EXPECT_EQ(error_of([&] { options.config(Arch::ddit, 28, 27, 1024); }), "2 --model-length: the data are sequences of 1024 tokens, longer than 512");
}

TEST(ModelConfig, DifferenceNamesWhatDiffers) {
  ModelConfig other = small(Arch::ar);
  EXPECT_EQ(other.difference(other), "");
  other.d = 512;
  EXPECT_EQ(small(Arch::ddit).difference(other), "arch \"ddit\" and not \"ar\", d 768 and not 512");
}

TEST(ModelOptions, SmallIsThePapers) {
  const ModelConfig config = ModelOptions().config(Arch::ddit, 50258, 50257, 1024);
  EXPECT_EQ(config, small(Arch::ddit));
}

}  // namespace
}  // namespace gdds::model
