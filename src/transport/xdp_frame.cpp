// See xdp_frame.hpp. RFC 791 has the head of IPv4, RFC 768 that of UDP, RFC 1071 the sum of both.
#include "transport/xdp_frame.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>

namespace wirecall::transport {
namespace {

constexpr std::uint8_t kUdp = 17;
constexpr std::uint8_t kHops = 64;

struct [[gnu::packed]] Head {
  std::array<std::uint8_t, 6> to_hardware;
  std::array<std::uint8_t, 6> from_hardware;
  std::uint16_t type;
  std::uint8_t version_and_words;
  std::uint8_t service;
  std::uint16_t ip_bytes;
  std::uint16_t identification;
  std::uint16_t fragment;
  std::uint8_t hops;
  std::uint8_t protocol;
  std::uint16_t ip_sum;
  std::array<std::uint8_t, 4> from;
  std::array<std::uint8_t, 4> to;
  std::uint16_t from_port;
  std::uint16_t to_port;
  std::uint16_t udp_bytes;
  std::uint16_t udp_sum;
};
static_assert(sizeof(Head) == kXdpHeadBytes);
constexpr std::size_t kEthernetBytes = offsetof(Head, version_and_words);
constexpr std::size_t kIpBytes = offsetof(Head, from_port) - kEthernetBytes;
constexpr std::size_t kUdpBytes = sizeof(Head) - kEthernetBytes - kIpBytes;

// The sum of 16-bit words, whose carries are added at its end; a last byte alone is followed by a zero. Sums of parts
// may be added, where all but the last have an even size.
std::uint64_t sum_of(const void* bytes, std::size_t size) noexcept {
  const char* p = static_cast<const char*>(bytes);
  std::uint64_t sum = 0;
  for (; size >= 4; size -= 4, p += 4) {
    std::uint32_t word;
    std::memcpy(&word, p, sizeof word);
    sum += word;
  }
  std::uint32_t rest = 0;
  std::memcpy(&rest, p, size);
  return sum + rest;
}
std::uint16_t folded(std::uint64_t sum) noexcept {
  sum = (sum & 0xFFFFFFFF) + (sum >> 32);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

std::uint64_t pseudo_sum(const Head& head) noexcept {
  return sum_of(&head.from, sizeof head.from) + sum_of(&head.to, sizeof head.to) +
         std::uint64_t{htons(std::uint16_t{kUdp})} + head.udp_bytes;
}

bool has_right_sum(const Head& head, const char* behind_ip, std::size_t bytes) noexcept {
  if (head.udp_sum == 0) return true;
  const std::uint64_t pseudo = pseudo_sum(head);
  return folded(pseudo + sum_of(behind_ip, bytes)) == 0xFFFF || head.udp_sum == folded(pseudo);
}

// One that a single other host may have.
bool is_of_one(const std::array<std::uint8_t, 4>& address) noexcept {
  return address[0] != 0 && address[0] != 127 && address[0] < 224;
}

}  // namespace

std::optional<XdpDatagram> read_xdp_frame(std::span<const char> frame) noexcept {
  Head head;
  if (frame.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, frame.data(), sizeof head);
  const std::size_t ip_bytes = ntohs(head.ip_bytes);
  const std::size_t udp_bytes = ntohs(head.udp_bytes);
  const bool is_udp = head.type == htons(0x0800) && head.version_and_words == 0x45 && head.protocol == kUdp;
  const bool is_whole = (head.fragment & htons(0x3FFF)) == 0;  // no more follow, and none were before
  if (!is_udp || !is_whole) return std::nullopt;
  // Behind it the frame may have been filled up.
  if (ip_bytes > frame.size() - kEthernetBytes || udp_bytes < kUdpBytes || kIpBytes + udp_bytes > ip_bytes)
    return std::nullopt;
  const bool can_be_answered = is_of_one(head.from) && head.from_port != 0 && (head.from_hardware[0] & 1) == 0;
  if (!can_be_answered || (head.to_hardware[0] & 1) != 0 || !is_of_one(head.to)) return std::nullopt;
  if (folded(sum_of(frame.data() + kEthernetBytes, kIpBytes)) != 0xFFFF) return std::nullopt;
  if (!has_right_sum(head, frame.data() + kEthernetBytes + kIpBytes, udp_bytes)) return std::nullopt;
  return XdpDatagram{.bytes = {frame.data() + sizeof head, udp_bytes - kUdpBytes},
                     .ends = {.peer_hardware = head.from_hardware,
                              .own_hardware = head.to_hardware,
                              .peer_address = head.from,
                              .own_address = head.to,
                              .peer_port = head.from_port,
                              .own_port = head.to_port}};
}

void write_xdp_head(char* frame, std::size_t bytes, const XdpEnds& ends) noexcept {
  Head head{.to_hardware = ends.peer_hardware,
            .from_hardware = ends.own_hardware,
            .type = htons(0x0800),
            .version_and_words = 0x45,
            .service = 0,
            .ip_bytes = htons(static_cast<std::uint16_t>(kIpBytes + kUdpBytes + bytes)),
            .identification = 0,
            .fragment = htons(0x4000),  // it is not to be cut: then its identification means nothing (RFC 6864)
            .hops = kHops,
            .protocol = kUdp,
            .ip_sum = 0,
            .from = ends.own_address,
            .to = ends.peer_address,
            .from_port = ends.own_port,
            .to_port = ends.peer_port,
            .udp_bytes = htons(static_cast<std::uint16_t>(kUdpBytes + bytes)),
            .udp_sum = 0};
  head.ip_sum = static_cast<std::uint16_t>(~folded(sum_of(&head.version_and_words, kIpBytes)));
  const std::uint64_t sum = pseudo_sum(head) + sum_of(&head.from_port, kUdpBytes) + sum_of(frame + sizeof head, bytes);
  head.udp_sum = static_cast<std::uint16_t>(~folded(sum));
  if (head.udp_sum == 0) head.udp_sum = 0xFFFF;  // 0 would say that there is none
  std::memcpy(frame, &head, sizeof head);
}

}  // namespace wirecall::transport
