// Matrices in other people's files: safetensors, GGUF, NumPy's .npy, raw floats. A file is mapped, its header is read
// and every number of it is checked against the file before it is believed; rows become floats a block at a time. What
// is wrong with a file is status 3 and names it (all readers are fuzzed).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "h5/types.h"

namespace gdds::graph {

enum class Element { f32, f16, bf16, f64, q8_0, q4_0, q4_1, other };

struct Tensor {
  std::string name;
  h5::Shape shape;  // slowest first
  Element element = Element::other;
  std::string type;          // as the file calls it: "F32", "I64"
  std::uint64_t offset = 0;  // of its first byte in the file
};

// A regular file, mapped: what nobody looks at is never read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// All tensors lie inside the file and do not overlap; those of a type we do not read are listed all the same.
// `network`: what the metadata say under the name gdds_network, if anything.
std::vector<Tensor> parse_safetensors(std::string_view bytes, const std::string& file, std::string* network = nullptr);
std::vector<Tensor> parse_gguf_tensors(std::string_view bytes, const std::string& file);
// Versions 1 to 3; two dimensions, little-endian floats, C order.
Tensor parse_npy(std::string_view bytes, const std::string& file);
// Nothing but numbers, `columns` a row; type float32 or float16.
Tensor raw_tensor(std::uint64_t file_bytes, std::uint64_t columns, const std::string& type, const std::string& file);

// The tensor of that name or, if it is empty, the first of those that models call their token embedding. Status 3 where
// there is none (with the names of up to ten matrices), or where it is no matrix of floats.
const Tensor& choose_tensor(const std::vector<Tensor>& tensors, const std::string& wanted, const std::string& file);

// Rows first ... first+count-1 of a matrix, into exactly as many floats.
void read_tensor_rows(std::string_view bytes, const Tensor& tensor, std::uint64_t first, std::uint64_t count,
                      std::span<float> out);

}  // namespace gdds::graph
