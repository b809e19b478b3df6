// What a connection on which HTTP is spoken does with a request whose head has come: who may ask, what there is, and
// what the head says of the body (see session.hpp).
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "framing/token.hpp"
#include "http/query.hpp"
#include "http/transaction.hpp"
#include "rpc/access.hpp"

namespace wirecall::session {
namespace {

using framing::HttpField;
using framing::HttpHead;
using framing::HttpMethod;

constexpr std::string_view kFrontAllow = "Allow: GET, HEAD, POST, OPTIONS\r\n";
constexpr std::string_view kPostAllow = "Allow: POST, OPTIONS\r\n";
constexpr std::string_view kGetAllow = "Allow: GET, HEAD, OPTIONS\r\n";
constexpr std::string_view kPreflight =
    "Access-Control-Allow-Methods: GET, HEAD, POST, OPTIONS\r\n"
    "Access-Control-Allow-Headers: Accept, Authorization, Content-Type, Last-Event-ID, Traceparent, Tracestate, "
    "Wirecall-Timeout-Ms\r\n"
    "Access-Control-Max-Age: 600\r\n";

constexpr std::array<std::string_view, 5> kGetPaths{"/healthz", "/readyz", "/metrics", "/openrpc.json", "/events"};

// Which methods a path has; empty for a path that is not served.
std::string_view allow_of(std::string_view path) noexcept {
  if (path == "/rpc") return kPostAllow;
  if (path == "/" || path == "*") return kFrontAllow;
  if (std::ranges::find(kGetPaths, path) != kGetPaths.end() || path.starts_with("/rpc/")) return kGetAllow;
  return {};
}

// What those ask who watch over servers, some of them without Host, or by a name that only they know.
bool asks_for_health(const HttpHead& head) noexcept {
  const std::string_view path = head.target.substr(0, head.target.find('?'));
  return (head.method == HttpMethod::get || head.method == HttpMethod::head) &&
         (path == "/healthz" || path == "/readyz");
}

// With the blank behind it; empty for a method that is served nowhere.
std::string_view name_of(HttpMethod method) noexcept {
  switch (method) {
    case HttpMethod::get:
      return "GET ";
    case HttpMethod::head:
      return "HEAD ";
    case HttpMethod::post:
      return "POST ";
    case HttpMethod::options:
      return "OPTIONS ";
    case HttpMethod::put:
      return "PUT ";
    case HttpMethod::patch:
      return "PATCH ";
    case HttpMethod::delete_:
      return "DELETE ";
    case HttpMethod::other:
    case HttpMethod::unknown:
      break;
  }
  return {};
}

// Where a WebSocket may be asked for.
bool has_websocket(std::string_view path) noexcept { return path == "/" || path == "/rpc" || path == "/ws"; }

}  // namespace

std::span<const std::string_view> http_paths() noexcept { return kGetPaths; }

void HttpSession::begin_request(const HttpHead& head, bool more) {
  if (pacing_) [[unlikely]] {
    pacing_ = false;
    host_->loop.stop(*this);
  }
  HttpTransaction& transaction = current();
  transaction.closes = head.closes || draining_;
  transaction.keeps_alive = head.keeps_alive;
  transaction.head_only = head.method == HttpMethod::head;
  if (head.has_body()) {
    // Unless somebody wants it, it has to be got out of the way; where it is long, or may not come at all, by closing.
    reading_ = head.chunked ? Body::chunks : Body::length;
    left_ = head.content_length;
    chunks_ = {};
    discards_ = true;
    transaction.closes = transaction.closes || left_ > kDiscardedBytesMax || head.has(HttpField::expect);
  }
  if (!let_in(head)) return;
  if (host_->loop_context.services.authority != nullptr && !authenticate(head)) [[unlikely]]
    return;
  const std::string_view target = head.target;
  const std::size_t question = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, question);
  if (head.method == HttpMethod::post && (path == "/rpc" || path == "/")) [[likely]]
    return begin_post(head, more);

