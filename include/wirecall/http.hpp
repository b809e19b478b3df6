// HttpRequest and HttpResponse: the parameter and the result of an HttpHandler, which serves a route that a program
// adds (Server::route, docs/http.md). Values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wirecall/principal.hpp"

namespace wirecall {

/// A request at a route. Everything it refers to lasts until the handler returns.
struct HttpRequest {
  std::string_view method;       ///< "GET", "HEAD", "POST", "PUT", "PATCH" or "DELETE"
  std::string_view path;         ///< as sent, without the query
  std::string_view query;        ///< behind the question mark, as sent
  std::string_view body;         ///< at most Limits::max_message_size bytes
  std::string_view raw_headers;  ///< the header fields as sent, each line with its CR LF
  /// The principal of the request's token; null where the server has no principals.
  const Principal* principal = nullptr;

  /// The value of the first header field of that name, in any case of its letters; nullopt for none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
};

struct HttpResponse {
  std::uint16_t status = 200;  ///< from 200 to 599
  std::string body = {};       ///< not sent with 204, 205 and 304, which have none
  std::string content_type = "text/plain; charset=utf-8";
  /// Further header fields. A name is a token, a value has no line break; else the response is 500.
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// Makes the response. What it throws becomes 500, and goes to the log.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

}  // namespace wirecall
