// See endpoint_socket.hpp: which function a kind of endpoint is opened by, and what helps when it cannot be.
#include "transport/endpoint_socket.hpp"

#include "runtime/system.hpp"
#include "transport/loopback.hpp"
#include "transport/setup.hpp"

namespace wirecall::transport {

static std::string_view cure_of_listen(const Endpoint& endpoint, int error) noexcept {
  const bool tcp = is_network(endpoint.kind());
  switch (error) {
    case EADDRINUSE:
      if (endpoint.kind() == EndpointKind::shm)
        return "another program listens there: stop it, or listen on another name";
      return tcp ? "another program listens there: stop it, or listen on another port"
                 : "another program listens there: stop it, or listen on another path";
    case EACCES:
      return tcp ? "ports below 1024 are for privileged programs: listen on a higher one"
                 : "this user may not make files in that folder: listen in another";
    case EADDRNOTAVAIL: return "this machine has no such address: listen on 127.0.0.1, 0.0.0.0 or one of its own";
    case ENOENT:
    case ENOTDIR: return "there is no such folder: make it, or listen in another";
    case ENOSPC:
    case EDQUOT: return "the disk of that folder, or this user's share of it, is full: make room, or listen in another";
    case EROFS: return "that folder is on a file system that is only read: listen in another";
    default: return runtime::cure_of_shortage(error);
  }
}

static std::string_view cure_of_connect(int error) noexcept {
  switch (error) {
    case ECONNREFUSED: return "nothing listens there: start the server, or check the address";
    case ENOENT: return "there is no such file: start the server, or check the path";
    case EACCES: return "this user may not write to the socket's file: run as one who may, or have its mode changed";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH: return "the host does not answer: check its address and what stands in between";
    default: return runtime::cure_of_shortage(error);
  }
}

std::runtime_error failure(std::string_view what, const Endpoint& endpoint, std::string_view cause,
                           std::string_view cure) {
  std::string text{what};
  text.append(" ").append(endpoint.uri()).append(": ").append(cause);
  if (!cure.empty()) text.append("; ").append(cure);
  return std::runtime_error{text};
}

std::runtime_error listen_failure(const Endpoint& endpoint, int error) {
  return failure("cannot listen on", endpoint, std::strerror(error), cure_of_listen(endpoint, error));
}

std::runtime_error connect_failure(const Endpoint& endpoint, int error) {
  return failure("cannot connect to", endpoint, std::strerror(error), cure_of_connect(error));
}

BoundSocket listen_on(const Endpoint& endpoint) {
  switch (endpoint.kind()) {
    case EndpointKind::tcp: return listen_on_tcp(endpoint);
    case EndpointKind::unix_socket: return listen_on_unix(endpoint);
    case EndpointKind::http:
    case EndpointKind::ws:
      throw failure("cannot listen on", endpoint, "it is an endpoint for clients",
                    "listen on tcp://" + endpoint.authority() + ", where HTTP is understood as well");
    case EndpointKind::tls:
    case EndpointKind::https:
    case EndpointKind::wss:
      throw failure(
          "cannot listen on", endpoint, "it is an endpoint for clients",
          "listen on tcp://" + endpoint.authority() + " with tls.cert and tls.key, and it speaks TLS as well");
    case EndpointKind::udp:
    case EndpointKind::xdp:
      throw failure("cannot listen on", endpoint, "it has no connections", "have a server listen on it");
    case EndpointKind::stdio:
    case EndpointKind::inproc:
    case EndpointKind::shm: break;
  }
  throw failure("cannot listen on", endpoint, "it has no socket of its own", "have a server listen on it");
}

PendingConnection connect_to(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  switch (endpoint.kind()) {
    case EndpointKind::tcp:
    case EndpointKind::http:
    case EndpointKind::ws: return PendingConnection{connect_to_tcp(endpoint, timeout)};
    case EndpointKind::tls:
    case EndpointKind::https:
    case EndpointKind::wss:
      throw failure("cannot connect to", endpoint, "no authority is known here", "have a client connect to it");
    case EndpointKind::unix_socket: return PendingConnection{connect_to_unix(endpoint, timeout)};
    case EndpointKind::inproc: return connect_to_inproc(endpoint);
    case EndpointKind::shm: return connect_to_shm(endpoint, timeout);
    case EndpointKind::udp: return connect_to_udp(endpoint);
    case EndpointKind::xdp:
      throw failure("cannot connect to", endpoint, "it is an endpoint for servers",
                    "connect to udp:// and the interface's address");
    case EndpointKind::stdio: break;
  }
  throw failure("cannot connect to", endpoint, "whoever started this process is there already",
                "listen on it, and call from a handler");
}

int connect_socket(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  return connect_to_tcp(endpoint, timeout);
}

bool resolves_a_name(const Endpoint& endpoint) noexcept {
  return is_network(endpoint.kind()) && endpoint.kind() != EndpointKind::xdp && !is_address(endpoint.host());
}

}  // namespace wirecall::transport
