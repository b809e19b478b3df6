// Endpoint: a place to listen on or connect to, as a URI names it. A value; resolves nothing and opens nothing.
// Understood are tcp://host:port, tcp://host (port 8545) and tcp://[::1]:port (docs/wire.md "Connections").
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace wirecall {

inline constexpr std::uint16_t kDefaultPort = 8545;

class Endpoint {
 public:
  /// Throws std::invalid_argument with the cause and the cure.
  explicit Endpoint(std::string_view uri);
  /// The same without exceptions; the error is the text for the user.
  [[nodiscard]] static std::expected<Endpoint, std::string> parse(std::string_view uri);

  /// A name or an address, IPv6 without its brackets.
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  /// 0 lets the system choose, for listeners.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string uri() const;
  /// The same place with another port.
  [[nodiscard]] Endpoint with_port(std::uint16_t port) const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;

 private:
  Endpoint() = default;

  std::string host_;
  std::uint16_t port_ = kDefaultPort;
};

}  // namespace wirecall
