// Everything people read while a tool runs goes to standard error, each line led by the name of the program, since
// the tools of a pipe share one terminal. A line is one write, so lines of two programs never mix.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace gdds::log {

enum class Level : int { quiet = 0, normal = 1, verbose = 2 };

void set_program(std::string name);
const std::string& program();
void set_level(Level level);
Level level();

// Writes "program: text" and a newline, above a progress bar if there is one, whatever the level.
void line(std::string_view text);

template <typename... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  if (level() >= Level::normal) line(fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> text, Args&&... args) {
  line("warning: " + fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void detail(fmt::format_string<Args...> text, Args&&... args) {
  if (level() >= Level::verbose) line(fmt::format(text, std::forward<Args>(args)...));
}

// The progress bar's last line on the terminal; replaced by the next one, kept below lines of the log. Empty: none.
void set_bar(const std::string& bar);

}  // namespace gdds::log
