// What the readers of foreign vocabularies share: from tokens and merges as a file lists them, in any order and spelled
// in its own way, to a checked Vocabulary. Private to lib/text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace gdds::text {

// GPT-2's spelling of bytes as printable characters, which JSON and lists with blanks between can hold: '!' to '~',
// 0xA1 to 0xAC and 0xAE to 0xFF are the characters of those numbers, the other bytes U+0100, U+0101 and so on.
std::string to_byte_level(std::string_view bytes);
bool from_byte_level(std::string_view text, std::string& bytes);  // false: some character is none of the 256

// A text of a foreign file in a message: in quotation marks, one line, not endless.
std::string in_quotes(std::string_view text);

// Takes the next line off the text, without its end (\n or \r\n); false when there is none.
bool take_line(std::string_view& text, std::string_view& line);

struct Listed {
  std::int64_t id;
  std::string bytes;
  bool special;
};
// A token in GPT-2's spelling; one that is not is rejected by its id.
Listed listed_byte_level(std::int64_t id, std::string_view text, const std::string& file);

// The tokens in the order of their ids, which have to be 0, 1, ... without gap or repetition.
void add_tokens(Vocabulary& vocabulary, std::vector<Listed> tokens, const std::string& file);

// Adds merges given by the texts of their halves. The vocabulary has all its tokens, and stays where it is.
class MergeReader {
 public:
  MergeReader(Vocabulary& vocabulary, const std::string& file);
  void add(std::string_view left, std::string_view right);  // in GPT-2's spelling
  void add_pair(std::string_view text);                     // "left right"
  void add_bytes(std::string_view left, std::string_view right);

 private:
  std::int32_t id_of(std::string_view bytes) const;

  Vocabulary& vocabulary_;
  const std::string& file_;
  std::unordered_map<std::string_view, std::int32_t> ids_;
};

// Sets eos, mask, pad and unk to the special tokens that bear the usual names.
void find_roles(Vocabulary& vocabulary);
// The special token of the first of these names that there is, or -1.
std::int32_t special_named(const Vocabulary& vocabulary, const std::vector<std::string_view>& names);

// Names the vocabulary after its file (GPT-2's after itself, however it came) and checks it.
Vocabulary finished(Vocabulary vocabulary, const std::string& file);

// Is this text, which begins as JSON, a tokenizer.json? Any other object is taken for an encoder.json, which may well
// have a token "model".
bool is_tokenizer_json(std::string_view json);

}  // namespace gdds::text
