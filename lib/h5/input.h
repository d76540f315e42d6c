// An HDF5 file of ours, opened for reading: a file, standard input, or one batch of a stream. Opening checks that it is
// whole, of the kind asked for, and holds what the kind's table says; reading is by rows, so that a file larger than the
// memory is no matter. Damage found at any time is status 3. HDF5 is not thread-safe: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "h5/history.h"
#include "h5/schema.h"
#include "h5/types.h"

namespace gdds::h5 {

using Attribute = std::variant<std::string, std::int64_t, double>;

// Row-major [rows, columns].
struct Matrix {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::vector<float> values;
};

class Input {
 public:
  // A file, or - for standard input. An empty kind takes any.
  Input(const std::string& path, std::string_view kind);
  ~Input();
  Input(Input&&) noexcept;
  Input& operator=(Input&&) noexcept;

  const std::string& name() const;  // for messages: "emb.h5", "standard input"
  const std::string& kind() const;

  bool has(const std::string& path) const;
  Type type(const std::string& path) const;
  Shape shape(const std::string& path) const;

  // A whole dataset, widened to T; ids may be stored as uint16 and read as int32, floats as float16 and read as float.
  template <typename T>
  std::vector<T> read(const std::string& path) const {
    std::vector<T> values(checked_count(path));
    read_raw(path, 0, rows(path), TypeOf<T>::value, values.data());
    return values;
  }
  // Rows first ... first+count-1 of it, into memory that holds as many.
  template <typename T>
  void read_rows(const std::string& path, std::uint64_t first, std::uint64_t count, std::span<T> out) const {
    check_fits(path, count, out.size());
    read_raw(path, first, count, TypeOf<T>::value, out.data());
  }
  Matrix matrix(const std::string& path) const;
  std::string text(const std::string& path) const;

  // Attributes are named as in the schema: "/vocab@name".
  std::optional<Attribute> attribute(const std::string& path) const;
  std::string string_attribute(const std::string& path) const;
  std::int64_t integer_attribute(const std::string& path) const;

  const Contents& contents() const;        // everything in it, groups apart
  std::vector<std::string> groups() const;

  std::string history() const;  // empty: none
  // The stored digest, or the computed one for a file that has none.
  std::string digest() const;
  std::string computed_digest() const;
  Source source() const;

  // Reads elements as they are stored; for tools that copy without looking.
  void read_stored(const std::string& path, std::uint64_t first, std::uint64_t count, void* out) const;

 private:
  friend class StreamReader;
  struct Impl;
  explicit Input(std::unique_ptr<Impl> impl);

  std::uint64_t rows(const std::string& path) const;
  std::uint64_t checked_count(const std::string& path) const;
  void check_fits(const std::string& path, std::uint64_t count, std::size_t room) const;
  void read_raw(const std::string& path, std::uint64_t first, std::uint64_t count, Type type, void* out) const;

  std::unique_ptr<Impl> impl_;
};

// A stream of batches: complete files back to back, from a file or from standard input. A stream that breaks off inside
// a batch, has anything else between batches, holds a batch of another kind or none at all: status 3, naming the batch.
class StreamReader {
 public:
  StreamReader(const std::string& path, std::string_view kind);
  ~StreamReader();

  // The next batch; nothing at the end.
  std::optional<Input> next();

 private:
  std::string path_, name_, kind_;
  int descriptor_ = -1;
  std::uint64_t batch_ = 0;
};

// Does a regular file hold more than one batch? A stream of one is an ordinary file.
bool is_stream(const std::string& path);

// Both files' ids must mean the same tokens; else status 3 naming the two vocabularies.
void check_same_vocabulary(const Input& a, const Input& b);

}  // namespace gdds::h5
