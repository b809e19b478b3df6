// Server: plain functions become JSON-RPC methods on a port. It owns its registry, its loops and its connections.
// Methods are added and listeners opened before `run`, which serves on the calling thread and, for
// Options::thread_count above 1, on further threads. Handlers that are plain functions run concurrently on these
// threads, and on one more for each handler that takes longer than Options::takeover_ms: data that they share needs a
// lock. Thread: the one that made the server; functions whose comment says "any thread" may be called on any.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wirecall/batched.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/http.hpp"
#include "wirecall/listeners.hpp"
#include "wirecall/options.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/stats.hpp"

namespace wirecall::rpc {
class Broker;
struct BrokerHost;
using BrokerFactory = std::function<std::unique_ptr<Broker>(const BrokerHost& host)>;
}  // namespace wirecall::rpc

namespace wirecall::net {
class Replacement;
}

namespace wirecall {

/// What SIGINT and SIGTERM do while run() runs. `stop`: stop the server; `leave`: the program handles them itself.
enum class OnSignals { stop, leave };

/// How a server's run has ended.
enum class RunEnd {
  drained,      ///< stop() or the first signal; calls in progress have been answered, or their time was up
  interrupted,  ///< a second signal: at once
};

class Server {
 public:
  Server();
  /// Throws std::invalid_argument for invalid options, and std::system_error when the system has no descriptors left
  /// for a loop.
  explicit Server(Options options);
  /// Takes the options as JSON text: Server{R"({"port": 9000, "limits": {"batch": 10}})"}. Throws as Options::from_json
  /// too.
  explicit Server(std::string_view options_json) : Server(Options::from_json(options_json)) {}
  ~Server();
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;

  [[nodiscard]] Registry& registry() noexcept;
  /// Adds a function, lambda or functor as the method `name`; see Registry::method.
  template <class F>
  Method& method(std::string name, F&& callable, std::vector<Param> params = {}) {
    return registry().method(std::move(name), std::forward<F>(callable), std::move(params));
  }
  /// Adds a member function of `object`, which outlives the server, as the method `name`.
  template <class M, class C>
    requires std::is_member_function_pointer_v<M>
  Method& method(std::string name, M member, C& object, std::vector<Param> params = {}) {
    return registry().method(std::move(name), member, object, std::move(params));
  }
  /// Adds a function, or a member function of `object`, by its own name; see Registry::method.
  template <auto Function>
  Method& method(std::vector<Param> params = {}) {
    return registry().method<Function>(std::move(params));
  }
  template <auto Function, class C>
    requires std::is_member_function_pointer_v<decltype(Function)>
  Method& method(C& object, std::vector<Param> params = {}) {
    return registry().method<Function>(object, std::move(params));
  }
  /// Adds a method whose results are kept; see Registry::method.
  template <class F>
  Method& method(std::string name, F&& callable, MethodOptions options) {
    return registry().method(std::move(name), std::forward<F>(callable), std::move(options));
  }
  template <class M, class C>
    requires std::is_member_function_pointer_v<M>
  Method& method(std::string name, M member, C& object, MethodOptions options) {
    return registry().method(std::move(name), member, object, std::move(options));
  }
  template <auto Function>
  Method& method(MethodOptions options) {
    return registry().method<Function>(std::move(options));
  }
  template <auto Function, class C>
    requires std::is_member_function_pointer_v<decltype(Function)>
  Method& method(C& object, MethodOptions options) {
    return registry().method<Function>(object, std::move(options));
  }
  /// Adds a function that is called once for many calls; see batched (wirecall/batched.hpp).
  template <class F>
  Method& batch_method(std::string name, F&& function, BatchOptions options, std::vector<Param> params = {}) {
    return registry().add(std::move(name), std::move(params), batched(std::forward<F>(function), std::move(options)));
  }
  /// Adds a coroutine that returns a Stream as a subscription; see Registry::subscription.
  template <class F>
  Method& subscription(SubscriptionNames names, F&& stream_function, std::vector<Param> params = {}) {
    return registry().subscription(std::move(names), std::forward<F>(stream_function), std::move(params));
  }
  /// Adds a middleware around every call; see Registry::use.
  void use(Middleware middleware) { registry().use(std::move(middleware)); }
  /// Serves HTTP requests of `method` ("GET", which serves HEAD too, "POST", "PUT", "PATCH" or "DELETE") at `path`; a
  /// path that ends in "/*" is a prefix. The server checks Host, Origin and token of these requests as of all others
  /// (docs/http.md). The handler must not block: it runs on the thread of the loop, concurrently on several threads
  /// where Options::thread_count is above 1. Throws std::invalid_argument for a path that does not begin with '/', for
  /// another method, and for a method and path that are served already.
  void route(std::string_view method, std::string path, HttpHandler handler);

