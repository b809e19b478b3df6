// See serve.hpp.
#include "cli/commands/serve.hpp"

#include <atomic>
#include <fmt/core.h>
#include <signal.h>

#include "cli/commands/banner.hpp"
#include "cli/commands/demo.hpp"
#include "cli/config/service_manager.hpp"
#include "cli/terminal.hpp"
#include "transport/loopback.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/module.hpp"

namespace wirecall::cli {

namespace {

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
    for (const std::string& path : options.modules) load_module(server, path);
    std::vector<Endpoint> endpoints;
    for (const Endpoint& endpoint : *wanted) endpoints.push_back(server.listen(endpoint.uri()));
    const EarlySignals signals{server};
    std::optional<ConfigReloader> reloader;
    if (options.reload) reloader.emplace(server, std::move(server_options), options.reload);
    ServeOptions shown = options;
    shown.fingerprint = server.certificate_fingerprint();
    if (options.server.log_format == LogFormat::json) {
      log_banner(server_log, shown, endpoints, server.registry());
    } else {
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

}  // namespace wirecall::cli
