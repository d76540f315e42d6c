// See bpe_merge.h. What makes it fast: a merge joins something that ends with a byte a and something that begins with a
// byte b, and most (a, b) are in no merge at all (of GPT-2's, 2,689 of 65,536 are, and few of these stand between the
// characters of other scripts). There a piece falls into parts that are merged each on its own, mostly of one byte or two.
// Longer parts look at all pairs for the best one, and very long ones use a heap, so that a million equal letters take
// n log n.
#include "text/bpe_merge.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace gdds::text {
namespace {

constexpr std::size_t kWindow = 64;

// A pair as one number, rank above the token it makes, so that the smallest number is the best pair.
constexpr std::uint64_t kNoPair = std::uint64_t{PairTable::kNoRank} << 32;
std::uint64_t packed(const PairTable::Entry& e) { return std::uint64_t{e.rank} << 32 | static_cast<std::uint32_t>(e.made); }
std::int32_t token_of(std::uint64_t pair) { return static_cast<std::int32_t>(pair & 0xffffffff); }

std::size_t two_bytes(unsigned char first, unsigned char second) { return std::size_t{first} << 8 | second; }
std::size_t two_bytes(char first, char second) { return two_bytes(static_cast<unsigned char>(first), static_cast<unsigned char>(second)); }

}  // namespace

Merger::Merger(const Vocabulary& v) : pairs_(v.merges.size()), of_bytes_(65536) {
  std::unordered_map<std::string_view, std::int32_t> ids;  // of tokens with the same bytes, the first
  ids.reserve(v.types.size());
  for (std::int32_t id = 0; id < v.size(); ++id)
    if (!v.is_special(id)) ids.emplace(v.token(id), id);
  const auto find = [&](std::string_view bytes) {
    const auto found = ids.find(bytes);
    return found != ids.end() ? found->second : -1;
  };
  for (std::size_t b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    of_byte_[b] = find({&byte, 1});
  }
  complete_ = std::count(of_byte_.begin(), of_byte_.end(), -1) == 0;
  std::string joined;
  for (std::size_t rank = 0; rank < v.merges.size(); ++rank) {
    const auto [left, right] = v.merges[rank];
    const std::string_view first = v.token(left), second = v.token(right);
    joined.assign(first).append(second);
    if (first.empty() || second.empty() || find(joined) < 0) continue;  // can join nothing
    pairs_.insert({left, right, static_cast<std::uint32_t>(rank), find(joined)});
    const std::size_t joint = two_bytes(first.back(), second.front());
    joinable_[joint / 64] |= std::uint64_t{1} << joint % 64;
  }
  for (std::size_t b = 0; b < of_bytes_.size(); ++b) of_bytes_[b] = packed(pairs_.find(of_byte_[b >> 8], of_byte_[b & 255]));
}

std::size_t Merger::find_missing(std::string_view bytes) const {
  for (std::size_t i = 0; !complete_ && i < bytes.size(); ++i)
    if (of_byte_[static_cast<unsigned char>(bytes[i])] < 0) return i;
  return std::string_view::npos;
}

// Bit i: bytes i and i+1 may come to be joined.
std::uint64_t Merger::joints(const unsigned char* bytes, std::size_t count) const {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t joint = two_bytes(bytes[i], bytes[i + 1]);
    mask |= (joinable_[joint / 64] >> joint % 64 & 1) << i;
  }
  return mask;
}

std::int32_t* Merger::merge(std::string_view piece, std::int32_t* out) const {
  const auto* at = reinterpret_cast<const unsigned char*>(piece.data());
  const unsigned char* const end = at + piece.size();
  while (at < end) {
    // 64 bytes at a time, as far as their parts are whole.
    const auto left = static_cast<std::size_t>(end - at);
    const std::uint64_t mask = joints(at, std::min(kWindow, left - 1));
    const std::size_t whole = std::min(left, kWindow - static_cast<std::size_t>(std::countl_one(mask)));
    if (whole == 0) {
      std::size_t size = kWindow + 1;
      while (size < left && joints(at + size - 1, 1) != 0) ++size;
      out = merge_long(at, size, out);
      at += size;
      continue;
    }
    for (std::size_t i = 0; i < whole;) {
      const std::uint64_t rest = mask >> i;
      if ((rest & 3) == 3) {
        const auto size = static_cast<std::size_t>(std::countr_one(rest)) + 1;
        out = size == 3 ? merge_three(at + i, out) : merge_short(at + i, size, out);
        i += size;
      } else {  // one byte or two, which follow each other at random: without a branch
        const std::uint64_t pair = (rest & 1) != 0 ? of_bytes_[two_bytes(at[i], at[i + 1])] : kNoPair;
        *out++ = pair < kNoPair ? token_of(pair) : of_byte_[at[i]];
        i += pair < kNoPair ? 2 : 1;
      }
    }
    at += whole;
  }
  return out;
}

