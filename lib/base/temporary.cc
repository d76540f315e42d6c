// See temporary.h. The handler may only call async-signal-safe functions, so the names to remove stand in a fixed table.
#include "base/temporary.h"

#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace gdds {
namespace {

struct Slot {
  std::atomic<int> state{0};  // 0 free, 1 being filled or emptied, 2 holds a name
  char path[PATH_MAX];
};
std::array<Slot, 16> slots;

int remember(const std::string& path) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    int expected = 0;
    if (!slots[i].state.compare_exchange_strong(expected, 1)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].state = 2;
    return static_cast<int>(i);
  }
  fail("more than {} temporary files at once", slots.size());
}

void forget(int slot) {
  if (slot >= 0) slots[static_cast<std::size_t>(slot)].state = 0;
}

extern "C" void remove_and_end(int signal) {
  for (Slot& slot : slots)
    if (slot.state == 2) ::unlink(slot.path);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A file replaced keeps its permissions; a new one gets what the umask leaves.
void set_usual_permissions(int descriptor, const std::string& destination) {
  struct stat old {};
  if (stat(destination.c_str(), &old) == 0) {
    if (fchmod(descriptor, old.st_mode & 07777) != 0) fail_errno(destination, "cannot set permissions", errno);
    return;
  }
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(descriptor, 0666 & ~mask) != 0) fail_errno(destination, "cannot set permissions", errno);
}

}  // namespace

void install_signal_handlers() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action.sa_handler = remove_and_end;
    sigfillset(&action.sa_mask);
    action.sa_flags = 0;
    sigaction(signal, &action, nullptr);
  }
}

TemporaryFile::TemporaryFile(const std::string& directory, const std::string& prefix, const std::string& object) {
  const std::string pattern = directory + "/." + prefix + ".XXXXXX";
  if (pattern.size() >= PATH_MAX) fail_errno(object, "cannot create", ENAMETOOLONG);
  // No signal may come between the file's creation and its entry in the table.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  path_ = pattern;
  descriptor_ = mkostemp(path_.data(), O_CLOEXEC);
  const int error = errno;
  if (descriptor_ >= 0) slot_ = remember(path_);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (descriptor_ < 0) fail_errno(object, fmt::format("cannot create a file in {}", directory), error);
}

TemporaryFile::~TemporaryFile() {
  unlink();
  if (descriptor_ >= 0) ::close(descriptor_);
}

void TemporaryFile::unlink() {
  if (slot_ < 0) return;
  ::unlink(path_.c_str());
  forget(slot_);
  slot_ = -1;
}

void TemporaryFile::rename_to(const std::string& destination) {
  assert(slot_ >= 0);
  set_usual_permissions(descriptor_, destination);
  if (fsync(descriptor_) != 0) fail_errno(destination, "cannot write", errno);
  if (::rename(path_.c_str(), destination.c_str()) != 0) fail_errno(destination, "cannot rename into place", errno);
  forget(slot_);
  slot_ = -1;
  // The new name itself is durable once its folder is; a file system that cannot sync a folder is no reason to fail.
  const int folder = open(folder_of(destination).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    ::close(folder);
  }
}

std::string spool_directory() {
  if (const char* chosen = std::getenv("TMPDIR"); chosen != nullptr && *chosen != '\0') return chosen;
  if (access("/var/tmp", W_OK | X_OK) == 0) return "/var/tmp";
  return "/tmp";
}

}  // namespace gdds
