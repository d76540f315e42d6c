// The container of GGUF files: typed keys and the list of tensors. Values stay in the file's bytes; arrays are read on
// demand. Every length is checked against the file before it is believed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gdds::text {

struct GgufArray {
  std::uint32_t type = 0;     // of the elements
  std::uint64_t count = 0;
  std::string_view elements;  // their bytes
};
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // row-major: slowest first, as in our files (GGUF itself says fastest first)
  std::uint32_t kind = 0;            // 0 F32, 1 F16, 2 Q4_0, 3 Q4_1, 8 Q8_0, 30 BF16
  std::uint64_t offset = 0;          // from the beginning of the file
};

struct Gguf {
  std::uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> values;
  std::vector<GgufTensor> tensors;
};

// Status 3, naming the file, for anything that is not a whole header. The views point into `bytes`. Tensor offsets are
// checked to lie inside `file_bytes`, which may be more than is in memory.
Gguf parse_gguf(std::string_view bytes, std::uint64_t file_bytes, const std::string& file);

std::vector<std::string_view> gguf_strings(const GgufArray& array, const std::string& file);
std::vector<std::int64_t> gguf_integers(const GgufArray& array, const std::string& file);

}  // namespace gdds::text
