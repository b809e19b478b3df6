// See banner.hpp.
#include "cli/commands/banner.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/printable.hpp"
#include "cli/terminal.hpp"
#include "transport/loopback.hpp"
#include "transport/xdp.hpp"

namespace wirecall::cli {
namespace {

// What a set of lines is for.
enum class Way { stream, memory, datagrams, none };
Way way_of(const Endpoint& endpoint) {
  switch (endpoint.kind()) {
    case EndpointKind::tcp:
    case EndpointKind::unix_socket: return Way::stream;
    case EndpointKind::shm: return Way::memory;
    case EndpointKind::udp:
    case EndpointKind::xdp: return Way::datagrams;
    default: return Way::none;  // its parent or this process reaches it
  }
}

// Where a client on this machine reaches a listener, which may listen on all addresses.
Endpoint reachable(const Endpoint& endpoint) {
  if (endpoint.kind() == EndpointKind::xdp) return transport::udp_endpoint_of(endpoint);
  const std::string scheme = endpoint.kind() == EndpointKind::udp ? "udp://" : "tcp://";
  if (endpoint.host() == "0.0.0.0") return Endpoint{scheme + "127.0.0.1"}.with_port(endpoint.port());
  if (endpoint.host() == "::") return Endpoint{scheme + "[::1]"}.with_port(endpoint.port());
  return endpoint;
}

// Whether a client on this machine may speak there without TLS: by the address of its end, which is that of the
// listener where that is not the loopback's.
bool takes_plain(const ServeOptions& options, const Endpoint& endpoint) {
  const bool tcp = endpoint.kind() == EndpointKind::tcp;
  return !tcp || !options.server.tls.on() || options.server.allow_plain ||
         (!options.server.proxy_protocol && transport::is_loopback(reachable(endpoint).host()));
}

std::string signature(const Method& method) {
  std::string text = method.name() + "(";
  const auto arguments = method.signature().arguments;
  for (std::size_t i = 0; i < method.params().size(); ++i) {
    if (!arguments[i].sent) continue;
    if (text.back() != '(') text += ", ";
    text += method.params()[i].name();
  }
  if (!arguments.empty() && arguments.back().rest) text += "...";
  return text + ")";
}

/// The lines for a terminal by which a client on this machine reaches the server. They name a method of the demo, or
/// one that every broker has.
class LinesToCopy {
 public:
  explicit LinesToCopy(const ServeOptions& options)
      : options_(options),
        asks_(!options.server.principals_file.empty()),
        method_(options.demo ? "subtract 42 23" : "rpc.ping"),
        request_(options.demo ? R"({"jsonrpc":"2.0","method":"sum","params":[1,2,4],"id":1})"
                              : R"({"jsonrpc":"2.0","method":"rpc.methods","id":1})") {}

  // The first endpoint of a kind has its lines; those of the first of all show what else there is to do.
  [[nodiscard]] std::string of(std::span<const Endpoint> endpoints) {
    std::vector<EndpointKind> kinds;
    for (const Endpoint& endpoint : endpoints) {
      const Endpoint reached = reachable(endpoint);
      if (way_of(reached) == Way::none || std::ranges::find(kinds, reached.kind()) != kinds.end()) continue;
      kinds.push_back(reached.kind());
      add(reached, kinds.size() == 1);
    }
    if (text_.empty()) return {};
    return fmt::format("\n{}\n", bold(asks_ ? "To copy into another terminal, with a token in $WIRECALL_TOKEN:"
                                            : "To copy into another terminal:")) +
           text_;
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += "  " + fmt::format(format, std::forward<Args>(args)...) + '\n';
  }

