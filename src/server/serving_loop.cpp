// See serving_loop.hpp.
#include "server/serving_loop.hpp"

#include <fcntl.h>

#include "base/reserve_extra.hpp"
#include "connection/datagram_service.hpp"
#include "connection/message_connection.hpp"
#include "runtime/inbox.hpp"
#include "runtime/system.hpp"
#include "transport/socket.hpp"
#include "transport/xdp.hpp"

namespace wirecall::net {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// How long a loop that stops waits for its peers to see the end, once all is said.
constexpr milliseconds kParting{100};
// How long a listener waits for the system to give it the connections that it has accepted.
constexpr milliseconds kAcceptedWait{1000};
// How often a loop that was replaced tells peers to leave that could not be told before.
constexpr milliseconds kSeeOffInterval{20};
// How long a loop waits that has no memory for its turn.
constexpr milliseconds kMemoryPause{1};
// How often a connection is looked at within Limits::keepalive_timeout_ms, to find that nothing happens on it: it is
// closed late by one such interval at most, and costs no timer of its own.
constexpr std::uint8_t kIdleLooks = 4;

ServingLoop::ServingLoop(std::unique_ptr<runtime::Backend> backend, ServerShared& shared)
    : shared_(&shared),
      options_(&shared.options),
      limits_(shared.options.limits),
      loop_(std::move(backend)),
      loop_context_(json_codec(), &loop_, &options_->log),
      host_{
          .loop = loop_, .registry = shared.registry, .limits = limits_, .loop_context = loop_context_, .owner = *this},
      takeover_(host_, {.after = milliseconds{options_->takeover_ms},
                        .logged_after = milliseconds{options_->slow_handler_ms},
                        .threads_max = options_->takeover_threads}) {
  loop_.spin_for(std::chrono::microseconds{options_->spin_us});
  loop_context_.tasks.set_executor(loop_.inbox());
  loop_context_.services.has_turns = true;
  loop_context_.refusals.explain(options_->explain_errors);
  if (shared.tls != nullptr) tls_.emplace(loop_, limits_, loop_context_, shared.tls);
  if (options_->websocket_deflate) host_.deflate = &deflate_.emplace();
  if (options_->log_calls) loop_context_.services.call_log = &options_->log;
  loop_context_.services.title = options_->name;
  loop_context_.services.urls = &shared.http.urls;
  if (shared.make_broker) {
    broker_ = shared.make_broker(
        {.registry = shared.registry, .limits = limits_, .loop_context = loop_context_, .loop = &loop_});
    broker_->count_by([this] { return stats(); });
    loop_context_.services.broker = broker_.get();
  }
  if (shared.threads != nullptr)
    loop_context_.services.blocking_pool = &offload_.emplace(*shared.threads, loop_.inbox());
  if (shared.readers != nullptr)
    host_.long_reader = &long_reader_.emplace(readers_.emplace(*shared.readers, loop_.inbox()));
  look_for_idle_later();
}

void ServingLoop::set_authority(std::shared_ptr<const rpc::Authority> authority) {
  const bool was_open = loop_context_.services.authority == nullptr;
  loop_context_.services.authority = std::move(authority);
  each([was_open](Connection& connection) { connection.authority_changed(was_open); });
}

ServingLoop::~ServingLoop() {
  loop_context_.stop_requests.finish();  // of one that ends without a drain
  loop_.stop(*this);
}

const Endpoint& ServingLoop::listen(const Endpoint& endpoint, transport::Listener::Accepted accepted) {
  acceptors_.push_back(transport::open_acceptor(loop_, endpoint, std::move(accepted), failed()));
  return acceptors_.back()->endpoint();
}

void ServingLoop::listen(transport::BoundSocket bound, transport::Listener::Accepted accepted) {
  acceptors_.push_back(transport::open_acceptor(loop_, std::move(bound), std::move(accepted), failed()));
}

void ServingLoop::listen(transport::BoundUdpSocket bound) {
  datagram_endpoints_.push_back(
      {.descriptor = bound.descriptor.get(), .endpoint = bound.endpoint, .passed = bound.passed});
  serve(std::make_unique<transport::UdpSocket>(loop_, std::move(bound.descriptor), loop_context_.stats));
}

void ServingLoop::listen_on_xdp(const Endpoint& endpoint) {
  datagram_endpoints_.push_back({.descriptor = -1, .endpoint = endpoint});
  serve(transport::open_xdp(loop_, endpoint, loop_context_.stats));
}

void ServingLoop::serve(std::unique_ptr<transport::DatagramSocket> socket) {
  reserve_extra(ended_, 3 * connections_.size() + datagrams_.size() + 1);
  datagrams_.push_back(std::make_unique<DatagramService>(host_, std::move(socket)));
}

std::vector<transport::ListeningSocket> ServingLoop::share_sockets() const {
  std::vector<transport::ListeningSocket> all;
  const auto share = [&](int descriptor, const Endpoint& endpoint, bool passed) {
    if (descriptor < 0 && endpoint.kind() == EndpointKind::inproc) return;  // nobody else has ever found it
    if (descriptor < 0) throw std::runtime_error{endpoint.uri() + " is this process's alone"};
    all.push_back({.descriptor = runtime::Descriptor{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0), "a listener is shared"},
                   .endpoint = endpoint,
                   .passed = passed});
  };
  for (const auto& acceptor : acceptors_) share(acceptor->descriptor(), acceptor->endpoint(), acceptor->passed());
  for (const auto& [descriptor, endpoint, passed] : datagram_endpoints_) share(descriptor, endpoint, passed);
  return all;
}

