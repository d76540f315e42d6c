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

}  // namespace gdds
