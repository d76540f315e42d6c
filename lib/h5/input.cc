// See input.h.
#include "h5/input.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <limits>
#include <map>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/temporary.h"
#include "h5/descriptor.h"
#include "h5/digest.h"
#include "h5/handle.h"
#include "h5/superblock.h"

namespace gdds::h5 {
namespace {

constexpr std::uint64_t kLargestImage = 64 << 20;     // a batch beyond this is spooled to disk
constexpr std::uint64_t kDensestCompression = 1100;   // deflate cannot do better than 1032 : 1
constexpr std::uint64_t kReadBlock = 8 << 20;
const char* const kStandardInput = "standard input";

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : descriptor_(open(path.c_str(), flags | O_CLOEXEC)) {
    if (descriptor_ < 0) fail_errno(path, "cannot open", errno);
  }
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

Handle access_list() {
  Handle list(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERSION_GE(1, 12, 0) && !H5_VERSION_GE(1, 12, 1))
  H5Pset_file_locking(list.get(), false, true);  // network file systems often cannot lock
#endif
  return list;
}

// An attribute of ours: a string, or one number.
std::optional<Attribute> read_attribute(hid_t id) {
  const Handle type(H5Aget_type(id), H5Tclose);
  const Handle space(H5Aget_space(id), H5Sclose);
  if (!type.valid() || !space.valid() || H5Sget_simple_extent_npoints(space.get()) != 1) return std::nullopt;
  switch (H5Tget_class(type.get())) {
    case H5T_INTEGER: {
      std::int64_t value = 0;
      if (H5Aread(id, H5T_NATIVE_INT64, &value) < 0) return std::nullopt;
      return value;
    }
    case H5T_FLOAT: {
      double value = 0;
      if (H5Aread(id, H5T_NATIVE_DOUBLE, &value) < 0) return std::nullopt;
      return value;
    }
    case H5T_STRING: {
      if (H5Tis_variable_str(type.get()) > 0) {  // as h5py writes them
        char* text = nullptr;
        if (H5Aread(id, type.get(), &text) < 0 || text == nullptr) return std::nullopt;
        std::string value = text;
        H5free_memory(text);
        return value;
      }
      std::string value(H5Tget_size(type.get()), '\0');
      if (H5Aread(id, type.get(), value.data()) < 0) return std::nullopt;
      value.resize(std::min(value.find('\0'), value.size()));
      return value;
    }
    default: return std::nullopt;
  }
}

const char* attribute_type(const Attribute& value) {
  return std::holds_alternative<std::string>(value) ? "string" : std::holds_alternative<double>(value) ? "real" : "integer";
}

}  // namespace

struct Input::Impl {
  std::string argument, name, kind;
  std::unique_ptr<TemporaryFile> spool;
  Handle file;
  std::uint64_t file_bytes = 0;
  Contents contents;
  std::vector<std::string> groups;
  std::map<std::string, Attribute> attributes;

  void open_path(const std::string& path);
  void open_image(const std::vector<unsigned char>& image);
  void read_batch(int descriptor, std::span<const unsigned char> head);
  void read_only_batch(int descriptor);
  void examine(std::string_view wanted);
  void list_objects();
  void list_object(const char* path, bool is_dataset);
  void list_attributes(hid_t object, const std::string& path);

  const Contents::Dataset& dataset(const std::string& path) const {
    for (const auto& d : contents.datasets)
      if (d.path == path) return d;
    reject("{}: {} is missing", name, path);
  }
};

// A regular file is used where it lies.
void Input::Impl::open_path(const std::string& path) {
  {
    const Descriptor descriptor(path, O_RDONLY);
    struct stat status {};
    if (fstat(descriptor.get(), &status) != 0) fail_errno(name, "cannot open", errno);
    unsigned char head[kSuperblockBytes];
    const std::size_t n = read_up_to(descriptor.get(), head, sizeof head, name);
    if (n == 0) reject("{}: empty", name);
    Frame frame;
    if (const std::string wrong = parse_superblock({head, n}, frame); !wrong.empty()) reject("{}: {}", name, wrong);
    file_bytes = static_cast<std::uint64_t>(status.st_size);
    if (file_bytes < frame.bytes) reject("{}: cut off: expected {} bytes, found {}", name, frame.bytes, file_bytes);
    if (file_bytes > frame.bytes)
      reject("{}: {} bytes follow its end; a stream of batches?", name, file_bytes - frame.bytes);
  }
  const Handle list = access_list();
  file = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, list.get()), H5Fclose);
  if (!file.valid()) fail_read(name, "the file");
}

