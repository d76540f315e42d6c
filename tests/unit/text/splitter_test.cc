// The fast splitter gives the pieces of the pattern, for any text; and cuts change nothing.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "text/splitter.h"
#include "text/unicode.h"

namespace gdds::text {
namespace {

using Pieces = std::vector<std::string>;

Pieces fast(std::string_view text, bool digits_apart) {
  Pieces pieces;
  for_each_piece(text, digits_apart, [&](std::size_t begin, std::size_t end) { pieces.emplace_back(text.substr(begin, end - begin)); });
  return pieces;
}

Pieces literal(std::string_view text, bool digits_apart) {
  Pieces pieces;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = piece_end(text, at, digits_apart);
    pieces.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

// Texts made of what the pattern looks at: blanks of every sort, quotes, contractions, letters, numbers, other scripts,
// combining marks, emoji, bytes that are not UTF-8; long runs so that blocks of 64 bytes are crossed everywhere.
std::string random_text() {
  static const std::vector<std::string> parts = {
      " ", " ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", "'", "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "''", "a", "b", "word",
      "Zebra", "1", "42", "\u00bd", "\u0664", "!", "...", "$", "\u00e9", "e\u0301", "\u4e2d\u6587", "\u0631", "\U0001f600", "\U0001f468\u200d\U0001f469", "\xff", "\xc3", "\xe2\x82",
      "\u00df", "\u2163", "\x01", "_", "\u0300"};
  const auto picks = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, parts.size()));
  std::string text;
  for (const std::size_t pick : picks) text += parts[pick];
  const auto repeat = *rc::gen::inRange(1, 5);
  std::string all;
  for (int i = 0; i < repeat; ++i) all += text;
  return all;
}

TEST(Splitter, CutsAsGpt2Does) {
  EXPECT_EQ(fast("Hello, world!", false), (Pieces{"Hello", ",", " world", "!"}));
  EXPECT_EQ(fast("I'm we'll don't O'Sullivan 's", false), (Pieces{"I", "'m", " we", "'ll", " don", "'t", " O", "'", "Sullivan", " '", "s"}));
  EXPECT_EQ(fast("a  b\n\nc \n d", false), (Pieces{"a", " ", " b", "\n", "\n", "c", " \n", " d"}));
  EXPECT_EQ(fast("end   ", false), (Pieces{"end", "   "}));
  EXPECT_EQ(fast("in 2024: 3.14", false), (Pieces{"in", " 2024", ":", " 3", ".", "14"}));
  EXPECT_EQ(fast("in 2024:  34", true), (Pieces{"in", " ", "2", "0", "2", "4", ":", "  ", "3", "4"}));
  EXPECT_EQ(fast("", false), Pieces{});
  EXPECT_EQ(fast("'sa'reb", false), (Pieces{"'s", "a", "'re", "b"}));
}

TEST(Splitter, EqualsThePattern) {
  EXPECT_TRUE(rc::check("on any mixture", [] {
    const std::string text = random_text();
    RC_ASSERT(fast(text, false) == literal(text, false));
    RC_ASSERT(fast(text, true) == literal(text, true));
  }));
}

TEST(Splitter, EqualsThePatternAtEveryOffsetOfABlock) {
  const std::string core = "we'll go\u00a0\u3000 to 'the  \n sea\u4e2d's 12'3 x";
  for (std::size_t shift = 0; shift < 140; ++shift) {
    const std::string text = std::string(shift, 'a') + core + std::string(shift % 7, ' ') + core;
    ASSERT_EQ(fast(text, false), literal(text, false)) << shift;
    ASSERT_EQ(fast(text, true), literal(text, true)) << shift;
  }
}

TEST(Splitter, CutsChangeNothing) {
  EXPECT_TRUE(rc::check("the last cut", [] {
    const std::string text = random_text();
    const std::size_t cut = last_piece_cut(text);
    for (const bool digits : {false, true}) {
      Pieces parts = fast(std::string_view(text).substr(0, cut), digits);
      const Pieces rest = fast(std::string_view(text).substr(cut), digits);
      parts.insert(parts.end(), rest.begin(), rest.end());
      RC_ASSERT(parts == fast(text, digits));
    }
  }));
  EXPECT_EQ(last_piece_cut(std::string(1000, 'a')), 0U);
  EXPECT_EQ(last_piece_cut("one two"), 3U);
}

TEST(Unicode, DecodesWhatIsWellFormed) {
  EXPECT_TRUE(rc::check("any code point", [] {
    auto code = static_cast<char32_t>(*rc::gen::inRange<std::uint32_t>(0, 0x110000));
    if (code >= 0xd800 && code < 0xe000) code = 'x';
    std::string text;
    append_utf8(text, code);
    const Decoded d = decode(text.data(), text.data() + text.size());
    RC_ASSERT(d.code == code && d.bytes == text.size());
    RC_ASSERT(find_invalid(text) == std::string_view::npos);
    if (text.size() > 1) RC_ASSERT(find_invalid(text.substr(0, text.size() - 1)) == 0U);
  }));
  EXPECT_EQ(find_invalid("ab\xed\xa0\x80"), 2U) << "surrogates";
  EXPECT_EQ(find_invalid("ab\xc0\x80"), 2U) << "overlong";
}

TEST(Unicode, KnowsItsClasses) {
  EXPECT_EQ(class_of('a'), Class::letter);
  EXPECT_EQ(class_of(0x4e2d), Class::letter);
  EXPECT_EQ(class_of(0x02b0), Class::letter) << "modifier letters are letters";
  EXPECT_EQ(class_of(0x0301), Class::other) << "combining marks are not";
  EXPECT_EQ(class_of(0xbd), Class::number);
  EXPECT_EQ(class_of(0x2163), Class::number);
  for (const char32_t c : {0x09, 0x0b, 0x0c, 0x20, 0x85, 0xa0, 0x1680, 0x2003, 0x2028, 0x202f, 0x205f, 0x3000}) EXPECT_EQ(class_of(c), Class::space) << static_cast<unsigned>(c);
  EXPECT_EQ(class_of(0x200b), Class::other) << "zero-width space";
  EXPECT_EQ(class_of(0x1c), Class::other);
  EXPECT_EQ(class_of(kInvalid), Class::other);
}

}  // namespace
}  // namespace gdds::text
