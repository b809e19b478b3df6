// See session.hpp. Two paths matter: `read`, which runs once for each run of bytes and loops over its messages, and
// `flush`, which runs once a turn. Everything else is for the rare and the hostile.
#include "session/session.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace wirecall::session {
namespace {

using framing::Find;
using framing::Found;
using framing::Recovery;

// Messages of one connection that are looked at in one turn; the others have theirs then.
constexpr int kMessagesPerTurn = 2048;
// Reading goes on when the output has fallen to this share of Limits::soft_output.
constexpr std::size_t kLowOutputDivisor = 4;
// After a refusal the peer may still be sending. Closing at once would reset the connection, and with it the answer
// that the peer has not read yet: so what it sends is thrown away for as long as this.
constexpr std::chrono::milliseconds kLinger{1000};

}  // namespace

class Session::Linger final : private Timer {
 public:
  explicit Linger(Session& session) : session_(&session) { session.host_->loop.start(*this, kLinger); }
  Linger(Linger&&) = delete;
  ~Linger() { session_->host_->loop.stop(*this); }

 private:
  void expired() override { session_->end(session_->why_stopped_); }

  Session* session_;
};

Session::Session(Host& host, std::unique_ptr<transport::Stream> stream, std::unique_ptr<framing::Framing> framing,
                 Caller* caller)
    : host_(&host),
      stream_(std::move(stream)),
      framing_(std::move(framing)),
      caller_(caller),
      dispatcher_(host.registry, *this, host.limits, host.workspace),
      tail_(framing_->tail()),
      head_bytes_(framing_->head_bytes()) {
  stream_->start(*this);
}

Session::~Session() {
  if (marked_ || scheduled_ || watching_) host_->loop.forget(*this);
  for (Buffer* buffer : {&out_, &message_, &backlog_}) host_->loop.give_buffer(std::move(*buffer));
}

// ---- input ----

void Session::received(std::span<char> bytes) {
  if (owed_bytes_ != 0) [[unlikely]] {
    owed_bytes_ -= std::min(owed_bytes_, bytes.size());
    if (owed_bytes_ == 0) owed_bytes_ = stream_->readable();  // until there is nothing for once
  }
  if (input_ended_ || over_) return;
  if (!backlog_.empty()) return backlog_.append({bytes.data(), bytes.size()});
  const std::size_t seen = read(bytes);
  if (seen != bytes.size() && !input_ended_) [[unlikely]]
    hold_back({bytes.data() + seen, bytes.size() - seen});
}

// Looks at `input`, behind which a zero byte and the rest of kPaddingBytes stand, and returns how much of it has been
// looked at: not all when it is another connection's turn, too much output waits, or input has ended.
std::size_t Session::read(std::span<char> input) {
  const Limits& limits = host_->limits;
  Received message;
  std::size_t at = 0;
  int left = kMessagesPerTurn;
  while (at < input.size()) {
    if (input_ended_ || left-- == 0 || choked()) [[unlikely]]
      break;
    Found found = framing_->next({input.data() + at, input.size() - at});
    at += found.skip;
    const std::string_view text{input.data() + at, input.size() - at};
    if (found.find == Find::opening) [[likely]] {
      const Scan scan = read_message(text, limits, false, message, host_->workspace.elements);
      if (scan.status == ScanStatus::complete && scan.offset <= limits.max_message_size) [[likely]] {
        at += scan.offset;
        accept(message);
        continue;
      }
      if (scan.status == ScanStatus::incomplete) {
        found = framing_->unfinished(text);
      } else if (scan.offset > limits.max_message_size) {
        found.find = Find::too_large;
      } else {
        found.find = scan.status == ScanStatus::too_deep ? Find::too_deep : Find::malformed;
        found.size = scan.offset;
      }
    }
    at += found.size;
    const std::string_view part = text.substr(0, found.size);
    switch (found.find) {
      case Find::nothing:
        left += found.skip != 0;  // separators are no messages
        break;
      case Find::part:
        if (!keep(part)) return at;
        break;
      case Find::message:
        if (message_.empty()) {
          if (!read_whole(input.subspan(at - found.size, found.size), false)) return at;
        } else {
          if (!keep(part) || !read_whole({message_.data(), message_.size()}, true)) return at;
        }
        break;
      case Find::malformed:
        if (!refuse(ScanStatus::malformed, part)) return at;
        break;
      case Find::too_deep:
        if (!refuse(ScanStatus::too_deep, part)) return at;
        break;
      case Find::too_large:
        refuse_size();
        return at;
      case Find::lost:
      case Find::opening:
        stop_reading(End::unreadable);
        return at;
    }
  }
  return at;
}

