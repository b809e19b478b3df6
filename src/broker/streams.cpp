// See streams.hpp.
#include "broker/streams.hpp"

#include "broker/outgoing.hpp"
#include "broker/stream_request.hpp"
#include "message/call_text.hpp"

namespace wirecall::broker {

using State = RelayedCall::State;

constexpr std::string_view kIdName = "id";
constexpr std::string_view kTokenName = "token";
constexpr std::string_view kValueName = "value";

static std::string_view unquoted(std::string_view json) noexcept {
  return json.size() >= 2 && json.front() == '"' ? json.substr(1, json.size() - 2) : json;
}

// ---- back to the caller ----

bool Streams::item(const Peer& peer, const Received& message) {
  const ItemParts parts = parts_of(message, false);
  const SlotNumber slot = find_asked(message, parts);
  if (!is_streaming(peer, slot)) return false;
  if (admit_item(slot, message.text.size(), true)) pass_item(slot, message, parts);
  return true;
}

void Streams::progress(const Peer& peer, const Received& message) {
  const ItemParts parts = parts_of(message, true);
  const SlotNumber slot = find_asked(message, parts);
  if (!is_streaming(peer, slot) || calls_[slot].stream->token.empty()) return;
  calls_[slot].stream->without_credit = true;
  if (!admit_item(slot, message.text.size(), false)) return;
  pass_item(slot, message, parts);
}

Streams::ItemParts Streams::parts_of(const Received& message, bool by_token) const {
  Reader& reader = *context_->loop.codecs.readers_of(message.encoding).reader;
  const auto [named, value] = members_of<2>(reader, message.params(), {by_token ? kTokenName : kIdName, kValueName});
  return {.name = named, .value = value, .by_token = by_token};
}

// The call that a provider names by the number, or by the token, that it was asked with.
SlotNumber Streams::find_asked(const Received& message, const ItemParts& parts) noexcept {
  if (message.is_json()) return parts.by_token ? calls_.find_number(unquoted(parts.name)) : calls_.find(parts.name);
  if (parts.name.empty()) return kNoSlot;
  Reader& reader = *context_->loop.codecs.readers_of(message.encoding).reader;
  reader.reset(parts.name);
  std::string_view text;
  if (reader.kind() == ValueKind::string && reader.read_string(text)) {
    const SlotNumber slot = calls_.find_number(text);
    const bool named_so = slot != kNoSlot && (parts.by_token || calls_[slot].input);
    return named_so ? slot : kNoSlot;
  }
  std::uint64_t number = 0;
  const bool is_number = reader.kind() == ValueKind::number && !reader.next_is_float() &&
                         reader.read_uint(std::numeric_limits<std::uint64_t>::max(), number);
  reader.clear_failure();
  return is_number ? calls_.find(Digits{number}.view()) : kNoSlot;
}

bool Streams::is_streaming(const Peer& provider, SlotNumber slot) noexcept {
  if (slot == kNoSlot) return false;
  const RelayedCall& call = calls_[slot];
  return call.state == State::sent && call.stream && call.provider->peer == &provider;
}

// Counts the item. One that came without credit, where there is no room for it, ends its stream: who does not wait
// cannot be made to, and its caller must not be cut for that.
bool Streams::admit_item(SlotNumber slot, std::size_t bytes, bool with_credit) {
  const RelayedCall& call = calls_[slot];
  RelayedStream& stream = *call.stream;
  stream.item_bytes = std::max(stream.item_bytes, bytes);
  if (with_credit && stream.credit != 0) {
    --stream.credit;
    return true;
  }
  const bool wanted = !with_credit || stream.withheld != 0;
  if (wanted && call.caller->sink().waiting_bytes() <= context_->limits.soft_output) {
    if (with_credit) --stream.withheld;
    return true;
  }
  relay_->give_up(slot, context_->errors.overrun);
  return false;
}

// An item in another encoding stays as it is for a caller that has asked in it, unless an earlier one came in JSON.
// After that a caller's connection may have dropped an item that has no form there, and it alone knows which error ends
// the stream.
void Streams::pass_item(SlotNumber slot, const Received& message, const ItemParts& parts) {
  RelayedCall& call = calls_[slot];
  if (!message.is_json() && call.form != MessageForm::native(message.encoding)) {
    Buffer json;
    Received plain;
    if (const std::optional<Error> why = item_as_json(message, json, plain)) return relay_->give_up(slot, *why);
    return pass_item(slot, plain, parts_of(plain, parts.by_token));
  }
  if (message.is_json()) call.form = MessageForm::text(call.form.sent);
  rpc::MessageSink& sink = call.caller->sink();
  try {
    append_message_as(sink, call.form, [&](Buffer& out) { append_item(out, call, message, parts); });
    ++context_->loop.stats.stream_items;
  } catch (const std::bad_alloc&) {
    sink.lose_answer();
  }
  pass_credit(slot);
  renew_deadline(slot);
}

// What an item in another encoding is in JSON, or why it has no form there. `plain` views `json`.
std::optional<Error> Streams::item_as_json(const Received& message, Buffer& json, Received& plain) {
  Received unpacked = message;
  Buffer params;
  const std::string_view why =
      context_->loop.codecs.native(message.encoding).unpack(unpacked, context_->limits, params);
  if (!why.empty()) return message::unrepresentable_result(why);
  json = rpc::event_of(message.method(), unpacked.params());
  if (json.size() > context_->limits.max_message_size) return rpc::reply_too_large();
  // As JSON it may nest deeper, as params may.
  const Scan scan = read_message(json.padded(), context_->limits, true, plain);
  if (scan.status == ScanStatus::complete) return std::nullopt;
  return message::unrepresentable_result("as JSON it nests deeper than a message may");
}

// The item under the caller's id or token; an rpc.item as $/progress for a caller that has asked for that.
void Streams::append_item(Buffer& out, const RelayedCall& call, const Received& message, const ItemParts& parts) {
  const std::string_view token = call.stream->token;
  const std::string_view name_json = token.empty() ? call.id() : token;
  const bool renamed = token.empty() || parts.by_token;
  if (message.is_json()) {
    if (renamed) return message::append_replaced(out, message.text, parts.name, name_json);
    message::begin_call(out, R"("$/progress")", R"({"token":)");
    out.append(token);
    out.append(R"(,"value":)");
    out.append(parts.value.empty() ? std::string_view{"null"} : parts.value);
    return out.append("}}");
  }
  message::NativeTranscoder& transcoder = context_->loop.codecs.native(message.encoding);
  if (!renamed) {
    transcoder.begin_item(out, false, token);
    if (parts.value.empty()) return transcoder.append_value(out, Buffer{"null"}.padded());
    return out.append(parts.value);
  }
  const char* const behind = parts.name.data() + parts.name.size();
  out.append({message.text.data(), static_cast<std::size_t>(parts.name.data() - message.text.data())});
  transcoder.append_id(out, name_json);
  out.append({behind, static_cast<std::size_t>(message.text.data() + message.text.size() - behind)});
}

// ---- credit ----

bool Streams::grant(Peer& caller, std::string_view id_json, std::uint64_t more) {
  const SlotNumber slot = calls_.find_of(caller, id_json);
  if (slot == kNoSlot || !calls_[slot].stream) return false;
  RelayedStream& stream = *calls_[slot].stream;
  stream.grant(more);
  const bool rested = stream.credit == 0;
  pass_credit(slot);
  if (rested) renew_deadline(slot);
  return true;
}

// Gives the provider what the caller takes and has room for, which the caller's streams share.
void Streams::pass_credit(SlotNumber slot) noexcept {
  const RelayedCall& call = calls_[slot];
  if (call.state != State::sent || call.stream->without_credit) return;
  RelayedStream& stream = *call.stream;
  const std::uint64_t more = stream.due(context_->limits.soft_output / call.caller->streams);
  if (more == 0 || !call.caller->sink().writable()) return;  // until `resume`
  try {
    call.provider->peer->begin_part(*call.caller);
    append_message(call.provider->peer->sink(), [&](Buffer& out) {
      message::append_credit(out, ProviderId{calls_.number_of(slot), call.input != nullptr}.view(), more);
    });
  } catch (const std::bad_alloc&) {
    return relay_->give_up(slot, context_->errors.no_memory);
  }
  stream.pass(more);
}

// The caller has taken most of what it was sent, or says nothing any more.
void Streams::resume(Peer& caller) noexcept {
  std::size_t left = caller.streams;
  for (SlotNumber slot = caller.calls.first; left != 0 && slot != kNoSlot;) {
    const SlotNumber after = calls_[slot].of_caller.after;
    if (calls_[slot].stream) {
      --left;
      const bool rested = calls_[slot].stream->credit == 0;
      pass_credit(slot);
      if (rested) renew_deadline(slot);
    }
    slot = after;
  }
}

// Of a stream, call_timeout_ms is what may pass between its items, and its own timeout_ms is for the whole. Time in
// which it waits for its caller does not count, as long as that may still say something.
void Streams::renew_deadline(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  if (call.state != State::sent || context_->loop.scheduler == nullptr) return;
  const bool waits_for_caller = call.stream->credit == 0 && !call.stream->without_credit && !call.caller->has_ended();
  calls_.stop_timer(slot);
  call.deadline =
      waits_for_caller
          ? call.ends
          : std::min(call.ends, context_->now() + std::chrono::milliseconds{context_->limits.call_timeout_ms});
  if (call.deadline != kNoDeadline) calls_.start_timer(slot);
}

}  // namespace wirecall::broker
