// `wirecall top` as a user runs it: on a terminal, which is a pseudo-terminal, at a broker that is a process of its
// own.
#include <array>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/commands/commands.hpp"
#include "tests/cli/broker_tool.hpp"

namespace wirecall::cli {
namespace {

constexpr std::string_view kOpen = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kClose = "\x1b[?25h\x1b[?1049l";

/// A command on a terminal of its own.
class OnTerminal {
 public:
  OnTerminal(std::vector<std::string> words, const std::string& url, winsize window) {
    words.insert(words.begin(), WIRECALL_TOOL_PATH);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    // Held open, so that the terminal outlives the command and can be looked at.
    EXPECT_EQ(openpty(&master_, &slave_, nullptr, nullptr, &window), 0);
    // What is written is what is shown.
    termios plain = settings();
    plain.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    EXPECT_EQ(tcsetattr(slave_, TCSANOW, &plain), 0);
    before_ = settings();
    pid_ = fork();
    if (pid_ == 0) {
      alarm(kSecondsMax);
      setenv("WIRECALL_URL", url.c_str(), 1);
      close(master_);
      setsid();
      ioctl(slave_, TIOCSCTTY, 0);
      for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(slave_, standard);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
  }
  OnTerminal(OnTerminal&&) = delete;
  ~OnTerminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
    close(master_);
    close(slave_);
  }

  /// Reads what is shown up to `end`, and forgets it.
  std::string read_until(std::string_view end) {
    std::size_t at = 0;
    while ((at = shown_.find(end)) == std::string::npos) {
      pollfd input{.fd = master_, .events = POLLIN, .revents = 0};
      if (poll(&input, 1, 300'000) != 1) break;  // it may have ended, which does not end the terminal
      std::array<char, 4096> block;
      const ssize_t bytes = read(master_, block.data(), block.size());
      if (bytes <= 0) break;
      shown_.append(block.data(), static_cast<std::size_t>(bytes));
    }
    EXPECT_NE(at, std::string::npos) << shown_;
    const std::string text = shown_.substr(0, at);
    shown_.erase(0, at == std::string::npos ? at : at + end.size());
    return text;
  }
  void press(char key) const { EXPECT_EQ(write(master_, &key, 1), 1); }
  void resize(winsize window) const { EXPECT_EQ(ioctl(master_, TIOCSWINSZ, &window), 0); }
  int wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void signal(int number) const { kill(pid_, number); }
  /// Whether keys come as they are pressed.
  [[nodiscard]] bool is_as_before() const {
    return settings().c_lflag == before_.c_lflag && settings().c_cc[VSUSP] == before_.c_cc[VSUSP];
  }

 private:
  [[nodiscard]] termios settings() const {
    termios now{};
    EXPECT_EQ(tcgetattr(slave_, &now), 0);
    return now;
  }

  int master_ = -1;
  int slave_ = -1;
  pid_t pid_ = -1;
  termios before_{};
  std::string shown_;
};

class Top : public BrokerTool {
 protected:
  Staying provider_{{"reply", "greet", "hello"}, url_, "wirecall: provides "};
};

TEST_F(Top, shows_calls_as_they_are_made_until_q_is_pressed) {
  OnTerminal top{{"top", "--interval", "10ms"}, url_, {.ws_row = 24, .ws_col = 120, .ws_xpixel = 0, .ws_ypixel = 0}};
  EXPECT_EQ(top.read_until(kOpen), "");
  EXPECT_NE(top.read_until("METHOD ").find(url_), std::string::npos);
  top.read_until("\ngreet ");
  EXPECT_FALSE(top.is_as_before());
  EXPECT_EQ(output({"call", "greet"}), "\"hello\"\n");
  top.read_until(" 1       0\x1b[K");  // its calls and errors, at the end of its line
  top.press('x');
  top.press('q');
  top.read_until(kClose);
  EXPECT_EQ(top.wait(), 0);
  EXPECT_TRUE(top.is_as_before());
}

TEST_F(Top, fits_the_window_as_it_changes) {
  OnTerminal top{{"top", "--interval", "1h"}, url_, {.ws_row = 24, .ws_col = 120, .ws_xpixel = 0, .ws_ypixel = 0}};
  top.read_until("\x1b[J");
  top.resize({.ws_row = 4, .ws_col = 20, .ws_xpixel = 0, .ws_ypixel = 0});
  std::string page = top.read_until("\x1b[J");
  EXPECT_TRUE(page.starts_with("\x1b[H" + url_.substr(0, 20) + "\x1b[K\r\nconnections ")) << page;
  page.erase(0, std::string_view{"\x1b[H"}.size());
  std::size_t lines = 0;
  for (std::size_t end = 0; end != std::string::npos; ++lines) {
    EXPECT_LE(page.find("\x1b[K"), 20U) << page;
    end = page.find("\r\n");
    page.erase(0, end == std::string::npos ? end : end + 2);
  }
  EXPECT_EQ(lines, 4U);
  top.press('q');
  EXPECT_EQ(top.wait(), 0);
}

TEST_F(Top, signals_end_it_and_restore_the_terminal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    OnTerminal top{{"top"}, url_, {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0}};
    top.read_until("\x1b[J");
    signal == SIGINT ? top.press('\x03') : top.signal(signal);
    top.read_until(kClose);
    EXPECT_EQ(top.wait(), 128 + signal);
    EXPECT_TRUE(top.is_as_before());
  }
}

TEST_F(Top, goes_on_when_the_broker_comes_back) {
  OnTerminal top{
      {"top", "--interval", "10ms", "--reconnect-min-ms", "5", "--reconnect-max-ms", "10", "--timeout", "100ms"},
      url_,
      {.ws_row = 24, .ws_col = 120, .ws_xpixel = 0, .ws_ypixel = 0}};
  top.read_until("greet");
  server_.signal(SIGTERM);
  EXPECT_EQ(server_.wait(), 0);
  top.read_until("cannot connect to " + url_);
  Process again{{"serve", "--port", std::to_string(port_)}};
  EXPECT_EQ(port_of(again), port_);
  top.read_until("events dropped 0\x1b[K\r\n\x1b[K\r\n");  // without trouble
  top.press('q');
  EXPECT_EQ(top.wait(), 0);
}

TEST_F(Top, exit_statuses) {
  const Ended ended = run({"top"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.output, "");
  EXPECT_EQ(ended.error, "wirecall: top needs a terminal as stdout; wirecall stats prints the numbers once\n");
  const winsize window{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  OnTerminal nobody{{"top"}, "tcp://127.0.0.1:1", window};
  nobody.read_until("nothing listens there");
  EXPECT_EQ(nobody.wait(), 3);
  const SilentServer silent;
  OnTerminal waiting{{"top", "--timeout", "50ms"}, silent.url(), window};
  waiting.read_until("error -32002");
  EXPECT_EQ(waiting.wait(), 4);
  const PlainServer server;
  OnTerminal no_broker{{"top"}, server.url(), window};
  no_broker.read_until("error -32601");
  EXPECT_EQ(no_broker.wait(), 1);
}

}  // namespace
}  // namespace wirecall::cli
