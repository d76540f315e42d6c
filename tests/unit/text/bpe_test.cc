// BPE against its plain definition, both learning and encoding; decode(encode(x)) = x; GPT-2's golden cases.
#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/folder.h"
#include "text/bpe_merge.h"
#include "text/encoder.h"
#include "text/learn.h"
#include "text/readers.h"
#include "text/splitter.h"
#include "text/unicode.h"

namespace gdds::text {
namespace {

using Ids = std::vector<std::int32_t>;
const std::string kData = std::string(GDDS_SOURCE_DIR) + "/../shared/data";

Ids encoded(Encoder& encoder, std::string_view text) {
  Ids ids;
  encoder.encode(text, ids);
  return ids;
}

// The definition: in each piece, join the leftmost pair of the best rank until there is none.
Ids plain_bpe(const Vocabulary& v, std::string_view text) {
  std::map<std::string, std::int32_t> id_of;
  for (std::int32_t id = v.size(); id-- > 0;)
    if (!v.is_special(id)) id_of[std::string(v.token(id))] = id;
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> rank;
  for (std::size_t i = 0; i < v.merges.size(); ++i)
    if (id_of.contains(std::string(v.token(v.merges[i][0])) + std::string(v.token(v.merges[i][1])))) rank.emplace(std::pair(v.merges[i][0], v.merges[i][1]), i);
  Ids all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = v.pretokenizer == "none" ? text.size() : piece_end(text, at, v.pretokenizer == "digits-gpt2");
    Ids ids;
    for (const char c : text.substr(at, end - at)) ids.push_back(id_of.at(std::string(1, c)));
    while (true) {
      std::size_t best = v.merges.size(), where = 0;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        const auto found = rank.find({ids[i], ids[i + 1]});
        if (found != rank.end() && found->second < best) best = found->second, where = i;
      }
      if (best == v.merges.size()) break;
      ids[where] = id_of.at(std::string(v.token(ids[where])) + std::string(v.token(ids[where + 1])));
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(where) + 1);
    }
    all.insert(all.end(), ids.begin(), ids.end());
    at = end;
  }
  return all;
}

// The definition of learning: count all pairs anew before each merge.
Vocabulary plain_learn(const std::string& text, std::int64_t room, const LearnOptions& options) {
  Vocabulary v;
  for (int b = 0; b < 256; ++b) v.add(std::string(1, static_cast<char>(b)), false);
  std::map<std::string, std::int64_t> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = piece_end(text, at, options.digits_apart);
    ++words[text.substr(at, end - at)];
    at = end;
  }
  std::vector<std::pair<Ids, std::int64_t>> split;
  for (const auto& [word, count] : words) {
    Ids ids;
    for (const char c : word) ids.push_back(static_cast<unsigned char>(c));
    split.emplace_back(ids, count);
  }
  while (v.size() < room) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts;
    for (const auto& [ids, count] : split)
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) counts[{ids[i], ids[i + 1]}] += count;
    std::pair<std::int32_t, std::int32_t> best{-1, -1};
    std::int64_t most = options.min_count - 1;
    for (const auto& [pair, count] : counts)
      if (count > most) most = count, best = pair;
    if (best.first < 0) break;
    const std::string bytes = std::string(v.token(best.first)) + std::string(v.token(best.second));
    std::int32_t made = v.find(bytes);
    if (made < 0) made = v.add(bytes, false);
    v.merges.push_back({best.first, best.second});
    for (auto& [ids, count] : split) {
      Ids out;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const bool here = i + 1 < ids.size() && ids[i] == best.first && ids[i + 1] == best.second;
        out.push_back(here ? made : ids[i]);
        i += here;
      }
      ids = out;
    }
  }
  return v;
}

std::string corpus(int lines) {
  std::string text;
  std::uint64_t state = 88172645463325252U;
  const auto random = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17; };
  for (int i = 0; i < lines; ++i) {
    for (int w = 0; w < 9; ++w) {
      text += w == 0 ? "" : " ";
      for (std::uint64_t n = 1 + random() % 7; n > 0; --n) text += "etaoinshr"[random() % 9 * (random() % 9) / 9];
    }
    text += random() % 3 ? ".\n" : "'s 12 aaaa\u00e9!\n";
  }
  return text;
}

Vocabulary learned(const std::string& text, std::int64_t size, bool digits = false) {
  LearnOptions options;
  options.digits_apart = digits;
  Counts counts(options);
  counts.add(text);
  return learn_bpe(counts, size, options);
}

