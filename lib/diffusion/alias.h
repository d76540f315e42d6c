// Walker's alias tables: a draw from k weights in constant time. Each slot holds two tokens and how much of the slot is the
// first one's.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "noise.h"

namespace gdds::diffusion {

// weights sum to 1. Probabilities are right to within 2^-32 a slot.
template <typename Id>
void fill_alias(std::span<const double> weights, std::span<const std::int32_t> tokens, std::span<kernels::AliasSlot<Id>> slots) {
  const std::size_t k = weights.size();
  std::vector<double> share(k);
  std::vector<std::size_t> small, large;
  for (std::size_t i = 0; i < k; ++i) {
    share[i] = weights[i] * static_cast<double>(k);
    (share[i] < 1 ? small : large).push_back(i);
  }
  const auto limit = [](double p) { return static_cast<std::uint32_t>(std::min(4294967295.0, std::nearbyint(p * 4294967296.0))); };
  const auto token = [&](std::size_t i) { return static_cast<Id>(tokens[i]); };
  while (!small.empty() && !large.empty()) {
    const std::size_t s = small.back(), l = large.back();
    small.pop_back();
    slots[s] = {limit(share[s]), token(s), token(l)};
    share[l] -= 1 - share[s];
    if (share[l] < 1) {
      large.pop_back();
      small.push_back(l);
    }
  }
  for (const auto* rest : {&small, &large})
    for (const std::size_t i : *rest) slots[i] = {0xffffffffU, token(i), token(i)};
}

}  // namespace gdds::diffusion