  void add(const Endpoint& endpoint, bool first) {
    if (way_of(endpoint) == Way::memory) return add_calls(endpoint, first);
    if (way_of(endpoint) == Way::datagrams) return add_datagrams(endpoint);
    const bool tcp = endpoint.kind() == EndpointKind::tcp;
    if (tcp && options_.server.proxy_protocol) return;  // no line has a PROXY header
    const bool plain = takes_plain(options_, endpoint);
    if (plain) {
      add_calls(endpoint, first);
      add_http(endpoint);
    }
    if (tcp && options_.server.tls.on()) add_tls(endpoint);
    if (plain && first && !asks_) add_framings(endpoint);
  }

  void add_calls(const Endpoint& endpoint, bool first) {
    const bool usual = endpoint == Endpoint{"tcp://127.0.0.1"};
    const std::string url = usual ? std::string{} : " --url " + endpoint.uri();
    const std::string& program = options_.program;
    if (!first) {
      line("{} call {}{}", program, method_, url);
    } else if (options_.demo) {
      line("{} call subtract 42 23{}", program, url);
      line("{} call subtract minuend=42 subtrahend=23{}", program, url);
      line("{} bench subtract 42 23 -c 32 -p 16{}", program, url);
    } else {
      line("{} reply greet 'Hello, {{name}}!'{}", program, url);
      line("{} call greet name=Ada{}", program, url);
      line("{} ls{}", program, url);
    }
    if (way_of(endpoint) == Way::memory) return;  // only our own clients reach it
    if (asks_) {
      constexpr std::string_view kHello = R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"%s"},"id":0})";
      line(R"(printf '{}\n{}\n' "$WIRECALL_TOKEN" | {})", kHello, request_, netcat(endpoint));
    } else {
      line(R"(printf '{}\n' | {})", request_, netcat(endpoint));
    }
  }

  void add_http(const Endpoint& endpoint) {
    const std::string_view who = asks_ ? R"(-H "Authorization: Bearer $WIRECALL_TOKEN" )" : "";
    if (endpoint.kind() == EndpointKind::unix_socket)
      return line("curl {}-d '{}' --unix-socket {} http://localhost/rpc", who, request_, endpoint.path());
    line("curl {}-d '{}' http://{}/rpc", who, request_, endpoint.authority());
    if (options_.demo) {
      constexpr std::string_view kStream = R"({"jsonrpc":"2.0","method":"count","params":[3],"id":1})";
      line("curl -N {}-H 'Accept: text/event-stream' -d '{}' http://{}/rpc", who, kStream, endpoint.authority());
    } else {
      line("curl -N {}'http://{}/events?topic=news'", who, endpoint.authority());
    }
    line("{} call rpc.ping --url ws://{}/", options_.program, endpoint.authority());
  }

  // By the fingerprint, which needs neither an authority nor a name.
  void add_tls(const Endpoint& endpoint) {
    const bool shows = options_.server.tls.client_auth == ClientAuth::required;
    const std::string_view own = shows ? " --tls-client-cert client.pem --tls-client-key client.key" : "";
    for (const std::string_view scheme : {"tls", "https", "wss"}) {
      line("{} call {} --url {}://{} --tls-pin sha256:{}{}", options_.program, method_, scheme, endpoint.authority(),
           options_.fingerprint, own);
    }
  }

  void add_framings(const Endpoint& endpoint) {
    line(R"(printf 'Content-Length: {}\r\n\r\n{}' | {})", request_.size(), request_, netcat(endpoint));
    line(R"(printf '\000\000\000\{:03o}{}' | {})", request_.size(), request_, netcat(endpoint));
  }

  // A token is not sent by datagrams.
  void add_datagrams(const Endpoint& endpoint) {
    const std::string_view no_token = asks_ ? "WIRECALL_TOKEN= " : "";
    line("{}{} call {} --url {}", no_token, options_.program, method_, endpoint.uri());
    if (options_.demo) line("{} bench {} -c 4 -p 16 --url {}", options_.program, method_, endpoint.uri());
    line("printf '{}' | nc -u -w1 {} {}", R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})", endpoint.host(),
         endpoint.port());
  }

  [[nodiscard]] static std::string netcat(const Endpoint& endpoint) {
    return endpoint.kind() == EndpointKind::tcp ? fmt::format("nc -q1 {} {}", endpoint.host(), endpoint.port())
                                                : "nc -q1 -U " + endpoint.path();
  }

  const ServeOptions& options_;
  const bool asks_;
  const std::string_view method_;
  const std::string_view request_;
  std::string text_;
};

