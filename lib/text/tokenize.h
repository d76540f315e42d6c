// What gdds-tokenize does: corpora into sequences of ids, ids into text, vocabularies from text, and a look at any of
// them. Blocks of text are encoded by several threads and put together in order, so the result does not depend on them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/options.h"
#include "h5/output.h"
#include "text/corpus.h"
#include "text/encoder.h"
#include "text/learn.h"
#include "text/vocabulary.h"

namespace gdds::text {

struct ChunkOptions {
  std::int64_t length = 1024;
  bool no_eos = false;
  bool apart = false;
  std::string begin_token, end_token;
  std::string remainder = "drop";
  void add_to(Options& options);
};

// Special tokens that a vocabulary is given on top of its own.
struct SpecialOptions {
  bool eos = false, mask = false, pad = false;
  void add_to(Options& options);
  void apply(Vocabulary& vocabulary) const;
};

struct EncodeSummary {
  std::uint64_t documents = 0, bytes = 0, tokens = 0, sequences = 0, dropped = 0;
};

// Reads the corpus and writes /tokens (and /lengths) of a `tokens` file. The vocabulary must outlive the call.
EncodeSummary encode_corpus(Corpus& corpus, const Encoder& encoder, const Vocabulary& vocabulary, const ChunkOptions& options,
                            h5::Output& output);

// Learns what the options say; the special tokens come last.
Vocabulary learn_vocabulary(Corpus& corpus, const LearnOptions& options, const SpecialOptions& special);

// The tokens of each document on a line of its own, with a bar between them.
void show_tokens(Corpus& corpus, const Encoder& encoder, const Vocabulary& vocabulary, const std::function<void(const std::string&)>& line);

struct DecodeOptions {
  std::string separator = "\\n";
  std::string special = "show";
  void add_to(Options& options);
};

// The sequences of a `tokens` or `samples` file as text, each followed by the separator, in pieces of bounded size.
void decode_sequences(const h5::Input& input, const DecodeOptions& options, const std::function<void(const std::string&)>& write);

// What there is to know, as (name, value) rows.
std::vector<std::pair<std::string, std::string>> describe(const Vocabulary& vocabulary);

// A token as it may be shown on a line: quotes, control characters and bytes that are not UTF-8 escaped.
std::string shown_token(std::string_view token);

}  // namespace gdds::text
