// gdds-knn: the exact nearest neighbours of every token. See gdds-knn(1).
#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/output.h"
#include "graph/neighbours.h"
#include "h5/output.h"

namespace {

using namespace gdds;

void knn(cli::Command& cmd) {
  std::string input = "-";
  std::vector<std::string> words;
  graph::KnnOptions options;
  h5::OutputOptions output;
  cmd.positional("EMBEDDING.h5", input, "embedding file, - for standard input");
  options.add_to(cmd);
  cmd.option("show", words, "write the neighbours of this word as text, by d, instead of a file");
  output.add_to(cmd);
  cmd.parse();

  const h5::Input source(input, "embedding");
  const h5::Matrix matrix = source.matrix("/embedding");
  const graph::Points points{matrix.values.data(), static_cast<std::int64_t>(matrix.rows), static_cast<std::int64_t>(matrix.columns)};
  options.validate(points.m);
  check_finite(points, source.name());
  if (!words.empty()) return show_neighbours(source, points, words, options, [](const std::string& text) { cli::write_text(text); });

  h5::Output sink(output, "neighbours", cmd.invocation(), {source.source()});
  const graph::Neighbours neighbours = find_neighbours(points, options);
  write(neighbours, source, options, sink);
  sink.commit();
  log::info("{} tokens, {} neighbours each, {} rows computed again; {}", points.m, options.k, neighbours.recomputed,
            describe_perplexities(neighbours, options));
}

}  // namespace

int main(int argc, char** argv) {
  const cli::About about = {"gdds-knn",
                            "Find the exact nearest neighbours of every token",
                            "Distances are those of a computation in double precision; the result does not depend on threads, BLAS or FAISS.",
                            {"gdds-knn --k 64 embedding.h5 > neighbours.h5", "gdds-knn --show ' king' --metric cosine embedding.h5"},
                            {h5::library_version(), graph::faiss_version()}};
  return cli::run(argc, argv, about, knn);
}
