// See config.h.
#include "diffusion/config.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

namespace gdds::diffusion {

ConfigReader::ConfigReader(const std::string& text, std::string file, std::string where)
    : json_(Json::parse(text, nullptr, false)), file_(std::move(file)), where_(std::move(where)) {
  if (!json_.is_object()) reject("{}: /process/config: {}expected a JSON object", file_, where_.empty() ? "" : where_.substr(0, where_.size() - 1) + ": ");
}

ConfigReader ConfigReader::part(const std::string& name) const { return {json_.value(name, Json::object()).dump(), file_, where_ + name + "."}; }

double ConfigReader::number(const std::string& name, double otherwise, double low, double high) const {
  if (!json_.contains(name)) return otherwise;
  const Json& value = json_[name];
  if (!value.is_number()) reject("{}: /process/config: {}{}: expected a number, found {}", file_, where_, name, value.dump());
  const double number = value.get<double>();
  if (!(number >= low && number <= high)) reject("{}: /process/config: {}{}: expected a number from {} to {}, found {}", file_, where_, name, low, high, number);
  return number;
}

std::int32_t ConfigReader::integer(const std::string& name, std::int32_t otherwise, std::int32_t low, std::int32_t high) const {
  const double value = number(name, otherwise, low, high);
  if (value != std::floor(value)) reject("{}: /process/config: {}{}: expected a whole number, found {}", file_, where_, name, value);
  return static_cast<std::int32_t>(value);
}

std::string ConfigReader::word(const std::string& name, const std::string& otherwise, const std::vector<std::string>& words) const {
  if (!json_.contains(name)) return otherwise;
  const Json& value = json_[name];
  const std::string word = value.is_string() ? value.get<std::string>() : "";
  if (std::find(words.begin(), words.end(), word) == words.end())
    reject("{}: /process/config: {}{}: expected {}{}, found {}", file_, where_, name, words.size() > 1 ? "one of " : "", fmt::join(words, ", "), value.dump());
  return word;
}

Schedule ConfigReader::schedule(const std::string& name) const {
  const std::vector<std::string> names = {"log-linear", "linear", "cosine", "geometric", "exponential"};
  if (std::find(names.begin(), names.end(), name) == names.end()) reject("{}: /process@schedule: expected one of {}, found '{}'", file_, fmt::join(names, ", "), name);
  const ConfigReader p = part("schedule");
  Schedule s;
  s.name = p.word("name", name, {name});
  s.eps = p.number("eps", s.name == "log-linear" ? 1e-3 : 1e-4, 1e-300, 0.4);
  s.sigma_min = p.number("sigma_min", s.sigma_min, 1e-12, 100);
  s.sigma_max = p.number("sigma_max", s.sigma_max, s.sigma_min, 100);
  if (s.name == "geometric" && s.sigma_max <= s.sigma_min)
    reject("{}: /process/config: schedule.sigma_max: expected more than sigma_min {}, found {}", file_, s.sigma_min, s.sigma_max);
  s.rate = p.number("rate", s.rate, 1e-6, 60);
  return s;
}

ResetShare ConfigReader::reset_share() const {
  const ConfigReader p = part("resets");
  ResetShare s;
  s.ceiling = p.number("ceiling", s.ceiling, 0, 1);
  s.floor = p.number("floor", s.floor, s.ceiling > 0 ? 1e-300 : 0, s.ceiling);
  s.steepness = p.number("steepness", s.steepness, 1e-3, 1e3);
  s.middle = p.number("middle", s.middle, 0, 1);
  return s;
}

}  // namespace gdds::diffusion
