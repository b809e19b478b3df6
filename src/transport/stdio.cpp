// stdio: the standard input and output of a process as one connection. They may be pipes, terminals, files or sockets,
// which no one way of waiting covers, and making them non-blocking would make them so for the shell that shares them.
// So a thread carries bytes between them and a pair of sockets, whose other end is a connection like any other: end of
// input is its half-close, and output that is not read is its back-pressure.
// While they are in use, what the program itself reads or prints goes elsewhere: input is empty, and output goes to
// standard error, so that a print in a handler does not break the stream.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>

#include "transport/setup.hpp"

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

// Carries bytes between two descriptors and a socket.
class Pump {
 public:
  // Reads from `input` until it ends, and writes to `output`, which both live until the pump is gone.
  Pump(int input, int output);
  ~Pump() { static_cast<void>(end()); }
  Pump(Pump&&) = delete;

  // Delivers what had been sent, for a while, when the other side reads it; reads no more. Returns 0, or the errno
  // with which the output was refused; that its reader has left is no refusal.
  int end() noexcept;

  // The end of the connection that the loop is to have; once.
  [[nodiscard]] int take_socket() noexcept { return theirs_.release(); }

 private:
  void run();

  int input_;
  int output_;
  Descriptor ours_;
  Descriptor theirs_;
  Descriptor stop_;
  int refused_ = 0;  // the thread's until that has ended
  std::thread thread_;
};

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

// Has the standard input and output of the process, and gives them back.
struct StandardStreams {
  // Throws std::runtime_error when they are closed.
  explicit StandardStreams(const Endpoint& endpoint) {
    if (in_use.exchange(true)) {
      throw failure("cannot listen on", endpoint, "this process does so already", "listen on it once");
    }
    input = Descriptor{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
    output = Descriptor{::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
    if (!is_for(input.get(), O_RDONLY) || !is_for(output.get(), O_WRONLY)) {
      in_use.store(false);
      throw failure("cannot listen on", endpoint, "standard input or output is closed",
                    "start the program with both open");
    }
    const Descriptor nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    if (nothing.get() >= 0) ::dup2(nothing.get(), STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  StandardStreams(StandardStreams&&) = delete;
  ~StandardStreams() {
    ::dup2(input.get(), STDIN_FILENO);
    ::dup2(output.get(), STDOUT_FILENO);
    in_use.store(false);
  }

  Descriptor input;
  Descriptor output;
};

// Its one connection is there from the beginning, and handed over in the first turn.
class StdioAcceptor final : public Acceptor, private Timer {
 public:
  StdioAcceptor(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted)
      : Acceptor(endpoint),
        loop_(&loop),
        accepted_(std::move(accepted)),
        streams_(endpoint),
        pump_(streams_.input.get(), streams_.output.get()) {
    loop.start(*this, std::chrono::nanoseconds{0});
  }
  ~StdioAcceptor() override { loop_->stop(*this); }
  [[nodiscard]] bool exhausted() const noexcept override { return handed_over_; }
  int end() noexcept override { return pump_.end(); }

 private:
  void expired() override {
    handed_over_ = true;
    accepted_(PendingConnection{pump_.take_socket()});
  }

  Loop* loop_;
  Listener::Accepted accepted_;
  StandardStreams streams_;
  Pump pump_;
  bool handed_over_ = false;
};

}  // namespace

std::unique_ptr<Acceptor> listen_on_stdio(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted) {
  return std::make_unique<StdioAcceptor>(loop, endpoint, std::move(accepted));
}

}  // namespace wirecall::transport
