// Interrupt: while one lives, the first SIGINT or SIGTERM is noted instead of ending the process, so that what was
// begun can be given up in good order. The second of its kind ends the process, as it would without: whoever asks twice
// does not want to wait. One at a time in a process; what the signals did before is restored with its end. Not what a
// server does with signals: Server::run has handlers of its own. Thread: any.
#pragma once

#include <signal.h>
#include <string>

namespace wirecall::cli {

class Interrupt {
 public:
  Interrupt();
  Interrupt(Interrupt&&) = delete;
  ~Interrupt();

  /// The signal that has come; 0 for none.
  [[nodiscard]] int signal() const noexcept;
  /// Blocks until there is one, or `release` is called.
  void wait() const noexcept;
  void release() const noexcept;

  /// What the process ends with after `signal`, as a shell expects it: 130 or 143.
  [[nodiscard]] int status() const noexcept { return 128 + signal(); }
  /// Of the signal, for people.
  [[nodiscard]] std::string name() const { return signal() == SIGTERM ? "SIGTERM" : "SIGINT"; }

 private:
  struct sigaction interrupt_{};
  struct sigaction terminate_{};
};

}  // namespace wirecall::cli
