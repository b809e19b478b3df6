// See wirecall/module.hpp: the server of a Module, and the thread on which its handlers run.
#include <atomic>
#include <thread>

#include "wirecall/module.hpp"
#include "wirecall/server.hpp"

namespace wirecall {

namespace detail {
namespace {

std::string unused_uri() {
  static std::atomic<unsigned> made{0};
  return "inproc://wirecall-module-" + std::to_string(++made);
}

Options options_of(const ClientOptions& client) {
  Options options;
  options.log = client.log;
  options.log_level = client.log_level;
  options.blocking_threads = client.blocking_threads;
  return options;
}

}  // namespace

struct ModuleHost::State {
  State(const std::string& path, const ClientOptions& options) : server(options_of(options)), uri(unused_uri()) {
    load_module(server, path);
    server.listen(uri);
    thread = std::thread{[this] { server.run(OnSignals::leave); }};
  }
  State(State&&) = delete;
  ~State() {
    server.stop();
    thread.join();
  }

  Server server;
  std::string uri;
  std::thread thread;
};

ModuleHost::ModuleHost(const std::string& path, const ClientOptions& options)
    : state_(std::make_unique<State>(path, options)) {}
ModuleHost::ModuleHost(ModuleHost&&) noexcept = default;
ModuleHost& ModuleHost::operator=(ModuleHost&&) noexcept = default;
ModuleHost::~ModuleHost() = default;
const std::string& ModuleHost::uri() const noexcept { return state_->uri; }

}  // namespace detail
}  // namespace wirecall
