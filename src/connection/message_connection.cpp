// See message_connection.hpp. The path that matters is `read_messages`, which runs once for each run of bytes and loops
// over its messages. Everything else is for the rare and the hostile.
#include "connection/message_connection.hpp"

#include "connection/responses_received.hpp"
#include "framing/byte_order_mark.hpp"

namespace wirecall::net {

using framing::Find;

using framing::Found;
using framing::Recovery;

// What a framing is given at once, so that a large part of a message costs no more of a turn than its share.
constexpr std::size_t kFramingStepBytes = 256 * 1024;
// A message that is longer moves to a large buffer, if there is one, instead of growing.
constexpr std::size_t kLargeMessageBytes = 256 * 1024;
// A step of the share pays for as much of a message that is compressed. What it stands for is paid for as well: that
// may be a thousand times as much.
constexpr std::size_t kPackedBytesOfStep = 16;

// Bytes of a header that come one by one keep a connection from being idle, not from being late.
class MessageConnection::HeadTimer final : private Timer {
 public:
  static void watch(MessageConnection& connection) {
    std::unique_ptr<HeadTimer>& timer = connection.head_timer_;
    if (!connection.input_ended() && connection.framing_->in_head()) {
      if (!timer) timer = std::make_unique<HeadTimer>(connection);
      timer->run();
    } else if (timer) {
      timer->stop();
    }
  }

  explicit HeadTimer(MessageConnection& connection) noexcept : connection_(&connection) {}
  HeadTimer(HeadTimer&&) = delete;
  ~HeadTimer() { stop(); }

  void run() {
    if (std::exchange(running_, true)) return;
    connection_->host_->loop.start(*this, std::chrono::milliseconds{connection_->host_->limits.header_timeout_ms});
  }
  void stop() noexcept {
    if (std::exchange(running_, false)) connection_->host_->loop.stop(*this);
  }

 private:
  void expired() override {
    running_ = false;
    if (connection_->over() || connection_->input_ended()) return;
    ++connection_->host_->loop_context.stats.connections_timed_out;
    connection_->within_memory([this] { connection_->stop_reading(CloseReason::silent); });
  }

