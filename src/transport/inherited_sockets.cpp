// See inherited_sockets.hpp.
#include "transport/inherited_sockets.hpp"

#include <algorithm>
#include <cstring>

#include "transport/setup.hpp"

namespace wirecall::transport {

static bool is_bound_at(const ListeningSocket& socket, const Endpoint& wanted) {
  const Endpoint& bound = socket.endpoint;
  if (bound == wanted) return true;
  const bool of_network = bound.kind() == EndpointKind::tcp || bound.kind() == EndpointKind::udp;
  return of_network && wanted.kind() == bound.kind() && wanted.port() == 0 && wanted.with_port(bound.port()) == bound;
}

// As the system has it: by another name, or by a name at all.
static std::vector<ListeningSocket>::const_iterator find_by_address(const std::vector<ListeningSocket>& sockets,
                                                                    const Endpoint& wanted) {
  const bool of_network = wanted.kind() == EndpointKind::tcp || wanted.kind() == EndpointKind::udp;
  const auto may_be = [&](const ListeningSocket& socket) {
    return socket.endpoint.kind() == wanted.kind() && socket.endpoint.port() == wanted.port();
  };
  if (!of_network || std::ranges::none_of(sockets, may_be)) return sockets.end();
  const Addresses addresses = resolve(wanted, "cannot listen on", {.flags = AI_PASSIVE});
  return std::ranges::find_if(sockets, [&](const ListeningSocket& socket) {
    if (!may_be(socket)) return false;
    const BoundAddress bound{socket.descriptor.get()};
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      if (address->ai_addrlen == bound.size && std::memcmp(address->ai_addr, &bound.address, bound.size) == 0)
        return true;
    }
    return false;
  });
}

std::vector<ListeningSocket> InheritedSockets::take(const Endpoint& wanted) {
  auto first = std::ranges::find_if(std::as_const(sockets_),
                                    [&](const ListeningSocket& socket) { return is_bound_at(socket, wanted); });
  if (first == sockets_.cend()) first = find_by_address(sockets_, wanted);
  if (first == sockets_.cend()) return {};
  const Endpoint bound = first->endpoint;
  std::vector<ListeningSocket> taken;
  std::vector<ListeningSocket> others;
  for (ListeningSocket& socket : sockets_) (socket.endpoint == bound ? taken : others).push_back(std::move(socket));
  sockets_ = std::move(others);
  const bool of_network = wanted.kind() == EndpointKind::tcp || wanted.kind() == EndpointKind::udp;
  for (ListeningSocket& socket : taken) socket.endpoint = of_network ? wanted.with_port(bound.port()) : wanted;
  return taken;
}

}  // namespace wirecall::transport
