// A route that a program adds (Server::route): its handler gets requests as values, and gives responses.
// A pure function; the handler is called on the thread of each connection's loop.
#pragma once

#include <string>
#include <string_view>

#include "http/routes.hpp"
#include "wirecall/http.hpp"
#include "wirecall/log.hpp"

namespace wirecall::net {

/// `log` is told what the handler throws; it outlives the route. Throws std::invalid_argument for a method that no
/// route can have.
[[nodiscard]] HttpRoute program_route(std::string_view method, std::string path, HttpHandler handler,
                                      const LogSink& log);

}  // namespace wirecall::net
