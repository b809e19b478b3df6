// WakeEvent: an eventfd that an asyncio loop watches, by which other threads wake it. Owned by the queue whose entries
// it announces. Thread: any to set; clear is the loop's.
#pragma once

#include <cerrno>
#include <cstdint>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace wirecall::python {

class WakeEvent {
 public:
  WakeEvent() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
  }
  WakeEvent(WakeEvent&&) = delete;
  ~WakeEvent() { ::close(event_); }

  [[nodiscard]] int fileno() const noexcept { return event_; }
  void set() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(::write(event_, &one, sizeof one));
  }
  void clear() noexcept {
    std::uint64_t count = 0;
    static_cast<void>(::read(event_, &count, sizeof count));
  }

 private:
  int event_;
};

}  // namespace wirecall::python
