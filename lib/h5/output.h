// An HDF5 file of ours in the making. It is all or nothing: the file grows beside its destination (or in a spool, for
// standard output) and commit() puts it there; without commit() nothing is left. Where the output cannot go is found out
// in the constructor, before any work. The same contents give the same bytes. Every dataset is chunked, so that Fletcher32
// covers its data; HDF5's own checksums cover the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/invocation.h"
#include "base/options.h"
#include "h5/history.h"
#include "h5/input.h"
#include "h5/types.h"

namespace gdds::h5 {

struct OutputOptions {
  std::string path = "-";
  int compress = 0;         // deflate level
  bool no_history = false;  // leave /history out
  void add_to(Options& options);
};

// As the first number of a shape: rows are appended until commit(), and counted.
constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

class Output;

// Appends rows to a dataset, in order; whole chunks go to the file as they fill.
class Writer {
 public:
  ~Writer();
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  // Any number of whole rows.
  template <typename T>
  void append(std::span<const T> values) {
    append_raw(values.data(), values.size(), TypeOf<T>::value);
  }
  // Elements in their stored form (float16 and bfloat16 as bits).
  void append_stored(const void* values, std::uint64_t count);

 private:
  friend class Output;
  struct Impl;
  explicit Writer(std::shared_ptr<Impl> impl);
  void append_raw(const void* values, std::uint64_t count, Type type);
  std::shared_ptr<Impl> impl_;
};

class Output {
 public:
  // The sources become the new line's inputs in /history; those known only later are added with add_source().
  Output(const OutputOptions& options, std::string_view kind, const Invocation& invocation, std::vector<Source> sources);
  ~Output();
  Output(Output&&) noexcept;
  Output& operator=(Output&&) noexcept;

  void add_source(Source source);

  // Groups on the way are made as needed.
  template <typename T>
  void write(const std::string& path, const Shape& shape, std::span<const T> values) {
    dataset(path, shape, TypeOf<T>::value).append(values);
  }
  template <typename T>
  void write(const std::string& path, const std::vector<T>& values) {
    write(path, {values.size()}, std::span<const T>(values));
  }
  void text(const std::string& path, std::string_view text);
  Writer dataset(const std::string& path, const Shape& shape, Type type);
  // "/vocab@name"; the object is made as a group if it is not there.
  void attribute(const std::string& path, const Attribute& value);
  void group(const std::string& path);

  // Checks the contents against the kind's table, adds digest and history, and delivers.
  void commit();

 private:
  friend class StreamWriter;
  struct Impl;
  explicit Output(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A stream of batches, each delivered by its own commit(): at once to a pipe, and to a file all or nothing with finish().
// A reader that goes away ends the program quietly (ClosedPipe).
class StreamWriter {
 public:
  StreamWriter(const OutputOptions& options, std::string_view kind, const Invocation& invocation,
               std::vector<Source> sources);
  ~StreamWriter();

  // The next batch, built in memory.
  Output batch();
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Copies everything but /history and the digest.
void copy_contents(const Input& input, Output& output);

// A text instead of an HDF5 file, of any length, to a file or standard output; all or nothing as well.
class TextOutput {
 public:
  explicit TextOutput(const std::string& path);
  ~TextOutput();
  void write(std::string_view text);
  void commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// "HDF5 1.10.8", for --version.
std::string library_version();

}  // namespace gdds::h5
