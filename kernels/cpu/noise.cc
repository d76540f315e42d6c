// See noise.h. Random words are made for 16 positions at a time (wide_philox.h); the rest is the functions of one token, in
// loops that the compiler turns into vectors where there is something to gain; sik_token, whose tokens go different ways, in
// stages over a block of tokens. Sequences are shared out among threads.
#include "noise.h"

#include <algorithm>

#include <omp.h>

#include "wide_philox.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define GDDS_CLONES __attribute__((flatten, target_clones("arch=x86-64-v4", "avx2", "default")))
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
        std::uint8_t jumps[kWide];  // xt and jumped apart: a loop has vectors as short as its smallest type makes them
#pragma omp simd
        for (int i = 0; i < kWide; ++i) reset_token(x0[begin + i], first[i], second[i], limits, mask, m, xt[begin + i], jumps[i]);
#pragma omp simd
        for (int i = 0; i < kWide; ++i) jumped[begin + i] = first[i] < limits.jump;
      } else {
        for (std::int64_t i = 0; i < count; ++i) reset_token(x0[begin + i], first[i], second[i], limits, mask, m, xt[begin + i], jumped[begin + i]);
      }
    }
  }
}

// dense_token for sequence s of the batch.
template <typename Draw>
void dense_row(const WidePhilox& philox, const Snapshots& b, const DenseTables& tables, const SikTime& time, std::int64_t s, Draw draw) {
  WideWords words;
  for (std::int64_t l = 0; l < b.length; ++l) {
    const auto i = static_cast<std::size_t>(l % kWide);
    if (i == 0) philox(b.numbers[s], static_cast<std::uint32_t>(l), words);
    const RandomWords first = {{words.word[0][i], words.word[1][i], words.word[2][i], words.word[3][i]}};
    TokenRandom random(b.seed, kForSnapshots, b.numbers[s], static_cast<std::uint32_t>(l), first);
    const std::int64_t at = s * b.length + l;
    const Noised n = dense_token(tables, time, b.x0[at], random, draw);
    b.xt[at] = n.token;
    b.jumped[at] = n.jumped;
  }
}

GDDS_CLONES void rejection_row(const WidePhilox& philox, const Snapshots& b, const DenseTables& tables, const SikTime& time, std::int64_t s) {
  dense_row(philox, b, tables, time, s, RejectionDraw());
}

GDDS_CLONES void blockwise_row(const WidePhilox& philox, const Snapshots& b, const DenseTables& tables, const SikTime& time, std::int64_t s) {
  dense_row(philox, b, tables, time, s, BlockwiseDraw());
}

// ---- sik_token in stages ----------------------------------------------------------------------------------------------

constexpr int kBlock = 16 * kWide;  // tokens that go through the stages together

// Draw 0 of tokens first ... first + n - 1: u and v of sik_token.
GDDS_CLONES void first_draws(const WidePhilox& philox, std::uint64_t number, std::uint32_t first, int n, double* u, double* v) {
  WideWords words;
  for (int i = 0; i < n; i += kWide) {
    philox(number, first + static_cast<std::uint32_t>(i), words);
#pragma omp simd
    for (int j = 0; j < kWide; ++j) {
      u[i + j] = unit(static_cast<std::uint64_t>(words.word[0][j]) << 32 | words.word[1][j]);
      v[i + j] = unit(static_cast<std::uint64_t>(words.word[2][j]) << 32 | words.word[3][j]);
    }
  }
}

// The law of the jumps since the last reset, for n tokens that had one.
GDDS_CLONES void laws_since_reset(const ClockTable& clock, const SikTime& time, int n, const double* u, double* mean, double* none) {
  double r[kBlock];
  std::int32_t cell[kBlock];
#pragma omp simd
  for (int i = 0; i < n; ++i) r[i] = time.r + natural_log(u[i]);
  for (int i = 0; i < n; ++i) cell[i] = cell_of_r(clock, r[i]);
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    const JumpLaw law = jumps_since(clock, time, {cell[i], fraction_of_r(clock, cell[i], r[i])});
    mean[i] = law.mean;
    none[i] = law.none;
  }
}

