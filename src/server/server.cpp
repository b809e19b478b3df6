// See server.hpp. A server is loops, each with a thread; that of the first is whoever calls run(). All of what a
// connection does is its own. TCP listeners shard: each loop has one of its own on the same port, and the kernel
// spreads the connections. Those of other kinds arrive at the first loop, which hands them round.
// A broker's connections reach each other: it has one loop, and its other threads receive and send for that.
#include "wirecall/server.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <system_error>
#include <thread>

#include "base/assert.hpp"
#include "rpc/access.hpp"
#include "rpc/broker.hpp"
#include "rpc/openrpc.hpp"
#include "runtime/backend.hpp"
#include "runtime/inbox.hpp"
#include "runtime/thread_pool.hpp"
#include "server/call_log.hpp"
#include "server/listeners.hpp"
#include "server/principals.hpp"
#include "server/server_state.hpp"
#include "server/serving_loop.hpp"
#include "server/stop_signals.hpp"
#include "server/tls_settings.hpp"
#include "transport/acceptor.hpp"
#include "transport/own_stream.hpp"
#include "transport/xdp.hpp"
#include "wirecall/loop.hpp"

namespace wirecall {

using net::ServingLoop;

namespace {

// Keeps the calling thread on one processor for as long as it lives.
class Pinned {
 public:
  explicit Pinned(const Options& options, std::size_t thread) {
    const std::vector<std::uint32_t>& processors = options.cpu_affinity;
    if (processors.empty()) return;
    const std::uint32_t processor = processors[thread % processors.size()];
    cpu_set_t one;
    CPU_ZERO(&one);
    if (processor < CPU_SETSIZE) CPU_SET(processor, &one);
    ::pthread_getaffinity_np(::pthread_self(), sizeof before_, &before_);
    const int error = ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
    pinned_ = error == 0;
    if (pinned_) return;
    options.log(LogLevel::warning, "cpu_affinity: no thread can be kept on processor " + std::to_string(processor) +
                                       ": " + std::strerror(error) + "; name processors that this process may use");
  }
  Pinned(Pinned&&) = delete;
  ~Pinned() {
    if (pinned_) ::pthread_setaffinity_np(::pthread_self(), sizeof before_, &before_);
  }

