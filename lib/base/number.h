// Strict readings of numbers and their texts: the whole string is the number or it is an error (status 2, for option
// values); nothing wraps around, nothing is cut off.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gdds {

std::int64_t parse_integer(std::string_view text);
std::uint64_t parse_unsigned(std::string_view text);
double parse_real(std::string_view text);  // finite, or "inf"
bool parse_bool(std::string_view text);    // true|false|yes|no|on|off|1|0

// The shortest decimal that reads back as the same number.
std::string number_text(double value);

}  // namespace gdds
