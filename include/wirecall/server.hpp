// Server: plain functions become JSON-RPC methods on a port. It owns its registry, its loops and its connections.
// Methods are added and listeners opened before `run`; then that serves, on the thread that called it and, with
// Options::thread_count, on as many more. Handlers that are plain functions may run at the same time: on those threads,
// and on one more for each handler that takes longer than Options::hand_over_ms. What they share is theirs to guard.
// Thread: the one that made it, or `run`s it; what says so may be called from any.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wirecall/endpoint.hpp"
#include "wirecall/listeners.hpp"
#include "wirecall/options.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/stats.hpp"

namespace wirecall {

/// What run() does about SIGINT and SIGTERM. `leave`: nothing; they are the program's, of which the server is a part.
enum class OnSignals { stop, leave };

/// How a server's run has ended.
enum class RunEnd {
  drained,      ///< stop() or the first signal; calls in progress have been answered, or their time was up
  interrupted,  ///< a second signal: at once
};

class Server {
 public:
  Server();
  /// Throws std::invalid_argument for options that cannot be, std::system_error when the system refuses a loop.
  explicit Server(Options options);
  /// Of options as JSON text: Server{R"({"port": 9000, "limits": {"batch": 10}})"}; `listen()` listens at that port.
  /// Throws as Options::from_json.
  explicit Server(std::string_view options_json) : Server(Options::from_json(options_json)) {}
  ~Server();
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;

  [[nodiscard]] Registry& registry() noexcept;
  /// Offers a function, lambda or functor as a method; see Registry::method.
  template <class F>
  Method& method(std::string name, F&& callable, std::vector<Param> params = {}) {
    return registry().method(std::move(name), std::forward<F>(callable), std::move(params));
  }
  /// Offers a member function of `object`, which outlives the server.
  template <class M, class C>
    requires std::is_member_function_pointer_v<M>
  Method& method(std::string name, M member, C& object, std::vector<Param> params = {}) {
    return registry().method(std::move(name), member, object, std::move(params));
  }
  /// Offers a stream to subscribe to; see Registry::subscription.
  template <class F>
  Method& subscription(SubscriptionNames names, F&& stream_function, std::vector<Param> params = {}) {
    return registry().subscription(std::move(names), std::forward<F>(stream_function), std::move(params));
  }
  void use(Middleware middleware) { registry().use(std::move(middleware)); }

  /// Binds at once, so peers may connect from now on; they are served by run(). Several are allowed. Returns the place
  /// with its actual port. Throws std::invalid_argument or std::runtime_error with the cause and the cure.
  Endpoint listen(std::string_view uri);
  /// The same for all places that the options name: each of Options::listen, or TCP at Options::host and port.
  std::vector<Endpoint> listen();
  /// Serves those who connect to the socket of that number, counted from 0, of a place that several processes share.
  /// With several threads the first has all, and hands them round. Throws std::out_of_range, std::system_error.
  Endpoint listen(const Listeners& listeners, std::size_t number);

  /// Who may do what, in place of Options::principals; none: everybody everything. Connections of principals that have
  /// changed, or have another token, are closed. Takes effect with the next turn of each loop. Any thread. Throws
  /// std::invalid_argument for principals that cannot be, and has no effect then.
  void set_principals(std::vector<Principal> principals);

  /// The limits from now on, of open connections as well; each thread takes them between two turns of its loop. What is
  /// in progress keeps the time it was given, and what has been taken in stays though there is less room. `in_force` is
  /// called on one of the threads when all have taken them, or with the server; it does not throw. Any thread, at any
  /// time. Throws std::invalid_argument for limits that cannot be, and nothing has changed then.
  void set_limits(const Limits& limits, std::function<void()> in_force = {});
  /// The least of what its log is told from now on. Any thread, at any time.
  void set_log_level(LogLevel level) noexcept;
  /// What it has done since it was made. Any thread, at any time.
  [[nodiscard]] Stats stats() const;

  /// Serves until stop() or, while it runs, SIGINT or SIGTERM; or the end of standard input, where it listens on
  /// nothing else. Then it takes no more connections, answers new calls with -32009, and returns when those in progress
  /// are done, or Options::drain_ms have passed; but a handler that is a plain function is waited for until it comes
  /// back, since nothing can end it. A second signal makes it return at once, or, where there is such a handler, ends
  /// the process within a second. Throws what a thread of it failed with, when all have ended, and std::system_error
  /// when standard output has refused what was sent there, but for its reader having left.
  RunEnd run(OnSignals on_signals = OnSignals::stop);
  /// Makes run() drain and return; the next one when none is running.
  void stop() noexcept;
  /// The same, but calls in progress are not waited for, except for those of plain functions: as by a second signal.
  /// That run() returns RunEnd::interrupted.
  void stop_at_once() noexcept;

 protected:
  /// A broker's connections may provide methods for each other.
  Server(Options options, bool broker);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wirecall