void ServingLoop::begin_to_listen() noexcept {
  for (const auto& acceptor : acceptors_) acceptor->begin_to_listen();
}

void ServingLoop::own_files() {
  for (const auto& acceptor : acceptors_) {
    if (!acceptor->passed()) acceptor->own_file();
  }
}

void ServingLoop::keep_files() noexcept {
  for (const auto& acceptor : acceptors_) acceptor->keep_file();
}

bool ServingLoop::settle() noexcept { return !broker_ || broker_->settle(); }
void ServingLoop::stay() noexcept {
  if (broker_) broker_->stay();
}
void ServingLoop::open_store() {
  if (broker_) broker_->open_store();
}
std::string ServingLoop::hand_over() { return broker_ ? broker_->hand_over() : std::string{}; }

void ServingLoop::replaced_by(transport::PendingConnection other) {
  if (!broker_) return;
  broker_->replaced();
  broker_->link_to_successor(link_to(std::move(other)));
}

void ServingLoop::take_over_from(transport::PendingConnection other, std::string_view state) {
  if (broker_) broker_->take_over(state, link_to(std::move(other)));
}

// A connection between two brokers: both know what is spoken, and neither waits for the other to begin.
rpc::BrokerPeer& ServingLoop::link_to(transport::PendingConnection other) {
  reserve_extra(ended_, 3 * (connections_.size() + 1) + datagrams_.size());
  auto made = protocols_.make(host_, framing::Protocol::length_prefix, other.attach(loop_));
  auto& connection = static_cast<MessageConnection&>(*made);
  connection.position = connections_.size();
  connections_.push_back(std::move(made));
  ++loop_context_.stats.connections_open;
  shared_->connections_open.fetch_add(1, std::memory_order_relaxed);
  return connection.trust();
}

transport::Listener::Failed ServingLoop::failed() {
  return [this](int error) {
    const LogSink& log = options_->log;
    if (error == 0) return log(LogLevel::info, "connections are accepted again");
    ++loop_context_.stats.connections_refused;
    std::string line{"no connections are accepted for a moment: "};
    line += std::strerror(error);
    if (const std::string_view cure = runtime::cure_of_shortage(error); !cure.empty()) line.append("; ").append(cure);
    log(LogLevel::warning, line);
  };
}

transport::IoThread& ServingLoop::add_io_thread(std::unique_ptr<runtime::Backend> backend) {
  io_threads_.push_back(std::make_unique<transport::IoThread>(loop_, std::move(backend)));
  io_threads_.back()->loop().spin_for(std::chrono::microseconds{options_->spin_us});
  return *io_threads_.back();
}

