// Text to ids. An encoder holds the tables of one vocabulary, shared between its copies, and a cache of its own, so each
// thread takes a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace gdds::text {

class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the ids of the text. What the vocabulary cannot say is Unencodable.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) = 0;
  // Where a long text may be cut so that its parts, encoded apart, give the same ids: the last such place in the text, 0
  // if there is none.
  virtual std::size_t last_cut(std::string_view text) const = 0;
  virtual std::unique_ptr<Encoder> copy() const = 0;
};

// Thrown by encode(): at which byte of the text, and what is wrong. The reader of the corpus knows where that is.
struct Unencodable {
  std::size_t at;
  std::string what;
};

std::unique_ptr<Encoder> make_encoder(const Vocabulary& vocabulary);

// By kind of vocabulary.
std::unique_ptr<Encoder> make_bpe_encoder(const Vocabulary& vocabulary);
std::unique_ptr<Encoder> make_wordpiece_encoder(const Vocabulary& vocabulary);
std::unique_ptr<Encoder> make_symbol_encoder(const Vocabulary& vocabulary);  // text8, bytes, characters

// Ids to text: bytes one after the other; of wordpiece, words with blanks between them. Special tokens as they are
// called, or not at all.
std::string decode_ids(const Vocabulary& vocabulary, const std::int32_t* ids, std::size_t count, bool show_special);

}  // namespace gdds::text
