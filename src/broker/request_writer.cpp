// The part of the Router that hands on requests, items and results in MessagePack as they came, where both ends speak
// it, and makes JSON of them where they do not.
#include <algorithm>
#include <chrono>

#include "broker/outgoing.hpp"
#include "broker/router.hpp"
#include "message/msgpack_reply.hpp"
#include "message/transcoder.hpp"
#include "rpc/event_text.hpp"
#include "rpc/reply.hpp"
#include "wirecall/detail/bind.hpp"

namespace wirecall::broker {

using State = RelayedCall::State;

// Whether a call in MessagePack asks for progress.
bool Router::asks_for_progress(Call& call) {
  const std::string_view params = call.params();
  Reader& reader = call.reader();
  if (params.empty()) return false;
  reader.reset(params);
  if (reader.kind() != ValueKind::object) return false;
  static_cast<void>(reader.begin_object());
  for (std::string_view name; reader.next_member(name);) {
    if (name == detail::kProgressToken) return true;
    static_cast<void>(reader.skip());
  }
  return false;
}

// The same for a request in MessagePack, whose provider speaks that, too.
void Router::send_msgpack(SlotNumber slot, const Received& message, std::string_view from) {
  RelayedCall& call = calls_[slot];
  message::MsgpackEdits edits{.id = calls_.number_of(slot)};
  if (message.has(Member::timeout_ms) && call.deadline != kNoDeadline) edits.timeout_ms = milliseconds_left(call);
  if (!from.empty()) edits.from_json = value_of_from(from);
  if (message.has(Member::stream)) edits.stream = call.stream ? first_credit(call) : 0;
  rpc::MessageSink& sink = call.provider->peer->sink();
  append_message_as(sink, MessageForm::msgpack, [&](Buffer& out) {
    message::append_msgpack_request(out, message.text, edits, loop_context_->codecs.transcoder());
  });
  sent(slot);
}

// A request that has been kept: one in MessagePack as it is, where it `as_msgpack`, else in JSON. `message` views both
// texts.
std::optional<Error> Router::read_kept(std::string_view text, bool as_msgpack, Buffer& read, Received& message) {
  if (!message::is_msgpack(text[0])) [[likely]] {
    static_cast<void>(read_message(text, *limits_, true, message));
    return std::nullopt;
  }
  if (!as_msgpack) return read_as_json(text, read, message);
  static_cast<void>(loop_context_->codecs.transcoder().read(text, *limits_, read, message));  // as it has been before
  message::Transcoder::restore(text, message);
  message.text = text;
  return std::nullopt;
}

// What a request in MessagePack is in JSON, as which it goes on; or why it does not. `message` views `json`.
std::optional<Error> Router::read_as_json(std::string_view msgpack, Buffer& json, Received& message) {
  message::Transcoder& transcoder = loop_context_->codecs.transcoder();
  const auto status = transcoder.to_json(msgpack, *limits_, json);
  const std::vector<message::Unrepresentable> unrepresentable = transcoder.take_unrepresentable();
  if (!unrepresentable.empty()) return message::unrepresentable_params(unrepresentable.front().why);
  if (status != message::Transcoder::Status::done || json.size() > limits_->max_message_size)
    return message::too_large_as_json();
  // As JSON it may nest deeper: an object of one member whose name begins with `$` is wrapped there.
  const Scan scan = read_message(json.padded(), *limits_, true, message);
  if (scan.status != ScanStatus::complete)
    return message::unrepresentable_params("as JSON they nest deeper than a message may");
  return std::nullopt;
}

bool Router::takes_msgpack(const Peer& peer, const Received& message) noexcept {
  if (message.fault != Fault::none || !message.has(Member::result)) return false;
  const SlotNumber slot = calls_.find(message.id());
  if (slot == kNoSlot) return false;
  const RelayedCall& call = calls_[slot];
  if (call.provider->peer != &peer || call.state != State::sent) return false;
  // A subscription's id is read here: of values that have no kind of their own in JSON none is an id.
  if (call.caller == nullptr && call.extras->subscribing.caller != nullptr) return true;
  if (call.form == MessageForm::json) return false;
  if (call.caller != nullptr) return !call.stream || call.form == MessageForm::msgpack;
  return call.form == MessageForm::msgpack && !call.extras->call_all.results;
}

// What an item in MessagePack is in JSON, or why it has no form there. `plain` views `json`.
std::optional<Error> Router::item_as_json(const Received& message, Buffer& json, Received& plain) {
  Received unpacked = message;
  Buffer params;
  const std::string_view why = loop_context_->codecs.transcoder().unpack(unpacked, *limits_, params);
  if (!why.empty()) return message::unrepresentable_result(why);
  json = rpc::event_of(message.method(), unpacked.has(Member::params) ? unpacked[Member::params] : std::string_view{});
  if (json.size() > limits_->max_message_size) return rpc::reply_too_large();
  // As JSON it may nest deeper, as params may.
  const Scan scan = read_message(json.padded(), *limits_, true, plain);
  if (scan.status == ScanStatus::complete) return std::nullopt;
  return message::unrepresentable_result("as JSON it nests deeper than a message may");
}

}  // namespace wirecall::broker
