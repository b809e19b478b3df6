// The grammar of endpoints (see endpoint.hpp), of RFC 3986 as much as names an endpoint. Paths and names are taken as
// they stand; nothing is decoded.
#include "wirecall/endpoint.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <stdexcept>

#include "base/ascii.hpp"
#include "base/dotted_name.hpp"
#include "transport/loopback.hpp"

namespace wirecall {
namespace {

struct Scheme {
  std::string_view prefix;
  std::string_view cure;
};

// By their kinds.
constexpr Scheme kSchemes[] = {
    {"tcp://", "write tcp://host:port, such as tcp://127.0.0.1:8545 or tcp://[::1]:8545"},
    {"unix://", "write unix:///path, such as unix:///run/calls.sock"},
    {"stdio:", "write stdio: and nothing behind it"},
    {"inproc://", "write inproc://name, such as inproc://calls"},
    {"http://", "write http://host:port/path, such as http://127.0.0.1:8545/rpc"},
    {"ws://", "write ws://host:port/path, such as ws://127.0.0.1:8545/"},
    {"udp://", "write udp://host:port, such as udp://127.0.0.1:8545 or udp://[::1]:8545"},
    {"xdp://", "write xdp://interface:port, such as xdp://eth0:8545"},
    {"shm://", "write shm://name, such as shm://calls"},
    {"tls://", "write tls://host:port, such as tls://127.0.0.1:8545 or tls://[::1]:8545"},
    {"https://", "write https://host:port/path, such as https://127.0.0.1:8545/rpc"},
    {"wss://", "write wss://host:port/path, such as wss://127.0.0.1:8545/"},
};
static_assert(std::size(kSchemes) == static_cast<std::size_t>(EndpointKind::wss) + 1);

std::string_view refuse_path(std::string_view path) {
  if (!path.starts_with('/')) return "the path does not begin at the root";
  if (path.ends_with('/')) return "the path names a folder";
  if (path.size() > kSocketPathBytesMax) return "the path has more than 107 bytes";
  if (path.find('\0') != std::string_view::npos) return "the path has a byte of zero";
  return {};
}

std::string_view refuse_name(std::string_view name) {
  if (name.empty()) return "it has no name";
  if (name.size() > kNameBytesMax) return "the name has more than 255 bytes";
  const auto odd = [](char c) { return c <= ' ' || c == '/' || c == '?' || c == '#' || c == 0x7f; };
  if (std::ranges::any_of(name, odd)) return "the name has more than letters, digits, dots and dashes";
  return {};
}

// Whether it is a host, a colon and a port: "localhost:8545", "[::1]:8545". A port that is none, as in "localhost:abc",
// is refused by parse_tcp; but behind the name of a scheme, as in "unix:calls", only a number is taken for a port.
bool is_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || text.find('/') != std::string_view::npos) return false;
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  const auto is_name = [&](const Scheme& known) { return known.prefix.substr(0, known.prefix.find(':')) == host; };
  const bool is_port = !port.empty() && std::ranges::all_of(port, is_digit);
  return (is_port || std::ranges::none_of(kSchemes, is_name)) &&
         (in_brackets || host.find(':') == std::string_view::npos);
}

// What is written without a scheme, by what it looks like.
std::string_view cure_without_scheme(std::string_view text) {
  if (text.starts_with('/')) return kSchemes[1].cure;
  return "write host:port, such as localhost:8545, or a URI, such as tcp://127.0.0.1:8545";
}

std::string refusal(std::string_view uri, std::string_view cause, std::string_view cure) {
  std::string text{"\""};
  text.append(uri).append("\" is not an endpoint URI: ").append(cause).append("; ");
  return text.append(cure);
}

}  // namespace

Endpoint::Endpoint(std::string_view uri) {
  std::expected<Endpoint, std::string> parsed = parse(uri);
  if (!parsed) throw std::invalid_argument{parsed.error()};
  *this = std::move(*parsed);
}

