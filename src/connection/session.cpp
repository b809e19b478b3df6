// See session.hpp. The path that matters is `read_messages`, which runs once for each run of bytes and loops over its
// messages. Everything else is for the rare and the hostile.
#include "connection/session.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.hpp"
#include "base/one_line.hpp"
#include "framing/byte_order_mark.hpp"
#include "rpc/message_sink.hpp"

namespace wirecall::session {
namespace {

using framing::Find;
using framing::Found;
using framing::Recovery;

// What a framing is given at once, so that a large part of a message costs no more of a turn than its share.
constexpr std::size_t kFramingStepBytes = 256 * 1024;
// A message that is longer moves to a large buffer, if there is one, instead of growing.
constexpr std::size_t kLargeMessageBytes = 256 * 1024;

}  // namespace

class Session::HeadTimer final : private Timer {
 public:
  explicit HeadTimer(Session& session) noexcept : session_(&session) {}
  HeadTimer(HeadTimer&&) = delete;
  ~HeadTimer() { stop(); }

  void run() {
    if (std::exchange(running_, true)) return;
    session_->host_->loop.start(*this, std::chrono::milliseconds{session_->host_->limits.header_timeout_ms});
  }
  void stop() noexcept {
    if (std::exchange(running_, false)) session_->host_->loop.stop(*this);
  }

 private:
  void expired() override {
    running_ = false;
    if (session_->over() || session_->input_ended()) return;
    ++session_->host_->loop_context.stats.connections_timed_out;
    session_->within_memory([this] { session_->stop_reading(CloseReason::silent); });
  }

  Session* session_;
  bool running_ = false;
};

Session::Session(Host& host, std::unique_ptr<transport::ByteStream> stream, std::unique_ptr<framing::Framing> framing,
                 ResponseHandler* caller)
    : Channel(host, std::move(stream)),
      framing_(std::move(framing)),
      caller_(caller),
      dispatcher_(host.registry, *this, host.limits, host.loop_context),
      tail_(framing_->tail().data()),
      tail_bytes_(static_cast<std::uint32_t>(framing_->tail().size())),
      head_bytes_(static_cast<std::uint8_t>(framing_->head_bytes())),
      binary_(framing_->carries_binary()),
      lines_(framing_->sends_lines()) {
  if (caller == nullptr) dispatcher_.await_identity();
}

Session::~Session() {
  if (reads_long()) rare_->long_message->forget();
  give_back(message_);
}

Session::Rare& Session::rare() {
  if (!rare_) rare_ = std::make_unique<Rare>();
  return *rare_;
}

// Bytes of a header that come one by one keep a connection from being idle, not from being late.
void Session::watch_head() {
  if (!input_ended() && framing_->in_head()) {
    if (!rare().head_timer) rare_->head_timer = std::make_unique<HeadTimer>(*this);
    rare_->head_timer->run();
  } else if (rare_ && rare_->head_timer) {
    rare_->head_timer->stop();
  }
}

// ---- input ----

[[gnu::always_inline]] inline std::size_t Session::read_messages(std::span<char> input) {
  const Limits& limits = host_->limits;
  Received message;
  std::size_t at = 0;
  while (at < input.size()) {
    if (input_ended() || backpressured() || !may_dispatch(at)) [[unlikely]]
      break;
    Found found = framing_->next({input.data() + at, std::min(input.size() - at, kFramingStepBytes)});
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
      case Find::nothing:
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
        if (!refuse(ScanStatus::malformed, part, unreadable(text, part.size()))) return at;
        break;
      case Find::too_deep:
        if (!refuse(ScanStatus::too_deep, part, unreadable(text, part.size()))) return at;
        break;
      case Find::too_large:
        refuse_size();
        return at;
      case Find::lost:
      case Find::opening:
        stop_reading(CloseReason::unreadable);
        return at;
    }
  }
  return at;
}

std::size_t Session::read(std::span<char> input) {
  const std::size_t seen = read_messages(input);
  if (head_bytes_ != 0 && !lost_loop()) watch_head();
  return seen;
}

