// InheritedSockets: sockets that listen already, which another process has given this one: the server that it replaces,
// or a service manager. Whoever opens an endpoint takes those that are bound there. Thread: any, one at a time.
#pragma once

#include <vector>

#include "runtime/descriptor.hpp"
#include "transport/endpoint_socket.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::transport {

/// A socket that listens, or, of udp, is bound.
struct ListeningSocket {
  runtime::Descriptor descriptor;
  Endpoint endpoint;    ///< with its actual port
  bool passed = false;  ///< a service manager's own, which goes on listening without this process, as does its file
};

class InheritedSockets {
 public:
  InheritedSockets() = default;
  explicit InheritedSockets(std::vector<ListeningSocket> sockets) noexcept : sockets_(std::move(sockets)) {}

  /// Those that are bound at `wanted`; with port 0 those of the first endpoint of that host. A name that is none of
  /// theirs is resolved. None where there is none. Throws std::runtime_error for a host that has no address.
  [[nodiscard]] std::vector<ListeningSocket> take(const Endpoint& wanted);
  /// Those that nobody has taken.
  [[nodiscard]] const std::vector<ListeningSocket>& left() const noexcept { return sockets_; }

 private:
  std::vector<ListeningSocket> sockets_;
};

}  // namespace wirecall::transport
