// The options of a process as a JSON object, written in one order so that the same process has the same digest. Private
// to lib/diffusion: other modules see text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "diffusion/clock.h"
#include "diffusion/schedule.h"

namespace gdds::diffusion {

using Json = nlohmann::ordered_json;

inline Json to_json(const Schedule& s) {
  Json json = {{"name", s.name}};
  if (s.name == "geometric") json.update({{"sigma_min", s.sigma_min}, {"sigma_max", s.sigma_max}});
  else if (s.name == "exponential") json["rate"] = s.rate;
  else json["eps"] = s.eps;
  return json;
}

inline Json to_json(const ResetShare& s) { return {{"floor", s.floor}, {"ceiling", s.ceiling}, {"steepness", s.steepness}, {"middle", s.middle}}; }

// The members that a process reads from a file, checked: what is missing takes its default, what is of another type or out
// of range is status 3 with the file's name.
class ConfigReader {
 public:
  // `where` leads the names of members in messages.
  ConfigReader(const std::string& text, std::string file, std::string where = "");
  ConfigReader part(const std::string& name) const;
  double number(const std::string& name, double otherwise, double low, double high) const;
  std::int32_t integer(const std::string& name, std::int32_t otherwise, std::int32_t low, std::int32_t high) const;
  std::string word(const std::string& name, const std::string& otherwise, const std::vector<std::string>& words) const;
  // `name` is that of the attribute, which the object may repeat but not contradict.
  Schedule schedule(const std::string& name) const;
  ResetShare reset_share() const;

 private:
  Json json_;
  std::string file_, where_;
};

}  // namespace gdds::diffusion
