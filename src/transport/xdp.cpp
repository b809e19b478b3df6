// See xdp.hpp.
#include "transport/xdp.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <system_error>
#include <thread>

#include "base/assert.hpp"
#include "transport/datagram_receiver.hpp"
#include "transport/setup.hpp"
#include "transport/socket.hpp"
#include "transport/xdp_filter.hpp"
#include "transport/xdp_frame.hpp"
#include "transport/xdp_rings.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/context.hpp"

namespace wirecall::transport {
namespace {

using IPv4 = std::array<std::uint8_t, 4>;

// What the interface had no room for is sent after such a pause.
constexpr std::chrono::milliseconds kFullPause{1};
// The kernel leaves some bytes in front of a frame (XDP_PACKET_HEADROOM), and what reads a datagram wants some behind
// it.
constexpr std::size_t kFrameBytesMax = XdpRings::kFrameBytes - 256 - kPaddingBytes;

static_assert(sizeof(XdpEnds) == 24 && sizeof(XdpEnds) <= sizeof(DatagramAddress::bytes));

struct Interface {
  unsigned index = 0;
  std::array<std::uint8_t, 6> hardware{};
  IPv4 address{};
  IPv4 broadcast{};
  std::size_t bytes_max = 0;  // of a datagram
};

IPv4 address_in(const sockaddr* address) {
  IPv4 bytes{};
  if (address != nullptr && address->sa_family == AF_INET)
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, sizeof bytes);
  return bytes;
}

struct FreeList {
  void operator()(ifaddrs* list) const noexcept { ::freeifaddrs(list); }
};

std::runtime_error refused(const Endpoint& endpoint, std::string_view cause, std::string_view cure) {
  return failure("cannot listen on", endpoint, cause, cure);
}

Interface find_interface(const Endpoint& endpoint) {
  const std::string& name = endpoint.host();
  Interface found{.index = ::if_nametoindex(name.c_str())};
  if (found.index == 0) throw refused(endpoint, "there is no such interface", "`ip link` lists those there are");
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw listen_failure(endpoint, errno);
  const std::unique_ptr<ifaddrs, FreeList> all{list};
  const ifaddrs* one = list;
  while (one != nullptr && (name != one->ifa_name || address_in(one->ifa_addr) == IPv4{})) one = one->ifa_next;
  if (one == nullptr) throw refused(endpoint, "the interface has no address of IPv4", "`ip addr add` gives it one");
  found.address = address_in(one->ifa_addr);
  if ((one->ifa_flags & IFF_BROADCAST) != 0) found.broadcast = address_in(one->ifa_broadaddr);

  const Descriptor socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  if (::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) throw listen_failure(endpoint, errno);
  const auto packet = std::min(static_cast<std::size_t>(request.ifr_mtu), kFrameBytesMax - 14);
  found.bytes_max = packet + 14 - kXdpHeadBytes;
  if (::ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0) throw listen_failure(endpoint, errno);
  std::memcpy(found.hardware.data(), request.ifr_hwaddr.sa_data, sizeof found.hardware);
  return found;
}

std::string_view cure_of(int error) noexcept {
  switch (error) {
    case EPERM:
    case EACCES: return "run as root, or with CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF";
    case EBUSY:
    case EEXIST: return "another program has the interface's first queue: stop it, or listen on udp://";
    case EAFNOSUPPORT:
    case EOPNOTSUPP: return "the kernel or this interface has no AF_XDP: listen on udp://";
    case ENOBUFS: return "raise the limit of locked memory (ulimit -l)";
    default: return "listen on udp://";
  }
}

}  // namespace

Endpoint udp_endpoint_of(const Endpoint& xdp) {
  const IPv4 address = find_interface(xdp).address;
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, address.data(), text.data(), text.size());
  return Endpoint{std::string{"udp://"} + text.data()}.with_port(xdp.port());
}

// ---- XdpSocket ----

namespace {

class XdpSocket final : public DatagramSocket {
 public:
  XdpSocket(Loop& loop, const Interface& interface, std::uint16_t port, Stats& stats)
      : state_(std::make_shared<State>(loop, interface, port, stats)) {
    watch_ =
        loop.watch(state_->descriptor(), Readiness::none, [state = state_.get()](Readiness, int) { state->receive(); });
  }
  XdpSocket(XdpSocket&&) = delete;
  ~XdpSocket() override { state_->close(); }