void Input::Impl::open_image(const std::vector<unsigned char>& image) {
  const Handle list = access_list();
  H5Pset_fapl_core(list.get(), 1 << 20, false);
  H5Pset_file_image(list.get(), const_cast<unsigned char*>(image.data()), image.size());
  // HDF5 takes two images of one name for one file.
  static std::atomic<std::uint64_t> number{0};
  file = Handle(H5Fopen(fmt::format("image {}", ++number).c_str(), H5F_ACC_RDONLY, list.get()), H5Fclose);
  if (!file.valid()) fail_read(name, "the file");
}

// The file whose first bytes are in `head` and whose rest comes from the descriptor: into memory, or to disk if large.
void Input::Impl::read_batch(int descriptor, std::span<const unsigned char> head) {
  Frame frame;
  if (const std::string wrong = parse_superblock(head, frame); !wrong.empty()) reject("{}: {}", name, wrong);
  file_bytes = frame.bytes;
  std::uint64_t got = head.size();
  if (frame.bytes <= kLargestImage) {
    std::vector<unsigned char> image(head.begin(), head.end());
    image.resize(frame.bytes);
    got += read_up_to(descriptor, image.data() + head.size(), frame.bytes - head.size(), name);
    if (got == frame.bytes) return open_image(image);
  } else {
    spool = std::make_unique<TemporaryFile>(spool_directory(), "gdds-input", "temporary file");
    write_all(spool->descriptor(), head.data(), head.size(), spool->path());
    got += transfer(descriptor, spool->descriptor(), frame.bytes - head.size(), name, spool->path());
    if (got == frame.bytes) {
      open_path(spool->path());
      return spool->unlink();
    }
  }
  reject("{}: cut off: expected {} bytes, found {}", name, frame.bytes, got);
}

void Input::Impl::read_only_batch(int descriptor) {
  unsigned char head[kSuperblockBytes];
  const std::size_t n = read_up_to(descriptor, head, sizeof head, name);
  if (n == 0) reject("{}: empty; expected an HDF5 file", name);
  read_batch(descriptor, {head, n});
  unsigned char more = 0;
  if (read_up_to(descriptor, &more, 1, name) != 0)
    reject("{}: more data follow the end of the file; expected one file, not a stream of batches", name);
}

void Input::Impl::list_attributes(hid_t object, const std::string& path) {
  struct Context {
    Impl* impl;
    const std::string& path;
    bool damaged = false;
  } context{this, path};
  const auto visit = [](hid_t id, const char* attribute, const H5A_info_t*, void* data) -> herr_t {
    auto& c = *static_cast<Context*>(data);
    const Handle handle(H5Aopen(id, attribute, H5P_DEFAULT), H5Aclose);
    if (!handle.valid()) return -1;
    const std::string full = c.path + "@" + attribute;
    if (const auto value = read_attribute(handle.get())) {
      c.impl->attributes[full] = *value;
      const auto* const integer = std::get_if<std::int64_t>(&*value);
      c.impl->contents.attributes.push_back({full, attribute_type(*value), integer != nullptr ? *integer : 0});
    }
    return 0;
  };
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &context) < 0)
    fail_read(name, fmt::format("an attribute of {}", path));
}

