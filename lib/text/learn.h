// Vocabularies from a corpus: byte-level BPE, and the characters that occur. Deterministic: the same text gives the same
// vocabulary, whatever the threads and however it is cut into reads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/options.h"
#include "text/vocabulary.h"

namespace gdds::text {

struct LearnOptions {
  std::string model = "bpe";
  std::int64_t size = 8192;
  std::int64_t min_count = 2;
  bool digits_apart = false;
  std::string name = "learned";
  void add_to(Options& options);
};

// Counts of pieces (bpe) or characters; several may be filled apart and added up.
class Counts {
 public:
  explicit Counts(const LearnOptions& options) : options_(&options) {}
  void add(std::string_view text);  // characters: throws Unencodable where it is not UTF-8
  void add(const Counts& other);
  const std::unordered_map<std::string, std::int64_t>& words() const { return words_; }

 private:
  const LearnOptions* options_;
  std::unordered_map<std::string, std::int64_t> words_;
};

// Where a text may be cut without changing its counts (Corpus::Cut).
std::function<std::size_t(std::string_view)> last_learning_cut(const LearnOptions& options);

// bpe: 256 bytes, then a token a merge, best pair first (the most frequent; of equals the one whose left, then right token
// has the lower id), until `room` tokens or until no pair occurs min_count times.
Vocabulary learn_bpe(const Counts& counts, std::int64_t room, const LearnOptions& options);
// characters: those that occur min_count times, in the order of their code points.
Vocabulary learn_characters(const Counts& counts, const LearnOptions& options);

}  // namespace gdds::text
