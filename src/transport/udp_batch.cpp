// See udp_batch.hpp.
#include "transport/udp_batch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/udp.h>
#include <netinet/in.h>
#include <optional>

namespace wirecall::transport {
namespace {

// Which of our addresses a datagram has come to, as it stands behind its source in a DatagramAddress.
struct OwnAddress {
  std::uint32_t interface = 0;        // where the address alone does not say which
  std::array<std::byte, 16> bytes{};  // of IPv4 the first 4
};
constexpr std::size_t kSourceBytes = sizeof(sockaddr_in6);
static_assert(kSourceBytes + sizeof(OwnAddress) == sizeof(DatagramAddress::bytes));

// Room for control messages: the address in both forms, as a socket of IPv6 tells it of IPv4, and two numbers.
constexpr std::size_t kControlBytes =
    CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo)) + 2 * CMSG_SPACE(sizeof(int));
struct alignas(cmsghdr) Control {
  std::array<char, kControlBytes> bytes;
};

sa_family_t family_of(const DatagramAddress& address) noexcept {
  sockaddr generic{};
  std::memcpy(&generic, address.bytes.data(), sizeof generic);
  return generic.sa_family;
}

// 0 for that of the socket's peer.
socklen_t address_bytes(const DatagramAddress& address) noexcept {
  if (address.size == 0) return 0;
  return family_of(address) == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

// Port 0 is where nobody is: who sends from it wants no reply (RFC 768).
bool can_be_answered(const DatagramAddress& source) noexcept {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  sockaddr_in address{};
  std::memcpy(&address, source.bytes.data(), sizeof address);
  return address.sin_port != 0;
}

template <class T>
T read_as(const cmsghdr& header) noexcept {
  T value;
  std::memcpy(&value, CMSG_DATA(&header), sizeof value);
  return value;
}

void set_own(DatagramAddress& address, const OwnAddress& own) noexcept {
  std::memcpy(address.bytes.data() + kSourceBytes, &own, sizeof own);
  address.size = sizeof address.bytes;
}

// One control message more in `header`, whose room is large enough.
template <class T>
void append_control(msghdr& header, int level, int type, const T& value) noexcept {
  auto* const control = reinterpret_cast<cmsghdr*>(static_cast<char*>(header.msg_control) + header.msg_controllen);
  control->cmsg_level = level;
  control->cmsg_type = type;
  control->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(control), &value, sizeof value);
  header.msg_controllen += CMSG_SPACE(sizeof value);
}

// Has what is sent leave from the address that it is an answer of.
void append_own(msghdr& header, const DatagramAddress& to) noexcept {
  if (to.size <= kSourceBytes) return;
  OwnAddress own;
  std::memcpy(&own, to.bytes.data() + kSourceBytes, sizeof own);
  if (family_of(to) == AF_INET) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, own.bytes.data(), sizeof info.ipi_spec_dst);
    return append_control(header, IPPROTO_IP, IP_PKTINFO, info);
  }
  in6_pktinfo info{};
  info.ipi6_ifindex = own.interface;
  std::memcpy(&info.ipi6_addr, own.bytes.data(), sizeof info.ipi6_addr);
  append_control(header, IPPROTO_IPV6, IPV6_PKTINFO, info);
}

}  // namespace

// ---- UdpInput ----

bool UdpInput::next(Datagram& datagram) noexcept {
  if (behind_ != nullptr) *std::exchange(behind_, nullptr) = covered_;
  if (at_ == count_) return false;
  const Slot& slot = slots_[at_];
  const std::size_t size = std::min(slot.segment, slot.bytes - offset_);
  const std::shared_ptr<char[]>& room = rooms_[slot.room];
  datagram = {.bytes = {room.get() + offset_, size}, .source = &slot.source, .room = &room};
  behind_ = room.get() + offset_ + size;
  covered_ = std::exchange(*behind_, '\0');
  offset_ += size;
  if (offset_ == slot.bytes) {
    ++at_;
    offset_ = 0;
  }
  return true;
}