  if (head.method == HttpMethod::unknown) return refuse(501, "this method is not one of HTTP");
  if (has_websocket(path) && head.upgrades && framing::same_word(head[HttpField::upgrade], "websocket")) {
    transaction.fields += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
    return refuse(426, "a WebSocket is not offered here");
  }
  const std::string_view allow = allow_of(path);
  if (allow.empty() && !path.empty()) return refuse(404, "there is nothing here");
  if (head.method == HttpMethod::options) {
    transaction.fields += allow;
    if (head.has(HttpField::origin)) transaction.fields += kPreflight;
    return respond_empty(204);
  }
  const bool reads = head.method == HttpMethod::get || head.method == HttpMethod::head;
  if (!reads || path == "/rpc" || path == "*") {
    transaction.fields += allow.empty() ? kFrontAllow : allow;
    return refuse(405, "this method is not one of this place");
  }
  get(head, path, target.substr(std::min(question + 1, target.size())));
}

// Whether the page that has sent this, if any, may.
bool HttpSession::let_in(const HttpHead& head) {
  Access access = access_of(head, *settings_);
  const bool by_host = access == Access::no_host || access == Access::malformed_host || access == Access::foreign_host;
  // At a unix socket, where no page gets to, or of no use to one: health checkers send none, or a name of their own.
  const bool any_host = peer_credentials() || (access != Access::malformed_host && asks_for_health(head));
  if (by_host && any_host) [[unlikely]]
    access = access_of(head, *settings_, true);
  switch (access) {
    case Access::no_host:
      refuse_and_close(400, "no Host");
      return false;
    case Access::own:
      return true;
    case Access::allowed_origin:
      current().fields.append("Access-Control-Allow-Origin: ").append(head[HttpField::origin]);
      current().fields.append("\r\nVary: Origin\r\n");
      return true;
    case Access::malformed_host:
      refuse_and_close(400, "a Host that is none");
      return false;
    case Access::foreign_host:
      refuse(403, "this Host is not one of ours; name it in allow_hosts if it is");
      return false;
    case Access::foreign_origin:
      refuse(403, "pages of this Origin may not call; name it in allow_origins if they may");
      return false;
    case Access::cross_site:
      refuse(403, "pages of other sites may not ask for this");
      return false;
  }
  return false;
}

// The token that the head shows; empty for none.
std::string_view HttpSession::bearer_token(const HttpHead& head) noexcept {
  const std::string_view given = head[HttpField::authorization];
  constexpr std::string_view kScheme = "Bearer ";
  const bool bearer = given.size() > kScheme.size() &&
                      framing::same_word(given.substr(0, kScheme.size() - 1), "bearer") &&
                      given[kScheme.size() - 1] == ' ';
  return bearer ? given.substr(kScheme.size()) : std::string_view{};
}

// Whether the head says who asks, where that has to be said; else it has been refused.
bool HttpSession::authenticate(const HttpHead& head) {
  HttpTransaction& transaction = current();
  const std::string_view path = head.target.substr(0, head.target.find('?'));
  const std::string_view given = head[HttpField::authorization];
  const std::string_view token = bearer_token(head);
  const Principal* const principal = token.empty() ? nullptr : host_->loop_context.services.authority->find(token);
  transaction.dispatcher.identify(principal, token);
  principal_ = principal;
  // What says nothing but that this is a server; and what browsers ask before they send an Authorization.
  const bool open = head.method == HttpMethod::options || path == "/healthz" || path == "/readyz";
  if (principal != nullptr || (open && given.empty())) return true;
  using rpc::Refusals;
  host_->loop_context.refusals.log_unauthenticated(
      {.what = std::string{name_of(head.method)}.append(path),
       .about = {},
       .source = peer_source(),
       .reason = given.empty() ? Refusals::kNoToken : Refusals::kUnknownToken});
  transaction.fields += "WWW-Authenticate: Bearer\r\n";
  refuse_and_close(401, "say who you are, by Authorization: Bearer and a token that is known");
  return false;
}

// Whether what the head says of the calls' time, if anything, can be understood; else it has been refused.
bool HttpSession::take_timeout(const HttpHead& head) {
  if (!head.has(HttpField::wirecall_timeout_ms)) [[likely]]
    return true;
  const std::string_view text = head[HttpField::wirecall_timeout_ms];
  std::uint32_t milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
    refuse(400, "a Wirecall-Timeout-Ms that is no whole number");
    return false;
  }
  // More than can be counted is no limit.
  if (error == std::errc{}) current().dispatcher.limit_timeout(milliseconds);
  return true;
}

