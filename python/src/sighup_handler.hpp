// SighupHandler: while one lives, SIGHUP calls a function, on a thread of its own. Signals of a program's own threads
// cannot be held back, as the command's are: a handler tells that thread.
#pragma once

#include <atomic>
#include <functional>
#include <signal.h>
#include <thread>

namespace wirecall::python {

class SighupHandler {
 public:
  /// One at a time in a process. Where the program has a handler for SIGHUP, that stays, and nothing is called; unless
  /// it `replaces` that, which is back at the end. Throws std::system_error.
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
