// See gguf.h.
#include "text/gguf.h"

#include <bit>
#include <limits>
#include <set>

#include "base/error.h"

namespace gdds::text {
namespace {

enum Kind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// Bytes of a value; 0 for those of no fixed size and for unknown types.
std::size_t value_size(std::uint32_t kind) {
  switch (kind) {
    case u8: case i8: case boolean: return 1;
    case u16: case i16: return 2;
    case u32: case i32: case f32: return 4;
    case u64: case i64: case f64: return 8;
    default: return 0;
  }
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The signed number in the low `size` bytes.
std::int64_t sign_extended(std::uint64_t value, std::size_t size) {
  const int unused = 64 - 8 * static_cast<int>(size);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

std::string shown(std::string_view name) { return one_line(std::string(name.substr(0, 60))); }

// A walk through the header's bytes that never leaves them.
class Walk {
 public:
  Walk(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  std::string_view take(std::uint64_t count) {
    if (count > left()) reject("{}: cut off: {} bytes wanted at byte {}, {} are there", file_, count, at_, left());
    const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }
  std::uint64_t number(std::size_t size) { return little_endian(take(size)); }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number(4)); }
  std::string_view text() { return take(number(8)); }
  // A count of things that take at least `size` bytes each: believed only if so many can follow.
  std::uint64_t count(std::size_t size, const char* what) {
    const std::uint64_t value = number(8);
    if (value > left() / size) reject("{}: {} {} do not fit into the {} bytes that follow", file_, value, what, left());
    return value;
  }
  std::string_view since(std::size_t begin) const { return bytes_.substr(begin, at_ - begin); }
  const std::string& file() const { return file_; }

 private:
  std::string_view bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
};

GgufArray take_array(Walk& walk, std::string_view key) {
  GgufArray values;
  values.type = walk.number32();
  if (values.type == array) reject("{}: key '{}': arrays of arrays are not supported", walk.file(), shown(key));
  if (values.type != string && value_size(values.type) == 0)
    reject("{}: key '{}': unknown type {}", walk.file(), shown(key), values.type);
  values.count = walk.count(values.type == string ? 8 : value_size(values.type), "array elements");
  const std::size_t begin = walk.at();
  if (values.type == string) {
    for (std::uint64_t i = 0; i < values.count; ++i) walk.text();
  } else {
    walk.take(values.count * value_size(values.type));
  }
  values.elements = walk.since(begin);
  return values;
}

GgufValue take_value(Walk& walk, std::string_view key) {
  const std::uint32_t kind = walk.number32();
  if (kind == string) return walk.text();
  if (kind == array) return take_array(walk, key);
  const std::size_t size = value_size(kind);
  if (size == 0) reject("{}: key '{}': unknown type {}", walk.file(), shown(key), kind);
  const std::uint64_t bits = walk.number(size);
  switch (kind) {
    case i8: case i16: case i32: case i64: return sign_extended(bits, size);
    case f32: return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case f64: return std::bit_cast<double>(bits);
    case boolean: return bits != 0;
    default: return bits;
  }
}

// How the elements of a tensor are packed: so many to a block of so many bytes. {0, 0}: a kind we do not read.
struct Packing {
  std::uint64_t elements, bytes;
};
Packing packing_of(std::uint32_t kind) {
  switch (kind) {
    case 0: return {1, 4};     // F32
    case 1: return {1, 2};     // F16
    case 2: return {32, 18};   // Q4_0
    case 3: return {32, 20};   // Q4_1
    case 8: return {32, 34};   // Q8_0
    case 30: return {1, 2};    // BF16
    default: return {0, 0};
  }
}

// The offset is still that from the beginning of the data.
GgufTensor take_tensor(Walk& walk) {
  GgufTensor tensor;
  tensor.name = walk.text();
  const std::uint32_t dimensions = walk.number32();
  if (dimensions < 1 || dimensions > 4)
    reject("{}: tensor '{}' has {} dimensions; expected 1 to 4", walk.file(), shown(tensor.name), dimensions);
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    tensor.shape.insert(tensor.shape.begin(), walk.number(8));
    if (tensor.shape.front() == 0) reject("{}: tensor '{}' has a dimension of 0", walk.file(), shown(tensor.name));
  }
  tensor.kind = walk.number32();
  tensor.offset = walk.number(8);
  return tensor;
}

// Moves the offset from the data's beginning to the file's, having seen that the tensor lies inside the file.
void place(GgufTensor& tensor, std::uint64_t data_begin, std::uint64_t file_bytes, const std::string& file) {
  const auto outside = [&] { reject("{}: tensor '{}' lies outside the file", file, shown(tensor.name)); };
  if (data_begin > file_bytes || tensor.offset > file_bytes - data_begin) outside();
  tensor.offset += data_begin;
  const auto [elements, bytes] = packing_of(tensor.kind);
  if (elements == 0) return;
  if (tensor.shape.back() % elements != 0)
    reject("{}: tensor '{}' has rows of {}; blocks take {}", file, shown(tensor.name), tensor.shape.back(), elements);
  std::uint64_t blocks = tensor.shape.back() / elements;
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) {
    if (blocks > std::numeric_limits<std::uint64_t>::max() / tensor.shape[i]) outside();
    blocks *= tensor.shape[i];
  }
  if (blocks > (file_bytes - tensor.offset) / bytes) outside();
}

std::uint64_t alignment_of(const Gguf& gguf, const std::string& file) {
  const auto found = gguf.values.find("general.alignment");
  if (found == gguf.values.end()) return 32;
  const auto* alignment = std::get_if<std::uint64_t>(&found->second);
  if (alignment == nullptr || !std::has_single_bit(*alignment))
    reject("{}: general.alignment is no power of two", file);
  return *alignment;
}

}  // namespace

