// Connecting by TLS, the handshake included. Thread: any; blocks.
#pragma once

#include "transport/pending_connection.hpp"
#include "transport/tls_context.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::transport {

/// A connection to what listens there, which has shown who it is. Throws std::runtime_error with the cause and the
/// cure.
[[nodiscard]] PendingConnection connect_by_tls(const Endpoint& endpoint, std::chrono::milliseconds timeout,
                                               const std::shared_ptr<const TlsClientContext>& context);

/// What helps where a client's TlsSession has failed with that.
[[nodiscard]] std::string_view cure_of_tls(std::string_view failure) noexcept;

}  // namespace wirecall::transport
