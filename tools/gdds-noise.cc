// gdds-noise: noised sequences, and the forward processes that noise them. See gdds-noise(1).
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "cli/command.h"
#include "cli/output.h"
#include "diffusion/display.h"
#include "diffusion/open.h"
#include "diffusion/snapshots.h"

namespace {

using namespace gdds;

// The vocabulary is that of the main input; where this is standard input, a file of the options may do as well.
std::unique_ptr<diffusion::Process> open_with_vocabulary(const diffusion::ProcessOptions& options, const std::string& input, std::vector<h5::Source>& sources) {
  const std::string named = options.file_with_vocabulary();
  const h5::Input source(input == "-" && !named.empty() ? named : input, "");
  const auto vocabulary = diffusion::vocabulary_name(source);
  if (source.kind() == "tokens" || source.kind() == "vocab") sources.push_back(source.source());
  return open_process(options, vocabulary, sources);
}

void noise(cli::Command& cmd) {
  std::string input = "-", text;
  bool describe = false;
  diffusion::ProcessOptions process_options;
  diffusion::NoiseOptions options;
  h5::OutputOptions output;
  cmd.positional("TOKENS.h5", input, "tokens file, - for standard input; with --show and --describe any file that has the vocabulary");
  process_options.add_to(cmd);
  options.add_to(cmd);
  cmd.option("show", text, "write how this text, or that of a file, decays over t, instead of a file").placeholder("TEXT|FILE");
  cmd.option("describe", describe, "write what there is to know about the process, instead of a file");
  output.add_to(cmd);
  cmd.parse();
  process_options.validate();
  options.validate(output.path);
  if (describe && !text.empty()) bad_usage("--describe: cannot go with --show");

  std::vector<h5::Source> sources;
  if (describe) return diffusion::describe(*open_with_vocabulary(process_options, input, sources), cli::write_text);
  const h5::Input tokens(input, text.empty() ? "tokens" : "");
  const text::Vocabulary vocabulary = text.empty() ? text::Vocabulary() : text::read_vocabulary(tokens);
  const auto process = open_process(process_options, diffusion::vocabulary_name(tokens), sources);
  if (!text.empty())
    return show_decay(diffusion::text_or_file(text), vocabulary, *process, options.snapshots.seed, isatty(STDOUT_FILENO) == 1, cli::write_text);

  sources.insert(sources.begin(), tokens.source());
  diffusion::NoiseSummary sum;
  if (options.batch_size > 0) {
    h5::StreamWriter stream(output, "snapshots", cmd.invocation(), sources);
    sum = noise_stream(tokens, *process, options, stream);
    stream.finish();
  } else {
    h5::Output sink(output, "snapshots", cmd.invocation(), sources);
    sum = noise_file(tokens, *process, options, sink);
    sink.commit();
  }
  log::info("{} sequences, {} tokens, {:.4g} % of them jumped", sum.sequences, sum.tokens, 100.0 * double(sum.jumped) / double(std::max<std::uint64_t>(1, sum.tokens)));
}

void process(cli::Command& cmd) {
  std::string input = "-";
  diffusion::ProcessOptions options;
  h5::OutputOptions output;
  cmd.positional("FILE.h5", input, "any file that has the vocabulary; not needed where an option names one");
  options.add_to(cmd);
  output.add_to(cmd);
  cmd.parse();
  options.validate();

  std::vector<h5::Source> sources;
  const auto process = open_with_vocabulary(options, input, sources);
  h5::Output sink(output, "process", cmd.invocation(), sources);
  write(*process, sink);
  sink.commit();
}

}  // namespace

int main(int argc, char** argv) {
  const cli::About about = {"gdds-noise",
                            "Noise sequences by a forward process",
                            "Every x_t is an exact draw. The result does not depend on threads, batch size, or file or pipe.",
                            {},
                            {h5::library_version()}};
  return cli::run(argc, argv, about,
                  {{"noise", "Noise the sequences of a tokens file: snapshots, each with a time", noise}, {"process", "Write a forward process as a file", process}});
}
