// Code points and the classes the tokenizers cut text by. ASCII comes from a table, the rest from utf8proc through pages
// of 256 code points that are filled on first use, so that a tool that sees only English pays nothing at its start.
#pragma once

#include <array>
#include <atomic>
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

// Pages of 256 code points; one that was not used yet is missing.
using ClassPage = std::array<Class, 256>;
extern std::array<std::atomic<const ClassPage*>, 0x1100> class_pages;
const ClassPage& fill_class_page(std::size_t number);

inline Class class_of(char32_t code) {
  if (code >= 0x110000) return Class::other;
  const ClassPage* const page = class_pages[code / 256].load(std::memory_order_acquire);
  return (page != nullptr ? *page : fill_class_page(code / 256))[code % 256];
}

constexpr char32_t kInvalid = 0xffffffff;

// One code point and how many bytes it takes; of bytes that are not UTF-8 it is {kInvalid, 1}.
struct Decoded {
  char32_t code;
  std::uint32_t bytes;
};
Decoded decode_any(const char* at, const char* end);
inline Decoded decode(const char* at, const char* end) {
  const auto* p = reinterpret_cast<const unsigned char*>(at);
  if (p[0] < 0x80) return {p[0], 1};
  // Two bytes, the commonest beyond ASCII, here; everything else elsewhere.
  if (p[0] >= 0xc2 && p[0] < 0xe0 && end - at >= 2 && (p[1] & 0xc0) == 0x80)
    return {static_cast<char32_t>((p[0] & 0x1fU) << 6 | (p[1] & 0x3fU)), 2};
  return decode_any(at, end);
}
void append_utf8(std::string& text, char32_t code);

// Where the last character begins, which the end of the text may have cut off.
std::size_t last_character(std::string_view text);

// The first byte that is not part of well-formed UTF-8, or npos.
std::size_t find_invalid(std::string_view text);

}  // namespace gdds::text
