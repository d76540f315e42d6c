// See history.h.
#include "h5/history.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"

namespace gdds::h5 {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kIdDigits = 12;

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

HistoryLine parse_line(const std::string& text) {
  const Json json = Json::parse(text);
  HistoryLine line;
  line.id = json.at("id").get<std::string>();
  line.tool = json.at("tool").get<std::string>();
  line.version = json.at("version").get<std::string>();
  line.arguments = json.at("arguments").get<std::vector<std::string>>();
  if (json.contains("seed")) line.seed = json.at("seed").get<std::uint64_t>();
  for (const Json& input : json.at("inputs"))
    line.inputs.push_back({input.at("name").get<std::string>(), input.at("digest").get<std::string>()});
  line.command = json.at("command").get<std::string>();
  line.json = text;
  return line;
}

// The name by which later runs know a source.
std::string name_of(const Source& source) {
  if (source.history.empty()) return source.argument;
  return parse_history(source.history, source.argument).back().id + ".h5";
}

std::vector<std::string> argument_words(const Invocation& invocation, const std::vector<Source>& sources,
                                        const std::vector<HistoryInput>& inputs) {
  std::vector<std::string> words;
  for (const Argument& argument : invocation.arguments) {
    if (!argument.option.empty()) words.push_back(argument.option);
    if (!argument.value) continue;
    std::string value = *argument.value;
    const bool like_an_option = argument.option.empty() && value.size() > 1 && value[0] == '-';
    if (like_an_option && std::find(words.begin(), words.end(), "--") == words.end()) words.emplace_back("--");
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (sources[i].argument == value && !sources[i].history.empty()) value = inputs[i].name;
    words.push_back(value);
  }
  return words;
}

}  // namespace

std::vector<HistoryLine> parse_history(const std::string& text, const std::string& file) {
  std::vector<HistoryLine> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    try {
      lines.push_back(parse_line(text.substr(begin, end - begin)));
    } catch (const nlohmann::json::exception&) {
      reject("{}: /history: line {} is not the record of a run", file, lines.size() + 1);
    }
    begin = end + 1;
  }
  return lines;
}

std::string make_history(const Invocation& invocation, const std::vector<Source>& sources) {
  std::string text;
  std::set<std::string> known;
  std::vector<HistoryInput> inputs;
  for (const Source& source : sources) {
    for (const HistoryLine& line : parse_history(source.history, source.argument))
      if (known.insert(line.id).second) text += line.json + "\n";
    inputs.push_back({name_of(source), source.digest});
  }

  const std::vector<std::string> words = argument_words(invocation, sources, inputs);
  Json record;
  record["tool"] = invocation.tool;
  record["version"] = invocation.version;
  record["arguments"] = words;
  if (invocation.seed) record["seed"] = *invocation.seed;
  record["inputs"] = Json::array();
  for (const HistoryInput& input : inputs) record["inputs"].push_back({{"name", input.name}, {"digest", input.digest}});
  const std::string id = hash_hex(dumped(record)).substr(0, kIdDigits);

  std::string command = invocation.tool;
  const auto end_of_options = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != end_of_options; ++word) command += " " + shell_quote(*word);
  if (invocation.seed) command += fmt::format(" --seed {}", *invocation.seed);
  for (auto word = end_of_options; word != words.end(); ++word) command += " " + shell_quote(*word);
  command += (invocation.needs_file ? " -o " : " > ") + id + ".h5";

  Json line = {{"id", id}};
  line.update(record);
  line["command"] = command;
  if (known.insert(id).second) text += dumped(line) + "\n";
  return text;
}

}  // namespace gdds::h5
