// See philox.h. One thread a word.
#include "philox.h"

namespace gdds::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void fill(std::uint64_t seed, std::uint32_t purpose, std::uint64_t first, std::int64_t count,
                     std::int64_t length, std::uint32_t* words) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  words[i] = random_words(seed, purpose, first + static_cast<std::uint64_t>(i / length),
                          static_cast<std::uint32_t>(i % length), 0).word[0];
}

}  // namespace

int fill_random(std::uint64_t seed, std::uint32_t purpose, std::uint64_t first, std::int64_t sequences,
                std::int64_t length, std::uint32_t* words) {
  const std::int64_t count = sequences * length;
  if (count == 0) return 0;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  fill<<<blocks, kThreads>>>(seed, purpose, first, count, length, words);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace gdds::kernels::cuda
