// Refused messages: the answers to what reaches no method, since it is no message, too large, or not let in.
// One thread (the loop's). Implements docs/errors.md "Why a message was refused".
#pragma once

#include "rpc/pending.hpp"
#include "rpc/served_peer.hpp"
#include "wirecall/error.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {
struct Unreadable;
}  // namespace wirecall::message

namespace wirecall::rpc {

/// Elements of a batch over Limits::batch that are looked at, for whose ids a refusal names, or whom a response is for.
inline constexpr std::size_t kRefusedElementsMax = 65'536;

[[nodiscard]] inline bool is_batch_over_limit(const Received& message) noexcept {
  return message.kind == MessageKind::invalid && message.fault == Fault::batch_limit;
}

/// Counts the error, and answers with it whatever is no notification.
void refuse(const Received& message, CallState& state, const Error& error);
/// One of the three errors of the specification about a message that reaches no handler.
void reply_error(CallState& state, ErrorCode code, std::string_view data_json, std::string_view id_json);
/// -32600 to a message of kind invalid.
void refuse_invalid(const Received& message, CallState& state);
/// -32700 to text that cannot be read, with `data.limit:"depth"` for ScanStatus::too_deep.
void refuse_syntax(ServedPeer& peer, ScanStatus status, const message::Unreadable& where);
/// -32006 to a message over max_message_size.
void refuse_size(ServedPeer& peer);
/// Answers for each id in a batch of which nothing is run: an answer without an id ends no wait.
void refuse_batch(ServedPeer& peer, const Received& batch, const Error& error);

}  // namespace wirecall::rpc