// A message whose end is known, in the input or `kept`. False when no more input is to be read.
bool Session::read_whole(std::span<char> frame, bool kept) {
  if (is_too_large(frame.size())) {
    refuse_size();
    return false;
  }
  message_completed();
  if (binary_) {
    msgpack_ = !frame.empty() && message::is_msgpack(frame[0]);
    dispatcher_.answer_as(msgpack_ ? MessageForm::transcoded : MessageForm::json);
  }
  if (kept && frame.size() > kLongMessageBytes && host_->long_reader != nullptr) [[unlikely]] {
    host_->long_reader->read(begin_long());
    return false;
  }
  if (msgpack_) [[unlikely]]
    return read_msgpack(frame, kept);
  return read_json(frame, kept, {});
}

// Nothing that follows the message, which has been kept, is looked at until it has been read elsewhere.
const std::shared_ptr<LongMessage>& Session::begin_long() {
  std::shared_ptr<LongMessage>& begun = rare().long_message;
  begun = std::make_shared<LongMessage>(std::exchange(message_, Buffer{}), host_->limits,
                                        LongMessage::Sender{.account = account(),
                                                            .received_at = input_received_at(),
                                                            .hold = hold_input(),
                                                            .then = [this] { interrupt(); }});
  return begun;
}

// As read_whole goes on with what it has read itself.
void Session::resume_long() {
  const std::shared_ptr<LongMessage> read = std::exchange(rare_->long_message, nullptr);
  if (input_ended()) return;
  if (read->out_of_memory) throw std::bad_alloc{};
  set_input_received_at(read->received_at);
  message_ = std::move(read->text);
  const std::span<char> text{message_.data(), message_.size()};
  if (binary_) dispatcher_.answer_as(msgpack_ ? MessageForm::transcoded : MessageForm::json);
  if (msgpack_ && !read->transcoded) {
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

bool Session::read_msgpack(std::span<char> frame, bool kept) {
  message::MsgpackMembers members;
  const auto status = message::Transcoder::check({frame.data(), frame.size()}, host_->limits, members);
  return read_checked(frame, kept, status, members);
}

bool Session::read_checked(std::span<char> frame, bool kept, message::Transcoder::Status status,
                           const message::MsgpackMembers& members) {
  using message::Transcoder;
  using rpc::Passthrough;
  const std::string_view msgpack{frame.data(), frame.size()};
  if (status == Transcoder::Status::done) {
    if (Transcoder::is_long_batch(msgpack, host_->limits)) return read_long_batch(msgpack, kept);
    const bool is_response = Transcoder::is_single(msgpack) && Transcoder::has_response(msgpack, members);
    const bool as_it_is = is_response || caller_ != nullptr;
    const Passthrough passthrough = as_it_is ? Passthrough::yes : dispatcher_.may_pass_through(msgpack, members);
    if (passthrough != Passthrough::no)
      return read_as_msgpack(frame, kept, members, passthrough == Passthrough::too_large);
  }
  return read_transcoded(frame, kept, status);
}

bool Session::read_long_batch(std::string_view msgpack, bool kept) {
  using Status = message::Transcoder::Status;
  Buffer text = host_->loop.take_buffer();
  Received batch;
  const Status status =
      host_->loop_context.codecs.transcoder().read_long_batch(msgpack, host_->limits, awaits_responses(), text, batch);
  if (status == Status::done) accept(batch, *host_->loop_context.codecs.elements, {}, true);
  if (lost_loop()) [[unlikely]]
    return false;
  give_back(text);
  if (kept) give_back(message_);
  if (status == Status::done) return true;
  refuse_size();
  return false;
}

// Params and results stay in the frame. Its envelope in JSON lasts as long as a handler that reads from it may run: on
// this stack.
bool Session::read_as_msgpack(std::span<char> frame, bool kept, const message::MsgpackMembers& members,
                              bool too_large) {
  using message::Transcoder;
  const std::string_view msgpack{frame.data(), frame.size()};
  Buffer envelope = host_->loop.take_buffer();
  Received message;
  std::span<Received> elements{*host_->loop_context.codecs.elements};
  const auto status =
      host_->loop_context.codecs.transcoder().read(msgpack, host_->limits, envelope, message, elements, members);
  if (status != Transcoder::Status::done) {
    give_back(envelope);
    return read_transcoded(frame, kept, Transcoder::Status::done);  // which says why
  }
  const bool response = message.kind == MessageKind::response;
  const bool for_caller = response || (caller_ != nullptr && message.kind == MessageKind::notification);
  if (!takes_msgpack(message)) {
    give_back(envelope);
    return read_transcoded(frame, kept, Transcoder::Status::done);
  }
  unreadable_ = 0;
  ++host_->loop_context.stats.messages_in;
  if (for_caller) {
    Transcoder::restore(msgpack, message);
    message.text = msgpack;
  }
  const bool batch = message.kind == MessageKind::batch;
  if (batch && caller_ != nullptr) accept_responses(message, msgpack);
  if (message.kind == MessageKind::request || (batch ? !over() : accept_other(message))) {
    dispatcher_.answer_as(MessageForm::msgpack);
    dispatcher_.handle_msgpack(message, elements, msgpack, too_large);
  }
  if (lost_loop()) [[unlikely]]
    return false;
  give_back(envelope);
  if (kept) give_back(message_);
  return true;
}

// Events and the like are for the caller in JSON.
bool Session::takes_msgpack(const Received& message) {
  const bool asks = message.kind != MessageKind::response && message.kind != MessageKind::notification;
  if (caller_ != nullptr && !asks) return caller_->takes_msgpack(message);
  return dispatcher_.takes_msgpack(message);
}

// What the frame is in JSON takes its place, as a message that has been kept. `status` is what Transcoder::check says.
bool Session::read_transcoded(std::span<char> frame, bool kept, message::Transcoder::Status status) {
  using Status = message::Transcoder::Status;
  if (kept && status == Status::done && frame.size() > kLongMessageBytes && host_->long_reader != nullptr)
      [[unlikely]] {
    host_->long_reader->transcode(begin_long());
    return false;
  }
  message::Transcoder& transcoder = host_->loop_context.codecs.transcoder();
  Buffer json = host_->loop.take_buffer();
  if (status == Status::done) status = transcoder.checked_to_json({frame.data(), frame.size()}, host_->limits, json);
  if (kept) give_back(message_);
  message_ = std::move(json);
  if (status == Status::done) {
    const std::vector<message::Unrepresentable> unrepresentable = transcoder.take_unrepresentable();
    for (const std::string& cancel : transcoder.take_cancels()) {
      rpc::send_message(*this, cancel);
    }
    return read_json({message_.data(), message_.size()}, true, unrepresentable);
  }
  return refuse_transcoded(status);
}

bool Session::refuse_transcoded(message::Transcoder::Status status) {
  using Status = message::Transcoder::Status;
  give_back(message_);
  if (status != Status::too_large)
    return refuse(status == Status::too_deep ? ScanStatus::too_deep : ScanStatus::malformed, {},
                  {.cause = message::Transcoder::cause_of(status)});
  refuse_size();
  return false;
}

// `unrepresentable` may be asked for as long as a handler of the message runs.
bool Session::read_json(std::span<char> frame, bool kept,
                        const std::vector<message::Unrepresentable>& unrepresentable) {
  const bool transcoded = msgpack_;
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

inline void Session::accept(const Received& message, std::span<const Received> elements,
                            std::span<const message::Unrepresentable> unrepresentable, bool transcoded) {
  unreadable_ = 0;
  ++host_->loop_context.stats.messages_in;
  const bool lost =
      !unrepresentable.empty() && message.kind == MessageKind::notification;  // nobody can be told what it said
  if (message.kind != MessageKind::request && (lost || !accept_other(message))) [[unlikely]]
    return;
  if (transcoded) [[unlikely]]
    return dispatcher_.handle_transcoded(message, elements, unrepresentable);
  dispatcher_.handle(message, elements);
}

// Whether what is no request is for the dispatcher.
bool Session::accept_other(const Received& message) {
  const bool called = caller_ != nullptr;
  switch (message.kind) {
    case MessageKind::response:
      accept_response(message);
      return false;
    case MessageKind::batch:
      if (called) accept_responses(message, {});
      return !over();
    case MessageKind::notification:
      return !(called && caller_->notified(message)) && !over();
    default:
      if (message.fault == Fault::batch_limit && awaits_responses()) accept_responses(message, {});
      return !over();
  }
}

// Those of a client's batch, before anything else in it; and of one over the limit, of which nothing else is served.
// `msgpack` is what it was in MessagePack, of which they have their results still.
void Session::accept_responses(const Received& batch, std::string_view msgpack) {
  charge(batch.batch_size);
  BatchElements elements{batch.text};
  Received element;
  Buffer json;
  for (std::size_t left = rpc::kRefusedElementsMax; left != 0 && !over() && elements.next(element); --left) {
    if (element.kind != MessageKind::response) continue;
    if (!msgpack.empty()) take_result(msgpack, element, json);
    accept_response(element);
  }
}

// What others wait for stays in the order in which it was sent, and costs the sender's share as any element does.
void Session::batched_response(const Received& response, std::string_view msgpack, std::string_view element) {
  if (caller_ != nullptr || !dispatcher_.awaits_responses()) return;
  if (msgpack.empty()) return accept_response(response);
  Received own = response;
  Buffer json;
  accept_msgpack_response(msgpack, element, own, json);
}

// One of a batch at a server, which may be handed on: `text` is the whole of it.
void Session::accept_msgpack_response(std::string_view msgpack, std::string_view text, Received& response,
                                      Buffer& json) {
  message::Transcoder::restore(msgpack, response);
  response.text = text;
  if (dispatcher_.takes_msgpack(response)) return accept_response(response);
  json.clear();
  if (host_->loop_context.codecs.transcoder().to_json(text, host_->limits, json) != message::Transcoder::Status::done)
    return;
  Received plain;
  const Scan scan = read_message(json.padded(), host_->limits, true, plain);
  if (scan.status == ScanStatus::complete) accept_response(plain);
}

// As it is, or in JSON for who does not take it so; where it has no form in that, the response is one of an error.
void Session::take_result(std::string_view msgpack, Received& response, Buffer& json) {
  message::Transcoder::restore(msgpack, response);
  if (caller_->takes_msgpack(response)) return;
  json.clear();
  const std::string_view why = host_->loop_context.codecs.transcoder().unpack(response, host_->limits, json);
  if (why.empty()) return;
  json.clear();
  json.append(R"({"code":-32603,"message":"Internal error","data":{"reason":")");
  json.append(why);
  json.append("\"}}");
  const std::string_view error = json.padded();
  response.spans[static_cast<std::size_t>(Member::error)] = {error.data(), error.size()};
  response.present &= ~(std::uint32_t{1} << static_cast<unsigned>(Member::result));
  response.present |= std::uint32_t{1} << static_cast<unsigned>(Member::error);
}

void Session::accept_response(const Received& message) {
  if (dispatcher_.response(message)) return;
  if (caller_ == nullptr) {
    ++host_->loop_context.stats.responses_dropped;
  } else if (!caller_->response(message)) {
    end(CloseReason::unreadable);
  }
}

// Part of a message that has not ended. False when it has become too large, or the connection has had to give way.
bool Session::keep(std::string_view part) {
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
void Session::close() {
  stop_reading(CloseReason::refused);
  if (host_->active_channel != this) give_back(message_);
}

// Where `text` goes on with a message of which message_ is the part before.
message::Unreadable Session::unreadable(std::string_view text, std::size_t offset) const {
  message::Unreadable where = message::unreadable_at(text, offset, message_.size());
  where.cause = framing_->cause();
  return where;
}

// A byte that cannot be part of a message came behind message_ and `part`. False when no more input is to be read.
bool Session::refuse(ScanStatus status, std::string_view part, const message::Unreadable& where) {
  if (is_too_large(message_.size() + part.size())) {
    refuse_size();
    return false;
  }
  give_back(message_);
  dispatcher_.refuse_syntax(status, where);
  const Recovery recovery = framing_->recover(part);
  const bool hopeless = recovery == Recovery::close ||
                        (recovery == Recovery::resynchronise && ++unreadable_ >= kSyntaxErrorsInARowMax) ||
                        (caller_ != nullptr && caller_->waiting());
  if (hopeless) stop_reading(status == ScanStatus::too_deep ? CloseReason::too_deep : CloseReason::unreadable);
  return !hopeless;
}

void Session::refuse_size() {
  dispatcher_.refuse_size();
  stop_reading(CloseReason::too_large);
}

void Session::stop_reading(CloseReason why) {
  Channel::stop_reading(why);
  dispatcher_.peer_ended();
  if (caller_ != nullptr && caller_->waiting()) end(why);
}

void Session::input_complete() {
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

void Session::resume_message() {
  if (reads_long()) [[unlikely]]
    return resume_long();
  if (input_ended()) dispatcher_.refuse_open_batch();
  dispatcher_.resume_batch();
}

void Session::leave_message(std::vector<Buffer>& kept) {
  if (ended_by_zero_ != nullptr) *std::exchange(ended_by_zero_, nullptr) = behind_zero_;
  kept.push_back(std::move(message_));
  message_ = Buffer{};
}

// ---- output ----

Buffer& Session::open_message() {
  output();
  begin_ = out_.size();
  if (head_bytes_ != 0) {
    static_cast<void>(out_.reserve(head_bytes_));
    out_.grow(head_bytes_);
  }
  return out_;
}

// The only ways out. Towards a peer that may read lines each message is one line, or it would read what a handler or
// another peer has written behind a line break as a message of ours.
void Session::close_message_as(MessageForm form) {
  if (lines_) make_one_line(out_.data() + begin_, out_.data() + out_.size());
  close_compact_as(form);
}

void Session::close_compact_as(MessageForm form) {
  WIRECALL_DEBUG_ASSERT(!lines_ || !has_line_break(out_.view().substr(begin_)));
  ++host_->loop_context.stats.messages_out;
  try {
    if (head_bytes_ != 0) {
      if (form == MessageForm::transcoded && !transcode_output(begin_ + head_bytes_)) [[unlikely]]
        return discard_message();
      framing_->seal(out_, begin_);
    }
    if (tail_bytes_ == 1) [[likely]] {
      out_.push_back(tail_[0]);
    } else {
      out_.append({tail_, tail_bytes_});
    }
  } catch (const std::bad_alloc&) {
    return fail_out_of_memory();
  }
  output_grew(begin_);
}

// What is behind `at` becomes MessagePack. False when nothing is left to be sent.
bool Session::transcode_output(std::size_t at) {
  message::Transcoder& transcoder = host_->loop_context.codecs.transcoder();
  if (!rare().unsent) rare_->unsent = std::make_unique<Unsent>();
  Unsent& unsent = *rare_->unsent;
  Buffer& bytes = transcoder.scratch();
  bytes.clear();
  const bool any = transcoder.to_msgpack(out_.padded().substr(at), host_->limits, bytes, &unsent.streams);
  out_.truncate(at);
  if (any) out_.append(bytes.view());
  transcoder.shrink();
  for (std::string& news : transcoder.take_refusals()) {
    unsent.news.push_back(std::move(news));
    request_turn_end();
  }
  return any;
}

// Not where the message was written: whoever makes a request does not expect its answer before that is done.
void Session::on_turn_end() {
  if (!rare_ || !rare_->unsent) return;
  for (const std::string& news : std::exchange(rare_->unsent->news, {})) {
    Buffer text{news};
    Received message;
    const Scan scan = read_message(text.padded(), host_->limits, true, message);
    if (scan.status != ScanStatus::complete || over()) continue;
    if (message.kind == MessageKind::response) {
      accept_response(message);
    } else {
      dispatcher_.handle(message);
    }
  }
}

}  // namespace wirecall::session
