// See socket.hpp.
#include "transport/socket.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <limits>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/assert.hpp"

namespace wirecall::transport {

using runtime::Completion;
using runtime::OperationKind;

// How long accepting waits when the process has no descriptors or the system no memory left.
constexpr std::chrono::milliseconds kAcceptPause{100};
// What the kernel takes.
constexpr std::int64_t kProbeSecondsMax = 32767;

void watch_peer(int descriptor, std::chrono::nanoseconds time) noexcept {
  // Half of the time it is silent, the other half it is asked; what is sent meanwhile is waited for as long.
  constexpr int kProbes = 4;
  const auto seconds = [&](int parts) {
    const auto part = std::chrono::ceil<std::chrono::seconds>(time / parts).count();
    return static_cast<int>(std::clamp<std::int64_t>(part, 1, kProbeSecondsMax));
  };
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  const auto set = [descriptor](int level, int option, int value) {
    ::setsockopt(descriptor, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, seconds(2));
  set(IPPROTO_TCP, TCP_KEEPINTVL, seconds(2 * kProbes));
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT,
      static_cast<int>(std::min<std::int64_t>(milliseconds, std::numeric_limits<int>::max())));
}

std::optional<PeerCredentials> peer_credentials(int descriptor) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool known = ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  // Families other than unix sockets answer with nobody.
  if (!known || peer.uid == static_cast<uid_t>(-1)) return std::nullopt;
  return PeerCredentials{.pid = peer.pid, .uid = peer.uid, .gid = peer.gid};
}

std::string source_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const auto* const as4 = reinterpret_cast<const sockaddr_in*>(address);
    return ::inet_ntop(AF_INET, &as4->sin_addr, text.data(), text.size());
  }
  if (address->sa_family != AF_INET6) return {};
  in6_addr prefix = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (!IN6_IS_ADDR_V4MAPPED(&prefix)) std::fill(prefix.s6_addr + 8, prefix.s6_addr + 16, std::uint8_t{0});
  return ::inet_ntop(AF_INET6, &prefix, text.data(), text.size());
}

std::string peer_source(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  if (std::string source = source_of(reinterpret_cast<const sockaddr*>(&address)); !source.empty()) return source;
  const std::optional<PeerCredentials> peer = peer_credentials(descriptor);
  return peer ? "user " + std::to_string(peer->uid) : std::string{};
}

bool is_local_peer(int descriptor) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (descriptor < 0) return true;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return errno == ENOTSOCK;
  constexpr std::uint8_t kLoopbackNet = 127;
  if (address.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == kLoopbackNet;
  if (address.ss_family != AF_INET6) return true;
  const in6_addr& as6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&as6) || (IN6_IS_ADDR_V4MAPPED(&as6) && as6.s6_addr[12] == kLoopbackNet);
}

// ---- SocketStream ----

SocketStream::SocketStream(Loop& loop, int descriptor)
    : loop_(&loop), descriptor_(descriptor), handle_(loop.attach(descriptor, *this)) {}

SocketStream::~SocketStream() { loop_->detach(handle_); }

void SocketStream::start(StreamUser& user) {
  user_ = &user;
  resume();
}

void SocketStream::send(Buffer bytes, bool prompt) {
  WIRECALL_ASSERT(user_ != nullptr);
  loop_->submit({.kind = OperationKind::send, .prompt = prompt, .handle = handle_, .buffer = std::move(bytes)});
}

void SocketStream::pause() {
  if (!std::exchange(wanted_, false) || !receiving_) return;
  loop_->submit({.kind = OperationKind::cancel, .handle = handle_, .buffer = {}});
}

void SocketStream::resume() {
  if (std::exchange(wanted_, true) || receiving_) return;
  receiving_ = true;
  loop_->submit({.kind = OperationKind::receive, .handle = handle_, .buffer = {}});
}

void SocketStream::shut_down() { loop_->submit({.kind = OperationKind::shut_down, .handle = handle_, .buffer = {}}); }

std::optional<PeerCredentials> SocketStream::peer_credentials() const {
  if (nobody_vouches_) return std::nullopt;
  const std::optional<PeerCredentials> peer = transport::peer_credentials(descriptor_);
  nobody_vouches_ = !peer;
  return peer;
}

void SocketStream::completed(Completion& completion) {
  WIRECALL_DEBUG_ASSERT(user_ != nullptr);
  if (completion.kind == OperationKind::send) {
    if (completion.error != 0) return user_->failed(completion.error);
    return user_->sent(std::move(completion.buffer));
  }
  if (!completion.last) [[likely]]
    return user_->received(completion.bytes);
  WIRECALL_DEBUG_ASSERT(receiving_ || completion.error != 0);
  receiving_ = false;
  if (completion.error == ECANCELED) {
    // Paused; and resumed, perhaps, before this came.
    if (std::exchange(wanted_, false)) resume();
    return;
  }
  if (completion.error != 0) return user_->failed(completion.error);
  wanted_ = false;
  user_->ended();
}

// ---- PendingConnection ----

std::unique_ptr<ByteStream> PendingConnection::attach(Loop& loop) {
  WIRECALL_ASSERT(*this);
  std::unique_ptr<ByteStream> stream;
  if (stream_ != nullptr) {
    stream = stream_->attach(loop);
    stream_.reset();
  } else {
    stream = std::make_unique<SocketStream>(loop, socket_.get());
    static_cast<void>(socket_.release());
  }
  return stream;
}

// ---- Listener ----

Listener::Listener(Loop& loop, int descriptor, Accepted accepted, Failed failed)
    : loop_(&loop),
      accepted_(std::move(accepted)),
      failed_(std::move(failed)),
      handle_(loop.attach(descriptor, *this)) {
  try {
    loop_->submit({.kind = OperationKind::accept, .handle = handle_, .buffer = {}});
  } catch (...) {
    loop_->detach(handle_);
    throw;
  }
}

Listener::~Listener() {
  loop_->stop(*this);
  loop_->detach(handle_);
}

void Listener::stop() {
  if (stopping_) return;
  if (!waiting_) loop_->submit({.kind = OperationKind::cancel, .handle = handle_, .buffer = {}});
  stopping_ = true;
  stopped_ = waiting_;
  loop_->stop(*this);
}

void Listener::completed(Completion& completion) {
  WIRECALL_ASSERT(completion.kind == OperationKind::accept);
  if (completion.descriptor >= 0) return accepted_(PendingConnection{std::exchange(completion.descriptor, -1)});
  if (stopping_) {
    stopped_ = true;
    return;
  }
  loop_->stop(*this);
  try {
    loop_->start(*this, kAcceptPause);
    waiting_ = true;
  } catch (const std::bad_alloc&) {
    // Without memory for a pause there is none; but who connects later must not find nobody.
    loop_->submit({.kind = OperationKind::accept, .handle = handle_, .buffer = {}});
  }
  if (!std::exchange(failing_, true)) failed_(completion.error);
}

// Accepts again after a pause. It is over when as long a time has passed without a failure: one connection accepted
// says little, since the next may find no descriptor.
void Listener::expired() {
  if (!std::exchange(waiting_, false)) {
    failing_ = false;
    return failed_(0);
  }
  loop_->submit({.kind = OperationKind::accept, .handle = handle_, .buffer = {}});
  loop_->start(*this, kAcceptPause);
}

}  // namespace wirecall::transport
