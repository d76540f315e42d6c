// See learn.h. The BPE learner keeps the count of every pair and the words it occurs in, so a merge touches only the words
// that hold it; a heap gives the best pair, and an entry whose count has changed since is passed over.
#include "text/learn.h"

#include <algorithm>
#include <map>
#include <queue>

#include "base/error.h"
#include "base/progress.h"
#include "text/encoder.h"
#include "text/splitter.h"
#include "text/unicode.h"

namespace gdds::text {
namespace {

using Pair = std::uint64_t;  // left in the high half
Pair pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}
std::int32_t left_of(Pair p) { return static_cast<std::int32_t>(p >> 32); }
std::int32_t right_of(Pair p) { return static_cast<std::int32_t>(p & 0xffffffff); }

struct Word {
  std::vector<std::int32_t> symbols;
  std::int64_t count;
};

struct PairFacts {
  std::int64_t count = 0;
  std::vector<std::uint32_t> words;  // where it occurs, or did; a word may stand twice
};

struct Candidate {
  std::int64_t count;
  Pair pair;
  bool operator<(const Candidate& o) const { return count != o.count ? count < o.count : pair > o.pair; }
};

class Learner {
 public:
  Learner(const Counts& counts, Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    for (int b = 0; b < 256; ++b) ids_[std::string(1, static_cast<char>(b))] = vocabulary_.add(std::string(1, static_cast<char>(b)), false);
    std::vector<std::pair<std::string, std::int64_t>> sorted(counts.words().begin(), counts.words().end());
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [text, count] : sorted) {
      Word word{{}, count};
      for (const char c : text) word.symbols.push_back(static_cast<unsigned char>(c));
      words_.push_back(std::move(word));
      const auto number = static_cast<std::uint32_t>(words_.size() - 1);
      const auto& s = words_.back().symbols;
      for (std::size_t i = 0; i + 1 < s.size(); ++i) change(pair_of(s[i], s[i + 1]), count, number);
    }
    for (const auto& [pair, facts] : pairs_) heap_.push({facts.count, pair});
  }

  // Joins the best pair; false when none occurs often enough.
  bool step(std::int64_t min_count) {
    while (!heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      const auto facts = pairs_.find(best.pair);
      if (facts == pairs_.end() || facts->second.count != best.count) continue;
      if (best.count < min_count) return false;
      join(best.pair);
      return true;
    }
    return false;
  }

 private:
  void change(Pair pair, std::int64_t by, std::uint32_t word) {
    PairFacts& facts = pairs_[pair];
    facts.count += by;
    if (by > 0 && (facts.words.empty() || facts.words.back() != word)) facts.words.push_back(word);
  }

  void join(Pair pair) {
    const std::int32_t left = left_of(pair), right = right_of(pair);
    const std::string bytes = std::string(vocabulary_.token(left)).append(vocabulary_.token(right));
    const auto [place, is_new] = ids_.emplace(bytes, vocabulary_.size());
    if (is_new) vocabulary_.add(bytes, false);
    vocabulary_.merges.push_back({left, right});
    const std::vector<std::uint32_t> where = std::move(pairs_[pair].words);
    pairs_.erase(pair);
    touched_.clear();
    for (const std::uint32_t number : where) rewrite(number, left, right, place->second);
    pairs_.erase(pair);  // the rewriting counted it down again
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const Pair p : touched_) {
      const auto facts = pairs_.find(p);
      if (facts == pairs_.end()) continue;
      if (facts->second.count > 0) heap_.push({facts->second.count, p});
      else pairs_.erase(facts);
    }
  }

  // In one word: every occurrence from left to right, and the counts of the pairs around it.
  void rewrite(std::uint32_t number, std::int32_t left, std::int32_t right, std::int32_t made) {
    Word& word = words_[number];
    auto& s = word.symbols;
    const auto note = [&](std::int32_t a, std::int32_t b, std::int64_t by) {
      change(pair_of(a, b), by, number);
      touched_.push_back(pair_of(a, b));
    };
    std::size_t out = 0;
    bool any = false;
    for (std::size_t i = 0; i < s.size(); ++i) any |= i + 1 < s.size() && s[i] == left && s[i + 1] == right;
    if (!any) return;
    for (std::size_t i = 0; i + 1 < s.size(); ++i) note(s[i], s[i + 1], -word.count);
    for (std::size_t i = 0; i < s.size();) {
      const bool here = i + 1 < s.size() && s[i] == left && s[i + 1] == right;
      s[out++] = here ? made : s[i];
      i += here ? 2 : 1;
    }
    s.resize(out);
    for (std::size_t i = 0; i + 1 < s.size(); ++i) note(s[i], s[i + 1], word.count);
  }

  Vocabulary& vocabulary_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<Word> words_;
  std::unordered_map<Pair, PairFacts> pairs_;
  std::priority_queue<Candidate> heap_;
  std::vector<Pair> touched_;
};

}  // namespace

void LearnOptions::add_to(Options& options) {
  options.option("model", model, "what to learn").choices({"bpe", "characters"});
  options.option("size", size, "tokens of a bpe vocabulary, special ones included").range(257, 1 << 30);
  options.option("min-count", min_count, "join only pairs, keep only characters, that occur as often").range(1, 1e15);
  options.option("digits-apart", digits_apart, "bpe: every digit is a piece of its own");
  options.option("name", name, "name of the vocabulary");
}

void Counts::add(std::string_view text) {
  if (options_->model == "bpe") {
    for_each_piece(text, options_->digits_apart, [&](std::size_t begin, std::size_t end) { ++words_[std::string(text.substr(begin, end - begin))]; });
    return;
  }
  for (std::size_t at = 0; at < text.size();) {
    const Decoded d = decode(text.data() + at, text.data() + text.size());
    if (d.code == kInvalid) throw Unencodable{at, "not UTF-8"};
    ++words_[std::string(text.substr(at, d.bytes))];
    at += d.bytes;
  }
}

void Counts::add(const Counts& other) {
  for (const auto& [word, count] : other.words_) words_[word] += count;
}

std::function<std::size_t(std::string_view)> last_learning_cut(const LearnOptions& options) {
  if (options.model == "bpe") return last_piece_cut;
  return last_character;
}

Vocabulary learn_bpe(const Counts& counts, std::int64_t room, const LearnOptions& options) {
  Vocabulary vocabulary;
  vocabulary.name = options.name;
  vocabulary.model = "bpe";
  vocabulary.pretokenizer = options.digits_apart ? "digits-gpt2" : "gpt2";
  Learner learner(counts, vocabulary);
  Progress progress("learning", static_cast<std::uint64_t>(room), "tokens");
  progress.advance(256);
  while (vocabulary.size() < room && learner.step(options.min_count)) progress.advance();
  return vocabulary;
}

Vocabulary learn_characters(const Counts& counts, const LearnOptions& options) {
  Vocabulary vocabulary;
  vocabulary.name = options.name;
  vocabulary.model = "characters";
  // UTF-8 sorts as its code points do.
  std::map<std::string, std::int64_t> sorted(counts.words().begin(), counts.words().end());
  for (const auto& [character, count] : sorted)
    if (count >= options.min_count) vocabulary.add(character, false);
  if (vocabulary.size() == 0) reject("no character occurs {} times", options.min_count);
  return vocabulary;
}

}  // namespace gdds::text
