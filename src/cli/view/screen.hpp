// Screen: a terminal's window that a command has to itself while this lives: an empty page without a cursor, keys that
// come as they are pressed. With its end the terminal is as it was before. One at a time. Thread: one.
#pragma once

#include <chrono>
#include <cstddef>
#include <signal.h>
#include <span>
#include <string>
#include <termios.h>

namespace wirecall::cli {

struct WindowSize {
  std::size_t lines = 24;
  std::size_t columns = 80;
};

struct ScreenLine {
  std::string text;    ///< printable
  bool title = false;  ///< stands out, over the whole width
};

class Screen {
 public:
  /// Whether stdout is a terminal; a Screen on anything else is not to be made.
  [[nodiscard]] static bool possible();

  Screen();
  Screen(Screen&&) = delete;
  ~Screen();

  /// The window as it is now.
  [[nodiscard]] WindowSize size() const;
  /// These lines, each shortened to the window's width, instead of what was there before. False when nobody can see it.
  [[nodiscard]] bool draw(std::span<const ScreenLine> lines) const;

  enum class Event { time_up, key, woken, closed };
  /// Waits for so long, or until before that a key is pressed, which `key` then is, the window is another, or `wake` is
  /// called. Keys are stdin's, if that is a terminal; `closed` says that it is gone.
  [[nodiscard]] Event wait(std::chrono::milliseconds time, char& key) const;
  /// Ends a `wait`, or the next one. Any thread.
  void wake() const noexcept;

 private:
  int wake_;
  bool keys_ = false;  ///< stdin is a terminal, and set so that they come
  termios before_{};
  struct sigaction resized_before_{};
};

}  // namespace wirecall::cli
