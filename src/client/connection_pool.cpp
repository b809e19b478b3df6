// See connection_pool.hpp.
#include "client/connection_pool.hpp"

#include "framing/length_prefix.hpp"
#include "framing/websocket.hpp"
#include "http/websocket_deflate.hpp"
#include "transport/endpoint_socket.hpp"
#include "transport/setup.hpp"
#include "transport/tls_connect.hpp"
#include "transport/tls_session.hpp"
#include "transport/udp.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Of endpoints with a connection, by which a server calls its client.
constexpr const char* kConnectionSchemes = "tcp://, tls://, ws://, wss:// or unix://";

static bool none_calls_back(const std::vector<Endpoint>& endpoints) noexcept {
  return std::ranges::none_of(endpoints, &calls_back);
}

static std::string cannot_be_called(const Endpoint& endpoint) {
  return endpoint.uri() + ": a server does not call its client by " +
         (endpoint.kind() == EndpointKind::udp ? "UDP" : "HTTP") + "; connect to " + kConnectionSchemes;
}

void require_callable(const std::vector<Endpoint>& endpoints, std::string_view what) {
  if (none_calls_back(endpoints))
    throw std::logic_error(std::string{what} + " at " + cannot_be_called(endpoints.front()));
}

ConnectionPool::ConnectionPool(ClientShared& shared, Driver& driver, PoolUser& user, MessageRouter& router,
                               const DialFunction& dial, bool one_thread, unsigned seed)
    : shared_(shared),
      driver_(driver),
      user_(user),
      one_thread_(one_thread),
      by_proxy_(std::ranges::any_of(shared.endpoints,
                                    [&](const Endpoint& one) { return proxy_for(one, shared.options).has_value(); })) {
  if (seed == 0) seed = std::random_device{}();
  const DialFunction dials = dial ? dial : dial_function(shared.endpoints, shared.options);
  for (std::uint32_t i = 0; i < shared.options.connections; ++i) {
    connections_.push_back(std::make_unique<ClientConnection>(router, shared.endpoints, shared.options, dials, seed++));
  }
}

// ---- which there are, and which are wanted ----

ClientConnection& ConnectionPool::of(const Connection& session) const noexcept {
  const auto found =
      std::ranges::find_if(connections_, [&](const auto& one) { return one->session.get() == &session; });
  WIRECALL_ASSERT(found != connections_.end());
  return **found;
}

ClientConnection* ConnectionPool::free_connection() const noexcept {
  ClientConnection* best = nullptr;
  for (const auto& connection : connections_) {
    if (connection->takes_calls() && (best == nullptr || connection->in_flight < best->in_flight))
      best = connection.get();
  }
  return best;
}

bool ConnectionPool::any_open() const noexcept {
  return std::ranges::any_of(connections_, [](const auto& connection) { return connection->is_open(); });
}

// What is declared is so on the first connection.
bool ConnectionPool::connected_as_wanted() const noexcept {
  return user_.declares() ? first().is_open() && calls_back(first().endpoint()) : any_open();
}

// One is wanted where there is none, and a further one where those there are have something to do.
bool ConnectionPool::wanted(const ClientConnection& connection) const noexcept {
  const bool calls_wait = user_.calls_wait();
  if (user_.declares()) {
    if (&connection == &first()) return true;
    if (!calls_wait) return false;
  }
  if (!calls_wait && awaiting_news_.empty() && !shared_.provides()) return false;
  for (const auto& other : connections_) {
    if (other.get() == &connection) continue;
    if (other->state() == ConnectionState::dialing || other->state() == ConnectionState::agreeing) return false;
    if (other->is_up() && !other->awaiting_response && (other->in_flight == 0 || !calls_wait)) return false;
  }
  return true;
}

// Where a server cannot call its client, whoever offers it methods would wait for ever. And nobody is to believe that
// he has authenticated.
std::string ConnectionPool::cannot_use(const Endpoint& endpoint) const {
  if (endpoint.kind() == EndpointKind::udp && !shared_.options.token.empty())
    return "cannot connect to " + endpoint.uri() + ": a token is not sent by UDP; connect to " + kConnectionSchemes +
           ", or give none";
  const bool provides = shared_.provides();
  if (calls_back(endpoint) || (!provides && !user_.declares())) return {};
  return (provides ? "methods cannot be offered at " : "events cannot be had at ") + cannot_be_called(endpoint) +
         (provides ? ", or add no methods" : "");
}

// ---- connecting ----

