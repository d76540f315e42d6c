// Byte-level BPE: text is cut into pieces (splitter.h), and within each the best-ranked pair of neighbours is joined until
// none is left. Three things make it fast. A piece seen before comes from a cache keyed by its bytes. A piece that is a
// token, and that merging is known to arrive at, needs no merging. And merging looks pairs up in one flat table; long
// pieces use a heap, so that a million equal letters take n log n.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "text/encoder.h"
#include "text/splitter.h"

namespace gdds::text {
namespace {

constexpr std::uint32_t kNoRank = 0xffffffff;
constexpr std::size_t kLongPiece = 128;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15U) * (b ^ 0xe7037ed1a0b428dbU);
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

// (left, right) to the merge's rank and the token it makes. Open addressing, at most half full, behind a bit map that fits
// the nearest caches: most pairs that are asked for do not merge, and one bit says so.
class PairTable {
 public:
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

  std::vector<Entry> entries_;
  std::size_t mask_;
  std::vector<std::uint64_t> bits_;
  std::size_t bit_mask_;
  Entry none_;
};

// Bytes of a token to its id.
class TokenTable {
 public:
  explicit TokenTable(const Vocabulary& v) : slots_(std::bit_ceil(2 * static_cast<std::size_t>(v.size()) + 2), -1), vocabulary_(v) {
    for (std::int32_t id = 0; id < v.size(); ++id)
      if (!v.is_special(id) && find(v.token(id)) < 0) slots_[free_slot(v.token(id))] = id;
  }
  std::int32_t find(std::string_view bytes) const {
    for (std::size_t i = hash(bytes);; ++i) {
      const std::int32_t id = slots_[i & (slots_.size() - 1)];
      if (id < 0 || vocabulary_.token(id) == bytes) return id;
    }
  }

 private:
  static std::size_t hash(std::string_view bytes) { return std::hash<std::string_view>()(bytes); }
  std::size_t free_slot(std::string_view bytes) const {
    std::size_t i = hash(bytes);
    while (slots_[i & (slots_.size() - 1)] >= 0) ++i;
    return i & (slots_.size() - 1);
  }
  std::vector<std::int32_t> slots_;
  const Vocabulary& vocabulary_;
};

struct Tables {
  Vocabulary vocabulary;
  TokenTable tokens;
  PairTable pairs;
  std::int32_t of_byte[256];
  std::vector<std::uint64_t> of_bytes;  // packed() of two bytes, which is where merging begins
  bool complete = true;               // every byte has a token
  std::vector<std::uint8_t> reached;  // merging the token's bytes gives the token

  explicit Tables(const Vocabulary& v) : vocabulary(v), tokens(vocabulary), pairs(v.merges.size()), reached(v.types.size()) {
    for (int b = 0; b < 256; ++b) {
      const char byte = static_cast<char>(b);
      of_byte[b] = tokens.find({&byte, 1});
      complete &= of_byte[b] >= 0;
    }
    std::string joined;
    for (std::size_t rank = 0; rank < v.merges.size(); ++rank) {
      const auto [left, right] = v.merges[rank];
      joined.assign(v.token(left)).append(v.token(right));
      pairs.insert({left, right, static_cast<std::uint32_t>(rank), tokens.find(joined)});
    }
    of_bytes.resize(65536);
    for (std::size_t b = 0; b < of_bytes.size(); ++b) of_bytes[b] = packed(pairs.find(of_byte[b >> 8], of_byte[b & 255]));
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id < v.size(); ++id) {
      if (v.is_special(id) || find_missing(v.token(id)) != std::string_view::npos) continue;
      ids.clear();
      merge(v.token(id), ids);
      reached[static_cast<std::size_t>(id)] = ids.size() == 1 && ids[0] == id;
    }
  }

  // The first byte that has no token, or npos.
  std::size_t find_missing(std::string_view bytes) const {
    for (std::size_t i = 0; !complete && i < bytes.size(); ++i)
      if (of_byte[static_cast<unsigned char>(bytes[i])] < 0) return i;
    return std::string_view::npos;
  }
  static constexpr std::uint64_t kNoPair = std::uint64_t{kNoRank} << 32;
  static std::uint64_t packed(const PairTable::Entry& e) { return std::uint64_t{e.rank} << 32 | static_cast<std::uint32_t>(e.made); }

