// See channel_life.hpp.
#include "connection/channel_life.hpp"

#include "connection/channel_rare.hpp"
#include "transport/tls_session.hpp"

namespace wirecall::net {

ChannelLife::ChannelLife(Host& host, std::unique_ptr<transport::ByteStream> stream)
    : host_(&host), stream_(std::move(stream)) {}

ChannelLife::~ChannelLife() { forget_turns(); }

ChannelLife::Rare& ChannelLife::rare() {
  if (!rare_) rare_ = std::make_unique<Rare>();
  return *rare_;
}

void ChannelLife::enter(State next) noexcept {
  const auto may_follow = [this](State to) {
    switch (state_) {
      case State::open: return to == State::ending || to == State::ended || to == State::finishing || to == State::over;
      case State::ending: return to == State::ended || to == State::finishing || to == State::over;
      case State::finishing: return to == State::ended || to == State::lingering || to == State::over;
      case State::ended:
      case State::lingering: return to == State::over;
      case State::over: break;
    }
    return false;
  };
  WIRECALL_ASSERT(may_follow(next));
  state_ = next;
}

void ChannelLife::stop_reading(CloseReason why) {
  reason_ = why;
  finish();
}

void ChannelLife::linger() {
  stream_->shut_down();
  rare().linger = std::make_unique<Linger>(*this);
  enter(State::lingering);
}

void ChannelLife::end_cut() {
  switch (cut_) {
    case Cut::none: break;
    case Cut::slow: ++host_->loop_context.stats.slow_peers_closed; return end(CloseReason::slow);
    case Cut::evicted: return end(CloseReason::heaviest);
    case Cut::out_of_memory: return end(CloseReason::lost, ENOMEM);
  }
}

void ChannelLife::end(CloseReason reason, int error) {
  if (over()) return;  // a completion and a timer of one turn may both find the end
  enter(State::over);
  if (counts_ != nullptr) counts_->end = name_of(reason);
  abandon();
  if (off_loop_ != 0) {
    // It stays open until its handler has rejoined the loop, but the peer need not wait for that.
    try {
      stream_->shut_down();
    } catch (const std::bad_alloc&) {
    }
  }
  host_->owner.connection_ended(*this, reason, error);
}

void ChannelLife::mark_first() {
  marked_ = true;
  host_->loop.at_turn_end(*this);
}

void ChannelLife::mark_next_turn() {
  if (watching_) return;
  watching_ = true;
  host_->loop.at_next_turn_end(*this);
}

void ChannelLife::schedule() {
  scheduled_ = true;
  host_->loop.at_next_turn(*this);
}

void ChannelLife::forget_turns() noexcept {
  if (marked_ || scheduled_ || watching_) host_->loop.forget(*this);
  marked_ = scheduled_ = watching_ = false;
}

void ChannelLife::give_back(Buffer& buffer) noexcept {
  host_->loop.give_buffer(std::move(buffer));
  buffer = Buffer{};
}

void ChannelLife::assert_life() const noexcept {
  // Once over, it may be destroyed at any time: its timer still runs, and its owner is not told again.
  if (over()) return;
  WIRECALL_ASSERT((state_ == State::lingering) == (rare_ && rare_->linger));
  WIRECALL_ASSERT(cut_ == Cut::none || marked_);
}

std::string_view ChannelLife::tls_version() const noexcept {
  const transport::TlsSession* const known = tls();
  return known != nullptr ? known->version() : std::string_view{};
}

std::optional<std::vector<std::string>> ChannelLife::certificate_names() const {
  const transport::TlsSession* const known = tls();
  if (known == nullptr || !known->has_certificate()) return std::nullopt;
  return known->certificate_names();
}

}  // namespace wirecall::net
