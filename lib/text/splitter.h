// How GPT-2 cuts text into pieces before BPE, without a regex engine. The pattern is
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// and the digits-apart form takes every \p{N} out as a piece of its own first, the text between being cut as above.
// The splitter works on 64 bytes at a time: a bit mask for each class, and the places where pieces begin by shifts of them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gdds::text {

// The end of the piece that begins at `at`: the pattern, read literally. Slow, and the definition.
std::size_t piece_end(std::string_view text, std::size_t at, bool digits_apart);

// Beginnings of pieces among the next at most 64 bytes.
class Splitter {
 public:
  Splitter(std::string_view text, bool digits_apart) : text_(text), digits_apart_(digits_apart) {}

  bool at_end() const { return at_ >= text_.size(); }
  std::size_t position() const { return at_; }
  // Bit i: a piece begins at position() + i. Moves on by `bytes`.
  std::uint64_t next(std::size_t& bytes);

 private:
  struct Masks {
    std::uint64_t letter = 0, number = 0, space = 0, other = 0;  // class of each byte
    std::uint64_t blank = 0;                                     // 0x20 itself
    std::uint64_t quote = 0;                                     // '
    std::uint64_t inner = 0;                                     // not the first byte of its character
    std::size_t bytes = 0;
  };
  static std::uint64_t classify_ascii(const char* at, Masks& masks);
  void classify_beyond(std::uint64_t leads, Masks& masks) const;
  Masks classify() const;
  void find_contractions(const Masks& masks, std::uint64_t& starts);

  std::string_view text_;
  bool digits_apart_;
  std::size_t at_ = 0;
  // The class of the character before at_, as masks of one bit; nothing at the beginning of the text.
  std::uint64_t was_letter_ = 0, was_number_ = 0, was_space_ = 0, was_other_ = 0, was_blank_ = 0;
  std::size_t contraction_end_ = 0;
};

// Calls piece(begin, end) for each piece of the text, in order.
template <typename Piece>
void for_each_piece(std::string_view text, bool digits_apart, Piece piece) {
  Splitter splitter(text, digits_apart);
  std::size_t begin = 0;
  while (!splitter.at_end()) {
    const std::size_t base = splitter.position();
    std::size_t bytes = 0;
    std::uint64_t starts = splitter.next(bytes);
    if (base == 0) starts &= ~std::uint64_t{1};
    for (; starts != 0; starts &= starts - 1) {
      const std::size_t end = base + static_cast<std::size_t>(std::countr_zero(starts));
      piece(begin, end);
      begin = end;
    }
  }
  if (begin < text.size()) piece(begin, text.size());
}

// The last place where the text may be cut without changing its pieces: behind a letter, a number or an ASCII sign, before
// something of another class. 0 if there is none.
std::size_t last_piece_cut(std::string_view text);

}  // namespace gdds::text
