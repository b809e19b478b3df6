// See routes.hpp.
#include "http/routes.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "framing/token.hpp"

namespace wirecall::net {

using framing::HttpMethod;

// In the order of Allow.
constexpr HttpMethod kMethods[]{HttpMethod::get,   HttpMethod::head,    HttpMethod::post,   HttpMethod::put,
                                HttpMethod::patch, HttpMethod::delete_, HttpMethod::options};
// In the order of HttpMethod.
constexpr std::string_view kNames[]{"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"};

std::string_view name_of(HttpMethod method) noexcept {
  const auto at = static_cast<std::size_t>(method);
  return at < std::size(kNames) ? kNames[at] : std::string_view{};
}

std::string HttpMethods::text() const {
  std::string all;
  for (const HttpMethod method : kMethods) {
    const bool served =
        contains(method) || method == HttpMethod::options || (method == HttpMethod::head && contains(HttpMethod::get));
    if (served) all.append(all.empty() ? "" : ", ").append(name_of(method));
  }
  return all;
}

bool HttpRoute::matches_prefix(std::string_view asked) const noexcept {
  return path.ends_with("/*") && asked.starts_with(std::string_view{path}.substr(0, path.size() - 1));
}

void HttpRoutes::add(HttpRoute route) {
  if (!route.path.starts_with('/')) throw std::invalid_argument{"a route's path begins with /: " + route.path};
  if (route.methods.empty() && route.upgrade.empty())
    throw std::invalid_argument{"a route has a method: " + route.path};
  for (const HttpMethod method : kMethods) {
    if (route.methods.contains(method) && find(route.path, method) != nullptr)
      throw std::invalid_argument{std::string{name_of(method)} + " " + route.path + " is served already"};
  }
  routes_.push_back(std::move(route));
}

const HttpRoute* HttpRoutes::find_upgrade(std::string_view path, std::string_view protocol) const noexcept {
  const auto found = std::ranges::find_if(routes_, [&](const HttpRoute& route) {
    return !route.upgrade.empty() && route.matches(path) && framing::same_word(protocol, route.upgrade);
  });
  return found != routes_.end() ? &*found : nullptr;
}

HttpMethods HttpRoutes::methods_at(std::string_view path) const noexcept {
  HttpMethods methods;
  for (const HttpRoute& route : routes_) {
    if (route.matches(path)) methods = methods | route.methods;
  }
  return methods;
}

bool HttpRoutes::is_open(std::string_view path) const noexcept {
  return std::ranges::any_of(
      routes_, [&](const HttpRoute& route) { return route.open && route.upgrade.empty() && route.matches(path); });
}

}  // namespace wirecall::net
