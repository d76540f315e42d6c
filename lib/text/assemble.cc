// See assemble.h.
#include "text/assemble.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "text/unicode.h"

namespace gdds::text {
namespace {

struct ByteLevel {
  std::array<char32_t, 256> character{};
  std::array<std::int16_t, 512> byte{};  // of a character; -1: of none
};

const ByteLevel& byte_level() {
  static const ByteLevel table = [] {
    ByteLevel made;
    made.byte.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      made.character[byte] = printable ? static_cast<char32_t>(byte) : next++;
      made.byte[made.character[byte]] = static_cast<std::int16_t>(byte);
    }
    return made;
  }();
  return table;
}

}  // namespace

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_utf8(text, byte_level().character[static_cast<unsigned char>(byte)]);
  return text;
}

bool from_byte_level(std::string_view text, std::string& bytes) {
  bytes.clear();
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const Decoded decoded = decode(at, end);
    if (decoded.code >= byte_level().byte.size() || byte_level().byte[decoded.code] < 0) return false;
    bytes += static_cast<char>(byte_level().byte[decoded.code]);
    at += decoded.bytes;
  }
  return true;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 60;
  if (text.size() <= kShown) return "'" + one_line(std::string(text)) + "'";
  return "'" + one_line(std::string(text.substr(0, kShown))) + "...'";
}

bool take_line(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const std::size_t end = std::min(text.find('\n'), text.size());
  line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

Listed listed_byte_level(std::int64_t id, std::string_view text, const std::string& file) {
  Listed token{id, {}, false};
  if (!from_byte_level(text, token.bytes))
    reject("{}: token {}, {}, is not in GPT-2's spelling of bytes", file, id, in_quotes(text));
  return token;
}

void add_tokens(Vocabulary& vocabulary, std::vector<Listed> tokens, const std::string& file) {
  std::stable_sort(tokens.begin(), tokens.end(), [](const Listed& a, const Listed& b) { return a.id < b.id; });
  for (const Listed& token : tokens) {
    const std::int64_t expected = vocabulary.size();
    if (token.id < 0) reject("{}: token {} has the id {}", file, in_quotes(token.bytes), token.id);
    if (token.id < expected)
      reject("{}: tokens {} and {} have the same id, {}", file, in_quotes(vocabulary.token(vocabulary.size() - 1)),
             in_quotes(token.bytes), token.id);
    if (token.id > expected) reject("{}: no token has the id {}", file, expected);
    vocabulary.add(token.bytes, token.special);
  }
}

MergeReader::MergeReader(Vocabulary& vocabulary, const std::string& file) : vocabulary_(vocabulary), file_(file) {
  ids_.reserve(vocabulary.types.size());
  for (std::int32_t id = 0; id < vocabulary.size(); ++id)
    if (!vocabulary.is_special(id)) ids_.emplace(vocabulary.token(id), id);
}

std::int32_t MergeReader::id_of(std::string_view bytes) const {
  const auto found = ids_.find(bytes);
  if (found == ids_.end())
    reject("{}: merge {}: {} is no token", file_, vocabulary_.merges.size(), in_quotes(to_byte_level(bytes)));
  return found->second;
}

void MergeReader::add_bytes(std::string_view left, std::string_view right) {
  vocabulary_.merges.push_back({id_of(left), id_of(right)});
}

void MergeReader::add(std::string_view left, std::string_view right) {
  std::array<std::string, 2> bytes;
  for (const auto& [text, half] : {std::pair{left, &bytes[0]}, std::pair{right, &bytes[1]}})
    if (text.empty() || !from_byte_level(text, *half))
      reject("{}: merge {}: {} is not in GPT-2's spelling of bytes", file_, vocabulary_.merges.size(), in_quotes(text));
  add_bytes(bytes[0], bytes[1]);
}

void MergeReader::add_pair(std::string_view text) {
  const std::size_t blank = text.find(' ', 1);
  if (text.empty() || blank == std::string_view::npos)
    reject("{}: merge {}: expected two tokens with a blank between, found {}", file_, vocabulary_.merges.size(),
           in_quotes(text));
  add(text.substr(0, blank), text.substr(blank + 1));
}

std::int32_t special_named(const Vocabulary& vocabulary, const std::vector<std::string_view>& names) {
  for (const std::string_view name : names)
    for (std::int32_t id = 0; id < vocabulary.size(); ++id)
      if (vocabulary.is_special(id) && vocabulary.token(id) == name) return id;
  return -1;
}

void find_roles(Vocabulary& vocabulary) {
  if (vocabulary.model == "wordpiece") {
    vocabulary.eos = special_named(vocabulary, {"[SEP]"});
  } else {
    vocabulary.eos = special_named(vocabulary, {"<|endoftext|>", "</s>", "<|im_end|>"});
  }
  vocabulary.mask = special_named(vocabulary, {"[MASK]", "<|mask|>", "<mask>"});
  vocabulary.pad = special_named(vocabulary, {"[PAD]", "<|pad|>", "<pad>"});
  vocabulary.unk = special_named(vocabulary, {"[UNK]", "<unk>"});
}

Vocabulary finished(Vocabulary vocabulary, const std::string& file) {
  const bool is_gpt2 = vocabulary.model == "bpe" && vocabulary.pretokenizer == "gpt2" && vocabulary.size() == 50257 &&
                       vocabulary.merges.size() == 50000 && vocabulary.eos == 50256;
  vocabulary.name = is_gpt2 ? "gpt2" : std::filesystem::path(file).stem().string();
  check(vocabulary, file);
  return vocabulary;
}

}  // namespace gdds::text