 private:
  cpu_set_t before_;
  bool pinned_ = false;
};

// Slow handlers are found and left behind by membarrier(2) alone: without it they hold up their loops unseen.
void warn_of_no_takeover(const LogSink& log, int error) {
  std::string line{"membarrier refused: "};
  line.append(std::strerror(error)).append("; ");
  switch (error) {
    case EPERM:
    case EACCES: line += "likely seccomp, as containers have it: allow it there"; break;
    case ENOSYS: line += "this kernel is built without it, or a filter hides it: allow it there"; break;
    case EINVAL: line += "this kernel is older than Linux 4.14: a newer one has what is needed"; break;
    default: line += "nothing is known to help";
  }
  line += "; a handler that does not come back holds up its loop (takeover_ms) and is not named (slow_handler_ms)";
  log(LogLevel::warning, line);
}

// Nobody is asked to show them, so that whoever has nothing else is let in as nobody.
void warn_of_unasked_certificates(const Options& options, std::span<const Principal> principals) {
  if (options.tls.client_auth != ClientAuth::none) return;
  const auto found = std::ranges::find_if(principals, [](const Principal& one) { return !one.certificates.empty(); });
  if (found == principals.end()) return;
  options.log(LogLevel::warning,
              "principals have certificates, which no client is asked for: set tls.client_auth to optional or required",
              {{"principal", found->name}});
}

}  // namespace

Server::State::State(Options given, std::shared_ptr<std::atomic<LogLevel>> level, const rpc::BrokerFactory& broker)
    : options(std::move(given)),
      log_level(std::move(level)),
      http{.allow_hosts = options.allow_hosts,
           .allow_origins = options.allow_origins,
           .bound_hosts = {},
           .urls = {},
           .unix_paths = {},
           .notification_status = options.http_notification_status,
           .metrics = [this](rpc::Asker asker) { return metrics(std::move(asker)); },
           .openrpc =
               [this](rpc::LoopContext& loop_context, rpc::Asker asker, std::span<const std::string> urls) {
                 return std::make_unique<rpc::OpenRpcDocument>(
                     loop_context, registry, loop_context.services.broker, "", std::move(asker),
                     rpc::DocumentOrigin{.title = options.name, .urls = urls});
               }},
      threads(options.blocking_threads != 0 ? std::make_unique<runtime::ThreadPool>(options.blocking_threads)
                                            : nullptr),
      shared{.options = options,
             .registry = registry,
             .http = http,
             .tls = net::make_tls_context(options),
             .threads = threads.get(),
             .readers = &readers,
             .make_broker = broker,
             .wake_all = [this] { wake_all(); }} {
  if (options.log_calls) registry.use(net::call_log(options.log));
  const std::size_t count = options.thread_count != 0 ? options.thread_count : std::thread::hardware_concurrency();
  for (std::size_t i = 0; i < std::max<std::size_t>(count, 1); ++i) {
    // What one of them cannot have, none can, and it is said once.
    auto backend = runtime::make_backend(options.engine, i == 0 ? options.log : LogSink{});
    if (i == 0 || !broker) {
      loops.push_back(std::make_unique<ServingLoop>(std::move(backend), shared));
    } else {
      io_threads.push_back(&loops.front()->add_io_thread(std::move(backend)));
    }
  }
  if (std::vector<Principal> principals = principals_of(options); !principals.empty()) {
    warn_of_unasked_certificates(options, principals);
    const auto authority = std::make_shared<const rpc::Authority>(std::move(principals));
    for (const auto& loop : loops) loop->set_authority(authority);
    net::warn_of_open_principals_file(options);
  }
  if (const int error = loops.front()->takeover_refused(); error != 0) warn_of_no_takeover(options.log, error);
}

Server::Server() : Server(Options{}) {}
Server::Server(Options options) : Server(std::move(options), nullptr) {}
Server::Server(Options options, const rpc::BrokerFactory& broker) {
  require_valid(options);
  auto level = std::make_shared<std::atomic<LogLevel>>(options.log_level);
  options.log = options.log.at_least(level);  // which may change
  state_ = std::make_unique<State>(std::move(options), std::move(level), broker);
}
Server::~Server() = default;
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;

void Server::set_principals(std::vector<Principal> principals) {
  std::shared_ptr<const rpc::Authority> authority;
  warn_of_unasked_certificates(state_->options, principals);
  if (!principals.empty()) authority = std::make_shared<const rpc::Authority>(std::move(principals));
  for (const auto& loop : state_->loops) {
    static_cast<void>(loop->loop().post([&serving = *loop, authority] { serving.set_authority(authority); }));
  }
}

Stats Server::stats() const { return state_->stats(); }

void Server::reload_certificates() {
  State& state = *state_;
  const std::scoped_lock lock{state.tls_mutex};
  if (state.shared.tls == nullptr) return;
  state.shared.tls = net::make_tls_context(state.options, state.shared.tls.get());
  for (const auto& loop : state.loops) loop->set_tls(state.shared.tls);
}

std::string Server::certificate_fingerprint() const {
  const std::scoped_lock lock{state_->tls_mutex};
  return state_->shared.tls != nullptr ? state_->shared.tls->fingerprint() : std::string{};
}

void Server::set_limits(const Limits& limits, std::function<void()> in_force) {
  require_valid(limits);
  // Let go of by each thread; the last one to do so calls.
  struct Taken {
    explicit Taken(std::function<void()> then) : then_(std::move(then)) {}
    Taken(Taken&&) = delete;
    ~Taken() {
      if (then_) then_();
    }
    std::function<void()> then_;
  };
  const auto taken = std::make_shared<const Taken>(std::move(in_force));
  for (const auto& loop : state_->loops) loop->set_limits(limits, taken);
}

void Server::set_log_level(LogLevel level) noexcept { state_->log_level->store(level, std::memory_order_relaxed); }

Registry& Server::registry() noexcept { return state_->registry; }

void Server::route(std::string_view method, std::string path, HttpHandler handler) {
  state_->http.routes.add(net::program_route(method, std::move(path), std::move(handler), state_->options.log));
}

// Each loop has a socket of its own on the same port.
Endpoint Server::State::listen_on_each(const Endpoint& endpoint) {
  std::vector<transport::BoundSocket> sockets;
  for (transport::ListeningSocket& socket : inherited.take(endpoint))
    sockets.push_back({socket.descriptor.release(), std::move(socket.endpoint), {}, socket.passed});
  if (!sockets.empty()) {
    sockets = transport::listen_together(std::move(sockets), loops.size());
  } else if (loops.size() == 1) {
    sockets.push_back(transport::listen_on(endpoint));
  } else {
    sockets = transport::listen_together(endpoint, loops.size());
  }
  const Endpoint bound = sockets.front().endpoint;
  is_bound(bound);
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    ServingLoop& loop = *loops[i % loops.size()];
    loop.listen(std::move(sockets[i]), [&loop](auto connection) { loop.open(std::move(connection)); });
  }
  return bound;
}

