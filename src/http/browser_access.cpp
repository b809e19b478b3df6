// See browser_access.hpp.
#include "http/browser_access.hpp"

#include <algorithm>

#include "base/ascii.hpp"
#include "framing/token.hpp"
#include "transport/loopback.hpp"

namespace wirecall::net {

using framing::HttpField;
using framing::HttpHead;

static bool same_text(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return framing::lower(x) == framing::lower(y); });
}

static bool is_host_byte(char c) noexcept {
  return is_digit(c) || (framing::lower(c) >= 'a' && framing::lower(c) <= 'z') || c == '-' || c == '.' || c == '_' ||
         c == '~' || c == '%';
}

// Four numbers with dots between them: whether each is at most 255 does not matter here.
static bool is_address4(std::string_view host) noexcept {
  const bool plain = std::ranges::all_of(host, [](char c) { return is_digit(c) || c == '.'; });
  return plain && std::ranges::count(host, '.') == 3 && is_digit(host.front()) && is_digit(host.back()) &&
         !host.contains("..");
}
static bool is_address(std::string_view host) noexcept { return host.contains(':') || is_address4(host); }

static bool allows_host(const HttpSettings& settings, std::string_view text, const HostAndPort& parts) {
  for (const std::string& bound : settings.bound_hosts) {
    if (same_text(bound, parts.host)) return true;
    if ((bound == "0.0.0.0" || bound == "::") && is_address(parts.host)) return true;
  }
  if (transport::is_loopback(parts.host)) return true;
  return std::ranges::any_of(settings.allow_hosts, [&](const std::string& allowed) {
    return same_text(allowed, text) || same_text(allowed, parts.host);
  });
}

static Access access_by_host(const HttpHead& head, const HttpSettings& settings, const HostAndPort& host) {
  const std::string_view text = head[HttpField::host];
  if (!head.has(HttpField::host)) return Access::no_host;
  if (host.host.empty()) return text.empty() ? Access::foreign_host : Access::malformed_host;
  return allows_host(settings, text, host) ? Access::own : Access::foreign_host;
}

// Whether `origin` is the origin that Host names: of https where we are spoken to over TLS, else of http, or of https,
// since something in front of us may end TLS.
static bool same_origin(std::string_view origin, const HostAndPort& host, Asked asked) noexcept {
  const std::size_t colon = origin.find("://");
  if (colon == origin.npos) return false;
  const std::string_view scheme = origin.substr(0, colon);
  const std::string_view usual_port = same_text(scheme, "https") ? "443" : "80";
  if (!same_text(scheme, "https") && (asked.over_tls || !same_text(scheme, "http"))) return false;
  const HostAndPort parts = split_host(origin.substr(colon + 3));
  const auto port = [usual_port](const HostAndPort& address) {
    return address.port.empty() ? usual_port : address.port;
  };
  return !parts.host.empty() && same_text(parts.host, host.host) && port(parts) == port(host);
}

HostAndPort split_host(std::string_view text) noexcept {
  HostAndPort parts;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = std::min(text.find(']'), text.size() - 1);
    parts.host = text.substr(1, std::max<std::size_t>(end, 1) - 1);
    rest = text.substr(end + 1);
    const auto fits = [](char c) { return is_host_byte(c) || c == ':'; };
    if (text[end] != ']' || !parts.host.contains(':') || !std::ranges::all_of(parts.host, fits)) return {};
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    parts.host = text.substr(0, colon);
    rest = text.substr(colon);
    if (!std::ranges::all_of(parts.host, is_host_byte)) return {};
  }
  if (rest.empty()) return parts;
  parts.port = rest.substr(1);
  if (rest[0] != ':' || parts.port.size() > 5 || !std::ranges::all_of(parts.port, is_digit)) return {};
  return parts;
}

Access access_of(const HttpHead& head, const HttpSettings& settings, Asked asked) {
  const HostAndPort host = split_host(head[HttpField::host]);
  if (!asked.of_any_host) {
    if (const Access by_host = access_by_host(head, settings, host); by_host != Access::own) return by_host;
  }
  if (head.has(HttpField::origin)) {
    const std::string_view origin = head[HttpField::origin];
    if (same_origin(origin, host, asked)) return Access::own;
    const bool allowed =
        std::ranges::any_of(settings.allow_origins, [&](const std::string& entry) { return same_text(entry, origin); });
    return allowed ? Access::allowed_origin : Access::foreign_origin;
  }
  if (same_text(head[HttpField::sec_fetch_site], "cross-site")) {
    const bool navigates = head.method == framing::HttpMethod::get && head.target == "/" &&
                           same_text(head[HttpField::sec_fetch_mode], "navigate");
    if (!navigates) return Access::cross_site;
  }
  return Access::own;
}

HttpRefusal refusal_of(Access access) noexcept {
  // In the order of Access.
  static constexpr HttpRefusal kRefusals[]{
      {},
      {},
      {400, "no Host", true},
      {400, "a Host that is none", true},
      {403, "this Host is not one of ours; name it in allow_hosts if it is"},
      {403, "pages of this Origin may not call; name it in allow_origins if they may"},
      {403, "pages of other sites may ask for this only with an Origin that allow_origins names"},
  };
  static_assert(std::size(kRefusals) == static_cast<std::size_t>(Access::cross_site) + 1);
  return kRefusals[static_cast<std::size_t>(access)];
}

std::string_view bearer_token(const HttpHead& head) noexcept {
  const std::string_view given = head[HttpField::authorization];
  constexpr std::string_view kScheme = "Bearer ";
  const bool bearer = given.size() > kScheme.size() &&
                      framing::same_word(given.substr(0, kScheme.size() - 1), "bearer") &&
                      given[kScheme.size() - 1] == ' ';
  return bearer ? given.substr(kScheme.size()) : std::string_view{};
}

}  // namespace wirecall::net