void ServingLoop::open(transport::PendingConnection connection) {
  const std::size_t next = next_io_thread_++ % (io_threads_.size() + 1);
  take(std::move(connection), next != io_threads_.size() ? io_threads_[next].get() : nullptr);
}

void ServingLoop::take(transport::PendingConnection pending, transport::IoThread* io) {
  const bool full = shared_->connections_open.fetch_add(1, std::memory_order_relaxed) >= limits_.connections;
  if (full) log_full();
  if (take_in(std::move(pending), io, full)) {
    ++loop_context_.stats.connections_open;
    ++loop_context_.stats.connections_accepted;
  } else {
    ++loop_context_.stats.connections_refused;
    shared_->connections_open.fetch_sub(1, std::memory_order_relaxed);
  }
}

void ServingLoop::log_full() {
  if (!turned_away_.admits(loop_.now())) return;
  options_->log(LogLevel::warning, "connections are refused: there are limits.connections of them already",
                {{"turned_away", turned_away_.take_count()}});
}

// False when there is no memory for one more, or no slot: then it is closed.
bool ServingLoop::take_in(transport::PendingConnection pending, transport::IoThread* io, bool full) {
  try {
    // Each connection goes into ended_ three times at most, as a detector, as what that was promoted to, and as what
    // that was upgraded to: then there must be a slot, since it may end because there is no memory.
    reserve_extra(ended_, 3 * (connections_.size() + 1) + datagrams_.size());
    const Proxies::Way way = full ? Proxies::Way::direct : proxies_.way_of(pending.descriptor());
    Admission admission;
    if (tls_) {
      const bool local = way == Proxies::Way::direct && transport::is_local_peer(pending.descriptor());
      admission = {.tls = &*tls_, .plain = local || options_->allow_plain};
    }
    std::unique_ptr<transport::ByteStream> stream =
        io != nullptr ? io->open(std::move(pending)) : pending.attach(loop_);
    if (full || way == Proxies::Way::refused) return false;
    if (way == Proxies::Way::proxied) stream = proxies_.behind_header(std::move(stream));
    auto connection = std::make_unique<ProtocolDetector>(host_, protocols_, std::move(stream), admission);
    connection->position = connections_.size();
    connections_.push_back(std::move(connection));
    options_->log(LogLevel::debug, "a connection is accepted");
    return true;
  } catch (const std::bad_alloc&) {
    options_->log(LogLevel::warning, "a connection is refused: there is no memory for it");
    return false;
  }
}

// It may end, and others with it; then the last takes its place.
template <class F>
void ServingLoop::each(const F& act) {
  for (auto* all : {&connections_, &datagrams_}) {
    for (std::size_t i = all->size(); i != 0; i = std::min(i - 1, all->size())) act(*(*all)[i - 1]);
  }
}

// So many are no longer in the table.
void ServingLoop::forget(std::size_t connections) noexcept {
  loop_context_.stats.connections_open -= connections;
  shared_->connections_open.fetch_sub(connections, std::memory_order_relaxed);
}

void ServingLoop::serve_elsewhere(transport::PendingConnection connection) {
  loop_.inbox()->post_owed([this, pending = std::move(connection)]() mutable { open(std::move(pending)); });
}

void ServingLoop::set_limits(const Limits& limits, std::shared_ptr<const void> taken) {
  loop_.inbox()->post_owed([this, limits, taken = std::move(taken)] {
    const bool other_time = limits.keepalive_timeout_ms != limits_.keepalive_timeout_ms;
    limits_ = limits;
    if (!other_time) return;
    loop_.stop(*this);
    try {
      look_for_idle_later();
    } catch (const std::bad_alloc&) {
      options_->log(LogLevel::warning, "idle connections are not closed: there is no memory for it");
    }
  });
}

