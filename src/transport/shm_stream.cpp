// See shm_stream.hpp. The user is called in `polled` alone, once in each call of it and last: so it may destroy the
// stream there, or have its loop taken over meanwhile.
#include "transport/shm_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>

#include "base/assert.hpp"
#include "transport/socket.hpp"

namespace wirecall::transport {

using runtime::Completion;

std::unique_ptr<ByteStream> ShmConnection::attach(Loop& loop) { return std::make_unique<ShmStream>(loop, link_); }

// ---- the socket ----

// A byte on it is a wake-up, whatever it says. A peer that has left wake-ups unread resets the socket as it goes.
void ShmStream::completed(Completion& completion) {
  if (completion.error == 0 && !completion.last) {
    wake_up();
    return poll_later();
  }
  peer_gone(completion.error == ECONNRESET ? 0 : completion.error);
}

// What it has written before is still delivered, unless that is not to be trusted.
void ShmStream::peer_gone(int error) {
  gone_ = true;
  if (error_ == 0) error_ = error;
  poll_later();
}

// Where the socket is full, the peer has wake-ups that it has not read; where that has ended, its end is told.
// Where the kernel has no memory for the byte, the peer would sleep for good: then the connection ends.
void ShmStream::wake_peer() const noexcept {
  if (::send(socket_, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN) ::shutdown(socket_, SHUT_RDWR);
}

// ---- the stream ----

// Whatever can fail comes before the link is changed.
ShmStream::ShmStream(Loop& loop, ShmLink& link)
    : loop_(&loop),
      socket_(link.socket.get()),
      handle_(loop.attach(socket_, *this)),
      segment_(std::move(link.segment)),
      writer_(segment_.writer(link.role)),
      reader_(segment_.reader(link.role)) {
  static_cast<void>(link.socket.release());
}

// A peer that finds no end in the ring takes the connection for lost, as it does where this process is killed.
ShmStream::~ShmStream() {
  loop_->forget(*this);
  if (error_ == 0 && !sending()) writer_.end();
  loop_->detach(handle_);
}

void ShmStream::start(StreamUser& user) {
  if (user_ == nullptr) loop_->submit({.kind = runtime::OperationKind::receive, .handle = handle_, .buffer = {}});
  user_ = &user;
  resume();
}

void ShmStream::pause() {
  if (input_ == Input::wanted) input_ = Input::paused;
}

void ShmStream::resume() {
  if (input_ == Input::paused) input_ = Input::wanted;
  wake_up();
  poll_later();
}

void ShmStream::send(Buffer bytes, bool) {
  WIRECALL_ASSERT(user_ != nullptr && !sending() && !sent_);
  sends_ = std::move(bytes);
  written_ = 0;
  write_some();
  wake_up();
  poll_later();
}

void ShmStream::shut_down() {
  if (output_ == Output::open) output_ = Output::shutting_down;
  write_some();
}

std::optional<PeerCredentials> ShmStream::peer_credentials() const { return transport::peer_credentials(socket_); }
std::string ShmStream::peer_source() const { return transport::peer_source(socket_); }

void ShmStream::poll_later() {
  if (!std::exchange(polled_, true)) loop_->poll(*this);
}

// As much as there is room for; and the end, once all is written.
void ShmStream::write_some() {
  if (sending() && !gone_) {
    const std::optional<std::size_t> taken = writer_.write(sends_.view().substr(written_));
    if (!taken) return peer_gone(EPROTO);
    written_ += *taken;
    sent_ = !sending();
    if (*taken != 0 && writer_.wakes_reader()) wake_peer();
  }
  if (output_ != Output::shutting_down || sending()) return;
  output_ = Output::shut_down;
  writer_.end();
  if (writer_.wakes_reader()) wake_peer();
}

bool ShmStream::ready() const noexcept {
  if (failed_) return false;
  if (sent_ || error_ != 0) return true;
  if (sending() && (gone_ || writer_.room() != 0)) return true;
  if (input_ != Input::wanted) return false;
  reader_.prefetch();
  return gone_ || reader_.available() != 0 || reader_.ended();
}

bool ShmStream::fall_asleep() noexcept {
  if (asleep_) return !ready();
  if (sending()) writer_.wait();
  if (input_ == Input::wanted) reader_.wait();
  asleep_ = !ready();
  if (!asleep_) wake_up();
  return asleep_;
}

void ShmStream::wake_up() noexcept {
  asleep_ = false;
  writer_.wait_no_more();
  reader_.wait_no_more();
}

void ShmStream::polled() {
  polled_ = false;
  if (failed_ || (asleep_ && !ready())) return;
  wake_up();
  if (sending()) write_some();
  if (std::exchange(sent_, false)) {
    poll_later();
    written_ = 0;
    return user_->sent(std::exchange(sends_, {}));
  }
  if (error_ == 0 && input_ == Input::wanted) {
    // In this order: what the peer has written is there once it says that this was all.
    const bool last = reader_.ended();
    const std::optional<std::size_t> count = reader_.available();
    if (!count) {
      error_ = EPROTO;
    } else if (*count != 0) {
      return receive(*count);
    } else if (last) {
      input_ = Input::ended;
      poll_later();
      return user_->ended();
    } else if (gone_) {
      error_ = ECONNRESET;
    }
  }
  if (error_ == 0 && gone_ && sending()) error_ = EPIPE;
  if (error_ != 0) {
    failed_ = true;
    return user_->failed(error_);
  }
  if (sending() || input_ == Input::wanted) poll_later();
}

// Without memory for the copy the turn ends early, and the next one tries again.
void ShmStream::receive(std::size_t count) {
  poll_later();
  Loop& loop = *loop_;
  Buffer bytes = loop.take_buffer();
  static_cast<void>(bytes.reserve(count));
  reader_.read(bytes.data(), count);
  bytes.grow(count);
  if (reader_.wakes_writer()) wake_peer();
  static_cast<void>(bytes.padded());
  user_->received({bytes.data(), bytes.size()});
  loop.give_buffer(std::move(bytes));
}

}  // namespace wirecall::transport
