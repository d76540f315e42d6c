// See log.h.
#include "base/log.h"

#include <mutex>

#include <cerrno>
#include <unistd.h>

#include "base/error.h"

namespace gdds::log {
namespace {

struct State {
  std::mutex mutex;
  std::string program = "gdds";
  Level level = Level::normal;
  std::string bar;
};

State& state() {
  static State s;
  return s;
}

// Standard error that cannot be written to is nobody's news.
void put(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

constexpr const char* kErase = "\r\033[K";

}  // namespace

void set_program(std::string name) { state().program = std::move(name); }
const std::string& program() { return state().program; }
void set_level(Level level) { state().level = level; }
Level level() { return state().level; }

void line(std::string_view text) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const std::string body = s.program + ": " + one_line(std::string(text)) + "\n";
  put(s.bar.empty() ? body : kErase + body + s.bar);
}

void set_bar(const std::string& bar) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (bar == s.bar) return;
  put(kErase + bar);
  s.bar = bar;
}

}  // namespace gdds::log
