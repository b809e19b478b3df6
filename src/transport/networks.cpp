// See networks.hpp.
#include "transport/networks.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstring>
#include <netinet/in.h>
#include <stdexcept>

namespace wirecall::transport {

constexpr unsigned kBitsBeforeIpv4 = 96;

Networks::Networks(const std::vector<std::string>& texts, std::string_view option) {
  for (const std::string& text : texts) {
    if (read(text, all_.emplace_back())) continue;
    throw std::invalid_argument{std::string{option} + " has \"" + text +
                                "\": give an address or a network, as 10.0.0.7, 10.0.0.0/8 or fd00::/8, of which no "
                                "bit is set behind those that count"};
  }
}

bool Networks::read(const std::string& text, Network& network) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string address = text.substr(0, slash);
  if (text.find('\0') != std::string::npos) return false;
  unsigned before = kBitsBeforeIpv4;
  if (::inet_pton(AF_INET, address.c_str(), network.address.data() + 12) == 1) {
    network.address[10] = network.address[11] = 0xFF;
  } else if (::inet_pton(AF_INET6, address.c_str(), network.address.data()) == 1) {
    before = 0;
  } else {
    return false;
  }
  unsigned bits = 128 - before;
  if (slash != text.size()) {
    const char* const end = text.data() + text.size();
    const auto [read_to, error] = std::from_chars(text.data() + slash + 1, end, bits);
    if (error != std::errc{} || read_to != end || bits > 128 - before) return false;
  }
  network.bits = before + bits;
  for (unsigned bit = network.bits; bit != 128; ++bit) {
    if ((network.address[bit / 8] >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

bool Networks::contains(const sockaddr* address) const noexcept {
  Bytes bytes{};
  if (address->sa_family == AF_INET) {
    bytes[10] = bytes[11] = 0xFF;
    std::memcpy(bytes.data() + 12, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  } else if (address->sa_family == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  } else {
    return false;
  }
  return std::ranges::any_of(all_, [&](const Network& network) {
    const unsigned whole = network.bits / 8;
    if (!std::equal(bytes.begin(), bytes.begin() + whole, network.address.begin())) return false;
    const unsigned rest = network.bits % 8;
    return rest == 0 || (bytes[whole] ^ network.address[whole]) >> (8 - rest) == 0;
  });
}

}  // namespace wirecall::transport
