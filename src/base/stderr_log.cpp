// The sink for stderr. One write a record, and only when stderr takes it without waiting: a pipe that says so has room
// for a page, which is as long as a line may be.
#include <algorithm>
#include <cerrno>
#include <mutex>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "wirecall/log.hpp"

namespace wirecall {
namespace {

constexpr std::size_t kWriteBytesMax = 4096;  // a pipe's page; and so long a write to a pipe is never torn

// While it lives, a write to a pipe whose reader has gone only fails.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() noexcept {
    sigset_t pending;
    ::sigpending(&pending);
    pending_before_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutPipeSignal(WithoutPipeSignal&&) = delete;
  ~WithoutPipeSignal() {
    constexpr timespec kNow{};
    while (!pending_before_ && ::sigtimedwait(&pipe_, nullptr, &kNow) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool pending_before_;
};

class StderrLog {
 public:
  explicit StderrLog(LogFormat format) : format_(format) {}

  void write(const LogRecord& record) {
    const std::scoped_lock lock{mutex_};
    std::string lines;
    if (dropped_ != 0) {
      lines = format_log(format_, {.level = LogLevel::warning,
                                   .time = record.time,
                                   .message = "records of this log were dropped, since stderr was not read",
                                   .fields = {{"records", static_cast<std::int64_t>(dropped_)}}});
      lines += '\n';
    }
    lines += format_log(format_, record);
    dropped_ = put(std::move(lines)) ? 0 : dropped_ + 1;
  }

 private:
  static bool put(std::string lines) {
    pollfd stderr_now{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (poll(&stderr_now, 1, 0) != 1 || (stderr_now.revents & POLLOUT) == 0) return false;
    lines.resize(std::min(lines.size(), kWriteBytesMax - 1));
    lines += '\n';
    const WithoutPipeSignal without;
    return ::write(STDERR_FILENO, lines.data(), lines.size()) == static_cast<ssize_t>(lines.size());
  }

  const LogFormat format_;
  std::mutex mutex_;
  std::size_t dropped_ = 0;
};

}  // namespace

LogSink stderr_log(LogFormat format) {
  return [log = std::make_shared<StderrLog>(format)](const LogRecord& record) { log->write(record); };
}

}  // namespace wirecall
