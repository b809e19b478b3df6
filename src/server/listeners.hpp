// What Listeners holds: for Server, which serves one of them.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include "transport/endpoint_socket.hpp"
#include "wirecall/listeners.hpp"

namespace wirecall {

struct Listeners::State {
  State() = default;
  State(State&&) = delete;
  ~State();
  /// A second descriptor of that socket. Throws std::system_error.
  [[nodiscard]] transport::BoundSocket share(std::size_t index) const;

  std::vector<transport::BoundSocket> all;  // of a unix endpoint one, which all share
  std::size_t count = 0;
  pid_t maker = ::getpid();
};

}  // namespace wirecall
