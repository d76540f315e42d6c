// Code points and the classes the tokenizers cut text by. ASCII comes from a table, the rest from utf8proc through pages
// of 256 code points that are filled on first use, so that a tool that sees only English pays nothing at its start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gdds::text {

enum class Class : std::uint8_t {
  letter,  // \p{L}
  number,  // \p{N}
  space,   // White_Space
  other,   // anything else, bytes that are not UTF-8 included
};

Class class_of(char32_t code);

constexpr char32_t kInvalid = 0xffffffff;

// One code point and how many bytes it takes; of bytes that are not UTF-8 it is {kInvalid, 1}.
struct Decoded {
  char32_t code;
  std::uint32_t bytes;
};
Decoded decode(const char* at, const char* end);
void append_utf8(std::string& text, char32_t code);

// Where the last character begins, which the end of the text may have cut off.
std::size_t last_character(std::string_view text);

// The first byte that is not part of well-formed UTF-8, or npos.
std::size_t find_invalid(std::string_view text);

}  // namespace gdds::text
