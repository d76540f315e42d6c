// See neighbours.h.
#include "graph/neighbours.h"

#include <fmt/format.h>

#include "base/error.h"
#include "text/tokenize.h"
#include "text/vocabulary.h"

namespace gdds::graph {

void write(const Neighbours& n, const h5::Input& embedding, const KnnOptions& options, h5::Output& output) {
  const auto m = static_cast<std::uint64_t>(n.bandwidths.size()), k = static_cast<std::uint64_t>(n.k);
  for (const char* name : {"/vocab@name", "/vocab@hash"}) output.attribute(name, embedding.string_attribute(name));
  output.attribute("/vocab@size", embedding.integer_attribute("/vocab@size"));
  if (m <= 65536) {
    const std::vector<std::uint16_t> narrow(n.ids.begin(), n.ids.end());
    output.write("/ids", {m, k}, std::span<const std::uint16_t>(narrow));
  } else {
    output.write("/ids", {m, k}, std::span<const std::int32_t>(n.ids));
  }
  output.write("/distances", {m, k}, std::span<const double>(n.distances));
  output.write("/bandwidths", n.bandwidths);
  output.attribute("/ids@metric", options.metric);
  output.attribute("/ids@ranking", options.ranking);
  output.attribute("/ids@bandwidth", options.bandwidth);
  output.attribute("/ids@bandwidth_neighbour", options.bandwidth_neighbour);
}

void show_neighbours(const h5::Input& embedding, const Points& points, const std::vector<std::string>& words, const KnnOptions& options,
                     const std::function<void(const std::string&)>& write) {
  const text::Vocabulary vocabulary = text::read_vocabulary(embedding);
  std::string text = "word\trank\td\tneighbour\n";
  for (const std::string& word : words) {
    std::int32_t id = vocabulary.find(word);
    if (id < 0) id = vocabulary.find(" " + word);
    if (id < 0) bad_usage("--show: the vocabulary has no token '{}', nor one with a blank in front", word);
    int rank = 0;
    for (const auto& [d, neighbour] : nearest(points, id, options.k, options.metric == "cosine"))
      text += fmt::format("{}\t{}\t{:.6g}\t{}\n", text::shown_token(vocabulary.token(id)), ++rank, d, text::shown_token(vocabulary.token(neighbour)));
  }
  write(text);
}

std::string describe_perplexities(const Neighbours& neighbours, const KnnOptions& options) {
  constexpr double kEpsilon = 0.01;  // the paper's
  const std::vector<double> sorted = row_perplexities(neighbours, kEpsilon, options.bandwidth);
  std::string text = fmt::format("row perplexity at epsilon {}, percentiles 1/25/50/75/99:", kEpsilon);
  for (const double percent : {1.0, 25.0, 50.0, 75.0, 99.0})
    text += fmt::format(" {:.3g}", sorted[static_cast<std::size_t>(percent / 100 * static_cast<double>(sorted.size() - 1) + 0.5)]);
  return text;
}

}  // namespace gdds::graph
