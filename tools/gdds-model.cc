// gdds-model: what a checkpoint is, and its way to and from the public DDiT code. See gdds-model(1).
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/output.h"
#include "model/checkpoint.h"
#include "model/describe.h"
#include "model/import.h"
#include "model/tensor_file.h"

namespace {

using namespace gdds;

void info(cli::Command& cmd) {
  std::string input = "-";
  bool json = false;
  cmd.positional("MODEL.h5", input, "model file, - for standard input");
  cmd.option("json", json, "write a JSON object instead of tab-separated values");
  cmd.parse();

  const h5::Input source(input, "model");
  cli::write_text(model::describe(model::read_checkpoint(source, {false, false, false}), source, json));
}

void export_network(cli::Command& cmd) {
  std::string input = "-", output = "-";
  model::WeightsOption weights;
  cmd.positional("MODEL.h5", input, "model file, - for standard input");
  weights.add_to(cmd);
  cmd.option("output,o", output, "safetensors file to write, - for standard output").placeholder("FILE").neutral();
  cmd.parse();
  if (output == "-" && isatty(STDOUT_FILENO) == 1) bad_usage("standard output is a terminal; name a file with --output, or redirect it");

  h5::TextOutput sink(output);
  const h5::Input source(input, "model");
  const auto network = model::make_model(model::read_checkpoint(source, {false, false, false}).config, 1);
  copy_into(weights.read(source), *network, source.name());
  write_safetensors(*network, sink);
  sink.commit();
}

void import_network(cli::Command& cmd) {
  std::string input;
  model::ImportOptions options;
  h5::OutputOptions output;
  cmd.positional("FILE.safetensors", input, "network of the public DDiT code");
  options.add_to(cmd);
  output.add_to(cmd);
  cmd.parse();
  options.validate();

  std::vector<h5::Source> sources;
  h5::Output sink(output, "model", cmd.invocation(), {});
  const model::Checkpoint checkpoint = model::import_checkpoint(input, options, sources);
  for (const h5::Source& source : sources) sink.add_source(source);
  write_checkpoint(checkpoint, sink);
  sink.commit();
  log::info("{}, {} x {} x {}, {} parameters", arch_name(checkpoint.config.arch), checkpoint.config.blocks, checkpoint.config.d, checkpoint.config.heads,
            checkpoint.config.parameters());
}

}  // namespace

int main(int argc, char** argv) {
  const cli::About about = {"gdds-model",
                            "Show, export and import networks",
                            "Public names and layout: those of the DDiT of MDLM, Duo and UDLM, as safetensors.",
                            {"gdds-model info model.h5", "gdds-model export model.h5 > model.safetensors",
                             "gdds-model import --vocab gpt2.h5 --process uniform duo.safetensors > duo.h5"},
                            {h5::library_version(), model::library_version()}};
  return cli::run(argc, argv, about,
                  {{"info", "Write what a model file holds", info},
                   {"export", "Write the network as safetensors, by its public names", export_network},
                   {"import", "Make a model file of a network of the public DDiT code", import_network}});
}