void ServingLoop::set_tls(std::shared_ptr<const transport::TlsServerContext> context) {
  loop_.inbox()->post_owed([this, context = std::move(context)] {
    const bool others = context->differs_for_clients(tls_->context());
    tls_->set_context(context);
    if (others) each([&](Connection& connection) { connection.client_authorities_changed(*context); });
  });
}

int ServingLoop::run(const std::function<bool()>& stop, const std::function<bool()>& hurry) {
  const std::unique_ptr<ServingLoop, void (*)(ServingLoop*)> ending{this, [](auto* loop) { loop->no_longer_busy(); }};
  takeover_.run([&] {
    const auto replaced = [this] { return shared_->replaced.load(); };
    while (!stop() && !exhausted() && !replaced()) turn(nanoseconds{-1});
    if (replaced()) see_off(stop);
    drain(hurry);
  });
  ended_.clear();
  loop_.turn(nanoseconds{0});  // closes
  int refused = 0;
  for (const auto& acceptor : acceptors_) {
    if (const int error = acceptor->end(); error != 0) refused = error;
  }
  acceptors_.clear();
  loop_.turn(nanoseconds{0});
  return refused;
}

void ServingLoop::turn(nanoseconds wait_max) {
  ++loop_context_.stats.loop_turns;
  try {
    takeover_.turn(wait_max);
  } catch (const std::bad_alloc&) {
    // Nothing of the turn is lost, and the next one goes on with it.
    std::this_thread::sleep_for(kMemoryPause);
  }
  if (!ended_.empty()) std::erase_if(ended_, [](const auto& connection) { return !connection->handler_off_loop(); });
}

// There is nothing to serve, and nothing can come.
bool ServingLoop::exhausted() const noexcept {
  return connections_.empty() && datagrams_.empty() && !acceptors_.empty() &&
         std::ranges::all_of(acceptors_, [](const auto& acceptor) { return acceptor->exhausted(); });
}

void ServingLoop::count_as_busy() noexcept {
  counted_as_busy_ = true;
  shared_->loops_busy.fetch_add(1);
}

// A second time where it drains again, on another thread.
void ServingLoop::no_longer_busy() {
  if (!std::exchange(counted_as_busy_, false)) return;
  if (shared_->loops_busy.fetch_sub(1) == 1 && shared_->wake_all) shared_->wake_all();
}

// A connection that the system has given is ours, also when it tells us only later.
void ServingLoop::stop_accepting() {
  for (const auto& acceptor : acceptors_) acceptor->stop();
  const nanoseconds until = loop_.now() + kAcceptedWait;
  const auto waits = [](const auto& acceptor) { return !acceptor->stopped(); };
  while (std::ranges::any_of(acceptors_, waits) && loop_.now() < until) turn(until - loop_.now());
  // Standard input and output live as long as their connection.
  std::erase_if(acceptors_, [](const auto& acceptor) { return !acceptor->exhausted(); });
  turn(nanoseconds{0});
}

// As often as the loop is given to another thread meanwhile.
void ServingLoop::see_off(const std::function<bool()>& stop) {
  keep_files();
  stop_accepting();
  if (!seen_off_until_) seen_off_until_ = loop_.now() + milliseconds{options_->drain_ms};
  nanoseconds due = loop_.now();
  while (!stop() && shared_->connections_open.load() != 0 && loop_.now() < *seen_off_until_) {
    if (loop_.now() >= due) {
      each([](Connection& connection) { connection.ask_to_leave(); });
      if (broker_ && shared_->connections_open.load() == 1) broker_->nobody_left();
      due = loop_.now() + kSeeOffInterval;
    }
    turn(std::max(std::min(*seen_off_until_, due) - loop_.now(), nanoseconds{0}));
  }
}

