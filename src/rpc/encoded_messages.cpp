// See encoded_messages.hpp.
#include "rpc/encoded_messages.hpp"

#include "base/dotted_name.hpp"
#include "message/own_error.hpp"
#include "rpc/broker.hpp"
#include "rpc/invocation.hpp"
#include "rpc/refused_messages.hpp"

namespace wirecall::rpc {

// Of a message that is made JSON, whatever of it is needed, rather than measured.
constexpr std::size_t kTranscodedBytes = 4096;
// What a byte of MessagePack may be in JSON, at most: no bytes at all are two here, and fourteen with a comma there.
constexpr std::size_t kJsonBytesOfByte = 7;

// Whether a reserved method takes its params as they came: events and items go on to others.
static bool reads_encoded(std::string_view reserved) noexcept {
  return reserved == "rpc.publish" || reserved == "rpc.item" || reserved == "$/progress";
}

// Whether a reserved method looks at no more of its params than whether there are any.
static bool takes_no_params(std::string_view reserved) noexcept {
  return reserved == "rpc.ping" || reserved == "rpc.undelivered";
}

static bool is_call(const Received& message) noexcept {
  return message.kind == MessageKind::request || message.kind == MessageKind::notification;
}

// Whether a single message for a reserved method, which looks at JSON, is handled as it would be as such without being
// made that: because it is too large, or nobody looks at its params.
static Passthrough need_not_be_json(const ServedPeer& peer, EncodedText encoded, std::string_view name) {
  const std::size_t bytes_max = peer.limits.max_message_size;
  const bool unread = takes_no_params(name) && encoded.text.size() > kTranscodedBytes;
  if (!unread && encoded.text.size() <= bytes_max / kJsonBytesOfByte) return Passthrough::no;
  if (peer.registry.find(name) != nullptr) return Passthrough::no;
  const std::optional<message::JsonBytes> bytes =
      peer.loop.codecs.native(encoded.encoding).json_bytes(encoded.text, peer.limits.depth);
  if (!bytes || bytes->max > bytes_max * message::Transcoder::kGrowth) return Passthrough::no;
  if (bytes->min > bytes_max) return Passthrough::too_large;
  return unread && bytes->max <= bytes_max ? Passthrough::yes : Passthrough::no;
}

// What is said to wirecall itself is looked at as JSON.
static void serve_unpacked(Received& message, CallState& state) {
  Buffer json;
  const std::string_view why = state.peer.loop.codecs.native(message.encoding).unpack(message, state.peer.limits, json);
  if (why.empty()) return serve_message(state.peer, message, state);
  refuse(message, state, message::unrepresentable_params(why));
}

Passthrough may_pass_through(const ServedPeer& peer, EncodedText encoded, const message::EnvelopeMembers& members) {
  if (peer.loop.services.broker == nullptr) return Passthrough::yes;
  if (!members.is_single()) return Passthrough::yes;
  const std::string_view name = peer.loop.codecs.native(encoded.encoding).method_of(encoded.text, members);
  if (name.empty()) return Passthrough::no;
  return !is_reserved(name) || reads_encoded(name) ? Passthrough::yes : need_not_be_json(peer, encoded, name);
}

bool takes_encoded(const ServedPeer& peer, const Received& message) noexcept {
  if (message.kind == MessageKind::response) return peer.broker != nullptr && peer.broker->takes_encoded(message);
  return peer.loop.services.broker == nullptr || message.kind != MessageKind::invalid;
}

void serve_encoded(const Received& message, CallState& state, EncodedText encoded, std::string_view text,
                   bool too_large) {
  const ServedPeer& peer = state.peer;
  if (message.text.data() == encoded.text.data() && !is_reserved(message.method()))
    return serve_message(state.peer, message, state);  // read directly, it is what it is
  Received restored = message;
  message::NativeTranscoder::restore(encoded.encoding, encoded.text, restored);
  if (restored.kind != MessageKind::invalid) restored.text = text;
  const bool reserved =
      is_call(restored) && is_reserved(restored.method()) && peer.registry.find(restored.method()) == nullptr;
  if (reserved && !reads_encoded(restored.method())) {
    if (too_large) return refuse(restored, state, message::too_large_as_json());
    const bool single = text.data() == encoded.text.data();
    const bool measured = peer.loop.services.broker != nullptr && single && text.size() > kTranscodedBytes;
    if (!measured || !takes_no_params(restored.method())) return serve_unpacked(restored, state);
  }
  serve_message(state.peer, restored, state);
}

void serve_transcoded(const Received& message, CallState& state, std::size_t offset,
                      std::span<const message::Unrepresentable> unrepresentable) {
  const ServedPeer& peer = state.peer;
  if (is_call(message)) {
    const auto found = std::ranges::find(unrepresentable, offset, &message::Unrepresentable::offset);
    if (found != unrepresentable.end()) return refuse(message, state, message::unrepresentable_params(found->why));
    // Peers that it may be relayed to take no more than that.
    if (peer.loop.services.broker != nullptr && message.text.size() > peer.limits.max_message_size)
      return refuse(message, state, message::too_large_as_json());
  }
  serve_message(state.peer, message, state);
}

// A handler may read from the JSON as long as it runs: it is on this stack.
void serve_as_json(const Received& element, CallState& state, EncodedText encoded) {
  message::Transcoder& transcoder = state.peer.loop.codecs.transcoder(encoded.encoding);
  const Limits& limits = state.peer.limits;
  Buffer json;
  const bool done = transcoder.checked_to_json(encoded.text, limits, json) == message::Transcoder::Status::done;
  const std::vector<message::Unrepresentable> unrepresentable = transcoder.take_unrepresentable();
  static_cast<void>(transcoder.take_cancels());  // of items, which stay as they are
  Received message;
  if (done && read_message(json.padded(), limits, true, message).status == ScanStatus::complete)
    return serve_transcoded(message, state, 0, unrepresentable);
  refuse(element, state, message::too_large_as_json());
}

}  // namespace wirecall::rpc
