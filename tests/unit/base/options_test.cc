// Numbers are read strictly, options check themselves, and what a tool records can be pasted back into a shell.
#include <array>
#include <cstdio>
#include <limits>
#include <list>
#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "base/invocation.h"
#include "base/number.h"
#include "base/options.h"
#include "support/folder.h"

namespace gdds {
namespace {

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

using test::error_of;

TEST(Number, ReadsTheWholeTextOrNothing) {
  EXPECT_EQ(parse_integer("-17"), -17);
  EXPECT_EQ(parse_unsigned("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_real("1e-3"), 1e-3);
  for (const char* bad : {"", " 1", "1 ", "1x", "0x10", "--1", "1.5", "99999999999999999999"})
    EXPECT_NE(error_of([&] { parse_integer(bad); }), "no error") << bad;
  for (const char* bad : {"-1", "-0", "1e3", "18446744073709551616"})
    EXPECT_NE(error_of([&] { parse_unsigned(bad); }), "no error") << bad;
  for (const char* bad : {"nan", "1e999", "one", "1,5"}) EXPECT_NE(error_of([&] { parse_real(bad); }), "no error") << bad;
}

RC_GTEST_PROP(Number, TextReadsBackAsTheSameNumber, (double value)) {
  RC_PRE(std::isfinite(value));
  RC_ASSERT(parse_real(number_text(value)) == value);
}

TEST(Options, NameTheOptionInTheirErrors) {
  Collected c;
  int k = 7;
  std::uint64_t seed = 1;
  std::string metric = "gauss";
  c.option("k", k, "neighbours").range(1, 2048);
  c.option("seed", seed, "seed");
  c.option("metric", metric, "distance").choices({"gauss", "cosine"});
  c.set("k", "64");
  EXPECT_EQ(k, 64);
  EXPECT_EQ(error_of([&] { c.set("k", "0"); }), "2 --k: expected a number from 1 to 2048, found '0'");
  EXPECT_EQ(error_of([&] { c.set("k", "3.5"); }), "2 --k: expected a whole number, found '3.5'");
  EXPECT_EQ(k, 64) << "a rejected value changes nothing";
  EXPECT_EQ(error_of([&] { c.set("seed", "-1"); }), "2 --seed: expected a whole number, zero or more, found '-1'");
  EXPECT_EQ(error_of([&] { c.set("metric", "l1"); }), "2 --metric: expected one of gauss, cosine, found 'l1'");
  EXPECT_EQ(c.options.front().default_text, "7");
}

TEST(Options, IntegersBeyondTheTypeAreRejected) {
  Collected c;
  int k = 7;
  c.option("k", k, "");
  EXPECT_NE(error_of([&] { c.set("k", "2147483648"); }), "no error");
  c.set("k", "-2147483648");
  EXPECT_EQ(k, std::numeric_limits<int>::min());
}

std::string through_bash(const std::string& quoted) {
  const std::string command = "exec bash -c 'eval \"$(cat)\"' <<'THE_END'\nprintf %s " + quoted + "\nTHE_END\n";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string out;
  std::array<char, 4096> block;
  for (std::size_t n; (n = fread(block.data(), 1, block.size(), pipe.get())) > 0;) out.append(block.data(), n);
  return out;
}

TEST(ShellQuote, LeavesPlainWordsAlone) {
  EXPECT_EQ(shell_quote("--k"), "--k");
  EXPECT_EQ(shell_quote("a b"), "'a b'");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("\xff\n"), "$'\\377\\012'");
}

TEST(ShellQuote, ComesBackFromTheShell) {
  EXPECT_TRUE(rc::check("any word without NUL", [] {
    const auto bytes = *rc::gen::container<std::string>(rc::gen::distinctFrom(rc::gen::arbitrary<char>(), '\0'));
    RC_ASSERT(through_bash(shell_quote(bytes)) == bytes);
  }));
}

TEST(Utf8, KnowsGoodFromBad) {
  for (const char* good : {"", "abc", "\u00e9", "\u20ac", "\U0001f600", "\ud7ff", "\U0010ffff"}) EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                          "\xe2\x82", "a\xff"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

TEST(Error, IsOneLine) { EXPECT_EQ(one_line("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f"); }

}  // namespace
}  // namespace gdds
