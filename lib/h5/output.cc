// See output.h.
#include "h5/output.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/temporary.h"
#include "h5/descriptor.h"
#include "h5/digest.h"
#include "h5/handle.h"
#include "h5/schema.h"
#include "h5/superblock.h"

namespace gdds::h5 {
namespace {

constexpr std::uint64_t kChunkBytes = 512 << 10;
constexpr std::uint64_t kCopyBlock = 8 << 20;
const char* const kStandardOutput = "standard output";

// Where finished bytes go: a file by its name (replaced at the end), or a descriptor that takes them as they come.
class Destination {
 public:
  explicit Destination(const std::string& path, bool binary = true);
  ~Destination() {
    if (owned_) ::close(descriptor_);
  }
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  const std::string& name() const { return name_; }
  bool is_file() const { return descriptor_ < 0; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  // An empty file, in the destination's folder if it is to be renamed there.
  std::unique_ptr<TemporaryFile> temporary() const;

 private:
  std::string name_, path_;
  int descriptor_ = -1;
  bool owned_ = false;
};

Destination::Destination(const std::string& path, bool binary) : name_(path == "-" ? kStandardOutput : path), path_(path) {
  if (path == "-") {
    if (binary && isatty(STDOUT_FILENO) == 1) bad_usage("standard output is a terminal; name a file with --output, or redirect it");
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);
    if (flags == -1 || (flags & O_ACCMODE) == O_RDONLY) fail_errno(name_, "cannot write", EBADF);
    descriptor_ = STDOUT_FILENO;
    return;
  }
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return;
  if (S_ISDIR(status.st_mode)) fail_errno(path, "cannot write", EISDIR);
  if (S_ISREG(status.st_mode)) {
    path_ = std::filesystem::canonical(path);  // a link keeps pointing at what it points at
    if (access(path_.c_str(), W_OK) != 0) fail_errno(path, "cannot write", errno);
    return;
  }
  descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail_errno(path, "cannot write", errno);
  owned_ = true;
}

std::unique_ptr<TemporaryFile> Destination::temporary() const {
  if (!is_file()) return std::make_unique<TemporaryFile>(spool_directory(), "gdds-output", "temporary file");
  const std::filesystem::path path(path_);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  return std::make_unique<TemporaryFile>(folder, path.filename().string(), name_);
}

// A file in memory. HDF5 frees the memory when the file is closed, complete at last; that is the moment to take it.
struct Image {
  unsigned char* bytes = nullptr;
  Image() = default;
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() { std::free(bytes); }
  void attach_to(hid_t access);
};

void Image::attach_to(hid_t access) {
  H5FD_file_image_callbacks_t calls{};
  calls.image_malloc = [](size_t size, H5FD_file_image_op_t, void*) { return std::malloc(size); };
  calls.image_memcpy = [](void* to, const void* from, size_t size, H5FD_file_image_op_t, void*) { return std::memcpy(to, from, size); };
  calls.image_realloc = [](void* old, size_t size, H5FD_file_image_op_t, void*) { return std::realloc(old, size); };
  calls.image_free = [](void* memory, H5FD_file_image_op_t operation, void* image) -> herr_t {
    if (operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE) {
      static_cast<Image*>(image)->bytes = static_cast<unsigned char*>(memory);
    } else {
      std::free(memory);
    }
    return 0;
  };
  calls.udata_copy = [](void* image) { return image; };
  calls.udata_free = [](void*) -> herr_t { return 0; };
  calls.udata = this;
  H5Pset_file_image_callbacks(access, &calls);
}

// Same bytes from the same contents, and links and attributes listed in the object's own header, however many: HDF5 1.10
// can crash on damage in the heaps it uses for long lists otherwise.
void set_object_form(hid_t creation, bool has_links) {
  H5Pset_obj_track_times(creation, false);
  H5Pset_attr_phase_change(creation, 65535, 65535);
  if (has_links) H5Pset_link_phase_change(creation, 65535, 65535);
}

// On disk at `path`, or in `image`.
Handle new_file(const std::string& path, Image* image, const std::string& name) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);  // checksums on all metadata
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERSION_GE(1, 12, 0) && !H5_VERSION_GE(1, 12, 1))
  H5Pset_file_locking(access.get(), false, true);
