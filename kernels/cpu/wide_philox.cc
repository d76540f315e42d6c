// See wide_philox.h. A vector holds a counter word of 8 or 16 positions; products of 32 by 32 bits come for the even and
// the odd lanes apart and are put together again.
#include "wide_philox.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define GDDS_X86 1
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12 takes _mm512_undefined_epi32(), of its own header, for a mistake
#endif

namespace gdds::kernels::cpu {
namespace {

constexpr std::uint32_t kM0 = 0xD2511F53U, kM1 = 0xCD9E8D57U, kW0 = 0x9E3779B9U, kW1 = 0xBB67AE85U;
constexpr int kRounds = 10;

}  // namespace

WidePhilox::Level WidePhilox::best_level() {
#ifdef GDDS_X86
  if (__builtin_cpu_supports("avx512f")) return Level::avx512;
  if (__builtin_cpu_supports("avx2")) return Level::avx2;
#endif
  return Level::plain;
}

WidePhilox::WidePhilox(std::uint64_t seed, std::uint32_t purpose, Level level)
    : seed_(seed), purpose_(purpose), key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32) ^ purpose * 0x9e3779b9U},
      make_(level == Level::avx512 ? make_avx512 : level == Level::avx2 ? make_avx2 : make_plain) {}

void WidePhilox::make_plain(const WidePhilox& p, std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw, WideWords& out) {
  for (std::uint32_t i = 0; i < kWide; ++i) {
    const RandomWords words = random_words(p.seed_, p.purpose_, sequence, first + offsets[i], draw);
    for (int w = 0; w < 4; ++w) out.word[w][i] = words.word[w];
  }
}

#ifdef GDDS_X86
__attribute__((target("avx2"))) void WidePhilox::make_avx2(const WidePhilox& p, std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw,
                                                                  WideWords& out) {
  const __m256i m0 = _mm256_set1_epi32(static_cast<int>(kM0)), m1 = _mm256_set1_epi32(static_cast<int>(kM1));
  for (int half = 0; half < 2; ++half) {
    __m256i c0 = _mm256_set1_epi32(static_cast<int>(draw));
    __m256i c1 = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(first)), _mm256_load_si256(reinterpret_cast<const __m256i*>(offsets + 8 * half)));
    __m256i c2 = _mm256_set1_epi32(static_cast<int>(sequence));
    __m256i c3 = _mm256_set1_epi32(static_cast<int>(sequence >> 32));
    std::uint32_t k0 = p.key_[0], k1 = p.key_[1];
    for (int round = 0; round < kRounds; ++round, k0 += kW0, k1 += kW1) {
      const __m256i even0 = _mm256_mul_epu32(c0, m0), odd0 = _mm256_mul_epu32(_mm256_srli_epi64(c0, 32), m0);
      const __m256i even1 = _mm256_mul_epu32(c2, m1), odd1 = _mm256_mul_epu32(_mm256_srli_epi64(c2, 32), m1);
      const __m256i high0 = _mm256_blend_epi32(_mm256_srli_epi64(even0, 32), odd0, 0xaa), low0 = _mm256_blend_epi32(even0, _mm256_slli_epi64(odd0, 32), 0xaa);
      const __m256i high1 = _mm256_blend_epi32(_mm256_srli_epi64(even1, 32), odd1, 0xaa), low1 = _mm256_blend_epi32(even1, _mm256_slli_epi64(odd1, 32), 0xaa);
      c0 = _mm256_xor_si256(_mm256_xor_si256(high1, c1), _mm256_set1_epi32(static_cast<int>(k0)));
      c2 = _mm256_xor_si256(_mm256_xor_si256(high0, c3), _mm256_set1_epi32(static_cast<int>(k1)));
      c1 = low1;
      c3 = low0;
    }
    const __m256i words[4] = {c0, c1, c2, c3};
    for (int w = 0; w < 4; ++w) _mm256_store_si256(reinterpret_cast<__m256i*>(out.word[w] + 8 * half), words[w]);
  }
}

__attribute__((target("avx512f"))) void WidePhilox::make_avx512(const WidePhilox& p, std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw,
                                                                  WideWords& out) {
  const __m512i m0 = _mm512_set1_epi32(static_cast<int>(kM0)), m1 = _mm512_set1_epi32(static_cast<int>(kM1));
  // Of the even lanes' products and the odd lanes': which 32-bit word goes where.
  const __m512i upper = _mm512_setr_epi32(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  const __m512i lower = _mm512_setr_epi32(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
  __m512i c0 = _mm512_set1_epi32(static_cast<int>(draw));
  __m512i c1 = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first)), _mm512_load_si512(offsets));
  __m512i c2 = _mm512_set1_epi32(static_cast<int>(sequence));
  __m512i c3 = _mm512_set1_epi32(static_cast<int>(sequence >> 32));
  std::uint32_t k0 = p.key_[0], k1 = p.key_[1];
  for (int round = 0; round < kRounds; ++round, k0 += kW0, k1 += kW1) {
    const __m512i even0 = _mm512_mul_epu32(c0, m0), odd0 = _mm512_mul_epu32(_mm512_srli_epi64(c0, 32), m0);
    const __m512i even1 = _mm512_mul_epu32(c2, m1), odd1 = _mm512_mul_epu32(_mm512_srli_epi64(c2, 32), m1);
    const __m512i high0 = _mm512_permutex2var_epi32(even0, upper, odd0), low0 = _mm512_permutex2var_epi32(even0, lower, odd0);
    const __m512i high1 = _mm512_permutex2var_epi32(even1, upper, odd1), low1 = _mm512_permutex2var_epi32(even1, lower, odd1);
    c0 = _mm512_ternarylogic_epi32(high1, c1, _mm512_set1_epi32(static_cast<int>(k0)), 0x96);
    c2 = _mm512_ternarylogic_epi32(high0, c3, _mm512_set1_epi32(static_cast<int>(k1)), 0x96);
    c1 = low1;
    c3 = low0;
  }
  const __m512i words[4] = {c0, c1, c2, c3};
  for (int w = 0; w < 4; ++w) _mm512_store_si512(out.word[w], words[w]);
}
#else
void WidePhilox::make_avx2(const WidePhilox& p, std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw,
                                                                  WideWords& out) { make_plain(p, sequence, first, offsets, draw, out); }
void WidePhilox::make_avx512(const WidePhilox& p, std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw,
                                                                  WideWords& out) { make_plain(p, sequence, first, offsets, draw, out); }
#endif

}  // namespace gdds::kernels::cpu
