// See command.h. Boost.Program_options splits the words; the texts become values in lib/base/options, which is stricter
// (nothing wraps, nothing is guessed).
#include "cli/command.h"

#include <algorithm>
#include <cassert>
#include <cstdio>

#include <boost/program_options.hpp>
#include <boost/version.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "base/threads.h"
#include "cli/config.h"
#include "cli/output.h"
#include "cli/wrap.h"

namespace gdds::cli {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kWidth = 80;
constexpr std::size_t kHelpColumn = 28;

std::string entry(const std::string& left, const std::string& help, const std::string& default_text) {
  const std::string right = default_text.empty() ? help : fmt::format("{} [{}]", help, default_text);
  std::string line = left.size() + 2 <= kHelpColumn ? left + std::string(kHelpColumn - left.size(), ' ')
                                                    : left + '\n' + std::string(kHelpColumn, ' ');
  return line + wrapped(right, kHelpColumn, kHelpColumn);
}

std::string entry(const Option& option) {
  std::string left = option.letter != 0 ? fmt::format("  -{}, --{}", option.letter, option.name)
                                        : fmt::format("      --{}", option.name);
  if (!option.is_flag()) left += ' ' + option.value_name;
  return entry(left, option.help + (option.repeated ? "; may be repeated" : ""), option.default_text);
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent, std::size_t column) {
  std::string out;
  while (!text.empty()) {
    const auto space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (column > indent && column + word.size() >= kWidth) {
      while (!out.empty() && out.back() == ' ') out.pop_back();
      out += '\n' + std::string(indent, ' ');
      column = indent;
    }
    out += word;
    column += word.size();
    if (!text.empty()) {
      out += ' ';
      ++column;
    }
  }
  return out + '\n';
}

Command::Command(const About& about, std::string verb, std::string verb_summary, std::vector<std::string> words)
    : about_(about), verb_(std::move(verb)), verb_summary_(std::move(verb_summary)), words_(std::move(words)) {}

Command::~Command() = default;

Option& Command::add(Option option) {
  assert(find(option.name) == nullptr && "an option is declared twice");
  options_.push_back(std::move(option));
  return options_.back();
}

void Command::positional(std::string_view name, std::string& value, std::string_view help) {
  positionals_.push_back({std::string(name), std::string(help), &value, nullptr, value});
}

void Command::positionals(std::string_view name, std::vector<std::string>& values, std::string_view help) {
  positionals_.push_back({std::string(name), std::string(help), nullptr, &values, ""});
}

void Command::add_common() {
  own_options_ = options_.size();
  option("config", config_, "take options from a preset, a file of 'name = value' lines or the name of an installed one")
      .placeholder("FILE")
      .neutral();
  option("threads,j", threads_, "threads to work with; 0 means all cores").range(0, 4096).neutral();
  option("quiet,q", quiet_, "say nothing but warnings and errors").neutral();
  option("verbose,v", verbose_, "say more").neutral();
  option("help,h", help_, "show this help and leave").neutral();
  option("version", version_, "show versions and leave").neutral();
}

const Option* Command::find(std::string_view name) const {
  for (const Option& option : options_)
    if (option.name == name) return &option;
  return nullptr;
}

void Command::split(Texts& given, std::vector<std::string>& words) const {
  po::options_description description;
  for (const Option& option : options_) {
    const std::string names = option.letter != 0 ? fmt::format("{},{}", option.name, option.letter) : option.name;
    description.add_options()(names.c_str(), new po::untyped_value(option.is_flag()), "");
  }
  using namespace po::command_line_style;
  const int style = allow_long | long_allow_adjacent | long_allow_next | allow_short | short_allow_adjacent |
                    short_allow_next | allow_dash_for_short | allow_sticky;
  try {
    const auto parsed = po::command_line_parser(words_).options(description).style(style).run();
    for (const auto& item : parsed.options) {
      if (item.string_key.empty()) {
        words.insert(words.end(), item.value.begin(), item.value.end());
      } else {
        const Option* const option = find(item.string_key);
        assert(option != nullptr);
        given.push_back({option, option->is_flag() ? "true" : item.value.at(0), ""});
      }
    }
  } catch (const po::error_with_option_name& error) {
    const bool unknown = dynamic_cast<const po::unknown_option*>(&error) != nullptr;
    if (unknown) bad_usage("unknown option '{}'; see {} --help", error.get_option_name(), about_.tool);
    if (dynamic_cast<const po::invalid_command_line_syntax*>(&error) == nullptr) bad_usage("{}", error.what());
    // The cases there are: "--k" and "--k=" without a value, "--quiet=yes" with one too many.
    const auto& syntax = dynamic_cast<const po::invalid_command_line_syntax&>(error);
    const bool missing = syntax.kind() != po::invalid_syntax::extra_parameter;
    bad_usage("{}: {}; see {} --help", error.get_option_name(), missing ? "a value is missing" : "takes no value",
              about_.tool);
  }
}

Command::Texts Command::with_presets(const Texts& given) const {
  const auto is_given = [&](const Option* option) {
    return std::any_of(given.begin(), given.end(), [&](const Text& g) { return g.option == option; });
  };
  Texts all;
  for (const auto& [chosen, file, from] : given) {
    if (chosen->name != "config") continue;
    for (const Setting& setting : read_config(file, about_.tool)) {
      const Option* const option = find(setting.name);
      if (option == nullptr || option->name == "config" || option->name == "help" || option->name == "version")
        bad_usage("--config {}: line {}: '{}' is not an option of {}", file, setting.line, setting.name, about_.tool);
      if (!is_given(option)) all.push_back({option, setting.value, fmt::format("--config {}: line {}", file, setting.line)});
    }
  }
  for (const Text& item : given)
    if (item.option->name != "config") all.push_back(item);
  return all;
}

void Command::set(const Text& item) {
  try {
    set_option(*item.option, item.text);
  } catch (const Error& error) {
    if (item.from.empty()) throw;
    throw Error(error.status(), fmt::format("{}: {}", item.from, error.what()));
  }
}

void Command::take_positionals(const std::vector<std::string>& words) {
  std::size_t next = 0;
  for (const Positional& p : positionals_) {
    if (p.many != nullptr) {
      p.many->assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
      next = words.size();
    } else if (next < words.size()) {
      *p.single = words[next++];
    } else if (p.single->empty()) {
      bad_usage("{} is missing; see {} --help", p.name, about_.tool);
    }
  }
  if (next < words.size()) bad_usage("one argument too many: '{}'; see {} --help", words[next], about_.tool);
}

void Command::record(const Texts& given) {
  invocation_.tool = about_.tool;
  invocation_.version = GDDS_VERSION;
  if (!verb_.empty()) invocation_.arguments.push_back({"", verb_});
  for (const Option& option : options_) {
    if (option.is_neutral) continue;
    const std::string* last = nullptr;
    for (const auto& [candidate, text, from] : given) {
      if (candidate != &option) continue;
      last = &text;
      if (option.repeated) invocation_.arguments.push_back({"--" + option.name, text});
    }
    if (option.name == "seed") {
      invocation_.seed = parse_unsigned(last != nullptr ? *last : option.default_text);
    } else if (last != nullptr && option.is_flag()) {
      if (parse_bool(*last)) invocation_.arguments.push_back({"--" + option.name, std::nullopt});
    } else if (last != nullptr && !option.repeated) {
      invocation_.arguments.push_back({"--" + option.name, *last});
    }
  }
  for (const Positional& p : positionals_) {
    if (p.single != nullptr) invocation_.arguments.push_back({"", *p.single});
    if (p.many != nullptr)
      for (const std::string& value : *p.many) invocation_.arguments.push_back({"", value});
  }
}

void Command::parse() {
  add_common();
  Texts given;
  std::vector<std::string> words;
  split(given, words);
  const auto asked = [&](const char* name) {
    return std::any_of(given.begin(), given.end(), [&](const Text& g) { return g.option->name == name; });
  };
  if (asked("help")) throw TextOnly{help()};
  if (asked("version")) throw TextOnly{version()};
  given = with_presets(given);
  for (const Text& item : given) set(item);
  take_positionals(words);
  log::set_level(quiet_ ? log::Level::quiet : verbose_ ? log::Level::verbose : log::Level::normal);
  set_threads(threads_);
  record(given);
  std::string typed = about_.tool + (verb_.empty() ? "" : " " + verb_);
  for (const std::string& word : words_) typed += " " + shell_quote(word);
  log::detail("command: {}", typed);
}

std::string Command::help() const {
  std::string text = "Usage: " + about_.tool + (verb_.empty() ? "" : " " + verb_) + " [OPTION]...";
  for (const Positional& p : positionals_) {
    const bool optional = p.many != nullptr || !p.default_text.empty();
    text += optional ? fmt::format(" [{}]{}", p.name, p.many != nullptr ? "..." : "") : " " + p.name;
  }
  text += "\n" + wrapped((verb_.empty() ? about_.summary : verb_summary_) + ".", 0, 0);
  if (!about_.description.empty()) text += "\n" + wrapped(about_.description, 0, 0);
  if (!positionals_.empty()) text += "\nArguments:\n";
  for (const Positional& p : positionals_) text += entry("  " + p.name, p.help, p.default_text);
  if (own_options_ > 0) text += "\nOptions:\n";
  for (std::size_t i = 0; i < own_options_; ++i) text += entry(options_[i]);
  text += "\nCommon options:\n";
  for (std::size_t i = own_options_; i < options_.size(); ++i) text += entry(options_[i]);
  if (!about_.examples.empty()) text += "\nExamples:\n";
  for (const std::string& example : about_.examples) text += "  " + example + "\n";
  return text + fmt::format("\nExit status: 0 done, 1 failed, 2 bad command line, 3 input rejected, 4 numerical "
                            "failure.\nThe manual: man {}\n", about_.tool);
}

std::string Command::version() const {
  std::string text = fmt::format("{} {}\n", about_.tool, GDDS_VERSION);
  for (const std::string& component : about_.built_on) text += component + "\n";
  text += fmt::format("Boost {}.{}.{}\n", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100);
  text += fmt::format("fmt {}.{}.{}\n", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
  return text + "compiler " __VERSION__ "\n";
}

}  // namespace gdds::cli
