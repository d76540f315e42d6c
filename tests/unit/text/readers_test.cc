// Vocabularies in other people's formats: the same vocabulary comes out of every form of it, what is written is read
// again by hash, and what is not understood is refused by its name instead of being read wrongly.
#include <cstdlib>
#include <functional>

#include <gtest/gtest.h>

#include "support/folder.h"
#include "text/assemble.h"
#include "text/readers.h"

namespace gdds::text {
namespace {

using test::error_of;
using test::file_bytes;
using test::Folder;
using test::write_bytes;

const std::string kData = GDDS_SOURCE_DIR "/../shared/data/gpt2-tokenizer/";

std::string cached(const std::string& name) {
  const char* data = std::getenv("GDDS_DATA");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (data != nullptr) return std::string(data) + "/" + name;
  if (cache != nullptr) return std::string(cache) + "/gdds/" + name;
  return std::string(home == nullptr ? "" : home) + "/.cache/gdds/" + name;
}

Vocabulary open(const std::string& path) {
  std::vector<h5::Source> sources;
  return open_vocabulary(path, sources);
}

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  const auto at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return at == std::string::npos ? text : text.replace(at, old.size(), now);
}

// 256 bytes, he, ll, hell, hello, and the end of text: ids 0 to 260.
Vocabulary small_bpe() {
  Vocabulary v = bytes_vocabulary();
  v.model = "bpe";
  v.pretokenizer = "gpt2";
  for (const char* token : {"he", "ll", "hell", "hello"}) v.add(token, false);
  v.merges = {{'h', 'e'}, {'l', 'l'}, {256, 257}, {258, 'o'}};
  v.eos = v.add("<|endoftext|>", true);
  return v;
}

std::string encoder_json(const Vocabulary& v) {
  std::string json;
  for (std::int32_t id = 0; id < v.size(); ++id) {
    std::string text = v.is_special(id) ? std::string(v.token(id)) : to_byte_level(v.token(id));
    if (text == "\"" || text == "\\") text = "\\" + text;
    json += (json.empty() ? "\"" : ", \"") + text + "\": " + std::to_string(id);
  }
  return "{" + json + "}";
}

std::string vocab_bpe(const Vocabulary& v) {
  std::string text = "#version: 0.2\n";
  for (const auto& [left, right] : v.merges)
    text += to_byte_level(v.token(left)) + " " + to_byte_level(v.token(right)) + "\n";
  return text;
}

std::string base64(std::string_view bytes) {
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) text += i + j <= bytes.size() ? digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::string tiktoken(const Vocabulary& v) {
  std::string text;
  for (std::int32_t id = 0; id < v.size(); ++id)
    if (!v.is_special(id)) text += base64(v.token(id)) + " " + std::to_string(id) + "\n";
  return text;
}

// As the library itself writes it, with arrays of merges.
std::string tokenizer_json(const Vocabulary& v) {
  std::string merges;
  for (const auto& [left, right] : v.merges)
    merges += (merges.empty() ? "[\"" : ",[\"") + to_byte_level(v.token(left)) + "\",\"" +
              to_byte_level(v.token(right)) + "\"]";
  return R"({"version":"1.0","added_tokens":[{"id":260,"content":"<|endoftext|>","special":true}],"normalizer":null,)"
         R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},)"
         R"("model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":"",)"
         R"("ignore_merges":false,)"
         R"("vocab":)" +
         encoder_json(v) + ",\"merges\":[" + merges + "]}}";
}

const std::string kWordpiece =
    R"({"added_tokens":[{"id":0,"content":"[PAD]","special":true},{"id":1,"content":"[UNK]","special":true}],
  "normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,
    "lowercase":true},
  "pre_tokenizer":{"type":"BertPreTokenizer"},
  "model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
    "vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"[MASK]":4,"[unused1]":5,"un":6,"##able":7}}})";
const std::string kVocabTxt = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[unused1]\nun\n##able\n";

// ---- the same vocabulary from every form ---------------------------------------------------------------------------

