// What a tool was asked to do, in a form that does not depend on how it was typed: options in the order of the help,
// presets spelled out, nothing that leaves the result as it is. It becomes the tool's line in /history.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gdds {

struct Argument {
  std::string option;  // "--k"; empty for a positional argument
  std::optional<std::string> value;  // none for a flag
};

struct Invocation {
  std::string tool;
  std::string version;
  std::vector<Argument> arguments;
  std::optional<std::uint64_t> seed;  // of the tools that draw random numbers, typed or not
  bool needs_file = false;            // its output is no stream: it is written on the way
};

// The word as a POSIX shell reads it back; bytes that are not printable or not UTF-8 as $'\NNN' (bash, zsh, ksh).
std::string shell_quote(const std::string& word);

// Is this well-formed UTF-8 (no surrogates, nothing overlong)?
bool is_utf8(const std::string& text);

}  // namespace gdds