  void merge(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void merge_long(std::string_view piece, std::vector<std::int32_t>& ids) const;
};

// Joins the leftmost of the best-ranked pairs until there is none; looks at all pairs each time. A pair is one number,
// rank above token made, so that the smallest number is the best pair.
void Tables::merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const {
  std::int32_t id[kLongPiece];
  std::uint64_t pair[kLongPiece];  // of (i, i+1)
  std::size_t n = piece.size();
  const auto look = [&](std::size_t i) { pair[i] = packed(pairs.find(id[i], id[i + 1])); };
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(piece[i]); };
  for (std::size_t i = 0; i < n; ++i) id[i] = of_byte[byte(i)];
  for (std::size_t i = 0; i + 1 < n; ++i) pair[i] = of_bytes[byte(i) << 8 | byte(i + 1)];
  while (n > 1) {
    std::size_t best = 0;
    std::uint64_t least = pair[0];
    for (std::size_t i = 1; i + 1 < n; ++i) {
      const bool better = pair[i] < least;
      least = better ? pair[i] : least;
      best = better ? i : best;
    }
    if (least >= kNoPair) break;
    id[best] = static_cast<std::int32_t>(least & 0xffffffff);
    --n;
    for (std::size_t i = best + 1; i < n; ++i) id[i] = id[i + 1];
    for (std::size_t i = best; i + 1 < n; ++i) pair[i] = pair[i + 1];
    if (best + 1 < n) look(best);
    if (best > 0) look(best - 1);
  }
  ids.insert(ids.end(), id, id + n);
}

