// Endpoint: an address to listen on or connect to, as a URI names it. A value; resolves nothing and opens nothing.
// Understood are tcp://host:port, tcp://host (port 8545), tcp://[::1]:port, host:port for the same, unix:///path of a
// socket file, stdio: for the standard input and output of this process, inproc://name within it, shm://name for shared
// memory between two processes of one user, udp://host:port for datagrams; for clients alone http://host:port/path and
// ws://host:port/path, and encrypted tls://host:port, https:// and wss:// (docs/wire.md "Connections"); and for servers
// alone xdp://interface:port (docs/xdp.md).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace wirecall {

inline constexpr std::uint16_t kDefaultPort = 8545;
/// The port of an http or ws URI that names none.
inline constexpr std::uint16_t kDefaultHttpPort = 80;
/// The port of an https or wss URI that names none.
inline constexpr std::uint16_t kDefaultHttpsPort = 443;
/// The path of an http or https URI that names none.
inline constexpr std::string_view kDefaultHttpPath = "/rpc";
/// The path of a ws or wss URI that names none.
inline constexpr std::string_view kDefaultWebSocketPath = "/";
/// The most bytes of the path of a socket file: the system's address structure has room for no more.
inline constexpr std::size_t kSocketPathBytesMax = 107;

/// The transport of an endpoint.
enum class EndpointKind : std::uint8_t { tcp, unix_socket, stdio, inproc, http, ws, udp, xdp, shm, tls, https, wss };

class Endpoint {
 public:
  /// Throws std::invalid_argument, whose text has the cause and a fix.
  explicit Endpoint(std::string_view uri);
  /// The same without exceptions; the error is the text for the user.
  [[nodiscard]] static std::expected<Endpoint, std::string> parse(std::string_view uri);

  [[nodiscard]] EndpointKind kind() const noexcept { return kind_; }
  /// One HTTP request a message: http and https.
  [[nodiscard]] bool by_http() const noexcept { return kind_ == EndpointKind::http || kind_ == EndpointKind::https; }
  /// ws and wss.
  [[nodiscard]] bool by_websocket() const noexcept { return kind_ == EndpointKind::ws || kind_ == EndpointKind::wss; }
  /// By TLS: tls, https and wss.
  [[nodiscard]] bool encrypted() const noexcept { return kind_ >= EndpointKind::tls; }
  /// Of a kind of the network: a name or an address, IPv6 without its brackets. xdp: the
  /// interface. Empty for unix_socket, stdio, inproc, shm.
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  /// Of a kind of the network. 0 lets the system choose, for listeners.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// unix_socket: the path, from the root. inproc, shm: the name. http, https, ws, wss: path and query, as a request
  /// has them. Empty for the other kinds.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string uri() const;
  /// Of a kind of the network: host and port as the Host field of a request has them; http and ws without port 80,
  /// https and wss without port 443.
  [[nodiscard]] std::string authority() const;
  /// The same endpoint with another port.
  [[nodiscard]] Endpoint with_port(std::uint16_t port) const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;

 private:
  Endpoint() = default;
  std::string_view parse_rest(std::string_view rest);
  std::string_view parse_tcp(std::string_view rest);
  std::string_view parse_http(std::string_view rest);
  [[nodiscard]] bool has_http_path() const noexcept { return by_http() || by_websocket(); }
  [[nodiscard]] std::uint16_t http_port() const noexcept { return encrypted() ? kDefaultHttpsPort : kDefaultHttpPort; }

  EndpointKind kind_ = EndpointKind::tcp;
  std::string host_;
  std::string path_;
  std::uint16_t port_ = kDefaultPort;
};

}  // namespace wirecall
