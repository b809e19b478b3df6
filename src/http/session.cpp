// See session.hpp. What a request is answered is decided in http_requests.cpp. The path that matters: read_head,
// begin_request and dispatch of a POST whose body has come with its head, answered at once; it copies nothing and
// allocates nothing. Everything else is for the rare and the hostile.
#include "http/session.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "framing/byte_order_mark.hpp"
#include "http/events.hpp"
#include "http/transaction.hpp"
#include "message/explain.hpp"
#include "rpc/memory_budget.hpp"

namespace wirecall::session {
namespace {

using framing::Find;
using framing::Found;
using framing::HttpHead;
using framing::HttpHeadRead;
using std::chrono::milliseconds;

// Transactions of one connection that wait: beyond them it is not read, since their responses have an order anyway.
constexpr std::size_t kWaitingMax = 256;
// A body that brings less than this within Limits::header_timeout_ms is given up.
constexpr std::size_t kBodyBytesMin = 4096;

// What lists all there is has no other bound.
constexpr std::size_t kRenderedBytesMax = ~std::size_t{0};
// A step of the share pays for more bytes of a response that is there already.
constexpr std::size_t kBytesCopiedInStep = 1024;

// How many answers a message asks for.
std::size_t asked_by(const Received& message) {
  if (message.kind != MessageKind::batch) {
    return message.kind == MessageKind::request || message.kind == MessageKind::invalid ? 1 : 0;
  }
  std::size_t asked = 0;
  BatchElements elements{message.text};
  for (Received element; elements.next(element);) asked += asked_by(element);
  return asked;
}

// A body, or what one of MessagePack is in JSON; only that has `unrepresentable`.
struct ReadBody {
  std::string_view text;
  Scan scan;
  const Received& message;
  std::span<const Received> elements;
  const std::vector<message::Unrepresentable>* unrepresentable;
};

// Has `dispatcher` serve the message that it is.
[[gnu::always_inline]] inline void serve(Host& host, rpc::Dispatcher& dispatcher, const ReadBody& body) {
  host.loop_context.stats.messages_in += body.scan.status == ScanStatus::complete;
  if (body.scan.status != ScanStatus::complete) [[unlikely]] {
    dispatcher.refuse_syntax(body.scan.status, message::unreadable_at(body.text, body.scan.offset));
  } else if (body.message.kind == MessageKind::response) [[unlikely]] {
    ++host.loop_context.stats.responses_dropped;
  } else if (body.unrepresentable != nullptr) [[unlikely]] {
    dispatcher.handle_transcoded(body.message, body.elements, *body.unrepresentable);
  } else {
    dispatcher.handle(body.message, body.elements);
  }
}

[[gnu::always_inline]] inline Scan serve(Host& host, rpc::Dispatcher& dispatcher, std::span<char> text,
                                         const std::vector<message::Unrepresentable>* unrepresentable,
                                         Received& message) {
  Scan scan = read_message({text.data(), text.size()}, host.limits, true, message, *host.loop_context.codecs.elements);
  if (scan.status != ScanStatus::complete) [[unlikely]] {
    const std::size_t mark = framing::byte_order_mark_bytes({text.data(), text.size()});
    text = text.subspan(mark);
    if (mark != 0)
      scan = read_message({text.data(), text.size()}, host.limits, true, message, *host.loop_context.codecs.elements);
  }
  serve(host, dispatcher,
        {{text.data(), text.size()}, scan, message, *host.loop_context.codecs.elements, unrepresentable});
  return scan;
}

}  // namespace

// Keeps an answer whose status is not known before it is there.
struct HttpSession::BufferedReply final : rpc::MessageSink {
  explicit BufferedReply(HttpSession& owner) : session(&owner) {}
  Buffer& open_message() override { return text; }
  void close_message() override {}
  void discard_message() noexcept override { text.clear(); }
  void lose_answer() noexcept override { lost = true; }
  [[nodiscard]] rpc::Share* share() noexcept override { return unbounded ? nullptr : &session->own_share(); }
  [[nodiscard]] bool next_share() noexcept override { return session->next_slice(); }

