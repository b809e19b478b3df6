// See serve.hpp.
#include "cli/commands/serve.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/core.h>
#include <signal.h>

#include "base/printable.hpp"
#include "cli/commands/demo.hpp"
#include "cli/config/service_manager.hpp"
#include "cli/terminal.hpp"
#include "transport/loopback.hpp"
#include "transport/xdp.hpp"
#include "wirecall/broker.hpp"

namespace wirecall::cli {

namespace {

// Where a client on this machine reaches a listener, which may listen on all addresses.
Endpoint reachable(const Endpoint& endpoint) {
  if (endpoint.kind() == EndpointKind::xdp) return transport::udp_endpoint_of(endpoint);
  const std::string scheme = endpoint.kind() == EndpointKind::udp ? "udp://" : "tcp://";
  if (endpoint.host() == "0.0.0.0") return Endpoint{scheme + "127.0.0.1"}.with_port(endpoint.port());
  if (endpoint.host() == "::") return Endpoint{scheme + "[::1]"}.with_port(endpoint.port());
  return endpoint;
}

std::expected<std::vector<Endpoint>, std::string> endpoints_of(const ServeOptions& options) {
  std::vector<Endpoint> result;
  for (const std::string& uri : options.server.listen_uris()) {
    auto endpoint = Endpoint::parse(uri);
    if (!endpoint) return std::unexpected(endpoint.error());
    result.push_back(*std::move(endpoint));
  }
  for (const Endpoint& endpoint : result) {
    if (!options.insecure && options.server.principals_file.empty() && !transport::is_local(endpoint)) {
      return std::unexpected(fmt::format(
          "{} can be reached from other machines, and nobody has to authenticate; listen on 127.0.0.1, name "
          "a --principals-file, or say --insecure if that is meant",
          endpoint.uri()));
    }
  }
  return result;
}

/// Between the banner and Server::run, which has handlers of its own, a signal must end the server as it does later:
/// whoever reads the banner may send one at once.
class EarlySignals {
 public:
  explicit EarlySignals(Server& server) {
    server_.store(&server);
    struct sigaction action{};
    action.sa_handler = [](int) { server_.load()->stop(); };
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  EarlySignals(EarlySignals&&) = delete;
  ~EarlySignals() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  static inline std::atomic<Server*> server_;
  struct sigaction interrupt_{};
  struct sigaction terminate_{};
};

std::string signature(const Method& method) {
  std::string text = method.name() + "(";
  for (const Param& param : method.params()) {
    if (text.back() != '(') text += ", ";
    text += param.name();
  }
  const auto arguments = method.signature().arguments;
  if (!arguments.empty() && arguments.back().rest) text += "...";
  return text + ")";
}

// The banner for programs that read the log as JSON, as a record of it.
void log_banner(const LogSink& log, const ServeOptions& options, std::span<const Endpoint> endpoints,
                const Registry& registry) {
  std::string uris;
  for (const Endpoint& endpoint : endpoints) uris += (uris.empty() ? "" : ",") + endpoint.uri();
  const bool asks = !options.server.principals_file.empty();
  log(LogLevel::info, "the server listens",
      {{"version", options.version},
       {"listen", uris},
       {"methods", static_cast<std::int64_t>(registry.methods().size())},
       {"serves", asks ? "those that principals_file names" : "whoever can connect"},
       {"tls", options.server.tls.on() ? "on" : "off"}});
}

}  // namespace

int serve(const ServeOptions& options) {
  const auto wanted = endpoints_of(options);
  if (!wanted) {
    print_error(wanted.error());
    return kUsage;
  }
  try {
    if (options.reload) block_sighup();
    Options server_options = options.server;
    server_options.log = stderr_log(server_options.log_format);
    const LogSink server_log = server_options.log.at_least(server_options.log_level);
    Broker server{server_options};
    if (options.demo) add_demo_methods(server.registry());
    std::vector<Endpoint> endpoints;
    for (const Endpoint& endpoint : *wanted) endpoints.push_back(server.listen(endpoint.uri()));
    const EarlySignals signals{server};
    std::optional<ConfigReloader> reloader;
    if (options.reload) reloader.emplace(server, std::move(server_options), options.reload);
    if (options.server.log_format == LogFormat::json) {
      log_banner(server_log, options, endpoints, server.registry());
    } else {
      ServeOptions shown = options;
      shown.fingerprint = server.certificate_fingerprint();
      print_stderr(banner(shown, endpoints, server.registry()));
    }
    notify_ready();
    const RunEnd end = server.run();
    notify_stopping();
    return end == RunEnd::drained ? kSuccess : kInterrupted;
  } catch (const std::invalid_argument& error) {  // of an option, or a file that one names
    print_error(error.what());
    return kUsage;
  } catch (const std::exception& error) {
    print_error(error.what());
    return kCannotConnect;
  }
}

// Lines that reach `endpoint` from a terminal; none where only the parent or this process reaches it.
static std::string lines_to_copy_of_udp(const ServeOptions& options, const Endpoint& endpoint) {
  const std::string method = options.demo ? "subtract 42 23" : "rpc.ping";
  std::string text = fmt::format("\n{}\n", bold("To copy into another terminal:"));
  text += fmt::format("  {} call {} --url {}\n", options.program, method, endpoint.uri());
  if (options.demo) text += fmt::format("  {} bench {} -c 4 -p 16 --url {}\n", options.program, method, endpoint.uri());
  return text + fmt::format("  printf '{}' | nc -u -w1 {} {}\n", R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})",
                            endpoint.host(), endpoint.port());
}

