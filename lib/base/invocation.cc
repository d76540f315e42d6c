// See invocation.h.
#include "base/invocation.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace gdds {

bool is_utf8(const std::string& text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = p + text.size();
  while (p < end) {
    const unsigned char lead = *p++;
    if (lead < 0x80) continue;
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || end - p < more) return false;
    std::uint32_t code = lead & (0x3fU >> more);
    for (int i = 0; i < more; ++i, ++p) {
      if ((*p & 0xc0) != 0x80) return false;
      code = code << 6 | (*p & 0x3fU);
    }
    const std::uint32_t least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  }
  return true;
}

std::string shell_quote(const std::string& word) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-+=:,./@%^", c); };
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (!word.empty() && word.find('\0') == std::string::npos && std::all_of(word.begin(), word.end(), plain)) return word;
  if (is_utf8(word) && std::none_of(word.begin(), word.end(), control)) {
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
  }
  std::string quoted = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20 || byte >= 0x7f) {
      quoted += fmt::format("\\{:03o}", byte);  // octal: always three digits, so a digit after it is safe
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace gdds
