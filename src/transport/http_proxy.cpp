// See http_proxy.hpp.
#include "transport/http_proxy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <openssl/evp.h>
#include <stdexcept>
#include <strings.h>

#include "transport/blocking_socket.hpp"
#include "transport/loopback.hpp"

namespace wirecall::transport {
namespace {

constexpr std::uint16_t kDefaultProxyPort = 1080;  // as curl has it
constexpr std::size_t kHeadBytesMax = 16 * 1024;

std::string variable(const char* lower_name, const char* upper_name = nullptr) {
  for (const char* const name : {lower_name, upper_name}) {
    const char* const value = name != nullptr ? std::getenv(name) : nullptr;
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

// "%41" is "A".
std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i != text.size(); ++i) {
    unsigned char byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      result.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      result.push_back(text[i]);
    }
  }
  return result;
}

HttpProxy parse_proxy(std::string_view text, std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return std::invalid_argument{std::string{name} + " is no HTTP proxy: " + std::string{why} +
                                 "; write http://host:port, or http://user:password@host:port"};
  };
  constexpr std::string_view kScheme = "http://";
  if (text.starts_with(kScheme)) {
    text.remove_prefix(kScheme.size());
  } else if (text.contains("://")) {
    throw refuse("only those that are spoken to by http are known");
  }
  HttpProxy proxy;
  if (const std::size_t at = text.rfind('@'); at != text.npos) {
    proxy.credentials = decoded(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  const std::size_t behind_address = text.starts_with('[') ? text.find(']') : 0;
  const bool has_port = behind_address != text.npos && text.find(':', behind_address) != text.npos;
  auto parsed = Endpoint::parse("tcp://" + std::string{text});
  if (!parsed || parsed->port() == 0) throw refuse("it has no host, or a port that is none");
  proxy.host = parsed->host();
  proxy.port = has_port ? parsed->port() : kDefaultProxyPort;
  return proxy;
}

bool same_text(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// Whether the host is one of the list: itself, or below a domain, with a dot before it or not.
bool is_excepted(std::string_view host, std::string_view list) {
  while (!list.empty()) {
    std::string_view entry = list.substr(0, list.find_first_of(", "));
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
    if (entry == "*") return true;
    if (entry.starts_with('.')) entry.remove_prefix(1);
    if (entry.empty() || entry.size() > host.size()) continue;
    const std::size_t before = host.size() - entry.size();
    if (same_text(host.substr(before), entry) && (before == 0 || host[before - 1] == '.')) return true;
  }
  return false;
}

// What the variables say; empty for nothing.
std::string proxy_of_environment(const Endpoint& endpoint, std::string& name) {
  if (!endpoint.encrypted() && !endpoint.by_http() && !endpoint.by_websocket()) return {};
  if (is_loopback(endpoint.host()) || is_excepted(endpoint.host(), variable("no_proxy", "NO_PROXY"))) return {};
  name = endpoint.encrypted() ? "https_proxy" : "http_proxy";
  // HTTP_PROXY is what a CGI program is given as the header Proxy of a request: anybody's.
  std::string value = endpoint.encrypted() ? variable("https_proxy", "HTTPS_PROXY") : variable("http_proxy");
  if (!value.empty()) return value;
  name = "all_proxy";
  return variable("all_proxy", "ALL_PROXY");
}

std::string base64(std::string_view text) {
  std::string encoded(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int bytes = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                    reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  encoded.resize(static_cast<std::size_t>(bytes));
  return encoded;
}

// The head of the proxy's response. Nothing behind it is read: that is the server's.
std::string receive_head(const BlockingSocket& socket, const Endpoint& at) {
  std::string head;
  constexpr std::string_view kEnd = "\r\n\r\n";
  while (head.size() < kHeadBytesMax) {
    std::array<char, 1024> seen{};
    const std::size_t peeked = socket.receive(seen.data(), seen.size(), MSG_PEEK);
    if (peeked == 0)
      throw failure("cannot connect to", at, "the proxy has closed the connection", "check that it is one");
    const std::string both =
        head.substr(head.size() - std::min(head.size(), kEnd.size() - 1)) + std::string{seen.data(), peeked};
    const std::size_t kept = both.size() - peeked;
    const std::size_t end = both.find(kEnd);
    const std::size_t wanted = end == both.npos ? peeked : end + kEnd.size() - kept;
    const std::size_t taken = socket.receive(seen.data(), wanted);
    head.append(seen.data(), taken);
    if (end != both.npos && taken == wanted) return head;
  }
  throw failure("cannot connect to", at, "the proxy's response has a head of more than 16 KiB", "check that it is one");
}

}  // namespace

std::optional<HttpProxy> proxy_for(const Endpoint& endpoint, std::string_view option) {
  const bool datagrams = endpoint.kind() == EndpointKind::udp || endpoint.kind() == EndpointKind::xdp;
  if (!is_network(endpoint.kind()) || datagrams || option == "none") return std::nullopt;
  if (!option.empty()) return parse_proxy(option, "proxy");
  std::string name;
  const std::string value = proxy_of_environment(endpoint, name);
  return value.empty() ? std::nullopt : std::optional{parse_proxy(value, "$" + name)};
}

static int connect_to_proxy(const Endpoint& proxy, const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  try {
    return connect_to_tcp(proxy, timeout);
  } catch (const std::runtime_error& error) {
    throw failure("cannot connect to", endpoint, "its HTTP proxy cannot be reached: " + std::string{error.what()},
                  "check the option proxy, or the variables that name it");
  }
}

int connect_through(const HttpProxy& proxy, const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const bool v6 = proxy.host.contains(':');
  const Endpoint at = Endpoint{"tcp://" + (v6 ? '[' + proxy.host + ']' : proxy.host)}.with_port(proxy.port);
  Descriptor socket{connect_to_proxy(at, endpoint, timeout)};
  constexpr BlockingSocket::Silence kSilence{
      .cause = "its HTTP proxy has accepted the connection, and did not answer in time",
      .cure = "check the option proxy, or the variables that name it"};
  const BlockingSocket blocking{socket.get(), endpoint, deadline, kSilence};
  const bool target6 = endpoint.host().contains(':');
  const std::string target =
      (target6 ? '[' + endpoint.host() + ']' : endpoint.host()) + ':' + std::to_string(endpoint.port());
  std::string request = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
  if (!proxy.credentials.empty()) request += "Proxy-Authorization: Basic " + base64(proxy.credentials) + "\r\n";
  blocking.send(request + "\r\n");
  const std::string head = receive_head(blocking, endpoint);
  // "HTTP/1.1 200 …"
  const bool response = head.starts_with("HTTP/1.") && head.size() > 12 && head[8] == ' ';
  const std::string status = response ? head.substr(9, 3) : std::string{};
  if (status.starts_with('2')) return socket.release();
  if (!response) {
    throw failure("cannot connect to", endpoint, "what has answered at " + at.authority() + " is no HTTP proxy",
                  "check the option proxy, or the variables that name it");
  }
  std::string_view cure = "check that the proxy may connect there";
  if (status == "407" && proxy.credentials.empty())
    cure = "give a user and a password in proxy, as http://user:password@host:port";
  if (status == "407" && !proxy.credentials.empty()) cure = "check the user and the password in proxy";
  throw failure("cannot connect to", endpoint,
                "it is refused by the proxy " + at.authority() + " with HTTP status " + status, cure);
}

}  // namespace wirecall::transport