// Whether a thread that blocks for at most `wait_max` makes the connection itself. An attempt has its own time, and so
// does not end with the time of a call that happens to be the one which drives.
bool ConnectionPool::may_dial_here(const Endpoint& endpoint, nanoseconds wait_max) const noexcept {
  return !driver_.background_needed() && !any_open() && !by_proxy_ && !transport::resolves_a_name(endpoint) &&
         (wait_max < nanoseconds{0} || wait_max >= milliseconds{shared_.options.connect_timeout_ms});
}

void ConnectionPool::maintain(Lock& lock, nanoseconds& wait_max, bool may_block) {
  for (const auto& connection : connections_) {
    if (connection->session != nullptr) [[likely]]
      continue;
    std::optional<Dialer::Result> result = dial(lock, *connection, wait_max, may_block);
    if (!result) continue;
    if (result->connection) {
      connected(*connection, std::move(result->connection));
    } else {
      not_connected(*connection, std::move(result->failure));
    }
    wait_max = nanoseconds{0};  // whoever drives may have waited for just that
  }
}

// What has come of an attempt; begins one where that is due.
std::optional<Dialer::Result> ConnectionPool::dial(Lock& lock, ClientConnection& connection, nanoseconds& wait_max,
                                                   bool may_block) {
  Dialer& dialer = connection.dialer;
  if (connection.state() == ConnectionState::dialing) {
    const nanoseconds now = shared_.loop.now();
    std::optional<Dialer::Result> result = dialer.poll(now);
    if (result) {
      connection.enter(ConnectionState::down);
    } else {
      shorten(wait_max, dialer.given_up_at() - now);
    }
    return result;
  }
  if (!wanted(connection)) return std::nullopt;
  const nanoseconds now = shared_.loop.now();
  if (now < dialer.due()) {
    shorten(wait_max, dialer.due() - now);
    return std::nullopt;
  }
  if (std::string vain = cannot_use(dialer.endpoint()); !vain.empty()) {
    return Dialer::Result{.failure = std::move(vain)};
  }
  if (one_thread_ || (may_block && may_dial_here(dialer.endpoint(), wait_max))) {
    if (wait_max == nanoseconds{0}) return std::nullopt;
    milliseconds timeout{shared_.options.connect_timeout_ms};
    if (wait_max >= nanoseconds{0}) timeout = std::min(timeout, std::chrono::ceil<milliseconds>(wait_max));
    const Endpoint endpoint = dialer.endpoint();
    const Unlocked unlocked{lock};
    return Dialer::attempt(dialer.function(), endpoint, timeout);
  }
  dialer.start([this] { driver_.wake(); }, now);
  connection.enter(ConnectionState::dialing);
  shorten(wait_max, dialer.given_up_at() - now);
  return std::nullopt;
}

void ConnectionPool::connected(ClientConnection& connection, transport::PendingConnection pending) {
  const ClientOptions& options = shared_.options;
  connection.begin(shared_.loop.now(), options.limits);
  auto stream = std::make_unique<CountedStream>(pending.attach(shared_.loop));
  connection.stream = stream.get();
  connection.http = nullptr;
  const Endpoint& endpoint = connection.endpoint();
  if (endpoint.by_websocket()) return agree(connection, std::move(stream));
  std::unique_ptr<Channel> made;
  if (endpoint.by_http()) {
    auto http = std::make_unique<ClientHttp>(shared_.host, std::move(stream), endpoint, options, connection);
    connection.sink = connection.http = http.get();
    made = std::move(http);
  } else {
    const bool datagrams = endpoint.kind() == EndpointKind::udp;
    if (datagrams)
      connection.limits.message_bytes_max = std::min(connection.limits.message_bytes_max, transport::kUdpBytesMax);
    std::unique_ptr<framing::Framing> framing;
    if (options.encoding == Encoding::json && !datagrams) {
      framing = std::make_unique<framing::JsonText>(shared_.text);
    } else {
      framing = std::make_unique<framing::LengthPrefix>(options.limits, datagrams);
    }
    made = make_session(connection, std::move(stream), std::move(framing));
  }
  user_.greet(connection);
  connection.session = std::move(made);
  opened(connection);
}

std::unique_ptr<MessageConnection> ConnectionPool::make_session(ClientConnection& connection,
                                                                std::unique_ptr<transport::ByteStream> stream,
                                                                std::unique_ptr<framing::Framing> framing) {
  auto session = std::make_unique<MessageConnection>(shared_.host, std::move(stream), std::move(framing), &connection);
  session->speak(shared_.options.encoding);
  connection.sink = session.get();
  return session;
}

void ConnectionPool::opened(ClientConnection& connection) {
  connection.enter(ConnectionState::up);
  last_failure_.clear();
  if (connection.hello.answered_until == nanoseconds{0}) announce(connection);
  tell();
}

