// TCP sockets for endpoint_socket.hpp. Replies are small and must not wait for acknowledgements, so every connection
// has TCP_NODELAY; those that are accepted have it from their listener. Names are resolved here, by the system and on
// the caller's thread.
#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

#include "transport/setup.hpp"

namespace wirecall::transport {
namespace {

void set_option(int fd, int level, int option) noexcept {
  const int on = 1;
  ::setsockopt(fd, level, option, &on, sizeof on);
}

Descriptor open_socket(int family) {
  Descriptor socket{::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (socket.get() >= 0) set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

bool binds(int fd, const sockaddr* address, socklen_t size) noexcept {
  set_option(fd, SOL_SOCKET, SO_REUSEADDR);
  return ::bind(fd, address, size) == 0;
}

// 0, or an errno.
int finish_connecting(int fd, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return errno;
    if (ready == 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }
}

}  // namespace

Addresses resolve(const Endpoint& endpoint, std::string_view what, const Wanted& wanted) {
  addrinfo hints{};
  hints.ai_socktype = wanted.kind;
  hints.ai_flags = wanted.flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(endpoint.host().c_str(), std::to_string(endpoint.port()).c_str(), &hints, &list);
  if (error != 0) {
    throw failure(what, endpoint, ::gai_strerror(error), "check the name of the host, or give its address");
  }
  return Addresses{list};
}

BoundAddress::BoundAddress(int fd) noexcept { ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size); }

std::uint16_t BoundAddress::port() const noexcept {
  const auto* as6 = reinterpret_cast<const sockaddr_in6*>(&address);
  const auto* as4 = reinterpret_cast<const sockaddr_in*>(&address);
  return ntohs(address.ss_family == AF_INET6 ? as6->sin6_port : as4->sin_port);
}

BoundSocket listen_on_tcp(const Endpoint& endpoint) {
  const Addresses addresses = resolve(endpoint, "cannot listen on", {.flags = AI_PASSIVE});
  for (int tries = 0;; ++tries) {
    int error = 0;
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      Descriptor socket = open_socket(address->ai_family);
      if (socket.get() >= 0) {
        if (binds(socket.get(), address->ai_addr, address->ai_addrlen) && begin_to_listen(socket.get())) {
          const BoundAddress bound{socket.get()};
          return {socket.release(), endpoint.with_port(bound.port()), {}};
        }
      }
      error = errno;
    }
    if (error != EADDRINUSE || tries == kInUseTries) throw listen_failure(endpoint, error);
    std::this_thread::sleep_for(kInUsePause);
  }
}

// Those who say SO_REUSEPORT share a port with any program of this user that says it too, and none of them notices. So
// the first binds and listens without it, which fails unless nobody else is there, and says it only then: from here on
// the others may come, and whoever begins as we do is refused.
std::vector<BoundSocket> listen_together(const Endpoint& endpoint, std::size_t count) {
  std::vector<BoundSocket> all;
  all.push_back(listen_on_tcp(endpoint));
  all = listen_together(std::move(all), count);
  for (BoundSocket& bound : all) {
    if (!std::exchange(bound.listens, true) && !begin_to_listen(bound.descriptor)) {
      const int error = errno;
      for (const BoundSocket& one : all) ::close(one.descriptor);
      throw listen_failure(endpoint, error);
    }
  }
  return all;
}

std::vector<BoundSocket> listen_together(std::vector<BoundSocket> all, std::size_t count) {
  std::vector<Descriptor> sockets;
  for (const BoundSocket& listening : all) sockets.emplace_back(listening.descriptor);
  const BoundSocket& first = all.front();
  if (sockets.size() < count) set_option(first.descriptor, SOL_SOCKET, SO_REUSEPORT);
  const BoundAddress bound{first.descriptor};
  while (sockets.size() < count) {
    Descriptor& socket = sockets.emplace_back(open_socket(bound.address.ss_family));
    if (socket.get() >= 0) set_option(socket.get(), SOL_SOCKET, SO_REUSEPORT);
    if (socket.get() < 0 || !binds(socket.get(), bound.generic(), bound.size))
      throw listen_failure(first.endpoint, errno);
  }
  all.reserve(sockets.size());
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const int descriptor = sockets[i].release();
    if (i >= all.size())
      all.push_back({.descriptor = descriptor, .endpoint = all.front().endpoint, .file = {}, .listens = false});
  }
  return all;
}

bool begin_to_listen(int descriptor) noexcept { return ::listen(descriptor, kBacklog) == 0; }

std::expected<int, int> connect_to_one_of(const addrinfo* addresses, std::chrono::steady_clock::time_point deadline) {
  int left = 0;
  for (const addrinfo* address = addresses; address != nullptr; address = address->ai_next) ++left;
  int error = 0;
  for (const addrinfo* address = addresses; address != nullptr; address = address->ai_next, --left) {
    Descriptor socket = open_socket(address->ai_family);
    if (socket.get() < 0) {
      error = errno;
      continue;
    }
    error = ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      const auto now = std::chrono::steady_clock::now();
      error = finish_connecting(socket.get(), now + (deadline - now) / left);
    }
    if (error == 0) return socket.release();
  }
  return std::unexpected{error};
}

int connect_to_tcp(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const Addresses addresses = resolve(endpoint, "cannot connect to");
  const std::expected<int, int> connected = connect_to_one_of(addresses.get(), deadline);
  if (!connected) throw connect_failure(endpoint, connected.error());
  return *connected;
}

bool is_address(const std::string& host) noexcept {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace wirecall::transport
