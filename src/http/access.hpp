// What a request says of the browser page that may have sent it, and whether that page may (docs/wire.md "Who may call
// from a browser"). Browsers send requests of any page to any address; so every request is looked at before anything
// else, whatever its path: Host against pages that have made their own name point here (DNS rebinding), Origin and
// Sec-Fetch-Site against pages of others.
// Pure functions; HttpSettings is a value that outlives the sessions that refer to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framing/http1.hpp"
#include "rpc/rendering.hpp"
#include "wirecall/principal.hpp"

namespace wirecall::session {

/// What the HTTP connections of a server have in common.
struct HttpSettings {
  /// Options::allow_hosts and Options::allow_origins.
  std::vector<std::string> allow_hosts;
  std::vector<std::string> allow_origins;
  /// Hosts that are listened on. One that means all addresses makes every address literal a Host of ours.
  std::vector<std::string> bound_hosts;
  /// Where calls are made by HTTP, one for each TCP port: for who has not come by a Host of ours.
  std::vector<std::string> urls;
  /// Paths of the unix sockets that are listened on.
  std::vector<std::string> unix_paths;
  /// Options::http_notification_status.
  std::uint16_t notification_status = 204;
  /// The text of /metrics, as who asks may see it.
  std::function<std::unique_ptr<rpc::Rendering>(rpc::Asker)> metrics;
  /// The text of /openrpc.json, likewise. The loop_context is the connection's, and `urls` are where this is called.
  std::function<std::unique_ptr<rpc::Rendering>(rpc::LoopContext&, rpc::Asker, std::span<const std::string> urls)>
      openrpc;
};

enum class Access : std::uint8_t {
  own,             ///< no page, or one of this very host and port
  allowed_origin,  ///< a page of an origin that is allowed: it may read the response when told so
  no_host,         ///< 400
  malformed_host,  ///< 400
  foreign_host,    ///< 403, as are those below
  foreign_origin,
  cross_site,
};
/// `any_host`: Host is not looked at, since no page's name points here.
[[nodiscard]] Access access_of(const framing::HttpHead& head, const HttpSettings& settings, bool any_host = false);

/// The host of "host", "host:port" or "[::1]:port", without port and brackets; empty for what is none.
struct HostAndPort {
  std::string_view host;
  std::string_view port;  ///< empty for none
};
[[nodiscard]] HostAndPort split_host(std::string_view text) noexcept;

}  // namespace wirecall::session
