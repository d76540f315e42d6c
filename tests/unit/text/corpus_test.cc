// Documents and sequences: what a document is, where blocks end does not matter, parts of a corpus are disjoint and whole,
// and chunks hold every token in order.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/threads.h"
#include "support/folder.h"
#include "support/sample.h"
#include "text/readers.h"
#include "text/splitter.h"
#include "text/tokenize.h"

namespace gdds::text {
namespace {

using test::error_of;
using test::Folder;
using Documents = std::vector<std::string>;

CorpusOptions from(const std::string& file, const std::string& documents) {
  CorpusOptions options;
  options.files = {file};
  options.documents = documents;
  return options;
}

// All documents, put together from their segments.
Documents read(const CorpusOptions& options, std::size_t block_bytes, bool cut = false) {
  Corpus corpus(options, cut ? Corpus::Cut(last_piece_cut) : Corpus::Cut(), block_bytes);
  Documents documents;
  std::string open;
  for (Block block; corpus.next(block);) {
    EXPECT_FALSE(block.segments.empty());
    for (const Segment& s : block.segments) {
      open += block.text.substr(s.begin, s.end - s.begin);
      if (!s.ends_document) continue;
      documents.push_back(open);
      open.clear();
    }
  }
  EXPECT_EQ(open, "");
  EXPECT_EQ(corpus.documents(), documents.size());
  return documents;
}

TEST(Corpus, KnowsWhatADocumentIs) {
  const Folder folder;
  const std::string f = folder.file("t");
  test::write_bytes(f, "one\ntwo\r\n\nthree  \n \t\n\n  four\nfive\n\n");
  EXPECT_EQ(read(from(f, "file"), 4096), (Documents{"one\ntwo\r\n\nthree  \n \t\n\n  four\nfive\n\n"}));
  EXPECT_EQ(read(from(f, "line"), 4096), (Documents{"one", "two", "three  ", " \t", "  four", "five"}));
  EXPECT_EQ(read(from(f, "paragraph"), 4096), (Documents{"one\ntwo\r", "three  ", "  four\nfive"}));
  test::write_bytes(f, "a<|endoftext|>b b<|endoftext|><|endoftext|>c");
  EXPECT_EQ(read(from(f, "separator"), 4096), (Documents{"a", "b b", "c"}));
  test::write_bytes(f, "{\"text\": \"a\\n\\u00e9\"}\n\n{\"id\": 1, \"text\": \"b\"}\n");
  EXPECT_EQ(read(from(f, "jsonl"), 4096), (Documents{"a\n\u00e9", "b"}));
  test::write_bytes(f, "");
  for (const char* kind : {"file", "line", "paragraph", "separator", "jsonl"}) EXPECT_EQ(read(from(f, kind), 4096), Documents{}) << kind;
}

TEST(Corpus, SaysWhichLineIsNotJson) {
  const Folder folder;
  const std::string f = folder.file("t");
  const auto error = [&](const std::string& bytes) {
    test::write_bytes(f, bytes);
    return error_of([&] { read(from(f, "jsonl"), 4096); });
  };
  EXPECT_EQ(error("{\"text\": \"a\"}\n{\"text\": \n"), "3 " + f + ": line 2: not a JSON object");
  EXPECT_EQ(error("[1]\n"), "3 " + f + ": line 1: not a JSON object");
  EXPECT_EQ(error("{\"text\": 1}\n"), "3 " + f + ": line 1: no text in field 'text'");
  EXPECT_EQ(error("{\"body\": \"x\"}\n"), "3 " + f + ": line 1: no text in field 'text'");
}

TEST(Corpus, BlocksDoNotMatter) {
  const Folder folder;
  const std::string f = folder.file("t");
  EXPECT_TRUE(rc::check("documents are the same for every block size", [&] {
    const auto picks = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 9));
    std::string text;
    for (const int p : picks) text += std::array<const char*, 9>{"word", " ", "\n", "\n\n", " \n", "<|endoftext|>", "<|end", "\u00e9", "|>"}[static_cast<std::size_t>(p)];
    test::write_bytes(f, text);
    for (const char* kind : {"file", "line", "paragraph", "separator"}) {
      const Documents whole = read(from(f, kind), 1 << 20);
      for (const std::size_t bytes : {1U, 2U, 3U, 7U, 16U, 61U}) {
        RC_ASSERT(read(from(f, kind), bytes) == whole);
        RC_ASSERT(read(from(f, kind), bytes, true) == whole);
      }
    }
  }));
}