// In which codec the answer is: the first that Accept names, else that of the request.
void HttpSession::choose_encoding(const HttpHead& head) {
  std::string_view accepted = head[HttpField::accept];
  // What browsers and curl say of themselves names neither.
  while (!accepted.empty()) {
    const std::string_view type = framing::take_element(accepted);
    current().msgpack = is_msgpack_type(type);
    current().as_asked = current().msgpack || is_json_type(type);
    if (current().as_asked) return;
  }
  current().msgpack = is_msgpack_type(head[HttpField::content_type]);
}

void HttpSession::begin_post(const HttpHead& head, bool more) {
  if (!take_timeout(head)) return;
  choose_encoding(head);
  if (host_name_ != head[HttpField::host]) [[unlikely]]
    host_name_ = peer_credentials() ? std::string_view{} : head[HttpField::host];
  if (head.has(HttpField::content_encoding)) [[unlikely]]
    return refuse(415, "a Content-Encoding is not understood: send the body as it is");
  if (head.content_length > host_->limits.max_message_size) [[unlikely]]
    return body_too_large();
  if (head.has(HttpField::expect)) [[unlikely]] {
    if (!framing::same_word(head[HttpField::expect], "100-continue")) {
      return refuse_and_close(417, "only 100-continue can be expected");
    }
    if (head.has_body() && !head.version_1_0) continue_body(more);
  }
  current().closes = head.closes || draining_;
  discards_ = false;
  if (!head.has_body()) dispatch_kept();
}

// The peer waits for a word before it sends the body, unless it has sent some of it.
void HttpSession::continue_body(bool more) {
  if (more) return;
  continue_due_ = !waiting_.empty();
  if (continue_due_) return;
  const std::size_t waiting = output().size();
  out_.append("HTTP/1.1 100 Continue\r\n\r\n");
  output_grew(waiting);
}

void HttpSession::get(const HttpHead& head, std::string_view path, std::string_view query) {
  if (path == "/healthz") return respond(200, "ok\n");
  if (path == "/readyz") return draining_ ? respond(503, "draining\n") : respond(200, "ready\n");
  if (path == "/metrics") {
    return respond(settings_->metrics ? settings_->metrics(asker()) : std::make_unique<rpc::PlainText>(""),
                   "text/plain; version=0.0.4; charset=utf-8");
  }
  if (path == "/openrpc.json") return respond(openrpc(head), "application/json");
  if (path == "/events") return begin_events(head, query);
  if (path.starts_with("/rpc/")) {
    if (!take_timeout(head)) return;
    choose_encoding(head);
    return get_method(path.substr(5), query);
  }
  std::vector<std::string> ways;
  if (peer_credentials()) {
    for (const std::string& socket : settings_->unix_paths)
      ways.push_back("--unix-socket '" + socket + "' http://localhost/rpc");
  } else {
    ways.push_back("http://" + std::string{head[HttpField::host]} + "/rpc");
  }
  respond(200, front_page(ways));
}

// It names the address by which it was asked for, unless that is not known to be one of ours.
std::unique_ptr<rpc::Rendering> HttpSession::openrpc(const HttpHead& head) const {
  if (!settings_->openrpc) return std::make_unique<rpc::PlainText>("");
  const Access access = access_of(head, *settings_);
  if (access != Access::own && access != Access::allowed_origin)
    return settings_->openrpc(host_->loop_context, asker(), settings_->urls);
  const std::string url = "http://" + std::string{head[HttpField::host]} + "/rpc";
  return settings_->openrpc(host_->loop_context, asker(), {&url, 1});
}

void HttpSession::get_method(std::string_view name, std::string_view query) {
  const std::expected<std::string, std::string_view> method = decode_percent(name);
  if (!method) return refuse(400, method.error());
  const Method* const found = host_->registry.find(*method);
  if (found == nullptr || !found->is_safe() || !rpc::may_call(principal_, *method)) {
    return refuse(404, "no method of this name may be called by GET; any can be by POST /rpc");
  }
  const std::expected<std::string, std::string_view> request = request_of_query(*method, query);
  if (!request) return refuse(400, request.error());
  body_ = host_->loop.take_buffer();
  body_.append(*request);
  dispatch_kept();
}

}  // namespace wirecall::session