#endif
  if (image != nullptr) {
    H5Pset_fapl_core(access.get(), 1 << 20, false);
    image->attach_to(access.get());
  }
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  set_object_form(creation.get(), true);
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose);
  if (!file.valid()) fail_write(name, "the file");
  return file;
}

// Chunks of about kChunkBytes that waste little at the end: as many rows as fit, or parts of a row that is longer.
std::vector<hsize_t> chunk_shape(const Shape& shape, std::size_t element_bytes) {
  std::vector<hsize_t> chunk(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) chunk[i] = std::max<std::uint64_t>(1, shape[i]);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::uint64_t inner = element_bytes;  // bytes of one step along dimension i
    for (std::size_t j = i + 1; j < shape.size(); ++j) inner *= chunk[j];
    const std::uint64_t fit = std::max<std::uint64_t>(1, kChunkBytes / inner);
    const std::uint64_t parts = (chunk[i] - 1) / fit + 1;
    chunk[i] = shape[i] == kUnknown ? fit : (chunk[i] - 1) / parts + 1;  // equal parts
    if (inner <= kChunkBytes) break;
  }
  return chunk;
}

Handle text_type(std::size_t size) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), std::max<std::size_t>(1, size));
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  return type;
}

std::pair<std::string, std::string> object_and_attribute(const std::string& path) {
  const auto at = path.find('@');
  assert(at != std::string::npos);
  return {path.substr(0, at), path.substr(at + 1)};
}

}  // namespace

void OutputOptions::add_to(Options& options) {
  options.option("output,o", path, "file to write, - for standard output").placeholder("FILE").neutral();
  options.option("compress", compress, "deflate level, 0 for none").range(0, 9).neutral();
  options.option("no-history", no_history, "leave out /history, the record of how the file was made").neutral();
}

// One dataset being written. It is created when its size is known: at once, or with the first full chunk or the end.
struct Writer::Impl {
  std::string path, file_name;
  hid_t file = -1;
  Type type = Type::uint8;
  Shape shape;  // shape[0] may be kUnknown
  int compress = 0;
  std::vector<hsize_t> chunk;
  std::uint64_t row_elements = 1, chunk_rows = 1;
  std::uint64_t rows_taken = 0, rows_written = 0;
  std::vector<char> buffer;  // rows that do not fill a chunk yet
  Handle dataset;
  Hash hash;

  std::uint64_t row_bytes() const { return row_elements * type_size(type); }
  void create(bool extendible);
  void put(const char* rows, std::uint64_t count);
  void append(const char* values, std::uint64_t rows);
  void finish();
};

void Writer::Impl::create(bool extendible) {
  std::vector<hsize_t> now(shape.begin(), shape.end()), most;
  if (extendible) now[0] = 0;
  most = now;
  // A dataset of no rows would not be allowed a chunk; it may grow, and never does.
  for (std::size_t i = 0; i < most.size(); ++i)
    if (most[i] == 0 || (extendible && i == 0)) most[i] = H5S_UNLIMITED;
  const Handle space(H5Screate_simple(static_cast<int>(now.size()), now.data(), most.data()), H5Sclose);
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  set_object_form(creation.get(), false);
  H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
  if (compress > 0) {
    H5Pset_shuffle(creation.get());
    H5Pset_deflate(creation.get(), static_cast<unsigned>(compress));
  }
  H5Pset_fletcher32(creation.get());  // last: over the bytes as they lie in the file
  const Handle element = stored_type(type);
  dataset = Handle(H5Dcreate2(file, path.c_str(), element.get(), space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) fail_write(file_name, path);
}

void Writer::Impl::put(const char* rows, std::uint64_t count) {
  const Handle element = stored_type(type);
  std::vector<hsize_t> start(shape.size(), 0), size(shape.begin(), shape.end());
  start[0] = rows_written;
  size[0] = count;
  if (shape[0] == kUnknown) {
    std::vector<hsize_t> grown = size;
    grown[0] = rows_written + count;
    if (H5Dset_extent(dataset.get(), grown.data()) < 0) fail_write(file_name, path);
  }
  const Handle memory(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose);
  const Handle space(H5Dget_space(dataset.get()), H5Sclose);
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr);
  if (H5Dwrite(dataset.get(), element.get(), memory.get(), space.get(), H5P_DEFAULT, rows) < 0) fail_write(file_name, path);
  rows_written += count;
}

