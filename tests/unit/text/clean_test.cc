// The detokenisers do what the published Python does: on cases by hand, on thousands of made-up documents that Python
// itself cleans beside us, and in linear time on the texts that make a careless matcher quadratic.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/folder.h"
#include "text/clean.h"

namespace gdds::text {
namespace {

TEST(Clean, None) {
  EXPECT_EQ(clean("none", " a . \xff"), " a . \xff");
  EXPECT_EQ(clean_names(), (std::vector<std::string>{"none", "ptb", "wikitext", "lm1b", "lambada"}));
  EXPECT_EQ(test::error_of([] { clean("c4", ""); }), "2 no detokeniser is called 'c4'");
}

TEST(Clean, Ptb) {
  EXPECT_EQ(clean("ptb", "the cats ' tail did n't cost $ N N N million \n it 's <unk> and\\/or"),
            "the cats' tail didn't cost $1 1 1 million\nit's ? and/or");
  EXPECT_EQ(clean("ptb", ""), "");
}

TEST(Clean, Wikitext) {
  EXPECT_EQ(clean("wikitext", " = = = Plot = = = \n"), " === Plot ===\n");
  EXPECT_EQ(clean("wikitext", "a 1 @,@ 000 @-@ man ( or so ) , 5 \u00b0 N of [ x ] : \" yes \" a ' b ' ."),
            "a 1,000-man (or so), 5\u00b0N of [x]: \"yes\" a 'b' .");
  EXPECT_EQ(clean("wikitext", "(\u3000a ( b\u2003) c )"), "(a ( b) c )");
  EXPECT_EQ(clean("wikitext", "/' 1/' 2/"), "/'[0-9]/' 2/");
  EXPECT_EQ(clean("wikitext", "( \xff \xe3\x80 )"), "(\xff \xe3\x80)");  // not UTF-8: not white space
}

TEST(Clean, Lm1b) {
  EXPECT_EQ(clean("lm1b", "We 're here . \" Yes , \" he said ( twice ) . Why ?"),
            "We're here. \"Yes,\" he said (twice) . Why?");
  EXPECT_EQ(clean("lm1b", "see http : / / x / y for $ 5 or \u00a3 4 \u00e9t\u00e9 .\n"),
            "see http://x/y for $5 or \u00a34 \u00e9t\u00e9.\n");
  EXPECT_EQ(clean("lm1b", " a . b . c . "), " a. b . c. ");
  EXPECT_EQ(clean("lm1b", std::string("\" a\0b \"", 7)), std::string("\"a\0b\"", 5));
  EXPECT_EQ(clean("lm1b", " \xff ."), " \xff .");
}

TEST(Clean, Lambada) {
  EXPECT_EQ(clean("lambada", "\u3000 \u201cYes\u201d\x1f\n"), "\n\"Yes\"");
  EXPECT_EQ(clean("lambada", " \n"), "\n");
  EXPECT_EQ(clean("lambada", "\x85 a\x85"), "\n\x85 a\x85");  // U+0085 is white space, the byte is not
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  char part[65536];
  for (std::size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  return pclose(pipe) == 0 ? text : "";
}

TEST(Clean, EqualsPython) {
  const std::string python = "/usr/bin/python3";
  if (std::system((python + " -c '' 2>/dev/null").c_str()) != 0) GTEST_SKIP() << "no " << python << " to compare with";
  const std::string lines = output_of(python + " '" + GDDS_SOURCE_DIR + "/tests/unit/text/clean_oracle.py' 4000");
  std::map<std::string, int> cases;
  for (std::size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1) {
    const auto line = nlohmann::json::parse(lines.begin() + static_cast<std::ptrdiff_t>(at),
                                            lines.begin() + static_cast<std::ptrdiff_t>(end));
    const std::string name = line["name"];
    const std::string in = line["in"];
    ASSERT_EQ(clean(name, in), line["out"].get<std::string>()) << name << " of " << line["in"];
    ++cases[name];
  }
  for (const std::string& name : clean_names()) EXPECT_EQ(cases[name], 4000) << name;
}

std::string repeated(const std::string& unit, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

void clean_repeated(const std::string& unit, std::size_t bytes) {
  const std::string text = repeated(unit, bytes);
  for (const std::string& name : clean_names())
    EXPECT_LE(clean(name, text).size(), text.size() + 1) << name << " " << unit;
}

// Anything quadratic would not end today.
TEST(Clean, IsLinear) {
  for (const char* const unit : {"(", "\"", "' "}) clean_repeated(unit, 20'000'000);
  for (const char* const unit : {"( ", " (", "\" a", " .", " a", "a", "/' ", " N", "= ", "\u3000"})
    clean_repeated(unit, 3'000'000);
}

}  // namespace
}  // namespace gdds::text
