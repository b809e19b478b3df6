// What the kinds of endpoints have in common when something is set up: errors with a cause and a cure, and the
// functions that open each kind. For the sources of this layer alone.
#pragma once

#include <expected>
#include <netdb.h>
#include <stdexcept>
#include <sys/socket.h>

#include "runtime/descriptor.hpp"
#include "transport/acceptor.hpp"
#include "transport/endpoint_socket.hpp"

namespace wirecall::transport {

using runtime::Descriptor;

/// Connections that the kernel keeps for us until they are accepted.
inline constexpr int kBacklog = 4096;
/// A program that was killed gives its addresses back a moment after it has gone, where io_uring waited for them: so
/// often one that is in use is tried again, and so long after.
inline constexpr int kInUseTries = 20;
inline constexpr std::chrono::milliseconds kInUsePause{10};

/// "<what> <endpoint>: <cause>; <cure>".
[[nodiscard]] std::runtime_error failure(std::string_view what, const Endpoint& endpoint, std::string_view cause,
                                         std::string_view cure);
/// The same for an errno, with the cure that is known for it.
[[nodiscard]] std::runtime_error listen_failure(const Endpoint& endpoint, int error);
[[nodiscard]] std::runtime_error connect_failure(const Endpoint& endpoint, int error);

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;
struct Wanted {
  int kind = SOCK_STREAM;
  int flags = 0;  ///< of getaddrinfo
};
/// The addresses of the endpoint's host, at least one. `what` is being done, for the error.
[[nodiscard]] Addresses resolve(const Endpoint& endpoint, std::string_view what, const Wanted& wanted = {});

/// That of a socket of the internet.
struct BoundAddress {
  explicit BoundAddress(int fd) noexcept;
  [[nodiscard]] const sockaddr* generic() const noexcept { return reinterpret_cast<const sockaddr*>(&address); }
  [[nodiscard]] std::uint16_t port() const noexcept;

  sockaddr_storage address{};
  socklen_t size = sizeof address;
};

[[nodiscard]] BoundSocket listen_on_tcp(const Endpoint& endpoint);
[[nodiscard]] int connect_to_tcp(const Endpoint& endpoint, std::chrono::milliseconds timeout);
/// A socket connected to the first of the addresses that answers, or the last one's errno. What time there is when one
/// is tried is shared with those behind it, so that one which does not answer leaves them theirs.
[[nodiscard]] std::expected<int, int> connect_to_one_of(const addrinfo* addresses,
                                                        std::chrono::steady_clock::time_point deadline);
[[nodiscard]] bool is_address(const std::string& host) noexcept;
[[nodiscard]] BoundSocket listen_on_unix(const Endpoint& endpoint);
[[nodiscard]] int connect_to_unix(const Endpoint& endpoint, std::chrono::milliseconds timeout);
/// The same by the file at `path`, which is what the endpoint is known by to the system; `endpoint` is what errors
/// name. The path has at most kSocketPathBytesMax bytes. The socket that connects blocks.
[[nodiscard]] BoundSocket listen_on_path(const Endpoint& endpoint, const std::string& path);
[[nodiscard]] int connect_to_path(const Endpoint& endpoint, const std::string& path, std::chrono::milliseconds timeout);
/// How long a socket that blocks waits for what is sent to it; at least a moment.
void set_receive_timeout(int socket, std::chrono::nanoseconds time) noexcept;
void set_non_blocking(int socket) noexcept;
/// What is sent there leaves as datagrams (transport/udp_stream.hpp).
[[nodiscard]] PendingConnection connect_to_udp(const Endpoint& endpoint);
/// As open_acceptor.
[[nodiscard]] std::unique_ptr<Acceptor> listen_on_stdio(Loop& loop, const Endpoint& endpoint,
                                                        Listener::Accepted accepted);
[[nodiscard]] std::unique_ptr<Acceptor> listen_on_inproc(Loop& loop, const Endpoint& endpoint,
                                                         Listener::Accepted accepted);
/// The other end of a connection that the listener of that name is about to accept.
[[nodiscard]] PendingConnection connect_to_inproc(const Endpoint& endpoint);

/// As open_acceptor; throws as well where the user's folder for it is not his alone.
[[nodiscard]] std::unique_ptr<Acceptor> listen_on_shm(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted,
                                                      Listener::Failed failed);
[[nodiscard]] PendingConnection connect_to_shm(const Endpoint& endpoint, std::chrono::milliseconds timeout);
/// The same of a socket that listens already, whose endpoint is one of shm.
[[nodiscard]] std::unique_ptr<Acceptor> listen_on_shm(Loop& loop, BoundSocket bound, Listener::Accepted accepted,
                                                      Listener::Failed failed);
/// The file by which the two processes meet. Throws std::runtime_error for a path that is too long.
[[nodiscard]] std::string shm_socket_path(const Endpoint& endpoint);

}  // namespace wirecall::transport
