// See ip_address.hpp.
#include "base/ip_address.hpp"

#include <algorithm>
#include <charconv>

namespace wirecall {

constexpr std::size_t kIpv4Bytes = 4;
constexpr std::size_t kGroupBytes = 2;
constexpr std::size_t kGroupDigitsMax = 4;

bool read_ipv4(std::string_view text, std::uint8_t* bytes) noexcept {
  for (std::size_t i = 0; i != kIpv4Bytes; ++i) {
    const std::size_t end = i + 1 == kIpv4Bytes ? text.size() : text.find('.');
    if (end == std::string_view::npos) return false;
    const std::string_view number = text.substr(0, end);
    if (number.empty() || (number.size() > 1 && number.front() == '0')) return false;
    const auto [read_to, error] = std::from_chars(number.data(), number.data() + number.size(), bytes[i]);
    if (error != std::errc{} || read_to != number.data() + number.size()) return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

// Groups of up to four hexadecimal digits between colons, once perhaps two of these for as many zeros as there is room
// for, and perhaps an address of IPv4 for the last two groups.
bool read_ipv6(std::string_view text, std::array<std::uint8_t, 16>& bytes) noexcept {
  bytes = {};
  std::size_t size = 0;
  std::size_t gap = bytes.size() + 1;  // behind so many bytes; none
  if (text.starts_with("::")) {
    gap = 0;
    text.remove_prefix(2);
  } else if (text.empty() || text.front() == ':') {
    return false;
  }
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    const std::string_view group = text.substr(0, end);
    if (end == text.size() && group.find('.') != std::string_view::npos) {
      if (size + kIpv4Bytes > bytes.size() || !read_ipv4(group, bytes.data() + size)) return false;
      size += kIpv4Bytes;
      break;
    }
    if (group.empty() || group.size() > kGroupDigitsMax || size + kGroupBytes > bytes.size()) return false;
    std::uint16_t value = 0;
    const auto [read_to, error] = std::from_chars(group.data(), group.data() + group.size(), value, 16);
    if (error != std::errc{} || read_to != group.data() + group.size()) return false;
    bytes[size++] = static_cast<std::uint8_t>(value >> 8);
    bytes[size++] = static_cast<std::uint8_t>(value);
    text.remove_prefix(end);
    if (text.empty()) break;
    text.remove_prefix(1);
    if (text.empty()) return false;  // a colon that nothing follows
    if (text.front() != ':') continue;
    if (gap <= bytes.size()) return false;
    gap = size;
    text.remove_prefix(1);
  }
  if (gap > bytes.size()) return size == bytes.size();
  if (size == bytes.size()) return false;
  std::copy_backward(bytes.begin() + gap, bytes.begin() + size, bytes.end());
  std::fill(bytes.begin() + gap, bytes.end() - (size - gap), std::uint8_t{0});
  return true;
}

}  // namespace wirecall
