// gdds-train: a network from tokens, or from noised snapshots in a pipe. See gdds-train(1).
#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "train/data.h"

namespace {

using namespace gdds;

void train_network(cli::Command& cmd) {
  std::string input = "-";
  train::TrainOptions options;
  diffusion::ProcessOptions process_options;
  h5::OutputOptions output;
  output.path = "model.h5";
  cmd.positional("TOKENS.h5", input, "tokens file, or a stream of snapshots; - for a stream on standard input");
  process_options.add_to(cmd);
  options.add_to(cmd);
  output.add_to(cmd);
  cmd.parse();
  options.validate();
  if (output.path.empty() || output.path == "-") bad_usage("--output: expected a file, since checkpoints are written on the way");

  train::Data data(input, process_options, options);
  const train::Run run = data.run([&](const std::string& suffix) {
    h5::OutputOptions to = output;
    to.path = train::with_suffix(output.path, suffix);
    Invocation invocation = cmd.invocation();
    invocation.needs_file = true;
    return h5::Output(to, "model", invocation, data.sources());
  });
  data.check_log({output.path, train::with_suffix(output.path, ".best")});
  { h5::Output probe = run.open(""); }  // cannot write: now, not after an hour
  const train::TrainSummary sum = train::train(run);
  if (sum.done == 0) log::warning("no step was done");
  else log::info("{} steps, loss {:.4f}{}", sum.steps, sum.loss, sum.best_validation > 0 ? fmt::format(", best validation {:.4f}", sum.best_validation) : "");
}

}  // namespace

int main(int argc, char** argv) {
  const cli::About about = {"gdds-train",
                            "Train a network to undo a forward process",
                            "The same command gives the same network on the same machine, and --resume goes on as if it had never stopped.",
                            {"gdds-train --process sik-knn --neighbours nbrs.h5 tokens.h5 -o model.h5", "gdds-noise --process p.h5 --batch-size 512 tokens.h5 | gdds-train --process p.h5 - -o model.h5"},
                            {h5::library_version(), train::torch_version()}};
  return cli::run(argc, argv, about, train_network);
}
