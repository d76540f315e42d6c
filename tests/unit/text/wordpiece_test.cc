// WordPiece gives the ids that the uncased BERT models were made for: by hand on a small vocabulary, and as another
// library found them on lines of many scripts. Texts may be cut where last_cut() says.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/folder.h"
#include "text/encoder.h"

namespace gdds::text {
namespace {

Vocabulary vocabulary_of(const std::vector<std::string>& tokens) {
  Vocabulary v;
  v.model = "wordpiece";
  v.pretokenizer = v.normalizer = "bert";
  for (const std::string& token : tokens) {
    if (token == "[UNK]") v.unk = v.size();
    v.bytes += token;
    v.offsets.push_back(static_cast<std::int64_t>(v.bytes.size()));
    v.types.push_back(token.size() > 4 && token.starts_with('[') && token.ends_with(']'));
  }
  return v;
}

Vocabulary small() {
  return vocabulary_of({"[PAD]", "[UNK]", "[CLS]", "un", "##aff", "##able", "cafe", "a", "##a", "aa", ",", "[", "]",
                        "cls", "中", "文", "?", "=", "\u201c", "##b", "\u03c3", "##\u03c3", "i", "##s", "\u1112",
                        "##\u1161", "##\u11ab", "##\u1bf2", "##\U0001d165"});
}

// The tokens that a text becomes, with blanks between them.
std::string pieces(Encoder& encoder, const Vocabulary& vocabulary, const std::string& text) {
  std::vector<std::int32_t> ids;
  encoder.encode(text, ids);
  std::string joined;
  for (const std::int32_t id : ids) joined += (joined.empty() ? "" : " ") + std::string(vocabulary.token(id));
  return joined;
}

std::string pieces(const std::string& text) {
  const Vocabulary v = small();
  return pieces(*make_wordpiece_encoder(v), v, text);
}

TEST(WordPiece, TakesTheLongestPieces) {
  EXPECT_EQ(pieces(""), "");
  EXPECT_EQ(pieces(" \t\r\n"), "");
  EXPECT_EQ(pieces("unaffable"), "un ##aff ##able");
  EXPECT_EQ(pieces("UnAffAble,Un"), "un ##aff ##able , un");
  EXPECT_EQ(pieces("aaa"), "aa ##a");
  EXPECT_EQ(pieces("unx un"), "[UNK] un");  // all of the word, not its rest
  EXPECT_EQ(pieces("able ##able"), "[UNK] [UNK] [UNK] [UNK]");
}

TEST(WordPiece, StripsAccentsAndLowersCase) {
  EXPECT_EQ(pieces("Caf\u00e9 CAFE\u0301"), "cafe cafe");
  EXPECT_EQ(pieces("\u0301"), "");
  EXPECT_EQ(pieces("\u03a3\u03a3"), "\u03c3 ##\u03c3");  // no final sigma: a character at a time
  EXPECT_EQ(pieces("\u0130S"), "i ##s");                 // I with a dot above
  EXPECT_EQ(pieces("\ud55c"), "\u1112 ##\u1161 ##\u11ab");  // Hangul in its letters
  EXPECT_EQ(pieces("a\U0001d165\u1bf2"), pieces("a\u1bf2\U0001d165"));  // canonical order
  EXPECT_EQ(pieces("a\u1bf2\U0001d165"), "a ##\u1bf2 ##\U0001d165");
}

TEST(WordPiece, CleansText) {
  EXPECT_EQ(pieces(std::string("u\0n \x01u\x7fn", 8)), "un un");
  EXPECT_EQ(pieces("u\u200bn u\ufffdn u\u0085n u\x0bn \ufeff"), "un un un un");
  EXPECT_EQ(pieces("un\u00a0un\u3000un\u2028un"), "un un un un");
}

TEST(WordPiece, SplitsAtPunctuationAndIdeographs) {
  EXPECT_EQ(pieces("un,,un?"), "un , , un ?");
  EXPECT_EQ(pieces("\u201cun\u201d"), "\u201c un [UNK]");
  EXPECT_EQ(pieces("un中文un"), "un 中 文 un");
  EXPECT_EQ(pieces("a\u2260a"), "a = a");  // becomes = and an accent
  EXPECT_EQ(pieces("[CLS]"), "[ cls ]");   // special tokens are not found in text
}

TEST(WordPiece, LongWordsAreUnknown) {
  const std::string hundred(100, 'a');
  EXPECT_EQ(pieces(hundred).substr(0, 6), "aa ##a");
  EXPECT_EQ(pieces(hundred + "a un"), "[UNK] un");
  std::string accented, sigmas;
  for (int i = 0; i < 100; ++i) accented += "\u00e1", sigmas += "\u03c3";
  EXPECT_EQ(pieces(accented), pieces(hundred));  // counted after accents are gone
  EXPECT_EQ(pieces(sigmas).substr(0, 2), "\u03c3");
  EXPECT_EQ(pieces(sigmas + "\u03c3"), "[UNK]");
  EXPECT_EQ(pieces(std::string(1'000'000, 'a')), "[UNK]");
}

std::string fault(Encoder& encoder, const std::string& text) {
  std::vector<std::int32_t> ids;
  try {
    encoder.encode(text, ids);
  } catch (const Unencodable& fault) {
    return std::to_string(fault.at) + " " + fault.what;
  }
  return "none";
}

TEST(WordPiece, SaysWhereTextIsNotUtf8) {
  const Vocabulary v = small();
  const auto encoder = make_wordpiece_encoder(v);
  EXPECT_EQ(fault(*encoder, "un a\xff"), "4 not UTF-8");
  EXPECT_EQ(fault(*encoder, "un caf\u00e9\xe4\xb8 a"), "8 not UTF-8");
  EXPECT_EQ(fault(*encoder, "\xed\xa0\x80"), "0 not UTF-8");
  EXPECT_EQ(pieces(*encoder, v, "un"), "un");  // nothing is left over
  Vocabulary without = v;
  without.unk = -1;
  const auto strict = make_wordpiece_encoder(without);
  EXPECT_EQ(fault(*strict, "un , xyz"), "5 not in the vocabulary, which has no unknown token");
  EXPECT_EQ(pieces(*strict, without, "a"), "a");
}

TEST(WordPiece, MayBeCutAtLastCut) {
  const Vocabulary v = small();
  const auto encoder = make_wordpiece_encoder(v);
  EXPECT_EQ(encoder->last_cut("un a "), 4U);
  EXPECT_EQ(encoder->last_cut("un\nb"), 2U);
  EXPECT_EQ(encoder->last_cut("\u3002\n"), 3U);
  for (const char* const none : {"", "a", " a", "\u00e9a"}) EXPECT_EQ(encoder->last_cut(none), 0U) << none;
  const std::string text = "Un caf\u00e9, u\x01n  ? unaffable\n\n aa [CLS] \u0301 \u4e2d a\t\u0301a un, xyz.";
  const std::string whole = pieces(*encoder, v, text);
  int cuts = 0;
  for (std::size_t cut = encoder->last_cut(text); cut > 0; cut = encoder->last_cut(text.substr(0, cut))) {
    const std::string first = pieces(*encoder, v, text.substr(0, cut));
    EXPECT_EQ(first + " " + pieces(*encoder->copy(), v, text.substr(cut)), whole) << cut;
    ++cuts;
  }
  EXPECT_GT(cuts, 9);
}

TEST(WordPiece, OutlivesItsVocabularyAndRemembersRight) {
  std::unique_ptr<Encoder> encoder;
  const Vocabulary v = small();
  {
    const Vocabulary gone = v;
    encoder = make_wordpiece_encoder(gone)->copy();
  }
  // More words than the cache holds, twice: what is remembered is what is found.
  std::vector<std::int32_t> first, second;
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text += i % 2 ? "un" : "A";
    for (int bits = i; bits > 0; bits /= 3) text += "asb"[bits % 3];
    text += ' ';
  }
  encoder->encode(text, first);
  encoder->encode(text, second);
  EXPECT_EQ(first, second);
}

TEST(WordPiece, EqualsAnotherLibrary) {
  const char* const data = std::getenv("GDDS_DATA");
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::string caches = cache ? cache : std::string(home ? home : "") + "/.cache";
  const std::string folder = data ? data : caches + "/gdds";
  std::ifstream words(folder + "/minilm/vocab.txt");
  if (!words) GTEST_SKIP() << "there is no " << folder << "/minilm/vocab.txt; scripts/fetch-data minilm gets it";
  std::vector<std::string> tokens;
  for (std::string line; std::getline(words, line);) tokens.push_back(line);
  const auto encoder = make_wordpiece_encoder(vocabulary_of(tokens));
  std::istringstream golden(test::file_bytes(std::string(GDDS_SOURCE_DIR) + "/tests/unit/text/wordpiece_golden.tsv"));
  int lines = 0;
  for (std::string line; std::getline(golden, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t tab = line.find('\t');
    std::istringstream numbers(line.substr(tab + 1));
    const std::vector<std::int32_t> expected{std::istream_iterator<std::int32_t>(numbers), {}};
    std::vector<std::int32_t> ids;
    encoder->encode(nlohmann::json::parse(line.substr(0, tab)).get<std::string>(), ids);
    EXPECT_EQ(ids, expected) << line;
    ++lines;
  }
  EXPECT_GE(lines, 40);
}

}  // namespace
}  // namespace gdds::text
