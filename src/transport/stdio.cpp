// See stdio.hpp.
#include "transport/stdio.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fcntl.h>
#include <limits.h>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>

namespace wirecall::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long a pump that is to end waits for a reader of its output.
constexpr milliseconds kParting{1000};

// A process has one standard input.
std::atomic<bool> in_use{false};

// Bytes on their way in one direction.
struct Direction {
  std::array<char, 64 * 1024> bytes;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool ended = false;  // nothing more comes

  [[nodiscard]] bool empty() const noexcept { return begin == end; }
  void fill(int from) noexcept {
    const ssize_t got = ::read(from, bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    begin = 0;
    end = got > 0 ? static_cast<std::size_t>(got) : 0;
    ended = got <= 0;
  }
  // False when nobody will ever take them. A pipe with room takes PIPE_BUF bytes without blocking, and nothing here
  // may block; so no more than that are written at once.
  [[nodiscard]] bool drain(int to) noexcept {
    const ssize_t taken = ::write(to, bytes.data() + begin, std::min<std::size_t>(end - begin, PIPE_BUF));
    if (taken < 0) return errno == EINTR || errno == EAGAIN;
    begin += static_cast<std::size_t>(taken);
    return true;
  }
};

// Whether the descriptor is open and can be read (O_RDONLY) or written (O_WRONLY).
bool is_for(int descriptor, int access) noexcept {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ((flags & O_ACCMODE) == access || (flags & O_ACCMODE) == O_RDWR);
}

}  // namespace

Pump::Pump(int input, int output) : input_(input), output_(output), stop_(::eventfd(0, EFD_CLOEXEC)) {
  int ends[2];
  if (stop_.get() < 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error{errno, std::generic_category(), "socketpair"};
  }
  ours_ = Descriptor{ends[0]};
  theirs_ = Descriptor{ends[1]};
  // The thread takes no signals: they are for those of the program, and writing to a closed pipe is an error here.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread{[this] { run(); }};
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

int Pump::end() noexcept {
  if (!thread_.joinable()) return refused_;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
  return refused_;
}

void Pump::run() {
  Direction in;
  Direction out;
  std::optional<steady_clock::time_point> deadline;  // when we are to stop
  while (!(out.ended && out.empty())) {
    const bool reads = !deadline && !in.ended && in.empty();
    const short socket_events =
        static_cast<short>((!out.ended && out.empty() ? POLLIN : 0) | (!in.empty() ? POLLOUT : 0));
    std::array<pollfd, 4> waiting{
        {{.fd = reads ? input_ : -1, .events = POLLIN, .revents = 0},
         {.fd = socket_events != 0 ? ours_.get() : -1, .events = socket_events, .revents = 0},
         {.fd = output_, .events = static_cast<short>(out.empty() ? 0 : POLLOUT), .revents = 0},
         {.fd = deadline ? -1 : stop_.get(), .events = POLLIN, .revents = 0}}};
    int limit = -1;
    if (deadline) {
      // All that was sent is in the socket already: when there is nothing, that was all.
      const auto left = std::chrono::ceil<milliseconds>(*deadline - steady_clock::now());
      limit = out.empty() ? 0 : static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    }
    const int ready = ::poll(waiting.data(), waiting.size(), limit);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || (ready == 0 && deadline)) break;
    const auto& [input, socket, output, stop] = waiting;
    if (stop.revents != 0) deadline = steady_clock::now() + kParting;
    if ((output.revents & POLLOUT) != 0) {
      if (!out.drain(output_)) {
        if (errno != EPIPE) refused_ = errno;  // else the peer has left, which is no failure of ours
        break;
      }
    } else if ((output.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
      break;
    }
    if ((socket.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && out.empty()) out.fill(ours_.get());
    if ((socket.revents & POLLOUT) != 0 && !in.drain(ours_.get())) in.begin = in.end;
    if (input.revents != 0) {
      in.fill(input_);
      if (in.ended) ::shutdown(ours_.get(), SHUT_WR);
    }
  }
  // The loop's end sees that nobody is here any more.
  ::shutdown(ours_.get(), SHUT_RDWR);
}

StandardStreams::StandardStreams(const Endpoint& endpoint) {
  if (in_use.exchange(true)) {
    throw failure("cannot listen on", endpoint, "this process does so already", "listen on it once");
  }
  input_ = Descriptor{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  output_ = Descriptor{::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  if (!is_for(input_.get(), O_RDONLY) || !is_for(output_.get(), O_WRONLY)) {
    in_use.store(false);
    throw failure("cannot listen on", endpoint, "standard input or output is closed",
                  "start the program with both open");
  }
  const Descriptor nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (nothing.get() >= 0) ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

StandardStreams::~StandardStreams() {
  ::dup2(input_.get(), STDIN_FILENO);
  ::dup2(output_.get(), STDOUT_FILENO);
  in_use.store(false);
}

}  // namespace wirecall::transport
