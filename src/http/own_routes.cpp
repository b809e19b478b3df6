// The paths of every server: the first entries of HttpRoutes, and what they answer.
#include <expected>

#include "http/browser_access.hpp"
#include "http/events.hpp"
#include "http/http_connection.hpp"
#include "http/query.hpp"
#include "http/routes.hpp"
#include "http/websocket.hpp"
#include "rpc/access.hpp"

namespace wirecall::net {

using framing::HttpField;
using framing::HttpMethod;

static void call(HttpConnection& connection, const RoutedRequest& request) { connection.begin_message(request); }

static std::string scheme_of(const HttpConnection& connection) {
  return connection.tls() != nullptr ? "https://" : "http://";
}

// What this is, and the ways in: what curl is given to reach the server by each of them.
static void front(HttpConnection& connection, const RoutedRequest& request) {
  const HttpSettings& settings = connection.settings();
  std::string page =
      "wirecall: a JSON-RPC 2.0 server\n\n"
      "Calls go to POST /rpc, one message or batch each:\n\n";
  const auto add_way = [&page](std::string_view way) {
    page.append("  curl ").append(way).append(R"( -d '{"jsonrpc":"2.0","method":"rpc.ping","id":1}')").append("\n");
  };
  if (connection.peer_credentials()) {
    for (const std::string& socket : settings.unix_paths)
      add_way("--unix-socket '" + socket + "' http://localhost/rpc");
  } else {
    add_way(scheme_of(connection) + std::string{request.head[HttpField::host]} + "/rpc");
  }
  page +=
      "\n"
      "The same port takes WebSockets at /, /rpc and /ws, JSON text over TCP, messages behind a\n"
      "Content-Length header, and messages behind a length of four bytes.\n\n";
  for (const HttpRoute& route : settings.routes.all()) {
    if (!route.about.empty()) page.append(route.about).append("\n");
  }
  connection.current().respond(200, page);
}

static void health(HttpConnection& connection, const RoutedRequest&) { connection.current().respond(200, "ok\n"); }

static void readiness(HttpConnection& connection, const RoutedRequest&) {
  if (connection.is_draining()) return connection.current().respond(503, "draining\n");
  const rpc::Broker* const broker = connection.host().loop_context.services.broker;
  if (const std::string_view why = broker != nullptr ? broker->degraded() : std::string_view{}; !why.empty())
    return connection.current().respond(200, "degraded: " + std::string{why} + "\n");
  connection.current().respond(200, "ready\n");
}

static void metrics(HttpConnection& connection, const RoutedRequest&) {
  const HttpSettings& settings = connection.settings();
  connection.respond(settings.metrics ? settings.metrics(connection.asker()) : std::make_unique<rpc::PlainText>(""),
                     "text/plain; version=0.0.4; charset=utf-8");
}

// It names the address by which it was asked for, unless that is not known to be one of ours.
static void openrpc(HttpConnection& connection, const RoutedRequest& request) {
  const HttpSettings& settings = connection.settings();
  std::unique_ptr<rpc::Rendering> document = std::make_unique<rpc::PlainText>("");
  if (settings.openrpc) {
    const Access access = access_of(request.head, settings);
    const bool ours = access == Access::own || access == Access::allowed_origin;
    const std::string url = scheme_of(connection) + std::string{request.head[HttpField::host]} + "/rpc";
    const std::span<const std::string> urls = ours ? std::span{&url, 1} : std::span<const std::string>{settings.urls};
    document = settings.openrpc(connection.host().loop_context, connection.asker(), urls);
  }
  connection.respond(std::move(document), kJsonType);
}

static void call_by_get(HttpConnection& connection, const RoutedRequest& request) {
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

using Handle = void (*)(HttpConnection&, const RoutedRequest&);

static HttpRoute posted(std::string path) {
  return {.path = std::move(path), .methods = {HttpMethod::post}, .handle = call};
}

static HttpRoute got(std::string path, Handle handle, std::string_view about = {}) {
  return {.path = std::move(path), .methods = {HttpMethod::get}, .handle = handle, .about = about};
}

// For those who watch over servers.
static HttpRoute watched(std::string path, Handle handle, std::string_view about) {
  HttpRoute route = got(std::move(path), handle, about);
  route.open = route.any_host = true;
  return route;
}

static HttpRoute websocket(std::string path) {
  // Open, since a browser can set no header: it may say who it is by the first message.
  return {.path = std::move(path), .methods = {}, .handle = begin_websocket, .upgrade = "websocket", .open = true};
}

// Those of calls are first, so that a POST finds its own at once; the others as the front page lists them.
HttpRoutes::HttpRoutes()
    : routes_{posted("/rpc"),
              posted("/"),
              got("/", front),
              got("/rpc/*", call_by_get, "GET /rpc/METHOD?name=value   methods that are declared safe"),
              got("/openrpc.json", openrpc, "GET /openrpc.json            the methods, as OpenRPC"),
              got("/events", begin_events, "GET /events?topic=PATTERN    the events of a broker, as they come"),
              watched("/healthz", health, "GET /healthz                 whether this process answers"),
              watched("/readyz", readiness, "GET /readyz                  whether it takes new calls"),
              got("/metrics", metrics, "GET /metrics                 its numbers, for Prometheus"),
              websocket("/"),
              websocket("/rpc"),
              websocket("/ws"),
              got("/ws", require_websocket)} {}

}  // namespace wirecall::net
