// See config.h.
#include "diffusion/config.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace gdds::diffusion {

ConfigReader::ConfigReader(std::string text, std::string file) : json_(Json::parse(text, nullptr, false)), file_(std::move(file)) {
  if (!json_.is_object()) reject("{}: /process/config: expected a JSON object", file_);
}

ConfigReader ConfigReader::part(const std::string& name) const { return {json_.value(name, Json::object()).dump(), file_}; }

double ConfigReader::number(const std::string& name, double otherwise, double low, double high) const {
  if (!json_.contains(name)) return otherwise;
  const Json& value = json_[name];
  if (!value.is_number()) reject("{}: /process/config: {}: expected a number, found {}", file_, name, value.dump());
  const double number = value.get<double>();
  if (!(number >= low && number <= high)) reject("{}: /process/config: {}: expected a number from {} to {}, found {}", file_, name, low, high, number);
  return number;
}

std::string ConfigReader::word(const std::string& name, const std::string& otherwise, const std::vector<std::string>& words) const {
  if (!json_.contains(name)) return otherwise;
  const Json& value = json_[name];
  const std::string word = value.is_string() ? value.get<std::string>() : "";
  if (std::find(words.begin(), words.end(), word) == words.end())
    reject("{}: /process/config: {}: expected one of {}, found {}", file_, name, fmt::join(words, ", "), value.dump());
  return word;
}

Schedule ConfigReader::schedule() const {
  const ConfigReader p = part("schedule");
  Schedule s;
  s.name = p.word("name", s.name, {"log-linear", "linear", "cosine", "geometric", "exponential"});
  s.eps = p.number("eps", s.name == "log-linear" ? 1e-3 : 1e-4, 1e-300, 0.4);
  s.sigma_min = p.number("sigma_min", s.sigma_min, 1e-12, 100);
  s.sigma_max = p.number("sigma_max", s.sigma_max, s.sigma_min, 100);
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
