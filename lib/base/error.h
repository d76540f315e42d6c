// The one exception type for the world's faults (a missing file, a damaged input, a bad option) and the exit
// statuses they end in. Faults of ours are asserts. Nothing catches an Error on its way but cli::run, which prints
// it once, as one line, and leaves with its status.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace gdds {

enum class Status : int {
  done = 0,
  failed = 1,     // I/O, memory, device
  usage = 2,      // bad command line or preset
  rejected = 3,   // an input is not what it should be
  numerical = 4,  // a number that should be finite is not
};

class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

// The reader of our output went away: the program is to end at once and quietly, as if killed by SIGPIPE.
class ClosedPipe : public std::runtime_error {
 public:
  ClosedPipe() : std::runtime_error("the reader of the output went away") {}
};

// fail("{}: cannot open: {}", path, reason) and its siblings throw an Error with the status they are named after.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(Status::failed, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
[[noreturn]] void reject(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(Status::rejected, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
[[noreturn]] void bad_usage(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(Status::usage, fmt::format(text, std::forward<Args>(args)...));
}

// Throws "OBJECT: ACTION: reason" with the reason of the given errno, status 1.
[[noreturn]] void fail_errno(const std::string& object, const std::string& action, int error_number);

// One line, whatever a file name or a library's message contains: control characters become \xNN.
std::string one_line(const std::string& text);

}  // namespace gdds
