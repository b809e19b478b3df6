// See node_link.hpp.
#include "cluster/node_link.hpp"

#include <cstring>
#include <new>

#include "base/assert.hpp"

namespace wirecall::cluster {

// What an open says first: whether its sender wants to hear back.
constexpr char kAsks = '?';
constexpr char kAsksNot = '.';

static void append_bytes_of(Buffer& out, std::uint64_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append({bytes, sizeof bytes});
}

// 0 where there is none.
static std::uint64_t number_at(std::string_view bytes, std::size_t at) noexcept {
  std::uint64_t number = 0;
  if (bytes.size() >= at + sizeof number) std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

NodeLink::NodeLink(Bus& bus, Names names, std::uint64_t session, const Bounds& bounds, User& user)
    : bus_(&bus), names_(std::move(names)), bounds_(bounds), user_(&user), session_(session) {}

void NodeLink::fail() noexcept {
  failed_ = true;
  if (!flush_wanted_) user_->wants_flush();
  flush_wanted_ = true;
}

// ---- sending ----

Buffer& NodeLink::begin_record(const RecordHead& head) {
  WIRECALL_ASSERT(!record_);
  if (out_.empty()) {
    append_frame_head(out_, {.kind = FrameKind::data,
                             .from_session = session_,
                             .to_session = peer_session_,
                             .sequence = 0,
                             .node = names_.own});
    head_ = out_.size();
  }
  record_.emplace(out_, head);
  return out_;
}

void NodeLink::end_record() {
  WIRECALL_ASSERT(record_);
  try {
    if (!record_->close()) fail();
  } catch (const std::bad_alloc&) {
    record_->discard();
    fail();
  }
  record_.reset();
  if (!is_open() || out_.size() > bounds_.waiting_bytes_max) fail();
  if (!flush_wanted_) user_->wants_flush();
  flush_wanted_ = true;
}

void NodeLink::discard_record() noexcept {
  if (record_) record_->discard();
  record_.reset();
}

void NodeLink::flush() {
  flush_wanted_ = false;
  check();
  if (!is_open() || out_.size() <= head_ || record_) return;
  if (!send_pieces()) {
    failed_ = true;
    check();
  }
}

// False where the bus has refused one.
bool NodeLink::send_pieces() {
  const std::size_t payload_max = bus_->payload_bytes_max();
  if (out_.size() <= payload_max) {
    renumber_frame(out_.data(), peer_session_, sent_++);
    const bool sent = bus_->publish(names_.subject, {}, out_.view());
    if (sent) sent_bytes_ += out_.size() - head_;
    out_.clear();
    return sent;
  }
  // The head comes before each piece, over bytes that have been sent.
  const std::size_t piece_max = payload_max - head_;
  scratch_.clear();
  std::size_t at = head_;
  for (bool sent = true; at != out_.size(); at += std::min(piece_max, out_.size() - at)) {
    scratch_.clear();
    scratch_.append(out_.view().substr(0, head_));
    scratch_.append(out_.view().substr(at, piece_max));
    renumber_frame(scratch_.data(), peer_session_, sent_++);
    sent = bus_->publish(names_.subject, {}, scratch_.view());
    if (!sent) return false;
    sent_bytes_ += scratch_.size() - head_;
  }
  out_.clear();
  scratch_.release();
  return true;
}

bool NodeLink::send(FrameKind kind, std::string_view payload, std::string_view reply) noexcept try {
  if (silent_) return false;
  Buffer frame;
  append_frame_head(
      frame, {.kind = kind, .from_session = session_, .to_session = peer_session_, .sequence = 0, .node = names_.own});
  frame.append(payload);
  return bus_->publish(names_.subject, reply, frame.view());
} catch (const std::bad_alloc&) {
  return false;  // as if it were lost
}

void NodeLink::send_open(bool ask) noexcept try {
  if (opens_left_ == 0 || last_) return;
  --opens_left_;
  Buffer payload;
  payload.push_back(ask ? kAsks : kAsksNot);
  append_bytes_of(payload, former_peer_session_);
  append_bytes_of(payload, former_taken_bytes_);
  static_cast<void>(send(FrameKind::open, payload.view()));
} catch (const std::bad_alloc&) {
  // As if it were lost.
}

void NodeLink::ping(std::string_view gone, std::string_view payload) noexcept try {
  Buffer sent{payload};
  append_bytes_of(sent, sent_bytes_);
  static_cast<void>(send(FrameKind::ping, sent.view(), gone));
} catch (const std::bad_alloc&) {
  // As if it were lost.
}

void NodeLink::leave(bool replaced) noexcept try {
  if (replaced) return static_cast<void>(send(FrameKind::leave, kReplaced));
  Buffer payload{kEnded};
  append_bytes_of(payload, taken_bytes_);
  static_cast<void>(send(FrameKind::leave, payload.view()));
} catch (const std::bad_alloc&) {
  // As if it were lost.
}

void NodeLink::take_leave(const Frame& leave) noexcept {
  const bool says = leave.payload.starts_with(kEnded) && leave.payload.size() == kEnded.size() + sizeof(std::uint64_t);
  if (says && is_open() && is_of_session(leave) && leave.head.to_session == session_)
    reached_max_ = std::min(reached_max_, number_at(leave.payload, kEnded.size()));
}

void NodeLink::maintain() {
  opens_left_ = kOpensMax;
  check();
  if (!is_open()) return send_open(true);
  if (out_.size() > head_) flush();
}

// ---- sessions ----

void NodeLink::reset() {
  if (reading_ || record_) return fail();  // and later
  if (last_ && is_open()) leave(false);
  ++session_;
  const bool was_open = std::exchange(state_, State::opening) == State::open;
  const std::uint64_t reached = this->reached();
  if (was_open) {
    former_peer_session_ = peer_session_;
    former_taken_bytes_ = taken_bytes_;
  }
  sent_ = taken_ = 0;
  sent_bytes_ = confirmed_bytes_ = taken_bytes_ = 0;
  reached_max_ = kAll;
  failed_ = false;
  out_.clear();
  in_.clear();
  if (was_open) user_->ended(reached);
  send_open(true);
}

void NodeLink::check() {
  if (failed_ && !reading_ && !record_) reset();
}

void NodeLink::become_open(std::uint64_t peer_session) {
  peer_session_ = peer_session;
  state_ = State::open;
  user_->opened();
}

void NodeLink::take(const Frame& frame) try {
  if (reading_) return fail();  // by another thread, while a handler is off the loop: as if it were lost
  switch (frame.head.kind) {
    case FrameKind::open: return take_open(frame);
    case FrameKind::data: return take_data(frame);
    case FrameKind::ping: return answer_ping(frame);
    case FrameKind::pong:
    case FrameKind::leave: return;  // the node's
  }
} catch (const std::bad_alloc&) {
  failed_ = true;
  check();
}

void NodeLink::answer_ping(const Frame& frame) {
  // Of another process of that name, whose session has ended here: what has come of this session says nothing of that.
  if (!is_of_session(frame) && (is_open() || last_)) return;
  Buffer payload{frame.payload};
  append_bytes_of(payload, frame.head.from_session == peer_session_ ? taken_bytes_ : 0);
  static_cast<void>(send(FrameKind::pong, payload.view()));
}

// All frames of one side come in the order in which they were sent: so what was sent before the ping has come before
// it, or never will.
std::optional<std::uint64_t> NodeLink::take_pong(const Frame& pong) {
  if (!is_open() || pong.head.to_session != session_ || !is_of_session(pong)) return std::nullopt;
  if (pong.payload.size() < kPongBytes) return std::nullopt;
  const std::size_t at = pong.payload.size() - kPongBytes;
  const std::uint64_t sent = number_at(pong.payload, at);
  const std::uint64_t taken = number_at(pong.payload, at + sizeof sent);
  if (taken < sent) {
    reached_max_ = std::min(reached_max_, taken);
    reset();
    return std::nullopt;
  }
  confirmed_bytes_ = std::min(std::max(confirmed_bytes_, taken), sent_bytes_);
  return taken;
}

void NodeLink::take_open(const Frame& frame) {
  const bool asks = frame.payload.starts_with(kAsks);
  // It has ended that session, so it takes no more of it.
  const bool has_ended_ours =
      is_open() && number_at(frame.payload, 1) == session_ && frame.head.from_session != peer_session_;
  if (has_ended_ours) reached_max_ = number_at(frame.payload, 1 + sizeof session_);
  if (last_) {  // else it has begun one with the process that has taken over
    if (has_ended_ours) reset();
    return;
  }
  const bool known = frame.head.from_session == peer_session_;
  if (is_open() && !known) reset();  // the other side has begun anew
  peer_session_ = frame.head.from_session;
  if (!is_open() && frame.head.to_session == session_) {
    become_open(peer_session_);
    return send_open(false);
  }
  if (asks || !is_open()) send_open(!is_open());
}

void NodeLink::take_data(const Frame& frame) {
  if (frame.head.to_session != session_ || has_ended()) return;
  if (!is_open()) become_open(frame.head.from_session);
  if (frame.head.from_session != peer_session_) return;
  if (frame.head.sequence != taken_) return reset();
  in_.append(frame.payload);
  ++taken_;
  taken_bytes_ += frame.payload.size();
  read_records();
}

void NodeLink::read_records() {
  const std::string_view stream = in_.padded();
  std::size_t at = 0;
  {
    struct Reading {
      bool* reading;
      ~Reading() { *reading = false; }
    } const ends{&reading_};
    reading_ = true;
    while (!failed_ && at != stream.size()) {
      const RecordRead read = read_record(stream.substr(at), bounds_.body_bytes_max);
      if (read.status == RecordRead::Status::incomplete) break;
      if (read.status == RecordRead::Status::malformed) {
        failed_ = true;
        break;
      }
      at += read.bytes;
      user_->received(read.record);
    }
  }
  if (failed_) return check();
  if (at == in_.size()) {
    in_.clear();
  } else {
    in_.drop_front(at);
  }
}

}  // namespace wirecall::cluster
