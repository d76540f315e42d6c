// Any bytes as a GGUF file: header, arrays and vocabulary, or status 3. Tensors of a header that is read lie inside the
// file, whose size is more than what is in memory half of the time.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/gguf.h"
#include "text/readers.h"

namespace {

using namespace gdds;

void read_header(std::string_view bytes, std::uint64_t file_bytes) {
  const text::Gguf gguf = text::parse_gguf(bytes, file_bytes, "f");
  for (const text::GgufTensor& tensor : gguf.tensors)
    if (tensor.offset > file_bytes || tensor.shape.empty()) std::abort();
  for (const auto& [key, value] : gguf.values) {
    const auto* array = std::get_if<text::GgufArray>(&value);
    if (array == nullptr) continue;
    try {
      if (array->type == 8 && text::gguf_strings(*array, "f").size() != array->count) std::abort();
      if (array->type != 8 && text::gguf_integers(*array, "f").size() != array->count) std::abort();
    } catch (const Error& error) {
      if (error.status() != Status::rejected) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const std::uint64_t file_bytes : {std::uint64_t{size}, std::uint64_t{size} * 1000}) {
    try {
      read_header(bytes, file_bytes);
    } catch (const Error& error) {
      if (error.status() != Status::rejected) std::abort();
    }
  }
  try {
    text::check(text::read_gguf_vocabulary(bytes, "f"), "f");
  } catch (const Error& error) {
    if (error.status() != Status::rejected) std::abort();
  }
  return 0;
}
