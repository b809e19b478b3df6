// The TLS handshake of a client, on a socket that is connected. Thread: any; blocks.
#pragma once

#include <chrono>

#include "transport/pending_connection.hpp"
#include "transport/tls_context.hpp"
#include "transport/tls_session.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::transport {

/// The connection that is `socket`, which belongs to it from now on, encrypted: the endpoint has shown who it is.
/// Throws std::runtime_error with the cause and the cure.
[[nodiscard]] PendingConnection encrypt(int socket, const Endpoint& endpoint, std::chrono::milliseconds timeout,
                                        const std::shared_ptr<const TlsClientContext>& context);

/// What helps where a client's TlsSession has failed with that.
[[nodiscard]] std::string_view cure_of(TlsFault fault) noexcept;

}  // namespace wirecall::transport