void Input::Impl::list_object(const char* path, bool is_dataset) {
  const std::string full = std::string(path) == "." ? "/" : std::string("/") + path;
  const Handle object(H5Oopen(file.get(), full.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object.valid()) fail_read(name, full);
  list_attributes(object.get(), full);
  if (!is_dataset) {
    if (full != "/") groups.push_back(full);
    return;
  }
  const Handle type(H5Dget_type(object.get()), H5Tclose);
  const Handle space(H5Dget_space(object.get()), H5Sclose);
  if (!type.valid() || !space.valid()) fail_read(name, full);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  std::vector<hsize_t> sizes(static_cast<std::size_t>(std::max(rank, 0)));
  if (rank > 0) H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
  Contents::Dataset found{full, Type::uint8, Shape(sizes.begin(), sizes.end())};
  if (rank >= 0 && element_type(type.get(), found.type)) {
    contents.datasets.push_back(std::move(found));
  } else {
    contents.foreign.push_back(full);
  }
}

void Input::Impl::list_objects() {
  std::vector<std::pair<std::string, bool>> objects;
  const auto visit = [](hid_t, const char* path, const H5O_info_t* info, void* data) -> herr_t {
    auto& list = *static_cast<std::vector<std::pair<std::string, bool>>*>(data);
    if (info->type == H5O_TYPE_GROUP || info->type == H5O_TYPE_DATASET) list.emplace_back(path, info->type == H5O_TYPE_DATASET);
    return 0;
  };
  // In native order: for any other HDF5 1.10 builds a table first, and frees it unfilled when the file is damaged.
  if (H5Ovisit2(file.get(), H5_INDEX_NAME, H5_ITER_NATIVE, visit, &objects, H5O_INFO_BASIC) < 0)
    fail_read(name, "the list of its contents");
  std::sort(objects.begin(), objects.end());
  for (const auto& [path, is_dataset] : objects) list_object(path.c_str(), is_dataset);
}

void Input::Impl::examine(std::string_view wanted) {
  list_objects();
  const auto found = attributes.find("/@gdds_kind");
  const auto* const text = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (text == nullptr) reject("{}: an HDF5 file, but none of this toolkit's (no gdds_kind)", name);
  kind = *text;
  if (!wanted.empty() && kind != wanted) reject("{}: expected kind '{}', found '{}'", name, wanted, kind);
  const Kind* const known = find_kind(kind);
  if (known == nullptr) reject("{}: of a kind this version does not know, '{}'", name, kind);
  if (const auto version = attributes.find("/@gdds_schema"); version != attributes.end()) {
    const auto* const number = std::get_if<std::int64_t>(&version->second);
    if (number != nullptr && *number != kSchemaVersion)
      reject("{}: schema version {} of kind '{}'; this version reads {}", name, *number, kind, kSchemaVersion);
  }
  if (const std::string wrong = check_contents(*known, contents); !wrong.empty()) reject("{}: {}", name, wrong);
}

Input::Input(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Input::~Input() = default;
Input::Input(Input&&) noexcept = default;
Input& Input::operator=(Input&&) noexcept = default;

Input::Input(const std::string& path, std::string_view kind) : impl_(std::make_unique<Impl>()) {
  start_library();
  impl_->argument = path;
  impl_->name = path == "-" ? kStandardInput : path;
  struct stat status {};
  if (path == "-") {
    if (isatty(STDIN_FILENO) == 1) bad_usage("standard input is a terminal; name a file, or give one by a pipe");
    const bool whole = fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink > 0 &&
                       lseek(STDIN_FILENO, 0, SEEK_CUR) == 0;
    whole ? impl_->open_path("/proc/self/fd/0") : impl_->read_only_batch(STDIN_FILENO);
  } else if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    if (S_ISDIR(status.st_mode)) fail_errno(path, "cannot open", EISDIR);
    const Descriptor descriptor(path, O_RDONLY);
    impl_->read_only_batch(descriptor.get());
  } else {
    impl_->open_path(path);
  }
  impl_->examine(kind);
}

const std::string& Input::name() const { return impl_->name; }
const std::string& Input::kind() const { return impl_->kind; }
const Contents& Input::contents() const { return impl_->contents; }
std::vector<std::string> Input::groups() const { return impl_->groups; }
Type Input::type(const std::string& path) const { return impl_->dataset(path).type; }
Shape Input::shape(const std::string& path) const { return impl_->dataset(path).shape; }

bool Input::has(const std::string& path) const {
  return std::any_of(impl_->contents.datasets.begin(), impl_->contents.datasets.end(),
                     [&](const auto& d) { return d.path == path; });
}

std::uint64_t Input::rows(const std::string& path) const {
  const Shape shape = this->shape(path);
  return shape.empty() ? 1 : shape[0];
}

// The number of elements, if the file can hold as many: a few damaged or hostile bytes must not allocate the machine.
std::uint64_t Input::checked_count(const std::string& path) const {
  const auto& dataset = impl_->dataset(path);
  const std::uint64_t most = impl_->file_bytes * kDensestCompression / type_size(dataset.type);
  std::uint64_t count = 1;
  for (const std::uint64_t n : dataset.shape) {
    if (n != 0 && count > most / n)
      reject("{}: {} {} is more than a file of {} bytes can hold", name(), path, shape_text(dataset.shape), impl_->file_bytes);
    count *= n;
  }
  return count;
}

void Input::check_fits(const std::string& path, std::uint64_t count, std::size_t room) const {
  Shape shape = this->shape(path);
  if (!shape.empty()) shape[0] = count;
  assert(element_count(shape) <= room);
  (void)room;
}

void Input::read_raw(const std::string& path, std::uint64_t first, std::uint64_t count, Type type, void* out) const {
  const Type stored = this->type(path);
  const bool narrow = stored == Type::float16 || stored == Type::bfloat16;
  if (type == Type::float32 && narrow) {
    // Widened in blocks by our own reading of the bits: HDF5's conversion is a hundred times slower.
    std::uint64_t row = 1;
    for (const std::uint64_t n : shape(path)) row *= n;
    row = rows(path) > 0 ? row / rows(path) : 0;
    const std::uint64_t step = std::max<std::uint64_t>(1, kReadBlock / 2 / std::max<std::uint64_t>(1, row));
    std::vector<std::uint16_t> block(std::min(step, count) * row);
    auto* values = static_cast<float*>(out);
    for (std::uint64_t at = 0; at < count; at += step) {
      const std::uint64_t now = std::min(step, count - at);
      read_stored(path, first + at, now, block.data());
      for (std::uint64_t i = 0; i < now * row; ++i)
        *values++ = stored == Type::float16 ? half_to_float(block[i]) : bfloat_to_float(block[i]);
    }
    return;
  }
  const auto is_float = [](Type t) { return t == Type::float32 || t == Type::float64; };
  const bool widening = type_size(stored) < type_size(type) && !narrow && is_float(stored) == is_float(type);
  if (stored != type && !widening)
    reject("{}: {}: expected {}, found {}", name(), path, type_name(type), type_name(stored));
  const Handle dataset(H5Dopen2(impl_->file.get(), path.c_str(), H5P_DEFAULT), H5Dclose);
  const Handle space(dataset.valid() ? H5Dget_space(dataset.get()) : -1, H5Sclose);
  if (!space.valid()) fail_read(name(), path);
  const Shape shape = this->shape(path);
  std::vector<hsize_t> start(shape.size(), 0), size(shape.begin(), shape.end());
  hid_t memory_id = H5S_ALL, file_id = H5S_ALL;
  Handle memory;
  if (!shape.empty()) {
    assert(first + count <= shape[0]);
    start[0] = first;
    size[0] = count;
    if (element_count({size.begin(), size.end()}) == 0) return;
    memory = Handle(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose);
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr);
    memory_id = memory.get();
    file_id = space.get();
  }
  const Handle element = stored_type(type);
  if (H5Dread(dataset.get(), element.get(), memory_id, file_id, H5P_DEFAULT, out) < 0) fail_read(name(), path);
}

