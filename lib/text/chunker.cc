// See chunker.h.
#include "text/chunker.h"

#include <algorithm>

#include "base/error.h"

namespace gdds::text {
namespace {

constexpr std::size_t kFlushIds = 1 << 20;

std::int32_t named_token(const Vocabulary& v, const std::string& option, const std::string& name) {
  if (name.empty()) return -1;
  const std::int32_t id = v.find(name);
  if (id < 0) bad_usage("--{}: the vocabulary has no token '{}'", option, name);
  return id;
}

}  // namespace

void ChunkOptions::add_to(Options& options) {
  options.option("length,l", length, "tokens a sequence").range(1, 1 << 30);
  options.option("no-eos", no_eos, "no <|endoftext|> behind each document");
  options.option("apart", apart, "begin each document with a sequence of its own");
  options.option("begin-token", begin_token, "token at the beginning of each sequence, such as [CLS]");
  options.option("end-token", end_token, "token at the end of each sequence, such as [SEP]");
  options.option("remainder", remainder, "what to do with a last sequence that is too short").choices({"drop", "pad", "keep"});
}

Chunker::Chunker(const Vocabulary& v, const ChunkOptions& options, h5::Output& output)
    : narrow_(v.size() <= 65536),
      length_(static_cast<std::uint64_t>(options.length)),
      room_(length_),
      apart_(options.apart),
      drops_(options.remainder == "drop"),
      keeps_(options.remainder == "keep"),
      eos_(options.no_eos ? -1 : v.eos),
      begin_(named_token(v, "begin-token", options.begin_token)),
      end_(named_token(v, "end-token", options.end_token)),
      pad_(v.pad >= 0 ? v.pad : std::max(v.eos, 0)),
      tokens_writer_(output.dataset("/tokens", {h5::kUnknown, length_}, narrow_ ? h5::Type::uint16 : h5::Type::int32)) {
  const std::uint64_t extra = (begin_ >= 0) + (end_ >= 0);
  if (length_ <= extra) bad_usage("--length: {} leaves no room for text beside the begin and end tokens", length_);
  room_ -= extra;
  if (options.remainder == "pad" && v.pad < 0)
    bad_usage("--remainder pad: the vocabulary has no pad token; gdds-tokenize convert --pad adds one");
  if (keeps_) lengths_writer_.emplace(output.dataset("/lengths", {h5::kUnknown}, h5::Type::int32));
  sequence_.reserve(length_);
}

void Chunker::put(std::span<const std::int32_t> ids) {
  while (!ids.empty()) {
    const std::size_t taken = std::min<std::size_t>(ids.size(), room_ - sequence_.size());
    sequence_.insert(sequence_.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(taken));
    ids = ids.subspan(taken);
    if (sequence_.size() == room_) end_sequence();
  }
}

void Chunker::add(std::span<const std::int32_t> ids) {
  tokens_ += ids.size();
  put(ids);
}

void Chunker::end_document() {
  if (eos_ >= 0) add({&eos_, 1});
  if (apart_) end_remainder();
}

// The sequence under way, filled up with padding to its room, goes to the rows.
void Chunker::end_sequence() {
  const auto emit = [&](std::int32_t id) { narrow_ ? narrow_rows_.push_back(static_cast<std::uint16_t>(id)) : wide_rows_.push_back(id); };
  const std::uint64_t text = sequence_.size();
  if (begin_ >= 0) emit(begin_);
  if (narrow_) {
    for (const std::int32_t id : sequence_) narrow_rows_.push_back(static_cast<std::uint16_t>(id));
  } else {
    wide_rows_.insert(wide_rows_.end(), sequence_.begin(), sequence_.end());
  }
  if (end_ >= 0) emit(end_);
  for (std::uint64_t i = text; i < room_; ++i) emit(pad_);
  if (keeps_) lengths_.push_back(static_cast<std::int32_t>(length_ - (room_ - text)));
  ++sequences_;
  sequence_.clear();
  if (narrow_rows_.size() + wide_rows_.size() >= kFlushIds) flush();
}

void Chunker::end_remainder() {
  if (sequence_.empty()) return;
  if (!drops_) return end_sequence();
  dropped_ += sequence_.size();
  sequence_.clear();
}

void Chunker::flush() {
  if (narrow_) tokens_writer_.append(std::span<const std::uint16_t>(narrow_rows_));
  else tokens_writer_.append(std::span<const std::int32_t>(wide_rows_));
  if (lengths_writer_) lengths_writer_->append(std::span<const std::int32_t>(lengths_));
  narrow_rows_.clear();
  wide_rows_.clear();
  lengths_.clear();
}

void Chunker::finish() {
  end_remainder();
  flush();
}

}  // namespace gdds::text
