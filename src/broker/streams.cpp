// The part of Router (router.hpp) that is about calls whose results come one by one. A caller says how many items
// it takes; its provider is told of no more of them than the caller's connection has room for, and of the rest as the
// caller takes what it has been sent. So a caller that does not read stops its own streams and nobody else's, and what
// waits for it at the broker is bounded whatever it has said.
//
// A caller may ask for LSP's $/progress instead, by a token among its params. Its provider is asked by a token of the
// broker's, since two callers may use the same one, and for rpc.item besides, which a provider that knows it sends
// instead: it can be stopped. One that sends $/progress cannot.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "broker/outgoing.hpp"
#include "broker/router.hpp"
#include "broker/splice.hpp"
#include "codec/msgpack_format.hpp"
#include "message/call_text.hpp"
#include "message/msgpack_reply.hpp"
#include "message/replaced.hpp"
#include "rpc/call_options.hpp"
#include "wirecall/detail/bind.hpp"

namespace wirecall::broker {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using State = RelayedCall::State;

namespace {

// Items that a provider may send before it is known how large they are, and in any case.
constexpr std::uint64_t kFirstItems = 64;
constexpr std::uint64_t kItemsMax = 1024;
// What the items that all providers may send to one caller fill of Limits::soft_output.
constexpr std::size_t kWritableDivisor = 2;
constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

std::string_view params_in(const Received& message) {
  return message.has(Member::params) ? message[Member::params] : std::string_view{};
}

// The values of an object's members of these names, views into it; empty for those that are not there. One that has a
// name twice has none of them: another reader may take the other.
template <std::size_t N>
std::array<std::string_view, N> members_of(Reader& reader, std::string_view params,
                                           const std::array<std::string_view, N>& names) {
  std::array<std::string_view, N> values{};
  if (params.empty()) return values;
  reader.reset(params);
  if (reader.kind() != ValueKind::object) return values;
  static_cast<void>(reader.begin_object());
  for (std::string_view name; reader.next_member(name);) {
    const auto found = std::ranges::find(names, name);
    const std::string_view value = reader.skip();
    if (found == names.end()) continue;
    std::string_view& slot = values[static_cast<std::size_t>(found - names.begin())];
    if (!slot.empty()) return {};
    slot = value;
  }
  return values;
}

constexpr std::string_view kIdName = "id";
constexpr std::string_view kTokenName = "token";
constexpr std::string_view kValueName = "value";
constexpr std::string_view kMsgpackNull = "\xC0";

std::string_view unquoted(std::string_view json) noexcept {
  return json.size() >= 2 && json.front() == '"' ? json.substr(1, json.size() - 2) : json;
}

}  // namespace

// ---- to the provider ----

// The token by which the caller of a request with these params wants $/progress: a string or number; empty for none.
std::string_view Router::progress_token(std::string_view params) const {
  constexpr std::string_view kName = wirecall::detail::kProgressToken;
  if (params.empty() || params.front() != '{' ||
      ::memmem(params.data(), params.size(), kName.data(), kName.size()) == nullptr) [[likely]]
    return {};
  const std::string_view token = members_of<1>(*loop_context_->codecs.readers.reader, params, {kName}).front();
  const bool is_token = !token.empty() && (token.front() == '"' || token.front() == '-' ||
                                           (token.front() >= '0' && token.front() <= '9'));
  return is_token ? token : std::string_view{};
}

// Null for a call that has not asked for its results as they come.
std::unique_ptr<RelayedStream> Router::stream_of(const Received& message) const {
  const bool by_credit = message.has(Member::stream);
  const std::string_view token = by_credit ? std::string_view{} : progress_token(params_in(message));
  if (!by_credit && token.empty()) [[likely]]
    return nullptr;
  auto stream = std::make_unique<RelayedStream>();
  stream->withheld = by_credit ? rpc::read_count(*loop_context_, message[Member::stream]).value_or(1) : kEndless;
  stream->token = token;
  return stream;
}

// How many items the provider is asked for at first.
std::uint64_t Router::first_credit(const RelayedCall& call) noexcept {
  return std::min(call.stream->withheld, kFirstItems);
}

// What of a request is not as it came since its results are to come one by one, or are not. The id is in here as well.
void Router::edit_stream(const RelayedCall& call, const Received& message, StreamEdits& edits, Splice& splice) const {
  const bool by_credit = message.has(Member::stream);
  const std::string_view token =
      by_credit || (!call.stream && !call.extras) ? std::string_view{} : progress_token(params_in(message));
  if (!call.stream) {
    splice.replace(message[Member::id], edits.id.view());
    if (by_credit) splice.remove(message[Member::stream]);
    if (!token.empty()) splice.remove(token);
    return;
  }
  edits.credit = Digits{first_credit(call)};
  if (by_credit) {
    splice.replace(message[Member::id], edits.id.view());
    return splice.replace(message[Member::stream], edits.credit->view());
  }
  edits.token.append("\"").append(edits.id.view()).append("\"");
  splice.replace(token, edits.token);
  edits.id_and_stream = edits.id.view();
  if (!call.stream->without_credit) edits.id_and_stream.append(R"(,"stream":)").append(edits.credit->view());
  splice.replace(message[Member::id], edits.id_and_stream);
}

// ---- back to the caller ----

void Router::item(const Peer& peer, const Received& message) {
  const ItemParts parts = parts_of(message, false);
  const SlotNumber slot = find_asked(message, parts);
  if (!is_streaming(peer, slot) || !admit_item(slot, message.text.size(), true)) return;
  pass_item(slot, message, parts);
}

void Router::progress(const Peer& peer, const Received& message) {
  const ItemParts parts = parts_of(message, true);
  const SlotNumber slot = find_asked(message, parts);
  if (!is_streaming(peer, slot) || calls_[slot].stream->token.empty()) return;
  calls_[slot].stream->without_credit = true;
  if (!admit_item(slot, message.text.size(), false)) return;
  pass_item(slot, message, parts);
}

Router::ItemParts Router::parts_of(const Received& message, bool by_token) const {
  Reader& reader = *loop_context_->codecs.readers_of(message.msgpack ? MessageForm::msgpack : MessageForm::json).reader;
  const auto [named, value] = members_of<2>(reader, params_in(message), {by_token ? kTokenName : kIdName, kValueName});
  return {.name = named, .value = value, .by_token = by_token};
}

// The call that a provider names by the number, or by the token, that it was asked with.
SlotNumber Router::find_asked(const Received& message, const ItemParts& parts) noexcept {
  if (!message.msgpack) return calls_.find(parts.by_token ? unquoted(parts.name) : parts.name);
  if (parts.name.empty()) return kNoSlot;
  const msgpack::Head head = msgpack::read_head(parts.name.data());
  if (parts.by_token && head.type == msgpack::Type::string) return calls_.find(parts.name.substr(head.bytes));
  return head.type == msgpack::Type::positive ? calls_.find(Digits{head.value}.view()) : kNoSlot;
}

bool Router::is_streaming(const Peer& provider, SlotNumber slot) noexcept {
  if (slot == kNoSlot) return false;
  const RelayedCall& call = calls_[slot];
  return call.state == State::sent && call.stream && call.provider->peer == &provider;
}

// Counts the item. One that came without credit, where there is no room for it, ends its stream: who does not wait
// cannot be made to, and its caller must not be cut for that.
bool Router::admit_item(SlotNumber slot, std::size_t bytes, bool with_credit) {
  const RelayedCall& call = calls_[slot];
  RelayedStream& stream = *call.stream;
  stream.item_bytes = std::max(stream.item_bytes, bytes);
  if (with_credit && stream.credit != 0) {
    --stream.credit;
    return true;
  }
  const bool wanted = !with_credit || stream.withheld != 0;
  if (wanted && call.caller->sink().waiting_bytes() <= limits_->soft_output) {
    if (with_credit) --stream.withheld;
    return true;
  }
  give_up(slot, errors_.overrun);
  return false;
}

// An item in MessagePack stays as it is for a caller that has asked in it, unless an earlier one came in JSON. After
// that a caller's connection may have dropped an item that has no form there, and it alone knows which error ends the
// stream.
void Router::pass_item(SlotNumber slot, const Received& message, const ItemParts& parts) {
  RelayedCall& call = calls_[slot];
  if (message.msgpack && call.form != MessageForm::msgpack) {
    Buffer json;
    Received plain;
    if (const std::optional<Error> why = item_as_json(message, json, plain)) return give_up(slot, *why);
    return pass_item(slot, plain, parts_of(plain, parts.by_token));
  }
  if (!message.msgpack) call.form = sent_as(call.form);
  rpc::MessageSink& sink = call.caller->sink();
  try {
    append_message_as(sink, call.form, [&](Buffer& out) { append_item(out, call, message, parts); });
    ++loop_context_->stats.stream_items;
  } catch (const std::bad_alloc&) {
    sink.lose_answer();
  }
  pass_credit(slot);
  renew_deadline(slot);
}

// The item under the caller's id or token; an rpc.item as $/progress for a caller that has asked for that.
void Router::append_item(Buffer& out, const RelayedCall& call, const Received& message, const ItemParts& parts) {
  const std::string_view token = call.stream->token;
  const std::string_view name_json = token.empty() ? call.id() : token;
  const bool renamed = token.empty() || parts.by_token;
  if (!message.msgpack) {
    if (renamed) return message::append_replaced(out, message.text, parts.name, name_json);
    message::begin_call(out, R"("$/progress")", R"({"token":)");
    out.append(token);
    out.append(R"(,"value":)");
    out.append(parts.value.empty() ? std::string_view{"null"} : parts.value);
    return out.append("}}");
  }
  message::Transcoder& transcoder = loop_context_->codecs.transcoder();
  if (!renamed) {
    message::append_msgpack_item_head(out, false, token, transcoder);
    return out.append(parts.value.empty() ? kMsgpackNull : parts.value);
  }
  const char* const behind = parts.name.data() + parts.name.size();
  out.append({message.text.data(), static_cast<std::size_t>(parts.name.data() - message.text.data())});
  message::append_msgpack_id(out, name_json, transcoder);
  out.append({behind, static_cast<std::size_t>(message.text.data() + message.text.size() - behind)});
}

// ---- credit ----

bool Router::grant(Peer& caller, std::string_view id_json, std::uint64_t more) {
  const SlotNumber slot = find(caller, id_json);
  if (slot == kNoSlot || !calls_[slot].stream) return false;
  RelayedStream& stream = *calls_[slot].stream;
  stream.withheld += std::min(more, kEndless - stream.withheld);
  const bool rested = stream.credit == 0;
  pass_credit(slot);
  if (rested) renew_deadline(slot);
  return true;
}

// Gives the provider what the caller takes and has room for. Little of much is kept until there is more.
void Router::pass_credit(SlotNumber slot) noexcept {
  const RelayedCall& call = calls_[slot];
  if (call.state != State::sent || call.stream->withheld == 0 || call.stream->without_credit) return;
  RelayedStream& stream = *call.stream;
  std::uint64_t window = kFirstItems;
  if (stream.item_bytes != 0) {
    const std::uint64_t fit = limits_->soft_output / kWritableDivisor / (stream.item_bytes * call.caller->streams);
    window = std::clamp(fit, std::uint64_t{1}, kItemsMax);
  }
  if (stream.credit >= window) return;
  const std::uint64_t more = std::min(stream.withheld, window - stream.credit);
  if (more != stream.withheld && stream.credit > window / 2) return;
  if (!call.caller->sink().writable()) return;  // until `resume_streams`
  try {
    append_message(call.provider->peer->sink(), [&](Buffer& out) {
      message::begin_call(out, R"("rpc.credit")", R"({"id":)");
      append_number(out, calls_.number_of(slot));
      out.append(R"(,"n":)");
      append_number(out, more);
      out.append("}}");
    });
  } catch (const std::bad_alloc&) {
    return give_up(slot, errors_.no_memory);
  }
  stream.withheld -= more;
  stream.credit += more;
}

// The caller has taken most of what it was sent, or says nothing any more.
void Router::resume_streams(Peer& caller) noexcept {
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
void Router::renew_deadline(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  if (call.state != State::sent || loop_context_->scheduler == nullptr) return;
  const bool waits_for_caller = call.stream->credit == 0 && !call.stream->without_credit && !call.caller->ended;
  if (call.timed) deadlines_.remove(slot);
  call.deadline = waits_for_caller ? call.ends : std::min(call.ends, now() + milliseconds{limits_->call_timeout_ms});
  call.timed = call.deadline != kNoDeadline;
  if (!call.timed) return;
  deadlines_.add(slot);
  watch(slot);
}

}  // namespace wirecall::broker
