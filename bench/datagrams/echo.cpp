// The ceiling of a server by UDP: it sends back what has come, many datagrams by one system call, and with `joined`
// many of one source as one (UDP_GRO, UDP_SEGMENT). What a server spends beyond this is its own. One thread.
//
//   datagram_echo joined|apart
//
// Where it listens goes to stderr.
#include <arpa/inet.h>
#include <array>
#include <cstdio>
#include <cstring>
#include <linux/udp.h>
#include <memory>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>

namespace {

constexpr std::size_t kSlots = 16;
constexpr std::size_t kSlotBytes = 65'536 + 320;

struct alignas(cmsghdr) Control {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

// What the kernel has joined is sent as it was: then its sizes are right as well.
int segment_of(msghdr& header) {
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != IPPROTO_UDP || one->cmsg_type != UDP_GRO) continue;
    int segment = 0;
    std::memcpy(&segment, CMSG_DATA(one), sizeof segment);
    return segment;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const bool joined = count == 2 && std::string_view{words[1]} == "joined";
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || ::bind(fd, generic, size) != 0 || ::getsockname(fd, generic, &size) != 0) {
    std::perror("cannot listen");
    return 1;
  }
  const int on = 1;
  const int room = 4 * 1024 * 1024;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  if (joined) ::setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  std::fprintf(stderr, "udp://127.0.0.1:%d\n", ntohs(address.sin_port));

  const auto bytes = std::make_unique_for_overwrite<char[]>(kSlots * kSlotBytes);
  std::array<sockaddr_in, kSlots> sources{};
  std::array<iovec, kSlots> parts{};
  std::array<Control, kSlots> controls{};
  std::array<mmsghdr, kSlots> messages{};
  for (;;) {
    for (std::size_t i = 0; i < kSlots; ++i) {
      parts[i] = {.iov_base = bytes.get() + i * kSlotBytes, .iov_len = kSlotBytes};
      messages[i].msg_hdr = {.msg_name = &sources[i],
                             .msg_namelen = sizeof sources[i],
                             .msg_iov = &parts[i],
                             .msg_iovlen = 1,
                             .msg_control = joined ? &controls[i] : nullptr,
                             .msg_controllen = joined ? sizeof(Control) : 0,
                             .msg_flags = 0};
    }
    const int received = ::recvmmsg(fd, messages.data(), kSlots, MSG_WAITFORONE, nullptr);
    if (received < 0) return 1;
    for (int i = 0; i < received; ++i) {
      msghdr& header = messages[i].msg_hdr;
      parts[i].iov_len = messages[i].msg_len;
      const int segment = joined ? segment_of(header) : 0;
      header.msg_controllen = 0;
      if (segment == 0 || static_cast<unsigned>(segment) >= messages[i].msg_len) continue;
      auto* const control = reinterpret_cast<cmsghdr*>(&controls[i]);
      const auto bytes_each = static_cast<std::uint16_t>(segment);
      control->cmsg_level = IPPROTO_UDP;
      control->cmsg_type = UDP_SEGMENT;
      control->cmsg_len = CMSG_LEN(sizeof bytes_each);
      std::memcpy(CMSG_DATA(control), &bytes_each, sizeof bytes_each);
      header.msg_controllen = CMSG_SPACE(sizeof bytes_each);
    }
    for (int sent = 0; sent < received;) {
      const int more = ::sendmmsg(fd, messages.data() + sent, static_cast<unsigned>(received - sent), 0);
      sent += more > 0 ? more : 1;
    }
  }
}
