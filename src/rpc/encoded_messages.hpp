// Messages that have come in another encoding than JSON: which of them are served as they are, and which as JSON. Their
// envelopes are JSON by now (message/transcoder.hpp). One thread (the loop's).
#pragma once

#include "rpc/pending.hpp"
#include "rpc/served_peer.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {
class EnvelopeMembers;
struct Unrepresentable;
}  // namespace wirecall::message

namespace wirecall::rpc {

/// Whether such a message may be handled as it is.
enum class Passthrough : std::uint8_t {
  no,  ///< it is handled as JSON
  yes,
  too_large  ///< it is handled as it is, being for a reserved method, and larger as JSON than a message may be
};
/// A single one is no response. `members` are what Transcoder::check has found in it.
[[nodiscard]] Passthrough may_pass_through(const ServedPeer& peer, EncodedText encoded,
                                           const message::EnvelopeMembers& members);
/// Whether it is, once its envelope has been read; and each response in a batch.
[[nodiscard]] bool takes_encoded(const ServedPeer& peer, const Received& message) noexcept;

/// Serves one message whose params are still in `encoded`. `text` is the message itself: all of that, or an element of
/// it.
void serve_encoded(const Received& message, CallState& state, EncodedText encoded, std::string_view text,
                   bool too_large);
/// Serves one that has become JSON, `offset` bytes into what has come. Requests whose params JSON cannot hold are
/// `unrepresentable`, and answered -32602.
void serve_transcoded(const Received& message, CallState& state, std::size_t offset,
                      std::span<const message::Unrepresentable> unrepresentable);
/// Serves an element of a batch, `encoded` itself, as if the batch had come as JSON.
void serve_as_json(const Received& element, CallState& state, EncodedText encoded);

}  // namespace wirecall::rpc