TEST(Corpus, PartsAreDisjointAndWhole) {
  const Folder folder;
  const std::string f = folder.file("t");
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "document " + std::to_string(i) + "\n";
  test::write_bytes(f, text);
  const Documents all = read(from(f, "line"), 100);
  for (const char* split : {"fraction:0.1:0.2", "documents:100:50"}) {
    CorpusOptions options = from(f, "line");
    options.split = split;
    Documents together;
    std::map<std::string, std::size_t> sizes;
    for (const char* part : {"train", "valid", "test"}) {
      options.part = part;
      const Documents some = read(options, 333);
      sizes[part] = some.size();
      together.insert(together.end(), some.begin(), some.end());
    }
    std::sort(together.begin(), together.end());
    Documents sorted = all;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(together, sorted) << split;
    if (std::string(split).starts_with("documents")) {
      EXPECT_EQ(sizes["valid"], 100U);
      EXPECT_EQ(sizes["test"], 50U);
    } else {
      // Binomial(1000, p) within 6 standard deviations (false alarm below 1e-8); the seed is fixed anyway.
      EXPECT_NEAR(static_cast<double>(sizes["valid"]), 100, 57);
      EXPECT_NEAR(static_cast<double>(sizes["test"]), 200, 76);
    }
  }
  CorpusOptions last = from(f, "line");
  last.split = "documents:100:50";
  last.part = "test";
  EXPECT_EQ(read(last, 64).front(), "document 950");
}

TEST(Corpus, Text8IsCutByBytes) {
  const Folder folder;
  const std::string f = folder.file("t");
  std::string text;
  for (int i = 0; i < 1003; ++i) text += static_cast<char>('a' + i % 26);
  test::write_bytes(f, text);
  CorpusOptions options = from(f, "file");
  options.split = "text8";
  std::string together;
  for (const char* part : {"train", "valid", "test"}) {
    options.part = part;
    const Documents d = read(options, 100);
    ASSERT_EQ(d.size(), 1U);
    if (std::string(part) == "train") {
      EXPECT_EQ(d[0].size(), 902U);
    }
    together += d[0];
  }
  EXPECT_EQ(together, text);
}

TEST(Corpus, RefusesBadSplits) {
  for (const char* bad : {"half", "fraction", "fraction:0.7:0.7", "documents:-1", "fraction:x", "documents:1.5"})
    EXPECT_TRUE(error_of([&] { parse_split(bad); }).starts_with("2 ")) << bad;
}

struct Tokens {
  std::vector<std::int32_t> ids, lengths;
  h5::Shape shape;
  EncodeSummary summary;
};

Tokens tokens_of(const CorpusOptions& options, const Vocabulary& v, const ChunkOptions& chunks, std::size_t block_bytes = 64) {
  const Folder folder;
  const auto encoder = make_encoder(v);
  Corpus corpus(options, [&](std::string_view t) { return encoder->last_cut(t); }, block_bytes);
  h5::Output output({folder.file("t.h5"), 0, false}, "tokens", test::sample_invocation(), {});
  write(v, output);
  Tokens t;
  t.summary = encode_corpus(corpus, *encoder, v, chunks, output);
  output.commit();
  const h5::Input input(folder.file("t.h5"), "tokens");
  t.ids = input.read<std::int32_t>("/tokens");
  t.shape = input.shape("/tokens");
  if (input.has("/lengths")) t.lengths = input.read<std::int32_t>("/lengths");
  EXPECT_EQ(read_vocabulary(input).hash(), v.hash());
  return t;
}

Vocabulary letters() {
  Vocabulary v = text8_vocabulary();
  SpecialOptions special;
  special.eos = special.pad = special.mask = true;
  special.apply(v);
  return v;  // eos 27, mask 28, pad 29
}

