// How far a long piece of work is: a bar with rate and time left on a terminal (at most five times a second), a line
// every thirty seconds in a log file, nothing with -q. advance() may be called from any thread and costs an atomic add
// and a look at the clock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace gdds {

class Progress {
 public:
  // What is being done ("noising") and what is counted ("tokens"); total 0 where the end is not known.
  // With a limit the work ends after so many seconds, if it is not done before.
  Progress(std::string what, std::uint64_t total, std::string unit, double limit_seconds = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t n = 1);
  // A few words shown at the end of the line, such as "loss 4.21".
  void note(std::string text);

 private:
  void show(std::chrono::steady_clock::time_point now);

  const std::string what_;
  const std::uint64_t total_;
  const std::string unit_;
  const double limit_;
  const bool terminal_;
  const bool silent_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::int64_t> next_;  // steady-clock ticks of the next line
  std::mutex mutex_;
  std::string note_;
};

// One line of progress, as text: "noising: 43% [####......] 1.20M of 2.80M tokens, 12.3M/s, 0:12 left".
// `width` 0 means a log file: no bar is drawn, and the line may be as long as it likes. Where a limit in seconds comes before
// the end, it decides the share and the time left.
std::string progress_line(const std::string& what, std::uint64_t count, std::uint64_t total, const std::string& unit,
                          double seconds, const std::string& note, int width, double limit = 0);

// 1234567 -> "1.23M".
std::string short_number(double value);
// 3725 -> "1:02:05", 12 -> "0:12".
std::string short_time(double seconds);

}  // namespace gdds
