// ProxyHeader: reads the header with which a proxy begins a connection to say who is behind it: version 1, a line of
// text, or version 2, in binary (haproxy's doc/proxy-protocol.txt, sections 2.1 and 2.2). It is strict: whoever may
// send one is a program that writes it as it stands there, and what is read otherwise by the next hop would name
// somebody else. What follows the addresses in version 2 is skipped. One connection each, on its thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wirecall::framing {

/// The client behind a proxy.
struct ProxiedClient {
  enum class Family : std::uint8_t {
    none,  ///< it is not named: a check by the proxy itself, or a client of another kind
    ipv4,  ///< the first 4 bytes of `address`
    ipv6,
  };

  Family family = Family::none;
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;

  friend bool operator==(const ProxiedClient&, const ProxiedClient&) = default;
};

class ProxyHeader {
 public:
  enum class State : std::uint8_t { incomplete, complete, malformed };

  /// The next bytes of the connection, while it is incomplete. `taken` becomes how many of them belong to the header:
  /// all, unless it is complete.
  State feed(std::string_view bytes, std::size_t& taken);

  /// Once it is complete.
  [[nodiscard]] const ProxiedClient& client() const noexcept { return client_; }
  /// Once it is malformed, why, in a few words.
  [[nodiscard]] std::string_view cause() const noexcept { return cause_; }

 private:
  // Version 1 has at most 107 bytes, of version 2 what is looked at has 52.
  static constexpr std::size_t kKeptBytesMax = 107;

  [[nodiscard]] std::string_view kept() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] State malformed(std::string_view cause) noexcept;
  [[nodiscard]] State next(char byte);
  [[nodiscard]] State next_of_text();
  [[nodiscard]] State next_of_binary();
  [[nodiscard]] State read_line(std::string_view line);

  std::array<char, kKeptBytesMax> bytes_;  // of the header, from its begin on
  std::size_t size_ = 0;
  std::size_t skip_ = 0;  // bytes of the header that nobody looks at, once the others have come
  ProxiedClient client_;
  std::string_view cause_;
};

}  // namespace wirecall::framing
