// See types.h.
#include "h5/types.h"

#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gdds::h5 {
namespace {

struct Facts {
  std::string_view name;
  std::size_t size;
};
constexpr std::array<Facts, 8> kFacts = {{{"uint8", 1},
                                          {"uint16", 2},
                                          {"int32", 4},
                                          {"int64", 8},
                                          {"float16", 2},
                                          {"bfloat16", 2},
                                          {"float32", 4},
                                          {"float64", 8}}};

}  // namespace

std::string_view type_name(Type type) { return kFacts[static_cast<std::size_t>(type)].name; }
std::size_t type_size(Type type) { return kFacts[static_cast<std::size_t>(type)].size; }

std::uint64_t element_count(const Shape& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t n : shape) count *= n;
  return count;
}

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31;
  const std::uint32_t exponent = bits >> 10 & 0x1f;
  const std::uint32_t fraction = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::ldexp(static_cast<float>(fraction), -24)));
}

std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds beyond 65504
  if (magnitude < 0x38800000) {                       // below 2^-14: a multiple of 2^-24, rounded by the float unit
    const float steps = std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24));
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(steps));
  }
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<std::uint16_t>(sign | (rounded - 0x38000000) >> 13);
}

float bfloat_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t float_to_bfloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace gdds::h5