  HttpSession* session;
  Buffer text;
  bool lost = false;
  bool unbounded = false;  // of what costs little
};

// The beginning of a head, before which nobody knows who sends it (Limits::unidentified_bytes).
class HttpSession::HeldHead final : public rpc::MemoryConsumer {
 public:
  explicit HeldHead(HttpSession& session) : session_(&session) {}

 private:
  void evict() override { session_->drop_head(); }

  HttpSession* session_;
};

HttpSession::HttpSession(Host& host, const HttpSettings& settings, std::unique_ptr<transport::ByteStream> stream)
    : Channel(host, std::move(stream)), settings_(&settings) {}

HttpSession::~HttpSession() {
  if (long_message_) long_message_->forget();
  host_->loop.stop(*this);
  give_back(head_);
  give_back(body_);
}

void HttpSession::drain() noexcept {
  draining_ = true;
  if (events_) events_->dispatcher.peer_ended();
  Channel::drain();
}

void HttpSession::stop_calls() noexcept {
  if (current_ != nullptr) current_->dispatcher.stop_calls();  // its handler is off the loop
  for (const auto* transactions : {&waiting_, &silent_}) {
    for (const auto& transaction : *transactions) transaction->dispatcher.stop_calls();
  }
}

std::size_t HttpSession::kept_bytes() const noexcept {
  return held_by(head_) + held_by(body_) + held_bytes_ + (rendering_ ? rendering_->text().size() : 0) +
         (load_ ? load_->held_bytes + load_->batch_bytes : 0) + (long_message_ ? long_message_->bytes() : 0);
}

std::shared_ptr<rpc::Account> HttpSession::account() {
  return load_ && load_->calls.account() ? load_->calls.account() : current().dispatcher.account();
}

// Part of a body has been kept.
void HttpSession::weigh_body() noexcept {
  if (held_by(body_) > kWeighedBytes) weigh();
}

bool HttpSession::working() const noexcept {
  return !waiting_.empty() ||
         std::ranges::any_of(silent_, [](const auto& transaction) { return transaction->dispatcher.in_flight() != 0; });
}

void HttpSession::abandon() noexcept {
  host_->loop.stop(*this);
  if (events_) events_->dispatcher.abandon();
  if (current_ != nullptr) current_->dispatcher.abandon();
  for (const auto* transactions : {&waiting_, &silent_}) {
    for (const auto& transaction : *transactions) {
      if (transaction != nullptr) transaction->dispatcher.abandon();  // null: where release_answered ran out of memory
    }
  }
}

// ---- reading ----

std::size_t HttpSession::read(std::span<char> input) {
  std::size_t at = 0;
  if (events_) [[unlikely]]
    return input.size();
  while (at < input.size() && !input_ended() && !backpressured()) {
    const std::span<char> rest = input.subspan(at);
    at_ = at;
    if (reading_ == Body::none) {
      if (!may_dispatch(at)) break;
      at += read_head(rest);
    } else if (reading_ == Body::length) {
      at += read_length(rest);
    } else {
      at += read_chunks(rest);
    }
    if (lost_loop()) [[unlikely]]
      return at;
    if (events_) [[unlikely]]
      return input.size();
  }
  if (pacing_ || reading_ != Body::none || !head_.empty()) [[unlikely]]
    watch_pace();
  return at;
}

std::size_t HttpSession::read_head(std::span<char> input) {
  HttpHead head;
  std::string_view text{input.data(), input.size()};
  const std::size_t bytes_max = host_->limits.header_bytes;
  const std::size_t kept = head_.size();
  if (kept != 0) [[unlikely]] {
    head_.append(text.substr(0, bytes_max + 1 - kept));
    text = head_.view();
  }
  const HttpHeadRead read = read_http_head(text, bytes_max, head);
  if (read.status != 0) [[unlikely]] {
    refuse_and_close(read.status, read.cause);
    return input.size();
  }
  if (read.size == 0) [[unlikely]] {
    if (kept == 0) {
      head_ = host_->loop.take_buffer();
      head_.append(text);
    }
    hold_head();
    return input.size();
  }
  held_head_.reset();
  const std::size_t used = read.size - kept;
  mark_consumed(at_ + used);
  begin_request(head, used < input.size());
  if (kept != 0) give_back(head_);
  return used;
}

// May close this connection, or others that hold more.
void HttpSession::hold_head() {
  rpc::LoopContext& loop_context = host_->loop_context;
  if (loop_context.services.authority == nullptr || principal_ != nullptr) [[likely]]
    return;
  if (!held_head_) held_head_ = std::make_unique<HeldHead>(*this);
  loop_context.budgets.unidentified.hold(*held_head_, head_.size(), host_->limits.unidentified_bytes);
}

void HttpSession::drop_head() {
  give_back(head_);
  stop_reading(CloseReason::refused);
}

std::size_t HttpSession::read_length(std::span<char> input) {
  const std::size_t here = std::min(left_, input.size());
  const bool complete = here == left_;
  left_ -= here;
  paced_bytes_ += here;
  if (complete) reading_ = Body::none;
  if (discards_) [[unlikely]] {
    discards_ = !complete;
    return here;
  }
  if (complete && body_.empty()) [[likely]] {
    // What stands behind the body belongs to the next request; the scanner wants a zero there.
    char& behind = *(input.data() + here);
    mark_consumed(at_ + here);
    ended_by_zero_ = &behind;
    behind_zero_ = std::exchange(behind, '\0');
    dispatch(input.first(here));
    if (ended_by_zero_ != nullptr) *std::exchange(ended_by_zero_, nullptr) = behind_zero_;
    return here;
  }
  if (body_.capacity() == 0) body_ = host_->loop.take_buffer();
  body_.append({input.data(), here});
  weigh_body();
  mark_consumed(at_ + here);
  if (complete) dispatch_kept();
  return here;
}

std::size_t HttpSession::read_chunks(std::span<char> input) {
  const Found found = chunks_.next({input.data(), input.size()});
  const std::size_t used = found.skip + found.size;
  paced_bytes_ += found.size;
  mark_consumed(at_ + used);
  switch (found.find) {
    case Find::part:
      if (discards_) {
        left_ += found.size;
        if (left_ > kDiscardedBytesMax) stop_reading(CloseReason::finished);
      } else if (body_.size() + found.size > host_->limits.max_message_size) {
        body_too_large();
      } else {
        if (body_.capacity() == 0) body_ = host_->loop.take_buffer();
        body_.append({input.data() + found.skip, found.size});
        weigh_body();
      }
      break;
    case Find::message:
      reading_ = Body::none;
      if (!std::exchange(discards_, false)) dispatch_kept();
      break;
    case Find::malformed:
      if (discards_) {
        stop_reading(CloseReason::unreadable);
      } else {
        refuse_and_close(400, "a chunk that is malformed");
      }
      return input.size();
    default:
      break;
  }
  return used;
}

// Its response is due before all others: so nothing that follows is read until it has come.
void HttpSession::leave_message(std::vector<Buffer>& kept) {
  if (ended_by_zero_ != nullptr) *std::exchange(ended_by_zero_, nullptr) = behind_zero_;
  kept.push_back(std::exchange(body_, Buffer{}));
  kept.push_back(std::exchange(head_, Buffer{}));
  block();
}

// Nothing follows: what has not ended now is none.
void HttpSession::input_complete() {
  if (events_) return events_->dispatcher.peer_ended();
  for (const auto* transactions : {&waiting_, &silent_}) {
    for (const auto& transaction : *transactions) {
      if (transaction != nullptr) transaction->dispatcher.peer_ended();
    }
  }
  const bool unfinished = !head_.empty() || (reading_ != Body::none && !discards_);
  if (unfinished) refuse_and_close(400, "the connection ended within the request");
}

// A request that has begun has to come in time: its head as a whole, its body bit by bit.
void HttpSession::watch_pace() {
  const bool needed = !input_ended() && (reading_ != Body::none || !head_.empty());
  if (needed == pacing_) return;
  pacing_ = needed;
  paced_bytes_ = 0;
  if (!needed) return host_->loop.stop(*this);
  host_->loop.start(*this, milliseconds{host_->limits.header_timeout_ms});
}

void HttpSession::expired() {
  if (events_) return within_memory([&] { comment_events(); });
  pacing_ = false;
  if (over() || input_ended() || off_loop() != 0) return;
  const bool comes = reading_ != Body::none && (paced_bytes_ >= kBodyBytesMin || backpressured());
  if (comes) return within_memory([&] { watch_pace(); });
  if (discards_) return stop_reading(CloseReason::silent);
  ++host_->loop_context.stats.connections_timed_out;
  within_memory([&] { refuse_and_close(408, "the request did not come in time"); });
}

// ---- dispatching ----

void HttpSession::dispatch_kept() {
  // A peer that has sent no body gets what no message is answered.
  static_cast<void>(body_.padded());
  if (body_.size() > kLongMessageBytes && host_->long_reader != nullptr && !draining_) [[unlikely]]
    return host_->long_reader->read(begin_long());
  dispatch({body_.data(), body_.size()});
  give_back(body_);
}

// As Session has it: no request that follows is read until the body has been.
const std::shared_ptr<LongMessage>& HttpSession::begin_long() {
  long_message_ = std::make_shared<LongMessage>(std::exchange(body_, Buffer{}), host_->limits,
                                                LongMessage::Sender{.account = account(),
                                                                    .received_at = input_received_at(),
                                                                    .hold = hold_input(),
                                                                    .then = [this] { interrupt(); }});
  return long_message_;
}

void HttpSession::resume_long() {
  const std::shared_ptr<LongMessage> read = std::exchange(long_message_, nullptr);
  if (input_ended()) return;
  if (read->out_of_memory) throw std::bad_alloc{};
  set_input_received_at(read->received_at);
  const bool checked = read->is_msgpack() && !read->transcoded;
  body_ = std::move(read->text);
  const std::span<char> text{body_.data(), body_.size()};
  if (checked) {
    dispatch_checked(text, read->status, read->members);
    return give_back(body_);
  }
  if (read->status != LongMessage::Status::done) {
    refuse_msgpack(read->status);
  } else if (draining_) {
    dispatch_draining(text, read->transcoded ? &read->unrepresentable : nullptr);
  } else {
    HttpTransaction& transaction = current();
    transaction.dispatching = true;
    serve(*host_, transaction.dispatcher,
          {.text = std::string_view{text.data(), text.size()}.substr(read->mark),
           .scan = read->scan,
           .message = read->message,
           .elements = {},
           .unrepresentable = read->transcoded ? &read->unrepresentable : nullptr});
    transaction.dispatching = false;
    if (!over()) [[likely]]
      finish_dispatch(read->message);
  }
  give_back(body_);
}

void HttpSession::dispatch(std::span<char> text) {
  if (!text.empty() && message::is_msgpack(text[0])) [[unlikely]]
    return dispatch_msgpack(text);
  dispatch_json(text, nullptr);
}

void HttpSession::dispatch_msgpack(std::span<char> bytes) {
  message::MsgpackMembers members;
  const auto status = message::Transcoder::check({bytes.data(), bytes.size()}, host_->limits, members);
  dispatch_checked(bytes, status, members);
}

// What the body is in JSON takes its place.
void HttpSession::dispatch_checked(std::span<char> bytes, message::Transcoder::Status status,
                                   const message::MsgpackMembers& members) {
  using Status = message::Transcoder::Status;
  HttpTransaction& transaction = current();
  if (!transaction.as_asked) transaction.msgpack = true;
  message::Transcoder& transcoder = host_->loop_context.codecs.transcoder();
  const std::string_view msgpack{bytes.data(), bytes.size()};
  if (status == Status::done && !draining_) {
    if (transcoder.is_long_batch(msgpack, host_->limits)) return dispatch_long_batch(msgpack);
    using rpc::Passthrough;
    const bool asks = transaction.msgpack && !transcoder.has_response(msgpack, members);
    const Passthrough passthrough = asks ? transaction.dispatcher.may_pass_through(msgpack, members) : Passthrough::no;
    if (passthrough != Passthrough::no && dispatch_as_msgpack(msgpack, members, passthrough == Passthrough::too_large))
      return;
  }
  if (status == Status::done && body_.size() > kLongMessageBytes && host_->long_reader != nullptr && !draining_)
      [[unlikely]]
    return host_->long_reader->transcode(begin_long());
  Buffer json = host_->loop.take_buffer();
  if (status == Status::done) status = transcoder.checked_to_json(msgpack, host_->limits, json);
  give_back(body_);
  body_ = std::move(json);
  if (status == Status::done) {
    const std::vector<message::Unrepresentable> unrepresentable = transcoder.take_unrepresentable();
    static_cast<void>(body_.padded());
    dispatch_json({body_.data(), body_.size()}, &unrepresentable);
  } else {
    refuse_msgpack(status);
  }
  give_back(body_);
}

void HttpSession::refuse_msgpack(message::Transcoder::Status status) {
  using Status = message::Transcoder::Status;
  if (status == Status::too_large) return body_too_large();
  HttpTransaction& transaction = current();
  transaction.dispatching = true;
  transaction.dispatcher.refuse_syntax(status == Status::too_deep ? ScanStatus::too_deep : ScanStatus::malformed,
                                       {.cause = message::Transcoder::cause_of(status)});
  transaction.dispatching = false;
  finish_transaction();
}

void HttpSession::dispatch_long_batch(std::string_view msgpack) {
  Buffer text = host_->loop.take_buffer();
  Received batch;
  // Responses are left out: nobody waits for one here.
  static_cast<void>(
      host_->loop_context.codecs.transcoder().read_long_batch(msgpack, host_->limits, false, text, batch));
  ++host_->loop_context.stats.messages_in;
  HttpTransaction& transaction = current();
  transaction.dispatching = true;
  transaction.dispatcher.handle_transcoded(batch, {}, {});
  transaction.dispatching = false;
  if (!over()) [[likely]]
    finish_dispatch(batch);
  give_back(text);
}

// As Session::read_as_msgpack: params stay in the body, results are written as they are sent.
// False: it is for who reads it as JSON.
bool HttpSession::dispatch_as_msgpack(std::string_view msgpack, const message::MsgpackMembers& members,
                                      bool too_large) {
  Buffer envelope = host_->loop.take_buffer();
  Received message;
  std::span<Received> elements{*host_->loop_context.codecs.elements};
  const auto status =
      host_->loop_context.codecs.transcoder().read(msgpack, host_->limits, envelope, message, elements, members);
  if (status != message::Transcoder::Status::done) {
    body_too_large();
    return true;
  }
  if (!current().dispatcher.takes_msgpack(message)) {
    give_back(envelope);
    return false;
  }
  ++host_->loop_context.stats.messages_in;
  HttpTransaction& transaction = current();
  transaction.dispatching = true;
  transaction.dispatcher.answer_as(MessageForm::msgpack);
  transaction.dispatcher.handle_msgpack(message, elements, msgpack, too_large);
  transaction.dispatching = false;
  if (over()) [[unlikely]]
    return true;
  finish_dispatch(message);
  give_back(envelope);
  return true;
}

void HttpSession::dispatch_json(std::span<char> text, const std::vector<message::Unrepresentable>* unrepresentable) {
  if (draining_) [[unlikely]]
    return dispatch_draining(text, unrepresentable);
  HttpTransaction& transaction = current();
  Received message;
  transaction.dispatching = true;
  static_cast<void>(serve(*host_, transaction.dispatcher, text, unrepresentable, message));
  transaction.dispatching = false;
  if (over()) [[unlikely]]
    return;
  finish_dispatch(message);
}

// The body has been served, though perhaps not answered.
void HttpSession::finish_dispatch(const Received& message) {
  const HttpTransaction& transaction = current();
  if (transaction.answered) [[likely]]
    return finish_transaction();
  batch_asks_ = asked_by(message) != 0;
  if (!transaction.dispatcher.has_open_batch()) finish_dispatched(batch_asks_);
}

void HttpSession::finish_dispatched(bool asks) {
  const HttpTransaction& transaction = current();
  const bool asked = transaction.answered || (asks && transaction.dispatcher.in_flight() != 0);
  if (!asked) return respond_empty(settings_->notification_status);
  finish_transaction();
}

void HttpSession::resume_message() {
  if (rendering_) return respond_rendered();
  if (long_message_) return resume_long();
  HttpTransaction& transaction = current();
  if (input_ended()) transaction.dispatcher.refuse_open_batch();
  transaction.dispatching = true;
  transaction.dispatcher.resume_batch();
  transaction.dispatching = false;
  if (over() || transaction.dispatcher.has_open_batch()) [[unlikely]]
    return;
  finish_dispatched(batch_asks_);
}

// No handler runs any more. Where nothing but refusals is left to say, the status says so too.
void HttpSession::dispatch_draining(std::span<char> text,
                                    const std::vector<message::Unrepresentable>* unrepresentable) {
  const std::uint64_t refused_before = host_->loop_context.stats.errors_draining;
  BufferedReply answer{*this};
  rpc::Dispatcher dispatcher{host_->registry, answer, host_->limits, host_->loop_context};
  if (host_->loop_context.services.authority != nullptr) dispatcher.identify(principal_, {});
  dispatcher.drain();
  Received message;
  const bool read = serve(*host_, dispatcher, text, unrepresentable, message).status == ScanStatus::complete;
  if (dispatcher.has_open_batch()) {
    dispatcher.refuse_open_batch();
    answer.unbounded = true;
    dispatcher.resume_batch();
  }
  if (answer.lost) return fail_out_of_memory();
  const std::size_t asked = read ? asked_by(message) : 1;
  const bool refused = host_->loop_context.stats.errors_draining - refused_before == asked;
  if (refused) current().fields += "Retry-After: 1\r\n";
  if (answer.text.empty()) return respond_empty(503);
  ++host_->loop_context.stats.messages_out;
  if (!current().msgpack) return respond(refused ? 503 : 200, answer.text.view(), kJsonType);
  Buffer bytes;
  static_cast<void>(host_->loop_context.codecs.transcoder().to_msgpack(answer.text.padded(), host_->limits, bytes));
  respond(refused ? 503 : 200, bytes.view(), kMsgpackType);
}

// Answered as a message that is too large, and nothing more is read.
void HttpSession::body_too_large() {
  HttpTransaction& transaction = current();
  transaction.status = 413;
  transaction.closes = transaction.dispatching = true;
  transaction.dispatcher.refuse_size();
  transaction.dispatching = false;
  finish_transaction();
}

// ---- answering ----

HttpSession::HttpTransaction& HttpSession::current() {
  if (current_ == nullptr) [[unlikely]]
    current_ = std::make_unique<HttpTransaction>(*this);
  return *current_;
}

void HttpSession::respond(std::uint16_t status, std::string_view body, std::string_view content_type) {
  HttpTransaction& transaction = current();
  transaction.answer([&](Buffer& out) {
    write_response(out,
                   {.status = status,
                    .content_type = content_type,
                    .fields = transaction.fields,
                    .closes = transaction.closes,
                    .keeps_alive = transaction.keeps_alive},
                   body, transaction.head_only);
  });
  finish_transaction();
}

void HttpSession::respond(std::unique_ptr<rpc::Rendering> text, std::string_view content_type) {
  rendering_ = std::move(text);
  rendering_type_ = content_type;
  respond_rendered();
}

// In this turn or a later one.
void HttpSession::respond_rendered() {
  if (!rendering_->advance(current(), kRenderedBytesMax)) {
    if (rendering_->text().size() > kWeighedBytes) weigh();
    return interrupt();
  }
  const std::unique_ptr<rpc::Rendering> done = std::move(rendering_);
  current().charge(done->text().size() / kBytesCopiedInStep);
  respond(200, done->text(), rendering_type_);
}

void HttpSession::respond_empty(std::uint16_t status) {
  HttpTransaction& transaction = current();
  transaction.answer([&](Buffer& out) {
    write_empty_response(out, {.status = status,
                               .fields = transaction.fields,
                               .closes = transaction.closes,
                               .keeps_alive = transaction.keeps_alive});
  });
  finish_transaction();
}

void HttpSession::refuse(std::uint16_t status, std::string_view cause) {
  rpc::Refusals& refusals = host_->loop_context.refusals;
  if (status == 400 && refusals.wants_reason()) refusals.log_http(cause);
  std::string text{reason_of(status)};
  text.append(": ").append(cause).append("\n");
  respond(status, text);
}

void HttpSession::refuse_and_close(std::uint16_t status, std::string_view cause) {
  current().closes = true;
  refuse(status, cause);
}

// The current request has been dispatched: its transaction waits, or is free for the next.
void HttpSession::finish_transaction() {
  HttpTransaction& transaction = *current_;
  const bool closes = transaction.closes;
  if (transaction.answered && waiting_.empty() && transaction.held.empty()) [[likely]] {
    if (transaction.dispatcher.in_flight() != 0) [[unlikely]] {
      keep_silent(std::move(current_));
    } else {
      transaction.answered = transaction.closes = transaction.keeps_alive = transaction.head_only = false;
      transaction.msgpack = transaction.as_asked = false;
      transaction.status = 200;
      transaction.fields.clear();
      transaction.dispatcher.limit_timeout(rpc::Dispatcher::kNoTimeout);
      transaction.dispatcher.answer_as(MessageForm::json);
    }
  } else {
    if (transaction.answered) request_turn_end();
    waiting_.push_back(std::move(current_));
    if (waiting_.size() >= kWaitingMax || held_bytes_ > host_->limits.soft_output) block();
  }
  if (closes) [[unlikely]]
    stop_reading(CloseReason::finished);
}

// Those that are done say nothing: they are removed when another one is to be kept.
void HttpSession::keep_silent(std::unique_ptr<HttpTransaction> transaction) {
  if (silent_.size() == silent_.capacity())
    std::erase_if(silent_, [](const auto& other) { return other->dispatcher.in_flight() == 0; });
  silent_.push_back(std::move(transaction));
}

// At the end of a turn in which a response has come that was waited for.
void HttpSession::on_turn_end() {
  release_answered();
  std::erase_if(silent_, [](const auto& transaction) { return transaction->dispatcher.in_flight() == 0; });
  if (waiting_.empty() && std::exchange(continue_due_, false) && reading_ != Body::none) continue_body(false);
  if (waiting_.size() <= kWaitingMax / 2 && held_bytes_ <= host_->limits.soft_output && off_loop() == 0) unblock();
}

void HttpSession::release_answered() {
  std::size_t gone = 0;
  for (; gone != waiting_.size() && waiting_[gone]->answered; ++gone) {
    HttpTransaction& transaction = *waiting_[gone];
    const std::size_t waiting = output().size();
    held_bytes_ -= transaction.held.size();
    if (waiting == 0) {
      std::swap(out_, transaction.held);
    } else {
      out_.append(transaction.held.view());
    }
    give_back(transaction.held);
    output_grew(waiting);
    if (transaction.dispatcher.in_flight() != 0) keep_silent(std::move(waiting_[gone]));
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(gone));
}

}  // namespace wirecall::session
