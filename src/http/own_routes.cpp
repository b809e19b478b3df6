// See own_routes.hpp.
#include "http/own_routes.hpp"

#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "http/browser_access.hpp"
#include "http/events.hpp"
#include "http/http_connection.hpp"
#include "http/query.hpp"
#include "rpc/access.hpp"

namespace wirecall::net {
namespace {

using framing::HttpField;
using framing::HttpHead;
using framing::HttpMethod;

void call(HttpConnection& connection, const RoutedRequest& request) { connection.begin_message(request); }

void front(HttpConnection& connection, const RoutedRequest& request) {
  std::vector<std::string> ways;
  if (connection.peer_credentials()) {
    for (const std::string& socket : connection.settings().unix_paths)
      ways.push_back("--unix-socket '" + socket + "' http://localhost/rpc");
  } else {
    ways.push_back("http://" + std::string{request.head[HttpField::host]} + "/rpc");
  }
  connection.current().respond(200, front_page(ways));
}

void health(HttpConnection& connection, const RoutedRequest&) { connection.current().respond(200, "ok\n"); }

void readiness(HttpConnection& connection, const RoutedRequest&) {
  if (connection.is_draining()) return connection.current().respond(503, "draining\n");
  connection.current().respond(200, "ready\n");
}

void metrics(HttpConnection& connection, const RoutedRequest&) {
  const HttpSettings& settings = connection.settings();
  connection.respond(settings.metrics ? settings.metrics(connection.asker()) : std::make_unique<rpc::PlainText>(""),
                     "text/plain; version=0.0.4; charset=utf-8");
}

// It names the address by which it was asked for, unless that is not known to be one of ours.
void openrpc(HttpConnection& connection, const RoutedRequest& request) {
  const HttpSettings& settings = connection.settings();
  std::unique_ptr<rpc::Rendering> document = std::make_unique<rpc::PlainText>("");
  if (settings.openrpc) {
    const Access access = access_of(request.head, settings);
    const bool ours = access == Access::own || access == Access::allowed_origin;
    const std::string url = "http://" + std::string{request.head[HttpField::host]} + "/rpc";
    const std::span<const std::string> urls = ours ? std::span{&url, 1} : std::span<const std::string>{settings.urls};
    document = settings.openrpc(connection.host().loop_context, connection.asker(), urls);
  }
  connection.respond(std::move(document), kJsonType);
}

void call_by_get(HttpConnection& connection, const RoutedRequest& request) {
  HttpTransaction& transaction = connection.current();
  if (!transaction.take_timeout(request.head)) return;
  transaction.choose_encoding(request.head);
  const std::expected<std::string, std::string_view> method = decode_percent(request.path.substr(5));
  if (!method) return transaction.refuse(400, method.error());
  const Method* const found = connection.host().registry.find(*method);
  if (found == nullptr || !found->is_safe() || !rpc::may_call(connection.principal(), *method))
    return transaction.refuse(404, "no method of this name may be called by GET; any can be by POST /rpc");
  const std::expected<std::string, std::string_view> text = request_of_query(*method, request.query);
  if (!text) return transaction.refuse(400, text.error());
  connection.serve_message(*text);
}

void no_websocket(HttpConnection& connection, const RoutedRequest&) {
  connection.current().fields += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  connection.current().refuse(426, "a WebSocket is not offered here");
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

}  // namespace wirecall::net
