// Philox for 16 positions at once, in a row or not: the same words as random_words(), which is the definition, several times
// as fast where the machine has AVX2 or AVX-512. Private to kernels/cpu; other .cc files of the tests may look.
#pragma once

#include <cstdint>

#include "philox.h"

namespace gdds::kernels::cpu {

constexpr int kWide = 16;

// word[w][i] is word w of the i-th position.
struct WideWords {
  alignas(64) std::uint32_t word[4][kWide];
};

class WidePhilox {
 public:
  enum class Level { plain, avx2, avx512 };
  static Level best_level();
  static constexpr int kRounds = 10;

  WidePhilox(std::uint64_t seed, std::uint32_t purpose, Level level = best_level());
  // Draw 0 of positions first ... first + 15.
  void operator()(std::uint64_t sequence, std::uint32_t first, WideWords& out) const { make_(*this, sequence, first, kInARow, 0, out); }
  // A draw of positions first + offsets[i]; the offsets are aligned to 64 bytes.
  void operator()(std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw, WideWords& out) const {
    make_(*this, sequence, first, offsets, draw, out);
  }

 private:
  alignas(64) static constexpr std::uint32_t kInARow[kWide] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  using Make = void (*)(const WidePhilox&, std::uint64_t, std::uint32_t, const std::uint32_t*, std::uint32_t, WideWords&);
  static void make_plain(const WidePhilox&, std::uint64_t, std::uint32_t, const std::uint32_t*, std::uint32_t, WideWords&);
  static void make_avx2(const WidePhilox&, std::uint64_t, std::uint32_t, const std::uint32_t*, std::uint32_t, WideWords&);
  static void make_avx512(const WidePhilox&, std::uint64_t, std::uint32_t, const std::uint32_t*, std::uint32_t, WideWords&);

  std::uint64_t seed_;
  std::uint32_t purpose_;
  std::uint32_t key_[2 * kRounds];  // two of each round
  Make make_;
};

}  // namespace gdds::kernels::cpu