  MessageConnection* connection_;
  bool running_ = false;
};

MessageConnection::MessageConnection(Host& host, std::unique_ptr<transport::ByteStream> stream,
                                     std::unique_ptr<framing::Framing> framing, ResponseHandler* caller)
    : FramedChannel(host, std::move(stream), std::move(framing)),
      caller_(caller),
      dispatcher_(host.registry, *this, host.limits, host.loop_context) {
  if (caller == nullptr) dispatcher_.await_identity();
}

MessageConnection::~MessageConnection() { give_back(message_); }

// ---- input ----

[[gnu::always_inline]] inline std::size_t MessageConnection::read_messages(std::span<char> input) {
  const Limits& limits = host_->limits;
  Received message;
  std::size_t at = 0;
  while (at < input.size()) {
    if (input_ended() || backpressured() || !may_dispatch(at)) [[unlikely]]
      break;
    Found found = framing_->next(input.subspan(at, std::min(input.size() - at, kFramingStepBytes)));
    at += found.skip;
    const std::string_view text{input.data() + at, input.size() - at};
    if (found.find == Find::opening) [[likely]] {
      const Scan scan = read_message(text, limits, false, message, *host_->loop_context.codecs.elements);
      if (scan.status == ScanStatus::complete && !is_too_large(scan.offset)) [[likely]] {
        at += scan.offset;
        mark_consumed(at);
        accept(message, *host_->loop_context.codecs.elements, {}, false);
        if (lost_loop()) [[unlikely]]
          return at;
        continue;
      }
      if (scan.status == ScanStatus::incomplete) {
        found = framing_->unfinished(text.substr(0, kFramingStepBytes));
      } else if (is_too_large(scan.offset)) {
        found.find = Find::too_large;
      } else {
        found.find = scan.status == ScanStatus::too_deep ? Find::too_deep : Find::malformed;
        found.size = scan.offset;
      }
    }
    at += found.size;
    mark_consumed(at);
    const std::string_view part = text.substr(0, found.size);
    switch (found.find) {
      case Find::nothing: break;
      case Find::part:
        if (!keep(part)) return at;
        break;
      case Find::message:
      case Find::text: {
        const bool is_text = found.find == Find::text;
        if (message_.empty()) {
          if (!read_whole(input.subspan(at - found.size, found.size), false, is_text)) return at;
        } else {
          if (!keep(part) || !read_whole({message_.data(), message_.size()}, true, is_text)) return at;
        }
        break;
      }
      case Find::packed:
        if (!read_packed(part)) return at;
        break;
      case Find::due: send_as_it_is(framing_->take_due()); break;
      case Find::over: peer_closed(); return at;
      case Find::malformed:
      case Find::too_deep: {
        message::Unreadable where = message::unreadable_at(text, part.size(), message_.size());
        where.cause = framing_->cause();
        if (!refuse(found.find == Find::too_deep ? ScanStatus::too_deep : ScanStatus::malformed, part, where))
          return at;
        break;
      }
      case Find::too_large: refuse_size(); return at;
      case Find::lost:
      case Find::opening: stop_reading(CloseReason::unreadable); return at;
    }
  }
  return at;
}

std::size_t MessageConnection::read(std::span<char> input) {
  const std::size_t seen = read_messages(input);
  if (has_head() && !lost_loop()) HeadTimer::watch(*this);
  return seen;
}

// A message whose end is known, in the input or `kept`. False when no more input is to be read.
bool MessageConnection::read_whole(std::span<char> frame, bool kept, bool text) {
  if (is_too_large(frame.size())) {
    refuse_size();
    return false;
  }
  message_completed();
  if (binary_) {
    speak(text || frame.empty() ? Encoding::json : message::encoding_of(frame[0]));
    dispatcher_.answer_as(reply_form_);
  }
  if (kept && host_->reads_off_loop(frame.size())) [[unlikely]] {
    read_off_loop(std::exchange(message_, Buffer{}), encoding());
    return false;
  }
  if (encoding() == Encoding::json) [[likely]]
    return read_json(frame, kept, {});
  return read_binary(frame, kept);
}

// The rest of a message that is compressed. False when no more input is to be read.
bool MessageConnection::read_packed(std::string_view part) {
  const bool off_loop = host_->unpacks_off_loop(message_.size() + part.size());
  if (!message_.empty() || off_loop) {
    if (!keep(part)) return false;
    part = message_.view();
  }
  if (off_loop) [[unlikely]] {
    unpack_off_loop(std::exchange(message_, Buffer{}));
    return false;
  }
  using Outcome = framing::MessageDeflate::Outcome;
  Buffer whole = host_->loop.take_buffer();
  // A few bytes may stand for a long message, which is unpacked off the loop, from its beginning.
  const std::size_t bytes_max = message_bytes_max();
  const bool may_be_long = host_->unpacks_off_loop_to(bytes_max);
  const Outcome outcome = framing_->unpack(part, may_be_long ? kLongMessageBytes : bytes_max, whole);
  charge(part.size() / kPackedBytesOfStep);
  if (outcome == Outcome::too_large && may_be_long) [[unlikely]] {
    charge(whole.size() / rpc::Share::kBytesOfStep);
    give_back(whole);
    if (message_.empty() && !keep(part)) return false;
    unpack_off_loop(std::exchange(message_, Buffer{}));
    return false;
  }
  give_back(message_);
  const Find found = framing_->unpacked(outcome, whole.view());
  return read_unpacked(found, std::move(whole));
}

bool MessageConnection::read_unpacked(Find found, Buffer whole) {
  charge(whole.size() / rpc::Share::kBytesOfStep);
  if (found == Find::too_large) {
    refuse_size();
  } else if (found == Find::lost) {
    stop_reading(CloseReason::unreadable);
  } else {
    message_ = std::move(whole);
    if (!may_hold_message()) return false;
    return read_whole({message_.data(), message_.size()}, true, found == Find::text);
  }
  give_back(whole);
  return false;
}

// As read_whole goes on with what it has read itself.
void MessageConnection::resume_long() {
  const std::shared_ptr<LongMessage> read = take_long_message();
  if (!read) return;
  if (read->unpacked) {
    const Find found = framing_->unpacked(*read->unpacked, read->text.view());
    return static_cast<void>(read_unpacked(found, std::move(read->text)));
  }
  message_ = std::move(read->text);
  const std::span<char> text{message_.data(), message_.size()};
  if (binary_) dispatcher_.answer_as(reply_form_);
  if (encoding() != Encoding::json && !read->transcoded) {
    static_cast<void>(read_checked(text, true, read->status, read->members));
  } else if (read->status != LongMessage::Status::done) {
    static_cast<void>(refuse_transcoded(read->status));
  } else if (read->scan.status == ScanStatus::complete) {
    for (const std::string& cancel : read->cancels) rpc::send_message(*this, cancel);
    accept(read->message, {}, read->unrepresentable, read->transcoded);
    if (!lost_loop()) give_back(message_);
  } else {
    const message::Unreadable where =
        message::unreadable_at(std::string_view{text.data(), text.size()}.substr(read->mark), read->scan.offset);
    give_back(message_);
    static_cast<void>(refuse(read->scan.status, {}, where));
  }
}

// `unrepresentable` may be asked for as long as a handler of the message runs.
bool MessageConnection::read_json(std::span<char> frame, bool kept,
                                  const std::vector<message::Unrepresentable>& unrepresentable) {
  const bool transcoded = encoding() != Encoding::json;
  Received message;
  // What stands behind a frame in the input belongs to the next one; the scanner wants a zero there.
  char& behind = kept ? *message_.reserve(1) : *(frame.data() + frame.size());
  if (kept) frame = {message_.data(), message_.size()};
  const char saved = std::exchange(behind, '\0');
  Scan scan =
      read_message({frame.data(), frame.size()}, host_->limits, true, message, *host_->loop_context.codecs.elements);
  if (scan.status == ScanStatus::malformed && scan.offset == 0) {
    const std::size_t mark = framing::byte_order_mark_bytes({frame.data(), frame.size()});
    if (mark != 0) {
      frame = frame.subspan(mark);
      scan = read_message({frame.data(), frame.size()}, host_->limits, true, message,
                          *host_->loop_context.codecs.elements);
    }
  }
  const bool complete = scan.status == ScanStatus::complete;
  if (complete) {
    ended_by_zero_ = kept ? nullptr : &behind;
    behind_zero_ = saved;
    accept(message, *host_->loop_context.codecs.elements, unrepresentable, transcoded);
    ended_by_zero_ = nullptr;
    if (lost_loop()) [[unlikely]]
      return false;
  }
  message::Unreadable where;
  if (!complete) where = message::unreadable_at({frame.data(), frame.size()}, scan.offset);
  behind = saved;
  if (kept) give_back(message_);
  if (complete) return true;
  return refuse(scan.status, {}, where);
}

// Whether what is no request is for the dispatcher.
bool MessageConnection::accept_other(const Received& message) {
  const bool called = caller_ != nullptr;
  const bool lossy = framing_->may_lose_messages();  // then anybody may have sent it, and nobody is told
  switch (message.kind) {
    case MessageKind::response:
      Responses{*this}.accept(message);
      hold_no_message();
      return false;
    case MessageKind::batch:
      if (called) Responses{*this}.accept_all(message, {});
      return !over() && !lossy;
    case MessageKind::notification: return !(called && caller_->notified(message)) && !over();
    default:
      if (message.fault == Fault::batch_limit && Responses{*this}.are_awaited())
        Responses{*this}.accept_all(message, {});
      return !over() && !lossy;
  }
}

// Part of a message that has not ended. False when it has become too large, or the connection has had to give way.
bool MessageConnection::keep(std::string_view part) {
  if (is_too_large(message_.size() + part.size())) {
    refuse_size();
    return false;
  }
  if (message_.capacity() == 0) message_ = host_->loop.take_buffer();
  if (message_.size() + part.size() > message_.capacity() && part.size() + message_.size() > kLargeMessageBytes) {
    Buffer larger = host_->loop.take_large_buffer();
    if (larger.capacity() > message_.capacity()) {
      larger.append(message_.view());
      std::swap(larger, message_);
    }
    give_back(larger);
  }
  message_.append(part);
  return may_hold_message();
}

// False when the connection has had to give way, since it or others hold too much.
bool MessageConnection::may_hold_message() {
  if (caller_ != nullptr) return true;
  if (!dispatcher_.is_unidentified()) {
    if (held_by(message_) > kWeighedBytes) weigh();
    return !is_evicted();
  }
  dispatcher_.hold_unidentified(held_by(message_) + output_bytes());
  if (!input_ended()) return true;
  give_back(message_);  // it has had to give way itself
  return false;
}

// What has come of a message is of no use to a peer that is refused.
void MessageConnection::close() {
  stop_reading(CloseReason::refused);
  if (host_->active_channel != this) give_back(message_);
}

// What has come of one counts no more.
void MessageConnection::hold_no_message() {
  if (caller_ == nullptr && dispatcher_.is_unidentified()) dispatcher_.hold_unidentified(output_bytes());
}

// A byte that cannot be part of a message came behind message_ and `part`. False when no more input is to be read.
bool MessageConnection::refuse(ScanStatus status, std::string_view part, const message::Unreadable& where) {
  if (is_too_large(message_.size() + part.size())) {
    refuse_size();
    return false;
  }
  give_back(message_);
  if (framing_->may_lose_messages()) {  // anybody may have sent it
    static_cast<void>(framing_->recover(part));
    return true;
  }
  dispatcher_.refuse_syntax(status, where);
  hold_no_message();
  const Recovery recovery = framing_->recover(part);
  const bool hopeless = recovery == Recovery::close ||
                        (recovery == Recovery::resynchronise && ++unreadable_ >= kSyntaxErrorsInARowMax) ||
                        (caller_ != nullptr && caller_->waiting());
  if (hopeless) stop_reading(status == ScanStatus::too_deep ? CloseReason::too_deep : CloseReason::unreadable);
  return !hopeless;
}

void MessageConnection::refuse_size() {
  if (!framing_->has_farewell()) dispatcher_.refuse_size();
  stop_reading(CloseReason::too_large);
}

void MessageConnection::stop_reading(CloseReason why) {
  const bool awaited = caller_ != nullptr && caller_->waiting();
  if (awaited && framing_->has_farewell()) {
    end_input(why);
    return dispatcher_.abandon();
  }
  Channel::stop_reading(why);
  dispatcher_.peer_ended();
  if (awaited) end(why);
}

// It takes nothing more: what it has been answered up to now is sent, and then the farewell. Whose caller waits does
// not linger: calls can go elsewhere.
void MessageConnection::peer_closed() {
  if (caller_ == nullptr) {
    Channel::stop_reading(CloseReason::finished);
  } else {
    end_input(CloseReason::finished);
  }
  dispatcher_.abandon();
}

// A framing that has a word for it tells the peer, as far as there is memory for that: not here, where others are on
// the way through the connection.
void MessageConnection::lose_answer() noexcept {
  if (!framing_->has_farewell()) return fail_out_of_memory();
  lost_answer_ = true;
  request_turn_end();
}

bool MessageConnection::send_keepalive() {
  const std::string_view keepalive = framing_->keepalive();
  if (keepalive.empty()) return dispatcher_.send_keepalive();
  send_as_it_is(keepalive);
  return true;
}

static framing::Ending ending_of(CloseReason why, bool draining) noexcept {
  switch (why) {
    case CloseReason::too_large: return framing::Ending::too_large;
    case CloseReason::refused: return framing::Ending::refused;
    case CloseReason::unreadable:
    case CloseReason::too_deep: return framing::Ending::unreadable;
    case CloseReason::finished: return draining ? framing::Ending::going_away : framing::Ending::done;
    case CloseReason::silent: return framing::Ending::done;
    case CloseReason::lost:
    case CloseReason::slow:
    case CloseReason::heaviest: break;
  }
  return framing::Ending::failed;
}

bool MessageConnection::send_farewell(CloseReason why) {
  const std::string_view farewell = framing_->farewell(ending_of(why, draining_));
  if (!farewell.empty()) send_as_it_is(farewell);
  return !farewell.empty();
}

void MessageConnection::input_complete() {
  const Found found = framing_->end_of_stream();
  if (found.find == Find::message) {
    message_completed();
    read_json({message_.data(), message_.size()}, true, {});  // a value that no bracket ends, and so no message
  } else if (found.find == Find::malformed && caller_ == nullptr) {
    // Half a response is not answered; that the peer has gone, its callers learn in any case.
    dispatcher_.refuse_syntax(ScanStatus::malformed, {.offset = message_.size(), .cause = framing_->cause()});
  }
  dispatcher_.peer_ended();
}

void MessageConnection::resume_message() {
  if (has_long_message()) [[unlikely]]
    return resume_long();
  if (input_ended()) dispatcher_.refuse_open_batch();
  dispatcher_.resume_batch();
}

void MessageConnection::leave_message(std::vector<Buffer>& kept) {
  if (ended_by_zero_ != nullptr) *std::exchange(ended_by_zero_, nullptr) = behind_zero_;
  kept.push_back(std::move(message_));
  message_ = Buffer{};
}

void MessageConnection::batched_response(const Received& response, EncodedText batch, std::string_view element) {
  Responses{*this}.accept_batched(response, batch, element);
}

// Not where the message was written: whoever makes a request does not expect its answer before that is done.
void MessageConnection::on_turn_end() {
  if (lost_answer_) {
    lost_answer_ = false;
    if (input_ended()) return fail_out_of_memory();
    Channel::stop_reading(CloseReason::lost);
    return dispatcher_.abandon();
  }
  for (const std::string& news : take_news()) {
    Buffer text{news};
    Received message;
    const Scan scan = read_message(text.padded(), host_->limits, true, message);
    if (scan.status != ScanStatus::complete || over()) continue;
    if (message.kind == MessageKind::response) {
      Responses{*this}.accept(message);
    } else {
      dispatcher_.handle(message);
    }
  }
}

}  // namespace wirecall::net
