// See corpus.h.
#include "text/corpus.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "h5/descriptor.h"
#include "text/clean.h"

namespace gdds::text {
namespace {

constexpr auto kEndless = ~std::uint64_t{0};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Documents that are not taken from the file as they stand.
bool is_rewritten(const CorpusOptions& options) { return options.clean != "none" || options.documents == "jsonl"; }

double uniform(std::uint64_t seed, std::uint64_t number) {
  Hash hash;
  hash.update_field("split");
  hash.update(&seed, sizeof seed);
  hash.update(&number, sizeof number);
  std::uint64_t bits = 0;
  const std::string hex = hash.hex();
  std::from_chars(hex.data(), hex.data() + 13, bits, 16);
  return static_cast<double>(bits) / static_cast<double>(std::uint64_t{1} << 52);
}

}  // namespace

void CorpusOptions::add_to(Options& options) {
  options.option("documents", documents, "what a document is").choices({"file", "line", "paragraph", "separator", "jsonl"});
  options.option("separator", separator, "text between documents, for --documents separator");
  options.option("field", field, "field that holds the text, for --documents jsonl");
  options.option("clean", clean, "turn a tokenised data set back into text first").choices(clean_names());
  options.option("split", split,
                 "how the corpus is parted: none, text8 (90/5/5 percent of its bytes), fraction:V[:T] (random documents), "
                 "documents:V[:T] (the last V, and T behind them)")
      .placeholder("HOW");
  options.option("part", part, "part to take").choices({"train", "valid", "test"});
  seed.add_to(options);
}

Split parse_split(const std::string& text) {
  if (text == "none") return {};
  if (text == "text8") return {Split::Way::bytes, 0.05, 0.05};
  Split split;
  const auto colon = text.find(':');
  const std::string way = text.substr(0, colon);
  split.way = way == "fraction" ? Split::Way::fraction : Split::Way::documents;
  if (colon == std::string::npos || (way != "fraction" && way != "documents"))
    bad_usage("--split: expected none, text8, fraction:V[:T] or documents:V[:T], found '{}'", text);
  const std::string numbers = text.substr(colon + 1);
  const auto second = numbers.find(':');
  const auto number = [&](const std::string& word) {
    const double value = split.way == Split::Way::fraction ? parse_real(word) : static_cast<double>(parse_unsigned(word));
    if (value < 0) bad_usage("--split: expected numbers that are not negative, found '{}'", text);
    return value;
  };
  split.valid = number(numbers.substr(0, second));
  if (second != std::string::npos) split.test = number(numbers.substr(second + 1));
  if (split.way == Split::Way::fraction && split.valid + split.test > 1) bad_usage("--split: '{}' is more than the whole", text);
  return split;
}

Corpus::Corpus(const CorpusOptions& options, Cut cut, std::size_t block_bytes)
    : options_(options), cut_(std::move(cut)), block_bytes_(block_bytes), split_(parse_split(options.split)) {
  names_ = options.files.empty() ? std::vector<std::string>{"-"} : options.files;
  if (std::count(names_.begin(), names_.end(), "-") > 1) bad_usage("standard input can be read only once");
  if (options.separator.empty()) bad_usage("--separator: expected a text, found none");
  hashes_.resize(names_.size());
  measure();
  if (is_rewritten(options_)) cut_ = nullptr;
  if (split_.way == Split::Way::documents) count_documents();
}

Corpus::~Corpus() {
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
}

// Looks at every file before any is read: what is missing is known at once, and so is the size where it is needed.
void Corpus::measure() {
  bool known = true;
  for (const std::string& name : names_) {
    struct stat status {};
    const bool is_input = name == "-";
    if (is_input && isatty(STDIN_FILENO) == 1) bad_usage("standard input is a terminal; name a file, or give text by a pipe");
    if ((is_input ? fstat(STDIN_FILENO, &status) : stat(name.c_str(), &status)) != 0)
      fail_errno(is_input ? "standard input" : name, is_input ? "cannot read" : "cannot open", errno);
    if (S_ISDIR(status.st_mode)) fail_errno(name, "cannot open", EISDIR);
    if (!is_input && access(name.c_str(), R_OK) != 0) fail_errno(name, "cannot open", errno);
    known &= S_ISREG(status.st_mode);
    total_bytes_ += static_cast<std::uint64_t>(status.st_size);
  }
  if (!known) total_bytes_ = 0;
  const bool measured = split_.way == Split::Way::bytes || split_.way == Split::Way::documents;
  if (measured && !known) bad_usage("--split {}: the size must be known, so name files instead of a pipe", options_.split);
  if (split_.way != Split::Way::bytes) return;
  const auto cut_at = [&](int percent) { return total_bytes_ / 100 * static_cast<unsigned>(percent) + total_bytes_ % 100 * static_cast<unsigned>(percent) / 100; };
  if (options_.part == "train") range_ = {0, cut_at(90)};
  if (options_.part == "valid") range_ = {cut_at(90), cut_at(95)};
  if (options_.part == "test") range_ = {cut_at(95), total_bytes_};
}

void Corpus::count_documents() {
  CorpusOptions all = options_;
  all.split = "none";
  all.clean = "none";
  Corpus counter(all, options_.documents == "file" ? [](std::string_view text) { return text.size(); } : Cut());
  for (Block block; counter.next(block);) {
  }
  const auto count = counter.documents_seen_;
  const auto held = static_cast<std::uint64_t>(split_.valid + split_.test);
  if (held > count) reject("--split {}: there are only {} documents", options_.split, count);
  valid_from_ = count - held;
  test_from_ = count - static_cast<std::uint64_t>(split_.test);
}

bool Corpus::wanted(std::uint64_t document) const {
  const char* part = "train";
  if (split_.way == Split::Way::fraction) {
    const double u = uniform(options_.seed.value, document);
    part = u < split_.valid ? "valid" : u < split_.valid + split_.test ? "test" : "train";
  } else if (split_.way == Split::Way::documents) {
    part = document < valid_from_ ? "train" : document < test_from_ ? "valid" : "test";
  } else {
    return true;
  }
  return options_.part == part;
}

bool Corpus::open_next_file() {
  if (next_file_ == names_.size()) return false;
  const std::string& name = names_[next_file_++];
  descriptor_ = name == "-" ? STDIN_FILENO : open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail_errno(name, "cannot open", errno);
  hash_ = std::make_unique<Hash>();
  text_offset_ = 0;
  line_ = 0;
  return true;
}

// Adds about a block of bytes to the text; false at the end of the file.
bool Corpus::fill(Block& block) {
  const std::size_t old = block.text.size();
  const std::size_t want = std::max(block_bytes_, old);  // a document that is longer and longer is read in larger steps
  block.text.resize(old + want);
  const std::string& name = names_[next_file_ - 1];
  const std::size_t n = h5::read_up_to(descriptor_, block.text.data() + old, want, name == "-" ? "standard input" : name);
  hash_->update(block.text.data() + old, n);
  block.text.resize(old + n);
  block.bytes_read += n;
  // Bytes outside the wanted range are forgotten as if they were not there.
  const std::uint64_t first = read_before_;
  read_before_ += n;
  if (range_.end != kEndless) {
    const std::uint64_t keep_from = std::clamp(range_.begin, first, first + n), keep_to = std::clamp(range_.end, first, first + n);
    block.text.erase(old + (keep_to - first));
    block.text.erase(old, keep_from - first);
    if (old == 0) text_offset_ += keep_from - first;
  }
  if (n == want) return true;
  if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
  descriptor_ = -1;
  hashes_[next_file_ - 1] = hash_->hex();
  return false;
}

Corpus::Found Corpus::find_paragraph_end(const std::string& text, std::size_t from) {
  for (std::size_t at = text.find('\n', from); at != std::string::npos; at = text.find('\n', at + 1)) {
    std::size_t next = at + 1;
    while (next < text.size() && is_blank(text[next])) ++next;
    scanned_ = at;
    if (next == text.size()) return {};  // not to be decided yet
    if (text[next] == '\n') return {at, next + 1, true};
  }
  scanned_ = text.size();
  return {};
}

// The end of the document that `from` lies in, if it is in the text.
Corpus::Found Corpus::find_end(const std::string& text, std::size_t from) {
  if (options_.documents == "file") return {};
  if (options_.documents == "paragraph") return find_paragraph_end(text, from);
  const std::string_view mark = options_.documents == "separator" ? std::string_view(options_.separator) : "\n";
  const auto at = text.find(mark, from);
  if (at != std::string::npos) return {at, at + mark.size(), true};
  scanned_ = std::max(from, text.size() >= mark.size() ? text.size() - mark.size() + 1 : 0);
  return {};
}

void Corpus::take_rewritten(Block& block, std::string_view document) {
  std::string text;
  if (options_.documents == "jsonl") {
    const auto json = nlohmann::json::parse(document, nullptr, false);
    const auto& name = names_[next_file_ - 1];
    if (json.is_discarded() || !json.is_object()) reject("{}: line {}: not a JSON object", name, line_);
    const auto found = json.find(options_.field);
    if (found == json.end() || !found->is_string()) reject("{}: line {}: no text in field '{}'", name, line_, options_.field);
    text = found->get<std::string>();
  } else {
    text = document;
  }
  text = clean(options_.clean, std::move(text));
  const std::size_t begin = rewritten_.size();
  rewritten_ += text;
  block.segments.back().begin = begin;
  block.segments.back().end = rewritten_.size();
}

// A document or a part of one; an empty document is none.
void Corpus::take(Block& block, std::size_t begin, std::size_t end, bool ends_document) {
  ++line_;
  if (options_.documents == "line" && ends_document && end > begin && block.text[end - 1] == '\r') --end;
  const bool blank_json = options_.documents == "jsonl" &&
                          std::all_of(block.text.begin() + static_cast<std::ptrdiff_t>(begin), block.text.begin() + static_cast<std::ptrdiff_t>(end), is_blank);
  if ((begin == end && !inside_document_) || blank_json) return;
  if (wanted(documents_seen_)) {
    block.segments.push_back({begin, end, ends_document, next_file_ - 1, text_offset_ + begin});
    bytes_taken_ += end - begin;
    if (ends_document) ++documents_taken_;
    if (is_rewritten(options_)) take_rewritten(block, std::string_view(block.text).substr(begin, end - begin));
  }
  if (ends_document) ++documents_seen_;
  inside_document_ = !ends_document;
}

// Blank lines before a paragraph; npos where there is nothing but blanks yet.
std::size_t Corpus::skip_blank_lines(const std::string& text, std::size_t begin) const {
  if (options_.documents != "paragraph" || inside_document_) return begin;
  const auto solid = text.find_first_not_of(" \t\r\n", begin);
  if (solid == std::string::npos) return solid;
  const auto line = text.rfind('\n', solid);
  return line == std::string::npos || line < begin ? begin : line + 1;
}

// Takes the documents of the text from `begin` on; returns where the one that is not finished begins.
std::size_t Corpus::parse(Block& block, std::size_t begin, bool file_ended) {
  while (begin <= block.text.size()) {
    const std::size_t start = skip_blank_lines(block.text, begin);
    if (start == std::string::npos) return file_ended ? block.text.size() : begin;
    begin = start;
    const Found end = find_end(block.text, std::max(begin, scanned_));
    if (!end.found) break;
    take(block, begin, end.text_end, true);
    begin = scanned_ = end.next_begin;
  }
  if (file_ended) {
    std::size_t end = block.text.size();
    if (options_.documents == "paragraph")
      while (end > begin && (is_blank(block.text[end - 1]) || block.text[end - 1] == '\n')) --end;
    if (end > begin || inside_document_) take(block, begin, end, true);
    return block.text.size();
  }
  if (!cut_ || block.text.size() - begin < block_bytes_) return begin;
  // Not beyond what was searched: a separator may have begun there.
  const std::size_t safe = options_.documents == "file" ? block.text.size() : std::max(begin, scanned_);
  const std::size_t cut = cut_(std::string_view(block.text).substr(begin, safe - begin));
  if (cut == 0) return begin;
  take(block, begin, begin + cut, false);
  return begin + cut;
}

bool Corpus::next(Block& block) {
  block.segments.clear();
  block.bytes_read = 0;
  rewritten_.clear();
  block.text = std::move(rest_);
  rest_.clear();
  while (true) {
    if (descriptor_ < 0 && !open_next_file()) return false;
    const bool file_ended = !fill(block);
    const std::size_t left = parse(block, 0, file_ended);
    if (!block.segments.empty() || file_ended) {
      rest_.assign(block.text, left);
      scanned_ = scanned_ > left ? scanned_ - left : 0;
      text_offset_ += left;
      if (file_ended) scanned_ = 0;
      if (!block.segments.empty()) break;
      block.text = std::move(rest_);
      rest_.clear();
    } else if (left > 0) {  // documents that are not wanted
      block.text.erase(0, left);
      scanned_ = scanned_ > left ? scanned_ - left : 0;
      text_offset_ += left;
    }
  }
  if (is_rewritten(options_)) block.text.swap(rewritten_);
  return true;
}

void Corpus::reject_at(const Segment& segment, std::size_t offset, const std::string& what) const {
  const std::string name = names_[segment.file] == "-" ? "standard input" : names_[segment.file];
  if (is_rewritten(options_)) reject("{}: in the document at byte {}: {}", name, segment.at, what);
  reject("{}: byte {}: {}", name, segment.at + offset, what);
}

std::vector<h5::Source> Corpus::sources() const {
  std::vector<h5::Source> sources;
  for (std::size_t i = 0; i < names_.size(); ++i) sources.push_back({names_[i], hashes_[i], ""});
  return sources;
}

}  // namespace gdds::text
