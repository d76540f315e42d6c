// See splitter.h.
#include "text/splitter.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "text/unicode.h"

namespace gdds::text {
namespace {

constexpr std::size_t kBlock = 64;

Class class_at(std::string_view text, std::size_t at, std::size_t& bytes) {
  const Decoded d = decode(text.data() + at, text.data() + text.size());
  bytes = d.bytes;
  return class_of(d.code);
}

// 's and its siblings: how many bytes, or 0.
std::size_t contraction_bytes(std::string_view text, std::size_t at) {
  for (const std::string_view word : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.substr(at, word.size()) == word) return word.size();
  return 0;
}

// The run of one class that begins at `at`.
std::size_t run_end(std::string_view text, std::size_t at, Class wanted) {
  std::size_t bytes = 0;
  while (at < text.size() && class_at(text, at, bytes) == wanted) at += bytes;
  return at;
}

std::size_t white_piece_end(std::string_view text, std::size_t at, bool digits_apart) {
  const std::size_t end = run_end(text, at, Class::space);
  std::size_t bytes = 0;
  const bool followed = end < text.size() && !(digits_apart && class_at(text, end, bytes) == Class::number);
  if (!followed) return end;
  // \s+(?!\S) gives back the last character of the run; a run of one is left to \s+.
  std::size_t last = at;
  for (std::size_t p = at; p < end; p += bytes) {
    class_at(text, p, bytes);
    last = p;
  }
  return last > at ? last : end;
}

}  // namespace

std::size_t piece_end(std::string_view text, std::size_t at, bool digits_apart) {
  if (const std::size_t bytes = contraction_bytes(text, at); bytes > 0) return at + bytes;
  std::size_t bytes = 0;
  const bool blank = text[at] == ' ' && at + 1 < text.size();
  const std::size_t body = blank ? at + 1 : at;
  const Class kind = class_at(text, body, bytes);
  if (digits_apart && kind == Class::number) return blank ? body : body + bytes;
  if (kind != Class::space) return run_end(text, body, kind);
  return white_piece_end(text, at, digits_apart);
}

std::size_t last_piece_cut(std::string_view text) {
  // An ASCII sign or letter before an ASCII blank or line end is the common case, found from behind.
  const auto solid = [](char c) { return c > ' ' && c < 0x7f; };
  for (std::size_t i = text.size(); i-- > 1;)
    if ((text[i] == ' ' || text[i] == '\n') && solid(text[i - 1])) return i;
  // Otherwise a letter or a number before anything of another class (Chinese text has its punctuation).
  std::size_t cut = 0;
  Class before = Class::space;
  std::size_t bytes = 0;
  for (std::size_t at = 0; at < text.size(); at += bytes) {
    const Decoded d = decode(text.data() + at, text.data() + text.size());
    if (d.code == kInvalid && text.size() - at < 4) break;  // perhaps a character cut off by the end
    bytes = d.bytes;
    const Class kind = class_of(d.code);
    if (kind != before && (before == Class::letter || before == Class::number)) cut = at;
    before = kind;
  }
  return cut;
}

// The classes of 64 bytes, those beyond ASCII taken for others; returns where characters beyond ASCII may begin.
#if defined(__SSE2__)
std::uint64_t Splitter::classify_ascii(const char* at, Masks& m) {
  const auto below = [](__m128i value, char limit) {  // value < limit, unsigned
    return _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(static_cast<char>(limit - 1))), value);
  };
  std::uint64_t leads = 0;
  for (int i = 0; i < 4; ++i) {
    const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + i);
    const auto put = [i](std::uint64_t& mask, __m128i lanes) {
      mask |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(lanes))) << (16 * i);
    };
    put(leads, _mm_and_si128(c, _mm_cmpgt_epi8(c, _mm_set1_epi8(static_cast<char>(0xbf)))));
    put(m.letter, below(_mm_sub_epi8(_mm_or_si128(c, _mm_set1_epi8(0x20)), _mm_set1_epi8('a')), 26));
    put(m.number, below(_mm_sub_epi8(c, _mm_set1_epi8('0')), 10));
    const __m128i blank = _mm_cmpeq_epi8(c, _mm_set1_epi8(' '));
    put(m.blank, blank);
    put(m.space, _mm_or_si128(blank, below(_mm_sub_epi8(c, _mm_set1_epi8(9)), 5)));
    put(m.quote, _mm_cmpeq_epi8(c, _mm_set1_epi8('\'')));
  }
  m.other = ~(m.letter | m.number | m.space);
  return leads;
}
#else
std::uint64_t Splitter::classify_ascii(const char* at, Masks& m) {
  std::uint64_t leads = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    const auto byte = static_cast<unsigned char>(at[i]);
    if (byte >= 0xc0) leads |= bit;
    const Class kind = byte < 0x80 ? class_of(byte) : Class::other;
    (kind == Class::letter ? m.letter : kind == Class::number ? m.number : kind == Class::space ? m.space : m.other) |= bit;
    if (byte == ' ') m.blank |= bit;
    if (byte == '\'') m.quote |= bit;
  }
  return leads;
}
#endif

