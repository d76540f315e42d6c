// Judges: other people's autoregressive language models, which say how likely a text is. GPT-2 in its four sizes from
// safetensors, and models of the Llama architecture from GGUF. INTEROP says how their files are laid out. LibTorch's full
// header is not needed here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/options.h"
#include "h5/history.h"
#include "text/vocabulary.h"

namespace gdds::model {

struct JudgeShape {
  std::string arch;  // "gpt2", "llama"
  std::int64_t tokens = 0, d = 0, blocks = 0, heads = 0, key_heads = 0;
  std::int64_t context = 0;  // longest sequence
};

class Judge {
 public:
  virtual ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  const JudgeShape& shape() const { return shape_; }
  std::int64_t context() const { return shape_.context; }
  // The model's own tokens, where they are known.
  const std::optional<text::Vocabulary>& vocabulary() const { return vocabulary_; }

  // ids [B, L] int64, below `tokens`, L at most the context; on the judge's device. Logits [B, L, V] in fp32: position l is
  // for the token l+1 and has seen ids 0..l. No gradients.
  at::Tensor logits(const at::Tensor& ids) const;
  // log p(ids[l+1] | ids[0..l]), [B, L-1] in fp32, a few rows of logits at a time.
  at::Tensor log_likelihoods(const at::Tensor& ids) const;

  virtual void to(at::Device device) = 0;

 protected:
  explicit Judge(JudgeShape shape) : shape_(std::move(shape)) {}
  virtual at::Tensor features(const at::Tensor& ids) const = 0;            // [B, L, d]
  virtual at::Tensor readout(const at::Tensor& features) const = 0;       // [..., d] -> [..., V]

 private:
  friend std::unique_ptr<Judge> open_judge(const std::string& path, const std::string& vocabulary, std::vector<h5::Source>& sources);
  JudgeShape shape_;
  std::optional<text::Vocabulary> vocabulary_;
};

// The file says by its first bytes what it is. The vocabulary, in any form open_vocabulary() knows, may be empty: then it is
// that of the GGUF file, or unknown. Status 3, naming file and tensor, where something is missing, left over, of another
// shape or not finite, or where a vocabulary has another number of tokens. What was read is added to `sources`.
std::unique_ptr<Judge> open_judge(const std::string& path, const std::string& vocabulary, std::vector<h5::Source>& sources);

}  // namespace gdds::model
