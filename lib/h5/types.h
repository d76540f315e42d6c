// The element types our files hold, by the names used in the schema, and the half-width floats in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gdds::h5 {

enum class Type { uint8, uint16, int32, int64, float16, bfloat16, float32, float64 };

std::string_view type_name(Type type);
std::size_t type_size(Type type);

using Shape = std::vector<std::uint64_t>;

std::uint64_t element_count(const Shape& shape);
std::string shape_text(const Shape& shape);  // "[3, 4]"

// The element type a C++ type is stored as.
template <typename T>
struct TypeOf;
template <> struct TypeOf<std::uint8_t> { static constexpr Type value = Type::uint8; };
template <> struct TypeOf<std::uint16_t> { static constexpr Type value = Type::uint16; };
template <> struct TypeOf<std::int32_t> { static constexpr Type value = Type::int32; };
template <> struct TypeOf<std::int64_t> { static constexpr Type value = Type::int64; };
template <> struct TypeOf<float> { static constexpr Type value = Type::float32; };
template <> struct TypeOf<double> { static constexpr Type value = Type::float64; };

// IEEE binary16 and bfloat16 by their bits; narrowing rounds to nearest, ties to even.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
float bfloat_to_float(std::uint16_t bits);
std::uint16_t float_to_bfloat(float value);

}  // namespace gdds::h5