  /// Binds at once, so that clients can connect; run() serves them. May be called several times. Returns the
  /// endpoint with its actual port. Throws std::invalid_argument or std::runtime_error, whose text has the cause and a
  /// fix; std::invalid_argument as well where methods are missing that the registry requires (Registry::require).
  Endpoint listen(std::string_view uri);
  /// The same for all endpoints that the options name: each of Options::listen, or TCP at Options::host and port.
  std::vector<Endpoint> listen();
  /// Listens on one socket of an endpoint that several processes share: the one of `index`, from 0. With several
  /// threads the first accepts its connections and gives each to the next thread in turn. Throws std::out_of_range for
  /// an index beyond Listeners::count, and std::system_error.
  Endpoint listen(const Listeners& listeners, std::size_t index);
  /// Serves one connection by a transport of the program's own (wirecall/transport.hpp), from the next turn on; with
  /// several threads each is given one in turn. Any thread, at any time. Throws std::bad_alloc.
  void serve(std::unique_ptr<Transport> transport);

  /// Replaces Options::principals; an empty list lets everybody do everything. Closes the connections of principals
  /// that have changed or lost their token. Takes effect in the next turn of each loop. Any thread, at any time. Throws
  /// std::invalid_argument for invalid principals, and has no effect then.
  void set_principals(std::vector<Principal> principals);

  /// Reads the certificates, keys, authorities and revocation lists of Options::tls anew, for the connections that come
  /// from now on; no connection is lost, but those of clients whose certificates are accepted no more, where
  /// authorities or revocation lists have changed. Their sessions cannot be resumed then. Any thread, at any time.
  /// Throws std::invalid_argument, whose text names the file, the cause and the fix, and has no effect then.
  void reload_certificates();
  /// SHA-256 of the certificate that is shown to clients which ask for no name of another, as 64 hexadecimal digits;
  /// empty where the server does not speak TLS. Any thread.
  [[nodiscard]] std::string certificate_fingerprint() const;

  /// Replaces the limits, for open connections as well; each thread applies them between two turns of its loop. Calls
  /// in progress keep their deadlines, and data already accepted stays accepted. `in_force` is called once on one of
  /// the server's threads when all have applied them, or in the destructor; it must not throw. Any thread, at any time.
  /// Throws std::invalid_argument for invalid limits, and has no effect then.
  void set_limits(const Limits& limits, std::function<void()> in_force = {});
  /// Sets the lowest level that is logged. Any thread, at any time.
  void set_log_level(LogLevel level) noexcept;
  /// The counters since the server was made. Any thread, at any time.
  [[nodiscard]] Stats stats() const;

  /// Serves until stop(), SIGINT or SIGTERM, or, where it listens on stdio only, the end of standard input. Then it
  /// drains: it accepts no more connections, answers new calls with -32009, and returns when the calls in progress have
  /// ended, or after Options::drain_ms. It waits longer for a handler that is a plain function, since nothing can end
  /// that. A second signal makes it return at once; where such a handler runs, it ends the process within a second.
  /// Throws what one of its threads has failed with, when all have ended, and std::system_error when writing to
  /// standard output has failed, except because its reader has closed it.
  RunEnd run(OnSignals on_signals = OnSignals::stop);
  /// Makes run() drain and return; called before run(), it ends the next run() at once. Any thread.
  void stop() noexcept;
  /// The same without draining, as by a second signal: run() waits for handlers that are plain functions only, and
  /// returns RunEnd::interrupted. Any thread.
  void stop_at_once() noexcept;

  /// Internal, for Broker: gives the first loop the broker that `broker` makes (src/rpc/broker.hpp). That loop handles
  /// all messages, and further threads receive and send for it. An empty function makes none.
  Server(Options options, const rpc::BrokerFactory& broker);

 private:
  friend class net::Replacement;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wirecall