TEST(Readers, AllFormsOfBpeAgree) {
  const Vocabulary v = small_bpe();
  EXPECT_EQ(error_of([&] { check(v, "v"); }), "no error");
  EXPECT_EQ(read_gpt2_files(encoder_json(v), vocab_bpe(v), "f").hash(), v.hash());
  EXPECT_EQ(read_tiktoken(tiktoken(v), "f").hash(), v.hash());
  EXPECT_EQ(read_tokenizer_json(tokenizer_json(v), "f").hash(), v.hash());
  EXPECT_EQ(read_tokenizer_json(write_tokenizer_json(v), "f").hash(), v.hash());
  EXPECT_EQ(read_tiktoken(tiktoken(v), "a/b/my.r50k.tiktoken").name, "my.r50k");
}

TEST(Readers, AllFormsOfWordpieceAgree) {
  const Vocabulary v = read_tokenizer_json(kWordpiece, "f");
  EXPECT_EQ(v.model + v.pretokenizer + v.normalizer, "wordpiecebertbert");
  EXPECT_EQ(std::vector({v.pad, v.unk, v.eos, v.mask}), std::vector({0, 1, 3, 4}));
  EXPECT_EQ(v.types, std::vector<std::uint8_t>({1, 1, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(read_vocab_txt(kVocabTxt, "f").hash(), v.hash());
  EXPECT_EQ(read_vocab_txt("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\n[unused1]\r\nun\r\n##able", "f").hash(),
            v.hash());
  EXPECT_EQ(read_tokenizer_json(write_tokenizer_json(v), "f").hash(), v.hash());
}

TEST(Readers, TheFormsOfGpt2Agree) {
  if (file_bytes(kData + "encoder.json").empty()) GTEST_SKIP() << "no " << kData;
  const Vocabulary pair = open(kData + "encoder.json");
  EXPECT_EQ(pair.size(), 50257);
  EXPECT_EQ(pair.merges.size(), 50000u);
  EXPECT_EQ(pair.eos, 50256);
  EXPECT_EQ(pair.token(50256), "<|endoftext|>");
  EXPECT_EQ(pair.token(262), " the");
  for (const char* name : {"vocab.bpe", "r50k_base.tiktoken", "tokenizer.json", ""}) {
    const Vocabulary v = open(kData + name);
    EXPECT_EQ(v.hash(), pair.hash()) << name;
    EXPECT_EQ(v.name, "gpt2") << name;
  }
  EXPECT_EQ(read_tokenizer_json(write_tokenizer_json(pair), "f").hash(), pair.hash());
}

TEST(Readers, MiniLmsTwoFormsAgree) {
  const std::string folder = cached("minilm/");
  if (file_bytes(folder + "vocab.txt").empty()) GTEST_SKIP() << "no " << folder << "; scripts/fetch-data minilm";
  const Vocabulary v = open(folder + "vocab.txt");
  EXPECT_EQ(v.size(), 30522);
  EXPECT_EQ(open(folder + "tokenizer.json").hash(), v.hash());
  EXPECT_EQ(read_tokenizer_json(write_tokenizer_json(v), "f").hash(), v.hash());
}

TEST(Readers, SmolLmOutOfItsGguf) {
  const std::string path = cached("smollm2/smollm2-135m-q4_1.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << "; scripts/fetch-data smollm2";
  const Vocabulary v = open(path);
  EXPECT_EQ(v.size(), 49152);
  EXPECT_EQ(v.merges.size(), 48900u);
  EXPECT_EQ(v.pretokenizer, "digits-gpt2");
  EXPECT_EQ(v.token(v.eos), "<|im_end|>");
  EXPECT_EQ(v.name, "smollm2-135m-q4_1");
  EXPECT_EQ(read_tokenizer_json(write_tokenizer_json(v), "f").hash(), v.hash())
      << "its unk, <|endoftext|>, has to be said";
}

// ---- what was typed ------------------------------------------------------------------------------------------------

TEST(OpenVocabulary, KnowsEveryFormByItsBytes) {
  const Folder folder;
  const Vocabulary v = small_bpe();
  write_bytes(folder.file("ranks"), tiktoken(v));
  write_bytes(folder.file("library"), "\xef\xbb\xbf \n" + tokenizer_json(v));
  write_bytes(folder.file("encoder.json"), encoder_json(v));
  EXPECT_EQ(
      error_of([&] { open(folder.file("encoder.json")); }),
      "3 " + folder.file("encoder.json") + ": half of a vocabulary; neither vocab.bpe nor merges.txt is beside it");
  write_bytes(folder.file("merges.txt"), vocab_bpe(v));
  for (const char* name : {"ranks", "library", "encoder.json", "merges.txt", ""})
    EXPECT_EQ(open(folder.file(name)).hash(), v.hash()) << name;
  write_bytes(folder.file("words"), kVocabTxt);
  EXPECT_EQ(open(folder.file("words")).hash(), read_vocab_txt(kVocabTxt, "f").hash());
  write_bytes(folder.file("tokenizer.json"), kWordpiece);
  EXPECT_EQ(open(folder.path).model, "wordpiece") << "in a folder, tokenizer.json comes first";
  EXPECT_EQ(open("text8").hash(), text8_vocabulary().hash());
  EXPECT_EQ(open("bytes").hash(), bytes_vocabulary().hash());
}

TEST(OpenVocabulary, NamesItsSources) {
  const Folder folder;
  const Vocabulary v = small_bpe();
  write_bytes(folder.file("encoder.json"), encoder_json(v));
  write_bytes(folder.file("vocab.bpe"), vocab_bpe(v));
  std::vector<h5::Source> sources;
  open_vocabulary(folder.file("encoder.json"), sources);
  open_vocabulary(folder.file("vocab.bpe"), sources);
  open_vocabulary("text8", sources);
  ASSERT_EQ(sources.size(), 2u) << "text8 is no file";
  EXPECT_EQ(sources[0].argument, folder.file("encoder.json"));
  EXPECT_EQ(sources[0].digest, sources[1].digest) << "of both files, in either case";
  EXPECT_EQ(sources[0].history, "");
}

TEST(OpenVocabulary, RefusesAnythingElse) {
  const Folder folder;
  const auto refusal = [&](const std::string& bytes) {
    write_bytes(folder.file("x"), bytes);
    return error_of([&] { open(folder.file("x")); });
  };
  const std::string x = folder.file("x");
  EXPECT_EQ(error_of([&] { open(x); }), "1 " + x + ": cannot open: No such file or directory");
  EXPECT_EQ(error_of([&] { open(folder.path); }),
            "3 " + folder.path.string() + ": holds neither tokenizer.json nor encoder.json nor vocab.txt");
  EXPECT_EQ(refusal(""), "3 " + x + ": empty");
  EXPECT_EQ(refusal("some words\n"), "3 " + x + ": not a vocabulary in any form this program knows");
  EXPECT_EQ(refusal(std::string(8, '\0')), "3 " + x + ": not a vocabulary in any form this program knows");
  EXPECT_EQ(refusal("{\"model\": {"), "3 " + x + ": not JSON (at byte 12)");
  EXPECT_EQ(refusal("GGUF"), "3 " + x + ": cut off: 4 bytes wanted at byte 4, 0 are there");
  EXPECT_EQ(refusal("\x89HDF\r\n\x1a\n").substr(0, 3 + x.size()), "3 " + x + ":");
}

// ---- what is refused, and in which words ---------------------------------------------------------------------------

std::string json_error(const std::string& json) {
  return error_of([&] { read_tokenizer_json(json, "f"); });
}

TEST(TokenizerJson, RefusesOtherBpeByName) {
  const std::string good = tokenizer_json(small_bpe());
  const std::string cut = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  const auto with = [&](const std::string& old, const std::string& now) {
    return json_error(replaced(good, old, now));
  };
  EXPECT_EQ(with("\"BPE\"", "\"Unigram\""), "3 f: model 'Unigram' is not supported");
  EXPECT_EQ(with("\"type\":\"BPE\",", ""), "3 f: model of no type is not supported");
  EXPECT_EQ(with("\"dropout\":null", "\"dropout\":0.1"), "3 f: dropout of model 'BPE' is not supported");
  EXPECT_EQ(with("\"dropout\":null", "\"byte_fallback\":true"), "3 f: byte_fallback of model 'BPE' is not supported");
  EXPECT_EQ(with("prefix\":\"\"", "prefix\":\"@\""), "3 f: continuing_subword_prefix of model 'BPE' is not supported");
  EXPECT_EQ(with("\"dropout\":null", "\"end_of_word_suffix\":\"</w>\""),
            "3 f: end_of_word_suffix of model 'BPE' is not supported");
  EXPECT_EQ(with("\"ignore_merges\":false", "\"ignore_merges\":true"),
            "3 f: ignore_merges of model 'BPE' is not supported");
  EXPECT_EQ(with("\"normalizer\":null", R"("normalizer":{"type":"NFC"})"),
            "3 f: normalizer 'NFC' with model 'BPE' is not supported");
  EXPECT_EQ(with(cut, R"({"type":"Metaspace"})"), "3 f: pre-tokenizer 'Metaspace' is not supported");
  EXPECT_EQ(with(cut, "null"), "3 f: pre-tokenizer none is not supported");
  EXPECT_EQ(with("space\":false", "space\":true"),
            "3 f: pre-tokenizer 'ByteLevel' with add_prefix_space is not supported");
  EXPECT_EQ(with("regex\":true", "regex\":false"), "3 f: pre-tokenizer 'ByteLevel' without use_regex is not supported");
  EXPECT_EQ(with(cut, R"({"type":"Sequence","pretokenizers":[{"type":"Split"},)" + cut + "]}"),
            "3 f: pre-tokenizer 'Sequence' of 'Split', 'ByteLevel' is not supported");
  EXPECT_EQ(
      with(cut, R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":false},)" + cut + "]}"),
      "3 f: pre-tokenizer 'Digits' without individual_digits is not supported");
  const std::string digits = replaced(
      good, cut, R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)" + cut + "]}");
  EXPECT_EQ(read_tokenizer_json(digits, "f").pretokenizer, "digits-gpt2");
}

TEST(TokenizerJson, RefusesContradictions) {
  const std::string good = tokenizer_json(small_bpe());
  const auto with = [&](const std::string& old, const std::string& now) {
    return json_error(replaced(good, old, now));
  };
  EXPECT_EQ(json_error(""), "3 f: not JSON (at byte 1)");
  EXPECT_EQ(json_error("[]"), "3 f: not a tokenizer.json: no object 'model'");
  EXPECT_EQ(json_error("{\"model\":1e999}"), "3 f: holds a number that is too large");
  EXPECT_EQ(with("\"hell\": 258", "\"hell\": 300"), "3 f: no token has the id 258");
  EXPECT_EQ(with("\"hell\": 258", "\"hell\": 257"), "3 f: tokens 'hell' and 'll' have the same id, 257");
  EXPECT_EQ(with("\"hell\": 258", "\"hell\": -1"), "3 f: token 'hell' has the id -1");
  EXPECT_EQ(with("\"hell\": 258", "\"hell\": 1.5"), "3 f: the id of token 'hell' is no integer");
  EXPECT_EQ(with("\"hell\": 258", "\"a b\": 258"), "3 f: token 258, 'a b', is not in GPT-2's spelling of bytes");
  EXPECT_EQ(with("\"a\": 97", "\"aa\": 97"), "3 f: no token for the byte 0x61");
  EXPECT_EQ(with("[\"l\",\"l\"]", "[\"l\",\"lx\"]"), "3 f: merge 1: 'lx' is no token");
  EXPECT_EQ(with("[\"l\",\"l\"]", "[\"l\",\"x\"]"), "3 f: merge 1 makes no token out of 108 and 120");
  EXPECT_EQ(with("[\"l\",\"l\"]", "[\"l\"]"), "3 f: merge 1 is no pair of tokens");
  EXPECT_EQ(with("[\"l\",\"l\"]", "\"ll\""), "3 f: merge 1: expected two tokens with a blank between, found 'll'");
  EXPECT_EQ(with("[\"l\",\"l\"]", "\" l\""), "3 f: merge 1: expected two tokens with a blank between, found ' l'");
  EXPECT_EQ(with("[\"l\",\"l\"]", "\"l \""), "3 f: merge 1: '' is not in GPT-2's spelling of bytes");
  EXPECT_EQ(with("[\"l\",\"l\"]", "[\"h\",\"e\"]"), "3 f: merge 1 is merge 0 again");
  EXPECT_EQ(with("\"id\":260", "\"id\":261"), "3 f: added token '<|endoftext|>' has the id 261, but 260 in the model");
  EXPECT_EQ(with("\"special\":true", "\"special\":false"), "3 f: added token '<|endoftext|>' is not special");
  EXPECT_EQ(with(", \"<|endoftext|>\": 260", ""), "no error") << "special tokens may lie beyond the model's";
}

TEST(TokenizerJson, RefusesOtherWordpieceByName) {
  const auto with = [&](const std::string& old, const std::string& now) {
    return json_error(replaced(kWordpiece, old, now));
  };
  EXPECT_EQ(with("BertNormalizer", "Lowercase"), "3 f: normalizer 'Lowercase' with model 'WordPiece' is not supported");
  EXPECT_EQ(with("lowercase\":true", "lowercase\":false"),
            "3 f: normalizer 'BertNormalizer' without lowercase is not supported");
  EXPECT_EQ(with("accents\":null", "accents\":false"),
            "3 f: normalizer 'BertNormalizer' without strip_accents is not supported");
  EXPECT_EQ(with("accents\":null", "accents\":true"), "no error");
  EXPECT_EQ(with("clean_text\":true", "clean_text\":false"),
            "3 f: normalizer 'BertNormalizer' without clean_text is not supported");
  EXPECT_EQ(with("BertPreTokenizer", "Whitespace"),
            "3 f: pre-tokenizer 'Whitespace' with model 'WordPiece' is not supported");
  EXPECT_EQ(with("prefix\":\"##\"", "prefix\":\"@@\""),
            "3 f: continuing_subword_prefix of model 'WordPiece' is not '##'");
  EXPECT_EQ(with(":100", ":200"), "3 f: max_input_chars_per_word of model 'WordPiece' is not 100");
  EXPECT_EQ(with("unk_token\":\"[UNK]\"", "unk_token\":\"un\""), "3 f: the unk_token 'un' is no special token");
}

TEST(TokenizerJson, SpecialTokensKeepTheirRoles) {
  Vocabulary v = small_bpe();
  v.mask = v.add("<|mask|>", true);
  v.pad = v.add("<|pad|>", true);
  const std::string plain = write_tokenizer_json(v);
  EXPECT_EQ(plain.find("roles"), std::string::npos) << "the usual names say it";
  EXPECT_EQ(read_tokenizer_json(plain, "f").mask, v.mask);
  v.pad = v.eos;
  v.eos = v.add("line\n\"end\"", true);
  v.unk = -1;
  const Vocabulary again = read_tokenizer_json(write_tokenizer_json(v), "f");
  EXPECT_EQ(again.hash(), v.hash());
  EXPECT_EQ(again.eos, v.eos);
  v.eos = v.mask = v.pad = -1;
  EXPECT_EQ(read_tokenizer_json(write_tokenizer_json(v), "f").hash(), v.hash())
      << "no roles at all, in spite of the names";
  v.pretokenizer = "digits-gpt2";
  EXPECT_EQ(read_tokenizer_json(write_tokenizer_json(v), "f").hash(), v.hash());
}

TEST(TokenizerJson, WhatItCannotSayIsNotWritten) {
  const auto refusal = [](const Vocabulary& v) { return error_of([&] { write_tokenizer_json(v); }); };
  EXPECT_EQ(refusal(text8_vocabulary()),
            "2 vocabulary 'text8' is of model 'text8', which has no form as tokenizer.json");
  Vocabulary v = small_bpe();
  v.name = "v";
  v.eos = 'a';
  EXPECT_EQ(refusal(v), "2 vocabulary 'v' has no form as tokenizer.json: it reads back as another vocabulary");
  v = small_bpe();
  v.name = "v";
  v.add("\xff", true);
  EXPECT_EQ(refusal(v), "2 vocabulary 'v' has no form as tokenizer.json: a token is not UTF-8");
  v = small_bpe();
  v.name = "v";
  v.add("hello", true);
  EXPECT_EQ(refusal(v), "2 vocabulary 'v' has no form as tokenizer.json: tokenizer.json: no token has the id 259")
      << "an ordinary and a special token of one spelling";
  v = small_bpe();
  v.pretokenizer = "none";
  EXPECT_NE(refusal(v), "no error");
}

TEST(Gpt2Files, RefusesWhatTheyAreNot) {
  const Vocabulary v = small_bpe();
  const auto error = [&](const std::string& encoder, const std::string& merges) {
    return error_of([&] { read_gpt2_files(encoder, merges, "f"); });
  };
  EXPECT_EQ(error("{", ""), "3 f: the encoder is not JSON (at byte 2)");
  EXPECT_EQ(error("[1]", ""), "3 f: the encoder is no JSON object of tokens and ids");
  EXPECT_EQ(error("{\"a\":\"b\"}", ""), "3 f: the id of token 'a' is no integer");
  EXPECT_EQ(error("{\"a\":0}", ""), "3 f: no token for the byte 0x20");
  EXPECT_EQ(error("{}", ""), "3 f: the vocabulary has no tokens");
  EXPECT_EQ(error("{\"\xc3\xbf\xe2\x82\xac\":0}", ""),
            "3 f: token 0, '\xc3\xbf\xe2\x82\xac', is not in GPT-2's spelling of bytes");
  EXPECT_EQ(error(encoder_json(v), vocab_bpe(v) + "\n"), "no error");
  EXPECT_EQ(error(encoder_json(v), replaced(vocab_bpe(v), "l l\n", "l l\r\n")), "no error");
  EXPECT_EQ(error(encoder_json(v), vocab_bpe(v) + "#version\n"),
            "3 f: merge 4: expected two tokens with a blank between, found '#version'");
  EXPECT_EQ(error(encoder_json(v), vocab_bpe(v) + "h e l\n"),
            "3 f: merge 4: 'e l' is not in GPT-2's spelling of bytes");
}

TEST(Tiktoken, RefusesWhatItIsNot) {
  const std::string good = tiktoken(small_bpe());
  const auto error = [&](const std::string& text) { return error_of([&] { read_tiktoken(text, "f"); }); };
  EXPECT_EQ(error("!!!! 0\n"), "3 f: line 1: the token is not base64");
  EXPECT_EQ(error("IQ= 0\n"), "3 f: line 1: the token is not base64");
  EXPECT_EQ(error("IR== 0\n"), "3 f: line 1: the token is not base64") << "stray bits";
  EXPECT_EQ(error("I=== 0\n"), "3 f: line 1: the token is not base64");
  EXPECT_EQ(error("=Q== 0\n"), "3 f: line 1: the token is not base64");
  EXPECT_EQ(error(" 0\n"), "3 f: line 1: the token is not base64");
  EXPECT_EQ(error("IQ==\n"), "3 f: line 1: '' is no rank");
  EXPECT_EQ(error("IQ== 0x1\n"), "3 f: line 1: '0x1' is no rank");
  EXPECT_EQ(error("IQ== 99999999999999999999\n"), "3 f: line 1: '99999999999999999999' is no rank");
  EXPECT_EQ(error("IQ== 1\n"), "3 f: no token has the id 0");
  EXPECT_EQ(error(good + base64("xyz") + " 260\n"), "3 f: token 260, 'xyz', is not made of two tokens of lower rank");
  EXPECT_EQ(error(good + base64(std::string(1025, 'x')) + " 260\n"),
            "3 f: token 260 has 1025 bytes; at most 1024 are supported");
  EXPECT_EQ(error(good + base64("a") + " 260\n"), "3 f: tokens 97 and 260 have the same bytes");
  EXPECT_EQ(error("IQ== 0\n"), "3 f: no token for the byte 0x20");
}

TEST(VocabTxt, RefusesWhatItIsNot) {
  const auto error = [&](const std::string& text) { return error_of([&] { read_vocab_txt(text, "f"); }); };
  EXPECT_EQ(error("a\n"), "3 f: no line '[UNK]'");
  EXPECT_EQ(error("[UNK]\na\nb\na\n"), "3 f: line 4: token 'a' is on line 2 already");
  EXPECT_EQ(error("[UNK]\n\nb\n"), "3 f: line 2 is empty");
  EXPECT_EQ(error("[UNK]\n\xff\n"), "3 f: line 2 is not UTF-8");
}

}  // namespace
}  // namespace gdds::text