void Input::read_stored(const std::string& path, std::uint64_t first, std::uint64_t count, void* out) const {
  read_raw(path, first, count, type(path), out);
}

Matrix Input::matrix(const std::string& path) const {
  const Shape shape = this->shape(path);
  if (shape.size() != 2) reject("{}: {}: expected a matrix, found {}", name(), path, shape_text(shape));
  return {shape[0], shape[1], read<float>(path)};
}

std::string Input::text(const std::string& path) const {
  const auto bytes = read<std::uint8_t>(path);
  return {bytes.begin(), bytes.end()};
}

std::optional<Attribute> Input::attribute(const std::string& path) const {
  const auto found = impl_->attributes.find(path);
  if (found == impl_->attributes.end()) return std::nullopt;
  return found->second;
}

std::string Input::string_attribute(const std::string& path) const {
  const auto value = attribute(path);
  if (!value || !std::holds_alternative<std::string>(*value)) reject("{}: {} is missing or no string", name(), path);
  return std::get<std::string>(*value);
}

std::int64_t Input::integer_attribute(const std::string& path) const {
  const auto value = attribute(path);
  if (!value || !std::holds_alternative<std::int64_t>(*value)) reject("{}: {} is missing or no integer", name(), path);
  return std::get<std::int64_t>(*value);
}

