// See stop.h.
#include "base/stop.h"

#include <csignal>
#include <iterator>

namespace gdds {
namespace {

volatile std::sig_atomic_t received = 0;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kCount = std::size(kSignals);
struct sigaction before[kCount];

extern "C" void remember_signal(int signal) {
  for (int i = 0; i < kCount; ++i)
    if (received != 0 && kSignals[i] == signal) {  // the second one: at once
      sigaction(signal, &before[i], nullptr);
      std::raise(signal);
      return;
    }
  received = signal;
}

}  // namespace

StopRequest::StopRequest() {
  received = 0;
  for (int i = 0; i < kCount; ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    if (before[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = before[i];
    action.sa_handler = remember_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(kSignals[i], &action, nullptr);
  }
}

StopRequest::~StopRequest() {
  for (int i = 0; i < kCount; ++i) sigaction(kSignals[i], &before[i], nullptr);
}

int StopRequest::signal() const { return static_cast<int>(received); }

}  // namespace gdds
