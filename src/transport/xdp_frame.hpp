// Ethernet frames with UDP over IPv4, as AF_XDP hands them over and takes them. Pure: it knows no descriptor. Whatever
// is not such a frame, whole and with the right checksums, or what nobody may be answered for, is none of ours: IPv4
// options, fragments, addresses that mean many.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace wirecall::transport {

/// What stands in front of a datagram in its frame.
inline constexpr std::size_t kXdpHeadBytes = 14 + 20 + 8;

/// Both ends of a datagram, as they stand in its frame: ports and addresses in the order of the network.
struct XdpEnds {
  std::array<std::uint8_t, 6> peer_hardware{};
  std::array<std::uint8_t, 6> own_hardware{};
  std::array<std::uint8_t, 4> peer_address{};
  std::array<std::uint8_t, 4> own_address{};
  std::uint16_t peer_port = 0;
  std::uint16_t own_port = 0;
};

struct XdpDatagram {
  std::string_view bytes;  ///< within the frame
  XdpEnds ends;
};

/// The datagram in a received frame; nothing for a frame that has none for us (see above). A checksum of UDP may be
/// missing (0), as IPv4 allows, or be the sum of the pseudo-header alone, as a sender on the same machine leaves it.
[[nodiscard]] std::optional<XdpDatagram> read_xdp_frame(std::span<const char> frame) noexcept;

/// Writes kXdpHeadBytes to `frame`, behind which the datagram stands already: `bytes` of it, at most 65,507. It goes
/// from the own end to the peer's.
void write_xdp_head(char* frame, std::size_t bytes, const XdpEnds& ends) noexcept;

}  // namespace wirecall::transport
