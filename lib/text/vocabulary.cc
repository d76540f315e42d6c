// See vocabulary.h.
#include "text/vocabulary.h"

#include <algorithm>
#include <bitset>
#include <limits>
#include <span>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "text/unicode.h"

namespace gdds::text {
namespace {

using Words = std::vector<std::string_view>;
// The token of each byte string. A vocabulary has at most as many as int32 counts.
using Table = std::unordered_map<std::string_view, std::int32_t>;

void check_word(const std::string& word, const Words& known, const char* what, const std::string& name) {
  if (std::find(known.begin(), known.end(), word) == known.end())
    reject("{}: unknown {} '{}'", name, what, one_line(word));
}

void check_offsets(const Vocabulary& vocabulary, const std::string& name) {
  const auto& offsets = vocabulary.offsets;
  if (vocabulary.types.empty()) reject("{}: the vocabulary has no tokens", name);
  if (vocabulary.types.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    reject("{}: {} tokens are more than ids can count", name, vocabulary.types.size());
  if (offsets.size() != vocabulary.types.size() + 1)
    reject("{}: expected {} offsets of tokens, found {}", name, vocabulary.types.size() + 1, offsets.size());
  if (offsets.front() != 0) reject("{}: the first token begins at byte {}, not 0", name, offsets.front());
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] < offsets[i - 1]) reject("{}: token {} ends before it begins", name, i - 1);
  if (offsets.back() != static_cast<std::int64_t>(vocabulary.bytes.size()))
    reject("{}: the last token ends at byte {} of {}", name, offsets.back(), vocabulary.bytes.size());
}

void check_special_ids(const Vocabulary& vocabulary, const std::string& name) {
  for (const auto& [what, id] : {std::pair{"eos", vocabulary.eos}, std::pair{"mask", vocabulary.mask},
                                 std::pair{"pad", vocabulary.pad}, std::pair{"unk", vocabulary.unk}})
    if (id < -1 || id >= vocabulary.size())
      reject("{}: {} is {}; expected -1 to {}", name, what, id, vocabulary.size() - 1);
}

// What a token of the model may look like: single symbols where text is read symbol by symbol.
bool fits_model(const std::string& model, std::string_view token) {
  if (model == "text8" || model == "bytes") return token.size() == 1;
  if (model == "characters") return decode(token.data(), token.data() + token.size()).bytes == token.size();
  return true;
}

// Ordinary tokens by their bytes. Two with the same bytes would leave it open what a text is encoded as.
Table ordinary_tokens(const Vocabulary& vocabulary, const std::string& name) {
  Table table;
  table.reserve(vocabulary.types.size());
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::uint8_t type = vocabulary.types[static_cast<std::size_t>(id)];
    if (type > 1) reject("{}: token {} is of type {}; expected 0 or 1", name, id, type);
    if (type == 1) continue;
    const std::string_view token = vocabulary.token(id);
    if (token.empty()) reject("{}: token {} is empty", name, id);
    if (!fits_model(vocabulary.model, token))
      reject("{}: token {} is not one {}", name, id, vocabulary.model == "characters" ? "character" : "byte");
    const auto [known, fresh] = table.emplace(token, id);
    if (!fresh) reject("{}: tokens {} and {} have the same bytes", name, known->second, id);
  }
  return table;
}

// A byte-level vocabulary may lack bytes that hardly occur in text (SmolLM2 lacks 21), and its encoder rejects them where
// they do; one that cannot say plain ASCII, and has no unknown token for it, is none.
void check_plain_bytes(const Table& table, const std::string& name) {
  std::bitset<256> found;
  for (const auto& [token, id] : table)
    if (token.size() == 1) found.set(static_cast<unsigned char>(token[0]));
  for (std::size_t byte = 0x20; byte < 0x7f; ++byte)
    if (!found[byte]) reject("{}: no token for the byte 0x{:02x}", name, byte);
}

void check_merges(const Vocabulary& vocabulary, const Table& table, const std::string& name) {
  std::string joined;
  std::unordered_map<std::uint64_t, std::size_t> known;
  known.reserve(vocabulary.merges.size());
  for (std::size_t i = 0; i < vocabulary.merges.size(); ++i) {
    const auto [left, right] = vocabulary.merges[i];
    for (const std::int32_t id : {left, right})
      if (id < 0 || id >= vocabulary.size())
        reject("{}: merge {} has the id {}; expected 0 to {}", name, i, id, vocabulary.size() - 1);
    if (vocabulary.model != "bpe") continue;
    for (const std::int32_t id : {left, right})
      if (vocabulary.is_special(id)) reject("{}: merge {} joins the special token {}", name, i, id);
    joined.assign(vocabulary.token(left)).append(vocabulary.token(right));
    if (!table.contains(joined)) reject("{}: merge {} makes no token out of {} and {}", name, i, left, right);
    const std::uint64_t pair = (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
    const auto [first, fresh] = known.emplace(pair, i);
    if (!fresh) reject("{}: merge {} is merge {} again", name, i, first->second);
  }
}

std::int32_t id_attribute(const h5::Input& input, const std::string& path) {
  const std::int64_t id = input.integer_attribute(path);
  if (id < -1 || id > std::numeric_limits<std::int32_t>::max()) reject("{}: {}: {} is no id", input.name(), path, id);
  return static_cast<std::int32_t>(id);
}

}  // namespace

std::int32_t Vocabulary::add(std::string_view token_bytes, bool special) {
  bytes += token_bytes;
  offsets.push_back(static_cast<std::int64_t>(bytes.size()));
  types.push_back(special ? 1 : 0);
  return size() - 1;
}

