// BERT's uncased scheme: text is cleaned, stripped of accents and put in lower case, cut at white space and around
// punctuation, and each word is covered by the longest pieces of the vocabulary from its left. Ids are those of PyPI
// `tokenizers` (BertNormalizer, BertPreTokenizer, WordPiece), which the published models are used with; where that
// library's Unicode tables are older than ours, its tables decide. English goes through byte tables and a cache of
// words; everything else through an entry a code point, made on first use.
#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstring>
#include <span>
#include <utility>

#include <utf8proc.h>

#include "text/encoder.h"
#include "text/unicode.h"

namespace gdds::text {
namespace {

// ---- what the scheme makes of a code point --------------------------------------------------------------------------

enum class Kind : std::uint8_t { plain, dropped, blank, ideograph };

// A plain code point becomes up to four: its canonical decomposition without accents, in lower case. Code 0 stands for
// an accent of combining class 0: it leaves nothing behind, but what is before it is not reordered with what follows.
struct Entry {
  std::array<char32_t, 4> codes;
  std::array<std::uint8_t, 4> orders;  // combining classes
  std::uint8_t count;
  Kind kind;
};

struct Range {
  char32_t first, last;
  bool operator<(char32_t code) const { return last < code; }
};

bool in(std::span<const Range> sorted, char32_t code) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), code);
  return at != sorted.end() && at->first <= code;
}

// The library's categories are Unicode 8's. These ranges hold all format characters, accents, punctuation, decomposable
// and combining characters that came later (up to Unicode 18) and none that were there before; they count as letters.
// What else lies in the ranges is letters anyway.
constexpr std::array kNewer = std::to_array<Range>({
    {0x5c8, 0x5c9},     {0x61d, 0x61d},     {0x7fd, 0x7fd},     {0x890, 0x8e2},     {0x9fd, 0x9fe},
    {0xa76, 0xa76},     {0xafa, 0xaff},     {0xb53, 0xb55},     {0xc04, 0xc3c},     {0xc77, 0xc77},
    {0xc84, 0xc84},     {0xd00, 0xd00},     {0xd3b, 0xd3c},     {0xd81, 0xd81},     {0xeba, 0xeba},
    {0xece, 0xece},     {0x1715, 0x1715},   {0x180f, 0x1886},   {0x1abf, 0x1af0},   {0x1b4e, 0x1b4f},
    {0x1b7d, 0x1b7f},   {0x1df6, 0x1dfb},   {0x2e43, 0x2e63},   {0xa82c, 0xa82c},   {0xa8c5, 0xa8c5},
    {0xa8ff, 0xa8ff},   {0xa9bd, 0xa9bd},   {0x105c9, 0x105e4}, {0x10d24, 0x10f89}, {0x11070, 0x11074},
    {0x110c2, 0x110cd}, {0x111cf, 0x111cf}, {0x1123e, 0x11241}, {0x1133b, 0x1133b}, {0x11383, 0x1145e},
    {0x11660, 0x1166c}, {0x116b9, 0x116b9}, {0x1182f, 0x11fff}, {0x12ff1, 0x1612f}, {0x16d63, 0x16f4f},
    {0x16fe2, 0x16ff1}, {0x1cf00, 0x1d128}, {0x1d250, 0x1d281}, {0x1e000, 0x1e6f5}, {0x1e944, 0x1e95f},
});

// Of those, the accents of Unicode 9, whose place in the canonical order the library does know.
constexpr std::array kNewerInOrder = std::to_array<Range>({
    {0x8d4, 0x8e1},     {0x1dfb, 0x1dfb},   {0x11442, 0x11446}, {0x11c3f, 0x11c3f}, {0x1e000, 0x1e02a},
    {0x1e944, 0x1e94a},
});

