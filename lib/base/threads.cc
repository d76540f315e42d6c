// See threads.h.
#include "base/threads.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <sched.h>

namespace gdds {
namespace {
std::atomic<int> chosen{0};
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void set_threads(int count) { chosen = count; }

int threads() { return chosen > 0 ? chosen.load() : available_cores(); }

}  // namespace gdds
