// Engine: the kernel interface by which a loop does its I/O. A value.
#pragma once

#include <cstdint>

namespace wirecall {

enum class Engine : std::uint8_t {
  automatic,  ///< io_uring where the kernel supports and permits it (Linux 6.1 or newer), else epoll
  epoll,
  uring,  ///< io_uring; where that is unavailable, epoll and a warning in the log
};

}  // namespace wirecall