// Half of the parts that are longer than two.
std::int32_t* Merger::merge_three(const unsigned char* part, std::int32_t* out) const {
  const std::uint64_t first = of_bytes_[two_bytes(part[0], part[1])], second = of_bytes_[two_bytes(part[1], part[2])];
  const bool right = second < first;
  if (std::min(first, second) >= kNoPair) {
    for (int i = 0; i < 3; ++i) *out++ = of_byte_[part[i]];
    return out;
  }
  const std::int32_t a = right ? of_byte_[part[0]] : token_of(first), b = right ? token_of(second) : of_byte_[part[2]];
  const std::uint64_t last = packed(pairs_.find(a, b));
  out[0] = last < kNoPair ? token_of(last) : a;
  out[1] = b;
  return out + (last < kNoPair ? 1 : 2);
}

// Of at most 64 bytes.
std::int32_t* Merger::merge_short(const unsigned char* part, std::size_t size, std::int32_t* id) const {
  std::uint64_t pair[kWindow];  // of (i, i+1)
  const auto look = [&](std::size_t i) { pair[i] = packed(pairs_.find(id[i], id[i + 1])); };
  for (std::size_t i = 0; i < size; ++i) id[i] = of_byte_[part[i]];
  for (std::size_t i = 0; i + 1 < size; ++i) pair[i] = of_bytes_[two_bytes(part[i], part[i + 1])];
  while (size > 1) {
    std::size_t best = 0;
    std::uint64_t least = pair[0];
    for (std::size_t i = 1; i + 1 < size; ++i) {
      const bool better = pair[i] < least;
      least = better ? pair[i] : least;
      best = better ? i : best;
    }
    if (least >= kNoPair) break;
    id[best] = token_of(least);
    --size;
    for (std::size_t i = best + 1; i < size; ++i) id[i] = id[i + 1];
    for (std::size_t i = best; i + 1 < size; ++i) pair[i] = pair[i + 1];
    if (best + 1 < size) look(best);
    if (best > 0) look(best - 1);
  }
  return id + size;
}

// The same with a heap of pairs by (rank, position) and a linked list; an entry that no longer holds is passed over.
std::int32_t* Merger::merge_long(const unsigned char* part, std::size_t size, std::int32_t* out) const {
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
  const auto n = static_cast<std::int64_t>(size);
  std::vector<Symbol> symbols(size);
  const auto symbol = [&](std::int64_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
  for (std::int64_t i = 0; i < n; ++i) symbol(i) = {of_byte_[part[i]], i - 1, i + 1 < n ? i + 1 : -1};
  std::vector<Candidate> heap;
  const auto candidate = [&](std::int64_t at, Candidate& c) {
    if (at < 0 || symbol(at).after < 0) return false;
    const PairTable::Entry& e = pairs_.find(symbol(at).id, symbol(symbol(at).after).id);
    c = {e.rank, at, e.left, e.right, e.made};
    return e.rank != PairTable::kNoRank;
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
  for (std::int64_t i = 0; i >= 0; i = symbol(i).after) *out++ = symbol(i).id;
  return out;
}

std::int32_t* Merger::merge_plainly(std::string_view piece, std::int32_t* out) const {
  std::size_t count = 0;
  for (const char byte : piece) out[count++] = of_byte_[static_cast<unsigned char>(byte)];
  while (true) {
    std::uint64_t least = kNoPair;
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < count; ++i)
      if (const std::uint64_t pair = packed(pairs_.find(out[i], out[i + 1])); pair < least) least = pair, best = i;
    if (least == kNoPair) return out + count;
    out[best] = token_of(least);
    std::copy(out + best + 2, out + count, out + best + 1);
    --count;
  }
}

}  // namespace gdds::text
