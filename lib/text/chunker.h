// Ids into sequences of one length: documents one after the other with <|endoftext|> behind each, or apart; with tokens at
// the beginning and end of each sequence if asked for; what is left at the end dropped, padded or kept with its length.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "h5/output.h"
#include "text/tokenize.h"
#include "text/vocabulary.h"

namespace gdds::text {

class Chunker {
 public:
  // Status 2 where the options ask for tokens that the vocabulary does not have.
  Chunker(const Vocabulary& vocabulary, const ChunkOptions& options, h5::Output& output);

  void add(std::span<const std::int32_t> ids);
  void end_document();
  void finish();

  std::uint64_t tokens() const { return tokens_; }
  std::uint64_t sequences() const { return sequences_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  void put(std::span<const std::int32_t> ids);  // into the sequence under way
  void end_sequence();
  void end_remainder();
  void flush();

  const bool narrow_;  // ids as uint16
  const std::uint64_t length_;
  std::uint64_t room_;  // of a sequence, for ids of the text
  const bool apart_, drops_, keeps_;
  std::int32_t eos_ = -1, begin_ = -1, end_ = -1, pad_ = 0;
  h5::Writer tokens_writer_;
  std::optional<h5::Writer> lengths_writer_;
  std::vector<std::int32_t> sequence_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::uint16_t> narrow_rows_;
  std::vector<std::int32_t> wide_rows_;
  std::uint64_t tokens_ = 0, sequences_ = 0, dropped_ = 0;
};

}  // namespace gdds::text
