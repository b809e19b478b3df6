// ServingLoop: one loop of a server with the connections that live on it: accepts, serves, and in the end drains them.
// A server has one for each of its threads; nothing is shared between them but what does not change while they run.
// Made and given its sources by the thread that makes the server, before anything runs; from then on everything but
// `serve_elsewhere`, `stats` and waking is for the one thread at a time that has the loop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "session/connection.hpp"
#include "session/hand_over.hpp"
#include "session/undecided.hpp"
#include "transport/source.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/options.hpp"
#include "wirecall/stats.hpp"

namespace wirecall::session {

class ServingLoop final : private Keeper, private Timer {
 public:
  /// `connections_open` are those of all loops together. All that is referred to outlives the loop.
  ServingLoop(std::unique_ptr<runtime::Backend> backend, const Options& options, const Registry& registry,
              const Protocols& protocols, std::atomic<std::size_t>& connections_open);
  ~ServingLoop();
  ServingLoop(ServingLoop&&) = delete;

  [[nodiscard]] Loop& loop() noexcept { return loop_; }
  /// Peers may connect from now on; `accepted` is given their descriptors. Throws as transport::open_source does.
  const Endpoint& listen(const Endpoint& endpoint, transport::Listener::Accepted accepted);
  /// Serves those who connect to a socket that listens already.
  void listen(transport::Listening listening);
  /// Serves a connected, non-blocking socket, which is the loop's from now on; or closes it, when there are as many as
  /// there may be.
  void open(int descriptor);
  /// The same, from the thread of another loop. The socket is closed when this loop has gone.
  void serve_elsewhere(int descriptor);

  /// Serves until `stop` says so, or standard input has ended and there is nothing else; then takes no more
  /// connections, finishes the calls in progress, and closes: at once when `hurry` says so.
  void run(const std::function<bool()>& stop, const std::function<bool()>& hurry);
  /// Any thread.
  [[nodiscard]] Stats stats() const;

 private:
  void connection_ended(Connection& connection, End end, int error) override;
  void connection_decided(Connection& undecided, std::unique_ptr<Connection> decided) override;
  void expired() override;
  void look_for_idle_later();
  [[nodiscard]] transport::Listener::Failed failed();
  void forget(std::size_t connections) noexcept;
  void turn(std::chrono::nanoseconds wait_max);
  void drain(const std::function<bool()>& hurry);
  [[nodiscard]] bool exhausted() const noexcept;
  [[nodiscard]] bool any(bool (Connection::*is)() const noexcept) const;

  const Options* options_;
  const Protocols* protocols_;
  std::atomic<std::size_t>* connections_open_;
  bool full_ = false;  // the log knows
  // In the order in which they need each other: what is below goes first.
  Loop loop_;
  rpc::Workspace workspace_;
  Host host_;
  std::vector<std::unique_ptr<transport::Source>> sources_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> ended_;  // in this turn, or while a handler is away
  HandOver hand_over_;
};

}  // namespace wirecall::session
