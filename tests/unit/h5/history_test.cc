// The history of a file is a script that makes it: merged from its inputs, free of names and days, and read strictly.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "h5/history.h"
#include "support/folder.h"

namespace gdds::h5 {
namespace {

std::string commands(const std::string& history) {
  std::string text;
  for (const HistoryLine& line : parse_history(history, "h")) text += line.command + "\n";
  return text;
}

std::string id_of(const std::string& history) { return parse_history(history, "h").back().id; }

TEST(History, NamesInputsAfterTheRunsThatMadeThem) {
  const std::string a = make_history({"gdds-embed", "1", {{"--dtype", "float16"}, {"", "my model.safetensors"}}, {}},
                                     {{"my model.safetensors", "d1", ""}});
  const std::string b = make_history({"gdds-knn", "1", {{"--k", "64"}, {"--exact", std::nullopt}, {"", "emb.h5"}}, {}}, {{"emb.h5", "d2", a}});
  EXPECT_EQ(commands(b), "gdds-embed --dtype float16 'my model.safetensors' > " + id_of(a) + ".h5\n" +
                             "gdds-knn --k 64 --exact " + id_of(a) + ".h5 > " + id_of(b) + ".h5\n");
  const auto line = parse_history(b, "b").back();
  EXPECT_EQ(line.inputs[0].name, id_of(a) + ".h5");
  EXPECT_EQ(line.inputs[0].digest, "d2");
}

TEST(History, NamesLikeOptionsStandBehindTwoDashes) {
  const std::string h = make_history({"gdds-knn", "1", {{"--k", "3"}, {"", "-x.safetensors"}}, 5}, {{"-x.safetensors", "d", ""}});
  EXPECT_EQ(commands(h), "gdds-knn --k 3 --seed 5 -- -x.safetensors > " + id_of(h) + ".h5\n");
}

TEST(History, DoesNotDependOnFileNames) {
  const std::string a = make_history({"gdds-embed", "1", {{"", "x"}}, {}}, {{"x", "d1", ""}});
  const auto knn = [&](const std::string& name) { return make_history({"gdds-knn", "1", {{"", name}}, {}}, {{name, "d2", a}}); };
  EXPECT_EQ(knn("emb.h5"), knn("-"));
}

TEST(History, SharedRunsStandOnce) {
  const std::string vocab = make_history({"gdds-tokenize", "1", {{"", "learn"}, {"", "corpus"}}, 1}, {{"corpus", "d0", ""}});
  const std::string tokens = make_history({"gdds-tokenize", "1", {{"", "encode"}, {"--vocab", "v.h5"}, {"", "corpus"}}, {}},
                                          {{"v.h5", "d1", vocab}, {"corpus", "d0", ""}});
  const std::string embedding = make_history({"gdds-embed", "1", {{"--onto", "v.h5"}, {"", "m.gguf"}}, {}},
                                             {{"v.h5", "d1", vocab}, {"m.gguf", "d4", ""}});
  const std::string all = make_history({"gdds-noise", "1", {{"--neighbours", "n.h5"}, {"", "t.h5"}}, 7},
                                       {{"n.h5", "d3", embedding}, {"t.h5", "d2", tokens}});
  const auto lines = parse_history(all, "all");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].id, id_of(vocab));
  EXPECT_EQ(lines[3].command, "gdds-noise --neighbours " + id_of(embedding) + ".h5 " + id_of(tokens) + ".h5 --seed 7 > " + lines[3].id + ".h5");
  EXPECT_EQ(lines[0].command, "gdds-tokenize learn corpus --seed 1 > " + lines[0].id + ".h5");
}

TEST(History, ChangesWithEveryCause) {
  const Invocation base{"gdds-knn", "1", {{"--k", "64"}}, 1};
  const auto id = [](const Invocation& i, const std::string& digest) { return id_of(make_history(i, {{"x", digest, ""}})); };
  Invocation version = base, argument = base, seed = base;
  version.version = "2";
  argument.arguments[0].value = "32";
  seed.seed = 2;
  EXPECT_EQ(id(base, "d"), id(base, "d"));
  for (const auto& other : {id(version, "d"), id(argument, "d"), id(seed, "d"), id(base, "e")}) EXPECT_NE(id(base, "d"), other);
}

TEST(History, RefusesWhatIsNotOne) {
  const std::string good = make_history({"gdds-knn", "1", {}, {}}, {});
  EXPECT_EQ(test::error_of([&] { parse_history(good + "{}\n", "f"); }), "3 f: /history: line 2 is not the record of a run");
  for (const char* bad : {"x", "[]", "{\"id\":1}", "{", "\xff", "\n", "{\"id\":\"a\",\"tool\":\"t\",\"version\":\"1\",\"arguments\":[1],\"inputs\":[],\"command\":\"c\"}"})
    EXPECT_EQ(test::error_of([&] { parse_history(bad, "f"); }), "3 f: /history: line 1 is not the record of a run") << bad;
  EXPECT_TRUE(parse_history("", "f").empty());
}

RC_GTEST_PROP(History, TakesAnyBytesAsArguments, (const std::string& word)) {
  const auto lines = parse_history(make_history({"t", "1", {{"", word}}, {}}, {}), "f");
  RC_ASSERT(lines.size() == 1U);
}

}  // namespace
}  // namespace gdds::h5
