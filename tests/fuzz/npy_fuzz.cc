// Any bytes as a .npy file, and as the tensors of a GGUF file: a matrix inside the file whose rows can be read, or
// status 3.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/tensors.h"

namespace {

using namespace gdds;

void read_all(std::string_view bytes, const graph::Tensor& tensor) {
  std::vector<float> row(tensor.shape[1]);
  for (std::uint64_t i = 0; i < tensor.shape[0]; ++i) graph::read_tensor_rows(bytes, tensor, i, 1, row);
}

void read_gguf(std::string_view bytes) {
  const auto tensors = graph::parse_gguf_tensors(bytes, "f");
  for (const graph::Tensor& tensor : tensors) read_all(bytes, graph::choose_tensor(tensors, tensor.name, "f"));
}

template <typename Action>
void or_rejected(Action action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.status() != Status::rejected) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("GGUF"))
    or_rejected([&] { read_gguf(bytes); });
  else
    or_rejected([&] { read_all(bytes, graph::parse_npy(bytes, "f")); });
  return 0;
}
