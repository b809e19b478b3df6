// See loopback.hpp.
#include "transport/loopback.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>

namespace wirecall::transport {

static bool is_localhost(std::string_view host) noexcept {
  constexpr std::string_view kName = "localhost";
  return std::ranges::equal(host, kName, [](char c, char name) { return (c | 0x20) == name; });
}

bool is_loopback(std::string_view host) noexcept {
  std::array<char, INET6_ADDRSTRLEN> text{};  // ends in zero, which inet_pton needs
  if (host.empty() || host.size() >= text.size()) return false;
  if (is_localhost(host)) return true;
  if (host.contains('\0')) return false;
  std::ranges::copy(host, text.begin());
  if (in_addr address{}; host.front() == '1' && inet_pton(AF_INET, text.data(), &address) == 1)
    return ntohl(address.s_addr) >> 24 == 127;
  in6_addr address{};
  if (!host.contains(':') || inet_pton(AF_INET6, text.data(), &address) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

// Without a default, so that a new kind does not compile before somebody has said which it is.
bool is_network(EndpointKind kind) noexcept {
  switch (kind) {
    case EndpointKind::tcp:
    case EndpointKind::http:
    case EndpointKind::ws:
    case EndpointKind::udp:
    case EndpointKind::xdp:
    case EndpointKind::tls:
    case EndpointKind::https:
    case EndpointKind::wss: return true;
    case EndpointKind::unix_socket:
    case EndpointKind::stdio:
    case EndpointKind::inproc:
    case EndpointKind::shm: return false;
  }
  return true;
}

bool is_local(const Endpoint& endpoint) noexcept {
  return !is_network(endpoint.kind()) || is_loopback(endpoint.host());
}

}  // namespace wirecall::transport
