// Addresses of the internet as text: what inet_pton(3) reads, for layers that know no sockets. Strict: four decimal
// numbers without zeros in front, or RFC 4291, section 2.2. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wirecall {

/// False for a text that is no address; the bytes are undefined then.
[[nodiscard]] bool read_ipv4(std::string_view text, std::uint8_t* bytes) noexcept;
[[nodiscard]] bool read_ipv6(std::string_view text, std::array<std::uint8_t, 16>& bytes) noexcept;

}  // namespace wirecall
