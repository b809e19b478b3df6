// See tls_stream.hpp.
#include "transport/tls_stream.hpp"

#include <algorithm>
#include <cerrno>

#include "base/assert.hpp"

namespace wirecall::transport {

// So much is encrypted at a time: some 60 us.
constexpr std::size_t kPartBytes = 256 * 1024;
// What a record has of plaintext at most, and of everything else.
constexpr std::size_t kRecordPlaintextBytes = 16 * 1024;
constexpr std::size_t kRecordExtraBytes = 64;
// A peer that has us answer its handshake messages, and does not read the answers, is not waited for.
constexpr std::size_t kWaitingBytesMax = 64 * 1024;

TlsStream::TlsStream(Loop& loop, std::unique_ptr<ByteStream> stream, std::unique_ptr<TlsSession> session,
                     std::unique_ptr<TlsObserver> observer)
    : loop_(&loop), stream_(std::move(stream)), session_(std::move(session)), observer_(std::move(observer)) {}

TlsStream::~TlsStream() {
  if (destroyed_ != nullptr) *destroyed_ = true;
}

void TlsStream::start(StreamUser& user) {
  user_ = &user;
  // Who takes over a stream that has been paused has it go on, as with a socket.
  if (std::exchange(started_, true)) return stream_->resume();
  stream_->start(*this);
}

void TlsStream::received(std::span<char> bytes) {
  if (over_ || error_ != 0 || ended_) return;
  const TlsSession::State before = session_->state();
  Buffer plaintext = loop_->take_buffer();
  bool fails = false;
  try {
    session_->receive(bytes, plaintext, waiting_);
    fails = !may_go_on(before) || waiting_.size() > kWaitingBytesMax;
    if (fails && session_->state() != TlsSession::State::failed) plaintext.clear();
    // By TLS 1.2 the peer may have sent its first request ahead of our last word of the handshake, and wait for that.
    const bool awaited = before == TlsSession::State::handshaking && session_->version() != "TLSv1.3";
    if (!waiting_.empty() && (fails || awaited || plaintext.empty())) pass_on();
    if (!plaintext.empty()) static_cast<void>(plaintext.padded());
  } catch (const std::bad_alloc&) {
    return failed(ENOMEM);
  }
  // The user may be somebody who finds no memory to take over what has come, and then destroys the stream.
  bool destroyed = false;
  Loop& loop = *loop_;
  destroyed_ = &destroyed;
  if (!plaintext.empty()) user_->received({plaintext.data(), plaintext.size()});
  loop.give_buffer(std::move(plaintext));
  if (destroyed) return;
  destroyed_ = nullptr;
  if (fails) return fail(EPROTO);
  // The tickets of a session go with the first answer, if there is one in this turn.
  if (!waiting_.empty() && !user_->sends_in_turn() && !passes_on()) return;
  if (session_->state() == TlsSession::State::ended && !over_ && !std::exchange(ended_, true)) user_->ended();
}

// Tells the observer of a handshake that has ended.
bool TlsStream::may_go_on(TlsSession::State before) {
  const TlsSession::State now = session_->state();
  const bool failed = now == TlsSession::State::failed;
  if (before != TlsSession::State::handshaking || now == TlsSession::State::handshaking || observer_ == nullptr)
    return !failed;
  const std::unique_ptr<TlsObserver> observer = std::move(observer_);
  if (!failed) return observer->agreed(*session_);
  observer->refused(*session_, peer_source());
  return false;
}

// What has failed is told once the alert that says so has been sent.
void TlsStream::fail(int error) {
  if (over_ || error_ != 0) return;
  if (below_sends_) {
    error_ = error;
    return;
  }
  over_ = true;
  user_->failed(error);
}

void TlsStream::ended() {
  if (over_ || ended_) return;
  failed(ECONNRESET);
}

void TlsStream::failed(int error) {
  if (std::exchange(over_, true)) return;
  user_->failed(error_ != 0 ? error_ : error);
}

void TlsStream::send(Buffer bytes, bool prompt) {
  WIRECALL_ASSERT(!user_sends_);
  sends_ = std::move(bytes);
  encrypted_ = 0;
  user_sends_ = true;
  prompt_ = prompt;
  pass_on();
}

void TlsStream::shut_down() {
  shuts_down_ = true;
  pass_on();
}

bool TlsStream::says_farewell() noexcept try {
  if (over_ || error_ != 0) return false;
  if (!shuts_down_) shut_down();
  return !ends_below_;
} catch (const std::bad_alloc&) {
  return false;
}

// Gives the stream below what waits, the next part of what the user sends included, unless it is sending. Throws
// std::bad_alloc.
void TlsStream::pass_on() {
  if (below_sends_ || over_ || ends_below_) return;
  const bool agreed = session_->state() == TlsSession::State::open || session_->state() == TlsSession::State::ended;
  if (agreed && user_sends_ && encrypted_ != sends_.size()) encrypt_part();
  if (shuts_down_ && !user_sends_ && !std::exchange(end_said_, true)) session_->shut_down(waiting_);
  if (!waiting_.empty()) {
    below_sends_ = true;
    // Nobody waits to be told of a part that another one follows, but we do.
    stream_->send(std::exchange(waiting_, {}), prompt_ || !user_sends_ || encrypted_ != sends_.size());
    return;
  }
  if (shuts_down_ && !user_sends_) {
    ends_below_ = true;
    stream_->shut_down();
  }
}

// False where there is no memory for that: the user has been told then.
bool TlsStream::passes_on() try {
  pass_on();
  return true;
} catch (const std::bad_alloc&) {
  failed(ENOMEM);
  return false;
}

void TlsStream::encrypt_part() {
  const std::string_view part = sends_.view().substr(encrypted_, kPartBytes);
  if (waiting_.capacity() == 0) waiting_ = loop_->take_buffer();
  // Nothing is encrypted that has no room: a record that is lost cannot be made again.
  static_cast<void>(waiting_.reserve(part.size() + (part.size() / kRecordPlaintextBytes + 1) * kRecordExtraBytes));
  encrypted_ += part.size();
  if (!session_->send(part, waiting_)) throw std::bad_alloc{};
}

void TlsStream::sent(Buffer buffer) {
  below_sends_ = false;
  loop_->give_buffer(std::move(buffer));
  if (over_) return;
  if (error_ != 0 && waiting_.empty()) return failed(error_);
  const bool all = error_ == 0 && user_sends_ && encrypted_ == sends_.size() && waiting_.empty();
  if (all) {
    user_sends_ = false;
    prompt_ = false;
    encrypted_ = 0;
    if (!shuts_down_) return user_->sent(std::move(sends_));
  }
  if (passes_on() && all) user_->sent(std::move(sends_));
}

}  // namespace wirecall::transport
