// See udp_stream.hpp.
#include "transport/udp_stream.hpp"

#include <algorithm>
#include <linux/udp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include "base/assert.hpp"
#include "transport/setup.hpp"
#include "transport/socket.hpp"
#include "transport/udp.hpp"

namespace wirecall::transport {

constexpr std::size_t kLengthBytes = 4;
// What the kernel is asked to keep for us until we receive it; it may grant less.
constexpr int kReceiveBytes = 1024 * 1024;

static std::size_t length_at(std::string_view bytes) noexcept {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

static void append_length(Buffer& out, std::size_t length) {
  for (std::size_t i = 0; i < kLengthBytes; ++i) out.push_back(static_cast<char>(length >> (24 - 8 * i)));
}

UdpStream::UdpStream(Loop& loop, runtime::Descriptor socket)
    : loop_(&loop),
      socket_(std::move(socket)),
      out_(socket_.get(), stats_),
      watch_(loop.watch(socket_.get(), Readiness::none, [this](Readiness, int) { receive(); })) {
  loop.admit(1);
}

UdpStream::~UdpStream() {
  loop_->forget(*this);
  loop_->release(1);
}

void UdpStream::start(StreamUser& user) {
  user_ = &user;
  resume();
}

// The user has ended each message that it sends.
void UdpStream::send(Buffer bytes, bool prompt) {
  WIRECALL_ASSERT(!sending_);
  std::string_view rest = bytes.view();
  while (!rest.empty()) {
    WIRECALL_ASSERT(rest.size() >= kLengthBytes);
    const std::size_t length = length_at(rest);
    rest.remove_prefix(kLengthBytes);
    WIRECALL_ASSERT(length <= rest.size());
    // Such a large one is none; who sends by datagrams is told how much one carries.
    if (length <= kUdpBytesMax) out_.add(rest.substr(0, length), {});
    rest.remove_prefix(length);
  }
  error_ = out_.flush();
  sent_ = std::move(bytes);
  sending_ = true;
  prompt || error_ != 0 ? loop_->at_next_turn(*this) : loop_->at_next_turn_end(*this);
}

void UdpStream::tell_sent() {
  if (error_ != 0) return user_->failed(std::exchange(error_, 0));
  if (std::exchange(sending_, false)) user_->sent(std::move(sent_));
}

// The rest is told in the next turn, after what has come of this.
void UdpStream::receive() {
  const int error = in_.receive(socket_.get(), stats_);
  if (error == EAGAIN || error == EINTR) return;
  if (error != 0) return user_->failed(error);
  run_.clear();
  for (UdpInput::Datagram one; in_.next(one);) {
    if (one.bytes.empty()) continue;
    append_length(run_, one.bytes.size());
    run_.append(one.bytes);
  }
  if (run_.empty()) return;
  static_cast<void>(run_.padded());
  user_->received({run_.data(), run_.size()});
}

std::size_t UdpStream::readable() const noexcept {
  int bytes = 0;
  return ::ioctl(socket_.get(), FIONREAD, &bytes) == 0 ? static_cast<std::size_t>(std::max(bytes, 0)) : 0;
}

std::string UdpStream::peer_source() const { return transport::peer_source(socket_.get()); }

namespace {

class UdpConnection final : public UnattachedStream {
 public:
  explicit UdpConnection(runtime::Descriptor socket) : socket_(std::move(socket)) {}

  [[nodiscard]] std::unique_ptr<ByteStream> attach(Loop& loop) override {
    return std::make_unique<UdpStream>(loop, std::move(socket_));
  }

 private:
  runtime::Descriptor socket_;
};

}  // namespace

// Nobody answers here, so the first address to which there is a way is taken.
PendingConnection connect_to_udp(const Endpoint& endpoint) {
  const Addresses addresses = resolve(endpoint, "cannot connect to", {.kind = SOCK_DGRAM});
  int error = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Descriptor socket{::socket(address->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (socket.get() >= 0 && ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0) {
      const int on = 1;
      ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBytes, sizeof kReceiveBytes);
      ::setsockopt(socket.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on);
      return PendingConnection{std::make_unique<UdpConnection>(std::move(socket))};
    }
    error = errno;
  }
  throw connect_failure(endpoint, error);
}

}  // namespace wirecall::transport
