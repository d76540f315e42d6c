// Vectors for a vocabulary without published ones, from a corpus in its ids: how often tokens stand near each other,
// positive pointwise mutual information, and a truncated singular value decomposition of it (Levy, Goldberg and Dagan
// 2015; randomized as in Halko, Martinsson and Tropp 2011). Counts are exact integers and every sum has a fixed order,
// so the result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/seed.h"
#include "h5/input.h"
#include "text/vocabulary.h"

namespace gdds::graph {

struct CooccurrenceOptions {
  int dim = 64;
  int window = 5;
  double smoothing = 0.75;
  // Those that are given are noted: they are for a corpus alone.
  void add_to(Options& options, std::vector<std::string>& given);
};

// Rows of a sparse matrix one after the other, columns increasing in each.
struct Sparse {
  std::uint64_t columns = 0;
  std::vector<std::uint64_t> begin = {0};  // one more than there are rows
  std::vector<std::uint32_t> column;
  std::vector<float> value;
  std::uint64_t rows() const { return begin.size() - 1; }
};

// Pairs of tokens with the sum of 1 / distance over their meetings inside the window, in both directions. Held as whole
// multiples of 1 / unit, unit being the least common multiple of the distances: sums are exact, whatever their order.
class PairCounts {
 public:
  PairCounts(std::uint32_t tokens, int window);
  // Tokens of `skipped` keep their places but meet nobody.
  void add(const std::int32_t* ids, std::uint64_t count, std::int32_t skipped);
  double count(std::uint32_t i, std::uint32_t j) const;
  // max(0, log(P(i, j) / (P(i) P'(j)))), P'(j) proportional to the smoothing-th power of j's count.
  Sparse positive_pmi(double smoothing) const;

 private:
  void add_pair(std::uint64_t key, std::uint64_t weight);
  void grow();

  std::uint32_t tokens_;
  std::vector<std::uint64_t> weights_of_distance_;  // unit / distance; [0] is the unit
  std::vector<std::uint64_t> keys_, weights_;       // a hash table: lower id, higher id; weight 0 is an empty place
  std::uint64_t used_ = 0;
};

struct Factors {
  std::vector<double> singular_values;  // decreasing
  h5::Matrix rows;                      // U sqrt(S), [m, dim]
};
Factors factorise(const Sparse& matrix, int dim, Seed seed);

struct CooccurrenceVectors {
  h5::Matrix vectors;
  std::vector<std::uint8_t> present;  // 0: it never occurs, or near nothing it goes with
};
CooccurrenceVectors embed_corpus(const h5::Input& tokens, const text::Vocabulary& vocabulary,
                                 const CooccurrenceOptions& options, Seed seed);

}  // namespace gdds::graph
