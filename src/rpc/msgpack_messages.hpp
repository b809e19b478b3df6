// Messages that have come in MessagePack: which of them are served as they are, and which as JSON. Their envelopes are
// JSON by now (message/transcoder.hpp). One thread (the loop's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "rpc/pending.hpp"
#include "rpc/served_peer.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {
class MsgpackMembers;
struct Unrepresentable;
}  // namespace wirecall::message

namespace wirecall::rpc {

/// Whether a message of MessagePack may be handled as it is.
enum class Passthrough : std::uint8_t {
  no,  ///< it is handled as JSON
  yes,
  too_large  ///< it is handled as it is, being for a reserved method, and larger as JSON than a message may be
};
/// A single one is no response. `members` are what Transcoder::check has found in it.
[[nodiscard]] Passthrough may_pass_through(const ServedPeer& peer, std::string_view msgpack,
                                           const message::MsgpackMembers& members) noexcept;
/// Whether it is, once its envelope has been read; and each response in a batch.
[[nodiscard]] bool takes_msgpack(const ServedPeer& peer, const Received& message) noexcept;

/// Serves one message whose params are still in `msgpack`. `text` is the message itself: all of that, or an element of
/// it.
void serve_msgpack(const Received& message, CallState& state, std::string_view msgpack, std::string_view text,
                   bool too_large);
/// Serves one that has become JSON, `offset` bytes into what has come. Requests whose params JSON cannot hold are
/// `unrepresentable`, and answered -32602.
void serve_transcoded(const Received& message, CallState& state, std::size_t offset,
                      std::span<const message::Unrepresentable> unrepresentable);
/// Serves an element of a batch in MessagePack, `msgpack` itself, as if the batch had come as JSON.
void serve_as_json(const Received& element, CallState& state, std::string_view msgpack);

}  // namespace wirecall::rpc