template <typename Id>
void sik_block(const WidePhilox& philox, const SikTables<Id>& tables, const SikTime& time, std::uint64_t seed, std::uint64_t number, std::uint32_t first, int n,
               const std::int32_t* x0, std::int32_t* xt, std::uint8_t* jumped) {
  double u[kBlock], v[kBlock], mean[kBlock], none[kBlock];
  first_draws(philox, number, first, n, u, v);

  // Which were reset, and the law of each token's jumps.
  int resets[kBlock], reset_count = 0;
  double reset_u[kBlock], reset_mean[kBlock], reset_none[kBlock];
  for (int i = 0; i < n; ++i) {
    mean[i] = time.a;
    none[i] = time.no_semantic;
    resets[reset_count] = i;
    reset_u[reset_count] = u[i];
    reset_count += u[i] > time.no_reset ? 1 : 0;
  }
  laws_since_reset(tables.clock, time, reset_count, reset_u, reset_mean, reset_none);
  for (int r = 0; r < reset_count; ++r) {
    mean[resets[r]] = reset_mean[r];
    none[resets[r]] = reset_none[r];
  }

  // Which moved at all: these need draw 1.
  alignas(64) std::uint32_t moved[kBlock + kWide];
  WideWords second[kBlock / kWide];
  int moved_count = 0;
  for (int i = 0; i < n; ++i) {
    xt[i] = x0[i];
    jumped[i] = static_cast<std::uint8_t>((u[i] > time.no_reset) | (v[i] >= none[i]));
    moved[moved_count] = static_cast<std::uint32_t>(i);
    moved_count += jumped[i];
  }
  std::fill_n(moved + moved_count, kWide, 0U);
  for (int j = 0; j < moved_count; j += kWide) philox(number, first, moved + j, 1, second[j / kWide]);
  // The n-th number from draw 1 on.
  const auto bits_of = [&](int j, int n) {
    if (n < 2) return static_cast<std::uint64_t>(second[j / kWide].word[2 * n][j % kWide]) << 32 | second[j / kWide].word[2 * n + 1][j % kWide];
    const RandomWords more = random_words(seed, kForSnapshots, number, first + moved[j], 1 + static_cast<std::uint32_t>(n / 2));
    return static_cast<std::uint64_t>(more.word[n % 2 * 2]) << 32 | more.word[n % 2 * 2 + 1];
  };

  // New tokens, and who goes on from there by semantic jumps.
  int used[kBlock], jumps[kBlock], travellers[kBlock], traveller_count = 0;  // used: numbers
  for (int j = 0; j < moved_count; ++j) {
    const std::uint32_t i = moved[j];
    used[j] = u[i] > time.no_reset ? 1 : 0;
    xt[i] = used[j] == 1 ? below(tables.m, bits_of(j, 0)) : xt[i];
    travellers[traveller_count] = j;
    traveller_count += v[i] >= none[i] ? 1 : 0;
  }
  for (int t = 0; t < traveller_count; ++t) {
    const int j = travellers[t];
    const std::uint32_t i = moved[j];
    jumps[j] = poisson_inverse(mean[i], none[i], v[i]);
    __builtin_prefetch(tables.slots + alias_slot(tables.k, xt[i], bits_of(j, used[j])));
  }
  // A jump each in turn, so that their slots, which are all over a large table, are fetched together.
  while (traveller_count > 0) {
    int left = 0;
    for (int t = 0; t < traveller_count; ++t) {
      const int j = travellers[t];
      auto& token = xt[moved[j]];
      token = alias_draw(tables.slots, tables.k, token, bits_of(j, used[j]++));
      if (--jumps[j] == 0) continue;
      __builtin_prefetch(tables.slots + alias_slot(tables.k, token, bits_of(j, used[j])));
      travellers[left++] = j;
    }
    traveller_count = left;
  }
}

template <typename Id>
void noise_sik_of(const Snapshots& b, const SikTables<Id>& tables, const SikTime* times, int threads) {
  const WidePhilox philox(b.seed, kForSnapshots);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t s = 0; s < b.sequences; ++s)
    for (std::int64_t l = 0; l < b.length; l += kBlock) {
      const std::int64_t at = s * b.length + l;
      sik_block(philox, tables, times[s], b.seed, b.numbers[s], static_cast<std::uint32_t>(l), static_cast<int>(std::min<std::int64_t>(kBlock, b.length - l)), b.x0 + at,
                b.xt + at, b.jumped + at);
    }
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

void noise_dense(const Snapshots& b, const DenseTables& tables, const SikTime* times, int threads) {
  const WidePhilox philox(b.seed, kForSnapshots);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t s = 0; s < b.sequences; ++s) rejection_row(philox, b, tables, times[s], s);
}

void noise_blockwise(const Snapshots& b, const DenseTables& tables, const SikTime* times, int threads) {
  const WidePhilox philox(b.seed, kForSnapshots);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t s = 0; s < b.sequences; ++s) blockwise_row(philox, b, tables, times[s], s);
}

}  // namespace gdds::kernels::cpu
