// See noise.h. Random words are made for 16 positions at a time (wide_philox.h); the rest is the functions of one token, in
// loops that the compiler turns into vectors where there is something to gain. Sequences are shared out among threads.
#include "noise.h"

#include <algorithm>

#include <omp.h>

#include "wide_philox.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define GDDS_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define GDDS_CLONES
#endif

namespace gdds::kernels::cpu {
namespace {

GDDS_CLONES void absorb_row(const WidePhilox& philox, std::uint64_t number, ResetLimits limits, std::int32_t mask, std::int64_t length, const std::int32_t* x0,
                            std::int32_t* xt, std::uint8_t* jumped) {
  WideWords words;
  for (std::int64_t l = 0; l < length; l += 4 * kWide) {
    philox(number, static_cast<std::uint32_t>(l / 4), words);
    const std::uint32_t* w = &words.word[0][0];
    if (l + 4 * kWide <= length) {
#pragma omp simd
      for (int i = 0; i < 4 * kWide; ++i) absorb_token(x0[l + i], w[i], limits, mask, xt[l + i], jumped[l + i]);
    } else {
      for (std::int64_t i = 0; l + i < length; ++i) absorb_token(x0[l + i], w[i], limits, mask, xt[l + i], jumped[l + i]);
    }
  }
}

GDDS_CLONES void reset_row(const WidePhilox& philox, std::uint64_t number, ResetLimits limits, std::int32_t mask, std::int32_t m, std::int64_t length,
                           const std::int32_t* x0, std::int32_t* xt, std::uint8_t* jumped) {
  WideWords words;
  for (std::int64_t l = 0; l < length; l += 2 * kWide) {
    philox(number, static_cast<std::uint32_t>(l / 2), words);
    for (int half = 0; half < 2; ++half) {
      const std::int64_t begin = l + half * kWide, count = std::min<std::int64_t>(kWide, length - begin);
      const std::uint32_t *first = words.word[2 * half], *second = words.word[2 * half + 1];
      if (count == kWide) {
#pragma omp simd
        for (int i = 0; i < kWide; ++i) reset_token(x0[begin + i], first[i], second[i], limits, mask, m, xt[begin + i], jumped[begin + i]);
      } else {
        for (std::int64_t i = 0; i < count; ++i) reset_token(x0[begin + i], first[i], second[i], limits, mask, m, xt[begin + i], jumped[begin + i]);
      }
    }
  }
}

// token(sequence, l, random) for every token of the batch.
template <typename Token>
void for_each_token(const Snapshots& b, int threads, Token token) {
  const WidePhilox philox(b.seed, kForSnapshots);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t s = 0; s < b.sequences; ++s) {
    WideWords words;
    for (std::int64_t l = 0; l < b.length; ++l) {
      const auto i = static_cast<std::size_t>(l % kWide);
      if (i == 0) philox(b.numbers[s], static_cast<std::uint32_t>(l), words);
      const RandomWords first = {{words.word[0][i], words.word[1][i], words.word[2][i], words.word[3][i]}};
      TokenRandom random(b.seed, kForSnapshots, b.numbers[s], static_cast<std::uint32_t>(l), first);
      const std::int64_t at = s * b.length + l;
      const Noised n = token(s, b.x0[at], random);
      b.xt[at] = n.token;
      b.jumped[at] = n.jumped;
    }
  }
}

template <typename Id>
void noise_sik_of(const Snapshots& batch, const SikTables<Id>& tables, const SikTime* times, int threads) {
  for_each_token(batch, threads, [&](std::int64_t s, std::int32_t x0, TokenRandom& random) { return sik_token(tables, times[s], x0, random); });
}

}  // namespace

void noise_absorb(const Snapshots& b, const ResetLimits* limits, std::int32_t mask, int threads) {
  const WidePhilox philox(b.seed, kForSnapshots);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t s = 0; s < b.sequences; ++s) {
    const std::int64_t at = s * b.length;
    absorb_row(philox, b.numbers[s], limits[s], mask, b.length, b.x0 + at, b.xt + at, b.jumped + at);
  }
}

void noise_reset(const Snapshots& b, const ResetLimits* limits, std::int32_t mask, std::int32_t m, int threads) {
  const WidePhilox philox(b.seed, kForSnapshots);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t s = 0; s < b.sequences; ++s) {
    const std::int64_t at = s * b.length;
    reset_row(philox, b.numbers[s], limits[s], mask, m, b.length, b.x0 + at, b.xt + at, b.jumped + at);
  }
}

void noise_sik(const Snapshots& batch, const SikTables<std::uint16_t>& tables, const SikTime* times, int threads) {
  noise_sik_of(batch, tables, times, threads);
}

void noise_sik(const Snapshots& batch, const SikTables<std::int32_t>& tables, const SikTime* times, int threads) {
  noise_sik_of(batch, tables, times, threads);
}

void noise_dense(const Snapshots& batch, const DenseTables& tables, const SikTime* times, int threads) {
  for_each_token(batch, threads, [&](std::int64_t s, std::int32_t x0, TokenRandom& random) { return dense_token(tables, times[s], x0, random, RejectionDraw()); });
}

void noise_blockwise(const Snapshots& batch, const DenseTables& tables, const SikTime* times, int threads) {
  for_each_token(batch, threads, [&](std::int64_t s, std::int32_t x0, TokenRandom& random) { return dense_token(tables, times[s], x0, random, BlockwiseDraw()); });
}

}  // namespace gdds::kernels::cpu