void Writer::Impl::append(const char* values, std::uint64_t rows) {
  hash.update(values, rows * row_bytes());
  rows_taken += rows;
  assert(shape[0] == kUnknown || rows_taken <= shape[0]);
  const std::uint64_t chunk_bytes = chunk_rows * row_bytes();
  while (rows > 0) {
    if (buffer.empty() && rows >= chunk_rows) {
      if (!dataset.valid()) create(shape[0] == kUnknown);
      const std::uint64_t whole = rows / chunk_rows * chunk_rows;
      put(values, whole);
      values += whole * row_bytes();
      rows -= whole;
      continue;
    }
    const std::uint64_t taken = std::min<std::uint64_t>(rows, chunk_rows - buffer.size() / std::max<std::uint64_t>(1, row_bytes()));
    buffer.insert(buffer.end(), values, values + taken * row_bytes());
    values += taken * row_bytes();
    rows -= taken;
    if (row_bytes() == 0) return;
    if (buffer.size() == chunk_bytes) {
      if (!dataset.valid()) create(shape[0] == kUnknown);
      put(buffer.data(), chunk_rows);
      buffer.clear();
    }
  }
}

void Writer::Impl::finish() {
  if (!dataset.valid()) {
    if (shape[0] == kUnknown) {
      shape[0] = rows_taken;
      chunk = chunk_shape(shape, type_size(type));
    }
    create(false);
  }
  if (!buffer.empty()) put(buffer.data(), buffer.size() / row_bytes());
  buffer.clear();
  assert((shape[0] == kUnknown || rows_taken == shape[0]) && "a dataset lacks rows");
  shape[0] = rows_taken;
  if (dataset.close() < 0) fail_write(file_name, path);
}

Writer::Writer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::~Writer() = default;
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;

void Writer::append_raw(const void* values, std::uint64_t count, Type type) {
  assert(type == impl_->type);
  (void)type;
  append_stored(values, count);
}

void Writer::append_stored(const void* values, std::uint64_t count) {
  const std::uint64_t rows = impl_->row_elements == 0 ? 0 : count / impl_->row_elements;
  assert(rows * impl_->row_elements == count && "rows are appended whole");
  impl_->append(static_cast<const char*>(values), rows);
}

namespace {

// What an output is to be and where it goes; the batches of a stream share one.
struct Plan {
  std::string kind;
  OutputOptions options;
  Invocation invocation;
  std::vector<Source> sources;
  std::shared_ptr<Destination> destination;

  Plan(const OutputOptions& options_, std::string_view kind_, const Invocation& invocation_, std::vector<Source> sources_)
      : kind(kind_), options(options_), invocation(invocation_), sources(std::move(sources_)),
        destination(std::make_shared<Destination>(options.path)) {
    start_library();
  }
};

}  // namespace

struct Output::Impl : Plan {
  explicit Impl(Plan plan) : Plan(std::move(plan)) {}
  std::unique_ptr<TemporaryFile> temporary;  // none for a batch, which is built in memory
  int batch_descriptor = -1;
  std::unique_ptr<Image> image;              // of a batch; outlives the file
  Handle file;
  std::map<std::string, std::shared_ptr<Writer::Impl>> datasets;
  std::map<std::string, Attribute> attributes;
  std::set<std::string> groups;

  std::string name() const { return destination->name(); }
  void make_groups(const std::string& path);
  void put_attribute(const std::string& path, const Attribute& value);
  void check() const;
  void finish();
  void deliver_image();
};

void Output::Impl::make_groups(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (part.size() > 1 && !datasets.count(part) && groups.insert(part).second) {
      const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
      set_object_form(creation.get(), true);
      const Handle made(H5Gcreate2(file.get(), part.c_str(), H5P_DEFAULT, creation.get(), H5P_DEFAULT), H5Gclose);
      if (!made.valid()) fail_write(name(), part);
    }
    if (slash == std::string::npos) return;
  }
}