// Puts the characters beyond ASCII into their classes; a character that the end of the block cuts ends the block. Where the
// next one is does not wait for what this one is, so the processor works on several.
void Splitter::classify_beyond(std::uint64_t leads, Masks& m) const {
  const char* const begin = text_.data() + at_;
  const char* const end = text_.data() + text_.size();
  std::uint64_t of_class[4] = {}, inner = 0;
  for (; leads != 0; leads &= leads - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(leads));
    const Decoded d = decode(begin + i, end);
    if (i + d.bytes > m.bytes) {
      m.bytes = i;
      break;
    }
    const std::uint64_t all = ((std::uint64_t{1} << d.bytes) - 1) << i;
    of_class[static_cast<std::size_t>(class_of(d.code))] |= all;
    inner |= all & (all << 1);
  }
  const auto found = [&](Class kind) { return of_class[static_cast<std::size_t>(kind)]; };
  m.letter |= found(Class::letter);
  m.number |= found(Class::number);
  m.space |= found(Class::space);
  m.other = ~(m.letter | m.number | m.space);
  m.inner = inner;
}

Splitter::Masks Splitter::classify() const {
  Masks m;
  m.bytes = std::min<std::size_t>(kBlock, text_.size() - at_);
  char tail[kBlock] = {};
  const char* at = text_.data() + at_;
  if (m.bytes < kBlock) at = static_cast<const char*>(std::memcpy(tail, at, m.bytes));
  if (const std::uint64_t leads = classify_ascii(at, m); leads != 0) classify_beyond(leads, m);
  return m;
}

// A piece that begins with ' may be a contraction: the letters belong to it, and the next piece begins behind them.
void Splitter::find_contractions(const Masks& m, std::uint64_t& starts) {
  const auto apply = [&] {  // to the part of this block that the contraction covers
    if (contraction_end_ < at_) return;
    const std::size_t covered = contraction_end_ - at_;
    if (covered < m.bytes) starts = (starts & ~((std::uint64_t{1} << covered) - 1)) | std::uint64_t{1} << covered;
    else starts = 0;
  };
  const std::uint64_t quotes = starts & m.quote;
  if (contraction_end_ > 0) apply();
  for (std::uint64_t left = quotes; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    const std::size_t bytes = contraction_bytes(text_, at_ + i);
    if (bytes == 0) continue;
    const std::uint64_t kept = starts & ((std::uint64_t{2} << i) - 1);
    contraction_end_ = at_ + i + bytes;
    std::uint64_t behind = starts & ~((std::uint64_t{2} << i) - 1);
    const std::size_t end = i + bytes;
    behind = end < m.bytes ? (behind >> end << end) | std::uint64_t{1} << end : 0;
    starts = kept | behind;
  }
}

std::uint64_t Splitter::next(std::size_t& bytes) {
  const Masks m = classify();
  bytes = m.bytes;
  // What follows the block decides whether white space at its end gives back its last character.
  const std::size_t after = at_ + m.bytes;
  bool solid_after = false;
  if (after < text_.size()) {
    std::size_t unused = 0;
    const Class kind = class_at(text_, after, unused);
    solid_after = kind != Class::space && !(digits_apart_ && kind == Class::number);
  }
  const std::uint64_t solid = digits_apart_ ? m.letter | m.other : m.letter | m.other | m.number;
  const std::uint64_t valid = m.bytes == kBlock ? ~std::uint64_t{0} : (std::uint64_t{1} << m.bytes) - 1;
  const std::uint64_t before_solid = (solid & valid) >> 1 | static_cast<std::uint64_t>(solid_after) << (m.bytes - 1);

  // White space: a run begins a piece, and so does its last character before something solid.
  std::uint64_t last_white = m.space & before_solid;
  for (std::uint64_t moved = last_white & m.inner; moved != 0; moved = last_white & m.inner)
    last_white = (last_white & ~moved) | moved >> 1;  // to the first byte of that character
  std::uint64_t starts = (m.space & ~(m.space << 1 | was_space_)) | last_white;
  // Anything else: where the class changes, unless a blank before it belongs to the piece.
  const std::uint64_t letters = m.letter & ~(m.letter << 1 | was_letter_);
  const std::uint64_t others = m.other & ~(m.other << 1 | was_other_);
  const std::uint64_t numbers = digits_apart_ ? m.number & ~m.inner : m.number & ~(m.number << 1 | was_number_);
  const std::uint64_t behind_blank = m.blank << 1 | was_blank_;
  starts |= (letters | others) & ~behind_blank;
  starts |= digits_apart_ ? numbers : numbers & ~behind_blank;
  starts &= valid;
  find_contractions(m, starts);

  const std::size_t last = m.bytes - 1;
  was_letter_ = m.letter >> last & 1;
  was_number_ = m.number >> last & 1;
  was_space_ = m.space >> last & 1;
  was_other_ = m.other >> last & 1;
  was_blank_ = m.blank >> last & 1;
  at_ = after;
  return starts;
}

}  // namespace gdds::text