// Hangul, Kana and the like are not among them: those are written in words.
constexpr std::array kIdeographs = std::to_array<Range>({
    {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
    {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
});

// Categories of today, but for three characters that changed theirs after Unicode 8. Unassigned code points have one
// that nothing here asks for, and so count as letters.
utf8proc_category_t category_of(char32_t code) {
  if (code == 0x1734) return UTF8PROC_CATEGORY_MN;
  if (code == 0x166d || code == 0x111c9) return UTF8PROC_CATEGORY_PO;
  if (in(kNewer, code)) return UTF8PROC_CATEGORY_LO;
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_control(char32_t code) {
  const auto category = category_of(code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) return code > ' ' && code < 0x7f && class_of(code) == Class::other;  // symbols too
  const auto category = category_of(code);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

// The one letter whose small form is two characters, U+0130, does not come this far: it has lost its dot.
char32_t lower(char32_t code) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

int order_of(char32_t code) {
  if (in(kNewer, code) && !in(kNewerInOrder, code)) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class;
}

void decompose(char32_t code, Entry& entry) {
  std::array<utf8proc_int32_t, 4> parts = {static_cast<utf8proc_int32_t>(code)};
  utf8proc_ssize_t count = 1;
  int boundary_state = 0;
  if (!in(kNewer, code))
    count = utf8proc_decompose_char(parts[0], parts.data(), parts.size(), UTF8PROC_DECOMPOSE, &boundary_state);
  assert(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()));
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    const auto part = static_cast<char32_t>(parts[static_cast<std::size_t>(i)]);
    const int order = order_of(part);
    const bool accent = category_of(part) == UTF8PROC_CATEGORY_MN;
    if (accent && order != 0) continue;
    entry.codes[entry.count] = accent ? 0 : lower(part);
    entry.orders[entry.count++] = static_cast<std::uint8_t>(order);
  }
}

Entry make_entry(char32_t code) {
  Entry entry{};
  const bool is_line = code == '\t' || code == '\n' || code == '\r';
  if (!is_line && (code == 0 || code == 0xfffd || is_control(code))) {
    entry.kind = Kind::dropped;
  } else if (class_of(code) == Class::space) {
    entry.kind = Kind::blank;
  } else {
    entry.kind = in(kIdeographs, code) ? Kind::ideograph : Kind::plain;
    decompose(code, entry);
  }
  return entry;
}

using Page = std::array<Entry, 256>;
std::array<std::atomic<const Page*>, 0x110000 / 256> pages{};

// Filled once and kept for good; of two threads that fill the same page one throws its copy away.
const Page& fill_page(std::size_t number) {
  auto page = std::make_unique<Page>();
  for (std::size_t i = 0; i < page->size(); ++i) (*page)[i] = make_entry(static_cast<char32_t>(number * 256 + i));
  const Page* expected = nullptr;
  if (pages[number].compare_exchange_strong(expected, page.get(), std::memory_order_acq_rel)) return *page.release();
  return *expected;
}

const Entry& entry_of(char32_t code) {
  const Page* const page = pages[code / 256].load(std::memory_order_acquire);
  return (page != nullptr ? *page : fill_page(code / 256))[code % 256];
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

// How a byte of text is met: white space, punctuation, or part of a run; a run of anything but ASCII letters and digits
// (control characters and bytes of longer characters) takes the long way.
enum Byte : std::uint8_t { kLetter = 0, kLong = 1, kWhite = 2, kMark = 4 };

constexpr std::array<Byte, 256> make_bytes() {
  std::array<Byte, 256> bytes{};
  for (int b = 0; b < 256; ++b) {
    const bool letter = (b >= '0' && b <= '9') || (b >= 'A' && b <= 'Z') || (b >= 'a' && b <= 'z');
    const bool white = b == ' ' || b == '\t' || b == '\n' || b == '\r';
    bytes[static_cast<std::size_t>(b)] = letter ? kLetter : white ? kWhite : b > ' ' && b < 0x7f ? kMark : kLong;
  }
  return bytes;
}
constexpr std::array<Byte, 256> kBytes = make_bytes();

Byte byte_at(const char* at) { return kBytes[static_cast<unsigned char>(*at)]; }

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

std::size_t characters_in(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), begins_character));
}

