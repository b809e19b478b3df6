// The routes that a program adds: see HttpRoutes.
#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>

#include "framing/token.hpp"
#include "http/http_connection.hpp"
#include "http/routes.hpp"

namespace wirecall {

std::optional<std::string_view> HttpRequest::header(std::string_view name) const noexcept {
  return framing::find_field(raw_headers, name);
}

}  // namespace wirecall

namespace wirecall::net {
namespace {

using framing::HttpMethod;

HttpMethod method_of(std::string_view name) {
  for (const HttpMethod method :
       {HttpMethod::get, HttpMethod::post, HttpMethod::put, HttpMethod::patch, HttpMethod::delete_}) {
    if (name == name_of(method)) return method;
  }
  throw std::invalid_argument{"a route's method is GET, POST, PUT, PATCH or DELETE, not " + std::string{name}};
}

bool can_be_sent(const HttpResponse& response) noexcept {
  const auto is_value = [](std::string_view text) { return std::ranges::all_of(text, &framing::is_field_text); };
  return response.status >= 200 && response.status <= 599 && is_value(response.content_type) &&
         std::ranges::all_of(response.headers, [&](const auto& field) {
           return !field.first.empty() && std::ranges::all_of(field.first, &framing::is_token) &&
                  is_value(field.second);
         });
}

// What of the request its handler is given, for as long as its body has not come.
struct Kept {
  std::string_view method;
  std::string path;
  std::string query;
  std::string fields;
};

struct Program {
  HttpHandler handler;
  const LogSink* log;
};

HttpResponse call(const Program& program, const HttpRequest& request) {
  std::string failure;
  try {
    HttpResponse response = program.handler(request);
    if (can_be_sent(response)) return response;
    failure = "its response has a status, a type or a field that cannot be sent";
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    failure = error.what();
  } catch (...) {
    failure = "it threw what is no std::exception";
  }
  (*program.log)(LogLevel::error, "the handler of a route has failed",
                 {{"route", std::string{request.method}.append(" ").append(request.path)}, {"error", failure}});
  return {.status = 500, .body = "Internal Server Error: the handler of this path has failed\n"};
}

void answer(const Program& program, HttpConnection& connection, const Kept& kept, std::string_view body) {
  HttpTransaction& transaction = connection.current();
  const HttpResponse response = call(program, {.method = kept.method,
                                               .path = kept.path,
                                               .query = kept.query,
                                               .body = body,
                                               .raw_headers = kept.fields,
                                               .principal = connection.principal()});
  for (const auto& [name, value] : response.headers)
    transaction.fields.append(name).append(": ").append(value).append("\r\n");
  if (response.status == 204 || response.status == 205 || response.status == 304)
    return transaction.respond_empty(response.status);
  transaction.respond(response.status, response.body, response.content_type);
}

}  // namespace

HttpRoute program_route(std::string_view method, std::string path, HttpHandler handler, const LogSink& log) {
  auto program = std::make_shared<const Program>(std::move(handler), &log);
  return {.path = std::move(path),
          .methods = {method_of(method)},
          .handle = [program = std::move(program)](HttpConnection& connection, const RoutedRequest& request) {
            const framing::HttpHead& head = request.head;
            Kept kept{name_of(head.method), std::string{request.path}, std::string{request.query},
                      std::string{head.block}};
            if (head.method == HttpMethod::get || head.method == HttpMethod::head)
              return answer(*program, connection, kept, {});
            connection.begin_body(request,
                                  [program, kept = std::move(kept)](HttpConnection& current, std::string_view body) {
                                    answer(*program, current, kept, body);
                                  });
          }};
}

}  // namespace wirecall::net