int UdpInput::receive(int descriptor, Stats& stats) {
  at_ = count_ = offset_ = 0;
  behind_ = nullptr;
  for (auto& room : rooms_) {
    if (room == nullptr || room.use_count() > 1) [[unlikely]]
      room = std::make_shared_for_overwrite<char[]>(kRoomBytes);
  }
  std::array<mmsghdr, kSlots> messages{};
  std::array<iovec, kSlots> parts;
  std::array<Control, kSlots> controls;
  for (std::size_t i = 0; i < kSlots; ++i) {
    slots_[i].source = {};
    parts[i] = {.iov_base = rooms_[i].get(), .iov_len = kSlotBytes};
    messages[i].msg_hdr = {.msg_name = slots_[i].source.bytes.data(),
                           .msg_namelen = kSourceBytes,
                           .msg_iov = &parts[i],
                           .msg_iovlen = 1,
                           .msg_control = &controls[i],
                           .msg_controllen = sizeof(Control),
                           .msg_flags = 0};
  }
  const int received = ::recvmmsg(descriptor, messages.data(), kSlots, MSG_DONTWAIT, nullptr);
  if (received <= 0) return received == 0 ? EAGAIN : errno;
  for (int i = 0; i < received; ++i) {
    Slot slot{.source = slots_[i].source, .room = static_cast<std::size_t>(i), .bytes = messages[i].msg_len};
    slot.source.size = kSourceBytes;
    const bool came_to_us_alone = read_control(messages[i].msg_hdr, slot, stats);
    if (slot.segment == 0) slot.segment = slot.bytes;
    if (came_to_us_alone && can_be_answered(slot.source)) {
      slots_[count_++] = slot;
    } else {
      stats.datagrams_dropped += slot.bytes == 0 ? 1 : (slot.bytes + slot.segment - 1) / slot.segment;
    }
  }
  return 0;
}

// False for what has come to many at once, by broadcast or multicast: it would be answered by many, and to whom is said
// by one.
bool UdpInput::read_control(msghdr& header, Slot& slot, Stats& stats) noexcept {
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    const int type = control->cmsg_type;
    if (control->cmsg_level == IPPROTO_UDP && type == UDP_GRO) {
      slot.segment = static_cast<std::size_t>(read_as<int>(*control));
    } else if (control->cmsg_level == SOL_SOCKET && type == SO_RXQ_OVFL) {
      const auto dropped = read_as<std::uint32_t>(*control);
      stats.datagrams_dropped += dropped - std::exchange(dropped_, dropped);  // it may have begun anew
    } else if (control->cmsg_level == IPPROTO_IP && type == IP_PKTINFO) {
      const auto info = read_as<in_pktinfo>(*control);
      if (info.ipi_addr.s_addr != info.ipi_spec_dst.s_addr) return false;
      OwnAddress own;
      std::memcpy(own.bytes.data(), &info.ipi_spec_dst, sizeof info.ipi_spec_dst);
      if (family_of(slot.source) == AF_INET) set_own(slot.source, own);
    } else if (control->cmsg_level == IPPROTO_IPV6 && type == IPV6_PKTINFO) {
      const auto info = read_as<in6_pktinfo>(*control);
      if (IN6_IS_ADDR_MULTICAST(&info.ipi6_addr)) return false;
      OwnAddress own;
      if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) own.interface = info.ipi6_ifindex;
      std::memcpy(own.bytes.data(), &info.ipi6_addr, sizeof info.ipi6_addr);
      set_own(slot.source, own);
    }
  }
  return true;
}

// ---- UdpOutput ----

inline bool UdpOutput::joins(const Message& last, std::string_view datagram, const DatagramAddress& to) const noexcept {
  return !datagram.empty() && datagram.size() <= last.segment && last.segment <= segment_max_ &&
         last.bytes == last.segment * last.count && last.bytes + datagram.size() <= kJoinedBytesMax && last.to == to;
}

// A message that takes no more goes at once: its source can go on while others are served.
void UdpOutput::add(std::string_view datagram, const DatagramAddress& to) noexcept try {
  if (!messages_.empty() && joins(messages_.back(), datagram, to)) [[likely]] {
    bytes_.append(datagram);
    Message& last = messages_.back();
    last.bytes += datagram.size();
    if (++last.count >= segments_max_) [[unlikely]]
      flush_early();
    return;
  }
  if (messages_.size() == kMessagesMax || bytes_.size() > kBytesMax) flush_early();
  messages_.reserve(kMessagesMax);
  const std::size_t at = bytes_.size();
  bytes_.append(datagram);
  messages_.push_back({.to = to, .at = at, .bytes = datagram.size(), .segment = datagram.size(), .count = 1});
} catch (const std::bad_alloc&) {
  ++stats_->datagrams_dropped;
}

