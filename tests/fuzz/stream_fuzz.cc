// Any bytes as a stream of batches, through a pipe's descriptor and read to the end: batches, or status 3, or (for files
// that claim a system error) status 1; never a crash, a hang or a huge allocation. The seeds are whole streams, so the
// fuzzer works on the frames between batches; HDF5's checksums answer for what is inside them.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "h5/input.h"
#include "h5/superblock.h"
#include "support/hdf5_leaks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gdds::h5::Frame frame;
  gdds::h5::parse_superblock({data, std::min(size, gdds::h5::kSuperblockBytes)}, frame);
  // Files of the old format carry no checksums, and a hostile one is HDF5's own to withstand: not our subject here.
  if (size > 8 && data[8] < 2) return 0;
  const int file = memfd_create("stream", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    gdds::h5::StreamReader reader("/proc/self/fd/" + std::to_string(file), "");
    while (const auto batch = reader.next()) batch->computed_digest();
  } catch (const gdds::Error& error) {
    if (error.status() != gdds::Status::rejected) std::abort();
  }
  close(file);
  return 0;
}
