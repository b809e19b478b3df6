// See posted_message.hpp. The path that matters is `serve` of JSON that is answered at once: it copies nothing and
// allocates nothing. MessagePack goes the ways that MessageConnection has for it (connection/encoded_input.cpp).
#include "http/posted_message.hpp"

#include "framing/byte_order_mark.hpp"
#include "http/http_connection.hpp"

namespace wirecall::net {
namespace {

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

// Keeps an answer whose status is not known before it is there.
struct BufferedReply final : rpc::MessageSink {
  explicit BufferedReply(HttpConnection& owner) : connection(&owner) {}
  Buffer& open_message() override { return text; }
  void close_message() override {}
  void discard_message() noexcept override { text.clear(); }
  void lose_answer() noexcept override { lost = true; }
  [[nodiscard]] rpc::Share* share() noexcept override { return unbounded ? nullptr : &connection->own_share(); }
  [[nodiscard]] bool next_share() noexcept override { return connection->next_slice(); }

  HttpConnection* connection;
  Buffer text;
  bool lost = false;
  bool unbounded = false;  // of what costs little
};

}  // namespace

// A body, or what one of another encoding is in JSON; only that has `unrepresentable`.
struct PostedMessage::Read {
  std::string_view text;
  Scan scan;
  const Received& message;
  std::span<const Received> elements;
  const Unrepresentable* unrepresentable;
};

message::Transcoder& PostedMessage::transcoder(Encoding encoding) {
  return connection_->host().loop_context.codecs.transcoder(encoding);
}

// Has `dispatcher` serve the message that it is.
[[gnu::always_inline]] inline void PostedMessage::handle(rpc::Dispatcher& dispatcher, const Read& read) {
  Stats& stats = connection_->host().loop_context.stats;
  stats.messages_in += read.scan.status == ScanStatus::complete;
  if (read.scan.status != ScanStatus::complete) [[unlikely]] {
    dispatcher.refuse_syntax(read.scan.status, message::unreadable_at(read.text, read.scan.offset));
  } else if (read.message.kind == MessageKind::response) [[unlikely]] {
    ++stats.responses_dropped;
  } else if (read.unrepresentable != nullptr) [[unlikely]] {
    dispatcher.handle_transcoded(read.message, read.elements, *read.unrepresentable);
  } else {
    dispatcher.handle(read.message, read.elements);
  }
}

// Reads JSON, behind a byte order mark if need be, and serves it.
[[gnu::always_inline]] inline Scan PostedMessage::handle_text(rpc::Dispatcher& dispatcher, std::string_view text,
                                                              const Unrepresentable* unrepresentable,
                                                              Received& message) {
  Host& host = connection_->host();
  Scan scan = read_message(text, host.limits, true, message, *host.loop_context.codecs.elements);
  if (scan.status != ScanStatus::complete) [[unlikely]] {
    const std::size_t mark = framing::byte_order_mark_bytes(text);
    text.remove_prefix(mark);
    if (mark != 0) scan = read_message(text, host.limits, true, message, *host.loop_context.codecs.elements);
  }
  handle(dispatcher, {text, scan, message, *host.loop_context.codecs.elements, unrepresentable});
  return scan;
}

void PostedMessage::serve(std::span<char> body) {
  zero_ = body.data() + body.size();
  at_zero_ = std::exchange(*zero_, '\0');
  dispatch(body);
  restore_zero();
}

void PostedMessage::serve_kept() {
  static_cast<void>(kept_->padded());
  if (is_long()) [[unlikely]] {
    const Encoding encoding = encoding_of(kept_->view());
    return connection_->read_off_loop(std::exchange(*kept_, Buffer{}), encoding);
  }
  dispatch({kept_->data(), kept_->size()});
  connection_->give_back(*kept_);
}

void PostedMessage::leave(std::vector<Buffer>& kept) {
  restore_zero();
  kept.push_back(std::exchange(*kept_, Buffer{}));
}

void PostedMessage::resume() {
  if (connection_->has_long_message()) return resume_long();
  HttpTransaction& transaction = connection_->current();
  if (connection_->input_ended()) transaction.dispatcher.refuse_open_batch();
  transaction.dispatch([](rpc::Dispatcher& dispatcher) { dispatcher.resume_batch(); });
  if (connection_->over() || transaction.dispatcher.has_open_batch()) [[unlikely]]
    return;
  finish(batch_asks_);
}

// ---- what takes long to read ----

bool PostedMessage::is_long() const noexcept {
  return connection_->host().reads_off_loop(kept_->size()) && !connection_->is_draining();
}

void PostedMessage::resume_long() {
  const std::shared_ptr<LongMessage> read = connection_->take_long_message();
  if (!read) return;
  const Encoding encoding = read->encoding;
  const bool checked = encoding != Encoding::json && !read->transcoded;
  const Unrepresentable* const unrepresentable = read->transcoded ? &read->unrepresentable : nullptr;
  *kept_ = std::move(read->text);
  const std::span<char> text{kept_->data(), kept_->size()};
  if (checked) {
    dispatch_encoded(text, encoding, read->status, read->members);
  } else if (read->status != Status::done) {
    refuse_encoded(encoding, read->status);
  } else if (connection_->is_draining()) {
    dispatch_draining(kept_->view(), unrepresentable);
  } else {
    const std::string_view json = kept_->view().substr(read->mark);
    dispatch_by(read->message, [&](rpc::Dispatcher& dispatcher) {
      handle(dispatcher, {json, read->scan, read->message, {}, unrepresentable});
    });
  }
  connection_->give_back(*kept_);
}

// ---- dispatching ----

// Has `act` serve the message in the current transaction, which is finished unless the message is interrupted.
template <class Act>
[[gnu::always_inline]] inline void PostedMessage::dispatch_by(const Received& message, const Act& act) {
  HttpTransaction& transaction = connection_->current();
  transaction.dispatch(act);
  if (connection_->over()) [[unlikely]]
    return;
  if (transaction.is_answered()) [[likely]]
    return connection_->finish_transaction();
  batch_asks_ = asked_by(message) != 0;
  if (!transaction.dispatcher.has_open_batch()) finish(batch_asks_);
}

// The body has been served, though perhaps not answered.
void PostedMessage::finish(bool asks) {
  HttpTransaction& transaction = connection_->current();
  const bool asked = transaction.is_answered() || (asks && transaction.dispatcher.in_flight() != 0);
  if (!asked) transaction.respond_empty(connection_->settings().notification_status);
  connection_->finish_transaction();
}

Encoding PostedMessage::encoding_of(std::string_view text) const {
  return message::encoding_of(text, connection_->current().content_encoding());
}

[[gnu::always_inline]] inline void PostedMessage::dispatch(std::span<char> text) {
  if (text.empty() || message::encoding_of(text[0]) == Encoding::json) [[likely]]
    return dispatch_json({text.data(), text.size()}, nullptr);
  dispatch_binary(text);
}

// Most are requests that are read in the pass that checks them. The id of one lasts as long as a handler that reads it
// may run: on this stack.
void PostedMessage::dispatch_binary(std::span<char> bytes) {
  const std::string_view text{bytes.data(), bytes.size()};
  const Encoding encoding = encoding_of(text);
  if (encoding == Encoding::json) return dispatch_json(text, nullptr);
  HttpTransaction& transaction = connection_->current();
  const Host& host = connection_->host();
  transaction.brings(encoding);
  Received request;
  message::IdText id;
  if (transaction.answer_encoding() == encoding && !connection_->is_draining() &&
      transcoder(encoding).read_request(text, host.limits, id, request)) {
    ++host.loop_context.stats.messages_in;
    return dispatch_by(request, [&](rpc::Dispatcher& dispatcher) {
      dispatcher.answer_as(MessageForm::native(encoding));
      dispatcher.handle(request, {});
    });
  }
  message::EnvelopeMembers members;
  const Status status = transcoder(encoding).check(text, host.limits, members);
  dispatch_encoded(bytes, encoding, status, members);
}

void PostedMessage::dispatch_json(std::string_view text, const Unrepresentable* unrepresentable) {
  if (connection_->is_draining()) [[unlikely]]
    return dispatch_draining(text, unrepresentable);
  Received message;
  dispatch_by(message, [&](rpc::Dispatcher& dispatcher) {
    static_cast<void>(handle_text(dispatcher, text, unrepresentable, message));
  });
}

// What the body is in JSON takes its place, unless it can be served as it is.
void PostedMessage::dispatch_encoded(std::span<char> bytes, Encoding encoding, Status status,
                                     const message::EnvelopeMembers& members) {
  Host& host = connection_->host();
  HttpTransaction& transaction = connection_->current();
  transaction.brings(encoding);
  message::Transcoder& transcoder = this->transcoder(encoding);
  const message::NativeTranscoder* const native = transcoder.native();
  const EncodedText encoded{{bytes.data(), bytes.size()}, encoding};
  if (status == Status::done && native != nullptr && !connection_->is_draining()) {
    if (members.batch_size() > host.limits.batch) return dispatch_long_batch(encoded);
    using rpc::Passthrough;
    const bool asks = transaction.answer_encoding() == encoding && !native->has_response(encoded.text, members);
    const Passthrough passthrough = asks ? transaction.dispatcher.may_pass_through(encoded, members) : Passthrough::no;
    if (passthrough != Passthrough::no && dispatch_natively(encoded, members, passthrough == Passthrough::too_large))
      return;
  }
  if (status == Status::done && is_long()) [[unlikely]]
    return connection_->transcode_off_loop(std::exchange(*kept_, Buffer{}), encoding);
  Buffer json = host.loop.take_buffer();
  if (status == Status::done) status = transcoder.checked_to_json(encoded.text, host.limits, json);
  connection_->give_back(*kept_);
  *kept_ = std::move(json);
  if (status == Status::done) {
    const Unrepresentable unrepresentable = transcoder.take_unrepresentable();
    dispatch_json(kept_->padded(), &unrepresentable);
  } else {
    refuse_encoded(encoding, status);
  }
  connection_->give_back(*kept_);
}

// Params stay in the body, results are written as they are sent. False: it is for who reads it as JSON.
bool PostedMessage::dispatch_natively(EncodedText encoded, const message::EnvelopeMembers& members, bool too_large) {
  Host& host = connection_->host();
  Buffer envelope = host.loop.take_buffer();
  Received message;
  std::span<Received> elements{*host.loop_context.codecs.elements};
  message::NativeTranscoder& transcoder = host.loop_context.codecs.native(encoded.encoding);
  const Status status = transcoder.read(encoded.text, host.limits, envelope, message, elements, members);
  if (status != Status::done) {
    refuse_size();
    return true;
  }
  const bool takes = connection_->current().dispatcher.takes_encoded(message);
  if (takes) {
    ++host.loop_context.stats.messages_in;
    dispatch_by(message, [&](rpc::Dispatcher& dispatcher) {
      dispatcher.answer_as(MessageForm::native(encoded.encoding));
      dispatcher.handle_encoded(message, elements, encoded, too_large);
    });
  }
  connection_->give_back(envelope);
  return takes;
}

// Responses in it are left out: nobody waits for one here.
void PostedMessage::dispatch_long_batch(EncodedText encoded) {
  Host& host = connection_->host();
  Buffer text = host.loop.take_buffer();
  Received batch;
  message::NativeTranscoder& transcoder = host.loop_context.codecs.native(encoded.encoding);
  static_cast<void>(transcoder.read_long_batch(encoded.text, host.limits, false, text, batch));
  ++host.loop_context.stats.messages_in;
  dispatch_by(batch, [&](rpc::Dispatcher& dispatcher) { dispatcher.handle_transcoded(batch, {}, {}); });
  connection_->give_back(text);
}

// No handler runs any more. Where nothing but refusals is left to say, the status says so too.
void PostedMessage::dispatch_draining(std::string_view text, const Unrepresentable* unrepresentable) {
  Host& host = connection_->host();
  HttpTransaction& transaction = connection_->current();
  const std::uint64_t refused_before = host.loop_context.stats.errors_draining;
  BufferedReply answer{*connection_};
  rpc::Dispatcher dispatcher{host.registry, answer, host.limits, host.loop_context};
  if (host.loop_context.services.authority != nullptr) dispatcher.identify(connection_->principal(), {});
  dispatcher.drain();
  Received message;
  const bool read = handle_text(dispatcher, text, unrepresentable, message).status == ScanStatus::complete;
  if (dispatcher.has_open_batch()) {
    dispatcher.refuse_open_batch();
    answer.unbounded = true;
    dispatcher.resume_batch();
  }
  if (answer.lost) return connection_->fail_out_of_memory();
  const std::size_t asked = read ? asked_by(message) : 1;
  const bool refused = host.loop_context.stats.errors_draining - refused_before == asked;
  if (refused) transaction.fields += "Retry-After: 1\r\n";
  if (answer.text.empty()) {
    transaction.respond_empty(503);
    return connection_->finish_transaction();
  }
  ++host.loop_context.stats.messages_out;
  const Encoding encoding = transaction.answer_encoding();
  if (encoding != Encoding::json) static_cast<void>(transcoder(encoding).from_json_behind(0, host.limits, answer.text));
  transaction.respond(refused ? 503 : 200, answer.text.view(), media_type_of(encoding));
  connection_->finish_transaction();
}

// ---- refusing ----

void PostedMessage::refuse_encoded(Encoding encoding, Status status) {
  if (status == Status::too_large) return refuse_size();
  connection_->current().dispatch([&](rpc::Dispatcher& dispatcher) {
    dispatcher.refuse_syntax(scan_status_of(status), {.cause = transcoder(encoding).cause_of(status)});
  });
  connection_->finish_transaction();
}

void PostedMessage::refuse_size() {
  HttpTransaction& transaction = connection_->current();
  transaction.set_status(413);
  transaction.closes = true;
  transaction.dispatch([](rpc::Dispatcher& dispatcher) { dispatcher.refuse_size(); });
  connection_->finish_transaction();
}

}  // namespace wirecall::net
