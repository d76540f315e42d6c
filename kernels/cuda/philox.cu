// See philox.h. One thread a word.
#include "philox.h"

#include "launch.h"

namespace gdds::kernels::cuda {
namespace {

__global__ void fill(std::uint64_t seed, std::uint32_t purpose, std::uint64_t first, std::int64_t count,
                     std::int64_t length, std::uint32_t* words) {
  for (std::int64_t i = first_item(); i < count; i += item_step())
    words[i] = random_words(seed, purpose, first + static_cast<std::uint64_t>(i / length),
                            static_cast<std::uint32_t>(i % length), 0).word[0];
}

}  // namespace

int fill_random(std::uint64_t seed, std::uint32_t purpose, std::uint64_t first, std::int64_t sequences,
                std::int64_t length, std::uint32_t* words) {
  const std::int64_t count = sequences * length;
  return launch_items(fill, count, seed, purpose, first, count, length, words);
}

}  // namespace gdds::kernels::cuda