  void start(DatagramUser& user) override {
    state_->open(user);
    watch_.want(Readiness::readable);
  }
  void send(std::string_view datagram, const DatagramAddress& to) noexcept override {
    WIRECALL_ASSERT(datagram.size() <= bytes_max());
    state_->send(datagram, to);
  }
  [[nodiscard]] std::size_t bytes_max() const noexcept override { return state_->bytes_max(); }
  [[nodiscard]] std::string peer_source(const DatagramAddress& source) const override {
    XdpEnds ends;
    std::memcpy(&ends, source.bytes.data(), sizeof ends);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    std::memcpy(&address.sin_addr, ends.peer_address.data(), sizeof ends.peer_address);
    return source_of(reinterpret_cast<const sockaddr*>(&address));
  }

 private:
  class State final : public DatagramReceiver, private Timer {
   public:
    State(Loop& loop, const Interface& interface, std::uint16_t port, Stats& stats)
        : DatagramReceiver(loop),
          stats_(&stats),
          interface_(interface),
          rings_(interface.index),
          filter_(rings_.descriptor(), {.interface = interface.index,
                                        .hardware = interface.hardware,
                                        .address = interface.address,
                                        .port = port}) {}

    [[nodiscard]] int descriptor() const noexcept { return rings_.descriptor(); }
    [[nodiscard]] std::size_t bytes_max() const noexcept { return interface_.bytes_max; }
    void close() noexcept {
      static_cast<void>(rings_.flush());
      end();
      if (std::exchange(waits_, false)) loop().stop(*this);
    }
    void receive();
    void send(std::string_view datagram, const DatagramAddress& to) noexcept;

   private:
    [[nodiscard]] bool may_be_answered(const XdpEnds& ends) const noexcept {
      return ends.peer_address != interface_.address && ends.peer_address != interface_.broadcast;
    }
    void turn_ended() override {
      unmark();
      if (rings_.flush() == 0 || waits_) return;
      try {
        loop().start(*this, kFullPause);
        waits_ = true;
      } catch (const std::bad_alloc&) {
        // It is sent with what is sent next.
      }
    }
    void next_turn() override {}
    void expired() override {
      waits_ = false;
      turn_ended();
    }

    Stats* stats_;
    Interface interface_;
    XdpRings rings_;
    XdpFilter filter_;
    bool waits_ = false;  // the timer runs
  };

  std::shared_ptr<State> state_;
  Watch watch_;
};

// Where others have gone on, they have left the frame at hand to this thread.
void XdpSocket::State::receive() {
  const Part part{*this};
  for (std::size_t i = 0; i < kDatagramsInTurn; ++i) {
    const std::span<char> frame = rings_.receive();
    if (frame.empty()) return;
    const std::optional<XdpDatagram> datagram = read_xdp_frame(frame);
    bool goes_on = true;
    if (datagram && frame.size() <= kFrameBytesMax && may_be_answered(datagram->ends)) {
      DatagramAddress source{.size = sizeof(XdpEnds)};
      frame.data()[kXdpHeadBytes + datagram->bytes.size()] = '\0';
      std::memcpy(source.bytes.data(), &datagram->ends, sizeof datagram->ends);
      goes_on = part.tell(datagram->bytes, source);
    } else {
      ++stats_->datagrams_dropped;
    }
    rings_.give_back(frame);
    if (!goes_on) return;
  }
}

void XdpSocket::State::send(std::string_view datagram, const DatagramAddress& to) noexcept {
  char* const frame = rings_.take();
  if (frame == nullptr) {
    ++stats_->datagrams_dropped;
    return;
  }
  XdpEnds ends;
  std::memcpy(&ends, to.bytes.data(), sizeof ends);
  if (!datagram.empty()) std::memcpy(frame + kXdpHeadBytes, datagram.data(), datagram.size());
  write_xdp_head(frame, datagram.size(), ends);
  rings_.send(frame, kXdpHeadBytes + datagram.size());
  ++stats_->datagrams_out;
  stats_->bytes_out += datagram.size();
  mark();
}

}  // namespace

std::unique_ptr<DatagramSocket> open_xdp(Loop& loop, const Endpoint& xdp, Stats& stats) {
  const Interface interface = find_interface(xdp);
  for (int tries = 1;; ++tries) {
    try {
      return std::make_unique<XdpSocket>(loop, interface, xdp.port(), stats);
    } catch (const std::system_error& error) {
      // The kernel gives the queue back a moment after the socket before has gone.
      if (error.code().value() != EBUSY || tries == kInUseTries)
        throw refused(xdp, error.what(), cure_of(error.code().value()));
    }
    std::this_thread::sleep_for(kInUsePause);
  }
}

}  // namespace wirecall::transport