// A message whose end is known, in the input or `kept`. False when no more input is to be looked at.
bool Session::read_whole(std::span<char> frame, bool kept) {
  if (frame.size() > host_->limits.max_message_size) {
    refuse_size();
    return false;
  }
  Received message;
  // What stands behind a frame in the input belongs to the next one; the scanner wants a zero there.
  char& behind = kept ? *message_.reserve(1) : *(frame.data() + frame.size());
  if (kept) frame = {message_.data(), message_.size()};
  const char saved = std::exchange(behind, '\0');
  const Scan scan = read_message({frame.data(), frame.size()}, host_->limits, true, message, host_->workspace.elements);
  const bool complete = scan.status == ScanStatus::complete;
  if (complete) accept(message);
  behind = saved;
  if (kept) {
    host_->loop.give_buffer(std::move(message_));
    message_ = Buffer{};
  }
  if (complete) return true;
  return refuse(scan.status, {});
}

inline void Session::accept(const Received& message) {
  unreadable_ = 0;
  if (message.kind == MessageKind::response) [[unlikely]]
    return accept_response(message);
  if (caller_ != nullptr && message.kind == MessageKind::batch) [[unlikely]]
    accept_responses(message);
  if (over_) [[unlikely]]
    return;
  dispatcher_.handle(message, host_->workspace.elements);
}

// The dispatcher leaves the responses in a batch alone.
void Session::accept_responses(const Received& batch) {
  BatchElements elements{batch.text};
  Received element;
  while (!over_ && elements.next(element)) {
    if (element.kind == MessageKind::response) accept_response(element);
  }
}

void Session::accept_response(const Received& message) {
  if (caller_ == nullptr) {
    ++host_->responses_dropped;
  } else if (!caller_->response(message)) {
    end(End::unreadable);
  }
}

// Part of a message that has not ended. False when it has become too large.
bool Session::keep(std::string_view part) {
  if (message_.size() + part.size() > host_->limits.max_message_size) {
    refuse_size();
    return false;
  }
  if (message_.capacity() == 0) message_ = host_->loop.take_buffer();
  message_.append(part);
  return true;
}

// A byte that cannot be part of a message came behind message_ and `part`. False when no more input is to be looked at.
bool Session::refuse(ScanStatus status, std::string_view part) {
  if (message_.size() + part.size() > host_->limits.max_message_size) {
    refuse_size();
    return false;
  }
  host_->loop.give_buffer(std::move(message_));
  message_ = Buffer{};
  dispatcher_.refuse_syntax(status);
  const Recovery recovery = framing_->recover(part);
  const bool hopeless = recovery == Recovery::close ||
                        (recovery == Recovery::resynchronise && ++unreadable_ >= kSyntaxErrorsInARowMax) ||
                        (caller_ != nullptr && caller_->waiting());
  if (hopeless) stop_reading(status == ScanStatus::too_deep ? End::too_deep : End::unreadable);
  return !hopeless;
}

void Session::refuse_size() {
  dispatcher_.refuse_size();
  stop_reading(End::too_large);
}

// The peer has sent what nothing can follow: what it is owed is sent, and then the connection is closed.
void Session::stop_reading(End why) {
  why_stopped_ = why;
  finish();
  if (caller_ != nullptr && caller_->waiting()) end(why);
}

void Session::ended() {
  if (input_ended_) {
    // Nobody is left to whom an answer could matter but by reading it: no need to linger.
    lingers_ = false;
    if (linger_ != nullptr) end(why_stopped_);
    return;
  }
  if (backlog_.empty()) {
    end_of_stream();
  } else {
    end_is_near_ = true;
  }
}