void ServingLoop::drain(const std::function<bool()>& hurry) {
  const nanoseconds deadline = loop_.now() + milliseconds{options_->drain_ms};
  const auto left = [&](nanoseconds until) { return std::max(until - loop_.now(), nanoseconds{0}); };
  const auto keep_serving = [&](nanoseconds until) { return !hurry() && left(until) != nanoseconds{0}; };

  // Who has connected belongs to us, and so does what they have sent up to now: the kernel has accepted it.
  turn(nanoseconds{0});
  stop_accepting();
  // Calls that come from now on, while others are still in progress, are answered with -32009.
  if (broker_) broker_->drain();
  each([](Connection& connection) { connection.drain(); });
  const auto is_busy = [this] { return any(&Connection::busy) || (broker_ && broker_->busy()); };
  while (keep_serving(deadline) && is_busy()) {
    // Also those of middleware that has waited until now.
    shared_->registry.end_batch_waits();
    turn(left(deadline));
  }
  turn(nanoseconds{0});
  if (any(&Connection::busy)) {
    options_->log(LogLevel::warning, "calls were still in progress when the server stopped");
    // Those that can stop are answered as stopped.
    loop_context_.stop_requests.finish();
    each([](Connection& connection) { connection.stop_calls(); });
    const nanoseconds last = loop_.now() + kParting;
    while (keep_serving(last) && any(&Connection::busy)) turn(left(last));
  }

  // The system gives the sources of a socket that closes to the other loops' sockets, but what waits in it is lost.
  no_longer_busy();
  // Tasks may be about calls of other loops, as batches are.
  const auto serves_others = [this] { return !datagrams_.empty() || !loop_context_.tasks.empty(); };
  while (keep_serving(deadline) && serves_others() && shared_->loops_busy.load() != 0) turn(left(deadline));

  // Who calls all the time learns from an answer that this is over, and may leave by itself.
  const nanoseconds notice = loop_.now() + kParting;
  while (keep_serving(std::min(notice, deadline)) && !connections_.empty()) turn(left(std::min(notice, deadline)));

  // Then each connection gets what it is owed, and some time to take notice.
  each([](Connection& connection) { connection.finish(); });
  turn(nanoseconds{0});
  while (keep_serving(deadline) && any(&Connection::has_output)) turn(left(deadline));
  const nanoseconds parting = loop_.now() + kParting;
  while (keep_serving(parting) && !connections_.empty()) turn(left(parting));
  loop_context_.stop_requests.finish();
  for (auto* all : {&connections_, &datagrams_}) {
    while (!all->empty()) all->back()->cut();
  }
  turn(nanoseconds{0});
}

void ServingLoop::look_for_idle_later() {
  const nanoseconds timeout = milliseconds{limits_.keepalive_timeout_ms};
  if (timeout != nanoseconds{0}) loop_.start(*this, timeout / kIdleLooks);
}

void ServingLoop::expired() {
  look_for_idle_later();
  each([](Connection& connection) { connection.end_if_idle(kIdleLooks); });
}

void ServingLoop::connection_promoted(Connection& detector, std::unique_ptr<Connection> promoted) {
  promoted->position = detector.position;
  ended_.push_back(std::exchange(connections_[promoted->position], std::move(promoted)));
}

void ServingLoop::connection_ended(Connection& connection, CloseReason reason, int error) {
  const auto socket = std::ranges::find(datagrams_, &connection, &std::unique_ptr<Connection>::get);
  if (socket != datagrams_.end()) {
    ended_.push_back(std::move(*socket));
    datagrams_.erase(socket);
    return;
  }
  options_->log(LogLevel::debug, "a connection has ended", {{"reason", name_of(reason)}, {"errno", error}});
  const std::size_t position = connection.position;
  forget(1);
  ended_.push_back(std::move(connections_[position]));
  if (position + 1 != connections_.size()) {
    connections_[position] = std::move(connections_.back());
    connections_[position]->position = position;
  }
  connections_.pop_back();
}

Stats ServingLoop::stats() const {
  Stats stats = loop_context_.stats;
  stats.takeovers += takeover_.count();
  stats.slow_handlers += takeover_.slow();
  return stats;
}

bool ServingLoop::any(bool (Connection::*is)() const noexcept) const {
  const auto any_of = [is](const auto& all) {
    return std::ranges::any_of(all, [is](const auto& connection) { return (*connection.*is)(); });
  };
  return any_of(connections_) || any_of(datagrams_);
}

}  // namespace wirecall::net
