// make-sample KIND: a small valid file of that kind, for the tests of the tools.
#include "cli/command.h"
#include "h5/output.h"
#include "support/sample.h"

namespace {

const gdds::cli::About kAbout = {"make-sample", "Write a small valid file of a kind, for tests", "", {}, {}};

void make_sample(gdds::cli::Command& cmd) {
  std::string kind;
  std::uint64_t n = 5, variant = 0, batches = 0;
  gdds::h5::OutputOptions options;
  cmd.positional("KIND", kind, "kind of the file");
  cmd.option("sequences", n, "number of sequences");
  cmd.option("variant", variant, "other numbers make other values");
  cmd.option("batches", batches, "write a stream of as many, each of the next variant");
  options.add_to(cmd);
  cmd.parse();

  if (batches == 0) {
    gdds::h5::Output sink(options, kind, cmd.invocation(), {});
    gdds::test::write_sample(sink, kind, n, variant);
    return sink.commit();
  }
  gdds::h5::StreamWriter stream(options, kind, cmd.invocation(), {});
  for (std::uint64_t i = 0; i < batches; ++i) {
    gdds::h5::Output batch = stream.batch();
    gdds::test::write_sample(batch, kind, n, variant + i);
    batch.commit();
  }
  stream.finish();
}

}  // namespace

int main(int argc, char** argv) { return gdds::cli::run(argc, argv, kAbout, make_sample); }
