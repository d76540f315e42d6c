// Text on standard output, checked: a full disk or a closed descriptor is an error and not a short success, and a reader
// that went away ends the program quietly.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace gdds::cli {

void write_text(std::string_view text);
// Called once at the end of a tool; throws if anything written before is lost.
void finish_text();

template <typename... Args>
void print(fmt::format_string<Args...> text, Args&&... args) {
  write_text(fmt::format(text, std::forward<Args>(args)...));
}

// Thrown by --help and --version: print this, and nothing else happens.
struct TextOnly {
  std::string text;
};

}  // namespace gdds::cli