std::expected<Endpoint, std::string> Endpoint::parse(std::string_view uri) {
  const auto* scheme =
      std::ranges::find_if(kSchemes, [uri](const Scheme& known) { return uri.starts_with(known.prefix); });
  std::string_view rest = uri;
  if (scheme != std::end(kSchemes)) {
    rest.remove_prefix(scheme->prefix.size());
  } else if (is_host_and_port(uri)) {
    scheme = &kSchemes[0];
  } else if (uri.find("://") == std::string_view::npos) {
    return std::unexpected{refusal(uri, "it has no scheme", cure_without_scheme(uri))};
  } else {
    return std::unexpected{refusal(
        uri,
        "tcp://, tls://, http://, https://, ws://, wss://, unix://, shm://, udp://, stdio: and inproc:// are all "
        "that is understood",
        kSchemes[0].cure)};
  }
  Endpoint endpoint;
  endpoint.kind_ = static_cast<EndpointKind>(scheme - kSchemes);
  if (const std::string_view cause = endpoint.parse_rest(rest); !cause.empty())
    return std::unexpected{refusal(uri, cause, scheme->cure)};
  return endpoint;
}

// Why `rest` is nothing that the kind has behind its scheme; empty when it is.
std::string_view Endpoint::parse_rest(std::string_view rest) {
  switch (kind_) {
    case EndpointKind::tcp:
    case EndpointKind::tls:
    case EndpointKind::udp:
    case EndpointKind::xdp: return parse_tcp(rest);
    case EndpointKind::http:
    case EndpointKind::https:
    case EndpointKind::ws:
    case EndpointKind::wss: return parse_http(rest);
    case EndpointKind::unix_socket: path_ = rest; return refuse_path(rest);
    case EndpointKind::inproc:
    case EndpointKind::shm: path_ = rest; return refuse_name(rest);
    case EndpointKind::stdio: break;
  }
  return rest.empty() ? std::string_view{} : "this process has only one standard input";
}

// Why `rest` is no host and port; empty when it is.
std::string_view Endpoint::parse_tcp(std::string_view rest) {
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ \t\r\n") != std::string_view::npos) return "host and port are all it can have";
  if (rest.starts_with('[')) {
    const std::size_t bracket = rest.find(']');
    if (bracket == std::string_view::npos) return "the bracket of the address is not closed";
    host_ = rest.substr(1, bracket - 1);
    rest.remove_prefix(bracket + 1);
  } else {
    const std::size_t colon = rest.find(':');
    if (colon != rest.rfind(':')) return "an IPv6 address stands in brackets";
    host_ = rest.substr(0, colon);
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon);
  }
  if (host_.empty()) return "it has no host";
  if (rest.empty()) return {};
  if (rest.front() != ':') return "behind the bracket only a port can follow";
  rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port_);
  if (error != std::errc{} || end != rest.data() + rest.size()) return "the port is no number from 0 to 65535";
  return {};
}

// The same for what follows "http://", "ws://" and their like. The path is sent as it stands here, so it has to be what
// a request may have.
std::string_view Endpoint::parse_http(std::string_view rest) {
  const std::size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
  const std::string_view path = rest.substr(slash);
  port_ = http_port();
  const auto odd = [](char c) { return c <= ' ' || c >= 0x7f; };
  if (std::ranges::any_of(rest, odd)) return "it has bytes that are to be written as %XX";
  if (rest.substr(0, slash).find('@') != std::string_view::npos) return "it names a user, and nothing here logs in";
  if (const std::string_view cause = parse_tcp(rest.substr(0, slash)); !cause.empty()) return cause;
  if (port_ == 0) return "nobody listens on port 0";
  if (path.find('#') != std::string_view::npos) return "a fragment is not sent to any server";
  const std::string_view usual = by_websocket() ? kDefaultWebSocketPath : kDefaultHttpPath;
  path_ = path.starts_with('/') ? std::string{path} : std::string{usual}.append(path);
  return {};
}

std::string Endpoint::authority() const {
  std::string text = host_.find(':') != std::string::npos ? "[" + host_ + "]" : host_;
  if (!has_http_path() || port_ != http_port()) text += ":" + std::to_string(port_);
  return text;
}

std::string Endpoint::uri() const {
  std::string text{kSchemes[static_cast<std::size_t>(kind_)].prefix};
  if (transport::is_network(kind_)) text += authority();
  return text.append(path_);
}

Endpoint Endpoint::with_port(std::uint16_t port) const {
  Endpoint other = *this;
  other.port_ = port;
  return other;
}

}  // namespace wirecall