TEST(LearnBpe, MakesTheMergesOfThePlainWay) {
  for (const bool digits : {false, true}) {
    LearnOptions options;
    options.digits_apart = digits;
    const std::string text = corpus(300);
    const Vocabulary fast = learned(text, 700, digits), plain = plain_learn(text, 700, options);
    EXPECT_EQ(fast.merges, plain.merges);
    EXPECT_EQ(fast.bytes, plain.bytes);
    EXPECT_EQ(fast.size(), 700);
  }
}

TEST(LearnBpe, StopsWhereNothingRepeats) {
  const Vocabulary v = learned("ab ab ab cd", 1000);
  EXPECT_LT(v.size(), 262);
  EXPECT_EQ(v.merges, plain_learn("ab ab ab cd", 1000, {}).merges);
}

TEST(LearnBpe, RunsOfOneLetterAreCountedAsJoined) {
  for (const char* text : {"aaaa aaaa aaa", "aaaaaaa", "abababab abab"}) EXPECT_EQ(learned(text, 300).merges, plain_learn(text, 300, {}).merges) << text;
}

TEST(LearnBpe, DoesNotDependOnHowTheTextIsCounted) {
  LearnOptions options;
  const std::string a = corpus(50), b = corpus(80);
  Counts one(options), two(options), both(options);
  one.add(a), two.add(b), both.add(b), both.add(a);
  one.add(two);
  EXPECT_EQ(learn_bpe(one, 500, options).hash(), learn_bpe(both, 500, options).hash());
}

TEST(Bpe, EqualsThePlainWay) {
  const Vocabulary v = learned(corpus(200), 600);
  const auto encoder = make_bpe_encoder(v);
  EXPECT_TRUE(rc::check("on words like the corpus', again and again from the cache", [&] {
    const auto seeds = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 40));
    std::string text;
    for (const int s : seeds) text += s == 0 ? "\u4e2d" : s == 1 ? "'s" : s == 2 ? "  " : s == 3 ? "1" : std::string(1, "etaoinshr ."[s % 11]);
    RC_ASSERT(encoded(*encoder, text) == plain_bpe(v, text));
  }));
}

TEST(Bpe, LongPiecesTakeTheSameMerges) {
  const Vocabulary v = learned(corpus(200), 600);
  const auto encoder = make_bpe_encoder(v);
  std::string text;
  for (int i = 0; i < 700; ++i) text += "etaoinshr"[i * i % 9];
  for (const std::size_t n : {15U, 16U, 17U, 127U, 128U, 129U, 130U, 300U, 700U}) EXPECT_EQ(encoded(*encoder, text.substr(0, n)), plain_bpe(v, text.substr(0, n))) << n;
}

TEST(Bpe, AMillionEqualLettersAreNotQuadratic) {
  const Vocabulary v = learned("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa aaaa", 300);
  const auto encoder = make_bpe_encoder(v);
  const std::string text(1'000'000, 'a');
  EXPECT_EQ(decode_ids(v, encoded(*encoder, text).data(), encoded(*encoder, text).size(), true), text);
}

// A vocabulary that nobody learned: few letters, so that much joins; merges in any order, some of them twice, some that
// make no token; tokens that nothing reaches and tokens that are there twice; `first` tokens before them.
struct AnyVocabulary {
  Vocabulary v;
  std::string letters;
};
AnyVocabulary any_vocabulary(std::mt19937_64& random, int first) {
  AnyVocabulary any;
  Vocabulary& v = any.v;
  v.model = "bpe";
  for (int i = 0; i < first; ++i) v.add("filler" + std::to_string(i), false);
  const std::size_t letters = 2 + random() % 5;
  while (any.letters.size() < letters)
    if (const char c = static_cast<char>(random() % 3 ? random() % 256 : 'a' + random() % 4); any.letters.find(c) == std::string::npos) any.letters += c;
  Ids tokens;
  for (const char c : any.letters) tokens.push_back(v.add(std::string(1, c), false));
  const std::size_t merges = random() % 80;
  for (std::size_t i = 0; i < merges; ++i) {
    const auto pick = [&] { return tokens[std::min(random() % tokens.size(), random() % tokens.size())]; };
    const std::int32_t left = pick(), right = pick();
    v.merges.push_back({left, right});
    const std::string made = std::string(v.token(left)) + std::string(v.token(right));
    if (random() % 10 != 0) tokens.push_back(v.add(made, false));
    if (random() % 10 == 0) v.merges.push_back({left, right});
    if (random() % 10 == 0) v.add(made + any.letters[0], false);
  }
  if (random() % 2 == 0) std::shuffle(v.merges.begin(), v.merges.end(), random);
  return any;
}
std::string any_piece(const AnyVocabulary& any, std::mt19937_64& random, std::size_t size) {
  std::string piece;
  const std::size_t alike = 1 + random() % 6;  // runs of one letter
  while (piece.size() < size) piece.append(1 + random() % alike, any.letters[random() % any.letters.size()]);
  return piece.substr(0, size);
}
Ids merged(const Merger& merger, std::string_view piece, bool plainly) {
  Ids ids(piece.size());
  ids.resize(static_cast<std::size_t>((plainly ? merger.merge_plainly(piece, ids.data()) : merger.merge(piece, ids.data())) - ids.data()));
  return ids;
}

