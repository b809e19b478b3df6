// Which listeners only this machine can reach. One rule for every program that refuses to serve others unasked, and for
// the Host header that HTTP accepts. Pure: it resolves nothing. Thread: any.
#pragma once

#include "wirecall/endpoint.hpp"

namespace wirecall::transport {

/// Whether `host` is this machine by definition: "localhost" in any case, 127.0.0.0/8, ::1 without its brackets, and
/// IPv4 loopback as an IPv6 address. Any other name is what a resolver says it is, "127.example.com" too.
[[nodiscard]] bool is_loopback(std::string_view host) noexcept;

/// Whether an endpoint of that kind has a host, which may be another machine.
[[nodiscard]] bool is_network(EndpointKind kind) noexcept;

/// Whether only this machine can connect to a listener there.
[[nodiscard]] bool is_local(const Endpoint& endpoint) noexcept;

}  // namespace wirecall::transport