// FNV-1a: it goes on from the hash of a prefix, so a word's prefixes are hashed in one pass.
constexpr std::uint64_t kHashOfNothing = 0xcbf29ce484222325;
std::uint64_t hash_on(std::uint64_t hash, char byte) {
  return (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
}

// ---- the vocabulary as a table --------------------------------------------------------------------------------------

constexpr std::size_t kMostCharacters = 100;  // a longer word is unknown
constexpr std::string_view kInside = "##";

// Pieces that begin a word and pieces inside one are told apart by the hash they start from.
constexpr std::array<std::uint64_t, 2> kSeeds = {kHashOfNothing, ~kHashOfNothing};

class Tables {
 public:
  explicit Tables(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    std::size_t slots = 1024;
    while (slots < 2 * vocabulary_.types.size()) slots *= 2;
    slots_.resize(slots);
    for (std::int32_t id = 0; id < vocabulary_.size(); ++id)
      if (!vocabulary_.is_special(id)) add(id);
    for (char c = '!'; c < 0x7f; ++c) marks_[static_cast<std::size_t>(c)] = find(false, {&c, 1}, hash_on(kSeeds[0], c));
  }

  std::int32_t unknown() const { return vocabulary_.unk; }
  std::int32_t mark(char c) const { return marks_[static_cast<std::size_t>(c)]; }
  std::size_t longest() const { return longest_; }

  // The id of these bytes (their ## left out) or -1.
  std::int32_t find(bool inside, std::string_view piece, std::uint64_t hash) const {
    for (std::size_t at = slot(hash);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& s = slots_[at];
      if (s.id < 0 || (s.tag == tag(hash) && key(s.id) == std::pair(inside, piece))) return s.id;
    }
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::int32_t id = -1;
  };

  std::size_t slot(std::uint64_t hash) const { return (hash ^ hash >> 32) & (slots_.size() - 1); }
  static std::uint32_t tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

  std::pair<bool, std::string_view> key(std::int32_t id) const {
    const std::string_view token = vocabulary_.token(id);
    const bool inside = token.size() > kInside.size() && token.starts_with(kInside);
    return {inside, inside ? token.substr(kInside.size()) : token};
  }

  void add(std::int32_t id) {
    const auto [inside, piece] = key(id);
    std::uint64_t hash = kSeeds[inside];
    for (const char byte : piece) hash = hash_on(hash, byte);
    if (piece.empty() || find(inside, piece, hash) >= 0) return;  // of equal tokens the first, as in Vocabulary::find
    std::size_t at = slot(hash);
    while (slots_[at].id >= 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {tag(hash), id};
    longest_ = std::max(longest_, piece.size());
  }

  Vocabulary vocabulary_;
  std::vector<Slot> slots_;
  std::size_t longest_ = 0;
  std::array<std::int32_t, 128> marks_{};
};

// ---- the encoder ----------------------------------------------------------------------------------------------------

// A run as it stands in the text and its ids, a cache line. Runs that do not fit are not remembered.
struct alignas(64) Remembered {
  std::array<std::int32_t, 6> ids;
  std::array<char, 38> run;
  std::uint8_t bytes = 0;
  std::uint8_t count = 0;
};
constexpr std::size_t kRemembered = 1 << 14;

class WordPieceEncoder final : public Encoder {
 public:
  explicit WordPieceEncoder(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)), cache_(kRemembered) {}

  void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
      const Byte byte = byte_at(p);
      if (byte == kWhite) {
        ++p;
        continue;
      }
      at_ = static_cast<std::size_t>(p - text.data());
      if (byte == kMark) {
        add_mark(*p++, ids);
        continue;
      }
      const char* const begin = p;
      std::uint64_t hash = kHashOfNothing;
      unsigned seen = 0;
      for (; p < end && byte_at(p) < kWhite; ++p) {
        seen |= byte_at(p);
        hash = hash_on(hash, *p);
      }
      add_run({begin, static_cast<std::size_t>(p - begin)}, hash, seen == kLetter, ids);
    }
  }

  std::size_t last_cut(std::string_view text) const override {
    const auto at = text.find_last_of(" \n");  // white space always parts words
    return at == std::string_view::npos ? 0 : at;
  }

  std::unique_ptr<Encoder> copy() const override { return std::make_unique<WordPieceEncoder>(tables_); }

 private:
  void add_unknown(std::vector<std::int32_t>& ids) const {
    if (tables_->unknown() < 0) throw Unencodable{at_, "not in the vocabulary, which has no unknown token"};
    ids.push_back(tables_->unknown());
  }

  void add_mark(char mark, std::vector<std::int32_t>& ids) const {
    const std::int32_t id = tables_->mark(mark);
    id >= 0 ? ids.push_back(id) : add_unknown(ids);
  }

  // What lies between white space and ASCII punctuation, neither of which an accent can change.
  void add_run(std::string_view run, std::uint64_t hash, bool ascii, std::vector<std::int32_t>& ids) {
    Remembered& known = cache_[(hash ^ hash >> 32) % kRemembered];
    if (known.bytes == run.size() && std::memcmp(known.run.data(), run.data(), run.size()) == 0) {
      ids.insert(ids.end(), known.ids.begin(), known.ids.begin() + known.count);
      return;
    }
    const std::size_t before = ids.size();
    word_.clear();  // of a run that ended in an exception
    waiting_.clear();
    ascii ? add_ascii(run, ids) : add_unicode(run, ids);
    const std::size_t count = ids.size() - before;
    if (run.size() > known.run.size() || count > known.ids.size()) return;
    std::copy(run.begin(), run.end(), known.run.begin());
    std::copy(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end(), known.ids.begin());
    known.bytes = static_cast<std::uint8_t>(run.size());
    known.count = static_cast<std::uint8_t>(count);
  }

  void add_ascii(std::string_view run, std::vector<std::int32_t>& ids) {
    for (const char c : run) word_ += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    end_word(ids);
  }

  void add_unicode(std::string_view run, std::vector<std::int32_t>& ids) {
    const char* const end = run.data() + run.size();
    for (const char* p = run.data(); p < end;) {
      const Decoded d = decode(p, end);
      if (d.code == kInvalid) throw Unencodable{at_ + static_cast<std::size_t>(p - run.data()), "not UTF-8"};
      p += d.bytes;
      const Entry& entry = entry_of(d.code);
      if (entry.kind == Kind::dropped) continue;
      if (entry.kind != Kind::plain) end_waiting(ids), end_word(ids);
      for (std::size_t i = 0; i < entry.count; ++i) add_part(entry.codes[i], entry.orders[i], ids);
      if (entry.kind == Kind::ideograph) end_waiting(ids), end_word(ids);
    }
    end_waiting(ids);
    end_word(ids);
  }

  // Canonical order: characters of a combining class other than 0 wait for the next of class 0 and are sorted.
  void add_part(char32_t code, std::uint8_t order, std::vector<std::int32_t>& ids) {
    if (order != 0) {
      waiting_.emplace_back(order, code);
      return;
    }
    end_waiting(ids);
    if (code != 0) add_character(code, ids);
  }

  void end_waiting(std::vector<std::int32_t>& ids) {
    if (waiting_.empty()) return;
    std::stable_sort(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [order, code] : waiting_) add_character(code, ids);
    waiting_.clear();
  }

  void add_character(char32_t code, std::vector<std::int32_t>& ids) {
    const bool alone = is_punctuation(code);
    if (alone) end_word(ids);
    append_utf8(word_, code);
    if (alone) end_word(ids);
  }

  // The word's longest pieces from the left, or the unknown token for all of it.
  void end_word(std::vector<std::int32_t>& ids) {
    if (word_.empty()) return;
    const std::size_t before = ids.size();
    bool known = characters_in(word_) <= kMostCharacters;
    for (std::size_t at = 0; known && at < word_.size();) {
      const std::size_t bytes = add_piece(std::string_view(word_).substr(at), at > 0, ids);
      known = bytes > 0;
      at += bytes;
    }
    if (!known) ids.resize(before), add_unknown(ids);
    word_.clear();
  }

  // Appends the longest piece that the rest of the word begins with and returns its length, 0 if there is none.
  std::size_t add_piece(std::string_view rest, bool inside, std::vector<std::int32_t>& ids) const {
    std::array<std::uint64_t, 4 * kMostCharacters + 1> hashes;
    hashes[0] = kSeeds[inside];
    const std::size_t most = std::min(rest.size(), tables_->longest());
    for (std::size_t i = 0; i < most; ++i) hashes[i + 1] = hash_on(hashes[i], rest[i]);
    for (std::size_t n = most; n > 0; --n) {
      if (n < rest.size() && !begins_character(rest[n])) continue;
      const std::int32_t id = tables_->find(inside, rest.substr(0, n), hashes[n]);
      if (id < 0) continue;
      ids.push_back(id);
      return n;
    }
    return 0;
  }

  std::shared_ptr<const Tables> tables_;
  std::vector<Remembered> cache_;
  std::size_t at_ = 0;  // where in the text the run begins, for errors
  std::string word_;    // normalised, so far
  std::vector<std::pair<std::uint8_t, char32_t>> waiting_;  // combining class and character
};

}  // namespace

std::unique_ptr<Encoder> make_wordpiece_encoder(const Vocabulary& vocabulary) {
  return std::make_unique<WordPieceEncoder>(std::make_shared<const Tables>(vocabulary));
}

}  // namespace gdds::text
