// See noise.h. Resets: a thread a position, for the tokens that share its words. Semantic kernels: a thread a token. The
// blockwise draw: a block a token, a thread a strip.
#include "noise.h"

#include "launch.h"

namespace gdds::kernels::cuda {
namespace {

constexpr std::int64_t kRun = 16;  // neighbouring tokens have the words of neighbouring positions, in runs of this length

// How many positions have words for a row, `share` tokens each.
GDDS_HD inline std::int64_t positions_of(std::int64_t length, std::int64_t share) { return (length + share * kRun - 1) / (share * kRun) * kRun; }

// The first token of a position; the others follow kRun apart.
__device__ inline std::int64_t first_token(std::int64_t position, std::int64_t share) { return position / kRun * (share * kRun) + position % kRun; }

__global__ void absorb(Snapshots b, const ResetLimits* limits, std::int32_t mask) {
  const std::int64_t positions = positions_of(b.length, 4);
  for (std::int64_t i = first_item(); i < b.sequences * positions; i += item_step()) {
    const std::int64_t s = i / positions, position = i % positions;
    const RandomWords words = random_words(b.seed, kForSnapshots, b.numbers[s], static_cast<std::uint32_t>(position), 0);
    std::int64_t l = first_token(position, 4);
    for (int w = 0; w < 4 && l < b.length; ++w, l += kRun) {
      const std::int64_t at = s * b.length + l;
      absorb_token(b.x0[at], words.word[w], limits[s], mask, b.xt[at], b.jumped[at]);
    }
  }
}

__global__ void reset(Snapshots b, const ResetLimits* limits, std::int32_t mask, std::int32_t m) {
  const std::int64_t positions = positions_of(b.length, 2);
  for (std::int64_t i = first_item(); i < b.sequences * positions; i += item_step()) {
    const std::int64_t s = i / positions, position = i % positions;
    const RandomWords words = random_words(b.seed, kForSnapshots, b.numbers[s], static_cast<std::uint32_t>(position), 0);
    std::int64_t l = first_token(position, 2);
    for (int w = 0; w < 4 && l < b.length; w += 2, l += kRun) {
      const std::int64_t at = s * b.length + l;
      reset_token(b.x0[at], words.word[w], words.word[w + 1], limits[s], mask, m, b.xt[at], b.jumped[at]);
    }
  }
}

// token(sequence, x0, random) for the token at `at`. Returns what becomes of it.
template <typename Token>
__device__ Noised noise_one(const Snapshots& b, std::int64_t at, Token token) {
  const std::int64_t s = at / b.length;
  TokenRandom random(b.seed, kForSnapshots, b.numbers[s], static_cast<std::uint32_t>(at % b.length));
  return token(s, b.x0[at], random);
}

__device__ inline void store(const Snapshots& b, std::int64_t at, Noised n) {
  b.xt[at] = n.token;
  b.jumped[at] = n.jumped;
}

template <typename Id>
__global__ void sik(Snapshots b, SikTables<Id> tables, const SikTime* times) {
  const auto token = [&](std::int64_t s, std::int32_t x0, TokenRandom& random) { return sik_token(tables, times[s], x0, random); };
  for (std::int64_t at = first_item(); at < b.sequences * b.length; at += item_step()) store(b, at, noise_one(b, at, token));
}

__global__ void dense(Snapshots b, DenseTables tables, const SikTime* times) {
  const auto token = [&](std::int64_t s, std::int32_t x0, TokenRandom& random) { return dense_token(tables, times[s], x0, random, RejectionDraw()); };
  for (std::int64_t at = first_item(); at < b.sequences * b.length; at += item_step()) store(b, at, noise_one(b, at, token));
}

// BlockwiseDraw by a block, a thread a strip. All threads follow the same token from the same random numbers, so they come
// here together, with the same arguments. Two barriers are enough: `strips` is written again after the second, and `found`
// after the first of the next draw, which no thread passes before all have returned from this one.
struct BlockDraw {
  double* strips;
  std::int32_t* found;

  __device__ std::int32_t operator()(const DenseTables& t, double tau, std::int32_t y, TokenRandom& random) const {
    strips[threadIdx.x] = strip_weight(t, tau, y, static_cast<std::int32_t>(threadIdx.x));
    double u = random.unit();
    __syncthreads();
    if (threadIdx.x == 0) {
      const std::int32_t strip = find_strip(strips, u);
      *found = token_in_strip(t, tau, y, strip, u);
    }
    __syncthreads();
    return *found;
  }
};

__global__ void blockwise(Snapshots b, DenseTables tables, const SikTime* times) {
  __shared__ double strips[kStrips];
  __shared__ std::int32_t found;
  const BlockDraw draw{strips, &found};
  const auto token = [&](std::int64_t s, std::int32_t x0, TokenRandom& random) { return dense_token(tables, times[s], x0, random, draw); };
  for (std::int64_t at = blockIdx.x; at < b.sequences * b.length; at += gridDim.x) {
    const Noised n = noise_one(b, at, token);
    if (threadIdx.x == 0) store(b, at, n);
  }
}

}  // namespace

int noise_absorb(const Snapshots& b, const ResetLimits* limits, std::int32_t mask) {
  return launch_items(absorb, b.sequences * positions_of(b.length, 4), b, limits, mask);
}

int noise_reset(const Snapshots& b, const ResetLimits* limits, std::int32_t mask, std::int32_t m) {
  return launch_items(reset, b.sequences * positions_of(b.length, 2), b, limits, mask, m);
}

int noise_sik(const Snapshots& b, const SikTables<std::uint16_t>& tables, const SikTime* times) {
  return launch_items(sik<std::uint16_t>, b.sequences * b.length, b, tables, times);
}

int noise_sik(const Snapshots& b, const SikTables<std::int32_t>& tables, const SikTime* times) {
  return launch_items(sik<std::int32_t>, b.sequences * b.length, b, tables, times);
}

int noise_dense(const Snapshots& b, const DenseTables& tables, const SikTime* times) {
  return launch_items(dense, b.sequences * b.length, b, tables, times);
}

int noise_blockwise(const Snapshots& b, const DenseTables& tables, const SikTime* times) {
  return launch(blockwise, b.sequences * b.length, kStrips, b, tables, times);
}

}  // namespace gdds::kernels::cuda
