// See server.hpp. A server is listeners with sessions; all of what a connection does is Session's.
#include "wirecall/server.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "framing/json_text.hpp"
#include "session/session.hpp"
#include "session/stop_signals.hpp"
#include "transport/socket.hpp"
#include "wirecall/loop.hpp"

namespace wirecall {

using session::Session;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// How long a server that stops waits for its peers to see the end, once all is said.
constexpr milliseconds kParting{100};

}  // namespace

struct Server::State final : session::Owner {
  explicit State(Options given)
      : options(std::move(given)),
        workspace(json_codec(), &loop, &options.log),
        text(options.limits, options.delimiter),
        host{.loop = loop, .registry = registry, .limits = options.limits, .workspace = workspace, .owner = *this} {}

  void open_session(int descriptor);
  void connection_ended(session::Connection& connection, session::End end, int error) override;
  void turn(nanoseconds wait_max);
  bool drain(const session::StopSignals& signals);
  [[nodiscard]] bool any(bool (Session::*is)() const noexcept) const;
  void log(LogLevel level, const std::string& line) const {
    if (options.log) options.log(level, line);
  }

  // In the order in which they need each other: what is below goes first.
  const Options options;
  Registry registry;
  Loop loop;
  rpc::Workspace workspace;
  framing::JsonTextSettings text;
  session::Host host;
  std::vector<std::unique_ptr<transport::Listener>> listeners;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::unique_ptr<Session>> ended;  // in this turn
  std::atomic<bool> stop_asked{false};
};

Server::Server() : Server(Options{}) {}
Server::Server(Options options) {
  require_valid(options.limits);
  state_ = std::make_unique<State>(std::move(options));
}
Server::~Server() = default;
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;

Registry& Server::registry() noexcept { return state_->registry; }

Endpoint Server::listen(std::string_view uri) {
  State& state = *state_;
  transport::Listening listening = transport::listen_on(Endpoint{uri});
  state.listeners.push_back(std::make_unique<transport::Listener>(
      state.loop, listening.descriptor, [&state](int descriptor) { state.open_session(descriptor); },
      [&state](int error) {
        if (error == 0) return state.log(LogLevel::info, "connections are accepted again");
        state.log(LogLevel::warning, std::string{"no connections are accepted for a moment: "} + std::strerror(error) +
                                         "; raise the limit on descriptors (ulimit -n) or connect less");
      }));
  return std::move(listening.endpoint);
}

RunEnd Server::run() {
  State& state = *state_;
  const session::StopSignals signals{state.loop};
  while (signals.count() == 0 && !state.stop_asked.load(std::memory_order_relaxed)) state.turn(nanoseconds{-1});
  const bool drained = state.drain(signals);
  state.stop_asked.store(false);
  return drained ? RunEnd::drained : RunEnd::interrupted;
}

void Server::stop() noexcept {
  state_->stop_asked.store(true);
  state_->loop.wake();
}

void Server::State::open_session(int descriptor) {
  auto session = std::make_unique<Session>(host, std::make_unique<transport::SocketStream>(loop, descriptor),
                                           std::make_unique<framing::JsonText>(text));
  session->position = sessions.size();
  sessions.push_back(std::move(session));
}

void Server::State::connection_ended(session::Connection& connection, session::End, int) {
  const std::size_t position = connection.position;
  ended.push_back(std::move(sessions[position]));
  if (position + 1 != sessions.size()) {
    sessions[position] = std::move(sessions.back());
    sessions[position]->position = position;
  }
  sessions.pop_back();
}

void Server::State::turn(nanoseconds wait_max) {
  loop.turn(wait_max);
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
  for (const auto& session : sessions) session->drain();
  while (go_on(deadline) && any(&Session::busy)) turn(left(deadline));
  turn(nanoseconds{0});
  if (any(&Session::busy)) {
    log(LogLevel::warning, "calls were still in progress when the server stopped");
    // Those that can stop are answered as stopped.
    for (const auto& session : sessions) session->stop_calls();
    const nanoseconds last = loop.now() + kParting;
    while (go_on(last) && any(&Session::busy)) turn(left(last));
  }

  // Then each connection gets what it is owed, and some time to take notice.
  for (const auto& session : sessions) session->finish();
  while (go_on(deadline) && any(&Session::has_output)) turn(left(deadline));
  const nanoseconds parting = loop.now() + kParting;
  while (go_on(parting) && !sessions.empty()) turn(left(parting));
  sessions.clear();
  turn(nanoseconds{0});
  return signals.count() < 2;
}

bool Server::State::any(bool (Session::*is)() const noexcept) const {
  return std::ranges::any_of(sessions, [is](const auto& session) { return (*session.*is)(); });
}

}  // namespace wirecall
