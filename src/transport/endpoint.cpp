// The grammar of endpoints (see endpoint.hpp), of RFC 3986 as much as names a place.
#include "wirecall/endpoint.hpp"

#include <charconv>
#include <stdexcept>

namespace wirecall {
namespace {

std::string cannot(std::string_view uri, std::string_view cause) {
  std::string text{"\""};
  text.append(uri).append("\" names no place: ").append(cause);
  return text.append("; write tcp://host:port, such as tcp://127.0.0.1:8545 or tcp://[::1]:8545");
}

}  // namespace

Endpoint::Endpoint(std::string_view uri) {
  std::expected<Endpoint, std::string> parsed = parse(uri);
  if (!parsed) throw std::invalid_argument{parsed.error()};
  *this = std::move(*parsed);
}

std::expected<Endpoint, std::string> Endpoint::parse(std::string_view uri) {
  const auto refuse = [uri](std::string_view cause) { return std::unexpected{cannot(uri, cause)}; };
  constexpr std::string_view kScheme = "tcp://";
  if (uri.find("://") == std::string_view::npos) return refuse("it has no scheme");
  if (!uri.starts_with(kScheme)) return refuse("only tcp:// is understood");
  std::string_view rest = uri.substr(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ \t\r\n") != std::string_view::npos) return refuse("host and port are all it can have");

  Endpoint endpoint;
  if (rest.starts_with('[')) {
    const std::size_t bracket = rest.find(']');
    if (bracket == std::string_view::npos) return refuse("the bracket of the address is not closed");
    endpoint.host_ = rest.substr(1, bracket - 1);
    rest.remove_prefix(bracket + 1);
  } else {
    const std::size_t colon = rest.find(':');
    if (colon != rest.rfind(':')) return refuse("an IPv6 address stands in brackets");
    endpoint.host_ = rest.substr(0, colon);
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon);
  }
  if (endpoint.host_.empty()) return refuse("it has no host");
  if (rest.empty()) return endpoint;
  if (rest.front() != ':') return refuse("behind the bracket only a port can follow");
  rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), endpoint.port_);
  if (error != std::errc{} || end != rest.data() + rest.size()) return refuse("the port is no number from 0 to 65535");
  return endpoint;
}

std::string Endpoint::uri() const {
  const bool brackets = host_.find(':') != std::string::npos;
  return "tcp://" + (brackets ? "[" + host_ + "]" : host_) + ":" + std::to_string(port_);
}

Endpoint Endpoint::with_port(std::uint16_t port) const {
  Endpoint other = *this;
  other.port_ = port;
  return other;
}

}  // namespace wirecall
