// Random numbers by counter (Philox4x32-10 of Random123): the numbers of a token depend on the seed, the purpose, the
// sequence, the position and the draw, and on nothing else, so threads, batches and devices cannot change them. MATH 2.4.
#pragma once

#include <cstdint>

#include <Random123/philox.h>

#include "real.h"

namespace gdds::kernels {

// What the numbers are for: two purposes never share a number.
enum Purpose : std::uint32_t { kForTimes = 1, kForSnapshots = 2, kForPaths = 3, kForOrder = 4, kForBridges = 5, kForBounds = 6 };

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

// The numbers of one token, one after the other, 64 bits each: draw 0 gives the first two, draw 1 the next, and so on.
class TokenRandom {
 public:
  GDDS_HD TokenRandom(std::uint64_t seed, std::uint32_t purpose, std::uint64_t sequence, std::uint32_t position)
      : seed_(seed), sequence_(sequence), purpose_(purpose), position_(position) {}
  // From a draw that was made beforehand, as a vector loop does.
  GDDS_HD TokenRandom(std::uint64_t seed, std::uint32_t purpose, std::uint64_t sequence, std::uint32_t position, const RandomWords& made, std::uint32_t draw = 0)
      : seed_(seed), sequence_(sequence), purpose_(purpose), position_(position), draw_(draw + 1), left_(2), words_(made) {}

  GDDS_HD std::uint64_t next() {
    if (left_ == 0) {
      words_ = random_words(seed_, purpose_, sequence_, position_, draw_++);
      left_ = 2;
    }
    const int at = left_-- == 2 ? 0 : 2;
    return static_cast<std::uint64_t>(words_.word[at]) << 32 | words_.word[at + 1];
  }
  GDDS_HD double unit() { return kernels::unit(next()); }
  GDDS_HD double exponential() { return -natural_log(unit()); }

 private:
  std::uint64_t seed_, sequence_;
  std::uint32_t purpose_, position_;
  std::uint32_t draw_ = 0;
  int left_ = 0;
  RandomWords words_ = {};
};

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
