// A vector for each token of a vocabulary: taken from a model's file in any form that is known, made from a corpus, or
// carried over from another vocabulary. Rows that the source does not have are filled by an explicit rule and marked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/seed.h"
#include "graph/cooccurrence.h"
#include "h5/input.h"
#include "h5/output.h"
#include "text/vocabulary.h"

namespace gdds::graph {

struct EmbedOptions {
  std::string source = "-";
  std::string tensor;  // empty: the usual names
  std::string vocab;   // of sources that carry none
  std::int64_t raw_dim = 0;
  std::string raw_type = "float32";
  std::string onto;
  std::string extra_rows = "reject";
  bool drop_rows = false;
  bool normalise = false;
  std::string dtype = "float32";
  CooccurrenceOptions cooccurrence;
  Seed seed;
  std::vector<std::string> given;  // names of the options above that are not for every source
  void add_to(Options& options);
  // Status 2 for options that contradict each other.
  void validate() const;
};

struct Embedding {
  text::Vocabulary vocabulary;
  h5::Matrix vectors;                 // [m, d]
  std::vector<std::uint8_t> present;  // [m], 1 where the source had a vector
};

// The vectors of options.source with their vocabulary, all finite. What was read is added to `sources`.
Embedding open_embedding(const EmbedOptions& options, std::vector<h5::Source>& sources);

// The same meaning for other tokens. An ordinary token gets the vector of the source's token of the same bytes or else
// the mean of the vectors of the pieces that the source's encoder makes of its text; a special token gets that of the
// same role or name. `rule` (options.extra_rows) is for the rest; of special tokens "reject" means the mean.
Embedding carry_over(const Embedding& source, const text::Vocabulary& target, const std::string& rule, Seed seed);

// Rows to unit length; zero rows stay as they are and are counted in a warning.
void normalise(Embedding& embedding);

// dtype float32 or float16; a number too large for float16 is status 3.
void write(const Embedding& embedding, const std::string& dtype, h5::Output& output);

struct EmbeddingSummary {
  std::uint64_t rows = 0, columns = 0, present = 0;
  double mean_norm = 0;
};
EmbeddingSummary summarise(const Embedding& embedding);

}  // namespace gdds::graph
