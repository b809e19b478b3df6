// The part of MessageConnection that reads other encodings than JSON. Of what is for a method of this process, of
// awaited answers, and of what a broker hands on to those who speak the same, params and results stay as they are; the
// rest becomes JSON whole.

#include "connection/message_connection.hpp"
#include "connection/responses_received.hpp"
#include "rpc/message_sink.hpp"

namespace wirecall::net {

// Whether it may be an event for a consumer, by its id.
static bool may_be_of_consumer(const Received& message) noexcept {
  return message.kind == MessageKind::request && message.id().find(':') != std::string_view::npos;
}

// Most are read in the pass that checks them. The id of one lasts as long as a handler that reads it may run: on this
// stack.
bool MessageConnection::read_binary(std::span<char> frame, bool kept) {
  const std::string_view text{frame.data(), frame.size()};
  Received message;
  message::IdText id;
  if (transcoder().read_request(text, host_->limits, id, message) &&
      (caller_ == nullptr || (message.kind == MessageKind::request && !may_be_of_consumer(message)))) {
    dispatcher_.answer_as(MessageForm::native(encoding()));
    accept(message, {}, {}, false);
    if (lost_loop()) [[unlikely]]
      return false;
    if (kept) give_back(message_);
    return true;
  }
  if (caller_ == nullptr && dispatcher_.awaits_responses() &&
      transcoder().read_response(text, host_->limits, id, message) && takes_encoded(message)) {
    unreadable_ = 0;
    ++host_->loop_context.stats.messages_in;
    Responses{*this}.accept(message);
    if (lost_loop()) [[unlikely]]
      return false;
    if (kept) give_back(message_);
    return true;
  }
  message::EnvelopeMembers members;
  return read_checked(frame, kept, transcoder().check(text, host_->limits, members), members);
}

bool MessageConnection::read_checked(std::span<char> frame, bool kept, message::Transcoder::Status status,
                                     const message::EnvelopeMembers& members) {
  using message::Transcoder;
  using rpc::Passthrough;
  const std::string_view text{frame.data(), frame.size()};
  const message::NativeTranscoder* const native = transcoder().native();
  if (status == Transcoder::Status::done && native != nullptr) {
    if (members.batch_size() > host_->limits.batch) return read_long_batch(text, kept);
    const bool is_response = members.is_single() && native->has_response(text, members);
    const bool as_it_is = is_response || caller_ != nullptr;
    const Passthrough passthrough =
        as_it_is ? Passthrough::yes : dispatcher_.may_pass_through({text, encoding()}, members);
    if (passthrough != Passthrough::no)
      return read_encoded(frame, kept, members, passthrough == Passthrough::too_large);
  }
  return read_transcoded(frame, kept, status);
}

bool MessageConnection::read_long_batch(std::string_view long_batch, bool kept) {
  using Status = message::Transcoder::Status;
  Buffer text = host_->loop.take_buffer();
  Received batch;
  const Status status =
      native().read_long_batch(long_batch, host_->limits, Responses{*this}.are_awaited(), text, batch);
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
bool MessageConnection::read_encoded(std::span<char> frame, bool kept, const message::EnvelopeMembers& members,
                                     bool too_large) {
  using message::Transcoder;
  const EncodedText encoded{{frame.data(), frame.size()}, encoding()};
  Buffer envelope = host_->loop.take_buffer();
  Received message;
  std::span<Received> elements{*host_->loop_context.codecs.elements};
  const auto status = native().read(encoded.text, host_->limits, envelope, message, elements, members);
  if (status != Transcoder::Status::done) {
    give_back(envelope);
    return read_transcoded(frame, kept, Transcoder::Status::done);  // which says why
  }
  const bool response = message.kind == MessageKind::response;
  const bool for_caller = response || (caller_ != nullptr && message.kind == MessageKind::notification);
  if (!takes_encoded(message)) {
    give_back(envelope);
    return read_transcoded(frame, kept, Transcoder::Status::done);
  }
  unreadable_ = 0;
  ++host_->loop_context.stats.messages_in;
  if (for_caller) {
    message::NativeTranscoder::restore(encoded.encoding, encoded.text, message);
    message.text = encoded.text;
  }
  const bool batch = message.kind == MessageKind::batch;
  if (batch && caller_ != nullptr) Responses{*this}.accept_all(message, encoded);
  if (message.kind == MessageKind::request || (batch ? !over() : accept_other(message))) {
    dispatcher_.answer_as(MessageForm::native(encoded.encoding));
    dispatcher_.handle_encoded(message, elements, encoded, too_large);
  }
  if (lost_loop()) [[unlikely]]
    return false;
  give_back(envelope);
  if (kept) give_back(message_);
  return true;
}

// Events and the like are for the caller in JSON.
bool MessageConnection::takes_encoded(const Received& message) {
  if (caller_ != nullptr && may_be_of_consumer(message)) return false;
  const bool asks = message.kind != MessageKind::response && message.kind != MessageKind::notification;
  if (caller_ != nullptr && !asks) return caller_->takes_encoded(message);
  return dispatcher_.takes_encoded(message);
}

// What the frame is in JSON takes its place, as a message that has been kept. `status` is what Transcoder::check says.
bool MessageConnection::read_transcoded(std::span<char> frame, bool kept, message::Transcoder::Status status) {
  using Status = message::Transcoder::Status;
  if (kept && status == Status::done && host_->reads_off_loop(frame.size())) [[unlikely]] {
    transcode_off_loop(std::exchange(message_, Buffer{}), encoding());
    return false;
  }
  message::Transcoder& transcoder = this->transcoder();
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

bool MessageConnection::refuse_transcoded(message::Transcoder::Status status) {
  using Status = message::Transcoder::Status;
  give_back(message_);
  if (status != Status::too_large) return refuse(scan_status_of(status), {}, {.cause = transcoder().cause_of(status)});
  refuse_size();
  return false;
}

}  // namespace wirecall::net