// Asks for a WebSocket. Until that is there the connection takes no calls, and nobody is told of it.
void ConnectionPool::agree(ClientConnection& connection, std::unique_ptr<transport::ByteStream> stream) {
  const auto make = [this, &connection](Host& host, std::unique_ptr<transport::ByteStream> agreed) {
    using framing::WebSocket;
    WebSocket::Packing packing;
    if (const auto window_bits = connection.handshake->window_bits())
      packing = client_packing(*host.deflate, *window_bits);
    auto framing = std::make_unique<WebSocket>(WebSocket::Role::client, shared_.options.limits, packing);
    const Lock lock = driver_.lock();
    auto session = make_session(connection, std::move(agreed), std::move(framing));
    user_.greet(connection);
    return session;
  };
  auto handshake = std::make_unique<WebSocketHandshake>(shared_.host, std::move(stream), connection.endpoint(),
                                                        shared_.options, make);
  connection.handshake = handshake.get();
  connection.session = std::move(handshake);
  connection.enter(ConnectionState::agreeing);
}

void ConnectionPool::agreed(ClientConnection& connection, std::unique_ptr<Connection> session) {
  connection.handshake = nullptr;
  connection.former = std::move(connection.session);
  connection.session.reset(static_cast<Channel*>(session.release()));
  opened(connection);
}

void ConnectionPool::not_agreed(ClientConnection& connection, CloseReason reason, int error) {
  std::string failure = "cannot connect to " + connection.endpoint().uri() + ": " + cause_of(connection, reason, error);
  connection.handshake = nullptr;
  connection.enter(ConnectionState::over);
  not_connected(connection, std::move(failure));
}

void ConnectionPool::not_connected(ClientConnection& connection, std::string failure) {
  last_failure_ = std::move(failure);
  connection.dialer.failed(shared_.loop.now());
  if (connection.dialer.rounds() == 0) return;
  tell();
  const bool in_vain = (shared_.provides() || user_.declares()) && none_calls_back(shared_.endpoints);
  const std::size_t attempts = in_vain ? 1 : shared_.options.connect_attempts;
  if (attempts == 0 || connection.dialer.rounds() < attempts || any_open()) return;
  user_.unreachable(last_failure_);
}

void ConnectionPool::connect(Lock& lock) {
  if (connected_as_wanted()) return;
  const ClientOptions& options = shared_.options;
  refusal_.reset();
  for (const auto& connection : connections_) connection->dialer.try_now();
  const nanoseconds waits_until = shared_.loop.now() + milliseconds{options.wait_ms};
  await_news(lock, (milliseconds{options.connect_timeout_ms} + Dialer::kGrace) * shared_.endpoints.size(),
             [this] { return connected_as_wanted() || refusal_ || !last_failure_.empty(); });
  for (nanoseconds now; !connected_as_wanted() && !refusal_ && (now = shared_.loop.now()) < waits_until;) {
    await_news(lock, waits_until - now, [this] { return connected_as_wanted() || refusal_; });
  }
  if (connected_as_wanted()) return;
  if (refusal_) throw ConnectionError{*refusal_};
  throw ConnectionError{
      last_failure_.empty() ? "cannot connect to " + shared_.endpoints.front().uri() + " in time" : last_failure_,
      ConnectionError::Delivered::no};
}

void ConnectionPool::await_news(Lock& lock, nanoseconds time, const std::function<bool()>& enough) {
  nanoseconds now = shared_.loop.now();
  const nanoseconds until = now + time;
  do {
    Waiting waiting{.ready = {}, .unfinished = 1};
    const Listed listed{awaiting_news_, waiting};
    if (!driver_.wait(lock, waiting, now, until)) break;
    now = shared_.loop.now();
  } while (!enough() && now < until);
}

void ConnectionPool::tell() noexcept {
  for (Waiting* waiting : std::exchange(awaiting_news_, {})) driver_.tell(*waiting);
}

// ---- leaving, and the end ----

void ConnectionPool::leave(const ClientConnection& connection) noexcept {
  if (connection.state() == ConnectionState::draining) return;
  const Endpoint& endpoint = connection.endpoint();
  for (const auto& other : connections_) {
    if (other->is_open() && other->endpoint() == endpoint) other->enter(ConnectionState::draining);
  }
}

void ConnectionPool::turn_away(ClientConnection& connection) noexcept {
  connection.enter(ConnectionState::draining);
  given_up_ = true;
}

void ConnectionPool::give_up(ClientConnection& connection) noexcept {
  given_up_ = true;
  connection.useful = true;
  end(connection, "the client does not wait for its response any more");
}

