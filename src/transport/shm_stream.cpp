// See shm_stream.hpp. The user is called in `look` alone, once in each call of it and last: so it may destroy the
// stream there, or have its loop taken over meanwhile.
#include "transport/shm_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "base/assert.hpp"
#include "transport/socket.hpp"

namespace wirecall::transport {

using runtime::Completion;
using runtime::OperationKind;

std::unique_ptr<ByteStream> ShmConnection::attach(Loop& loop) { return std::make_unique<ShmStream>(loop, link_); }

// ---- the descriptors ----

void ShmStream::Signal::begin() {
  loop_->submit({.kind = kind_, .wanted = Readiness::readable, .handle = handle_, .buffer = {}});
}

void ShmStream::Signal::completed(Completion& completion) {
  if (kind_ == OperationKind::poll && completion.error == 0) return stream_->rung();
  // Nothing is ever sent on the socket: what comes there is no peer of ours.
  stream_->peer_gone(completion.error == 0 && !completion.last ? EPROTO : completion.error);
}

void ShmStream::rung() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(own_bell_, &count, sizeof count);
  wake_up();
  look_later();
}

// What it has written before is still delivered, unless that is not to be trusted.
void ShmStream::peer_gone(int error) {
  gone_ = true;
  if (error_ == 0) error_ = error;
  look_later();
}

void ShmStream::ring_peer() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(peer_bell_.get(), &one, sizeof one);
}

// ---- the stream ----

// Whatever can fail comes before the link is changed: a socket that is the loop's already is closed where it fails.
static int duplicate(int descriptor) {
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) throw std::bad_alloc{};
  return copy;
}

ShmStream::ShmStream(Loop& loop, ShmLink& link)
    : loop_(&loop),
      socket_(duplicate(link.socket.get())),
      own_bell_(link.own_bell.get()),
      peer_(*this, loop, socket_, OperationKind::receive),
      bell_(*this, loop, own_bell_, OperationKind::poll),
      segment_(std::move(link.segment)),
      writer_(segment_.writer(link.role)),
      reader_(segment_.reader(link.role)),
      peer_bell_(std::move(link.peer_bell)) {
  static_cast<void>(link.own_bell.release());
  link.socket = runtime::Descriptor{};  // the duplicate is the only one from now on
}

// A peer that finds no end in the ring takes the connection for lost, as it does where this process is killed.
ShmStream::~ShmStream() {
  loop_->forget(*this);
  if (error_ == 0 && !sending()) writer_.end();
}

void ShmStream::start(StreamUser& user) {
  if (user_ == nullptr) {
    peer_.begin();
    bell_.begin();
  }
  user_ = &user;
  resume();
}

void ShmStream::resume() {
  wanted_ = true;
  wake_up();
  look_later();
}

void ShmStream::send(Buffer bytes, bool) {
  WIRECALL_ASSERT(user_ != nullptr && !sending() && !sent_);
  sends_ = std::move(bytes);
  written_ = 0;
  write_some();
  wake_up();
  look_later();
}

void ShmStream::shut_down() {
  shuts_down_ = true;
  write_some();
}

std::optional<PeerCredentials> ShmStream::peer_credentials() const { return transport::peer_credentials(socket_); }
std::string ShmStream::peer_source() const { return transport::peer_source(socket_); }

void ShmStream::look_later() {
  if (!std::exchange(polled_, true)) loop_->poll(*this);
}

// As much as there is room for; and the end, once all is written.
void ShmStream::write_some() {
  if (sending() && !gone_) {
    const std::optional<std::size_t> taken = writer_.write(sends_.view().substr(written_));
    if (!taken) return peer_gone(EPROTO);
    written_ += *taken;
    sent_ = !sending();
    if (*taken != 0 && writer_.wakes_reader()) ring_peer();
  }
  if (!shuts_down_ || shut_down_ || sending()) return;
  shut_down_ = true;
  writer_.end();
  if (writer_.wakes_reader()) ring_peer();
}

bool ShmStream::ready() const noexcept {
  if (over_) return false;
  if (sent_ || error_ != 0) return true;
  if (sending() && (gone_ || writer_.room() != 0)) return true;
  if (!wanted_ || ended_) return false;
  reader_.prefetch();
  return gone_ || reader_.available() != 0 || reader_.ended();
}

bool ShmStream::fall_asleep() noexcept {
  if (asleep_) return !ready();
  if (sending()) writer_.wait();
  if (wanted_ && !ended_) reader_.wait();
  asleep_ = !ready();
  if (!asleep_) wake_up();
  return asleep_;
}

void ShmStream::wake_up() noexcept {
  asleep_ = false;
  writer_.wait_no_more();
  reader_.wait_no_more();
}

void ShmStream::look() {
  polled_ = false;
  if (over_ || (asleep_ && !ready())) return;
  wake_up();
  if (sending()) write_some();
  if (std::exchange(sent_, false)) {
    look_later();
    written_ = 0;
    return user_->sent(std::exchange(sends_, {}));
  }
  if (error_ == 0 && wanted_ && !ended_) {
    // In this order: what the peer has written is there once it says that this was all.
    const bool last = reader_.ended();
    const std::optional<std::size_t> count = reader_.available();
    if (!count) {
      error_ = EPROTO;
    } else if (*count != 0) {
      return receive(*count);
    } else if (last) {
      ended_ = true;
      look_later();
      return user_->ended();
    } else if (gone_) {
      error_ = ECONNRESET;
    }
  }
  if (error_ == 0 && gone_ && sending()) error_ = EPIPE;
  if (error_ != 0) {
    over_ = true;
    return user_->failed(error_);
  }
  if (sending() || (wanted_ && !ended_)) look_later();
}

// Without memory for the copy the turn ends early, and the next one looks again.
void ShmStream::receive(std::size_t count) {
  look_later();
  Loop& loop = *loop_;
  Buffer bytes = loop.take_buffer();
  static_cast<void>(bytes.reserve(count));
  reader_.read(bytes.data(), count);
  bytes.grow(count);
  if (reader_.wakes_writer()) ring_peer();
  static_cast<void>(bytes.padded());
  user_->received({bytes.data(), bytes.size()});
  loop.give_buffer(std::move(bytes));
}

}  // namespace wirecall::transport
