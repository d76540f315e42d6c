// A vocabulary: the bytes of each token, how text is cut into tokens, and which tokens are special. It travels in the
// files that hold its ids (group /vocab of gdds-hdf5(5)) and is told apart from others by its hash.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h5/input.h"
#include "h5/output.h"

namespace gdds::text {

struct Vocabulary {
  std::string name;                   // for people; not part of the hash
  std::string model;                  // text8, bytes, characters, bpe, wordpiece
  std::string pretokenizer = "none";  // none, gpt2, digits-gpt2, bert
  std::string normalizer = "none";    // none, bert
  // Token i is bytes[offsets[i], offsets[i+1]). Of bpe these are raw bytes, of wordpiece a token inside a word has its ##.
  std::string bytes;
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::uint8_t> types;  // 1: special, never found in text
  std::vector<std::array<std::int32_t, 2>> merges;
  std::int32_t eos = -1, mask = -1, pad = -1, unk = -1;

  std::int32_t size() const { return static_cast<std::int32_t>(types.size()); }
  std::string_view token(std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(bytes).substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
  }
  bool is_special(std::int32_t id) const { return types[static_cast<std::size_t>(id)] != 0; }

  // Appends a token and returns its id.
  std::int32_t add(std::string_view token_bytes, bool special);
  // The first token with these bytes, or -1. Linear; encoders have tables of their own.
  std::int32_t find(std::string_view token_bytes) const;
  std::string hash() const;
};

// Status 3 (led by `name`, a file) if ids, merges or offsets contradict each other; all that encoders rely on.
void check(const Vocabulary& vocabulary, const std::string& name);

// The name alone (name, hash, size), for files that need no text; or all of it.
void write_name(const Vocabulary& vocabulary, h5::Output& output);
void write(const Vocabulary& vocabulary, h5::Output& output);
// From any file that carries the whole vocabulary; status 3 where it has only the name.
Vocabulary read_vocabulary(const h5::Input& input);

// The vocabularies that need no file.
Vocabulary text8_vocabulary();  // blank, a ... z: 27 tokens
Vocabulary bytes_vocabulary();  // 256 tokens

}  // namespace gdds::text
