// Byte-level BPE in the forms that are lists: OpenAI's two files, tiktoken's ranks, and the arrays in a GGUF file. See
// readers.h.
#include <algorithm>
#include <charconv>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/assemble.h"
#include "text/gguf.h"
#include "text/readers.h"

namespace gdds::text {
namespace {

using Json = nlohmann::json;
constexpr std::string_view kEndOfText = "<|endoftext|>";

Vocabulary byte_level_bpe(const std::string& pretokenizer) {
  Vocabulary vocabulary;
  vocabulary.model = "bpe";
  vocabulary.pretokenizer = pretokenizer;
  return vocabulary;
}

std::vector<Listed> encoder_tokens(std::string_view text, const std::string& file) {
  std::vector<Listed> tokens;
  try {
    const Json json = Json::parse(text);
    if (!json.is_object()) reject("{}: the encoder is no JSON object of tokens and ids", file);
    for (const auto& [token, id] : json.items()) {
      if (!id.is_number_integer()) reject("{}: the id of token {} is no integer", file, in_quotes(token));
      if (token == kEndOfText) {
        tokens.push_back({id.get<std::int64_t>(), token, true});
      } else {
        tokens.push_back(listed_byte_level(id.get<std::int64_t>(), token, file));
      }
    }
  } catch (const Json::parse_error& error) {
    reject("{}: the encoder is not JSON (at byte {})", file, error.byte);
  } catch (const Json::exception&) {
    reject("{}: the encoder has a number that is too large", file);
  }
  return tokens;
}

// ---- tiktoken ------------------------------------------------------------------------------------------------------

// Strict: whole groups of four, padding only at the end, no stray bits.
bool decode_base64(std::string_view text, std::string& bytes) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  bytes.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text.substr(0, text.size() - padding)) {
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return false;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count);
    bits &= (1u << count) - 1;
  }
  return bits == 0;
}

Listed tiktoken_line(std::string_view line, std::size_t number, const std::string& file) {
  Listed token{0, {}, false};
  const std::size_t blank = std::min(line.find(' '), line.size());
  if (!decode_base64(line.substr(0, blank), token.bytes)) reject("{}: line {}: the token is not base64", file, number);
  const std::string_view rank = line.substr(std::min(blank + 1, line.size()));
  const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), token.id);
  if (rank.empty() || error != std::errc() || end != rank.data() + rank.size())
    reject("{}: line {}: {} is no rank", file, number, in_quotes(rank));
  return token;
}

using Ranks = std::unordered_map<std::string_view, std::int32_t>;

// BPE over the bytes of a token with the ranks below its own: where the parts that are left begin, and the end. Each
// part keeps the rank of itself joined with the next, so that a merge looks up two ranks only.
std::vector<std::size_t> parts_below(std::string_view token, std::int32_t own, const Ranks& ranks) {
  constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
  struct Part {
    std::size_t begin;
    std::int32_t rank;
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i <= token.size(); ++i) parts.push_back({i, kNone});
  const auto rank_at = [&](std::size_t i) {
    if (i + 2 >= parts.size()) return kNone;
    const auto found = ranks.find(token.substr(parts[i].begin, parts[i + 2].begin - parts[i].begin));
    return found != ranks.end() && found->second < own ? found->second : kNone;
  };
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].rank = rank_at(i);
  while (true) {
    const auto best = std::min_element(parts.begin(), parts.end(), [](auto& a, auto& b) { return a.rank < b.rank; });
    if (best->rank == kNone) break;
    const auto i = static_cast<std::size_t>(best - parts.begin());
    parts.erase(best + 1);
    parts[i].rank = rank_at(i);
    if (i > 0) parts[i - 1].rank = rank_at(i - 1);
  }
  std::vector<std::size_t> begins;
  for (const Part& part : parts) begins.push_back(part.begin);
  return begins;
}

// The merge that makes each token of two bytes or more, in the order of the ranks.
void find_merges(Vocabulary& vocabulary, const std::string& file) {
  constexpr std::size_t kLongest = 1024;  // the search is quadratic; GPT-2's longest token has 128 bytes
  Ranks ranks;
  ranks.reserve(vocabulary.types.size());
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) ranks.emplace(vocabulary.token(id), id);
  MergeReader merges(vocabulary, file);
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view token = vocabulary.token(id);
    if (token.size() < 2) continue;
    if (token.size() > kLongest)
      reject("{}: token {} has {} bytes; at most {} are supported", file, id, token.size(), kLongest);
    const auto begins = parts_below(token, id, ranks);
    if (begins.size() != 3)
      reject("{}: token {}, {}, is not made of two tokens of lower rank", file, id, in_quotes(to_byte_level(token)));
    merges.add_bytes(token.substr(0, begins[1]), token.substr(begins[1]));
  }
}

// The file does not say how text is cut; of the well-known ones with other patterns than GPT-2's we know the size.
void check_known_pattern(std::int32_t tokens, const std::string& file) {
  using Known = std::pair<std::int32_t, const char*>;
  for (const auto& [size, name] : {Known{100256, "cl100k_base"}, Known{128000, "Llama 3"}, Known{199998, "o200k_base"}})
    if (tokens == size) reject("{}: {} tokens: the pre-tokenizer of {} is not supported", file, tokens, name);
}