TEST(Bpe, AnyVocabularyMergesAsDefined) {
  EXPECT_TRUE(rc::check("pieces of 1 to 200 bytes", [] {
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    const AnyVocabulary any = any_vocabulary(random, 0);
    const Merger merger(any.v);
    const auto encoder = make_bpe_encoder(any.v);
    for (std::size_t size = 1; size <= 200; size += 1 + size / 10) {
      const std::string piece = any_piece(any, random, size);
      const Ids ids = merged(merger, piece, true);
      RC_ASSERT(merged(merger, piece, false) == ids);
      RC_ASSERT(encoded(*encoder, piece) == ids);
      RC_ASSERT(encoded(*encoder, piece) == ids);  // from the cache
      if (size < 40) RC_ASSERT(plain_bpe(any.v, piece) == ids);
    }
  }));
}

TEST(Bpe, MoreThan65536TokensMergeAsDefined) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3; ++i) {
    const AnyVocabulary any = any_vocabulary(random, 65530);
    const Merger merger(any.v);
    const auto encoder = make_bpe_encoder(any.v);
    for (std::size_t size = 1; size <= 200; ++size) {
      const std::string piece = any_piece(any, random, size);
      const Ids ids = merged(merger, piece, true);
      ASSERT_EQ(merged(merger, piece, false), ids);
      ASSERT_EQ(encoded(*encoder, piece), ids);
      ASSERT_EQ(encoded(*encoder, piece), ids);
    }
  }
}

TEST(Bpe, PartsThatEndWhereA64ByteWindowEnds) {
  // Only a and b join; x cuts. Runs of every length at every place.
  Vocabulary v = learned("x", 256);
  v.pretokenizer = "none";
  for (const char* token : {"ab", "ba", "abab", "aa"}) v.add(token, false);
  v.merges = {{'b', 'a'}, {'a', 'b'}, {256, 256}, {'a', 'a'}};
  const Merger merger(v);
  for (std::size_t before = 0; before < 70; ++before)
    for (std::size_t run = 1; run < 140; ++run) {
      std::string piece(before, 'x');
      for (std::size_t i = 0; i < run; ++i) piece += i % 5 == 3 ? 'b' : 'a';
      piece += std::string(before % 3, 'x');
      ASSERT_EQ(merged(merger, piece, false), merged(merger, piece, true)) << before << " " << run;
    }
}

TEST(Bpe, DecodeUndoesEncode) {
  const Vocabulary v = learned(corpus(200), 600);
  const auto encoder = make_bpe_encoder(v);
  EXPECT_TRUE(rc::check("any bytes", [&] {
    const auto text = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    const Ids ids = encoded(*encoder, text);
    RC_ASSERT(decode_ids(v, ids.data(), ids.size(), true) == text);
  }));
}

TEST(Bpe, DecodeUndoesEncodeOfAnyUnicode) {
  const Vocabulary v = learned(corpus(200), 600), digits = learned(corpus(200), 600, true);
  const auto encoder = make_bpe_encoder(v), apart = make_bpe_encoder(digits);
  // Every kind of white space, combining marks, emoji with joiners, letters of many scripts, any code point at all.
  const auto character = rc::gen::oneOf(
      rc::gen::element<char32_t>(0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20, 0x85, 0xa0, 0x1680, 0x2000, 0x2003, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000),
      rc::gen::element<char32_t>(0x300, 0x301, 0x20d0, 0xfe0f, 0x200d, 0x1f600, 0x1f468, 0x1f3fd, 0x1f1e9),
      rc::gen::cast<char32_t>(rc::gen::inRange<std::uint32_t>(0x20, 0x7f)), rc::gen::cast<char32_t>(rc::gen::inRange<std::uint32_t>(0xa0, 0xd7ff)),
      rc::gen::cast<char32_t>(rc::gen::inRange<std::uint32_t>(0xe000, 0x110000)));
  EXPECT_TRUE(rc::check("any characters", [&] {
    std::string text;
    for (const char32_t c : *rc::gen::container<std::vector<char32_t>>(character)) append_utf8(text, c);
    const Ids ids = encoded(*encoder, text), other = encoded(*apart, text);
    RC_ASSERT(decode_ids(v, ids.data(), ids.size(), true) == text);
    RC_ASSERT(decode_ids(digits, other.data(), other.size(), true) == text);
    RC_ASSERT(ids == plain_bpe(v, text));
    RC_ASSERT(other == plain_bpe(digits, text));
  }));
}

