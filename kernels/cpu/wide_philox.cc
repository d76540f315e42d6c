// See wide_philox.h. A lane of 64 bits holds a counter word of a position in its lower half: products of 32 by 32 bits need no
// putting together, and what is left in the upper halves no product sees. The even and the odd positions are two chains,
// which the processor works on at the same time.
#include "wide_philox.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define GDDS_X86 1
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12 takes _mm512_undefined_epi32(), of its own header, for a mistake
#endif

namespace gdds::kernels::cpu {
namespace {

constexpr std::uint32_t kM0 = 0xD2511F53U, kM1 = 0xCD9E8D57U, kW0 = 0x9E3779B9U, kW1 = 0xBB67AE85U;

}  // namespace

WidePhilox::Level WidePhilox::best_level() {
#ifdef GDDS_X86
  if (__builtin_cpu_supports("avx512f")) return Level::avx512;
  if (__builtin_cpu_supports("avx2")) return Level::avx2;
#endif
  return Level::plain;
}

WidePhilox::WidePhilox(std::uint64_t seed, std::uint32_t purpose, Level level)
    : seed_(seed), purpose_(purpose), make_(level == Level::avx512 ? make_avx512 : level == Level::avx2 ? make_avx2 : make_plain) {
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32) ^ purpose * 0x9e3779b9U;
  for (int round = 0; round < kRounds; ++round, k0 += kW0, k1 += kW1) {
    key_[2 * round] = k0;
    key_[2 * round + 1] = k1;
  }
}

void WidePhilox::make_plain(const WidePhilox& p, std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw, WideWords& out) {
  for (std::uint32_t i = 0; i < kWide; ++i) {
    const RandomWords words = random_words(p.seed_, p.purpose_, sequence, first + offsets[i], draw);
    for (int w = 0; w < 4; ++w) out.word[w][i] = words.word[w];
  }
}

#ifdef GDDS_X86
namespace {

// Three rounds in which at most one of the four words differs between positions: word 1 is the position, the others are the
// same for all. After round 1 that is word 0, after round 2 words 2 and 3 (from the product of word 0), and in round 3 the
// product of word 2 makes words 0 and 1. All products of the others are made here, once.
struct FirstRounds {
  std::uint32_t into0;            // round 1: word 0 is the position xor this
  std::uint32_t into2;            // round 2: word 2 is the upper half of word 0's product, xor this; word 3 the lower half
  std::uint32_t into0_3, into2_3; // round 3: the same of words 0 and 2, word 2 being word 3 of round 2 xor this
  std::uint32_t word3;            // after round 3
};

FirstRounds first_rounds(const std::uint32_t* key, std::uint64_t sequence, std::uint32_t draw) {
  const auto product = [](std::uint32_t a, std::uint32_t b) { return static_cast<std::uint64_t>(a) * b; };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const std::uint64_t draw_1 = product(draw, kM0), sequence_1 = product(static_cast<std::uint32_t>(sequence), kM1);
  const std::uint32_t word2_1 = high(draw_1) ^ static_cast<std::uint32_t>(sequence >> 32) ^ key[1];
  const std::uint64_t product_2 = product(word2_1, kM1);
  const std::uint32_t word0_2 = high(product_2) ^ static_cast<std::uint32_t>(sequence_1) ^ key[2];
  const std::uint64_t product_3 = product(word0_2, kM0);
  return {high(sequence_1) ^ key[0], static_cast<std::uint32_t>(draw_1) ^ key[3], static_cast<std::uint32_t>(product_2) ^ key[4], high(product_3) ^ key[5], static_cast<std::uint32_t>(product_3)};
}

}  // namespace

