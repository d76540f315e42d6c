// Random numbers by counter (Philox4x32-10 of Random123): the numbers of a token depend on the seed, the purpose, the
// sequence, the position and the draw, and on nothing else, so threads, batches and devices cannot change them. MATH 2.4.
#pragma once

#include <cstdint>

#include <Random123/philox.h>

#ifdef __CUDACC__
#define GDDS_HD __host__ __device__
#else
#define GDDS_HD
#endif

namespace gdds::kernels {

struct RandomWords {
  std::uint32_t word[4];
};

// Four independent uniform 32-bit words.
GDDS_HD inline RandomWords random_words(std::uint64_t seed, std::uint32_t purpose, std::uint64_t sequence,
                                        std::uint32_t position, std::uint32_t draw) {
  using Philox = r123::Philox4x32;
  Philox::ctr_type counter = {{draw, position, static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)}};
  Philox::key_type key = {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32) ^ purpose * 0x9e3779b9U}};
  const Philox::ctr_type r = Philox()(counter, key);
  return {{r[0], r[1], r[2], r[3]}};
}

// words[s * length + l] is word 0 of draw 0 at (sequence first + s, position l). Plain pointers, host memory for
// cpu::, device memory for cuda::.
namespace cpu {
void fill_random(std::uint64_t seed, std::uint32_t purpose, std::uint64_t first, std::int64_t sequences,
                 std::int64_t length, std::uint32_t* words);
}
namespace cuda {
// Returns 0 or the CUDA error.
int fill_random(std::uint64_t seed, std::uint32_t purpose, std::uint64_t first, std::int64_t sequences,
                std::int64_t length, std::uint32_t* words);
}

}  // namespace gdds::kernels
