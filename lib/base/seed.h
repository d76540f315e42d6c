// The seed of everything random. Randomness is an argument: functions take a Seed (or a counter made of one), none
// reaches for a generator of its own, and the default is fixed, so the same command gives the same numbers.
#pragma once

#include <cstdint>

#include "base/options.h"

namespace gdds {

struct Seed {
  std::uint64_t value = 1;
  void add_to(Options& options) { options.option("seed", value, "seed of all random numbers"); }
};

// 64 well-mixed bits of two numbers (the finaliser of SplitMix64). mixed(mixed(a, b), c) is the way to make one of three:
// sums of the numbers would meet again.
constexpr std::uint64_t mixed(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t z = seed + (number + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return z ^ z >> 31;
}

}  // namespace gdds
