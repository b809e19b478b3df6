// HttpRoutes: what is served at which path, and to whom: a table of {path or prefix, methods, handler, ...}, searched
// once for each request. It begins with the paths of every server (own_routes.cpp); a program adds its own before the
// server runs. A value; immutable while connections refer to it.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>

#include "framing/http1.hpp"
#include "wirecall/http.hpp"
#include "wirecall/log.hpp"

namespace wirecall::net {

class HttpConnection;

/// As a request line has it; empty for HttpMethod::other and HttpMethod::unknown.
[[nodiscard]] std::string_view name_of(framing::HttpMethod method) noexcept;

class HttpMethods {
 public:
  constexpr HttpMethods() noexcept = default;
  constexpr HttpMethods(std::initializer_list<framing::HttpMethod> methods) noexcept {
    for (const framing::HttpMethod method : methods) bits_ |= bit(method);
  }
  [[nodiscard]] constexpr bool contains(framing::HttpMethod method) const noexcept {
    return (bits_ & bit(method)) != 0;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
  constexpr HttpMethods operator|(HttpMethods other) const noexcept {
    other.bits_ |= bits_;
    return other;
  }
  /// As Allow lists them: "GET, HEAD, OPTIONS".
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::uint32_t bit(framing::HttpMethod method) noexcept {
    return std::uint32_t{1} << static_cast<unsigned>(method);
  }
  std::uint32_t bits_ = 0;
};

/// A request whose head has come. Everything it refers to lasts until the handler returns.
struct RoutedRequest {
  const framing::HttpHead& head;
  std::string_view path;   ///< as sent
  std::string_view query;  ///< behind the question mark
  bool more;               ///< bytes behind the head have come with it
};

struct HttpRoute {
  /// With "/*" at its end: any path that begins with what is in front of the star.
  std::string path;
  /// HEAD is served where GET is, OPTIONS where anything is.
  HttpMethods methods;
  /// Answers the connection's current transaction, or has the connection read the body first.
  std::function<void(HttpConnection&, const RoutedRequest&)> handle;
  /// The protocol, in small letters, that a request at this path may ask for by Upgrade: then `handle` is called
  /// whatever the method, and `methods` are none. Empty for none.
  std::string upgrade = {};
  /// Asked without a token: it tells nothing but that this is a server.
  bool open = false;
  /// Asked by any Host, or none: those who watch over servers have names of their own for them.
  bool any_host = false;
  /// Its line on the front page; empty for none.
  std::string_view about = {};

  [[nodiscard]] bool matches(std::string_view asked) const noexcept { return asked == path || matches_prefix(asked); }
  [[nodiscard]] bool matches_prefix(std::string_view asked) const noexcept;
};

/// A route that a program adds (Server::route): its handler gets requests as values, and gives responses; it is called
/// on the thread of each connection's loop. `log` is told what it throws, and outlives the route. Throws
/// std::invalid_argument for a method that no route can have.
[[nodiscard]] HttpRoute program_route(std::string_view method, std::string path, HttpHandler handler,
                                      const LogSink& log);

class HttpRoutes {
 public:
  /// The paths of every server.
  HttpRoutes();
  /// Throws std::invalid_argument for a path that does not begin with '/', for no method, and for a method that is
  /// served at that path already.
  void add(HttpRoute route);

  /// The first that serves the method at that path; null for none.
  [[nodiscard]] const HttpRoute* find(std::string_view path, framing::HttpMethod method) const noexcept {
    if (method == framing::HttpMethod::head) method = framing::HttpMethod::get;
    for (const HttpRoute& route : routes_) {
      if (route.methods.contains(method) && route.matches(path)) return &route;
    }
    return nullptr;
  }
  /// The first that takes an upgrade to `protocol` there; null for none.
  [[nodiscard]] const HttpRoute* find_upgrade(std::string_view path, std::string_view protocol) const noexcept;
  /// All that are served there: none where nothing is.
  [[nodiscard]] HttpMethods methods_at(std::string_view path) const noexcept;
  /// Whether what is served there is open, by whichever method. What is turned over to another protocol does not count.
  [[nodiscard]] bool is_open(std::string_view path) const noexcept;
  [[nodiscard]] std::span<const HttpRoute> all() const noexcept { return routes_; }

 private:
  std::vector<HttpRoute> routes_;
};

}  // namespace wirecall::net
