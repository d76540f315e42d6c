// Any bytes as a tiktoken file, alone and after the 256 bytes that a vocabulary begins with (so that the search for
// merges is reached); and as a vocab.txt, the other form that is lines. A vocabulary, or status 3.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include "base/error.h"
#include "text/readers.h"

namespace {

std::string all_bytes() {
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (unsigned byte = 0; byte < 256; ++byte)
    text += {digits[byte >> 2], digits[(byte & 3) << 4], '=', '=', ' '}, text += std::to_string(byte) + "\n";
  return text;
}

void read(const std::function<gdds::text::Vocabulary()>& reader) {
  try {
    gdds::text::check(reader(), "f");
  } catch (const gdds::Error& error) {
    if (error.status() != gdds::Status::rejected) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string bytes = all_bytes();
  const std::string text(reinterpret_cast<const char*>(data), size);
  read([&] { return gdds::text::read_tiktoken(text, "f"); });
  read([&] { return gdds::text::read_tiktoken(bytes + text, "f"); });
  read([&] { return gdds::text::read_vocab_txt(text, "f"); });
  return 0;
}
