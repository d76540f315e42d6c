// See progress.h.
#include "base/progress.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"

namespace gdds {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kTerminalPeriod = std::chrono::milliseconds(200);
constexpr auto kLogPeriod = std::chrono::seconds(30);
constexpr int kBarCells = 20, kFewestCells = 5;

int terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

std::string short_number(double value) {
  static constexpr std::array<const char*, 6> kSuffix = {"", "k", "M", "G", "T", "P"};
  std::size_t power = 0;
  while (std::abs(value) >= 999.5 && power + 1 < kSuffix.size()) {
    value /= 1000;
    ++power;
  }
  if (power == 0 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  const int digits = std::abs(value) >= 99.95 ? 0 : std::abs(value) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, digits, kSuffix[power]);
}

std::string short_time(double seconds) {
  if (!(seconds < 1e7)) return "days";
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string progress_line(const std::string& what, std::uint64_t count, std::uint64_t total, const std::string& unit,
                          double seconds, const std::string& note, int width, double limit) {
  const double rate = seconds > 0 ? static_cast<double>(count) / seconds : 0;
  const double by_count = total > 0 ? std::min(1.0, static_cast<double>(count) / static_cast<double>(total)) : 0;
  const double by_time = limit > 0 ? std::min(1.0, seconds / limit) : 0, fraction = std::max(by_count, by_time);
  const bool known = total > 0 || limit > 0, limited = by_time > by_count;
  const std::string head = what + ": " + (known ? fmt::format("{:3.0f}% ", std::floor(100 * fraction)) : "");
  std::string tail = short_number(double(count)) + (total > 0 && !limited ? " of " + short_number(double(total)) : "") + " " + unit;
  if (rate > 0) tail += fmt::format(", {}/s", short_number(rate));
  if (limited) tail += fmt::format(", {} left", short_time(limit - std::min(limit, seconds)));
  else if (rate > 0 && total > count) tail += fmt::format(", {} left", short_time(double(total - count) / rate));
  if (!note.empty()) tail += ", " + note;
  // The bar takes what room the words leave.
  const int room = std::min(kBarCells, width - static_cast<int>(head.size() + tail.size()) - 4);
  std::string bar;
  if (known && room >= kFewestCells) {
    const auto full = static_cast<std::size_t>(fraction * room);
    bar = "[" + std::string(full, '#') + std::string(static_cast<std::size_t>(room) - full, '.') + "] ";
  }
  std::string line = head + bar + tail;
  if (width > 0 && line.size() >= static_cast<std::size_t>(width)) line.resize(static_cast<std::size_t>(width) - 1);
  return line;
}

Progress::Progress(std::string what, std::uint64_t total, std::string unit, double limit_seconds)
    : what_(std::move(what)),
      total_(total),
      unit_(std::move(unit)),
      limit_(limit_seconds),
      terminal_(isatty(STDERR_FILENO) == 1),
      silent_(log::level() == log::Level::quiet),
      start_(Clock::now()),
      next_((start_ + (terminal_ ? Clock::duration(kTerminalPeriod) : Clock::duration(kLogPeriod)))
                .time_since_epoch()
                .count()) {}

Progress::~Progress() {
  if (terminal_ && !silent_) log::set_bar("");
}

void Progress::advance(std::uint64_t n) {
  count_.fetch_add(n, std::memory_order_relaxed);
  if (silent_) return;
  const auto now = Clock::now();
  if (now.time_since_epoch().count() >= next_.load(std::memory_order_relaxed)) show(now);
}

void Progress::note(std::string text) {
  const std::lock_guard lock(mutex_);
  note_ = std::move(text);
}

void Progress::show(Clock::time_point now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread is writing this very line
  if (now.time_since_epoch().count() < next_.load(std::memory_order_relaxed)) return;
  const auto period = terminal_ ? Clock::duration(kTerminalPeriod) : Clock::duration(kLogPeriod);
  next_.store((now + period).time_since_epoch().count(), std::memory_order_relaxed);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto count = count_.load(std::memory_order_relaxed);
  if (terminal_) {
    const int width = terminal_width() - static_cast<int>(log::program().size()) - 2;
    log::set_bar(log::program() + ": " + progress_line(what_, count, total_, unit_, seconds, note_, std::max(20, width), limit_));
  } else {
    log::line(progress_line(what_, count, total_, unit_, seconds, note_, 0, limit_));
  }
}

}  // namespace gdds