// ---- GGUF ----------------------------------------------------------------------------------------------------------

template <typename T>
const T* find_value(const Gguf& gguf, std::string_view key, const std::string& file) {
  const auto found = gguf.values.find(key);
  if (found == gguf.values.end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) reject("{}: key '{}' is of another type than expected", file, key);
  return value;
}

std::string gguf_pretokenizer(const Gguf& gguf, const std::string& file) {
  const auto* model = find_value<std::string_view>(gguf, "tokenizer.ggml.model", file);
  if (model == nullptr) reject("{}: holds no vocabulary (no key 'tokenizer.ggml.model')", file);
  if (*model != "gpt2") reject("{}: model {} is not supported", file, in_quotes(*model));
  const auto* pre = find_value<std::string_view>(gguf, "tokenizer.ggml.pre", file);
  if (pre == nullptr || *pre == "gpt-2" || *pre == "default") return "gpt2";
  if (*pre == "smollm") return "digits-gpt2";
  reject("{}: pre-tokenizer {} is not supported", file, in_quotes(*pre));
}

std::vector<Listed> gguf_tokens(const Gguf& gguf, const std::string& file) {
  const auto* tokens = find_value<GgufArray>(gguf, "tokenizer.ggml.tokens", file);
  if (tokens == nullptr) reject("{}: no key 'tokenizer.ggml.tokens'", file);
  const auto texts = gguf_strings(*tokens, file);
  std::vector<std::int64_t> types(texts.size(), 1);
  if (const auto* array = find_value<GgufArray>(gguf, "tokenizer.ggml.token_type", file))
    types = gguf_integers(*array, file);
  if (types.size() != texts.size()) reject("{}: {} tokens, but {} types of tokens", file, texts.size(), types.size());
  std::vector<Listed> listed;
  listed.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto id = static_cast<std::int64_t>(i);
    const bool special = types[i] == 3 || types[i] == 4;  // control, user defined: their texts are as they are
    listed.push_back(special ? Listed{id, std::string(texts[i]), true} : listed_byte_level(id, texts[i], file));
  }
  return listed;
}

std::int32_t gguf_id(const Gguf& gguf, std::string_view key, const Vocabulary& vocabulary, const std::string& file) {
  const auto found = gguf.values.find(key);
  if (found == gguf.values.end()) return -1;
  std::uint64_t id = std::numeric_limits<std::uint64_t>::max();
  if (const auto* value = std::get_if<std::uint64_t>(&found->second)) id = *value;
  if (const auto* value = std::get_if<std::int64_t>(&found->second)) id = static_cast<std::uint64_t>(*value);
  if (id >= static_cast<std::uint64_t>(vocabulary.size())) reject("{}: key '{}' is no id of a token", file, key);
  return static_cast<std::int32_t>(id);
}

}  // namespace

Vocabulary read_gpt2_files(std::string_view encoder_json, std::string_view vocab_bpe, const std::string& file) {
  Vocabulary vocabulary = byte_level_bpe("gpt2");
  add_tokens(vocabulary, encoder_tokens(encoder_json, file), file);
  vocabulary.eos = special_named(vocabulary, {kEndOfText});
  MergeReader merges(vocabulary, file);
  std::string_view line;
  // Only the first line may be a comment: "# #" is a merge.
  for (bool first = true; take_line(vocab_bpe, line); first = false) {
    if (line.empty() || (first && line.starts_with("#version"))) continue;
    merges.add_pair(line);
  }
  return finished(std::move(vocabulary), file);
}

Vocabulary read_tiktoken(std::string_view text, const std::string& file) {
  std::vector<Listed> tokens;
  std::string_view line;
  for (std::size_t number = 1; take_line(text, line); ++number)
    if (!line.empty()) tokens.push_back(tiktoken_line(line, number, file));
  Vocabulary vocabulary = byte_level_bpe("gpt2");
  add_tokens(vocabulary, std::move(tokens), file);
  check_known_pattern(vocabulary.size(), file);
  find_merges(vocabulary, file);
  vocabulary.eos = vocabulary.add(kEndOfText, true);
  return finished(std::move(vocabulary), file);
}

Vocabulary read_gguf_vocabulary(std::string_view gguf, const std::string& file) {
  const Gguf header = parse_gguf(gguf, gguf.size(), file);
  Vocabulary vocabulary = byte_level_bpe(gguf_pretokenizer(header, file));
  add_tokens(vocabulary, gguf_tokens(header, file), file);
  const auto* pairs = find_value<GgufArray>(header, "tokenizer.ggml.merges", file);
  if (pairs == nullptr) reject("{}: no key 'tokenizer.ggml.merges'", file);
  MergeReader merges(vocabulary, file);
  for (const std::string_view pair : gguf_strings(*pairs, file)) merges.add_pair(pair);
  vocabulary.eos = gguf_id(header, "tokenizer.ggml.eos_token_id", vocabulary, file);
  vocabulary.pad = gguf_id(header, "tokenizer.ggml.padding_token_id", vocabulary, file);
  vocabulary.unk = gguf_id(header, "tokenizer.ggml.unknown_token_id", vocabulary, file);
  return finished(std::move(vocabulary), file);
}

}  // namespace gdds::text