// Each loop has a socket of its own, over which the system spreads the sources.
Endpoint Server::State::listen_for_datagrams(const Endpoint& endpoint) {
  datagrams = endpoint;
  require_safe_methods();
  const bool by_xdp = endpoint.kind() == EndpointKind::xdp;
  std::vector<transport::BoundUdpSocket> sockets;
  for (transport::ListeningSocket& socket : inherited.take(endpoint))
    sockets.push_back({std::move(socket.descriptor), std::move(socket.endpoint), socket.passed});
  if (sockets.empty())
    sockets = transport::listen_on_udp(by_xdp ? transport::udp_endpoint_of(endpoint) : endpoint, loops.size());
  const Endpoint bound = endpoint.with_port(sockets.front().endpoint.port());
  if (by_xdp) loops.front()->listen_on_xdp(bound);
  for (std::size_t i = 0; i < sockets.size(); ++i) loops[i % loops.size()]->listen(std::move(sockets[i]));
  return bound;
}

// No datagram can show who has sent it. So where that is asked for, only what anybody may call may come by them.
void Server::State::require_safe_methods() const {
  if (!datagrams || !loops.front()->asks_who_calls()) return;
  for (const auto& method : registry.methods()) {
    if (method->is_safe()) continue;
    throw std::invalid_argument{"cannot listen on " + datagrams->uri() +
                                ": a datagram cannot show a token, and there are principals; declare the method " +
                                method->name() + " safe if anybody may call it, or do not listen there"};
  }
}

void Server::State::require_all_methods() const {
  const std::vector<std::string> missing = registry.missing();
  if (missing.empty()) return;
  std::string names;
  for (const std::string& name : missing) (names += names.empty() ? "" : ", ") += name;
  throw std::invalid_argument{"cannot listen: these methods are declared and have no handler: " + names};
}

Endpoint Server::listen(std::string_view uri) {
  State& state = *state_;
  state.require_all_methods();
  const Endpoint endpoint{uri};
  ServingLoop& first = *state.loops.front();
  switch (endpoint.kind()) {
    case EndpointKind::tcp: return state.listen_on_each(endpoint);
    case EndpointKind::udp:
    case EndpointKind::xdp: return state.listen_for_datagrams(endpoint);
    case EndpointKind::stdio:  // which stays where its end is waited for
      return first.listen(endpoint, [&first](auto connection) { first.open_here(std::move(connection)); });
    case EndpointKind::unix_socket:
    case EndpointKind::inproc:
    case EndpointKind::shm:
    case EndpointKind::http:
    case EndpointKind::ws:
    case EndpointKind::tls:
    case EndpointKind::https:
    case EndpointKind::wss: break;
  }
  const auto accepted = [&state](auto connection) { state.hand_round(std::move(connection)); };
  std::vector<transport::ListeningSocket> inherited = state.inherited.take(endpoint);
  for (transport::ListeningSocket& socket : inherited)
    first.listen({socket.descriptor.release(), std::move(socket.endpoint), {}, socket.passed}, accepted);
  Endpoint bound = inherited.empty() ? first.listen(endpoint, accepted) : endpoint;
  state.is_bound(bound);
  return bound;
}

Endpoint Server::listen(const Listeners& listeners, std::size_t index) {
  if (index >= listeners.count()) throw std::out_of_range{"there is no listener of that index"};
  state_->require_all_methods();
  const Endpoint& endpoint = listeners.endpoint();
  state_->is_bound(endpoint);
  for (transport::BoundSocket& socket : listeners.state_->share(index)) {
    state_->loops.front()->listen(
        std::move(socket), [state = state_.get()](auto connection) { state->hand_round(std::move(connection)); });
  }
  return endpoint;
}

void Server::serve(std::unique_ptr<Transport> transport) {
  WIRECALL_ASSERT(transport != nullptr);
  transport::PendingConnection connection{std::make_unique<transport::OwnConnection>(std::move(transport))};
  static_cast<void>(state_->loops.front()->loop().inbox()->post_owed(
      [state = state_.get(), connection = std::move(connection)]() mutable {
        state->hand_round(std::move(connection));
      }));
}

