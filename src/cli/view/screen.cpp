// See screen.hpp. The sequences are those that every terminal since the VT100 and xterm understands.
#include "cli/view/screen.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/view/table.hpp"

namespace wirecall::cli {
namespace {

constexpr std::string_view kOpen = "\x1b[?1049h\x1b[?25l";   // the other page, no cursor
constexpr std::string_view kClose = "\x1b[?25h\x1b[?1049l";  // the cursor, the page that was there

/// Of the one Screen; -1 where there is none. A signal handler is given nothing but its number.
std::atomic<int> wake_descriptor{-1};

void wake_screen() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_descriptor.load(), &one, sizeof one) == sizeof one);
}

extern "C" void wirecall_note_resize(int) {
  const int error = errno;
  wake_screen();
  errno = error;
}

bool write_all(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

}  // namespace

bool Screen::possible() { return ::isatty(STDOUT_FILENO) == 1; }

Screen::Screen() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  wake_descriptor.store(wake_);
  if (::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    // Who stops it by Ctrl-Z would be left with the other page.
    keys.c_cc[VSUSP] = _POSIX_VDISABLE;
    keys_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &keys) == 0;
  }
  struct sigaction action{};
  action.sa_handler = wirecall_note_resize;
  ::sigaction(SIGWINCH, &action, &resized_before_);
  static_cast<void>(write_all(kOpen));
}

Screen::~Screen() {
  static_cast<void>(write_all(kClose));
  ::sigaction(SIGWINCH, &resized_before_, nullptr);
  if (keys_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  wake_descriptor.store(-1);
  ::close(wake_);
}

void Screen::wake() const noexcept { wake_screen(); }

WindowSize Screen::size() const {
  winsize window{};
  WindowSize size;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) return size;
  if (window.ws_row != 0) size.lines = window.ws_row;
  if (window.ws_col != 0) size.columns = window.ws_col;
  return size;
}

bool Screen::draw(std::span<const ScreenLine> lines) const {
  const WindowSize window = size();
  std::string page = "\x1b[H";
  lines = lines.first(std::min(lines.size(), window.lines));
  bool first = true;
  for (const ScreenLine& line : lines) {
    if (!first) page += "\r\n";
    first = false;
    std::string text{cut(line.text, window.columns)};
    if (line.title) text = fmt::format("\x1b[7m{}{}\x1b[0m", text, std::string(window.columns - width_of(text), ' '));
    page += text + "\x1b[K";
  }
  return write_all(page + "\x1b[J");
}

Screen::Event Screen::wait(std::chrono::milliseconds time, char& key) const {
  std::array<pollfd, 2> inputs{{{.fd = keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0},
                                {.fd = wake_, .events = POLLIN, .revents = 0}}};
  const int ready = ::poll(inputs.data(), inputs.size(), static_cast<int>(time.count()));
  if (ready == 0) return Event::time_up;
  std::uint64_t times = 0;
  if (ready < 0 || ::read(wake_, &times, sizeof times) == sizeof times) return Event::woken;
  return ::read(STDIN_FILENO, &key, 1) == 1 ? Event::key : Event::closed;
}

}  // namespace wirecall::cli
