// The random numbers: the published test vectors, and independence of the cut into sequences.
#include <vector>

#include <gtest/gtest.h>

#include "philox.h"

namespace gdds::kernels {
namespace {

TEST(Philox, IsThePublishedOne) {
  // Philox4x32-10 of zeros: Random123's known answer.
  const RandomWords r = random_words(0, 0, 0, 0, 0);
  EXPECT_EQ(r.word[0], 0x6627e8d5U);
  EXPECT_EQ(r.word[1], 0xe169c58dU);
  EXPECT_EQ(r.word[2], 0xbc57ac4cU);
  EXPECT_EQ(r.word[3], 0x9b00dbd8U);
}

TEST(Philox, DependsOnEveryArgument) {
  const auto first = [](auto... a) { return random_words(a...).word[0]; };
  const std::uint32_t base = first(1, 2, 3, 4, 5);
  for (const std::uint32_t other : {first(2, 2, 3, 4, 5), first(1, 3, 3, 4, 5), first(1, 2, 4, 4, 5), first(1, 2, 3, 5, 5), first(1, 2, 3, 4, 6),
                                    first(1 | std::uint64_t{1} << 40, 2, 3, 4, 5), first(1, 2, 3 | std::uint64_t{1} << 40, 4, 5)})
    EXPECT_NE(other, base);
}

TEST(Philox, DoesNotDependOnTheBatch) {
  std::vector<std::uint32_t> whole(10 * 16), part(4 * 16);
  cpu::fill_random(7, 1, 100, 10, 16, whole.data());
  cpu::fill_random(7, 1, 103, 4, 16, part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 3 * 16));
}

}  // namespace
}  // namespace gdds::kernels
