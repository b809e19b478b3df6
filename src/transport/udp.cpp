// See udp.hpp.
#include "transport/udp.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <linux/udp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

#include "base/assert.hpp"
#include "transport/datagram_receiver.hpp"
#include "transport/setup.hpp"
#include "transport/udp_batch.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::transport {

// Of one turn: then others have theirs.
constexpr std::size_t kBytesInTurn = 256 * 1024;
// What the kernel is asked to keep for us until we receive it; it may grant less.
constexpr int kReceiveBytes = 4 * 1024 * 1024;

// ---- opening ----

static bool set_option(int fd, int level, int option, int value) noexcept {
  return ::setsockopt(fd, level, option, &value, sizeof value) == 0;
}

static Descriptor bind_udp(const sockaddr* address, socklen_t size, bool together) {
  Descriptor socket{::socket(address->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (socket.get() < 0) return socket;
  if (together && !set_option(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1)) return Descriptor{};
  if (::bind(socket.get(), address, size) != 0) return Descriptor{};
  return socket;
}

// As for TCP: the first binds without saying SO_REUSEPORT, which fails unless nobody else is there.
std::vector<BoundUdpSocket> listen_on_udp(const Endpoint& endpoint, std::size_t count) {
  const Addresses addresses = resolve(endpoint, "cannot listen on", {.kind = SOCK_DGRAM, .flags = AI_PASSIVE});
  Descriptor first;
  int error = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr && first.get() < 0; address = address->ai_next) {
    first = bind_udp(address->ai_addr, address->ai_addrlen, false);
    error = errno;
  }
  if (first.get() < 0) throw listen_failure(endpoint, error);
  const BoundAddress bound{first.get()};
  const Endpoint at = endpoint.with_port(bound.port());
  std::vector<BoundUdpSocket> all;
  all.push_back({std::move(first), at});
  if (count > 1) set_option(all.front().descriptor.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  while (all.size() < count) {
    Descriptor socket = bind_udp(bound.generic(), bound.size, true);
    if (socket.get() < 0) throw listen_failure(at, errno);
    all.push_back({std::move(socket), at});
  }
  return all;
}

// Whether what is sent there may have come to any of several addresses.
static bool is_bound_everywhere(int fd) noexcept {
  const BoundAddress bound{fd};
  if (bound.address.ss_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(&bound.address)->sin_addr.s_addr == htonl(INADDR_ANY);
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(&bound.address)->sin6_addr);
}

// ---- UdpSocket ----

class UdpSocket::State final : public DatagramReceiver {
 public:
  State(Loop& loop, Descriptor bound, Stats& stats)
      : DatagramReceiver(loop), stats_(&stats), descriptor_(std::move(bound)), out_(descriptor_.get(), stats) {}

  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  void close() noexcept {
    static_cast<void>(out_.flush());
    end();
  }
  void receive();
  void send(std::string_view datagram, const DatagramAddress& to) {
    out_.add(datagram, to);
    mark();
  }

 private:
  void turn_ended() override {
    unmark();
    static_cast<void>(out_.flush());  // who cannot be answered has asked in vain
    // Left by a handler that has lost the loop: nothing else need come that would tell us.
    if (in_.has_more()) loop().at_next_turn(*this);
  }
  void next_turn() override { receive(); }

  Stats* stats_;
  Descriptor descriptor_;
  UdpInput in_;
  UdpOutput out_;
};

void UdpSocket::State::receive() {
  const Part part{*this};
  std::size_t datagrams = 0;
  std::size_t bytes = 0;
  mark();
  do {
    std::shared_ptr<char[]> lent;  // a handler that has lost the loop still reads it
    for (UdpInput::Datagram one; in_.next(one);) {
      if (lent != *one.room) lent = *one.room;
      ++datagrams;
      bytes += one.bytes.size();
      if (!part.tell(one.bytes, *one.source)) return;
    }
    if (datagrams >= kDatagramsInTurn || bytes >= kBytesInTurn) return;
  } while (in_.receive(descriptor_.get(), *stats_) == 0);  // an error is of something that was sent
}

UdpSocket::UdpSocket(Loop& loop, Descriptor bound, Stats& stats)
    : state_(std::make_shared<State>(loop, std::move(bound), stats)) {
  const int fd = state_->descriptor();
  if (is_bound_everywhere(fd)) {
    set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
    set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
  }
  set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  set_option(fd, SOL_SOCKET, SO_RCVBUF, kReceiveBytes);
  set_option(fd, IPPROTO_UDP, UDP_GRO, 1);  // an older kernel has each for itself
  watch_ = loop.watch(fd, Readiness::none, [state = state_.get()](Readiness, int) { state->receive(); });
}

UdpSocket::~UdpSocket() { state_->close(); }

void UdpSocket::start(DatagramUser& user) {
  state_->open(user);
  watch_.want(Readiness::readable);
}

void UdpSocket::send(std::string_view datagram, const DatagramAddress& to) noexcept {
  WIRECALL_ASSERT(datagram.size() <= kUdpBytesMax);
  state_->send(datagram, to);
}

std::string UdpSocket::peer_source(const DatagramAddress& source) const {
  sockaddr_in6 address{};
  std::memcpy(&address, source.bytes.data(), sizeof address);
  return source_of(reinterpret_cast<const sockaddr*>(&address));
}

}  // namespace wirecall::transport
