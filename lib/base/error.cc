// See error.h.
#include "base/error.h"

#include <cstring>

namespace gdds {

void fail_errno(const std::string& object, const std::string& action, int error_number) {
  fail("{}: {}: {}", object, action, std::strerror(error_number));
}

std::string one_line(const std::string& text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace gdds
