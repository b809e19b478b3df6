// Listeners: an endpoint on which several processes serve together. One of them opens it, forks the others, and each
// has its own of the sockets, between which the system spreads the connections:
//     const Listeners listeners{"tcp://127.0.0.1:8545", 4};
//     … in the n-th child: server.listen(listeners, n); server.run();
// A client that connects to the socket of a process that has died waits for the process that replaces it. The endpoint
// is closed when the object has gone in all processes; a socket file goes with that of the process that made it.
// Thread: any, one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "wirecall/endpoint.hpp"

namespace wirecall {

class Server;
namespace net {
class Replacement;
}

class Listeners {
 public:
  /// Listens at once on a tcp or unix endpoint. Throws std::invalid_argument for another, and for a count of 0;
  /// std::runtime_error, whose text has the cause and a fix.
  Listeners(std::string_view uri, std::size_t count);
  Listeners(Listeners&&) noexcept;
  ~Listeners();

  /// With its actual port.
  [[nodiscard]] const Endpoint& endpoint() const noexcept;
  [[nodiscard]] std::size_t count() const noexcept;

 private:
  friend class Server;
  friend class net::Replacement;
  struct State;
  explicit Listeners(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace wirecall
