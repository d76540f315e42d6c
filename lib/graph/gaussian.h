// Normal random numbers that are the same with every standard library: its engine is laid down by the C++ standard, its
// distributions are not, so Box and Muller's two lines are here.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace gdds::graph {

class Gaussian {
 public:
  explicit Gaussian(std::uint64_t seed) : engine_(seed) {}
  double next() {
    const double u = uniform(), v = uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }

 private:
  // In (0, 1]: the logarithm is finite.
  double uniform() { return (static_cast<double>(engine_() >> 11) + 1) * 0x1p-53; }
  std::mt19937_64 engine_;
};

}  // namespace gdds::graph
