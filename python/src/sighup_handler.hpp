// SighupHandler: while one lives, SIGHUP calls a function on a thread of its own. A Python program's threads do not
// block the signal, as the command's do; so a signal handler wakes that thread by an eventfd.
#pragma once

#include <atomic>
#include <functional>
#include <signal.h>
#include <thread>

namespace wirecall::python {

class SighupHandler {
 public:
  /// At most one in a process. A handler that the program has set stays, and nothing is called; `replaces`: it is
  /// replaced, and restored at the end. Throws std::system_error.
  SighupHandler(std::function<void()> function, bool replaces);
  /// Waits for a function that runs.
  ~SighupHandler();
  SighupHandler(SighupHandler&&) = delete;

 private:
  void wait();

  std::function<void()> function_;
  struct sigaction before_{};
  int event_ = -1;
  bool taken_ = false;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace wirecall::python
