// gdds-embed: a vector for each token, from a model's file or a corpus, or onto another vocabulary. See gdds-embed(1).
#include "base/log.h"
#include "cli/command.h"
#include "graph/embedding.h"
#include "text/readers.h"

namespace {

using namespace gdds;

void embed(cli::Command& cmd) {
  graph::EmbedOptions options;
  h5::OutputOptions output;
  cmd.positional("SOURCE", options.source,
                 "safetensors, GGUF, .npy or raw floats; embedding, model or tokens file, - for standard input");
  options.add_to(cmd);
  output.add_to(cmd);
  cmd.parse();
  options.validate();

  h5::Output sink(output, "embedding", cmd.invocation(), {});
  std::vector<h5::Source> sources;
  graph::Embedding embedding = graph::open_embedding(options, sources);
  if (!options.onto.empty())
    embedding =
        graph::carry_over(embedding, text::open_vocabulary(options.onto, sources), options.extra_rows, options.seed);
  if (options.normalise) graph::normalise(embedding);
  write(embedding, options.dtype, sink);
  for (const h5::Source& source : sources) sink.add_source(source);
  sink.commit();
  const auto sum = graph::summarise(embedding);
  log::info("{} rows of {}, {} of them from the source, mean norm {:.4g}", sum.rows, sum.columns, sum.present,
            sum.mean_norm);
}

}  // namespace

int main(int argc, char** argv) {
  const cli::About about = {
      "gdds-embed",
      "Write a vector for each token of a vocabulary",
      "The vectors come from a model's file (safetensors, GGUF, .npy, raw floats, a model or embedding file of this "
      "toolkit) or are made from a corpus in a tokens file, by positive pointwise mutual information and a singular "
      "value decomposition. --onto carries them over to another vocabulary.",
      {"gdds-embed --vocab vocab.bpe model.safetensors > gpt2.h5", "gdds-embed --onto vocab.h5 smollm2.gguf > emb.h5"},
      {h5::library_version()}};
  return cli::run(argc, argv, about, embed);
}