void UdpOutput::flush_early() noexcept {
  const int refused = flush();
  if (refused != 0) refused_ = refused;
}

int UdpOutput::flush() noexcept {
  if (!messages_.empty()) {
    send_all();
    messages_.clear();
    bytes_.clear();
    if (join_less_for_ != 0 && --join_less_for_ == 0) [[unlikely]] {
      segments_max_ = kSegmentsMax;
      segment_max_ = kJoinedBytesMax;
    }
  }
  return std::exchange(refused_, 0);
}

void UdpOutput::lost(std::size_t datagrams, int error) noexcept {
  stats_->datagrams_dropped += datagrams;
  if (error != EAGAIN && error != ENOBUFS) refused_ = error;
}

void UdpOutput::sent(const Message& message) noexcept {
  stats_->datagrams_out += message.count;
  stats_->bytes_out += message.bytes;
}

void UdpOutput::send_all() noexcept {
  std::array<mmsghdr, kMessagesMax> headers{};
  std::array<iovec, kMessagesMax> parts;
  std::array<Control, kMessagesMax> controls{};
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    Message& message = messages_[i];
    msghdr& header = headers[i].msg_hdr;
    parts[i] = {.iov_base = bytes_.data() + message.at, .iov_len = message.bytes};
    header = {.msg_name = message.to.bytes.data(),
              .msg_namelen = address_bytes(message.to),
              .msg_iov = &parts[i],
              .msg_iovlen = 1,
              .msg_control = &controls[i],
              .msg_controllen = 0,
              .msg_flags = 0};
    append_own(header, message.to);
    if (message.count > 1)
      append_control(header, IPPROTO_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(message.segment));
    if (header.msg_controllen == 0) header.msg_control = nullptr;
  }
  for (std::size_t at = 0; at < messages_.size();) {
    const int taken = ::sendmmsg(descriptor_, headers.data() + at, static_cast<unsigned>(messages_.size() - at),
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken > 0) {
      for (int i = 0; i < taken; ++i) sent(messages_[at++]);
      continue;
    }
    if (errno == EINTR) continue;
    const int error = errno;
    const Message& refused = messages_[at++];
    // What the path does not take in one piece, or a device that does not join, is sent each for itself. Where that is
    // refused as well, it is the address that is at fault, and others are sent what is theirs as before.
    if (refused.count > 1 && error != EAGAIN && error != ENOBUFS && error != ECONNREFUSED) {
      if (send_apart(refused)) join_less(refused, error);
    } else {
      lost(refused.count, error);
    }
  }
}

// Other paths may take more, and this one later: so it is tried again after some time.
void UdpOutput::join_less(const Message& refused, int error) noexcept {
  if (error == EINVAL && refused.count > kSegmentsOfOldKernels) {
    segments_max_ = kSegmentsOfOldKernels;
  } else {
    segment_max_ = std::min(segment_max_, error == EINVAL ? refused.segment - 1 : 0);
  }
  join_less_for_ = kJoinLessFlushes;
}

// Returns whether any has been sent. After one that is refused the others would be as well: they are lost with it.
bool UdpOutput::send_apart(const Message& message) noexcept {
  Control control{};
  for (std::size_t at = 0; at < message.bytes; at += message.segment) {
    Message one{.to = message.to,
                .at = 0,
                .bytes = std::min(message.segment, message.bytes - at),
                .segment = message.segment,
                .count = 1};
    iovec part{.iov_base = bytes_.data() + message.at + at, .iov_len = one.bytes};
    msghdr header{.msg_name = one.to.bytes.data(),
                  .msg_namelen = address_bytes(one.to),
                  .msg_iov = &part,
                  .msg_iovlen = 1,
                  .msg_control = &control,
                  .msg_controllen = 0,
                  .msg_flags = 0};
    append_own(header, one.to);
    if (header.msg_controllen == 0) header.msg_control = nullptr;
    if (::sendmsg(descriptor_, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      lost(message.count - at / message.segment, errno);
      return at != 0;
    }
    sent(one);
  }
  return true;
}

}  // namespace wirecall::transport
