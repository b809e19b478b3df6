// Networks: sets of addresses, each given as an address or as one and the bits that count, "10.0.0.0/8". A value.
// Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace wirecall::transport {

class Networks {
 public:
  /// None.
  Networks() = default;
  /// Throws std::invalid_argument for a text that is none; `option` is named in its text.
  Networks(const std::vector<std::string>& texts, std::string_view option);

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  /// Whether the address is within any of them. One of IPv4 is the same when it stands in one of IPv6.
  [[nodiscard]] bool contains(const sockaddr* address) const noexcept;

 private:
  // As of IPv6, in which those of IPv4 begin with 96 bits.
  using Bytes = std::array<std::uint8_t, 16>;
  struct Network {
    Bytes address{};
    unsigned bits = 0;
  };

  [[nodiscard]] static bool read(const std::string& text, Network& network);

  std::vector<Network> all_;
};

}  // namespace wirecall::transport
