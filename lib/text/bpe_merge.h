// One piece of text to the ids of a byte-level BPE vocabulary: the leftmost of the best-ranked pairs of neighbours is
// joined until there is none. The encoder (bpe.cc) cuts text into pieces and remembers the ids of those it has seen; this
// is for the others.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/huge_pages.h"
#include "text/vocabulary.h"

namespace gdds::text {

// 64 well mixed bits of two numbers.
inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15U) * (b ^ 0xe7037ed1a0b428dbU);
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

// (left, right) to the merge's rank and the token it makes. Open addressing, at most half full, behind a bit map that fits
// the nearest caches: most pairs that are asked for do not merge, and one bit says so.
class PairTable {
 public:
  static constexpr std::uint32_t kNoRank = 0xffffffff;
  struct Entry {
    std::int32_t left = -1, right = -1;
    std::uint32_t rank = kNoRank;
    std::int32_t made = -1;
  };

  explicit PairTable(std::size_t count)
      : entries_(std::bit_ceil(2 * count + 2)), mask_(entries_.size() - 1), bits_(std::bit_ceil(16 * count + 64) / 64), bit_mask_(64 * bits_.size() - 1) {}

  void insert(const Entry& entry) {
    const std::uint64_t hash = hash_of(entry.left, entry.right);
    bits_[bit_of(hash) / 64] |= std::uint64_t{1} << bit_of(hash) % 64;
    std::size_t i = hash & mask_;
    while (entries_[i].left >= 0) {
      if (entries_[i].left == entry.left && entries_[i].right == entry.right) return;  // the better rank came first
      i = (i + 1) & mask_;
    }
    entries_[i] = entry;
  }
  const Entry& find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t hash = hash_of(left, right);
    if ((bits_[bit_of(hash) / 64] >> bit_of(hash) % 64 & 1) == 0) return none_;
    std::size_t i = hash & mask_;
    while (entries_[i].left >= 0 && !(entries_[i].left == left && entries_[i].right == right)) i = (i + 1) & mask_;
    return entries_[i];
  }

 private:
  static std::uint64_t hash_of(std::int32_t left, std::int32_t right) {
    return mixed(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right));
  }
  std::size_t bit_of(std::uint64_t hash) const { return hash >> 32 & bit_mask_; }

  std::vector<Entry, HugePages<Entry>> entries_;
  std::size_t mask_;
  std::vector<std::uint64_t> bits_;
  std::size_t bit_mask_;
  Entry none_;
};

class Merger {
 public:
  explicit Merger(const Vocabulary& vocabulary);

  // The first byte that has no token, or npos. The functions below want pieces without such bytes.
  std::size_t find_missing(std::string_view bytes) const;

  // Writes the ids of a piece, at most one a byte, and returns where they end.
  std::int32_t* merge(std::string_view piece, std::int32_t* out) const;
  // The same by the definition, looking at all pairs before each join: what merge() is compared with.
  std::int32_t* merge_plainly(std::string_view piece, std::int32_t* out) const;

 private:
  std::uint64_t joints(const unsigned char* bytes, std::size_t count) const;
  std::int32_t* merge_three(const unsigned char* part, std::int32_t* out) const;
  std::int32_t* merge_short(const unsigned char* part, std::size_t size, std::int32_t* out) const;
  std::int32_t* merge_long(const unsigned char* part, std::size_t size, std::int32_t* out) const;

  PairTable pairs_;
  std::array<std::int32_t, 256> of_byte_;       // -1: none
  std::vector<std::uint64_t> of_bytes_;         // packed() of two bytes, which is where merging begins
  std::array<std::uint64_t, 1024> joinable_{};  // a bit for two bytes: some merge joins what ends and what begins with them
  bool complete_;                               // every byte has a token
};

}  // namespace gdds::text
