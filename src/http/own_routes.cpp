// See own_routes.hpp.
#include "http/own_routes.hpp"

#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "http/access.hpp"
#include "http/events.hpp"
#include "http/query.hpp"
#include "http/session.hpp"
#include "rpc/access.hpp"

namespace wirecall::session {
namespace {

using framing::HttpField;
using framing::HttpHead;
using framing::HttpMethod;

void call(HttpSession& session, const RoutedRequest& request) { session.begin_message(request); }

void front(HttpSession& session, const RoutedRequest& request) {
  std::vector<std::string> ways;
  if (session.peer_credentials()) {
    for (const std::string& socket : session.settings().unix_paths)
      ways.push_back("--unix-socket '" + socket + "' http://localhost/rpc");
  } else {
    ways.push_back("http://" + std::string{request.head[HttpField::host]} + "/rpc");
  }
  session.current().respond(200, front_page(ways));
}

void health(HttpSession& session, const RoutedRequest&) { session.current().respond(200, "ok\n"); }

void readiness(HttpSession& session, const RoutedRequest&) {
  if (session.is_draining()) return session.current().respond(503, "draining\n");
  session.current().respond(200, "ready\n");
}

void metrics(HttpSession& session, const RoutedRequest&) {
  const HttpSettings& settings = session.settings();
  session.respond(settings.metrics ? settings.metrics(session.asker()) : std::make_unique<rpc::PlainText>(""),
                  "text/plain; version=0.0.4; charset=utf-8");
}

// It names the address by which it was asked for, unless that is not known to be one of ours.
void openrpc(HttpSession& session, const RoutedRequest& request) {
  const HttpSettings& settings = session.settings();
  std::unique_ptr<rpc::Rendering> document = std::make_unique<rpc::PlainText>("");
  if (settings.openrpc) {
    const Access access = access_of(request.head, settings);
    const bool ours = access == Access::own || access == Access::allowed_origin;
    const std::string url = "http://" + std::string{request.head[HttpField::host]} + "/rpc";
    const std::span<const std::string> urls = ours ? std::span{&url, 1} : std::span<const std::string>{settings.urls};
    document = settings.openrpc(session.host().loop_context, session.asker(), urls);
  }
  session.respond(std::move(document), kJsonType);
}

void call_by_get(HttpSession& session, const RoutedRequest& request) {
  HttpTransaction& transaction = session.current();
  if (!transaction.take_timeout(request.head)) return;
  transaction.choose_encoding(request.head);
  const std::expected<std::string, std::string_view> method = decode_percent(request.path.substr(5));
  if (!method) return transaction.refuse(400, method.error());
  const Method* const found = session.host().registry.find(*method);
  if (found == nullptr || !found->is_safe() || !rpc::may_call(session.principal(), *method))
    return transaction.refuse(404, "no method of this name may be called by GET; any can be by POST /rpc");
  const std::expected<std::string, std::string_view> text = request_of_query(*method, request.query);
  if (!text) return transaction.refuse(400, text.error());
  session.serve_message(*text);
}

void no_websocket(HttpSession& session, const RoutedRequest&) {
  session.current().fields += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  session.current().refuse(426, "a WebSocket is not offered here");
}

}  // namespace

std::vector<HttpRoute> own_routes() {
  constexpr HttpMethods kGet{HttpMethod::get};
  constexpr HttpMethods kPost{HttpMethod::post};
  return {{"/rpc", kPost, call},
          {"/", kPost, call},
          {"/", kGet, front},
          {"/healthz", kGet, health},
          {"/readyz", kGet, readiness},
          {"/metrics", kGet, metrics},
          {"/openrpc.json", kGet, openrpc},
          {"/events", kGet, begin_events},
          {"/rpc/*", kGet, call_by_get},
          {"/", {}, no_websocket, "websocket"},
          {"/rpc", {}, no_websocket, "websocket"},
          {"/ws", {}, no_websocket, "websocket"}};
}

}  // namespace wirecall::session
