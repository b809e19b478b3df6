// A load by UDP for whatever answers a datagram with one: SOCKETS sockets, each with CALLS in flight, for so long. What
// is not answered for 200 ms is lost, counted, and made good. Prints one line of JSON. One thread.
//
//   datagram_load [ADDRESS:]PORT REQUEST SOCKETS CALLS SECONDS joined|apart
//
// REQUEST has %d where the number of the call goes, which always has 6 digits. With `joined` it sends and receives
// several datagrams as one where the kernel does that.
#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <linux/udp.h>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSlots = 16;
constexpr std::size_t kSlotBytes = 65'536 + 320;
constexpr std::size_t kSegmentsMax = 64;
constexpr std::chrono::milliseconds kPatience{200};

struct alignas(cmsghdr) Control {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

class Peer {
 public:
  Peer(const sockaddr_in& to, bool joined) : joined_(joined), fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    const int on = 1;
    const int room = 4 * 1024 * 1024;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (joined) ::setsockopt(fd_, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    if (fd_ < 0 || ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) std::exit(1);
  }
  [[nodiscard]] int descriptor() const { return fd_; }

  // So many requests, of one size, that stand behind each other.
  void send(const std::string& requests, std::size_t count) {
    const std::size_t size = requests.size() / count;
    const std::size_t each = joined_ ? kSegmentsMax : 1;
    std::vector<mmsghdr> messages;
    std::vector<iovec> parts((count + each - 1) / each);
    Control control{};
    auto* const header = reinterpret_cast<cmsghdr*>(&control);
    const auto segment = static_cast<std::uint16_t>(size);
    header->cmsg_level = IPPROTO_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof segment);
    std::memcpy(CMSG_DATA(header), &segment, sizeof segment);
    for (std::size_t at = 0; at < count; at += each) {
      const std::size_t some = std::min(each, count - at);
      iovec& part = parts[messages.size()];
      part = {.iov_base = const_cast<char*>(requests.data()) + at * size, .iov_len = some * size};
      mmsghdr& message = messages.emplace_back();
      message.msg_hdr.msg_iov = &part;
      message.msg_hdr.msg_iovlen = 1;
      if (some == 1) continue;
      message.msg_hdr.msg_control = &control;
      message.msg_hdr.msg_controllen = CMSG_SPACE(sizeof segment);
    }
    for (std::size_t sent = 0; sent < messages.size();) {
      const int more = ::sendmmsg(fd_, messages.data() + sent, static_cast<unsigned>(messages.size() - sent), 0);
      sent += more > 0 ? static_cast<std::size_t>(more) : 1;
    }
  }

  // How many answers have come.
  std::size_t receive(char* room) const {
    std::array<mmsghdr, kSlots> messages{};
    std::array<iovec, kSlots> parts;
    std::array<Control, kSlots> controls;
    for (std::size_t i = 0; i < kSlots; ++i) {
      parts[i] = {.iov_base = room + i * kSlotBytes, .iov_len = kSlotBytes};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      messages[i].msg_hdr.msg_control = &controls[i];
      messages[i].msg_hdr.msg_controllen = sizeof(Control);
    }
    const int received = ::recvmmsg(fd_, messages.data(), kSlots, MSG_DONTWAIT, nullptr);
    std::size_t answers = 0;
    for (int i = 0; i < received; ++i) {
      int segment = 0;
      msghdr& header = messages[i].msg_hdr;
      for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
        if (one->cmsg_type == UDP_GRO) std::memcpy(&segment, CMSG_DATA(one), sizeof segment);
      }
      const std::size_t size = segment != 0 ? static_cast<std::size_t>(segment) : messages[i].msg_len;
      answers += (messages[i].msg_len + size - 1) / std::max<std::size_t>(size, 1);
    }
    return answers;
  }

  std::size_t in_flight = 0;
  Clock::time_point heard{};

 private:
  bool joined_;
  int fd_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 7) return 2;
  const std::string at_port = words[1];
  const std::size_t colon = at_port.find(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (colon != std::string::npos && ::inet_pton(AF_INET, at_port.substr(0, colon).c_str(), &to.sin_addr) != 1) return 2;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::atoi(at_port.c_str() + (colon == std::string::npos ? 0 : colon + 1))));
  const std::string text = words[2];
  const auto sockets = static_cast<std::size_t>(std::atoi(words[3]));
  const auto calls = static_cast<std::size_t>(std::atoi(words[4]));
  const std::chrono::duration<double> time{std::atof(words[5])};
  const bool joined = std::string_view{words[6]} == "joined";
  const std::size_t at = text.find("%d");
  std::uint32_t number = 100'000;
  const auto requests = [&](std::size_t some) {
    std::string all;
    for (; some != 0; --some) {
      all.append(text, 0, at).append(std::to_string(number)).append(text, at + 2);
      if (++number == 1'000'000) number = 100'000;
    }
    return all;
  };
  std::vector<Peer> peers;
  const int poll = ::epoll_create1(0);
  for (std::size_t i = 0; i < sockets; ++i) {
    peers.emplace_back(to, joined);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    ::epoll_ctl(poll, EPOLL_CTL_ADD, peers.back().descriptor(), &event);
  }
  const auto room = std::make_unique_for_overwrite<char[]>(kSlots * kSlotBytes);
  std::uint64_t answered = 0;
  std::uint64_t lost = 0;
  const Clock::time_point begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(time);
  Clock::time_point looked = begin;
  const auto refill = [&](Peer& peer) {
    const std::size_t more = calls - peer.in_flight;
    if (more == 0) return;
    peer.send(requests(more), more);
    peer.in_flight = calls;
  };
  for (Peer& peer : peers) {
    peer.heard = begin;
    refill(peer);
  }
  std::array<epoll_event, 64> events;
  for (Clock::time_point now = begin; now < end; now = Clock::now()) {
    const int ready = ::epoll_wait(poll, events.data(), events.size(), 20);
    for (int i = 0; i < ready; ++i) {
      Peer& peer = peers[events[static_cast<std::size_t>(i)].data.u64];
      const std::size_t answers = std::min(peer.receive(room.get()), peer.in_flight);
      answered += answers;
      peer.in_flight -= answers;
      peer.heard = now;
      refill(peer);
    }
    if (now - looked < kPatience / 4) continue;
    looked = now;
    for (Peer& peer : peers) {
      if (now - peer.heard < kPatience) continue;
      lost += std::exchange(peer.in_flight, 0);
      peer.heard = now;
      refill(peer);
    }
  }
  std::printf("{\"calls\":%llu,\"lost\":%llu}\n", static_cast<unsigned long long>(answered),
              static_cast<unsigned long long>(lost));
}
