// Any bytes as text: the fast splitter gives the pieces of the pattern, and a cut changes nothing.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "text/splitter.h"

namespace {

using Ends = std::vector<std::size_t>;

Ends fast(std::string_view text, bool digits_apart, std::size_t offset = 0) {
  Ends ends;
  gdds::text::for_each_piece(text, digits_apart, [&](std::size_t, std::size_t end) { ends.push_back(offset + end); });
  return ends;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool digits_apart : {false, true}) {
    Ends expected;
    for (std::size_t at = 0; at < text.size(); expected.push_back(at)) at = gdds::text::piece_end(text, at, digits_apart);
    if (fast(text, digits_apart) != expected) std::abort();
    const std::size_t cut = gdds::text::last_piece_cut(text);
    Ends parts = fast(text.substr(0, cut), digits_apart);
    for (const std::size_t end : fast(text.substr(cut), digits_apart, cut)) parts.push_back(end);
    if (parts != expected) std::abort();
  }
  return 0;
}
