// See descriptor.h.
#include "h5/descriptor.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace gdds::h5 {
namespace {

constexpr std::size_t kBlock = 1 << 20;

[[noreturn]] void fail_write(const std::string& name, int error) {
  if (error == EPIPE) throw ClosedPipe();
  fail_errno(name, "cannot write", error);
}

// Takes back what a failed write left in a regular file; of a pipe nothing can be taken back.
class Undo {
 public:
  explicit Undo(int descriptor) : descriptor_(descriptor) {
    struct stat status {};
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return;
    // With >> the position says nothing: writes go to the end.
    const bool appends = (fcntl(descriptor, F_GETFL) & O_APPEND) != 0;
    start_ = appends ? status.st_size : lseek(descriptor, 0, SEEK_CUR);
  }
  ~Undo() {
    if (!armed_ || start_ < 0) return;
    if (ftruncate(descriptor_, start_) == 0) lseek(descriptor_, start_, SEEK_SET);
  }
  void disarm() { armed_ = false; }

 private:
  int descriptor_;
  bool armed_ = true;
  off_t start_ = -1;
};

}  // namespace

std::size_t read_up_to(int descriptor, void* data, std::size_t bytes, const std::string& name) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::read(descriptor, static_cast<char*>(data) + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(name, "cannot read", errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

void write_all(int descriptor, const void* data, std::size_t bytes, const std::string& name) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::write(descriptor, static_cast<const char*>(data) + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_write(name, errno);
    done += static_cast<std::size_t>(n);
  }
}

void write_whole(int descriptor, const void* data, std::size_t bytes, const std::string& name) {
  Undo undo(descriptor);
  write_all(descriptor, data, bytes, name);
  undo.disarm();
}

void copy_file_to(int source, std::uint64_t bytes, int destination, const std::string& name) {
  Undo undo(destination);
  off_t offset = 0;
  while (static_cast<std::uint64_t>(offset) < bytes) {
    const ssize_t n = sendfile(destination, source, &offset, std::min<std::uint64_t>(bytes - offset, 1 << 30));
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n < 0 && errno != EINVAL && errno != ENOSYS) fail_write(name, errno);
    break;  // sendfile does not serve this destination (or stops early): go on by hand
  }
  std::vector<char> block(kBlock);
  while (static_cast<std::uint64_t>(offset) < bytes) {
    const std::size_t want = std::min<std::uint64_t>(block.size(), bytes - static_cast<std::uint64_t>(offset));
    const ssize_t n = pread(source, block.data(), want, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(name, "cannot read the spooled result", errno);
    if (n == 0) fail("{}: the spooled result is shorter than it was", name);
    write_all(destination, block.data(), static_cast<std::size_t>(n), name);
    offset += n;
  }
  undo.disarm();
}

std::uint64_t transfer(int source, int destination, std::uint64_t bytes, const std::string& source_name,
                       const std::string& destination_name) {
  std::vector<char> block(kBlock);
  std::uint64_t done = 0;
  while (done < bytes) {
    const std::size_t want = std::min<std::uint64_t>(block.size(), bytes - done);
    const std::size_t n = read_up_to(source, block.data(), want, source_name);
    write_all(destination, block.data(), n, destination_name);
    done += n;
    if (n < want) break;
  }
  return done;
}

}  // namespace gdds::h5
