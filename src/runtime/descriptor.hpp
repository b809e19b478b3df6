// Descriptor: an open file descriptor that its owner closes by going. Movable, so that one can be handed on.
// Thread: any, one at a time.
#pragma once

#include <cerrno>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace wirecall::runtime {

class Descriptor {
 public:
  /// Owns `fd`; a negative one is none.
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  /// Throws std::system_error with errno and `what` when `fd` is none.
  Descriptor(int fd, const char* what) : fd_(fd) {
    if (fd < 0) throw std::system_error{errno, std::generic_category(), what};
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  /// The caller owns it from now on.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace wirecall::runtime