void Output::Impl::put_attribute(const std::string& path, const Attribute& value) {
  const auto [object, attribute] = object_and_attribute(path);
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const auto* const text = std::get_if<std::string>(&value);
  const Handle type = text != nullptr                             ? text_type(text->size())
                      : std::holds_alternative<double>(value)     ? stored_type(Type::float64)
                                                                  : stored_type(Type::int64);
  const Handle made(H5Acreate_by_name(file.get(), object.c_str(), attribute.c_str(), type.get(), space.get(), H5P_DEFAULT,
                                      H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  const void* data = nullptr;
  if (text != nullptr) data = text->empty() ? "" : text->data();
  if (const auto* number = std::get_if<std::int64_t>(&value)) data = number;
  if (const auto* number = std::get_if<double>(&value)) data = number;
  if (!made.valid() || H5Awrite(made.get(), type.get(), data) < 0) fail_write(name(), path);
}

// What a tool of ours writes is of the kind it says; anything else is our fault, not the world's.
void Output::Impl::check() const {
  Contents contents;
  for (const auto& [path, dataset] : datasets) contents.datasets.push_back({path, dataset->type, dataset->shape});
  for (const auto& [path, value] : attributes)
    contents.attributes.push_back({path, value.index() == 0 ? "string" : value.index() == 1 ? "integer" : "real",
                                   value.index() == 1 ? std::get<std::int64_t>(value) : 0});
  const Kind* const known = find_kind(kind);
  if (known == nullptr) throw std::logic_error(fmt::format("no such kind: {}", kind));
  if (const std::string wrong = check_contents(*known, contents); !wrong.empty())
    throw std::logic_error(fmt::format("output of kind {}: {}", kind, wrong));
}

void Output::Impl::finish() {
  std::map<std::string, DatasetDigest> digests;
  for (const auto& [path, dataset] : datasets) {
    dataset->finish();
    digests[path] = {dataset->type, dataset->shape, dataset->hash.hex()};
  }
  attributes["/@gdds_kind"] = kind;
  attributes["/@gdds_schema"] = std::int64_t{kSchemaVersion};
  attributes["/@gdds_digest"] = contents_digest(digests, attributes);
  check();
  for (const auto& [path, value] : attributes) {
    const std::string object = object_and_attribute(path).first;
    if (!datasets.count(object)) make_groups(object);
    put_attribute(path, value);
  }
}

void Output::Impl::deliver_image() {
  if (file.close() < 0) fail_write(name(), "a batch");
  Frame frame;
  const std::string wrong = parse_superblock({image->bytes, kSuperblockBytes}, frame);
  if (!wrong.empty()) throw std::logic_error("a batch is " + wrong);
  write_whole(batch_descriptor, image->bytes, frame.bytes, name());
}

Output::Output(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Output::~Output() = default;
Output::Output(Output&&) noexcept = default;
Output& Output::operator=(Output&&) noexcept = default;

Output::Output(const OutputOptions& options, std::string_view kind, const Invocation& invocation,
               std::vector<Source> sources)
    : impl_(std::make_unique<Impl>(Plan(options, kind, invocation, std::move(sources)))) {
  impl_->temporary = impl_->destination->temporary();
  impl_->file = new_file(impl_->temporary->path(), nullptr, impl_->name());
  if (!impl_->destination->is_file()) impl_->temporary->unlink();
}

void Output::add_source(Source source) { impl_->sources.push_back(std::move(source)); }

Writer Output::dataset(const std::string& path, const Shape& asked, Type type) {
  const Shape shape = asked.empty() ? Shape{1} : asked;  // a scalar cannot be chunked, so it could not be checked
  assert(path.size() > 1 && path.front() == '/' && !impl_->datasets.count(path));
  const auto slash = path.rfind('/');
  if (slash > 0) impl_->make_groups(path.substr(0, slash));
  auto writer = std::make_shared<Writer::Impl>();
  writer->path = path;
  writer->file_name = impl_->name();
  writer->file = impl_->file.get();
  writer->type = type;
  writer->shape = shape;
  writer->compress = impl_->options.compress;
  writer->chunk = chunk_shape(shape, type_size(type));
  for (std::size_t i = 1; i < shape.size(); ++i) writer->row_elements *= shape[i];
  writer->chunk_rows = writer->chunk[0];
  if (shape[0] != kUnknown) writer->create(false);
  impl_->datasets[path] = writer;
  return Writer(writer);
}

void Output::text(const std::string& path, std::string_view text) {
  write(path, {text.size()}, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

void Output::group(const std::string& path) { impl_->make_groups(path); }

void Output::attribute(const std::string& path, const Attribute& value) {
  impl_->attributes[path] = value;  // written at the end, when its dataset, if it is one's, is there
}

void Output::commit() {
  if (!impl_->options.no_history) {
    const std::string history = make_history(impl_->invocation, impl_->sources);
    text("/history", history);
  }
  impl_->finish();
  if (impl_->temporary == nullptr) return impl_->deliver_image();
  if (impl_->file.close() < 0) fail_write(impl_->name(), "the file");
  if (impl_->destination->is_file()) return impl_->temporary->rename_to(impl_->destination->path());
  struct stat status {};
  if (fstat(impl_->temporary->descriptor(), &status) != 0) fail_errno(impl_->name(), "cannot write", errno);
  copy_file_to(impl_->temporary->descriptor(), static_cast<std::uint64_t>(status.st_size), impl_->destination->descriptor(),
               impl_->name());
}

struct StreamWriter::Impl : Plan {
  explicit Impl(Plan plan) : Plan(std::move(plan)) {}
  std::unique_ptr<TemporaryFile> temporary;  // of a file
  std::uint64_t batches = 0;
};

StreamWriter::StreamWriter(const OutputOptions& options, std::string_view kind, const Invocation& invocation,
                           std::vector<Source> sources)
    : impl_(std::make_unique<Impl>(Plan(options, kind, invocation, std::move(sources)))) {
  if (impl_->destination->is_file()) impl_->temporary = impl_->destination->temporary();
}

StreamWriter::~StreamWriter() = default;

Output StreamWriter::batch() {
  auto output = std::make_unique<Output::Impl>(*impl_);
  output->batch_descriptor = impl_->temporary ? impl_->temporary->descriptor() : impl_->destination->descriptor();
  output->image = std::make_unique<Image>();
  output->file = new_file(fmt::format("batch {}", ++impl_->batches), output->image.get(), impl_->destination->name());
  return Output(std::move(output));
}

void StreamWriter::finish() {
  if (impl_->temporary) impl_->temporary->rename_to(impl_->destination->path());
}

void copy_contents(const Input& input, Output& output) {
  for (const std::string& group : input.groups()) output.group(group);
  std::vector<char> block;
  for (const auto& dataset : input.contents().datasets) {
    if (dataset.path == "/history") continue;
    Writer writer = output.dataset(dataset.path, dataset.shape, dataset.type);
    const std::uint64_t rows = dataset.shape.empty() ? 1 : dataset.shape[0];
    if (rows == 0) continue;
    const std::uint64_t row = element_count(dataset.shape) / rows;
    const std::uint64_t row_bytes = row * type_size(dataset.type);
    const std::uint64_t step = std::max<std::uint64_t>(1, kCopyBlock / std::max<std::uint64_t>(1, row_bytes));
    for (std::uint64_t at = 0; at < rows; at += step) {
      const std::uint64_t now = std::min(step, rows - at);
      block.resize(now * row_bytes);
      input.read_stored(dataset.path, at, now, block.data());
      writer.append_stored(block.data(), now * row);
    }
  }
  for (const auto& attribute : input.contents().attributes)
    if (attribute.path.rfind("/@gdds_", 0) != 0) output.attribute(attribute.path, *input.attribute(attribute.path));
}

struct TextOutput::Impl {
  Destination destination;
  std::unique_ptr<TemporaryFile> temporary;
  std::uint64_t bytes = 0;
};

TextOutput::TextOutput(const std::string& path) : impl_(new Impl{Destination(path, false), nullptr}) {
  impl_->temporary = impl_->destination.temporary();
  if (!impl_->destination.is_file()) impl_->temporary->unlink();
}

TextOutput::~TextOutput() = default;

void TextOutput::write(std::string_view text) {
  write_all(impl_->temporary->descriptor(), text.data(), text.size(), impl_->destination.name());
  impl_->bytes += text.size();
}

void TextOutput::commit() {
  if (impl_->destination.is_file()) return impl_->temporary->rename_to(impl_->destination.path());
  copy_file_to(impl_->temporary->descriptor(), impl_->bytes, impl_->destination.descriptor(), impl_->destination.name());
}

std::string library_version() {
  start_library();  // this, too, would start it, and leave what it does at exit to it
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("HDF5 {}.{}.{}", major, minor, release);
}

}  // namespace gdds::h5