std::int32_t Vocabulary::find(std::string_view token_bytes) const {
  for (std::int32_t id = 0; id < size(); ++id)
    if (token(id) == token_bytes) return id;
  return -1;
}

// Numbers as decimal texts: the hash is easy to compute in any language, and does not depend on the width of an id.
std::string Vocabulary::hash() const {
  Hash hash;
  hash.update_field(model);
  hash.update_field(pretokenizer);
  hash.update_field(normalizer);
  hash.update_field(std::to_string(size()));
  for (std::int32_t id = 0; id < size(); ++id) {
    hash.update_field(token(id));
    hash.update(&types[static_cast<std::size_t>(id)], 1);
  }
  std::string pairs;
  pairs.reserve(8 * merges.size());
  for (const auto& merge : merges)
    for (const std::int32_t id : merge)
      for (int shift = 0; shift < 32; shift += 8) pairs += static_cast<char>(static_cast<std::uint32_t>(id) >> shift);
  hash.update_field(pairs);
  for (const std::int32_t id : {eos, mask, pad, unk}) hash.update_field(std::to_string(id));
  return hash.hex();
}

void check(const Vocabulary& vocabulary, const std::string& name) {
  check_word(vocabulary.model, {"text8", "bytes", "characters", "bpe", "wordpiece"}, "model", name);
  check_word(vocabulary.pretokenizer, {"none", "gpt2", "digits-gpt2", "bert"}, "pretokenizer", name);
  check_word(vocabulary.normalizer, {"none", "bert"}, "normalizer", name);
  check_offsets(vocabulary, name);
  check_special_ids(vocabulary, name);
  const Table table = ordinary_tokens(vocabulary, name);
  if (vocabulary.model == "bpe" && vocabulary.unk < 0) check_plain_bytes(table, name);
  check_merges(vocabulary, table, name);
}

void write_name(const Vocabulary& vocabulary, h5::Output& output) {
  output.attribute("/vocab@name", vocabulary.name);
  output.attribute("/vocab@hash", vocabulary.hash());
  output.attribute("/vocab@size", std::int64_t{vocabulary.size()});
}

void write(const Vocabulary& vocabulary, h5::Output& output) {
  write_name(vocabulary, output);
  output.attribute("/vocab@model", vocabulary.model);
  output.attribute("/vocab@pretokenizer", vocabulary.pretokenizer);
  output.attribute("/vocab@normalizer", vocabulary.normalizer);
  output.attribute("/vocab@eos", std::int64_t{vocabulary.eos});
  output.attribute("/vocab@mask", std::int64_t{vocabulary.mask});
  output.attribute("/vocab@pad", std::int64_t{vocabulary.pad});
  output.attribute("/vocab@unk", std::int64_t{vocabulary.unk});
  output.write("/vocab/bytes", std::vector<std::uint8_t>(vocabulary.bytes.begin(), vocabulary.bytes.end()));
  output.write("/vocab/offsets", vocabulary.offsets);
  output.write("/vocab/types", vocabulary.types);
  if (vocabulary.merges.empty()) return;
  std::vector<std::int32_t> ids;
  ids.reserve(2 * vocabulary.merges.size());
  for (const auto& merge : vocabulary.merges) ids.insert(ids.end(), merge.begin(), merge.end());
  output.write("/vocab/merges", {vocabulary.merges.size(), 2}, std::span<const std::int32_t>(ids));
}

Vocabulary read_vocabulary(const h5::Input& input) {
  if (!input.has("/vocab/bytes"))
    reject("{}: holds only the name of its vocabulary, {}, not the tokens", input.name(),
           one_line(input.string_attribute("/vocab@name")));
  Vocabulary vocabulary;
  vocabulary.name = input.string_attribute("/vocab@name");
  vocabulary.model = input.string_attribute("/vocab@model");
  vocabulary.pretokenizer = input.string_attribute("/vocab@pretokenizer");
  vocabulary.normalizer = input.string_attribute("/vocab@normalizer");
  vocabulary.eos = id_attribute(input, "/vocab@eos");
  vocabulary.mask = id_attribute(input, "/vocab@mask");
  vocabulary.pad = id_attribute(input, "/vocab@pad");
  vocabulary.unk = id_attribute(input, "/vocab@unk");
  const auto bytes = input.read<std::uint8_t>("/vocab/bytes");
  vocabulary.bytes.assign(bytes.begin(), bytes.end());
  vocabulary.offsets = input.read<std::int64_t>("/vocab/offsets");
  vocabulary.types = input.read<std::uint8_t>("/vocab/types");
  if (input.has("/vocab/merges")) {
    const auto ids = input.read<std::int32_t>("/vocab/merges");
    for (std::size_t i = 0; i + 1 < ids.size(); i += 2) vocabulary.merges.push_back({ids[i], ids[i + 1]});
  }
  check(vocabulary, input.name());
  // Files are matched by the hash they state, so it has to be that of the tokens they hold.
  if (const std::string stated = input.string_attribute("/vocab@hash"); stated != vocabulary.hash())
    reject("{}: /vocab@hash is {}, but that of its tokens is {}", input.name(), one_line(stated), vocabulary.hash());
  return vocabulary;
}

Vocabulary text8_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.name = vocabulary.model = "text8";
  vocabulary.add(" ", false);
  for (char letter = 'a'; letter <= 'z'; ++letter) vocabulary.add({&letter, 1}, false);
  return vocabulary;
}

Vocabulary bytes_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.name = vocabulary.model = "bytes";
  for (int byte = 0; byte < 256; ++byte) vocabulary.add(std::string(1, static_cast<char>(byte)), false);
  return vocabulary;
}

}  // namespace gdds::text
