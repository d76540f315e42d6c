// See stop.h.
#include "base/stop.h"

#include <csignal>

namespace gdds {
namespace {

volatile std::sig_atomic_t received = 0;
struct sigaction before[2];
constexpr int kSignals[2] = {SIGINT, SIGTERM};

extern "C" void remember_signal(int signal) {
  for (int i = 0; i < 2; ++i)
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
  for (int i = 0; i < 2; ++i) {
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
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &before[i], nullptr);
}

int StopRequest::signal() const { return static_cast<int>(received); }

}  // namespace gdds
