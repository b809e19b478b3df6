// See proxy_protocol.hpp.
#include "framing/proxy_protocol.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/ip_address.hpp"

namespace wirecall::framing {
namespace {

using State = ProxyHeader::State;

constexpr std::string_view kTextBegins = "PROXY ";
constexpr std::string_view kUnknown = "UNKNOWN";
constexpr std::string_view kSignature{"\r\n\r\n\0\r\nQUIT\n", 12};
// Of version 2: the signature, the version and the command, the family and the protocol, and the length of what
// follows.
constexpr std::size_t kHeadBytes = 16;
constexpr std::size_t kCommandAt = 12;
constexpr std::size_t kFamilyAt = 13;
constexpr std::size_t kLengthAt = 14;
constexpr std::size_t kBytesOfIpv4 = 12;
constexpr std::size_t kBytesOfIpv6 = 36;
constexpr std::size_t kBytesOfUnix = 216;

std::size_t number_at(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])) << 8 |
         static_cast<unsigned char>(bytes[at + 1]);
}

// The next of the fields between single spaces, of which none is empty.
std::string_view take_field(std::string_view& rest) noexcept {
  const std::size_t space = std::min(rest.find(' '), rest.size());
  const std::string_view field = rest.substr(0, space);
  rest.remove_prefix(std::min(space + 1, rest.size()));
  return field;
}

bool read_address(std::string_view field, ProxiedClient& client) noexcept {
  return client.family == ProxiedClient::Family::ipv4 ? read_ipv4(field, client.address.data())
                                                      : read_ipv6(field, client.address);
}

// Decimal, without zeros in front, which some would take for octal.
bool read_port(std::string_view field, std::uint16_t& port) noexcept {
  if (field.empty() || (field.size() > 1 && field.front() == '0')) return false;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), port);
  return error == std::errc{} && end == field.data() + field.size();
}

}  // namespace

State ProxyHeader::malformed(std::string_view cause) noexcept {
  cause_ = cause;
  return State::malformed;
}

State ProxyHeader::feed(std::string_view bytes, std::size_t& taken) {
  taken = 0;
  while (taken != bytes.size()) {
    if (skip_ != 0) {
      const std::size_t skipped = std::min(skip_, bytes.size() - taken);
      taken += skipped;
      skip_ -= skipped;
      if (skip_ == 0) return State::complete;
      continue;
    }
    const State state = next(bytes[taken++]);
    if (state != State::incomplete) return state;
  }
  return State::incomplete;
}

State ProxyHeader::next(char byte) {
  bytes_[size_++] = byte;
  if (bytes_[0] == kTextBegins[0]) return next_of_text();
  if (bytes_[0] == kSignature[0]) return next_of_binary();
  return malformed("it begins with neither PROXY nor the signature of version 2");
}

State ProxyHeader::next_of_text() {
  const std::string_view line = kept();
  if (size_ <= kTextBegins.size())
    return kTextBegins.starts_with(line) ? State::incomplete : malformed("it does not begin with PROXY and a space");
  if (line.ends_with("\r\n")) return read_line(line.substr(kTextBegins.size(), size_ - kTextBegins.size() - 2));
  if (size_ == kKeptBytesMax) return malformed("its line has more than 107 bytes");
  return State::incomplete;
}

State ProxyHeader::read_line(std::string_view line) {
  const std::string_view family = take_field(line);
  if (family == kUnknown) return State::complete;
  if (family == "TCP4") {
    client_.family = ProxiedClient::Family::ipv4;
  } else if (family == "TCP6") {
    client_.family = ProxiedClient::Family::ipv6;
  } else {
    return malformed("it names neither TCP4, TCP6 nor UNKNOWN");
  }
  ProxiedClient proxy{.family = client_.family};
  if (!read_address(take_field(line), client_) || !read_address(take_field(line), proxy))
    return malformed("an address is none of its family");
  if (!read_port(take_field(line), client_.port) || line.ends_with(' ') || !read_port(take_field(line), proxy.port))
    return malformed("a port is no number from 0 to 65535");
  if (!line.empty()) return malformed("its line has more than two addresses and two ports");
  return State::complete;
}

State ProxyHeader::next_of_binary() {
  const std::string_view head = kept();
  if (size_ <= kSignature.size() && !kSignature.starts_with(head))
    return malformed("its signature is not that of version 2");
  if (size_ == kCommandAt + 1) {
    const int version = static_cast<unsigned char>(head[kCommandAt]) >> 4;
    if (version != 2) return malformed("its version is not 2");
    if ((head[kCommandAt] & 0xF) > 1) return malformed("its command is neither LOCAL nor PROXY");
  }
  if (size_ < kHeadBytes) return State::incomplete;
  const std::size_t length = number_at(head, kLengthAt);
  const bool local = (head[kCommandAt] & 0xF) == 0;
  const int family = static_cast<unsigned char>(head[kFamilyAt]) >> 4;
  const int protocol = head[kFamilyAt] & 0xF;
  std::size_t address_bytes = 0;
  if (!local) {  // of a check by the proxy itself, nothing else means anything
    if (family > 3 || protocol > 2) return malformed("its family or protocol is none that is known");
    if (family == 1) address_bytes = kBytesOfIpv4;
    if (family == 2) address_bytes = kBytesOfIpv6;
    if (length < (family == 3 ? kBytesOfUnix : address_bytes)) return malformed("it is too short for its addresses");
    if (protocol == 0) address_bytes = 0;
  }
  if (size_ < kHeadBytes + address_bytes) return State::incomplete;
  if (address_bytes != 0) {
    client_.family = family == 1 ? ProxiedClient::Family::ipv4 : ProxiedClient::Family::ipv6;
    const std::size_t bytes = family == 1 ? 4 : 16;
    std::memcpy(client_.address.data(), head.data() + kHeadBytes, bytes);
    client_.port = static_cast<std::uint16_t>(number_at(head, kHeadBytes + 2 * bytes));
  }
  skip_ = length - address_bytes;
  return skip_ == 0 ? State::complete : State::incomplete;
}

}  // namespace wirecall::framing
