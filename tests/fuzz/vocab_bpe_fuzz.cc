// Any bytes as GPT-2's two files: up to the first zero byte the encoder, then the merges; and all of them as the merges
// of a good encoder. A vocabulary, or status 3.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/assemble.h"
#include "text/readers.h"

namespace {

// The 256 bytes and "ab", "abc".
std::string good_encoder() {
  std::string json;
  for (int byte = 0; byte < 256; ++byte) {
    std::string text = gdds::text::to_byte_level(std::string(1, static_cast<char>(byte)));
    if (text == "\"" || text == "\\") text = "\\" + text;
    json += "\"" + text + "\":" + std::to_string(byte) + ",";
  }
  return "{" + json + "\"ab\":256,\"abc\":257}";
}

bool accepts(std::string_view encoder, std::string_view merges) {
  try {
    gdds::text::check(gdds::text::read_gpt2_files(encoder, merges, "f"), "f");
    return true;
  } catch (const gdds::Error& error) {
    if (error.status() != gdds::Status::rejected) std::abort();
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string encoder = good_encoder();
  if (static const bool good = accepts(encoder, "#version: 0.2\na b\nab c\n"); !good) std::abort();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  accepts(encoder, bytes);
  const std::size_t zero = std::min(bytes.find('\0'), bytes.size());
  accepts(bytes.substr(0, zero), bytes.substr(std::min(zero + 1, bytes.size())));
  return 0;
}