std::string protocols_at(const ServeOptions& options, const Endpoint& endpoint) {
  if (way_of(endpoint) == Way::datagrams)
    return "JSON-RPC 2.0: a message a datagram, answered by one of at most three times its bytes";
  std::string text =
      "JSON-RPC 2.0: as plain JSON texts, behind Content-Length headers, behind lengths of four bytes, by HTTP, or by "
      "WebSocket";
  if (endpoint.kind() != EndpointKind::tcp) return text;
  if (options.server.tls.on()) {
    text += options.server.allow_plain       ? "; with TLS or without"
            : takes_plain(options, endpoint) ? "; with TLS, on this machine also without"
                                             : "; with TLS";
    if (options.server.tls.client_auth == ClientAuth::required) text += ", which asks for the client's certificate";
  }
  if (options.server.proxy_protocol)
    text += fmt::format("; only behind the PROXY header of {}", fmt::join(options.server.proxy_from, ", "));
  return text;
}

}  // namespace

std::string banner(const ServeOptions& options, std::span<const Endpoint> endpoints, const Registry& registry) {
  const std::string what = options.demo ? fmt::format("serves {} demo methods to", registry.methods().size())
                                        : "passes on calls to the methods of";
  const std::string who = options.server.principals_file.empty()
                              ? "whoever can connect"
                              : "those that " + options.server.principals_file + " names";
  std::string text = fmt::format("{} {} {}; Ctrl-C finishes calls and ends\n\n", bold("wirecall " + options.version),
                                 what, printable(who));
  std::size_t width = 0;
  for (const Endpoint& endpoint : endpoints) width = std::max(width, endpoint.uri().size());
  for (const Endpoint& endpoint : endpoints)
    text += fmt::format("  {:<{}}   {}\n", endpoint.uri(), width, dim(protocols_at(options, endpoint)));
  if (!options.fingerprint.empty())
    text += fmt::format("  certificate sha256:{}   {}\n", options.fingerprint, dim("its fingerprint, for --tls-pin"));
  text += LinesToCopy{options}.of(endpoints);

  if (registry.methods().empty()) return text + "\n";
  text += fmt::format("\n{}\n", bold("Methods:"));
  width = 0;
  for (const auto& method : registry.methods()) width = std::max(width, signature(*method).size());
  for (const auto& method : registry.methods()) {
    text += fmt::format("  {:<{}}   {}\n", signature(*method), width, dim(method->summary()));
  }
  return text + "\n";
}

void log_banner(const LogSink& log, const ServeOptions& options, std::span<const Endpoint> endpoints,
                const Registry& registry) {
  std::string uris;
  for (const Endpoint& endpoint : endpoints) uris += (uris.empty() ? "" : ",") + endpoint.uri();
  const bool asks = !options.server.principals_file.empty();
  const LogField version{"version", options.version};
  const LogField listen{"listen", uris};
  const LogField methods{"methods", static_cast<std::int64_t>(registry.methods().size())};
  const LogField serves{"serves", asks ? "those that principals_file names" : "whoever can connect"};
  constexpr std::string_view kMessage = "the server listens";
  if (options.fingerprint.empty())
    return log(LogLevel::info, kMessage, {version, listen, methods, serves, {"tls", "off"}});
  const std::string fingerprint = "sha256:" + options.fingerprint;
  log(LogLevel::info, kMessage, {version, listen, methods, serves, {"tls", "on"}, {"fingerprint", fingerprint}});
}

}  // namespace wirecall::cli
