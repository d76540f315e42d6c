// A disk that fills up: preloaded into a program, lets it write FULL_DISK_BYTES to regular files and then answers every
// write with "No space left on device".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long long written = 0;

static int is_full(int descriptor, size_t bytes) {
  struct stat status;
  const char* limit = getenv("FULL_DISK_BYTES");
  if (limit == NULL || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  if (written + (long long)bytes > atoll(limit)) {
    errno = ENOSPC;
    return 1;
  }
  written += (long long)bytes;
  return 0;
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  ssize_t (*real)(int, const void*, size_t) = dlsym(RTLD_NEXT, "write");
  return descriptor != 2 && is_full(descriptor, bytes) ? -1 : real(descriptor, data, bytes);
}
ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
  ssize_t (*real)(int, const void*, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
  return is_full(descriptor, bytes) ? -1 : real(descriptor, data, bytes, offset);
}
ssize_t pwrite64(int descriptor, const void* data, size_t bytes, off64_t offset) {
  ssize_t (*real)(int, const void*, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
  return is_full(descriptor, bytes) ? -1 : real(descriptor, data, bytes, offset);
}
ssize_t sendfile(int out, int in, off_t* offset, size_t bytes) {
  ssize_t (*real)(int, int, off_t*, size_t) = dlsym(RTLD_NEXT, "sendfile");
  return is_full(out, bytes) ? -1 : real(out, in, offset, bytes);
}
