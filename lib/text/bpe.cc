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

// (left, right) to the merge's rank and the token it makes. Open addressing, at most half full.
class PairTable {
 public:
  struct Entry {
    std::int32_t left = -1, right = -1;
    std::uint32_t rank = kNoRank;
    std::int32_t made = -1;
  };

  explicit PairTable(std::size_t count) : entries_(std::bit_ceil(2 * count + 2)), mask_(entries_.size() - 1) {}

  void insert(const Entry& entry) {
    std::size_t i = place(entry.left, entry.right);
    while (entries_[i].left >= 0) {
      if (entries_[i].left == entry.left && entries_[i].right == entry.right) return;  // the better rank came first
      i = (i + 1) & mask_;
    }
    entries_[i] = entry;
  }
  const Entry& find(std::int32_t left, std::int32_t right) const {
    std::size_t i = place(left, right);
    while (entries_[i].left >= 0 && !(entries_[i].left == left && entries_[i].right == right)) i = (i + 1) & mask_;
    return entries_[i];
  }

 private:
  std::size_t place(std::int32_t left, std::int32_t right) const {
    return mixed(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right)) & mask_;
  }
  std::vector<Entry> entries_;
  std::size_t mask_;
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
  void merge(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void merge_long(std::string_view piece, std::vector<std::int32_t>& ids) const;
};

// Joins the leftmost of the best-ranked pairs until there is none; looks at all pairs each time.
void Tables::merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const {
  std::int32_t id[kLongPiece];
  std::uint32_t rank[kLongPiece];  // of (i, i+1)
  std::int32_t made[kLongPiece];
  std::size_t n = piece.size();
  const auto look = [&](std::size_t i) {
    const PairTable::Entry& entry = pairs.find(id[i], id[i + 1]);
    rank[i] = entry.rank;
    made[i] = entry.made;
  };
  for (std::size_t i = 0; i < n; ++i) id[i] = of_byte[static_cast<unsigned char>(piece[i])];
  for (std::size_t i = 0; i + 1 < n; ++i) look(i);
  while (n > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < n; ++i)
      if (rank[i] < rank[best]) best = i;
    if (rank[best] == kNoRank) break;
    id[best] = made[best];
    std::memmove(id + best + 1, id + best + 2, (n - best - 2) * sizeof *id);
    std::memmove(rank + best, rank + best + 1, (n - best - 2) * sizeof *rank);
    std::memmove(made + best, made + best + 1, (n - best - 2) * sizeof *made);
    --n;
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
  static constexpr std::size_t kGroup = 64;
  struct Lookup {
    std::string_view piece;
    typename Cache::Key key;
    typename Cache::Entry* bucket;  // none for a piece too long for the cache
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
    } else {
      lookup.bucket = nullptr;
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
    fresh_.clear();
    encode_piece(lookup.piece, fresh_);
    if (ids.size() < used_ + fresh_.size() + most) ids.resize(2 * ids.size() + fresh_.size());
    std::copy(fresh_.begin(), fresh_.end(), ids.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += fresh_.size();
    if (lookup.bucket != nullptr && fresh_.size() <= Cache::kMostIds) Cache::store(lookup.bucket, lookup.key, fresh_.data(), fresh_.size());
  }
}

}  // namespace

std::unique_ptr<Encoder> make_bpe_encoder(const Vocabulary& vocabulary) {
  auto tables = std::make_shared<const Tables>(vocabulary);
  if (vocabulary.size() <= 65536) return std::make_unique<BpeEncoder<std::uint16_t>>(std::move(tables));
  return std::make_unique<BpeEncoder<std::uint32_t>>(std::move(tables));
}

}  // namespace gdds::text
