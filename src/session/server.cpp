// See server.hpp. A server is listeners with sessions; all of what a connection does is its own.
#include "wirecall/server.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "framing/json_text.hpp"
#include "session/connection.hpp"
#include "session/hand_over.hpp"
#include "session/stop_signals.hpp"
#include "session/undecided.hpp"
#include "transport/socket.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/stats.hpp"

namespace wirecall {

using session::Connection;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// How long a server that stops waits for its peers to see the end, once all is said.
constexpr milliseconds kParting{100};
// Connection::position of those that are no longer in the table.
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

}  // namespace

struct Server::State final : session::Keeper {
  explicit State(Options given)
      : options(std::move(given)),
        workspace(json_codec(), &loop, &options.log),
        text(options.limits, options.delimiter),
        http{.allow_hosts = options.allow_hosts,
             .allow_origins = options.allow_origins,
             .bound_hosts = {},
             .notification_status = options.http_notification_status,
             .metrics = [this] { return format_stats(StatsFormat::prometheus, stats()); }},
        host{.loop = loop, .registry = registry, .limits = options.limits, .workspace = workspace, .owner = *this} {}

  void open_connection(int descriptor);
  void connection_ended(Connection& connection, session::End end, int error) override;
  void connection_decided(Connection& undecided, std::unique_ptr<Connection> decided) override;
  void turn(nanoseconds wait_max);
  bool drain(const session::StopSignals& signals);
  [[nodiscard]] Stats stats() const;
  [[nodiscard]] bool any(bool (Connection::*is)() const noexcept) const;
  void log(LogLevel level, const std::string& line) const {
    if (options.log) options.log(level, line);
  }

  // In the order in which they need each other: what is below goes first.
  const Options options;
  Registry registry;
  Loop loop;
  rpc::Workspace workspace;
  framing::JsonTextSettings text;
  session::HttpSettings http;
  session::Protocols protocols{text, http};
  session::Host host;
  std::vector<std::unique_ptr<transport::Listener>> listeners;
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<std::unique_ptr<Connection>> ended;  // in this turn
  session::HandOver hand_over{
      host, {.after = milliseconds{options.hand_over_ms}, .logged_after = milliseconds{options.slow_handler_ms}}};
  std::atomic<bool> stop_asked{false};
};

Server::Server() : Server(Options{}) {}
Server::Server(Options options) {
  require_valid(options);
  options.log = options.log.at_least(options.log_level);
  state_ = std::make_unique<State>(std::move(options));
}
Server::~Server() = default;
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;

Stats Server::stats() const { return state_->stats(); }

Registry& Server::registry() noexcept { return state_->registry; }

Endpoint Server::listen(std::string_view uri) {
  State& state = *state_;
  transport::Listening listening = transport::listen_on(Endpoint{uri});
  state.listeners.push_back(std::make_unique<transport::Listener>(
      state.loop, listening.descriptor, [&state](int descriptor) { state.open_connection(descriptor); },
      [&state](int error) {
        if (error == 0) return state.log(LogLevel::info, "connections are accepted again");
        state.log(LogLevel::warning, std::string{"no connections are accepted for a moment: "} + std::strerror(error) +
                                         "; raise the limit on descriptors (ulimit -n) or connect less");
      }));
  state.http.bound_hosts.push_back(listening.endpoint.host());
  return std::move(listening.endpoint);
}

RunEnd Server::run() {
  State& state = *state_;
  const session::StopSignals signals{state.loop};
  bool drained = false;
  state.hand_over.run([&state, &signals, &drained] {
    while (signals.count() == 0 && !state.stop_asked.load(std::memory_order_relaxed)) state.turn(nanoseconds{-1});
    drained = state.drain(signals);
  });
  state.ended.clear();
  state.loop.turn(nanoseconds{0});  // closes
  state.stop_asked.store(false);
  return drained ? RunEnd::drained : RunEnd::interrupted;
}

void Server::stop() noexcept {
  state_->stop_asked.store(true);
  state_->loop.wake();
}

void Server::State::open_connection(int descriptor) {
  ++workspace.stats.connections_accepted;
  ++workspace.stats.connections_open;
  auto connection = std::make_unique<session::Undecided>(host, *this, protocols,
                                                         std::make_unique<transport::SocketStream>(loop, descriptor));
  connection->position = connections.size();
  connections.push_back(std::move(connection));
}

void Server::State::connection_decided(Connection& undecided, std::unique_ptr<Connection> decided) {
  decided->position = undecided.position;
  ended.push_back(std::exchange(connections[decided->position], std::move(decided)));
}

void Server::State::connection_ended(Connection& connection, session::End, int) {
  --workspace.stats.connections_open;
  const std::size_t position = connection.position;
  if (position == kNowhere) return;
  ended.push_back(std::move(connections[position]));
  if (position + 1 != connections.size()) {
    connections[position] = std::move(connections.back());
    connections[position]->position = position;
  }
  connections.pop_back();
}

Stats Server::State::stats() const {
  Stats stats = workspace.stats;
  stats.responses_dropped += host.responses_dropped;
  stats.slow_peers_cut += host.slow_peers_cut;
  stats.connections_timed_out += host.timed_out;
  return stats;
}

void Server::State::turn(nanoseconds wait_max) {
  hand_over.turn(wait_max);
  if (hand_over.away() == 0) [[likely]]
    ended.clear();
}

// False when it was interrupted by a second signal.
bool Server::State::drain(const session::StopSignals& signals) {
  const nanoseconds deadline = loop.now() + milliseconds{options.drain_ms};
  const auto left = [&](nanoseconds until) { return std::max(until - loop.now(), nanoseconds{0}); };
  const auto go_on = [&](nanoseconds until) { return signals.count() < 2 && left(until) != nanoseconds{0}; };

  // Who has connected belongs to us, and so does what they have sent up to now: the kernel has accepted it.
  turn(nanoseconds{0});
  listeners.clear();
  turn(nanoseconds{0});
  // Calls that come from now on, while others are still in progress, are answered with -32009.
  for (const auto& connection : connections) connection->drain();
  while (go_on(deadline) && any(&Connection::busy)) turn(left(deadline));
  turn(nanoseconds{0});
  if (any(&Connection::busy)) {
    log(LogLevel::warning, "calls were still in progress when the server stopped");
    // Those that can stop are answered as stopped.
    for (const auto& connection : connections) connection->stop_calls();
    const nanoseconds last = loop.now() + kParting;
    while (go_on(last) && any(&Connection::busy)) turn(left(last));
  }

  // Who calls all the time learns from an answer that this is over, and may leave by itself.
  const nanoseconds notice = loop.now() + kParting;
  while (go_on(std::min(notice, deadline)) && !connections.empty()) turn(left(std::min(notice, deadline)));

  // Then each connection gets what it is owed, and some time to take notice.
  for (const auto& connection : connections) connection->finish();
  while (go_on(deadline) && any(&Connection::has_output)) turn(left(deadline));
  const nanoseconds parting = loop.now() + kParting;
  while (go_on(parting) && !connections.empty()) turn(left(parting));
  for (auto& connection : connections) {
    connection->position = kNowhere;
    ended.push_back(std::move(connection));
  }
  connections.clear();
  turn(nanoseconds{0});
  return signals.count() < 2;
}

bool Server::State::any(bool (Connection::*is)() const noexcept) const {
  return std::ranges::any_of(connections, [is](const auto& connection) { return (*connection.*is)(); });
}

}  // namespace wirecall
