// Endpoint: an address to listen on or connect to, as a URI names it. A value; resolves nothing and opens nothing.
// Understood are tcp://host:port, tcp://host (port 8545), tcp://[::1]:port, host:port for the same, unix:///path of a
// socket file, stdio: for the standard input and output of this process, inproc://name within it, udp://host:port for
// datagrams, for clients alone http://host:port/path and ws://host:port/path (docs/wire.md "Connections"), and for
// servers alone xdp://interface:port (docs/xdp.md).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace wirecall {

inline constexpr std::uint16_t kDefaultPort = 8545;
/// The port of an http or ws URI that names none.
inline constexpr std::uint16_t kDefaultHttpPort = 80;
/// The path of an http URI that names none.
inline constexpr std::string_view kDefaultHttpPath = "/rpc";
/// The path of a ws URI that names none.
inline constexpr std::string_view kDefaultWebSocketPath = "/";
/// The most bytes of the path of a socket file: the system's address structure has room for no more.
inline constexpr std::size_t kSocketPathBytesMax = 107;

/// The transport of an endpoint.
enum class EndpointKind : std::uint8_t { tcp, unix_socket, stdio, inproc, http, ws, udp, xdp };

class Endpoint {
 public:
  /// Throws std::invalid_argument, whose text has the cause and a fix.
  explicit Endpoint(std::string_view uri);
  /// The same without exceptions; the error is the text for the user.
  [[nodiscard]] static std::expected<Endpoint, std::string> parse(std::string_view uri);

  [[nodiscard]] EndpointKind kind() const noexcept { return kind_; }
  /// tcp, http, ws, udp: a name or an address, IPv6 without its brackets. xdp: the interface. Empty for the other
  /// kinds.
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  /// tcp, http, ws, udp, xdp. 0 lets the system choose, for listeners.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// unix_socket: the path, from the root. inproc: the name. http, ws: path and query, as a request has them. Empty for
  /// the other kinds.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string uri() const;
  /// tcp, http, ws, udp: host and port as the Host field of a request has them; http and ws without port 80.
  [[nodiscard]] std::string authority() const;
  /// The same endpoint with another port.
  [[nodiscard]] Endpoint with_port(std::uint16_t port) const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;

 private:
  Endpoint() = default;
  std::string_view parse_rest(std::string_view rest);
  std::string_view parse_tcp(std::string_view rest);
  std::string_view parse_http(std::string_view rest);

  EndpointKind kind_ = EndpointKind::tcp;
  std::string host_;
  std::string path_;
  std::uint16_t port_ = kDefaultPort;
};

}  // namespace wirecall