Gguf parse_gguf(std::string_view bytes, std::uint64_t file_bytes, const std::string& file) {
  Walk walk(bytes, file);
  if (!bytes.starts_with("GGUF")) reject("{}: not a GGUF file", file);
  walk.take(4);
  Gguf gguf;
  gguf.version = walk.number32();
  if (gguf.version != 2 && gguf.version != 3) reject("{}: GGUF version {}; expected 2 or 3", file, gguf.version);
  const std::uint64_t tensors = walk.count(32, "tensors");  // name, one dimension, kind, offset
  const std::uint64_t keys = walk.count(13, "keys");        // name, type, one byte
  for (std::uint64_t i = 0; i < keys; ++i) {
    const std::string_view key = walk.text();
    if (!gguf.values.emplace(key, take_value(walk, key)).second) reject("{}: key '{}' occurs twice", file, shown(key));
  }
  const std::uint64_t alignment = alignment_of(gguf, file);
  std::set<std::string, std::less<>> names;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    gguf.tensors.push_back(take_tensor(walk));
    const std::string& name = gguf.tensors.back().name;
    if (!names.insert(name).second) reject("{}: tensor '{}' occurs twice", file, shown(name));
  }
  const std::uint64_t padding = (alignment - walk.at() % alignment) % alignment;
  // Of an absurd alignment the sum could wrap; such data begin outside the file in any case.
  const std::uint64_t data_begin =
      padding > std::numeric_limits<std::uint64_t>::max() - walk.at() ? padding : walk.at() + padding;
  for (GgufTensor& tensor : gguf.tensors) place(tensor, data_begin, file_bytes, file);
  return gguf;
}

std::vector<std::string_view> gguf_strings(const GgufArray& array, const std::string& file) {
  if (array.type != string) reject("{}: expected an array of strings, found one of type {}", file, array.type);
  Walk walk(array.elements, file);
  std::vector<std::string_view> values;
  values.reserve(static_cast<std::size_t>(array.count));  // parse_gguf() has seen them all
  for (std::uint64_t i = 0; i < array.count; ++i) values.push_back(walk.text());
  return values;
}

std::vector<std::int64_t> gguf_integers(const GgufArray& array, const std::string& file) {
  const bool is_signed = array.type == i8 || array.type == i16 || array.type == i32 || array.type == i64;
  if (!is_signed && array.type != u8 && array.type != u16 && array.type != u32 && array.type != u64)
    reject("{}: expected an array of integers, found one of type {}", file, array.type);
  const std::size_t size = value_size(array.type);
  Walk walk(array.elements, file);
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(array.count));
  for (std::uint64_t i = 0; i < array.count; ++i) {
    const std::uint64_t bits = walk.number(size);
    if (!is_signed && bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      reject("{}: the integer {} in an array is too large", file, bits);
    values.push_back(is_signed ? sign_extended(bits, size) : static_cast<std::int64_t>(bits));
  }
  return values;
}

}  // namespace gdds::text
