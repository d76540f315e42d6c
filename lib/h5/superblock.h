// The first bytes of an HDF5 file, which say where it ends. That is what lets several files stand back to back in a pipe:
// the reader knows how long each one is before it has it, and a file cut short is seen at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gdds::h5 {

constexpr std::size_t kSuperblockBytes = 64;  // enough of any version

struct Frame {
  std::uint64_t bytes = 0;   // length of the whole file
  bool checksummed = false;  // version 2 or 3: the superblock carries a checksum, and it is right
};

// Reads the superblock of versions 0 to 3. Returns an empty string, or what is wrong with it.
std::string parse_superblock(std::span<const unsigned char> head, Frame& frame);

// Bob Jenkins' lookup3, HDF5's checksum of metadata.
std::uint32_t lookup3(std::span<const unsigned char> bytes);

}  // namespace gdds::h5