TEST(Bpe, ATokenThatMergingCannotReachIsNotUsed) {
  // "abc" is a token, but only (a, b) merges: the piece "abc" is ab, c.
  Vocabulary v = learned("x", 256);
  v.add("ab", false);
  v.add("abc", false);
  v.merges = {{'a', 'b'}};
  EXPECT_EQ(encoded(*make_bpe_encoder(v), "abc"), (Ids{256, 'c'}));
}

TEST(Bpe, AByteThatHasNoTokenIsNamed) {
  Vocabulary v;
  v.model = "bpe";
  v.pretokenizer = "gpt2";
  for (int b = 0; b < 255; ++b) v.add(std::string(1, static_cast<char>(b)), false);
  const auto encoder = make_bpe_encoder(v);
  EXPECT_EQ(encoded(*encoder, "ab"), (Ids{'a', 'b'}));
  try {
    encoded(*encoder, "ab \xff");
    FAIL();
  } catch (const Unencodable& wrong) {
    EXPECT_EQ(wrong.at, 3U);
    EXPECT_EQ(wrong.what, "the vocabulary has no byte 0xff");
  }
}

TEST(Symbols, AreOneTokenEach) {
  const auto text8 = make_encoder(text8_vocabulary());
  EXPECT_EQ(encoded(*text8, "a bz"), (Ids{1, 0, 2, 26}));
  try {
    encoded(*text8, "abC");
    FAIL();
  } catch (const Unencodable& wrong) {
    EXPECT_EQ(wrong.at, 2U);
    EXPECT_EQ(wrong.what, "the vocabulary has no 'C'");
  }
  LearnOptions options;
  options.model = "characters";
  options.min_count = 1;
  Counts counts(options);
  counts.add("z\u00e9a\U0001f600");
  const Vocabulary v = learn_characters(counts, options);
  EXPECT_EQ(v.size(), 4);
  EXPECT_EQ(encoded(*make_encoder(v), "az\u00e9\U0001f600"), (Ids{0, 1, 2, 3}));
  try {
    encoded(*make_encoder(v), "a\xff");
    FAIL();
  } catch (const Unencodable& wrong) {
    EXPECT_EQ(wrong.what, "not UTF-8");
  }
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  const Ids ids = encoded(*make_encoder(bytes_vocabulary()), all);
  EXPECT_EQ(decode_ids(bytes_vocabulary(), ids.data(), ids.size(), true), all);
}

Vocabulary gpt2(const std::string& form) {
  std::vector<h5::Source> sources;
  return open_vocabulary(kData + "/gpt2-tokenizer/" + form, sources);
}

TEST(Gpt2, PassesTheGoldenCases) {
  if (!std::filesystem::exists(kData + "/gpt2-golden")) GTEST_SKIP() << "shared/data is not beside the checkout";
  const std::string cases = test::file_bytes(kData + "/gpt2-golden/llamacpp-gpt-2.inp");
  std::istringstream answers(test::file_bytes(kData + "/gpt2-golden/llamacpp-gpt-2.out"));
  const auto encoder = make_encoder(gpt2("vocab.bpe"));
  const std::string mark = "\n__ggml_vocab_test__\n";
  int count = 0;
  std::string line;
  for (std::size_t at = 0; at < cases.size() && std::getline(answers, line); ++count) {
    const std::size_t end = std::min(cases.find(mark, at), cases.size());
    std::istringstream numbers(line);
    Ids expected{std::istream_iterator<std::int32_t>(numbers), {}};
    EXPECT_EQ(encoded(*encoder, cases.substr(at, end - at)), expected) << count << ": " << cases.substr(at, end - at);
    at = end + mark.size();
  }
  EXPECT_GT(count, 40);
}

TEST(Gpt2, FormsAgree) {
  if (!std::filesystem::exists(kData + "/gpt2-tokenizer")) GTEST_SKIP() << "shared/data is not beside the checkout";
  const std::string text = test::file_bytes(kData + "/wikitext-2/valid.txt") + corpus(100);
  const auto a = make_encoder(gpt2("encoder.json")), b = make_encoder(gpt2("r50k_base.tiktoken")), c = make_encoder(gpt2("tokenizer.json"));
  const Ids ids = encoded(*a, text);
  EXPECT_EQ(ids, encoded(*b, text));
  EXPECT_EQ(ids, encoded(*c, text));
  EXPECT_EQ(decode_ids(gpt2("vocab.bpe"), ids.data(), ids.size(), true), text);
  EXPECT_TRUE(plain_bpe(gpt2("vocab.bpe"), text.substr(0, 20000)) == encoded(*a, text.substr(0, 20000)));
}

}  // namespace
}  // namespace gdds::text