std::string Input::history() const { return has("/history") ? text("/history") : ""; }

std::string Input::digest() const {
  const auto stored = attribute("/@gdds_digest");
  if (stored && std::holds_alternative<std::string>(*stored)) return std::get<std::string>(*stored);
  return computed_digest();
}

std::string Input::computed_digest() const {
  std::map<std::string, DatasetDigest> datasets;
  for (const auto& d : impl_->contents.datasets) {
    checked_count(d.path);
    const std::uint64_t row_bytes = rows(d.path) == 0 ? 0 : element_count(d.shape) / rows(d.path) * type_size(d.type);
    const std::uint64_t step = std::max<std::uint64_t>(1, kReadBlock / std::max<std::uint64_t>(1, row_bytes));
    std::vector<char> block(std::min(step, rows(d.path)) * row_bytes);
    Hash hash;
    for (std::uint64_t at = 0; at < rows(d.path); at += step) {
      const std::uint64_t now = std::min(step, rows(d.path) - at);
      read_stored(d.path, at, now, block.data());
      hash.update(block.data(), now * row_bytes);
    }
    datasets[d.path] = {d.type, d.shape, hash.hex()};
  }
  return contents_digest(datasets, impl_->attributes);
}

Source Input::source() const { return {impl_->argument, digest(), history()}; }

StreamReader::StreamReader(const std::string& path, std::string_view kind)
    : path_(path), name_(path == "-" ? kStandardInput : path), kind_(kind) {
  start_library();
  if (path == "-" && isatty(STDIN_FILENO) == 1)
    bad_usage("standard input is a terminal; name a file, or give batches by a pipe");
  descriptor_ = path == "-" ? STDIN_FILENO : Descriptor(path, O_RDONLY).release();
}

StreamReader::~StreamReader() {
  if (path_ != "-" && descriptor_ >= 0) ::close(descriptor_);
}

std::optional<Input> StreamReader::next() {
  unsigned char head[kSuperblockBytes];
  const std::size_t n = read_up_to(descriptor_, head, sizeof head, name_);
  if (n == 0 && batch_ == 0) reject("{}: empty; expected at least one batch{}", name_, kind_.empty() ? "" : fmt::format(" of kind '{}'", kind_));
  if (n == 0) return std::nullopt;
  auto impl = std::make_unique<Input::Impl>();
  impl->argument = path_;
  impl->name = fmt::format("{}: batch {}", name_, ++batch_);
  impl->read_batch(descriptor_, {head, n});
  impl->examine(kind_);
  kind_ = impl->kind;  // a stream is of one kind, asked for or not
  return Input(std::move(impl));
}

bool is_stream(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const Descriptor descriptor(path, O_RDONLY);
  unsigned char head[kSuperblockBytes];
  const std::size_t bytes = read_up_to(descriptor.get(), head, sizeof head, path);
  Frame frame;
  return parse_superblock({head, bytes}, frame).empty() && frame.bytes < static_cast<std::uint64_t>(status.st_size);
}

void check_same_vocabulary(const Input& a, const Input& b) {
  if (a.string_attribute("/vocab@hash") == b.string_attribute("/vocab@hash")) return;
  const auto described = [](const Input& input) {
    return fmt::format("'{}' ({} tokens, {})", input.string_attribute("/vocab@name"), input.integer_attribute("/vocab@size"),
                       input.string_attribute("/vocab@hash").substr(0, 8));
  };
  reject("{}: its vocabulary is {}, but that of {} is {}", b.name(), described(b), a.name(), described(a));
}

}  // namespace gdds::h5
