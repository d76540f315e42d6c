// Byte-level BPE: text is cut into pieces (splitter.h), and each is merged (bpe_merge.h). A piece seen before comes from a
// cache keyed by its bytes, which is what makes ordinary text fast; other text is as fast as its merging.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "text/bpe_merge.h"
#include "text/encoder.h"
#include "text/huge_pages.h"
#include "text/splitter.h"

namespace gdds::text {
namespace {

// Pieces of at most 15 bytes with at most 7 ids (3 of a vocabulary beyond 65,536): 32 bytes an entry, two places a piece.
template <typename Id>
class PieceCache {
 public:
  static constexpr std::size_t kMostBytes = 15;
  static constexpr std::size_t kMostIds = 16 / sizeof(Id) - 1;

  struct Key {
    std::uint64_t low, high;
  };
  struct alignas(32) Entry {
    Key key = {0, 0};  // the bytes, zeros, and in the last byte the length; length 0 is an empty entry
    Id count = 0;
    Id ids[kMostIds];
  };

  PieceCache() : entries_(kEntries) {}

  // `readable`: 16 bytes may be read from `bytes` on.
  static Key key_of(const char* bytes, std::size_t size, bool readable) {
    Key key{0, 0};
    std::memcpy(&key, bytes, readable ? 16 : size);
    if (readable) {
      const std::uint64_t low_bits = size >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size)) - 1;
      const std::uint64_t high_bits = size <= 8 ? 0 : (std::uint64_t{1} << (8 * (size - 8))) - 1;
      key.low &= low_bits;
      key.high &= high_bits;
    }
    key.high |= static_cast<std::uint64_t>(size) << 56;
    return key;
  }
  Entry* bucket(const Key& key) { return &entries_[(mixed(key.low, key.high) & (kEntries / 2 - 1)) * 2]; }
  // Without a branch, as text takes both places at random.
  static bool same(const Entry& entry, const Key& key) { return ((entry.key.low ^ key.low) | (entry.key.high ^ key.high)) == 0; }
  // Keeps the newest in front.
  static void store(Entry* bucket, const Key& key, const std::int32_t* ids, std::size_t count) {
    bucket[1] = bucket[0];
    bucket[0].key = key;
    bucket[0].count = static_cast<Id>(count);
    for (std::size_t i = 0; i < count; ++i) bucket[0].ids[i] = static_cast<Id>(ids[i]);
  }

 private:
  static constexpr std::size_t kEntries = std::size_t{1} << 17;
  std::vector<Entry, HugePages<Entry>> entries_;
};

template <typename Id>
class BpeEncoder final : public Encoder {
 public:
  BpeEncoder(std::shared_ptr<const Merger> merger, bool digits_apart, bool whole)
      : merger_(std::move(merger)), digits_apart_(digits_apart), whole_(whole) {}

  void encode(std::string_view text, std::vector<std::int32_t>& ids) override;
  std::size_t last_cut(std::string_view text) const override { return whole_ ? 0 : last_piece_cut(text); }
  std::unique_ptr<Encoder> copy() const override { return std::make_unique<BpeEncoder>(merger_, digits_apart_, whole_); }

 private:
  using Cache = PieceCache<Id>;
  static constexpr std::size_t kGroup = 64;
  static constexpr std::size_t kMostHits = kGroup * (Cache::kMostIds + 1);  // ids of a group, and what a hit writes beyond
  struct Lookup {
    std::string_view piece;
    typename Cache::Key key;
    typename Cache::Entry* bucket;  // none for a piece too long for the cache
  };

  void look_up(const Lookup* group, std::size_t count, std::vector<std::int32_t>& ids);
  std::size_t merge(const Lookup& lookup, std::int32_t* out);
  // A vocabulary that lacks bytes cannot say every text: looked at once, before anything is encoded.
  void check_bytes(std::string_view text) const {
    const std::size_t at = merger_->find_missing(text);
    if (at == std::string_view::npos) return;
    throw Unencodable{at, fmt::format("the vocabulary has no byte 0x{:02x}", static_cast<unsigned char>(text[at]))};
  }

  std::shared_ptr<const Merger> merger_;
  Cache cache_;
  bool digits_apart_, whole_;
  std::vector<std::int32_t> ready_ = std::vector<std::int32_t>(kMostHits);
};

template <typename Id>
void BpeEncoder<Id>::encode(std::string_view text, std::vector<std::int32_t>& ids) {
  check_bytes(text);
  // Pieces in groups: first the places of all in the cache are computed and fetched, then they are looked at, so that the
  // memory is waited for once a group and not once a piece.
  std::array<Lookup, kGroup> group;
  std::size_t count = 0;
  const auto add = [&](std::size_t begin, std::size_t end) {
    Lookup& lookup = group[count++];
    lookup.piece = text.substr(begin, end - begin);
    if (lookup.piece.size() <= Cache::kMostBytes) {
      lookup.key = Cache::key_of(lookup.piece.data(), lookup.piece.size(), begin + 16 <= text.size());
      lookup.bucket = cache_.bucket(lookup.key);
      __builtin_prefetch(lookup.bucket);
    } else {
      lookup.bucket = nullptr;
    }
    if (count < kGroup) return;
    look_up(group.data(), count, ids);
    count = 0;
  };
  if (!whole_) for_each_piece(text, digits_apart_, add);
  else if (!text.empty()) add(0, text.size());
  look_up(group.data(), count, ids);
}

// Ids are gathered in ready_, which stays in the nearest cache, and appended once a group.
template <typename Id>
void BpeEncoder<Id>::look_up(const Lookup* group, std::size_t count, std::vector<std::int32_t>& ids) {
  std::size_t used = 0;
  for (std::size_t p = 0; p < count; ++p) {
    const Lookup& lookup = group[p];
    if (lookup.bucket != nullptr) {
      const typename Cache::Entry& entry = lookup.bucket[Cache::same(lookup.bucket[0], lookup.key) ? 0 : 1];
      if (Cache::same(entry, lookup.key)) {
        std::int32_t* const out = ready_.data() + used;
        for (std::size_t i = 0; i < Cache::kMostIds; ++i) out[i] = static_cast<std::int32_t>(entry.ids[i]);
        used += entry.count;
        continue;
      }
    }
    // Room for this piece, and behind it for a group of hits, which do not ask.
    if (const std::size_t wanted = used + lookup.piece.size() + kMostHits; ready_.size() < wanted) ready_.resize(wanted);
    used += merge(lookup, ready_.data() + used);
  }
  ids.insert(ids.end(), ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(used));
}

template <typename Id>
std::size_t BpeEncoder<Id>::merge(const Lookup& lookup, std::int32_t* out) {
  const auto count = static_cast<std::size_t>(merger_->merge(lookup.piece, out) - out);
  if (lookup.bucket != nullptr && count <= Cache::kMostIds) Cache::store(lookup.bucket, lookup.key, out, count);
  return count;
}

}  // namespace

std::unique_ptr<Encoder> make_bpe_encoder(const Vocabulary& vocabulary) {
  const bool digits_apart = vocabulary.pretokenizer == "digits-gpt2", whole = vocabulary.pretokenizer == "none";
  auto merger = std::make_shared<const Merger>(vocabulary);
  if (vocabulary.size() <= 65536) return std::make_unique<BpeEncoder<std::uint16_t>>(std::move(merger), digits_apart, whole);
  return std::make_unique<BpeEncoder<std::uint32_t>>(std::move(merger), digits_apart, whole);
}

}  // namespace gdds::text
