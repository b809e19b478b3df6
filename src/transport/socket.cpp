// See socket.hpp.
#include "transport/socket.hpp"

#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <sys/socket.h>
#include <utility>

namespace wirecall::transport {
namespace {

using runtime::Completion;
using runtime::OperationKind;

// How long accepting waits when the process has no descriptors or the system no memory left.
constexpr std::chrono::milliseconds kAcceptPause{100};

}  // namespace

// ---- SocketStream ----

SocketStream::SocketStream(Loop& loop, int descriptor)
    : loop_(&loop), descriptor_(descriptor), handle_(loop.attach(descriptor, *this)) {}

SocketStream::~SocketStream() { loop_->detach(handle_); }

void SocketStream::start(StreamUser& user) {
  user_ = &user;
  resume();
}

void SocketStream::send(Buffer bytes, bool prompt) {
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
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(descriptor_, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  // Other families answer with nobody.
  if (peer.pid == 0) return std::nullopt;
  return PeerCredentials{.process = peer.pid, .user = peer.uid, .group = peer.gid};
}

void SocketStream::probe_peer(std::chrono::milliseconds silence_max) {
  // The first question after half the time and two more before it is over. The system's own count of questions is
  // beside the point: what is unanswered for silence_max is lost, and so is what was sent and not acknowledged.
  const bool on = silence_max > std::chrono::milliseconds{0};
  const auto part = [&](int divisor) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(silence_max / divisor).count();
    return static_cast<int>(std::clamp<std::int64_t>(seconds, 1, 32'767));
  };
  const auto set = [this](int level, int option, int value) {
    ::setsockopt(descriptor_, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::clamp<std::int64_t>(silence_max.count(), 0, INT32_MAX)));
  if (on) {
    set(IPPROTO_TCP, TCP_KEEPIDLE, part(2));
    set(IPPROTO_TCP, TCP_KEEPINTVL, part(4));
  }
  set(SOL_SOCKET, SO_KEEPALIVE, on ? 1 : 0);
}

void SocketStream::completed(Completion& completion) {
  if (completion.kind == OperationKind::send) {
    if (completion.error != 0) return user_->failed(completion.error);
    return user_->sent(std::move(completion.buffer));
  }
  if (!completion.last) [[likely]]
    return user_->received(completion.bytes);
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

void Listener::completed(Completion& completion) {
  if (completion.descriptor >= 0) return accepted_(std::exchange(completion.descriptor, -1));
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
