// Any bytes as a safetensors file: tensors that lie inside it and whose rows can be read, or status 3.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/tensors.h"

namespace {

using namespace gdds;

// The first and the last row; all of it could be more columns than memory is worth only if the file were as large.
void read_ends(std::string_view bytes, const graph::Tensor& tensor) {
  std::vector<float> row(tensor.shape[1]);
  for (const std::uint64_t i : {std::uint64_t{0}, tensor.shape[0] - 1})
    graph::read_tensor_rows(bytes, tensor, i, 1, row);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto tensors = graph::parse_safetensors(bytes, "f");
    for (const graph::Tensor& tensor : tensors) {
      if (tensor.offset > size) std::abort();
      try {
        read_ends(bytes, graph::choose_tensor(tensors, tensor.name, "f"));
      } catch (const Error& error) {
        if (error.status() != Status::rejected) std::abort();
      }
    }
  } catch (const Error& error) {
    if (error.status() != Status::rejected) std::abort();
  }
  return 0;
}