// By the fingerprint, which needs neither an authority nor a name.
static std::string lines_to_copy_of_tls(const ServeOptions& options, const Endpoint& endpoint) {
  const std::string_view method = options.demo ? "subtract 42 23" : "rpc.ping";
  std::string text;
  for (const std::string_view scheme : {"tls", "https", "wss"}) {
    text += fmt::format("  {} call {} --url {}://{} --tls-pin sha256:{}\n", options.program, method, scheme,
                        endpoint.authority(), options.fingerprint);
  }
  return text;
}

static std::string lines_to_copy(const ServeOptions& options, const Endpoint& endpoint) {
  if (endpoint.kind() == EndpointKind::udp) return lines_to_copy_of_udp(options, endpoint);
  const bool tcp = endpoint.kind() == EndpointKind::tcp;
  if (tcp && options.server.proxy_protocol) return {};
  if (!tcp && endpoint.kind() != EndpointKind::unix_socket) return {};
  const bool usual = endpoint == Endpoint{"tcp://127.0.0.1"};
  const std::string url = usual ? std::string{} : fmt::format(" --url {}", endpoint.uri());

  const bool asks = !options.server.principals_file.empty();
  std::string text = fmt::format("\n{}\n", bold(asks ? "To copy into another terminal, with a token in $WIRECALL_TOKEN:"
                                                     : "To copy into another terminal:"));
  std::string_view request = R"({"jsonrpc":"2.0","method":"rpc.methods","id":1})";
  if (options.demo) {
    text += fmt::format("  {} call subtract 42 23{}\n", options.program, url);
    text += fmt::format("  {} call subtract minuend=42 subtrahend=23{}\n", options.program, url);
    text += fmt::format("  {} bench subtract 42 23 -c 32 -p 16{}\n", options.program, url);
    request = R"({"jsonrpc":"2.0","method":"sum","params":[1,2,4],"id":1})";
  } else {
    text += fmt::format("  {} reply greet 'Hello, {{name}}!'{}\n", options.program, url);
    text += fmt::format("  {} call greet name=Ada{}\n", options.program, url);
    text += fmt::format("  {} ls{}\n", options.program, url);
  }
  const std::string socket = tcp ? fmt::format("nc -q1 {} {}", endpoint.host(), endpoint.port())
                                 : fmt::format("nc -q1 -U {}", endpoint.path());
  if (asks) {
    constexpr std::string_view kHello = R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"%s"},"id":0})";
    text += fmt::format("  printf '{}\\n{}\\n' \"$WIRECALL_TOKEN\" | {}\n", kHello, request, socket);
  } else {
    text += fmt::format("  printf '{}\\n' | {}\n", request, socket);
  }
  const std::string_view who = asks ? R"(-H "Authorization: Bearer $WIRECALL_TOKEN" )" : "";
  if (tcp) {
    text += fmt::format("  curl {}-d '{}' http://{}/rpc\n", who, request, endpoint.authority());
    if (options.demo) {
      constexpr std::string_view kStream = R"({"jsonrpc":"2.0","method":"count","params":[3],"id":1})";
      text += fmt::format("  curl -N {}-H 'Accept: text/event-stream' -d '{}' http://{}/rpc\n", who, kStream,
                          endpoint.authority());
    }
    text += fmt::format("  {} call rpc.ping --url ws://{}/\n", options.program, endpoint.authority());
  } else {
    text += fmt::format("  curl {}-d '{}' --unix-socket {} http://localhost/rpc\n", who, request, endpoint.path());
  }
  if (tcp && !options.fingerprint.empty()) text += lines_to_copy_of_tls(options, endpoint);
  if (asks) return text;
  text += fmt::format("  printf 'Content-Length: {}\\r\\n\\r\\n{}' | {}\n", request.size(), request, socket);
  text += fmt::format("  printf '\\000\\000\\000\\{:03o}{}' | {}\n", request.size(), request, socket);
  return text;
}

static std::string protocols_at(const ServeOptions& options, const Endpoint& endpoint) {
  if (endpoint.kind() == EndpointKind::udp || endpoint.kind() == EndpointKind::xdp)
    return "JSON-RPC 2.0: a message a datagram, answered by one of at most three times its bytes";
  const bool proxied = endpoint.kind() == EndpointKind::tcp && options.server.proxy_protocol;
  const bool tls = endpoint.kind() == EndpointKind::tcp && options.server.tls.on();
  return fmt::format(
      "JSON-RPC 2.0{}: as plain JSON texts, behind Content-Length headers, behind lengths of four bytes, by HTTP, or "
      "by "
      "WebSocket{}",
      proxied ? ", behind a PROXY header from proxy_from" : "",
      !tls                         ? ""
      : options.server.allow_plain ? "; with TLS or without"
                                   : "; with TLS, on this machine also without");
}

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
  text += lines_to_copy(options, reachable(endpoints.front()));

  if (registry.methods().empty()) return text + "\n";
  text += fmt::format("\n{}\n", bold("Methods:"));
  width = 0;
  for (const auto& method : registry.methods()) width = std::max(width, signature(*method).size());
  for (const auto& method : registry.methods()) {
    text += fmt::format("  {:<{}}   {}\n", signature(*method), width, dim(method->summary()));
  }
  return text + "\n";
}

}  // namespace wirecall::cli