// One that has served nothing, and not for long, is no better than none: the next attempt waits as after a failure.
void ConnectionPool::end(ClientConnection& connection, std::string_view cause) noexcept {
  const nanoseconds now = shared_.loop.now();
  const bool useful = connection.useful || now - connection.since >= milliseconds{shared_.options.reconnect_max_ms};
  const bool draining = connection.state() == ConnectionState::draining;
  connection.enter(ConnectionState::over);
  if (std::exchange(connection.announced, false)) note(false, connection, cause);
  user_.ended(connection);
  if (draining) {
    connection.dialer.left(now, useful);
  } else {
    connection.dialer.ended(now, useful);
  }
}

void ConnectionPool::reap(Lock& lock) {
  bool closed = false;
  for (const auto& connection : connections_) {
    // It takes no more calls, since its server is leaving, and owes us nothing: the next one is made instead, elsewhere
    // if there is another endpoint.
    if (connection->state() == ConnectionState::draining && connection->is_idle() && !connection->session->part())
      end(*connection, "its server takes no more calls");
    const bool over = connection->state() == ConnectionState::over;
    if (!over && connection->former == nullptr) [[likely]]
      continue;
    std::unique_ptr<Channel> former = std::move(connection->former);
    std::unique_ptr<Channel> session;
    if (over) {
      session = std::move(connection->session);
      connection->enter(ConnectionState::down);
      closed = true;
    }
    // What the user has put into handlers and streams goes with them, and may do anything.
    const Unlocked unlocked{lock};
    former.reset();
    session.reset();
  }
  if (!closed) return;
  {
    const Unlocked unlocked{lock};
    shared_.loop.turn(nanoseconds{0});  // which closes the descriptor
  }
  tell_news(lock);
}

std::string ConnectionPool::why_gone(const ClientConnection& connection, CloseReason reason, int error) const noexcept
    try {
  return "the connection to " + connection.endpoint().uri() + " is gone: " + cause_of(connection, reason, error);
} catch (const std::bad_alloc&) {
  return "no memory";  // short, so that it needs none
}

std::string ConnectionPool::cause_of(const ClientConnection& connection, CloseReason reason, int error) const {
  if (std::string known = connection.session->failure(); !known.empty()) return known;
  switch (reason) {
    case CloseReason::finished: return "the server closed it";
    case CloseReason::lost:
      // By TLS 1.3 a server refuses its client when that has connected already.
      if (const transport::TlsSession* const tls = connection.stream->tls();
          tls != nullptr && tls->state() == transport::TlsSession::State::failed)
        return tls->failure() + "; " + std::string{transport::cure_of(tls->fault())};
      return std::strerror(error);
    case CloseReason::slow: return "the server does not read what it is sent";
    case CloseReason::unreadable: return "the server sent what is no JSON-RPC; check that one listens there";
    case CloseReason::too_large:
      return "the server sent a message of more than " + std::to_string(shared_.options.limits.max_message_size) +
             " bytes; raise ClientOptions.limits.max_message_size";
    case CloseReason::too_deep:
      return "the server sent a message that nests deeper than " + std::to_string(shared_.options.limits.depth) +
             " levels; raise ClientOptions.limits.depth";
    case CloseReason::silent: return "the server did not answer in time";
    case CloseReason::heaviest:
    case CloseReason::refused: break;
  }
  return "it was refused";
}

// ---- news for the user ----

void ConnectionPool::on_connection(ConnectionFunction function) {
  auto shared = function ? std::make_shared<const ConnectionFunction>(std::move(function)) : nullptr;
  const Lock lock = driver_.lock();
  on_connection_.swap(shared);
}

void ConnectionPool::announce(ClientConnection& connection) noexcept {
  if (!std::exchange(connection.announced, true)) note(true, connection, {});
}

void ConnectionPool::note(bool connected, const ClientConnection& connection, std::string_view cause) noexcept {
  if (on_connection_ == nullptr) return;
  try {
    news_.push_back({.connected = connected, .endpoint = connection.endpoint().uri(), .cause = std::string{cause}});
  } catch (const std::bad_alloc&) {
    // Without memory nobody is told.
  }
}

void ConnectionPool::tell_news(Lock& lock) noexcept {
  while (!news_.empty()) {
    const std::vector<ConnectionEvent> news = std::exchange(news_, {});
    std::shared_ptr<const ConnectionFunction> function = on_connection_;
    if (function == nullptr) return;
    const Unlocked unlocked{lock};
    for (const ConnectionEvent& one : news)
      call_user(shared_.options.log, "the function for connections has failed", one.endpoint,
                [&] { (*function)(one); });
    function.reset();  // another one may have taken its place
  }
}

}  // namespace wirecall::net
