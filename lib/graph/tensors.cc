// See tensors.h.
#include "graph/tensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <limits>
#include <set>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "text/gguf.h"

namespace gdds::graph {
namespace {

constexpr std::uint64_t kLargestHeader = 100'000'000;  // as the safetensors library has it
constexpr std::uint64_t kBlock = 32;                   // elements of a quantised block

std::string shown(std::string_view name) { return one_line(std::string(name.substr(0, 60))); }

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Bytes of an element, or of a block of 32 where elements come in blocks.
std::uint64_t unit_bytes(Element element) {
  switch (element) {
    case Element::f64:
      return 8;
    case Element::f32:
      return 4;
    case Element::f16:
    case Element::bf16:
      return 2;
    case Element::q8_0:
      return 34;
    case Element::q4_0:
      return 18;
    case Element::q4_1:
      return 20;
    case Element::other:
      break;
  }
  return 0;
}

bool is_blocked(Element element) {
  return element == Element::q8_0 || element == Element::q4_0 || element == Element::q4_1;
}

std::uint64_t row_bytes(const Tensor& tensor) {
  return (is_blocked(tensor.element) ? tensor.shape[1] / kBlock : tensor.shape[1]) * unit_bytes(tensor.element);
}

// The product, if it is no more than `most`.
bool product_within(const h5::Shape& shape, std::uint64_t size, std::uint64_t most, std::uint64_t& product) {
  product = size;
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) product = 0;
  for (const std::uint64_t n : shape) {
    if (product == 0) return true;
    if (n > most / product) return false;
    product *= n;
  }
  return product <= most;
}

// ---- safetensors ----------------------------------------------------------------------------------------------------

struct SafetensorsType {
  std::string_view name;
  Element element;
  std::uint64_t bytes;
};
constexpr std::array kSafetensorsTypes = std::to_array<SafetensorsType>({
    {"F64", Element::f64, 8},
    {"F32", Element::f32, 4},
    {"F16", Element::f16, 2},
    {"BF16", Element::bf16, 2},
    {"I64", Element::other, 8},
    {"U64", Element::other, 8},
    {"I32", Element::other, 4},
    {"U32", Element::other, 4},
    {"I16", Element::other, 2},
    {"U16", Element::other, 2},
    {"I8", Element::other, 1},
    {"U8", Element::other, 1},
    {"BOOL", Element::other, 1},
    {"F8_E4M3", Element::other, 1},
    {"F8_E5M2", Element::other, 1},
});

// The header as it is parsed, an event at a time: no tree of a hostile document is ever built. Depth 1 holds the
// tensors' names, depth 2 their fields, depth 3 the numbers of a field. Returning false ends the parse; `wrong` says
// why.
class HeaderEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  struct Entry {
    std::string name, type;
    h5::Shape shape, offsets;
    bool has_type = false, has_shape = false, has_offsets = false;
  };
  std::vector<Entry> entries;
  std::string wrong, network;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }  // negative
  bool binary(binary_t&) override { return value(); }
  bool number_unsigned(number_unsigned_t number) override {
    if (in_metadata_ || numbers_ == nullptr) return value();
    if (numbers_->size() == 8) return refuse("has more than 8 numbers in a field");
    numbers_->push_back(number);
    return true;
  }
  bool string(string_t& text) override {
    if (in_metadata_ && depth_ == 2 && field_ == "gdds_network") network = text;
    if (in_metadata_ || depth_ != 2 || field_ != "dtype") return value();
    entries.back().type = text;
    entries.back().has_type = true;
    return true;
  }
  bool start_object(std::size_t) override {
    ++depth_;
    if (in_metadata_ || depth_ == 1) return true;
    if (depth_ != 2) return refuse("has an object where none belongs");
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ == 1) {
      in_metadata_ = text == "__metadata__";
      if (!in_metadata_) entries.push_back({text, "", {}, {}});
    } else {
      field_ = text;
    }
    return true;
  }
  bool end_object() override {
    --depth_;
    if (depth_ == 1) in_metadata_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (in_metadata_) return true;
    if (depth_ != 3 || entries.empty()) return refuse("has an array where none belongs");
    Entry& entry = entries.back();
    if (field_ == "shape" && !entry.has_shape)
      entry.has_shape = true, numbers_ = &entry.shape;
    else if (field_ == "data_offsets" && !entry.has_offsets)
      entry.has_offsets = true, numbers_ = &entry.offsets;
    else
      return refuse("has a field that is not known, or twice");
    return true;
  }
  bool end_array() override {
    --depth_;
    numbers_ = nullptr;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  // A value that means nothing where it stands: passed over in the metadata only.
  bool value() { return in_metadata_ || refuse("has a value of the wrong type"); }
  bool refuse(const char* why) {
    wrong = entries.empty() ? std::string("the header ") + why : "tensor '" + shown(entries.back().name) + "' " + why;
    return false;
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  std::string field_;
  h5::Shape* numbers_ = nullptr;
};

// The entry as a tensor whose data lie inside the `data_bytes` behind the header.
Tensor place(const HeaderEvents::Entry& entry, std::uint64_t data_begin, std::uint64_t data_bytes,
             const std::string& file) {
  const std::string name = shown(entry.name);
  if (!entry.has_type || !entry.has_shape || entry.offsets.size() != 2)
    reject("{}: tensor '{}' lacks dtype, shape or a pair of data_offsets", file, name);
  const std::uint64_t begin = entry.offsets[0], end = entry.offsets[1];
  if (begin > end || end > data_bytes)
    reject("{}: tensor '{}' is at bytes {} to {} of {} bytes of data", file, name, begin, end, data_bytes);
  Tensor tensor{entry.name, entry.shape, Element::other, entry.type, data_begin + begin};
  const auto* const known = std::find_if(kSafetensorsTypes.begin(), kSafetensorsTypes.end(),
                                         [&](const auto& t) { return t.name == entry.type; });
  if (known == kSafetensorsTypes.end()) return tensor;
  tensor.element = known->element;
  std::uint64_t wanted = 0;
  if (!product_within(entry.shape, known->bytes, data_bytes, wanted) || wanted != end - begin)
    reject("{}: tensor '{}' {} of {} has {} bytes of data", file, name, h5::shape_text(entry.shape), known->name,
           end - begin);
  return tensor;
}

void check_apart(std::vector<HeaderEvents::Entry> entries, const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.offsets < b.offsets; });
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i].offsets[0] < entries[i - 1].offsets[1])
      reject("{}: tensors '{}' and '{}' overlap", file, shown(entries[i - 1].name), shown(entries[i].name));
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i].name == entries[i - 1].name) reject("{}: tensor '{}' occurs twice", file, shown(entries[i].name));
}

