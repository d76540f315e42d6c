// A request to stop that is not obeyed in the middle of a step: while one of these lives, SIGINT, SIGTERM and SIGHUP are
// remembered instead of ending the program; a second one ends it as usual. The program finishes its step, saves, and throws
// Stopped.
#pragma once

namespace gdds {

class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  // The signal that came, or 0.
  int signal() const;
};

// Ends the program with status 128 + signal, once everything is saved.
struct Stopped {
  int signal;
};

}  // namespace gdds
