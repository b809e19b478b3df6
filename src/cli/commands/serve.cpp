// See serve.hpp.
#include "cli/commands/serve.hpp"

#include <algorithm>
#include <atomic>
#include <fmt/core.h>
#include <signal.h>

#include "broker_server/broker_factory.hpp"
#include "cli/commands/banner.hpp"
#include "cli/commands/demo.hpp"
#include "cli/config/service_manager.hpp"
#include "cli/restart/predecessor.hpp"
#include "cli/restart/restart_path.hpp"
#include "cli/restart/successor.hpp"
#include "cli/terminal.hpp"
#include "server/replacement.hpp"
#include "transport/loopback.hpp"
#include "wirecall/module.hpp"
#include "wirecall/server.hpp"

namespace wirecall::cli {

namespace {

// Where the options name no endpoint, those of the sockets that the service manager has passed to this process, or to
// the one that it takes over from.
std::expected<std::vector<Endpoint>, std::string> endpoints_of(const ServeOptions& options,
                                                               std::span<const transport::ListeningSocket> inherited) {
  std::vector<Endpoint> result;
  const Options defaults;
  const Options& server = options.server;
  const bool names_none = server.listen.empty() && server.host == defaults.host && server.port == defaults.port;
  for (const transport::ListeningSocket& one : inherited) {
    if (names_none && one.passed && std::ranges::find(result, one.endpoint) == result.end())
      result.push_back(one.endpoint);
  }
  for (const std::string& uri : result.empty() ? server.listen_uris() : std::vector<std::string>{}) {
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

/// Others go where nobody wants them; those of a socket unit do not: whoever connects there would wait for ever.
void require_passed_taken(const transport::InheritedSockets& sockets) {
  const auto passed = std::ranges::find_if(sockets.left(), &transport::ListeningSocket::passed);
  if (passed == sockets.left().end()) return;
  throw std::invalid_argument{"the service manager has passed a socket of " + passed->endpoint.uri() +
                              ", where nothing is to listen: add that to listen, or take it out of the socket unit"};
}

/// With the service manager, where it keeps any; and their files with them, for the process that it starts then.
void keep_all_sockets(net::Replacement& replacement, const LogSink& log) {
  if (!keeps_sockets()) return;
  try {
    keep_sockets(replacement.share());
    replacement.keep_files();
  } catch (const std::runtime_error& error) {
    log(LogLevel::warning, "the service manager keeps no sockets for the next process", {{"reason", error.what()}});
  }
}

/// A broker that may take over from another process, and opens its durable store only then.
struct ServedBroker final : Server {
  ServedBroker(const Options& options, bool takes_over)
      : Server(options,
               net::broker_factory(options, takes_over ? net::StoreOpens::by_takeover : net::StoreOpens::at_once)) {}
};

/// Between the banner and Server::run, which has handlers of its own, a signal must end the server as it does later:
/// whoever reads the banner may send one at once.
class EarlySignals {
 public:
  explicit EarlySignals(Server& server) {
    server_.store(&server);
    told_.store(false);
    struct sigaction action{};
    action.sa_handler = [](int) {
      told_.store(true);
      server_.load()->stop();
    };
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  EarlySignals(EarlySignals&&) = delete;
  ~EarlySignals() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }

  [[nodiscard]] bool told() const noexcept { return told_.load(); }

 private:
  static inline std::atomic<Server*> server_;
  static inline std::atomic<bool> told_{false};
  struct sigaction interrupt_{};
  struct sigaction terminate_{};
};

/// Where the other one dies meanwhile this one serves all the same, since nobody else has the sockets.
void take_over_from(Predecessor& predecessor, net::Replacement& replacement, const EarlySignals& signals,
                    const LogSink& log) {
  const auto go_on = [&] {
    if (signals.told()) throw RestartError{"the process that was to take over has been told to stop"};
  };
  try {
    const std::string state = predecessor.receive_state();
    go_on();
    replacement.open_store();
    replacement.take_over(state, predecessor.share_socket());
    go_on();
    predecessor.take_over();
    log(LogLevel::info, "this process has taken over", {{"from", predecessor.pid()}});
  } catch (const RestartError& error) {
    if (!predecessor.has_died()) throw;
    replacement.open_store();
    log(LogLevel::warning, "this process serves in place of one that has died while it was taken over from",
        {{"from", predecessor.pid()}, {"reason", std::string_view{error.what()}}});
  }
  replacement.own_files();
}

}  // namespace

int serve(const ServeOptions& options) {
  std::vector<transport::ListeningSocket> inherited;
  try {
    inherited = take_passed_sockets();
  } catch (const std::runtime_error& error) {
    print_error(error.what());
    return kUsage;
  }
  auto wanted = endpoints_of(options, inherited);
  if (!wanted) {
    print_error(wanted.error());
    return kUsage;
  }
  std::unique_ptr<Predecessor> predecessor;
  const auto fail = [&](const std::exception& error, int status) {
    if (predecessor) predecessor->give_up(error.what());
    print_error(error.what());
    return status;
  };
  try {
    if (options.reload) block_sighup();
    block_sigusr2();
    predecessor = Predecessor::find(options.replace, restart_path(*wanted));
    if (predecessor) {
      for (transport::ListeningSocket& one : predecessor->take_sockets()) inherited.push_back(std::move(one));
      wanted = endpoints_of(options, inherited);
      if (!wanted) throw std::invalid_argument{wanted.error()};
    }
    const std::string path = restart_path(*wanted);
    Options server_options = options.server;
    server_options.log = stderr_log(server_options.log_format);
    const LogSink server_log = server_options.log.at_least(server_options.log_level);
    ServedBroker server{server_options, predecessor != nullptr};
    if (options.demo) add_demo_methods(server.registry());
    for (const std::string& module : options.modules) load_module(server, module);
    net::Replacement replacement{server};
    replacement.inherit(transport::InheritedSockets{std::move(inherited)});
    std::vector<Endpoint> endpoints;
    for (const Endpoint& endpoint : *wanted) endpoints.push_back(server.listen(endpoint.uri()));
    require_passed_taken(replacement.left());
    replacement.close_left();
    const EarlySignals signals{server};
    std::optional<ConfigReloader> reloader;
    if (options.reload) reloader.emplace(server, std::move(server_options), options.reload);
    Successor::Settings restarts{.command = options.command,
                                 .path = path,
                                 .start_time = std::chrono::milliseconds{options.restart_ms},
                                 .log = server_log};
    if (predecessor) {
      restarts.listening = predecessor->take_restart_socket(path);
      take_over_from(*predecessor, replacement, signals, server_log);
      predecessor.reset();
    }
    replacement.begin_to_listen();
    Successor successor{server, std::move(restarts)};
    ServeOptions shown = options;
    shown.fingerprint = server.certificate_fingerprint();
    if (options.server.log_format == LogFormat::json) {
      log_banner(server_log, shown, endpoints, server.registry());
    } else {
      print_stderr(banner(shown, endpoints, server.registry()));
    }
    keep_all_sockets(replacement, server_log);
    notify_ready();
    const RunEnd end = server.run();
    if (!successor.has_taken_over()) notify_stopping();
    return end == RunEnd::drained ? kSuccess : kInterrupted;
  } catch (const std::invalid_argument& error) {  // of an option, or a file that one names
    return fail(error, kUsage);
  } catch (const std::exception& error) {
    return fail(error, kCannotConnect);
  }
}

}  // namespace wirecall::cli
