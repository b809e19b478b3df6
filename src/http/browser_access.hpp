// What a request says of the browser page that may have sent it, and whether that page may (docs/wire.md "Who may call
// from a browser"). Browsers send requests of any page to any address; so every request is looked at before anything
// else, whatever its path: Host against pages that have made their own name point here (DNS rebinding), Origin and
// Sec-Fetch-Site against pages of others.
// Pure functions.
#pragma once

#include "framing/http1.hpp"
#include "http/settings.hpp"

namespace wirecall::net {

enum class Access : std::uint8_t {
  own,             ///< no page, or one of this very host and port
  allowed_origin,  ///< a page of an origin that is allowed: it may read the response when told so
  no_host,         ///< 400
  malformed_host,  ///< 400
  foreign_host,    ///< 403, as are those below
  foreign_origin,
  cross_site,
};
/// How a request has come.
struct Asked {
  bool over_tls = false;
  bool of_any_host = false;  ///< Host is not looked at, since no page's name points here
};
[[nodiscard]] Access access_of(const framing::HttpHead& head, const HttpSettings& settings, Asked asked = {});

/// What a request is refused with; a status of 0 for one that is let in.
struct HttpRefusal {
  std::uint16_t status = 0;
  std::string_view cause = {};
  bool closes = false;
};
[[nodiscard]] HttpRefusal refusal_of(Access access) noexcept;

/// The token that the head shows; empty for none.
[[nodiscard]] std::string_view bearer_token(const framing::HttpHead& head) noexcept;

/// The host of "host", "host:port" or "[::1]:port", without port and brackets; empty for what is none.
struct HostAndPort {
  std::string_view host;
  std::string_view port;  ///< empty for none
};
[[nodiscard]] HostAndPort split_host(std::string_view text) noexcept;

}  // namespace wirecall::net
