// judge-logits MODEL ID...: what a judge says after each of these tokens, as raw fp32 numbers on the standard output, a row a
// token: for tests that compare it with other implementations.
#include <torch/torch.h>

#include <cstdio>

#include "base/error.h"
#include "cli/command.h"
#include "model/judge.h"

namespace {

const gdds::cli::About kAbout = {"judge-logits", "Write the logits of a judge after each token, as raw numbers, for tests", "", {}, {}};

void judge_logits(gdds::cli::Command& cmd) {
  std::string model;
  std::vector<std::string> words;
  cmd.positional("MODEL", model, "safetensors of GPT-2, or GGUF");
  cmd.positionals("ID", words, "tokens");
  cmd.parse();

  std::vector<std::int64_t> ids;
  for (const std::string& word : words) ids.push_back(std::stoll(word));
  std::vector<gdds::h5::Source> sources;
  const auto judge = gdds::model::open_judge(model, "", sources);
  const at::Tensor logits = judge->logits(at::tensor(ids, at::kLong).unsqueeze(0)).contiguous();
  const auto count = static_cast<std::size_t>(logits.numel());
  if (std::fwrite(logits.const_data_ptr<float>(), sizeof(float), count, stdout) != count) gdds::reject("cannot write the logits");
}

}  // namespace

int main(int argc, char** argv) { return gdds::cli::run(argc, argv, kAbout, judge_logits); }
