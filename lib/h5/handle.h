// HDF5's identifiers with an owner, and its errors as ours. Private to lib/h5: no other module sees a hid_t.
#pragma once

#include <string>
#include <utility>

#include <hdf5.h>

#include "base/error.h"
#include "h5/types.h"

namespace gdds::h5 {

class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }
  // Closes now; negative if that fails, as it does when buffered data cannot be written.
  herr_t close() { return id_ >= 0 ? close_(std::exchange(id_, -1)) : 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

// Silences HDF5's own printing and its work at exit. Every function that may be first calls it.
void start_library();

// The innermost reason on HDF5's error stack, and the errno in it (0: none). Clears the stack.
struct Reason {
  std::string text;
  int error_number = 0;
};
Reason take_reason();

// For reads: damage is status 3, an error of the system status 1. For writes: always status 1.
[[noreturn]] void fail_read(const std::string& file, const std::string& what);
[[noreturn]] void fail_write(const std::string& file, const std::string& what);

// The element type of an HDF5 type; false for one that our files do not have.
bool element_type(hid_t id, Type& type);
// The little-endian HDF5 type.
Handle stored_type(Type type);

}  // namespace gdds::h5