// ---- npy ------------------------------------------------------------------------------------------------------------

// A walk through the one Python expression that NumPy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4),
// }
class Literal {
 public:
  Literal(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  bool take(std::string_view mark) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(mark)) return false;
    at_ += mark.size();
    return true;
  }
  void expect(std::string_view mark) {
    if (!take(mark)) reject("{}: the header is not NumPy's: expected {} at its byte {}", file_, mark, at_);
  }
  std::string quoted() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"')
      reject("{}: the header is not NumPy's: expected a text at its byte {}", file_, at_);
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) reject("{}: the header is not NumPy's: a text without an end", file_);
    const std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  std::uint64_t number() {
    skip_blanks();
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
      if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10)
        reject("{}: a number of the header is too large", file_);
      value = value * 10 + digit;
    }
    if (at_ == begin) reject("{}: the header is not NumPy's: expected a number at its byte {}", file_, at_);
    return value;
  }
  h5::Shape tuple() {
    h5::Shape numbers;
    expect("(");
    while (!take(")")) {
      if (numbers.size() == 32) reject("{}: an array of more than 32 dimensions", file_);
      numbers.push_back(number());
      if (!take(",")) {
        expect(")");
        break;
      }
    }
    return numbers;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

struct NpyHeader {
  std::string descr;
  bool fortran = false;
  h5::Shape shape;
};

NpyHeader read_npy_header(std::string_view text, const std::string& file) {
  Literal literal(text, file);
  NpyHeader header;
  std::set<std::string> seen;
  literal.expect("{");
  while (!literal.take("}")) {
    const std::string key = literal.quoted();
    literal.expect(":");
    if (key == "descr") {
      if (literal.take("[")) reject("{}: an array of records; expected one of floats", file);
      header.descr = literal.quoted();
    } else if (key == "fortran_order") {
      header.fortran = literal.take("True");
      if (!header.fortran) literal.expect("False");
    } else if (key == "shape") {
      header.shape = literal.tuple();
    } else {
      reject("{}: the header is not NumPy's: '{}' in it", file, shown(key));
    }
    seen.insert(key);
    if (!literal.take(",")) {
      literal.expect("}");
      break;
    }
  }
  if (seen.size() != 3) reject("{}: the header lacks descr, fortran_order or shape", file);
  return header;
}

Element npy_element(const std::string& descr, const std::string& file) {
  if (descr == "<f4") return Element::f32;
  if (descr == "<f2") return Element::f16;
  if (descr == "<f8") return Element::f64;
  reject("{}: elements of type '{}'; expected '<f4', '<f2' or '<f8'", file, shown(descr));
}

// ---- values ---------------------------------------------------------------------------------------------------------

template <typename T>
T value_at(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

float half_at(const char* bytes) { return h5::half_to_float(value_at<std::uint16_t>(bytes)); }

// Low nibbles are elements 0 to 15, high nibbles 16 to 31.
int nibble(const char* bytes, std::uint64_t i) {
  const auto pair = static_cast<unsigned char>(bytes[i % 16]);
  return i < 16 ? pair & 15 : pair >> 4;
}

void expand_block(Element element, const char* block, float* out) {
  const float scale = half_at(block);
  const float least = element == Element::q4_1 ? half_at(block + 2) : 0.0f;
  for (std::uint64_t i = 0; i < kBlock; ++i) {
    if (element == Element::q8_0)
      out[i] = scale * static_cast<float>(static_cast<signed char>(block[2 + i]));
    else if (element == Element::q4_0)
      out[i] = scale * static_cast<float>(nibble(block + 2, i) - 8);
    else
      out[i] = scale * static_cast<float>(nibble(block + 4, i)) + least;
  }
}

Element gguf_element(std::uint32_t kind, std::string& name) {
  switch (kind) {
    case 0:
      name = "F32";
      return Element::f32;
    case 1:
      name = "F16";
      return Element::f16;
    case 2:
      name = "Q4_0";
      return Element::q4_0;
    case 3:
      name = "Q4_1";
      return Element::q4_1;
    case 8:
      name = "Q8_0";
      return Element::q8_0;
    case 30:
      name = "BF16";
      return Element::bf16;
    default:
      name = fmt::format("GGUF's type {}", kind);
      return Element::other;
  }
}

std::string matrix_names(const std::vector<Tensor>& tensors) {
  std::string names;
  std::size_t count = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.shape.size() != 2 || ++count > 10) continue;
    names += (names.empty() ? "" : ", ") + shown(tensor.name);
  }
  if (count == 0) return "it has no matrices";
  return (count > 10 ? fmt::format("its first 10 of {} matrices: ", count) : std::string("its matrices: ")) + names;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_errno(path, "cannot open", errno);
  struct stat status {};
  void* mapped = nullptr;
  int wrong = fstat(descriptor, &status) != 0 ? errno : 0;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (wrong == 0 && size > 0) {
    mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED) wrong = errno;
  }
  close(descriptor);
  if (wrong != 0) fail_errno(path, "cannot read", wrong);
  if (mapped != nullptr) bytes_ = {static_cast<const char*>(mapped), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

std::vector<Tensor> parse_safetensors(std::string_view bytes, const std::string& file, std::string* network) {
  if (bytes.size() < 8) reject("{}: cut off: {} bytes are no safetensors file", file, bytes.size());
  const std::uint64_t header = little_endian(bytes.substr(0, 8));
  if (header > kLargestHeader) reject("{}: a header of {} bytes; expected at most {}", file, header, kLargestHeader);
  if (header > bytes.size() - 8)
    reject("{}: cut off: a header of {} bytes in a file of {}", file, header, bytes.size());
  HeaderEvents events;
  if (!nlohmann::json::sax_parse(bytes.substr(8, header), &events))
    reject("{}: {}", file, events.wrong.empty() ? "the header is not JSON" : events.wrong);
  std::vector<Tensor> tensors;
  for (const auto& entry : events.entries) tensors.push_back(place(entry, 8 + header, bytes.size() - 8 - header, file));
  check_apart(std::move(events.entries), file);
  if (network != nullptr) *network = std::move(events.network);
  return tensors;
}

std::vector<Tensor> parse_gguf_tensors(std::string_view bytes, const std::string& file) {
  std::vector<Tensor> tensors;
  for (const text::GgufTensor& found : text::parse_gguf(bytes, bytes.size(), file).tensors) {
    Tensor tensor{found.name, found.shape, Element::other, "", found.offset};
    tensor.element = gguf_element(found.kind, tensor.type);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Tensor parse_npy(std::string_view bytes, const std::string& file) {
  if (bytes.size() < 12) reject("{}: cut off: {} bytes are no .npy file", file, bytes.size());
  const int version = bytes[6];
  if (version < 1 || version > 3) reject("{}: .npy version {}; expected 1, 2 or 3", file, version);
  const std::size_t begin = version == 1 ? 10 : 12;
  const std::uint64_t header_bytes = little_endian(bytes.substr(8, begin - 8));
  if (header_bytes > bytes.size() - begin)
    reject("{}: cut off: a header of {} bytes in a file of {}", file, header_bytes, bytes.size());
  const NpyHeader header = read_npy_header(bytes.substr(begin, header_bytes), file);
  Tensor tensor{"", header.shape, npy_element(header.descr, file), header.descr, begin + header_bytes};
  if (header.shape.size() != 2) reject("{}: an array {}; expected two dimensions", file, h5::shape_text(header.shape));
  if (header.fortran) reject("{}: in Fortran order; expected C order, numpy.ascontiguousarray makes it", file);
  const std::uint64_t data = bytes.size() - tensor.offset;
  std::uint64_t wanted = 0;
  if (!product_within(header.shape, unit_bytes(tensor.element), data, wanted) || wanted != data)
    reject("{}: an array {} of {} with {} bytes of data", file, h5::shape_text(header.shape), header.descr, data);
  if (data == 0) reject("{}: an array {} without elements", file, h5::shape_text(header.shape));
  return tensor;
}

Tensor raw_tensor(std::uint64_t file_bytes, std::uint64_t columns, const std::string& type, const std::string& file) {
  const Element element = type == "float16" ? Element::f16 : Element::f32;
  assert(columns > 0 && columns <= (std::uint64_t{1} << 32));
  const std::uint64_t row = columns * unit_bytes(element);
  if (file_bytes == 0 || file_bytes % row != 0)
    reject("{}: {} bytes are no whole number of rows of {} {}", file, file_bytes, columns, type);
  return {"", {file_bytes / row, columns}, element, type, 0};
}

const Tensor& choose_tensor(const std::vector<Tensor>& tensors, const std::string& wanted, const std::string& file) {
  static const std::vector<std::string> kUsual = {"wte.weight",
                                                  "transformer.wte.weight",
                                                  "vocab_embed.embedding",
                                                  "backbone.vocab_embed.embedding",
                                                  "embeddings.word_embeddings.weight",
                                                  "token_embd.weight"};
  const Tensor* chosen = nullptr;
  for (const std::string& name : wanted.empty() ? kUsual : std::vector<std::string>{wanted}) {
    const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == name; });
    if (found != tensors.end() && chosen == nullptr) chosen = &*found;
  }
  if (chosen == nullptr && wanted.empty())
    reject("{}: no tensor of the usual names of a token embedding; choose one with --tensor; {}", file,
           matrix_names(tensors));
  if (chosen == nullptr) reject("{}: no tensor '{}'; {}", file, shown(wanted), matrix_names(tensors));
  if (chosen->shape.size() != 2 || chosen->shape[0] == 0 || chosen->shape[1] == 0)
    reject("{}: tensor '{}' is {}; expected two dimensions", file, shown(chosen->name), h5::shape_text(chosen->shape));
  if (chosen->element == Element::other)
    reject("{}: tensor '{}' is of type {}; expected floats", file, shown(chosen->name), shown(chosen->type));
  return *chosen;
}

void read_tensor_rows(std::string_view bytes, const Tensor& tensor, std::uint64_t first, std::uint64_t count,
                      std::span<float> out) {
  (void)count;  // says what `out` must hold; looked at in debug builds
  const std::uint64_t row = row_bytes(tensor);
  assert(out.size() == count * tensor.shape[1] && first + count <= tensor.shape[0]);
  assert(tensor.offset + (first + count) * row <= bytes.size());
  const char* const data = bytes.data() + tensor.offset + first * row;
  if (is_blocked(tensor.element)) {
    for (std::uint64_t i = 0; i < out.size() / kBlock; ++i)
      expand_block(tensor.element, data + i * unit_bytes(tensor.element), out.data() + i * kBlock);
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    switch (tensor.element) {
      case Element::f64:
        out[i] = static_cast<float>(value_at<double>(data + 8 * i));
        break;
      case Element::f32:
        out[i] = value_at<float>(data + 4 * i);
        break;
      case Element::f16:
        out[i] = half_at(data + 2 * i);
        break;
      default:
        out[i] = h5::bfloat_to_float(value_at<std::uint16_t>(data + 2 * i));
    }
  }
}

}  // namespace gdds::graph