TEST(Chunks, HoldEveryTokenInOrder) {
  const Folder folder;
  test::write_bytes(folder.file("t"), "abc\nde\nfghij\n");
  const auto chunked = [&](auto change) {
    ChunkOptions options;
    options.length = 4;
    change(options);
    return tokens_of(from(folder.file("t"), "line"), letters(), options);
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(chunked([](auto&) {}).ids, (Ids{1, 2, 3, 27, 4, 5, 27, 6, 7, 8, 9, 10}));
  EXPECT_EQ(chunked([](auto&) {}).summary.dropped, 1U) << "the last end of text";
  EXPECT_EQ(chunked([](auto& o) { o.no_eos = true; }).ids, (Ids{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(chunked([](auto& o) { o.remainder = "pad"; }).ids, (Ids{1, 2, 3, 27, 4, 5, 27, 6, 7, 8, 9, 10, 27, 29, 29, 29}));
  const Tokens kept = chunked([](auto& o) { o.remainder = "keep"; });
  EXPECT_EQ(kept.lengths, (Ids{4, 4, 4, 1}));
  EXPECT_EQ(chunked([](auto& o) { o.remainder = "pad", o.apart = true; }).ids, (Ids{1, 2, 3, 27, 4, 5, 27, 29, 6, 7, 8, 9, 10, 27, 29, 29}));
  EXPECT_EQ(chunked([](auto& o) { o.begin_token = "<|mask|>", o.end_token = "<|endoftext|>", o.no_eos = true; }).ids,
            (Ids{28, 1, 2, 27, 28, 3, 4, 27, 28, 5, 6, 27, 28, 7, 8, 27, 28, 9, 10, 27}));
  EXPECT_EQ(error_of([&] { chunked([](auto& o) { o.begin_token = "[CLS]"; }); }), "2 --begin-token: the vocabulary has no token '[CLS]'");
  EXPECT_EQ(error_of([&] { chunked([](auto& o) { o.length = 1, o.begin_token = "<|mask|>"; }); }),
            "2 --length: 1 leaves no room for text beside the begin and end tokens");
}

TEST(Chunks, AFileOfNoTextHasNoSequences) {
  const Folder folder;
  test::write_bytes(folder.file("t"), "");
  EXPECT_EQ(tokens_of(from(folder.file("t"), "file"), letters(), {}).shape, (h5::Shape{0, 1024}));
}

TEST(Encode, DoesNotDependOnThreadsOrBlocks) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "it's  the year " + std::to_string(i * 7919 % 10007) + "\u3000\u4e2d\u6587\n" + (i % 50 ? "" : "\n");
  test::write_bytes(folder.file("t"), text);
  LearnOptions learn;
  Counts counts(learn);
  counts.add(text);
  const Vocabulary v = learn_bpe(counts, 400, learn);
  ChunkOptions chunks;
  chunks.length = 16;
  for (const char* kind : {"file", "paragraph"}) {
    set_threads(1);
    const Tokens expected = tokens_of(from(folder.file("t"), kind), v, chunks, 1 << 22);
    for (const int n : {1, 2, 5})
      for (const std::size_t bytes : {37U, 1000U, 65536U}) {
        set_threads(n);
        EXPECT_EQ(tokens_of(from(folder.file("t"), kind), v, chunks, bytes).ids, expected.ids) << n << " threads, blocks of " << bytes;
      }
  }
  set_threads(0);
}

TEST(Encode, NamesTheByteThatIsWrong) {
  const Folder folder;
  const std::string f = folder.file("t");
  std::string text(500, 'a');
  text[400] = 'X';
  test::write_bytes(f, text);
  for (const int n : {1, 3}) {
    set_threads(n);
    EXPECT_EQ(error_of([&] { tokens_of(from(f, "file"), letters(), {}, 64); }), "3 " + f + ": byte 400: the vocabulary has no 'X'");
  }
  set_threads(0);
}

TEST(ShownToken, IsOnOneLine) { EXPECT_EQ(shown_token("a b\n\t\xff\\\u00e9\x01"), "a b\\n\\t\\xff\\\\\u00e9\\x01"); }

}  // namespace
}  // namespace gdds::text
