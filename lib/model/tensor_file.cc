// See tensor_file.h.
#include "model/tensor_file.h"

#include <torch/torch.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"

namespace gdds::model {
namespace {

std::string shown(std::string_view name) { return one_line(std::string(name.substr(0, 60))); }

}  // namespace

TensorFile::TensorFile(const std::string& path) : path_(path), file_(path), gguf_(file_.bytes().starts_with("GGUF")) {
  for (graph::Tensor& tensor : gguf_ ? graph::parse_gguf_tensors(bytes(), path) : graph::parse_safetensors(bytes(), path, &network_)) {
    const std::string name = tensor.name;
    tensors_.emplace(name, std::move(tensor));
  }
}

h5::Source TensorFile::source() const { return {path_, hash_hex(bytes()), ""}; }

std::vector<std::string> TensorFile::names() const {
  std::vector<std::string> all;
  for (const auto& [name, tensor] : tensors_) all.push_back(name);
  return all;
}

std::vector<std::string> TensorFile::unread() const {
  std::vector<std::string> all;
  for (const auto& [name, tensor] : tensors_)
    if (read_.count(name) == 0) all.push_back(name);
  return all;
}

const graph::Tensor& TensorFile::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) reject("{}: tensor '{}' is missing", path_, shown(name));
  return found->second;
}

const h5::Shape& TensorFile::shape(const std::string& name) const { return find(name).shape; }

at::Tensor TensorFile::read(const std::string& name) const {
  graph::Tensor tensor = find(name);
  read_.insert(name);
  if (tensor.element == graph::Element::other) reject("{}: tensor '{}' is of type {}; expected floats", path_, shown(name), shown(tensor.type));
  const at::Tensor value = at::empty(std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end()), at::kFloat);
  if (value.numel() == 0) return value;
  // Rows of the last dimension, whatever comes before it.
  const auto all = static_cast<std::uint64_t>(value.numel());
  const std::uint64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  tensor.shape = {all / columns, columns};
  graph::read_tensor_rows(bytes(), tensor, 0, all / columns, std::span(value.data_ptr<float>(), all));
  if (!at::isfinite(value).all().item<bool>()) reject("{}: tensor '{}' has a value that is not finite", path_, shown(name));
  return value;
}

at::Tensor TensorFile::read(const std::string& name, const h5::Shape& expected) const {
  if (shape(name) != expected) reject("{}: tensor '{}': expected {}, found {}", path_, shown(name), h5::shape_text(expected), h5::shape_text(shape(name)));
  return read(name);
}

void write_safetensors(const Model& model, h5::TextOutput& output) {
  std::vector<Parameter> sorted = model.parameters();
  std::sort(sorted.begin(), sorted.end(), [](const Parameter& a, const Parameter& b) { return a.name < b.name; });
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}, {"gdds_network", model.config().json()}}}};  // Python's loaders ask for the format
  std::uint64_t begin = 0;
  for (const Parameter& tensor : sorted) {
    const std::uint64_t end = begin + 4 * static_cast<std::uint64_t>(tensor.value.numel());
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.value.sizes().vec()}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // data aligned as the library writes them
  std::string size;
  for (int shift = 0; shift < 64; shift += 8) size += static_cast<char>(text.size() >> shift & 255);
  output.write(size);
  output.write(text);
  for (const Parameter& tensor : sorted) {
    const at::Tensor value = tensor.value.detach().to(at::kCPU, at::kFloat).contiguous();
    output.write({static_cast<const char*>(value.data_ptr()), value.nbytes()});
  }
}

}  // namespace gdds::model
