// Networks in other people's files: safetensors (read and written) and GGUF (read), known by their first bytes. The parsers
// are lib/graph's; here their tensors become LibTorch's, in fp32, each checked for what it is supposed to be.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "graph/tensors.h"
#include "h5/history.h"
#include "h5/output.h"
#include "model/network.h"

namespace gdds::model {

class TensorFile {
 public:
  // A regular file. Status 3 where it is neither of the two, or not whole.
  explicit TensorFile(const std::string& path);

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return file_.bytes(); }
  bool is_gguf() const { return gguf_; }
  // What gdds-model export wrote beside the tensors: the network's config, or nothing.
  const std::string& network() const { return network_; }
  // For /history: the hash of its bytes.
  h5::Source source() const;

  bool has(const std::string& name) const { return tensors_.count(name) > 0; }
  std::vector<std::string> names() const;
  // Status 3 where there is none.
  const h5::Shape& shape(const std::string& name) const;
  // fp32 on the CPU. Status 3 for one that is missing, not of floats, or not finite; and, with a shape, of another one.
  at::Tensor read(const std::string& name) const;
  at::Tensor read(const std::string& name, const h5::Shape& expected) const;
  // The names that were not read so far.
  std::vector<std::string> unread() const;

 private:
  const graph::Tensor& find(const std::string& name) const;

  std::string path_;
  graph::MappedFile file_;
  bool gguf_ = false;
  std::string network_;
  std::map<std::string, graph::Tensor, std::less<>> tensors_;
  mutable std::set<std::string> read_;
};

// A safetensors file in fp32, in the order of the names, with the network's config in the metadata (gdds_network), since heads
// and length cannot be told from shapes; the same network gives the same bytes.
void write_safetensors(const Model& model, h5::TextOutput& output);

}  // namespace gdds::model
