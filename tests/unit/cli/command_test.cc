// The command line: what is accepted, what is refused and how, presets under options, and what is recorded.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/seed.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/output.h"
#include "support/folder.h"

namespace gdds::cli {
namespace {

const About kAbout = {"gdds-try", "Try the command line", "", {}, {"HDF5 9"}};

struct Values {
  int k = 7;
  bool flag = false;
  std::string input = "-", output = "-";
  std::vector<std::string> words;
  Seed seed;
};

Invocation parse(Values& v, std::vector<std::string> words, const std::string& verb = "") {
  Command cmd(kAbout, verb, verb, std::move(words));
  cmd.option("k", v.k, "neighbours");
  cmd.option("flag,f", v.flag, "a flag");
  cmd.option("output,o", v.output, "output").neutral();
  cmd.option("word,w", v.words, "words");
  v.seed.add_to(cmd);
  cmd.positional("INPUT", v.input, "input");
  cmd.parse();
  return cmd.invocation();
}

std::string error_of(std::vector<std::string> words) {
  Values v;
  return test::error_of([&] { parse(v, std::move(words)); });
}

std::string text_of(const Invocation& invocation) {
  std::string text = invocation.tool;
  for (const Argument& a : invocation.arguments) text += (a.option.empty() ? "" : " " + a.option) + (a.value ? " " + *a.value : "");
  return text;
}

TEST(Command, TakesTheUsualForms) {
  for (const auto& words : {std::vector<std::string>{"--k", "3", "-f", "-o", "x", "in.h5"}, {"--k=3", "-fox", "in.h5"}, {"in.h5", "--flag", "--output=x", "--k=3"}}) {
    Values v;
    parse(v, words);
    EXPECT_EQ(v.k, 3);
    EXPECT_TRUE(v.flag);
    EXPECT_EQ(v.output, "x");
    EXPECT_EQ(v.input, "in.h5");
  }
  Values v;
  parse(v, {"--k", "-3", "--", "-odd"});
  EXPECT_EQ(v.k, -3);
  EXPECT_EQ(v.input, "-odd");
}

TEST(Command, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(error_of({"--nope"}), "2 unknown option '--nope'; see gdds-try --help");
  EXPECT_EQ(error_of({"-x"}), "2 unknown option '-x'; see gdds-try --help");
  EXPECT_EQ(error_of({"--fla"}), "2 unknown option '--fla'; see gdds-try --help") << "no guessing";
  EXPECT_EQ(error_of({"--k"}), "2 --k: a value is missing; see gdds-try --help");
  EXPECT_EQ(error_of({"--flag=1"}), "2 --flag: takes no value; see gdds-try --help");
  EXPECT_EQ(error_of({"--k=x"}), "2 --k: expected a whole number, found 'x'");
  EXPECT_EQ(error_of({"--k="}), "2 --k: a value is missing; see gdds-try --help");
  EXPECT_EQ(error_of({"--seed", "-1"}), "2 --seed: expected a whole number, zero or more, found '-1'");
  EXPECT_EQ(error_of({"--threads", "-2"}), "2 --threads: expected a number from 0 to 4096, found '-2'");
  EXPECT_EQ(error_of({"a", "b"}), "2 one argument too many: 'b'; see gdds-try --help");
}

TEST(Command, RecordsTheSameWhateverWayItIsTyped) {
  Values v;
  const std::string expected = "gdds-try --k 3 --flag --word a --word b in.h5";
  EXPECT_EQ(text_of(parse(v, {"--k", "3", "-f", "-w", "a", "-w", "b", "in.h5"})), expected);
  v = {};
  EXPECT_EQ(text_of(parse(v, {"in.h5", "-wa", "--word=b", "-o", "x", "-q", "-j", "2", "--flag", "--k=3"})), expected);
  v = {};
  EXPECT_EQ(parse(v, {}).seed, 1U) << "the seed is recorded, typed or not";
  v = {};
  EXPECT_EQ(parse(v, {"--seed", "5"}).seed, 5U);
  v = {};
  EXPECT_EQ(text_of(parse(v, {"--k", "3"}, "learn")), "gdds-try learn --k 3 -");
}

struct Preset {
  std::string path = std::filesystem::temp_directory_path() / ("gdds-preset-" + std::to_string(getpid()));
  explicit Preset(const std::string& text) { std::ofstream(path) << text; }
  ~Preset() { std::filesystem::remove(path); }
};

TEST(Command, OptionsWinOverPresets) {
  const Preset preset("# a preset\n k = 9\nflag = yes\nword = p\n\n");
  Values v;
  EXPECT_EQ(text_of(parse(v, {"--config", preset.path})), "gdds-try --k 9 --flag --word p -") << "presets are spelled out";
  v = {};
  EXPECT_EQ(text_of(parse(v, {"--k", "3", "--config", preset.path, "-w", "q"})), "gdds-try --k 3 --flag --word q -");
}

TEST(Command, RefusesBadPresets) {
  const Preset unknown("k = 3\nkk = 4\n");
  EXPECT_EQ(error_of({"--config", unknown.path}), "2 --config " + unknown.path + ": line 2: 'kk' is not an option of gdds-try");
  EXPECT_EQ(error_of({"--config", "no-such"}), "2 --config no-such: no such file, and no preset of gdds-try is called that");
  EXPECT_EQ(error_of({"--config", "/"}), "2 --config /: cannot read it");
}

TEST(Command, HelpAndVersionAreTexts) {
  Values v;
  try {
    parse(v, {"--help", "--nonsense-after-help-is-still-checked"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::usage);
  }
  try {
    parse(v, {"--k", "x", "-h"});
    FAIL();
  } catch (const TextOnly& only) {
    EXPECT_NE(only.text.find("Usage: gdds-try [OPTION]... [INPUT]\nTry the command line.\n"), std::string::npos) << only.text;
    EXPECT_NE(only.text.find("      --k N                 neighbours [7]\n"), std::string::npos) << only.text;
  }
  try {
    parse(v, {"--version"});
    FAIL();
  } catch (const TextOnly& only) {
    EXPECT_EQ(only.text.rfind("gdds-try ", 0), 0U);
    EXPECT_NE(only.text.find("\nHDF5 9\nBoost "), std::string::npos) << only.text;
  }
}

TEST(Command, ThreadsAreSet) {
  Values v;
  parse(v, {"-j", "3"});
  EXPECT_EQ(threads(), 3);
  v = {};
  parse(v, {});
  EXPECT_EQ(threads(), available_cores());
}

TEST(Config, ReadsNamesAndValues) {
  const auto settings = parse_config("a-b = c d = e\r\n\n#x\nflag=\n", "f");
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[0].name, "a-b");
  EXPECT_EQ(settings[0].value, "c d = e");
  EXPECT_EQ(settings[1].value, "");
  EXPECT_EQ(settings[1].line, 4);
}

TEST(Config, SaysWhichLineIsWrong) {
  const auto error = [](const std::string& text) { return test::error_of([&] { parse_config(text, "f"); }); };
  EXPECT_EQ(error("a=1\nb\n"), "2 f:2: expected 'name = value', found 'b'");
  EXPECT_EQ(error("[section]\n"), "2 f:1: expected 'name = value', found '[section]'");
  EXPECT_EQ(error("a=1\n\xff=2\n"), "2 f:2: not UTF-8 text");
  EXPECT_EQ(error("--k = 3"), "2 f:1: expected 'name = value', found '--k = 3'");
}

RC_GTEST_PROP(Config, AnyTextIsReadOrRefused, (const std::string& text)) {
  try {
    parse_config(text, "f");
  } catch (const Error& error) {
    RC_ASSERT(error.status() == Status::usage);
  }
}

}  // namespace
}  // namespace gdds::cli