__attribute__((target("avx2"))) void WidePhilox::make_avx2(const WidePhilox& p, std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw,
                                                                  WideWords& out) {
  const auto all = [](std::uint32_t word) { return static_cast<int>(word); };
  const __m256i m0 = _mm256_set1_epi32(all(kM0)), m1 = _mm256_set1_epi32(all(kM1));
  const FirstRounds f = first_rounds(p.key_, sequence, draw);
  for (int half = 0; half < 2; ++half) {
    const __m256i position = _mm256_add_epi32(_mm256_set1_epi32(all(first)), _mm256_load_si256(reinterpret_cast<const __m256i*>(offsets + 8 * half)));
    __m256i c0[2] = {position, _mm256_srli_epi64(position, 32)}, c1[2], c2[2], c3[2];
    for (int h = 0; h < 2; ++h) {
      const __m256i product2 = _mm256_mul_epu32(_mm256_xor_si256(c0[h], _mm256_set1_epi32(all(f.into0))), m0);
      const __m256i product3 = _mm256_mul_epu32(_mm256_xor_si256(_mm256_srli_epi64(product2, 32), _mm256_set1_epi32(all(f.into2))), m1);
      c0[h] = _mm256_xor_si256(_mm256_srli_epi64(product3, 32), _mm256_set1_epi32(all(f.into0_3)));
      c1[h] = product3;
      c2[h] = _mm256_xor_si256(product2, _mm256_set1_epi32(all(f.into2_3)));
      c3[h] = _mm256_set1_epi32(all(f.word3));
    }
    for (int round = 3; round < kRounds; ++round)
      for (int h = 0; h < 2; ++h) {
        const __m256i product0 = _mm256_mul_epu32(c0[h], m0), product1 = _mm256_mul_epu32(c2[h], m1);
        c0[h] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product1, 32), c1[h]), _mm256_set1_epi32(all(p.key_[2 * round])));
        c2[h] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product0, 32), c3[h]), _mm256_set1_epi32(all(p.key_[2 * round + 1])));
        c1[h] = product1;
        c3[h] = product0;
      }
    const __m256i* const words[4] = {c0, c1, c2, c3};
    for (int w = 0; w < 4; ++w)
      _mm256_store_si256(reinterpret_cast<__m256i*>(out.word[w] + 8 * half), _mm256_blend_epi32(words[w][0], _mm256_slli_epi64(words[w][1], 32), 0xaa));
  }
}

__attribute__((target("avx512f"))) void WidePhilox::make_avx512(const WidePhilox& p, std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw,
                                                                  WideWords& out) {
  const auto all = [](std::uint32_t word) { return static_cast<int>(word); };
  const __m512i m0 = _mm512_set1_epi32(all(kM0)), m1 = _mm512_set1_epi32(all(kM1));
  const FirstRounds f = first_rounds(p.key_, sequence, draw);
  const __m512i position = _mm512_add_epi32(_mm512_set1_epi32(all(first)), _mm512_load_si512(offsets));
  __m512i c0[2] = {position, _mm512_srli_epi64(position, 32)}, c1[2], c2[2], c3[2];
  for (int h = 0; h < 2; ++h) {
    const __m512i product2 = _mm512_mul_epu32(_mm512_xor_si512(c0[h], _mm512_set1_epi32(all(f.into0))), m0);
    const __m512i product3 = _mm512_mul_epu32(_mm512_xor_si512(_mm512_srli_epi64(product2, 32), _mm512_set1_epi32(all(f.into2))), m1);
    c0[h] = _mm512_xor_si512(_mm512_srli_epi64(product3, 32), _mm512_set1_epi32(all(f.into0_3)));
    c1[h] = product3;
    c2[h] = _mm512_xor_si512(product2, _mm512_set1_epi32(all(f.into2_3)));
    c3[h] = _mm512_set1_epi32(all(f.word3));
  }
  for (int round = 3; round < kRounds; ++round)
    for (int h = 0; h < 2; ++h) {
      const __m512i product0 = _mm512_mul_epu32(c0[h], m0), product1 = _mm512_mul_epu32(c2[h], m1);
      c0[h] = _mm512_ternarylogic_epi32(_mm512_srli_epi64(product1, 32), c1[h], _mm512_set1_epi32(all(p.key_[2 * round])), 0x96);
      c2[h] = _mm512_ternarylogic_epi32(_mm512_srli_epi64(product0, 32), c3[h], _mm512_set1_epi32(all(p.key_[2 * round + 1])), 0x96);
      c1[h] = product1;
      c3[h] = product0;
    }
  const __m512i* const words[4] = {c0, c1, c2, c3};
  for (int w = 0; w < 4; ++w) _mm512_store_si512(out.word[w], _mm512_mask_blend_epi32(0xaaaa, words[w][0], _mm512_slli_epi64(words[w][1], 32)));
}
#else
void WidePhilox::make_avx2(const WidePhilox& p, std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw,
                                                                  WideWords& out) { make_plain(p, sequence, first, offsets, draw, out); }
void WidePhilox::make_avx512(const WidePhilox& p, std::uint64_t sequence, std::uint32_t first, const std::uint32_t* offsets, std::uint32_t draw,
                                                                  WideWords& out) { make_plain(p, sequence, first, offsets, draw, out); }
#endif

}  // namespace gdds::kernels::cpu
