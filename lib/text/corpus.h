// Text files as documents, in blocks that bound the memory: what a document is (a file, a line, a paragraph, what stands
// between separators, a field of JSON lines), which documents belong to the part of the corpus that is wanted, and where
// in which file each piece of text came from, for messages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/options.h"
#include "base/seed.h"
#include "h5/history.h"

namespace gdds::text {

struct CorpusOptions {
  std::vector<std::string> files;  // none: standard input
  std::string documents = "file";
  std::string separator = "<|endoftext|>";
  std::string field = "text";
  std::string clean = "none";
  std::string split = "none";
  std::string part = "train";
  Seed seed;
  void add_to(Options& options);
};

// How a corpus is parted into train, valid and test.
struct Split {
  enum class Way { none, bytes, fraction, documents } way = Way::none;
  double valid = 0, test = 0;  // fractions, or numbers of documents
};
// "none", "text8", "fraction:V[:T]", "documents:V[:T]"; anything else is status 2.
Split parse_split(const std::string& text);

// A document, or a part of a long one.
struct Segment {
  std::size_t begin = 0, end = 0;  // in the block's text
  bool ends_document = false;
  std::size_t file = 0;
  std::uint64_t at = 0;  // byte of the file where the segment (or, if rewritten, its document) begins
};

struct Block {
  std::string text;
  std::vector<Segment> segments;
  std::uint64_t bytes_read = 0;  // from the files for this block
};

class Corpus {
 public:
  // Where a text may be cut: the last such place, 0 for none (Encoder::last_cut). Without it documents stay whole.
  using Cut = std::function<std::size_t(std::string_view)>;
  static constexpr std::size_t kBlockBytes = 1 << 20;

  // `block_bytes` is read at a time; the tests take few, so that every document meets the edge of a block.
  Corpus(const CorpusOptions& options, Cut cut, std::size_t block_bytes = kBlockBytes);
  ~Corpus();

  // The next block with at least one segment; false at the end.
  bool next(Block& block);

  std::uint64_t total_bytes() const { return total_bytes_; }  // of all files; 0 where a pipe is among them
  std::uint64_t documents() const { return documents_taken_; }
  std::uint64_t bytes() const { return bytes_taken_; }
  // "corpus.txt: byte 17: WHAT".
  [[noreturn]] void reject_at(const Segment& segment, std::size_t offset, const std::string& what) const;
  // Files with the hashes of their bytes; complete at the end.
  std::vector<h5::Source> sources() const;

 private:
  struct Found {
    std::size_t text_end = 0, next_begin = 0;
    bool found = false;
  };
  struct Range {  // bytes of all files together that are taken
    std::uint64_t begin = 0, end = ~std::uint64_t{0};
  };

  bool open_next_file();
  bool fill(Block& block);
  Found find_end(const std::string& text, std::size_t from);
  Found find_paragraph_end(const std::string& text, std::size_t from);
  void take(Block& block, std::size_t begin, std::size_t end, bool ends_document);
  void take_rewritten(Block& block, std::string_view document);
  std::size_t skip_blank_lines(const std::string& text, std::size_t begin) const;
  std::size_t parse(Block& block, std::size_t begin, bool file_ended);
  bool wanted(std::uint64_t document) const;
  void measure();
  void count_documents();

  CorpusOptions options_;
  Cut cut_;
  std::size_t block_bytes_;
  Split split_;
  Range range_;
  std::uint64_t valid_from_ = ~std::uint64_t{0}, test_from_ = ~std::uint64_t{0};  // documents, of Way::documents
  std::vector<std::string> names_;
  std::vector<std::string> hashes_;
  std::uint64_t total_bytes_ = 0;

  int descriptor_ = -1;
  std::size_t next_file_ = 0;
  std::unique_ptr<Hash> hash_;
  std::uint64_t read_before_ = 0;    // bytes of all files together read so far
  std::uint64_t text_offset_ = 0;    // byte of the file at which the block's text begins
  std::string rest_;                 // begun, not finished
  std::size_t scanned_ = 0;          // of rest_: no end of a document before this
  bool inside_document_ = false;     // part of it was given already
  std::string rewritten_;            // texts made anew, which replace the block's
  std::uint64_t line_ = 0;
  std::uint64_t documents_seen_ = 0, documents_taken_ = 0, bytes_taken_ = 0;
};

}  // namespace gdds::text