void Session::end_of_stream() {
  const Found found = framing_->end_of_stream();
  if (found.find == Find::message) {
    read_whole({message_.data(), message_.size()}, true);
  } else if (found.find == Find::malformed) {
    dispatcher_.refuse_syntax(ScanStatus::malformed);
  }
  input_ended_ = true;
  mark();
}

// ---- input that waits ----

void Session::hold_back(std::string_view rest) {
  backlog_ = host_->loop.take_buffer();
  backlog_.append(rest);
  backlog_at_ = 0;
  paused_ = true;
  stream_->pause();
  go_on();
}

// Looks at the backlog in the next turn, unless the output has to drain first.
void Session::go_on() {
  if (scheduled_ || choked()) return;
  scheduled_ = true;
  host_->loop.at_next_turn(*this);
}

void Session::next_turn() {
  scheduled_ = false;
  if (over_) return;
  if (!backlog_.empty()) {
    static_cast<void>(backlog_.padded());
    backlog_at_ += read({backlog_.data() + backlog_at_, backlog_.size() - backlog_at_});
    if (backlog_at_ != backlog_.size() && !input_ended_) return go_on();
    host_->loop.give_buffer(std::move(backlog_));
    backlog_ = Buffer{};
    backlog_at_ = 0;
  }
  if (end_is_near_ && !input_ended_) return end_of_stream();
  if (choked()) return;
  paused_ = false;
  stream_->resume();
}

// ---- output ----

Buffer& Session::open_message() {
  if (out_.capacity() == 0) out_ = host_->loop.take_buffer();
  begin_ = out_.size();
  if (head_bytes_ != 0) {
    static_cast<void>(out_.reserve(head_bytes_));
    out_.grow(head_bytes_);
  }
  return out_;
}

void Session::close_message() {
  if (head_bytes_ != 0) framing_->seal(out_, begin_);
  if (tail_.size() == 1) [[likely]] {
    out_.push_back(tail_[0]);
  } else {
    out_.append(tail_);
  }
  if (sending_bytes_ + begin_ > host_->limits.hard_output) [[unlikely]]
    cut_ = true;
  if (!marked_) mark();
}

void Session::mark() {
  if (marked_) return;
  marked_ = true;
  host_->loop.at_turn_end(*this);
}

void Session::turn_ended() {
  marked_ = watching_ = false;
  if (over_) return;
  if (cut_) {
    ++host_->slow_peers_cut;
    return end(End::slow);
  }
  flush();
  if (choked() && !paused_) [[unlikely]] {
    paused_ = true;
    stream_->pause();
  }
  if (input_ended_) [[unlikely]]
    finish_if_done();
}

void Session::flush() {
  if (sending_ || out_.empty() || over_) return;
  sending_ = true;
  sending_bytes_ = out_.size();
  // Whoever reads on hears of the send with the next input. The others have nothing else to wake them.
  stream_->send(std::move(out_), paused_ || input_ended_ || choked());
  out_ = Buffer{};
}

void Session::sent(Buffer buffer) {
  if (over_) return;
  sending_ = false;
  sending_bytes_ = 0;
  host_->loop.give_buffer(std::move(buffer));
  if (!out_.empty() || input_ended_) mark();
  if (!paused_ || input_ended_ || out_.size() > host_->limits.soft_output / kLowOutputDivisor) [[likely]]
    return;
  go_on();
}

// ---- the end ----

void Session::finish() {
  if (input_ended_) return;
  input_ended_ = lingers_ = true;
  mark();
}

void Session::finish_if_done() {
  if (sending_ || !out_.empty() || linger_ != nullptr) return;
  if (dispatcher_.in_flight() != 0) {
    // A notification that is done says nothing: so it is looked for.
    if (watching_) return;
    watching_ = true;
    return host_->loop.at_next_turn_end(*this);
  }
  if (!lingers_) return end(End::finished);
  stream_->shut_down();
  if (paused_) stream_->resume();
  linger_ = std::make_unique<Linger>(*this);
}

void Session::failed(int error) {
  if (!over_) end(End::lost, error);
}

void Session::end(End end, int error) {
  if (over_) return;  // a completion and a timer of one turn may both find the end
  over_ = input_ended_ = true;
  dispatcher_.abandon();
  host_->owner.session_ended(*this, end, error);
}

}  // namespace wirecall::session