// The same with a heap of pairs by (rank, position) and a linked list; an entry that no longer holds is passed over.
void Tables::merge_long(std::string_view piece, std::vector<std::int32_t>& ids) const {
  struct Symbol {
    std::int32_t id;
    std::int64_t before, after;
  };
  struct Candidate {
    std::uint32_t rank;
    std::int64_t at;
    std::int32_t left, right, made;
    bool operator<(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  const auto n = static_cast<std::int64_t>(piece.size());
  std::vector<Symbol> symbols(piece.size());
  for (std::int64_t i = 0; i < n; ++i)
    symbols[static_cast<std::size_t>(i)] = {of_byte[static_cast<unsigned char>(piece[static_cast<std::size_t>(i)])], i - 1, i + 1 < n ? i + 1 : -1};
  const auto symbol = [&](std::int64_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
  std::vector<Candidate> heap;
  const auto candidate = [&](std::int64_t at, Candidate& c) {
    if (at < 0 || symbol(at).after < 0) return false;
    const PairTable::Entry& e = pairs.find(symbol(at).id, symbol(symbol(at).after).id);
    c = {e.rank, at, e.left, e.right, e.made};
    return e.rank != kNoRank;
  };
  Candidate c{};
  for (std::int64_t i = 0; i < n; ++i)
    if (candidate(i, c)) heap.push_back(c);
  std::make_heap(heap.begin(), heap.end());
  const auto push = [&](std::int64_t at) {
    if (!candidate(at, c)) return;
    heap.push_back(c);
    std::push_heap(heap.begin(), heap.end());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate best = heap.back();
    heap.pop_back();
    Symbol& left = symbol(best.at);
    if (left.id != best.left || left.after < 0 || symbol(left.after).id != best.right) continue;
    Symbol& right = symbol(left.after);
    left.id = best.made;
    right.id = -1;
    left.after = right.after;
    if (left.after >= 0) symbol(left.after).before = best.at;
    push(left.before);
    push(best.at);
  }
  for (std::int64_t i = 0; i >= 0; i = symbol(i).after) ids.push_back(symbol(i).id);
}

void Tables::merge(std::string_view piece, std::vector<std::int32_t>& ids) const {
  piece.size() <= kLongPiece ? merge_short(piece, ids) : merge_long(piece, ids);
}

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
  static bool same(const Entry& entry, const Key& key) { return entry.key.low == key.low && entry.key.high == key.high; }
  // Keeps the newest in front.
  static void store(Entry* bucket, const Key& key, const std::int32_t* ids, std::size_t count) {
    bucket[1] = bucket[0];
    bucket[0].key = key;
    bucket[0].count = static_cast<Id>(count);
    for (std::size_t i = 0; i < count; ++i) bucket[0].ids[i] = static_cast<Id>(ids[i]);
  }

 private:
  static constexpr std::size_t kEntries = std::size_t{1} << 17;
  std::vector<Entry> entries_;
};

// Pieces of up to 63 bytes and of many ids, as words of other scripts are: two cache lines an entry, one place a piece.
template <typename Id>
class LongPieceCache {
 public:
  static constexpr std::size_t kMostBytes = 63;
  static constexpr std::size_t kMostIds = 64 / sizeof(Id) - 1;

  struct alignas(64) Entry {
    std::uint8_t size = 0;  // 0: empty
    char bytes[kMostBytes];
    Id count;
    Id ids[kMostIds];
    bool holds(std::string_view piece) const { return size == piece.size() && std::memcmp(bytes, piece.data(), size) == 0; }
  };

  LongPieceCache() : entries_(kEntries) {}
  Entry* place(std::string_view piece) {
    std::uint64_t hash = piece.size(), word = 0;
    std::size_t i = 0;
    for (; i + 8 <= piece.size(); i += 8) {
      std::memcpy(&word, piece.data() + i, 8);
      hash = mixed(hash, word);
    }
    word = 0;
    std::memcpy(&word, piece.data() + i, piece.size() - i);
    return &entries_[mixed(hash, word) & (kEntries - 1)];
  }
  static void store(Entry& entry, std::string_view piece, const std::vector<std::int32_t>& ids) {
    if (piece.size() > kMostBytes || ids.size() > kMostIds) return;
    entry.size = static_cast<std::uint8_t>(piece.size());
    std::memcpy(entry.bytes, piece.data(), piece.size());
    entry.count = static_cast<Id>(ids.size());
    std::copy(ids.begin(), ids.end(), entry.ids);
  }

 private:
  static constexpr std::size_t kEntries = std::size_t{1} << 15;
  std::vector<Entry> entries_;
};

template <typename Id>
class BpeEncoder final : public Encoder {
 public:
  explicit BpeEncoder(std::shared_ptr<const Tables> tables)
      : tables_(std::move(tables)), digits_apart_(tables_->vocabulary.pretokenizer == "digits-gpt2"), whole_(tables_->vocabulary.pretokenizer == "none") {}

  void encode(std::string_view text, std::vector<std::int32_t>& ids) override;
  std::size_t last_cut(std::string_view text) const override { return whole_ ? 0 : last_piece_cut(text); }
  std::unique_ptr<Encoder> copy() const override { return std::make_unique<BpeEncoder>(tables_); }

 private:
  using Cache = PieceCache<Id>;
  using LongCache = LongPieceCache<Id>;
  static constexpr std::size_t kGroup = 64;
  struct Lookup {
    std::string_view piece;
    typename Cache::Key key;
    typename Cache::Entry* bucket;  // none for a piece too long for the cache
    typename LongCache::Entry* entry;  // of such a piece, none for one longer still
  };

  void look_up(const Lookup* group, std::size_t count, std::vector<std::int32_t>& ids);
  void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) const {
    const std::int32_t token = tables_->tokens.find(piece);
    if (token >= 0 && tables_->reached[static_cast<std::size_t>(token)]) ids.push_back(token);
    else tables_->merge(piece, ids);
  }
  // A vocabulary that lacks bytes cannot say every text: looked at once, before anything is encoded.
  void check_bytes(std::string_view text) const {
    const std::size_t at = tables_->find_missing(text);
    if (at == std::string_view::npos) return;
    throw Unencodable{at, fmt::format("the vocabulary has no byte 0x{:02x}", static_cast<unsigned char>(text[at]))};
  }

  std::shared_ptr<const Tables> tables_;
  Cache cache_;
  LongCache long_cache_;
  bool digits_apart_, whole_;
  std::size_t used_ = 0;             // ids of the vector that are filled
  std::vector<std::int32_t> fresh_;  // of a piece that was not in the cache
};

template <typename Id>
void BpeEncoder<Id>::encode(std::string_view text, std::vector<std::int32_t>& ids) {
  check_bytes(text);
  if (whole_) return text.empty() ? void() : encode_piece(text, ids);
  // Pieces in groups: first the places of all in the cache are computed and fetched, then they are looked at, so that the
  // memory is waited for once a group and not once a piece.
  std::array<Lookup, kGroup> group;
  std::size_t count = 0;
  used_ = ids.size();
  for_each_piece(text, digits_apart_, [&](std::size_t begin, std::size_t end) {
    Lookup& lookup = group[count++];
    lookup.piece = text.substr(begin, end - begin);
    if (lookup.piece.size() <= Cache::kMostBytes) {
      lookup.key = Cache::key_of(lookup.piece.data(), lookup.piece.size(), begin + 16 <= text.size());
      lookup.bucket = cache_.bucket(lookup.key);
      __builtin_prefetch(lookup.bucket);
      lookup.entry = nullptr;
    } else {
      lookup.bucket = nullptr;
      lookup.entry = lookup.piece.size() <= LongCache::kMostBytes ? long_cache_.place(lookup.piece) : nullptr;
      __builtin_prefetch(lookup.entry);
    }
    if (count < kGroup) return;
    look_up(group.data(), count, ids);
    count = 0;
  });
  look_up(group.data(), count, ids);
  ids.resize(used_);
}

// Ids are written behind used_; the vector is kept larger than a group may need, so that a hit checks nothing.
template <typename Id>
void BpeEncoder<Id>::look_up(const Lookup* group, std::size_t count, std::vector<std::int32_t>& ids) {
  const std::size_t most = kGroup * (Cache::kMostIds + 1);
  if (ids.size() < used_ + most) ids.resize(std::max(2 * ids.size(), used_ + 16 * most));
  for (std::size_t p = 0; p < count; ++p) {
    const Lookup& lookup = group[p];
    const typename Cache::Entry* hit = nullptr;
    if (lookup.bucket != nullptr) {
      if (Cache::same(lookup.bucket[0], lookup.key)) hit = &lookup.bucket[0];
      else if (Cache::same(lookup.bucket[1], lookup.key)) hit = &lookup.bucket[1];
    }
    if (hit != nullptr) {
      std::int32_t* const out = ids.data() + used_;
      for (std::size_t i = 0; i < Cache::kMostIds; ++i) out[i] = static_cast<std::int32_t>(hit->ids[i]);
      used_ += hit->count;
      continue;
    }
    // A short piece of many ids is kept with the long ones.
    typename LongCache::Entry* entry = lookup.entry;
    if (lookup.bucket != nullptr && lookup.piece.size() > Cache::kMostIds) entry = long_cache_.place(lookup.piece);
    if (entry != nullptr && entry->holds(lookup.piece)) {
      if (ids.size() < used_ + entry->count + most) ids.resize(2 * ids.size());
      std::copy(entry->ids, entry->ids + entry->count, ids.data() + used_);
      used_ += entry->count;
      continue;
    }
    fresh_.clear();
    encode_piece(lookup.piece, fresh_);
    if (ids.size() < used_ + fresh_.size() + most) ids.resize(2 * ids.size() + fresh_.size());
    std::copy(fresh_.begin(), fresh_.end(), ids.data() + used_);
    used_ += fresh_.size();
    if (lookup.bucket != nullptr && fresh_.size() <= Cache::kMostIds) Cache::store(lookup.bucket, lookup.key, fresh_.data(), fresh_.size());
    else if (entry != nullptr) LongCache::store(*entry, lookup.piece, fresh_);
  }
}

}  // namespace

std::unique_ptr<Encoder> make_bpe_encoder(const Vocabulary& vocabulary) {
  auto tables = std::make_shared<const Tables>(vocabulary);
  if (vocabulary.size() <= 65536) return std::make_unique<BpeEncoder<std::uint16_t>>(std::move(tables));
  return std::make_unique<BpeEncoder<std::uint32_t>>(std::move(tables));
}

}  // namespace gdds::text
