// See sighup_handler.hpp.
#include "sighup_handler.hpp"

#include <cerrno>
#include <cstdint>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace wirecall::python {
namespace {

std::atomic<int> event_of_handler{-1};

void tell(int event) noexcept {
  const std::uint64_t one = 1;
  const int before = errno;
  [[maybe_unused]] const ssize_t written = ::write(event, &one, sizeof one);  // full: it has been told already
  errno = before;
}

}  // namespace

SighupHandler::SighupHandler(std::function<void()> function, bool replaces) : function_(std::move(function)) {
  ::sigaction(SIGHUP, nullptr, &before_);
  const bool has_handler =
      (before_.sa_flags & SA_SIGINFO) != 0 || (before_.sa_handler != SIG_DFL && before_.sa_handler != SIG_IGN);
  if (has_handler && !replaces) return;
  event_ = ::eventfd(0, EFD_CLOEXEC);
  if (event_ < 0) throw std::system_error{errno, std::system_category(), "eventfd"};
  try {
    thread_ = std::thread{[this] { wait(); }};
  } catch (...) {
    ::close(event_);
    throw;
  }
  event_of_handler.store(event_);
  struct sigaction action{};
  action.sa_handler = [](int) { tell(event_of_handler.load()); };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGHUP, &action, nullptr);
  taken_ = true;
}

SighupHandler::~SighupHandler() {
  if (!taken_) return;
  ::sigaction(SIGHUP, &before_, nullptr);
  over_.store(true);
  tell(event_);
  thread_.join();
  ::close(event_);
}

void SighupHandler::wait() {
  for (;;) {
    std::uint64_t count = 0;
    if (::read(event_, &count, sizeof count) < 0 && errno != EINTR) return;
    if (over_.load()) return;
    if (count != 0) function_();
  }
}

}  // namespace wirecall::python
