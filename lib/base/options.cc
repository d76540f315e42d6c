// See options.h.
#include "base/options.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/number.h"

namespace gdds {
namespace {

Option described(std::string_view names, std::string_view help, std::string value_name, std::string default_text,
                 std::function<void(const std::string&)> set) {
  Option option;
  const auto comma = names.find(',');
  option.name = std::string(names.substr(0, comma));
  if (comma != std::string_view::npos) {
    assert(names.size() == comma + 2);
    option.letter = names[comma + 1];
  }
  option.help = std::string(help);
  option.value_name = std::move(value_name);
  option.default_text = std::move(default_text);
  option.set = std::move(set);
  return option;
}

}  // namespace

void Option::check_before(std::function<void(const std::string&)> check) {
  set = [inner = std::move(set), check = std::move(check)](const std::string& text) {
    check(text);
    inner(text);
  };
}

Option& Option::choices(std::vector<std::string> words) {
  value_name = fmt::format("{}", fmt::join(words, "|"));
  check_before([words = std::move(words)](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) == words.end())
      bad_usage("expected one of {}, found '{}'", fmt::join(words, ", "), text);
  });
  return *this;
}

Option& Option::range(double low, double high) {
  check_before([low, high](const std::string& text) {
    const double value = parse_real(text);
    if (value < low || value > high)
      bad_usage("expected a number from {} to {}, found '{}'", number_text(low), number_text(high), text);
  });
  return *this;
}

Option& Option::noted_in(std::vector<std::string>& given) {
  check_before([&given, name = name](const std::string&) { given.push_back(name); });
  return *this;
}

Option& Option::placeholder(std::string word) {
  value_name = std::move(word);
  return *this;
}

Option& Option::neutral() {
  is_neutral = true;
  return *this;
}

Option& Options::option(std::string_view names, bool& flag, std::string_view help) {
  return add(described(names, help, "", "", [&flag](const std::string& text) { flag = parse_bool(text); }));
}

Option& Options::option(std::string_view names, int& value, std::string_view help) {
  return add(described(names, help, "N", fmt::format("{}", value), [&value](const std::string& text) {
    const std::int64_t wide = parse_integer(text);
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
      bad_usage("expected a whole number, found '{}', which is out of range", text);
    value = static_cast<int>(wide);
  }));
}

Option& Options::option(std::string_view names, std::int64_t& value, std::string_view help) {
  return add(described(names, help, "N", fmt::format("{}", value),
                       [&value](const std::string& text) { value = parse_integer(text); }));
}

Option& Options::option(std::string_view names, std::uint64_t& value, std::string_view help) {
  return add(described(names, help, "N", fmt::format("{}", value),
                       [&value](const std::string& text) { value = parse_unsigned(text); }));
}

Option& Options::option(std::string_view names, double& value, std::string_view help) {
  return add(described(names, help, "X", number_text(value),
                       [&value](const std::string& text) { value = parse_real(text); }));
}

Option& Options::option(std::string_view names, std::string& value, std::string_view help) {
  return add(described(names, help, "TEXT", value, [&value](const std::string& text) { value = text; }));
}

Option& Options::option(std::string_view names, std::vector<std::string>& values, std::string_view help) {
  Option option = described(names, help, "TEXT", "", [&values](const std::string& text) { values.push_back(text); });
  option.repeated = true;
  return add(std::move(option));
}

void set_option(const Option& option, const std::string& text) {
  try {
    option.set(text);
  } catch (const Error& error) {
    throw Error(error.status(), fmt::format("--{}: {}", option.name, error.what()));
  }
}

}  // namespace gdds
