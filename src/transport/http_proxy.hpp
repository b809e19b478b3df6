// HTTP proxies that connect a client to its server by CONNECT (RFC 9110 section 9.3.6): which one an endpoint is
// reached by, and the way through it. Thread: any; connecting blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wirecall/endpoint.hpp"

namespace wirecall::transport {

struct HttpProxy {
  std::string host;  ///< a name or an address, IPv6 without its brackets
  std::uint16_t port = 0;
  std::string credentials;  ///< "user:password", decoded; empty for none
};

/// The proxy for that endpoint; nullopt for none. `option` is a proxy as "http://user:password@host:port", "none", or
/// empty: then the variables say it that curl knows: http_proxy for http and ws, https_proxy or HTTPS_PROXY for https,
/// wss and tls, all_proxy or ALL_PROXY for each of these; but no host of this machine, nor one that no_proxy or
/// NO_PROXY names, is reached by a proxy that a variable names. Throws std::invalid_argument for what is no proxy.
/// Reads the environment.
[[nodiscard]] std::optional<HttpProxy> proxy_for(const Endpoint& endpoint, std::string_view option);

/// A socket that the proxy has connected to the endpoint. Throws std::runtime_error with the cause and the cure; the
/// text has no credentials.
[[nodiscard]] int connect_through(const HttpProxy& proxy, const Endpoint& endpoint, std::chrono::milliseconds timeout);

}  // namespace wirecall::transport
