// See philox.h. The plain loop is the definition.
#include "philox.h"

namespace gdds::kernels::cpu {

void fill_random(std::uint64_t seed, std::uint32_t purpose, std::uint64_t first, std::int64_t sequences,
                 std::int64_t length, std::uint32_t* words) {
  for (std::int64_t s = 0; s < sequences; ++s)
    for (std::int64_t l = 0; l < length; ++l)
      words[s * length + l] =
          random_words(seed, purpose, first + static_cast<std::uint64_t>(s), static_cast<std::uint32_t>(l), 0).word[0];
}

}  // namespace gdds::kernels::cpu
