// What becomes of a message whose method is none that the peer may call: it is for a reserved method, or refused.
// One thread (the loop's).
#pragma once

#include "rpc/pending.hpp"
#include "rpc/served_peer.hpp"
#include "wirecall/error.hpp"
#include "wirecall/message.hpp"

namespace wirecall::rpc {

/// What a call ends with whose `to` names no client that provides the method.
[[nodiscard]] Error no_such_client();

/// Serves a message for a reserved method; answers -32601 to any other request.
void serve_reserved_or_refuse(const Received& message, std::string_view name, CallState& state);
/// `to` names a client, and no client provides a method of the process's own.
void refuse_addressed(const Received& message, std::string_view name, CallState& state);

}  // namespace wirecall::rpc
