// Neighbour tables as files and as text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/knn.h"
#include "h5/input.h"
#include "h5/output.h"

namespace gdds::graph {

// A file of kind `neighbours`; the name of the vocabulary comes from the embedding.
void write(const Neighbours& neighbours, const h5::Input& embedding, const KnnOptions& options, h5::Output& output);

// The k nearest of some words by d, as tab-separated text: word, rank, d, neighbour. A word is a token of the embedding's
// vocabulary as it stands, or with a blank in front; another word is status 2.
void show_neighbours(const h5::Input& embedding, const Points& points, const std::vector<std::string>& words, const KnnOptions& options,
                     const std::function<void(const std::string&)>& write);

// "row perplexity at epsilon 0.01: ..." with the percentiles of MATH 2.
std::string describe_perplexities(const Neighbours& neighbours, const KnnOptions& options);

}  // namespace gdds::graph
