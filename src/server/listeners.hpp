// What Listeners holds: for Server, which serves one of them.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include "transport/endpoint_socket.hpp"
#include "wirecall/listeners.hpp"

namespace wirecall {

struct Listeners::State {
  State(std::vector<transport::BoundSocket> sockets, std::size_t processes) noexcept
      : all(std::move(sockets)), count(processes) {}
  State(State&&) = delete;
  ~State();
  [[nodiscard]] static bool is_for(EndpointKind kind) noexcept {
    return kind == EndpointKind::tcp || kind == EndpointKind::unix_socket;
  }
  /// Second descriptors of the sockets of that process, which listen. Throws std::system_error.
  [[nodiscard]] std::vector<transport::BoundSocket> share(std::size_t index) const;

  std::vector<transport::BoundSocket> all;  // of a unix endpoint one, which all share
  std::size_t count;
  pid_t maker = ::getpid();
};

}  // namespace wirecall
