// gdds-copy: a tool of the tests alone. It reads a file (or a stream of batches) of any kind and writes it again, and so
// shows that the harness, the files and the frame around every tool work before there is a real tool.
#include <chrono>
#include <thread>

#include "base/progress.h"
#include "cli/command.h"
#include "h5/input.h"
#include "h5/output.h"

namespace {

const gdds::cli::About kAbout = {
    "gdds-copy",
    "Copy a file of any kind",
    "The contents are read and written again; the history grows by a line.",
    {"gdds-copy tokens.h5 > copy.h5", "gdds-copy --stream < batches.h5 | gdds-copy --stream -o again.h5"},
    {gdds::h5::library_version()}};

void copy(gdds::cli::Command& cmd) {
  std::string input = "-", kind;
  bool stream = false;
  double pause = 0;
  gdds::h5::OutputOptions options;
  cmd.positional("FILE.h5", input, "file to copy, - for standard input");
  cmd.option("kind", kind, "refuse any other kind").placeholder("KIND");
  cmd.option("stream", stream, "copy a stream of batches");
  cmd.option("pause", pause, "wait before the end").placeholder("SECONDS").range(0, 60).neutral();
  options.add_to(cmd);
  cmd.parse();

  if (stream) {
    gdds::h5::StreamReader reader(input, kind);
    auto batch = reader.next();
    gdds::h5::StreamWriter writer(options, batch->kind(), cmd.invocation(), {batch->source()});
    for (; batch; batch = reader.next()) {
      gdds::h5::Output sink = writer.batch();
      copy_contents(*batch, sink);
      sink.commit();
    }
    return writer.finish();
  }
  const gdds::h5::Input source(input, kind);
  gdds::h5::Output sink(options, source.kind(), cmd.invocation(), {source.source()});
  copy_contents(source, sink);
  gdds::Progress progress("waiting", static_cast<std::uint64_t>(pause * 20), "ticks");
  for (double waited = 0; waited < pause; waited += 0.05) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    progress.advance();
  }
  sink.commit();
}

}  // namespace

int main(int argc, char** argv) { return gdds::cli::run(argc, argv, kAbout, copy); }
