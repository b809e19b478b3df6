// A running command, started as a user starts it: a separate process whose stdout and stderr are read. Waits are
// bounded, so a failing test does not hang.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace wirecall::cli {

/// Why what runs out of descriptors is not tested with AddressSanitizer.
inline constexpr const char* kSanitizerNeedsDescriptors =
    "UndefinedBehaviorSanitizer, beside this one, needs descriptors itself";

/// Seconds after which a process that hangs is killed, and its test fails.
inline constexpr unsigned kSecondsMax = 60;

/// A running command, its stdin, stdout and stderr in pipes.
class Process {
 public:
  enum class Input : bool { ends, goes_on };

  /// Its input is `input`; where that `goes_on`, what is typed besides, until `end_input`.
  explicit Process(std::vector<std::string> words, const std::string& wirecall_url = {}, std::string_view input = {},
                   Input then = Input::ends, const std::string& program = WIRECALL_TOOL_PATH) {
    int in[2];
    int out[2];
    int err[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
    words.insert(words.begin(), program);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      alarm(kSecondsMax);
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      setenv("WIRECALL_URL", wirecall_url.c_str(), 1);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    in_ = in[1];
    type(input);
    if (then == Input::ends) end_input();
    for (const int end : {in[0], out[1], err[1]}) close(end);
    out_ = out[0];
    err_ = err[0];
  }
  Process(Process&&) = delete;
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
    end_input();
    close(out_);
    close(err_);
  }

  /// At most as much as a pipe holds without a reader.
  void type(std::string_view text) const {
    EXPECT_EQ(write(in_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end_input() {
    if (in_ >= 0) close(std::exchange(in_, -1));
  }

  [[nodiscard]] pid_t id() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }
  [[nodiscard]] std::size_t resident_bytes() const {
    std::ifstream file{"/proc/" + std::to_string(pid_) + "/statm"};
    std::size_t pages = 0;
    std::size_t resident = 0;
    EXPECT_TRUE(file >> pages >> resident);
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }

  /// Reads stderr until `end` has occurred that many times, or to the end.
  std::string read_error_until(std::string_view end, int times = 1) {
    const auto came = [&] {
      int count = 0;
      for (std::size_t at = 0; (at = error_.find(end, at)) != std::string::npos; at += end.size()) ++count;
      return count >= times;
    };
    while (!came() && read_some(err_, error_)) {
    }
    return error_;
  }

  /// What stderr has from `at` on, up to the end of the line.
  std::string read_error_line(std::size_t at) {
    while (error_.find('\n', at) == std::string::npos && read_some(err_, error_)) {
    }
    return error_.substr(at, error_.find('\n', at) - at);
  }

  /// Reads stdout up to the end of a line; returns the line without it.
  std::string line() {
    std::size_t end = 0;
    while ((end = output_.find('\n')) == std::string::npos && read_some(out_, output_)) {
    }
    std::string line = output_.substr(0, end);
    output_.erase(0, end == std::string::npos ? end : end + 1);
    return line;
  }

  /// Waits for the end: the exit status, or minus the number of the signal that ended it.
  int wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string rest_of_output() {
    while (read_some(out_, output_)) {
    }
    return std::exchange(output_, {});
  }
  std::string rest_of_error() {
    while (read_some(err_, error_)) {
    }
    return error_;
  }

 private:
  static bool read_some(int descriptor, std::string& text) {
    std::array<char, 4096> block;
    const ssize_t bytes = read(descriptor, block.data(), block.size());
    if (bytes > 0) text.append(block.data(), static_cast<std::size_t>(bytes));
    return bytes > 0;
  }

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::string output_;
  std::string error_;
};

/// A command that has ended.
struct Ended {
  int status;
  std::string output;
  std::string error;
};

inline Ended run(std::vector<std::string> words, const std::string& wirecall_url = {}, std::string_view input = {}) {
  Process process{std::move(words), wirecall_url, input};
  Ended ended{};
  ended.output = process.rest_of_output();
  ended.error = process.rest_of_error();
  ended.status = process.wait();
  return ended;
}

/// The endpoint of a server started on a port of the system's choice, from its banner.
inline std::uint16_t port_of(Process& server) {
  const std::string banner = server.read_error_until("nc -q1");
  const std::string_view scheme = "tcp://127.0.0.1:";
  const std::size_t at = banner.find(scheme);
  EXPECT_NE(at, std::string::npos) << banner;
  if (at == std::string::npos) return 0;
  return static_cast<std::uint16_t>(std::strtoul(banner.c_str() + at + scheme.size(), nullptr, 10));
}

}  // namespace wirecall::cli
