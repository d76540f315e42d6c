// Any vocabulary by what was typed: which form a file has is seen from its first bytes, whatever its name. And BERT's
// vocab.txt, which needs no more than lines. See readers.h.
#include "text/readers.h"

#include <cerrno>
#include <filesystem>
#include <unordered_map>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "h5/descriptor.h"
#include "text/assemble.h"
#include "text/unicode.h"

namespace gdds::text {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;  // of all forms but GGUF and HDF5, which hold models
constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";

// The bytes of a file: mapped, since a GGUF file is mostly weights that nobody looks at; read, if it is a pipe.
class FileBytes {
 public:
  explicit FileBytes(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail_errno(path, "cannot open", errno);
    try {
      load(descriptor, path);
    } catch (...) {
      close(descriptor);
      throw;
    }
    close(descriptor);
  }
  ~FileBytes() {
    if (mapped_ != nullptr) munmap(mapped_, view_.size());
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::string_view view() const { return view_; }
  bool is_pipe() const { return is_pipe_; }

 private:
  void load(int descriptor, const std::string& path) {
    struct stat status {};
    if (fstat(descriptor, &status) != 0) fail_errno(path, "cannot read", errno);
    is_pipe_ = !S_ISREG(status.st_mode);
    if (is_pipe_) {
      load_pipe(descriptor, path);
    } else if (status.st_size > 0) {
      const auto bytes = static_cast<std::size_t>(status.st_size);
      void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (mapped == MAP_FAILED) fail_errno(path, "cannot read", errno);
      mapped_ = mapped;
      view_ = {static_cast<const char*>(mapped), bytes};
    }
  }
  void load_pipe(int descriptor, const std::string& path) {
    constexpr std::size_t kStep = std::size_t{1} << 20;
    std::size_t got = kStep;
    while (got == kStep && read_.size() <= kLargest) {
      const std::size_t begin = read_.size();
      read_.resize(begin + kStep);
      got = h5::read_up_to(descriptor, read_.data() + begin, kStep, path);
      read_.resize(begin + got);
    }
    view_ = read_;
  }

  std::string read_;
  void* mapped_ = nullptr;
  std::string_view view_;
  bool is_pipe_ = false;
};

// The folder's name and the file's, or nothing if there is no such file.
std::string beside(const std::filesystem::path& folder, const std::vector<const char*>& names) {
  for (const char* name : names)
    if (std::error_code error; std::filesystem::exists(folder / name, error)) return folder / name;
  return "";
}

struct Opened {
  Vocabulary vocabulary;
  std::string digest;
};

// OpenAI's two files, of which `path` is one and the other lies beside it.
Opened open_pair(std::string_view bytes, bool is_encoder, const std::string& path) {
  const std::vector<const char*> names =
      is_encoder ? std::vector{"vocab.bpe", "merges.txt"} : std::vector{"encoder.json", "vocab.json"};
  const std::string other = beside(std::filesystem::path(path).parent_path(), names);
  if (other.empty()) reject("{}: half of a vocabulary; neither {} nor {} is beside it", path, names[0], names[1]);
  const FileBytes half(other);
  if (half.view().size() > kLargest) reject("{}: too large for a vocabulary", other);
  const std::string_view encoder = is_encoder ? bytes : half.view();
  const std::string_view merges = is_encoder ? half.view() : bytes;
  Hash hash;  // the same, whichever of the two was named
  hash.update_field(encoder);
  hash.update_field(merges);
  return {read_gpt2_files(encoder, merges, path), hash.hex()};
}

bool begins_as_json(std::string_view bytes) {
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] == '{';
}

// The first line is base64, a blank and a number.
bool begins_as_tiktoken(std::string_view bytes) {
  std::string_view line;
  if (!take_line(bytes, line)) return false;
  const std::size_t blank = line.find(' ');
  if (blank == 0 || blank == std::string_view::npos || blank % 4 != 0 || blank + 1 == line.size()) return false;
  static constexpr std::string_view kDigits = "0123456789";
  static constexpr std::string_view kBase64 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/=";
  return line.find_first_not_of(kDigits, blank + 1) == std::string_view::npos &&
         line.substr(0, blank).find_first_not_of(kBase64) == std::string_view::npos;
}

bool has_line(std::string_view text, std::string_view wanted) {
  std::string_view line;
  while (take_line(text, line))
    if (line == wanted) return true;
  return false;
}

Opened open_bytes(std::string_view bytes, const std::string& path) {
  if (bytes.starts_with("GGUF")) return {read_gguf_vocabulary(bytes, path), hash_hex(bytes)};
  if (bytes.empty()) reject("{}: empty", path);
  if (bytes.size() > kLargest) reject("{}: too large for a vocabulary", path);
  if (begins_as_json(bytes)) {
    if (!is_tokenizer_json(bytes)) return open_pair(bytes, true, path);
    return {read_tokenizer_json(bytes, path), hash_hex(bytes)};
  }
  if (bytes.starts_with("#version")) return open_pair(bytes, false, path);
  if (begins_as_tiktoken(bytes)) return {read_tiktoken(bytes, path), hash_hex(bytes)};
  if (has_line(bytes, "[UNK]")) return {read_vocab_txt(bytes, path), hash_hex(bytes)};
  reject("{}: not a vocabulary in any form this program knows", path);
}

Vocabulary open_hdf5(const std::string& path, std::vector<h5::Source>& sources) {
  const h5::Input input(path, "");
  Vocabulary vocabulary = read_vocabulary(input);
  sources.push_back(input.source());
  return vocabulary;
}

}  // namespace

Vocabulary read_vocab_txt(std::string_view text, const std::string& file) {
  Vocabulary vocabulary;
  vocabulary.model = "wordpiece";
  vocabulary.pretokenizer = vocabulary.normalizer = "bert";
  std::unordered_map<std::string_view, std::size_t> lines;
  std::string_view line;
  for (std::size_t number = 1; take_line(text, line); ++number) {
    if (line.empty()) reject("{}: line {} is empty", file, number);
    if (find_invalid(line) != std::string_view::npos) reject("{}: line {} is not UTF-8", file, number);
    const auto [known, fresh] = lines.emplace(line, number);
    if (!fresh) reject("{}: line {}: token {} is on line {} already", file, number, in_quotes(line), known->second);
    vocabulary.add(line, line == "[PAD]" || line == "[UNK]" || line == "[CLS]" || line == "[SEP]" || line == "[MASK]");
  }
  find_roles(vocabulary);
  if (vocabulary.unk < 0) reject("{}: no line '[UNK]'", file);
  return finished(std::move(vocabulary), file);
}

Vocabulary open_vocabulary(const std::string& text, std::vector<h5::Source>& sources) {
  if (text == "text8") return text8_vocabulary();
  if (text == "bytes") return bytes_vocabulary();
  if (text == "-") return open_hdf5(text, sources);
  std::string path = text;
  if (std::error_code error; std::filesystem::is_directory(text, error)) {
    path = beside(text, {"tokenizer.json", "encoder.json", "vocab.txt"});
    if (path.empty()) reject("{}: holds neither tokenizer.json nor encoder.json nor vocab.txt", text);
  }
  const FileBytes file(path);
  if (file.view().starts_with(kHdf5)) {
    if (file.is_pipe()) reject("{}: an HDF5 file through a pipe; expected it as standard input, -", path);
    return open_hdf5(path, sources);
  }
  Opened opened = open_bytes(file.view(), path);
  sources.push_back({text, opened.digest, ""});
  return std::move(opened.vocabulary);
}

}  // namespace gdds::text
