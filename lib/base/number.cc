// See number.h.
#include "base/number.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace gdds {
namespace {

template <typename T>
T parse(std::string_view text, const char* expected) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) bad_usage("expected {}, found '{}', which is out of range", expected, text);
  if (error != std::errc{} || stop != end) bad_usage("expected {}, found '{}'", expected, text);
  return value;
}

}  // namespace

std::int64_t parse_integer(std::string_view text) { return parse<std::int64_t>(text, "a whole number"); }

std::uint64_t parse_unsigned(std::string_view text) {
  return parse<std::uint64_t>(text, "a whole number, zero or more");
}

double parse_real(std::string_view text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  const double value = parse<double>(text, "a number");
  if (!std::isfinite(value)) bad_usage("expected a finite number, found '{}'", text);
  return value;
}

bool parse_bool(std::string_view text) {
  for (const char* word : {"true", "yes", "on", "1"})
    if (text == word) return true;
  for (const char* word : {"false", "no", "off", "0"})
    if (text == word) return false;
  bad_usage("expected true or false, found '{}'", text);
}

std::string number_text(double value) { return fmt::format("{}", value); }

}  // namespace gdds
