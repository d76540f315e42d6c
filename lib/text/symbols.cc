// Vocabularies of single symbols (text8, bytes, characters), which encoder belongs to which vocabulary, and ids to text.
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "text/encoder.h"
#include "text/unicode.h"

namespace gdds::text {
namespace {

struct SymbolTable {
  std::array<std::int32_t, 256> of_byte;
  std::unordered_map<char32_t, std::int32_t> of_code;  // beyond ASCII
  bool bytes;
};

class SymbolEncoder final : public Encoder {
 public:
  explicit SymbolEncoder(std::shared_ptr<const SymbolTable> table) : table_(std::move(table)) {}

  void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
    const std::size_t before = ids.size();
    ids.resize(before + text.size());
    std::size_t used = before;
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
      const auto byte = static_cast<unsigned char>(*p);
      std::uint32_t bytes = 1;
      std::int32_t id = table_->of_byte[byte];
      if (byte >= 0x80 && !table_->bytes) id = beyond_ascii(text, p, bytes);
      if (id < 0) {
        ids.resize(before);
        throw Unencodable{static_cast<std::size_t>(p - text.data()), fmt::format("the vocabulary has no {}", shown(p, bytes))};
      }
      ids[used++] = id;
      p += bytes;
    }
    ids.resize(used);
  }

  std::size_t last_cut(std::string_view text) const override { return table_->bytes ? text.size() : last_character(text); }

  std::unique_ptr<Encoder> copy() const override { return std::make_unique<SymbolEncoder>(table_); }

 private:
  std::int32_t beyond_ascii(std::string_view text, const char* p, std::uint32_t& bytes) const {
    const Decoded d = decode(p, text.data() + text.size());
    if (d.code == kInvalid) throw Unencodable{static_cast<std::size_t>(p - text.data()), "not UTF-8"};
    bytes = d.bytes;
    const auto found = table_->of_code.find(d.code);
    return found == table_->of_code.end() ? -1 : found->second;
  }
  static std::string shown(const char* p, std::uint32_t bytes) {
    const auto byte = static_cast<unsigned char>(*p);
    if (bytes == 1 && (byte <= 0x20 || byte >= 0x7f)) return fmt::format("byte 0x{:02x}", byte);
    return fmt::format("'{}'", std::string_view(p, bytes));
  }

  std::shared_ptr<const SymbolTable> table_;
};

std::string decode_wordpiece(const Vocabulary& v, const std::int32_t* ids, std::size_t count, bool show_special) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    if (v.is_special(ids[i]) && !show_special) continue;
    const std::string_view token = v.token(ids[i]);
    const bool inside = token.size() > 2 && token.starts_with("##") && !v.is_special(ids[i]);
    if (!inside && !text.empty()) text += ' ';
    text += inside ? token.substr(2) : token;
  }
  return text;
}

}  // namespace

std::unique_ptr<Encoder> make_symbol_encoder(const Vocabulary& vocabulary) {
  auto table = std::make_shared<SymbolTable>();
  table->of_byte.fill(-1);
  table->bytes = vocabulary.model == "bytes";
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view token = vocabulary.token(id);
    if (vocabulary.is_special(id) || token.empty()) continue;
    const Decoded d = decode(token.data(), token.data() + token.size());
    if (token.size() == 1) table->of_byte[static_cast<unsigned char>(token[0])] = id;
    else if (d.bytes == token.size()) table->of_code[d.code] = id;
  }
  return std::make_unique<SymbolEncoder>(std::move(table));
}

std::unique_ptr<Encoder> make_encoder(const Vocabulary& vocabulary) {
  if (vocabulary.model == "bpe") return make_bpe_encoder(vocabulary);
  if (vocabulary.model == "wordpiece") return make_wordpiece_encoder(vocabulary);
  return make_symbol_encoder(vocabulary);
}

std::string decode_ids(const Vocabulary& vocabulary, const std::int32_t* ids, std::size_t count, bool show_special) {
  if (vocabulary.model == "wordpiece") return decode_wordpiece(vocabulary, ids, count, show_special);
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    if (show_special || !vocabulary.is_special(ids[i])) text += vocabulary.token(ids[i]);
  return text;
}

}  // namespace gdds::text
