// A vocabulary in memory and in HDF5, and the GGUF container that some come in: what encoders rely on is checked, and
// no number of a file is believed before the bytes are there.
#include <cstring>

#include <gtest/gtest.h>

#include "support/folder.h"
#include "text/gguf.h"
#include "text/readers.h"

namespace gdds::text {
namespace {

using test::error_of;
using test::Folder;

const Invocation kInvocation{"gdds-test", "1", {}, {}};

Vocabulary small_bpe() {
  Vocabulary v = bytes_vocabulary();
  v.name = "small";
  v.model = "bpe";
  v.add("ab", false);
  v.merges = {{'a', 'b'}};
  v.eos = v.add("<eos>", true);
  return v;
}

std::string check_error(const std::function<void(Vocabulary&)>& change) {
  Vocabulary v = small_bpe();
  change(v);
  return error_of([&] { check(v, "f"); });
}

TEST(Vocabulary, ChecksAllThatEncodersRelyOn) {
  using V = Vocabulary;
  EXPECT_EQ(check_error([](V&) {}), "no error");
  EXPECT_EQ(check_error([](V& v) { v.model = "bpf"; }), "3 f: unknown model 'bpf'");
  EXPECT_EQ(check_error([](V& v) { v.pretokenizer = ""; }), "3 f: unknown pretokenizer ''");
  EXPECT_EQ(check_error([](V& v) { v.normalizer = "nfc\n"; }), "3 f: unknown normalizer 'nfc\\x0a'");
  EXPECT_EQ(check_error([](V& v) { v.types.clear(); }), "3 f: the vocabulary has no tokens");
  EXPECT_EQ(check_error([](V& v) { v.offsets.pop_back(); }), "3 f: expected 259 offsets of tokens, found 258");
  EXPECT_EQ(check_error([](V& v) { v.offsets[0] = 1; }), "3 f: the first token begins at byte 1, not 0");
  EXPECT_EQ(check_error([](V& v) { v.offsets[5] = 3; }), "3 f: token 4 ends before it begins");
  EXPECT_EQ(check_error([](V& v) { v.offsets[258] = 300; }), "3 f: the last token ends at byte 300 of 263");
  EXPECT_EQ(check_error([](V& v) { v.offsets[4] = 5; }), "3 f: token 4 is empty");
  EXPECT_EQ(check_error([](V& v) { v.types[3] = 2; }), "3 f: token 3 is of type 2; expected 0 or 1");
  EXPECT_EQ(check_error([](V& v) { v.types[0x33] = 1; }), "3 f: no token for the byte 0x33");
  EXPECT_EQ(check_error([](V& v) { v.types[3] = 1, v.unk = 257; }), "no error") << "there is an unknown token";
  EXPECT_EQ(check_error([](V& v) { v.bytes[3] = 4; }), "3 f: tokens 3 and 4 have the same bytes");
  EXPECT_EQ(check_error([](V& v) { v.eos = 258; }), "3 f: eos is 258; expected -1 to 257");
  EXPECT_EQ(check_error([](V& v) { v.mask = -2; }), "3 f: mask is -2; expected -1 to 257");
  EXPECT_EQ(check_error([](V& v) { v.merges.push_back({0, 258}); }), "3 f: merge 1 has the id 258; expected 0 to 257");
  EXPECT_EQ(check_error([](V& v) { v.merges.push_back({-1, 0}); }), "3 f: merge 1 has the id -1; expected 0 to 257");
  EXPECT_EQ(check_error([](V& v) { v.merges.push_back({0, 1}); }), "3 f: merge 1 makes no token out of 0 and 1");
  EXPECT_EQ(check_error([](V& v) { v.merges.push_back({0, 257}); }), "3 f: merge 1 joins the special token 257");
  EXPECT_EQ(check_error([](V& v) { v.types[256] = 1; }), "3 f: merge 0 makes no token out of 97 and 98");
  EXPECT_EQ(check_error([](V& v) { v.model = "bytes"; }), "3 f: token 256 is not one byte");
  EXPECT_EQ(check_error([](V& v) { v.model = "characters"; }), "3 f: token 256 is not one character");
}

TEST(Vocabulary, HashIsOfEverythingButTheName) {
  const std::string hash = small_bpe().hash();
  const auto changed = [&](const std::function<void(Vocabulary&)>& change) {
    Vocabulary v = small_bpe();
    change(v);
    return v.hash() != hash;
  };
  using V = Vocabulary;
  EXPECT_FALSE(changed([](V& v) { v.name = "other"; }));
  EXPECT_TRUE(changed([](V& v) { v.model = "bytes"; }));
  EXPECT_TRUE(changed([](V& v) { v.pretokenizer = "gpt2"; }));
  EXPECT_TRUE(changed([](V& v) { v.normalizer = "bert"; }));
  EXPECT_TRUE(changed([](V& v) { v.add("x", false); }));
  EXPECT_TRUE(changed([](V& v) { ++v.offsets[4]; }));
  EXPECT_TRUE(changed([](V& v) { v.bytes[0] = 'x'; }));
  EXPECT_TRUE(changed([](V& v) { v.types[0] = 1; }));
  EXPECT_TRUE(changed([](V& v) { v.merges.clear(); }));
  for (auto id : {&V::eos, &V::mask, &V::pad, &V::unk}) EXPECT_TRUE(changed([&](V& v) { v.*id = 5; }));
  EXPECT_EQ(text8_vocabulary().hash(), "49664576c22edd0c4c92c06281833367")
      << "files are matched by it: it never changes";
  EXPECT_EQ(bytes_vocabulary().hash(), "7a91c673a90faf3e5493d3f71d5a71e9");
}

TEST(Vocabulary, TravelsThroughHdf5) {
  const Folder folder;
  for (const Vocabulary& v : {small_bpe(), text8_vocabulary(), bytes_vocabulary()}) {
    h5::Output output({folder.file("v.h5"), 0, false}, "vocab", kInvocation, {});
    write(v, output);
    output.commit();
    std::vector<h5::Source> sources;
    const Vocabulary read = open_vocabulary(folder.file("v.h5"), sources);
    EXPECT_EQ(read.name, v.name);
    EXPECT_EQ(read.hash(), v.hash());
    EXPECT_EQ(read.find("a"), v.find("a"));
    ASSERT_EQ(sources.size(), 1u);
    EXPECT_EQ(sources[0].digest, h5::Input(folder.file("v.h5"), "vocab").digest());
    EXPECT_NE(sources[0].history, "");
  }
}

TEST(Vocabulary, AFileWithTheNameAloneOrAnotherHashIsRefused) {
  const Folder folder;
  const std::string path = folder.file("t.h5");
  std::vector<h5::Source> sources;
  {
    h5::Output output({path, 0, false}, "tokens", kInvocation, {});
    write_name(text8_vocabulary(), output);
    output.write("/tokens", {1, 2}, std::span<const std::uint16_t>(std::vector<std::uint16_t>{1, 2}));
    output.commit();
  }
  EXPECT_EQ(error_of([&] { open_vocabulary(path, sources); }),
            "3 " + path + ": holds only the name of its vocabulary, text8, not the tokens");
  {
    h5::Output output({path, 0, false}, "vocab", kInvocation, {});
    write(text8_vocabulary(), output);
    output.attribute("/vocab@hash", std::string(32, '0'));
    output.commit();
  }
  EXPECT_EQ(error_of([&] { open_vocabulary(path, sources); }),
            "3 " + path + ": /vocab@hash is 00000000000000000000000000000000, but that of its tokens is " +
                text8_vocabulary().hash());
  EXPECT_TRUE(sources.empty());
}

// ---- GGUF ----------------------------------------------------------------------------------------------------------

template <typename T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string text(const std::string& bytes) { return raw<std::uint64_t>(bytes.size()) + bytes; }
std::string key(const std::string& name, std::uint32_t type, const std::string& value) {
  return text(name) + raw(type) + value;
}
std::string strings(const std::string& name, const std::vector<std::string>& values) {
  std::string bytes;
  for (const std::string& value : values) bytes += text(value);
  return key(name, 9, raw<std::uint32_t>(8) + raw<std::uint64_t>(values.size()) + bytes);
}
std::string integers(const std::string& name, const std::vector<std::int32_t>& values) {
  std::string bytes;
  for (const std::int32_t value : values) bytes += raw(value);
  return key(name, 9, raw<std::uint32_t>(5) + raw<std::uint64_t>(values.size()) + bytes);
}
std::string tensor(const std::string& name, const std::vector<std::uint64_t>& fastest_first, std::uint32_t kind,
                   std::uint64_t offset) {
  std::string bytes = text(name) + raw(static_cast<std::uint32_t>(fastest_first.size()));
  for (const std::uint64_t size : fastest_first) bytes += raw(size);
  return bytes + raw(kind) + raw(offset);
}
std::string gguf(const std::vector<std::string>& keys, const std::vector<std::string>& tensors = {},
                 std::uint32_t version = 3) {
  std::string bytes = "GGUF" + raw(version) + raw<std::uint64_t>(tensors.size()) + raw<std::uint64_t>(keys.size());
  for (const std::string& one : keys) bytes += one;
  for (const std::string& one : tensors) bytes += one;
  return bytes;
}
std::string gguf_error(const std::string& bytes) {
  return error_of([&] { parse_gguf(bytes, bytes.size() + 1000, "f"); });
}

TEST(Gguf, ReadsEveryTypeOfKeyAndTheTensors) {
  const std::string bytes = gguf(
      {key("a", 0, raw<std::uint8_t>(200)), key("b", 1, raw<std::int8_t>(-2)), key("c", 2, raw<std::uint16_t>(60000)),
       key("d", 3, raw<std::int16_t>(-300)), key("e", 4, raw<std::uint32_t>(4000000000)),
       key("f", 5, raw<std::int32_t>(-5)), key("g", 6, raw(0.5f)), key("h", 7, std::string(1, 1)),
       key("i", 8, text("word")), integers("j", {1, -2}), key("k", 10, raw(~std::uint64_t{0})),
       key("l", 11, raw<std::int64_t>(-7)), key("m", 12, raw(0.25)), strings("n", {"x", ""})},
      {tensor("w", {64, 3}, 3, 0), tensor("odd", {5}, 99, 32)}, 2);
  const Gguf g = parse_gguf(bytes, bytes.size() + 1000, "f");
  EXPECT_EQ(g.version, 2u);
  EXPECT_EQ(std::get<std::uint64_t>(g.values.at("a")), 200u);
  EXPECT_EQ(std::get<std::int64_t>(g.values.at("b")), -2);
  EXPECT_EQ(std::get<std::uint64_t>(g.values.at("c")), 60000u);
  EXPECT_EQ(std::get<std::int64_t>(g.values.at("d")), -300);
  EXPECT_EQ(std::get<std::uint64_t>(g.values.at("e")), 4000000000u);
  EXPECT_EQ(std::get<std::int64_t>(g.values.at("f")), -5);
  EXPECT_EQ(std::get<double>(g.values.at("g")), 0.5);
  EXPECT_EQ(std::get<bool>(g.values.at("h")), true);
  EXPECT_EQ(std::get<std::string_view>(g.values.at("i")), "word");
  EXPECT_EQ(gguf_integers(std::get<GgufArray>(g.values.at("j")), "f"), std::vector<std::int64_t>({1, -2}));
  EXPECT_EQ(std::get<std::uint64_t>(g.values.at("k")), ~std::uint64_t{0});
  EXPECT_EQ(std::get<std::int64_t>(g.values.at("l")), -7);
  EXPECT_EQ(std::get<double>(g.values.at("m")), 0.25);
  EXPECT_EQ(gguf_strings(std::get<GgufArray>(g.values.at("n")), "f"), std::vector<std::string_view>({"x", ""}));
  ASSERT_EQ(g.tensors.size(), 2u);
  EXPECT_EQ(g.tensors[0].shape, std::vector<std::uint64_t>({3, 64}));
  EXPECT_EQ(g.tensors[0].offset, (bytes.size() + 31) / 32 * 32);
  EXPECT_EQ(g.tensors[1].offset, g.tensors[0].offset + 32);
}

TEST(Gguf, EveryCutIsNoticed) {
  const std::string bytes = gguf({key("i", 8, text("word")), strings("n", {"x", ""})}, {tensor("w", {64, 3}, 3, 0)});
  EXPECT_EQ(gguf_error(bytes), "no error");
  for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_EQ(gguf_error(bytes.substr(0, n)).substr(0, 2), "3 ") << n;
}

TEST(Gguf, BelievesNoNumber) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  EXPECT_EQ(gguf_error("GGML"), "3 f: not a GGUF file");
  EXPECT_EQ(gguf_error(gguf({}, {}, 1)), "3 f: GGUF version 1; expected 2 or 3");
  EXPECT_EQ(gguf_error("GGUF" + raw<std::uint32_t>(3) + raw(kHuge)),
            "3 f: 18446744073709551615 tensors do not fit into the 0 bytes that follow");
  EXPECT_EQ(gguf_error("GGUF" + raw<std::uint32_t>(3) + raw<std::uint64_t>(0) + raw(kHuge)),
            "3 f: 18446744073709551615 keys do not fit into the 0 bytes that follow");
  EXPECT_EQ(gguf_error(gguf({raw(kHuge) + raw<std::uint64_t>(0)})),
            "3 f: cut off: 18446744073709551615 bytes wanted at byte 32, 8 are there");
  EXPECT_EQ(gguf_error(gguf({key("a", 9, raw<std::uint32_t>(10) + raw(kHuge))})),
            "3 f: 18446744073709551615 array elements do not fit into the 0 bytes that follow");
  EXPECT_EQ(gguf_error(gguf({key("a", 9, raw<std::uint32_t>(9) + raw<std::uint64_t>(0))})),
            "3 f: key 'a': arrays of arrays are not supported");
  EXPECT_EQ(gguf_error(gguf({key("a", 9, raw<std::uint32_t>(13) + raw<std::uint64_t>(0))})),
            "3 f: key 'a': unknown type 13");
  EXPECT_EQ(gguf_error(gguf({key("a", 13, "12345678")})), "3 f: key 'a': unknown type 13");
  EXPECT_EQ(gguf_error(gguf({key("a", 7, "1"), key("a", 7, "1")})), "3 f: key 'a' occurs twice");
  EXPECT_EQ(gguf_error(gguf({key("general.alignment", 4, raw<std::uint32_t>(48))})),
            "3 f: general.alignment is no power of two");
  EXPECT_EQ(gguf_error(gguf({key("general.alignment", 4, raw<std::uint32_t>(0))})),
            "3 f: general.alignment is no power of two");
  EXPECT_EQ(gguf_error(gguf({key("general.alignment", 10, raw(std::uint64_t{1} << 63))}, {tensor("w", {1}, 0, 0)})),
            "3 f: tensor 'w' lies outside the file");
  EXPECT_EQ(gguf_error(gguf({}, {tensor("w", {}, 0, 0) + raw(kHuge)})),
            "3 f: tensor 'w' has 0 dimensions; expected 1 to 4");
  EXPECT_EQ(gguf_error(gguf({}, {tensor("w", {1, 1, 1, 1, 1}, 0, 0)})),
            "3 f: tensor 'w' has 5 dimensions; expected 1 to 4");
  EXPECT_EQ(gguf_error(gguf({}, {tensor("w", {32, 0}, 0, 0)})), "3 f: tensor 'w' has a dimension of 0");
  EXPECT_EQ(gguf_error(gguf({}, {tensor("w", {33, 2}, 8, 0)})), "3 f: tensor 'w' has rows of 33; blocks take 32");
  EXPECT_EQ(gguf_error(gguf({}, {tensor("w", {1 << 20}, 0, 0)})), "3 f: tensor 'w' lies outside the file");
  EXPECT_EQ(gguf_error(gguf({}, {tensor("w", {kHuge, kHuge}, 0, 0)})), "3 f: tensor 'w' lies outside the file");
  EXPECT_EQ(gguf_error(gguf({}, {tensor("w", {1}, 99, kHuge)})), "3 f: tensor 'w' lies outside the file");
  EXPECT_EQ(gguf_error(gguf({}, {tensor("w", {1}, 0, 0), tensor("w", {1}, 0, 0)})), "3 f: tensor 'w' occurs twice");
}

TEST(Gguf, HoldsAVocabulary) {
  const std::string model = key("tokenizer.ggml.model", 8, text("gpt2")),
                    pre = key("tokenizer.ggml.pre", 8, text("smollm"));
  const std::string tokens = strings("tokenizer.ggml.tokens", {"<s>", "\u0120", "a", "\u0120a", "<|user|>"});
  const std::string types = integers("tokenizer.ggml.token_type", {3, 1, 1, 1, 4}),
                    merges = strings("tokenizer.ggml.merges", {"\u0120 a"});
  const std::string unk = key("tokenizer.ggml.unknown_token_id", 4, raw<std::uint32_t>(0));
  const auto read = [](const std::vector<std::string>& keys) {
    return read_gguf_vocabulary(gguf(keys), "dir/name.gguf");
  };
  const Vocabulary v =
      read({model, pre, tokens, types, merges, unk, key("tokenizer.ggml.eos_token_id", 4, raw<std::uint32_t>(4))});
  EXPECT_EQ(v.name + v.pretokenizer, "namedigits-gpt2");
  EXPECT_EQ(v.token(3), " a");
  EXPECT_EQ(v.types, std::vector<std::uint8_t>({1, 0, 0, 0, 1}));
  EXPECT_EQ(std::vector({v.eos, v.mask, v.pad, v.unk}), std::vector({4, -1, -1, 0}));
  EXPECT_EQ(read({model, tokens, types, merges, unk}).pretokenizer, "gpt2");
  const auto error = [&](const std::vector<std::string>& keys) { return error_of([&] { read(keys); }).substr(2); };
  EXPECT_EQ(error({}), "dir/name.gguf: holds no vocabulary (no key 'tokenizer.ggml.model')");
  EXPECT_EQ(error({key("tokenizer.ggml.model", 8, text("llama"))}), "dir/name.gguf: model 'llama' is not supported");
  EXPECT_EQ(error({key("tokenizer.ggml.model", 7, "1")}),
            "dir/name.gguf: key 'tokenizer.ggml.model' is of another type than expected");
  EXPECT_EQ(error({model, key("tokenizer.ggml.pre", 8, text("qwen2"))}),
            "dir/name.gguf: pre-tokenizer 'qwen2' is not supported");
  EXPECT_EQ(error({model}), "dir/name.gguf: no key 'tokenizer.ggml.tokens'");
  EXPECT_EQ(error({model, tokens, types}), "dir/name.gguf: no key 'tokenizer.ggml.merges'");
  EXPECT_EQ(error({model, tokens, integers("tokenizer.ggml.token_type", {1})}),
            "dir/name.gguf: 5 tokens, but 1 types of tokens");
  EXPECT_EQ(error({model, integers("tokenizer.ggml.tokens", {1})}),
            "dir/name.gguf: expected an array of strings, found one of type 5");
  EXPECT_EQ(error({model, tokens, types, merges}), "dir/name.gguf: no token for the byte 0x21");
  EXPECT_EQ(error({model, tokens, types, merges, key("tokenizer.ggml.unknown_token_id", 4, raw<std::uint32_t>(5))}),
            "dir/name.gguf: key 'tokenizer.ggml.unknown_token_id' is no id of a token");
  EXPECT_EQ(error({model, strings("tokenizer.ggml.tokens", {"a b"})}),
            "dir/name.gguf: token 0, 'a b', is not in GPT-2's spelling of bytes");
}

}  // namespace
}  // namespace gdds::text
