// Engine: which of the kernel's interfaces a loop waits by. A value; what becomes of it is the runtime's.
#pragma once

#include <cstdint>

namespace wirecall {

enum class Engine : std::uint8_t {
  automatic,  ///< io_uring where the kernel has what is needed and allows it (Linux 6.1 or newer), else epoll
  epoll,
  uring,  ///< io_uring; epoll with a warning in the log where it is not to be had
};

}  // namespace wirecall
