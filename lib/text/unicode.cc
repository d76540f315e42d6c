// See unicode.h.
#include "text/unicode.h"

#include <array>
#include <atomic>

#include <utf8proc.h>

namespace gdds::text {
namespace {

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

Class classify(char32_t c) {
  if (is_white_space(c)) return Class::space;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return Class::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return Class::number;
    default: return Class::other;
  }
}

}  // namespace

std::array<std::atomic<const ClassPage*>, 0x1100> class_pages{};

// Filled once and kept for good; two threads may fill the same page, and one copy is thrown away.
const ClassPage& fill_class_page(std::size_t number) {
  auto* const page = new ClassPage;
  for (std::size_t i = 0; i < 256; ++i) (*page)[i] = classify(static_cast<char32_t>(number * 256 + i));
  const ClassPage* expected = nullptr;
  if (class_pages[number].compare_exchange_strong(expected, page, std::memory_order_acq_rel)) return *page;
  delete page;
  return *expected;
}

Decoded decode_any(const char* at, const char* end) {
  const auto* p = reinterpret_cast<const unsigned char*>(at);
  const auto left = end - at;
  const unsigned char lead = p[0];
  const auto follows = [&](int i) { return (p[i] & 0xc0) == 0x80; };
  if (lead >= 0xe0 && lead < 0xf0 && left >= 3 && follows(1) && follows(2)) {
    const auto code = static_cast<char32_t>((lead & 0x0fU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU));
    if (code >= 0x800 && (code < 0xd800 || code > 0xdfff)) return {code, 3};
  }
  if (lead >= 0xf0 && lead < 0xf5 && left >= 4 && follows(1) && follows(2) && follows(3)) {
    const auto code =
        static_cast<char32_t>((lead & 0x07U) << 18 | (p[1] & 0x3fU) << 12 | (p[2] & 0x3fU) << 6 | (p[3] & 0x3fU));
    if (code >= 0x10000 && code < 0x110000) return {code, 4};
  }
  return {kInvalid, 1};
}

void append_utf8(std::string& text, char32_t code) {
  const auto byte = [&](std::uint32_t b) { text += static_cast<char>(b); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f)), byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f));
  }
}

std::size_t last_character(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && (static_cast<unsigned char>(text[at - 1]) & 0xc0) == 0x80) --at;
  return at > 0 ? at - 1 : 0;
}

std::size_t find_invalid(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Decoded d = decode(p, end);
    if (d.code == kInvalid) return static_cast<std::size_t>(p - text.data());
    p += d.bytes;
  }
  return std::string_view::npos;
}

}  // namespace gdds::text