// By which name others reach a port that is bound at all addresses, only they know: each knows this one for itself.
void Server::State::is_bound(const Endpoint& endpoint) {
  switch (endpoint.kind()) {
    case EndpointKind::unix_socket: http.unix_paths.push_back(endpoint.path()); return;
    case EndpointKind::stdio:
    case EndpointKind::inproc:
    case EndpointKind::shm:
    case EndpointKind::http:
    case EndpointKind::ws:
    case EndpointKind::udp:
    case EndpointKind::xdp:
    case EndpointKind::tls:
    case EndpointKind::https:
    case EndpointKind::wss: return;
    case EndpointKind::tcp: break;
  }
  http.bound_hosts.push_back(endpoint.host());
  const bool everywhere = endpoint.host() == "0.0.0.0" || endpoint.host() == "::";
  const std::string host = endpoint.host().contains(':') ? '[' + endpoint.host() + ']' : endpoint.host();
  const std::string scheme = options.tls.on() ? "https://" : "http://";
  http.urls.push_back(scheme + (everywhere ? "localhost" : host) + ":" + std::to_string(endpoint.port()) + "/rpc");
}

void Server::State::hand_round(transport::PendingConnection connection) {
  ServingLoop& loop = *loops[next++ % loops.size()];
  // A loop that drains may not look into its inbox again.
  if (&loop == loops.front().get() || stopping.load(std::memory_order_relaxed))
    return loops.front()->open(std::move(connection));
  loop.serve_elsewhere(std::move(connection));
}

std::vector<Endpoint> Server::listen() {
  std::vector<Endpoint> endpoints;
  for (const std::string& uri : state_->options.listen_uris()) endpoints.push_back(listen(uri));
  return endpoints;
}

RunEnd Server::run(OnSignals on_signals) {
  State& state = *state_;
  state.require_safe_methods();  // some may have been added since
  ServingLoop& first = *state.loops.front();
  std::optional<net::StopSignals> signals;
  if (on_signals == OnSignals::stop) signals.emplace(first.loop());
  const auto count = [&] { return signals ? signals->count() : 0; };
  const auto stop = [&] {
    if (count() == 0 && !state.stop_asked.load(std::memory_order_relaxed)) return false;
    state.end_threads();
    return true;
  };
  const auto hurry = [&] {
    if (count() < 2 && !state.hurry_asked.load(std::memory_order_relaxed)) return false;
    if (!state.hurrying.exchange(true)) state.wake_all();
    return true;
  };
  state.stopping.store(false);
  state.hurrying.store(false);
  state.io_stopping.store(false);
  state.threads_running.store(0);
  state.shared.loops_busy.store(0);
  state.shared.replaced.store(false);
  for (const auto& loop : state.loops) loop->count_as_busy();
  std::vector<std::exception_ptr> failures(1 + state.threads_more());
  std::vector<std::jthread> threads;
  // Whatever happens here, the threads end, and are waited for.
  const auto end_threads = [](State* ending) {
    ending->end_threads();
    ending->end_io_threads();
  };
  const std::unique_ptr<State, decltype(end_threads)> ending{&state, end_threads};
  for (std::size_t i = 1; i < failures.size(); ++i) {
    state.threads_running.fetch_add(1);
    threads.emplace_back([&state, &failure = failures[i], i] { failure = state.run_thread(i); });
  }
  int refused = 0;
  {
    const Pinned pinned{state.options, 0};
    refused = first.run(stop, hurry);
    state.end_threads();  // what ended may be standard input
    state.end_io_threads();
    // A second signal is for all.
    while (state.threads_running.load() != 0) {
      static_cast<void>(hurry());
      first.loop().turn();
    }
  }
  threads.clear();
  state.stop_asked.store(false);
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  const bool hurried = hurry();
  state.hurry_asked.store(false);
  if (hurried) return RunEnd::interrupted;
  if (refused != 0) throw std::system_error{refused, std::generic_category(), "cannot write to standard output"};
  return RunEnd::drained;
}

// What fails in one thread ends all, as it does where there is but one.
std::exception_ptr Server::State::run_thread(std::size_t at) noexcept {
  std::exception_ptr failure;
  try {
    const Pinned pinned{options, at};
    if (at < loops.size()) {
      loops[at]->run([this] { return stopping.load(); }, [this] { return hurrying.load(); });
    } else {
      io_threads[at - loops.size()]->run([this] { return io_stopping.load(); });
    }
  } catch (...) {
    failure = std::current_exception();
    stop_asked.store(true);
  }
  threads_running.fetch_sub(1);
  loops.front()->loop().wake();
  return failure;
}

void Server::stop_at_once() noexcept {
  state_->hurry_asked.store(true);
  stop();
}

void Server::stop() noexcept {
  state_->stop_asked.store(true);
  state_->loops.front()->loop().wake();
}

}  // namespace wirecall
