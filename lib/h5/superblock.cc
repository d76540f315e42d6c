// See superblock.h. Layouts are those of the HDF5 file format specification, section II.A.
#include "h5/superblock.h"

#include <bit>
#include <cstring>

namespace gdds::h5 {
namespace {

constexpr unsigned char kSignature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

// Of versions 2 and 3.
constexpr std::size_t kOffsetSizeAt = 9, kBaseAt = 12, kEndAt = 28, kChecksumAt = 44;

std::uint64_t little_endian(const unsigned char* p, int bytes) {
  std::uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | p[i];
  return value;
}

}  // namespace

std::uint32_t lookup3(std::span<const unsigned char> bytes) {
  const std::size_t size = bytes.size();
  std::uint32_t a = 0xdeadbeefU + static_cast<std::uint32_t>(size), b = a, c = a;
  if (size == 0) return c;
  // x -= z, mixed with z turned; then z grows by y.
  const auto mix = [](std::uint32_t& x, std::uint32_t& z, std::uint32_t y, int turn) {
    x -= z;
    x ^= std::rotl(z, turn);
    z += y;
  };
  const unsigned char* p = bytes.data();
  std::size_t left = size;
  for (; left > 12; left -= 12, p += 12) {
    a += static_cast<std::uint32_t>(little_endian(p, 4));
    b += static_cast<std::uint32_t>(little_endian(p + 4, 4));
    c += static_cast<std::uint32_t>(little_endian(p + 8, 4));
    mix(a, c, b, 4), mix(b, a, c, 6), mix(c, b, a, 8), mix(a, c, b, 16), mix(b, a, c, 19), mix(c, b, a, 4);
  }
  unsigned char rest[12] = {};
  std::memcpy(rest, p, left);
  a += static_cast<std::uint32_t>(little_endian(rest, 4));
  b += static_cast<std::uint32_t>(little_endian(rest + 4, 4));
  c += static_cast<std::uint32_t>(little_endian(rest + 8, 4));
  const auto finish = [](std::uint32_t& x, std::uint32_t y, int turn) { x = (x ^ y) - std::rotl(y, turn); };
  finish(c, b, 14), finish(a, c, 11), finish(b, a, 25), finish(c, b, 16), finish(a, c, 4), finish(b, a, 14), finish(c, b, 24);
  return c;
}

std::string parse_superblock(std::span<const unsigned char> head, Frame& frame) {
  if (head.size() < sizeof kSignature || std::memcmp(head.data(), kSignature, sizeof kSignature) != 0)
    return "not an HDF5 file";
  if (head.size() < kSuperblockBytes) return "cut off inside its first block";
  const int version = head[8];
  if (version > 3) return "an HDF5 file of a version this program does not know";
  const bool modern = version >= 2;
  const std::size_t base_at = modern ? kBaseAt : version == 0 ? 24 : 28;
  const std::size_t end_at = modern ? kEndAt : base_at + 16;
  if (head[modern ? kOffsetSizeAt : 13] != 8) return "damaged: its addresses are not of 8 bytes";
  if (modern && little_endian(&head[kChecksumAt], 4) != lookup3(head.first(kChecksumAt)))
    return "damaged: the checksum of its first block is wrong";
  if (little_endian(&head[base_at], 8) != 0) return "damaged: it does not start at its beginning";
  frame.bytes = little_endian(&head[end_at], 8);
  frame.checksummed = modern;
  if (frame.bytes < kSuperblockBytes || frame.bytes > (std::uint64_t{1} << 62)) return "damaged: its length makes no sense";
  return "";
}

}  // namespace gdds::h5
