// See broker_session.hpp.
#include "client/broker_session.hpp"

#include <algorithm>
#include <limits>

#include "base/dotted_name.hpp"
#include "base/reserve_extra.hpp"
#include "message/error_description.hpp"
#include "message/own_error.hpp"
#include "message/read_error.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {

using std::chrono::milliseconds;

namespace {

// No call has it: their ids are numbers.
constexpr std::string_view kHelloId = R"("rpc.hello")";

constexpr std::uint64_t kKeepaliveMsMax = std::numeric_limits<std::uint32_t>::max();

// What is read of the answer to rpc.hello. Other servers may leave out any of it.
struct ServerLimits {
  std::optional<std::uint64_t> max_message_size;
  std::optional<std::uint64_t> batch;
  std::optional<std::uint64_t> in_flight;
};
struct Greeting {
  std::optional<ServerLimits> limits;
  std::optional<std::string> session;
  std::optional<std::uint64_t> keepalive;
};
struct Lagged {
  std::string topic;
  std::uint64_t dropped;
};

// Empty where there is nothing to say.
std::string hello_message(const ClientOptions& options, std::string_view resume) {
  std::string params;
  if (!options.client_id.empty()) params = R"("name":)" + to_json(options.client_id);
  if (!options.token.empty()) params += (params.empty() ? R"("token":)" : R"(,"token":)") + to_json(options.token);
  if (params.empty()) return {};
  if (!resume.empty()) params += R"(,"resume":)" + to_json(std::string{resume});
  return R"({"jsonrpc":"2.0","method":"rpc.hello","params":{)" + params + R"(},"id":)" + std::string{kHelloId} + "}";
}

// Of the names that are wirecall's own, these are topics; others are its methods.
bool may_be_event(std::string_view name) noexcept {
  if (name.starts_with("rpc.")) {
    return name.starts_with("rpc.client.") || name.starts_with("rpc.method.") || name == "rpc.draining" ||
           name == "rpc.tap";
  }
  return is_name(name) && !name.starts_with("$/");
}

std::string unsubscribe_message(const ClientSubscription& subscription) {
  if (subscription.tap) return R"({"jsonrpc":"2.0","method":"rpc.tap","params":{"pattern":null}})";
  std::string params = R"({"topic":)" + to_json(subscription.name);
  if (!subscription.options.durable.empty()) params += R"(,"durable":)" + to_json(subscription.options.durable);
  return R"({"jsonrpc":"2.0","method":"rpc.unsubscribe","params":)" + params + "}}";
}

}  // namespace

// ---- what users declare ----

void BrokerSession::provide(std::string_view name, const ProvideOptions& options,
                            const std::function<Method&(Registry&)>& add) {
  require_callable(shared_.endpoints, "Client::provide");
  if (options.concurrency == 0U) throw std::invalid_argument("wirecall: concurrency is 0, and must be 1 or more");
  bool withdrawn = false;
  {
    const Lock lock = driver_.lock();
    withdrawn = std::erase(withdrawn_, name) != 0;
  }
  Declaration declaration;
  driver_.exclusively([&] {
    if (withdrawn) shared_.registry.remove(name);
    Method& method = add(shared_.registry);
    method.summary(options.summary);
    if (options.safe) method.safe();
    if (options.packed != nullptr) method.packed(*options.packed);
    declaration = Declarations::of_method(method, options);
  });
  Lock lock = driver_.lock();
  declarations_.add(std::move(declaration));
  declare_now(lock);
}

// The method stays where it is, for the calls that are on their way, until another one has its name.
bool BrokerSession::unprovide(std::string_view name) {
  std::string message = R"({"jsonrpc":"2.0","method":"rpc.unregister","params":{"method":)" + to_json(name) + "}}";
  Lock lock = driver_.lock();
  reserve_extra(withdrawn_, 1);
  std::string withdrawn{name};
  const std::optional<bool> told = declarations_.remove_method(name);
  if (!told) return false;
  withdrawn_.push_back(std::move(withdrawn));
  connections_.tell();
  if (*told) say(lock, connections_.first(), std::move(message));
  return true;
}

// What nobody waits for an answer to, at once.
void BrokerSession::say(Lock& lock, ClientConnection& connection, std::string message) {
  if (!connection.is_open() || driver_.closing()) return;
  connection.say(std::move(message));
  driver_.write_or_send(lock);
}

std::shared_ptr<ClientSubscription> BrokerSession::subscribe(std::string_view pattern, SubscribeOptions options,
                                                             EventFunction function) {
  require_callable(shared_.endpoints, "Client::subscribe");
  auto subscription = Declarations::of_topic(pattern, std::move(options), std::move(function));
  add(subscription);
  return subscription;
}

std::shared_ptr<ClientSubscription> BrokerSession::consume(std::string_view pattern, SubscribeOptions options,
                                                           ConsumerFunction function, std::weak_ptr<ClientCore> core) {
  require_callable(shared_.endpoints, "Client::consume");
  auto subscription = Declarations::of_consumed_topic(pattern, std::move(options), std::move(function));
  subscription->core = std::move(core);
  add(subscription);
  return subscription;
}

std::shared_ptr<ClientSubscription> BrokerSession::tap(std::string_view pattern, EventFunction function) {
  require_callable(shared_.endpoints, "Client::tap");
  auto tap = Declarations::of_tap(pattern, std::move(function));
  add(tap);
  return tap;
}

void BrokerSession::add(const std::shared_ptr<ClientSubscription>& subscription) {
  Lock lock = driver_.lock();
  declarations_.add(subscription);
  try {
    declare_now(lock);
  } catch (...) {
    static_cast<void>(declarations_.remove(*subscription));
    throw;
  }
}

void BrokerSession::unsubscribe(ClientSubscription& subscription) noexcept {
  Lock lock = driver_.lock();
  if (!std::exchange(subscription.ended, true)) {
    const bool told = declarations_.remove(subscription);
    connections_.tell();
    try {
      if (told) say(lock, connections_.first(), unsubscribe_message(subscription));
    } catch (const std::bad_alloc&) {
      // Without memory to tell the broker, events come and are dropped.
    }
  }
  if (driver_.on_driver()) return;
  event_over_.wait(lock, [&] { return !subscription.calling; });
  // What they hold goes now, and without the mutex.
  const EventFunction function = std::move(subscription.function);
  const ConsumerFunction consumer = std::move(subscription.consumer);
  lock.unlock();
}

// ---- declaring ----

void BrokerSession::greet(ClientConnection& connection) {
  if (connection.http != nullptr || connection.by_datagrams()) return;
  say_hello(connection);
  if (&connection != &connections_.first()) return;
  declarations_.forget_messages();
  declare(connection);
}

// What has not been said there. A server that refuses one of the messages without an id may mean any: as with what
// nobody waits for.
void BrokerSession::declare(ClientConnection& connection) {
  connection.unattributed.add(static_cast<std::uint32_t>(declarations_.append_messages(connection.controls)), 0);
}

void BrokerSession::declare_now(Lock& lock) {
  if (!driver_.in_run()) driver_.start_background();
  ClientConnection& connection = connections_.first();
  if (connection.is_open() && !calls_back(connection.endpoint())) {
    connections_.turn_away(connection);  // another endpoint may do
  } else if (connection.is_up()) {
    declare(connection);
  }
  driver_.asynchronous_begun(lock);
}

void BrokerSession::connection_ended(const ClientConnection& connection) noexcept {
  if (&connection != &connections_.first() || !declares()) return;
  declarations_.forget_messages();
  connections_.tell();
}

void BrokerSession::await_declared(Lock& lock) {
  const ClientConnection& connection = connections_.first();
  const auto known = [&] { return declarations_.all_answered() || connections_.refusal() || !connection.is_open(); };
  if (!known()) connections_.await_news(lock, milliseconds{shared_.options.call_timeout_ms}, known);
  if (const Declaration* refused = declarations_.refused()) {
    const Error& why = *refused->refusal;
    std::string told = refused->name + " is refused: " + why.message();
    throw Error{why.code(), told.append(message::no_broker_hint(why.code())), why.data()};
  }
  if (declarations_.all_answered()) return;
  if (connections_.refusal()) throw ConnectionError{*connections_.refusal()};
  if (connection.is_open())
    throw Error{ErrorCode::timeout, "the server did not answer rpc.register or rpc.subscribe in time"};
  const std::string& failure = connections_.last_failure();
  throw ConnectionError{failure.empty() ? "the connection was lost" : failure, ConnectionError::Delivered::maybe};
}

bool BrokerSession::declared(Lock& lock, ClientConnection& connection, const Received& message) {
  if (&connection != &connections_.first() || !Declarations::is_answer(message.id())) return false;
  std::optional<Error> refusal;
  if (message.fault != Fault::none) {
    refusal = message::malformed_response();
  } else if (message.has(Member::error)) {
    refusal = message::read_error(*shared_.reader, message[Member::error]);
  }
  if (refusal && has_code(*refusal, ErrorCode::draining)) {
    connections_.leave(connection);  // the next one is asked
    return true;
  }
  // Behind it the server closes the connection, and has looked at nothing else.
  const bool unknown = refusal && has_code(*refusal, ErrorCode::unauthenticated);
  const std::vector<std::string> names =
      unknown ? declarations_.refuse(*refusal) : declarations_.answered(message.id(), refusal);
  if (unknown) connections_.set_refusal(refusal);
  connections_.tell();
  if (!refusal) return true;
  if (connection.is_open()) declare(connection);
  tell_refused(lock, names, *refusal);
  return true;
}

// Lets go of the mutex: the sink may be one that calls.
void BrokerSession::tell_refused(Lock& lock, const std::vector<std::string>& names, const Error& refusal) {
  const LogSink& log = shared_.options.log;
  const std::shared_ptr<const RefusedFunction> function = on_refused_;
  lock.unlock();
  for (const std::string& name : names) {
    log(LogLevel::warning, "the server refuses what this client provides or subscribes to",
        {{"name", name}, {"code", refusal.code()}, {"error", refusal.message()}});
    if (function == nullptr) continue;
    call_user(log, "the function for refusals has failed", name, [&] { (*function)(name, refusal); });
  }
}

// ---- rpc.hello ----

void BrokerSession::say_hello(ClientConnection& connection) {
  Hello& hello = connection.hello;
  const bool resumes = !hello.resume.empty() && hello.resume_endpoint == connection.endpoint().uri();
  std::string message = hello_message(shared_.options, resumes ? hello.resume : std::string_view{});
  if (message.empty()) return;
  hello.resumes = resumes;
  connection.controls.push_back(std::move(message));
  hello.answered_until = shared_.loop.now() + milliseconds{shared_.options.call_timeout_ms};
}

// A server that knows no such method is as good as any other.
bool BrokerSession::greeted(Lock& lock, ClientConnection& connection, const Received& message) {
  Hello& hello = connection.hello;
  if (message.id() != kHelloId || message.fault != Fault::none || !hello.due(shared_.loop.now())) return false;
  hello.over();
  if (message.has(Member::error)) {
    hello_refused(lock, connection, message::read_error(*shared_.reader, message[Member::error]));
    return true;
  }
  connections_.set_refusal({});
  connections_.announce(connection);
  const auto greeting = from_json<Greeting>(message[Member::result]);
  if (!greeting) return true;
  hello.resume = greeting->session.value_or(std::string{});
  hello.resume_endpoint = connection.endpoint().uri();
  if (greeting->keepalive) connection.keep_alive_for(milliseconds{std::min(*greeting->keepalive, kKeepaliveMsMax)});
  if (!greeting->limits) return true;
  const ServerLimits& limits = *greeting->limits;
  const auto lower = [](std::size_t& own, const std::optional<std::uint64_t>& theirs) {
    if (theirs.value_or(0) != 0) own = std::min<std::uint64_t>(own, *theirs);
  };
  lower(connection.limits.message_bytes_max, limits.max_message_size);
  lower(connection.limits.batch_max, limits.batch);
  lower(connection.limits.in_flight_max, limits.in_flight);
  return true;
}

void BrokerSession::hello_refused(Lock& lock, ClientConnection& connection, const Error& why) {
  if (has_code(why, ErrorCode::method_not_found)) return connections_.announce(connection);
  if (has_code(why, ErrorCode::unauthenticated) && connection.hello.resumes) {
    // The server has forgotten the session, as one does that was started again: then another one begins.
    connection.hello.resume.clear();
    return say_hello(connection);
  }
  std::vector<std::string> refused;
  const bool kicked = has_code(why, ErrorCode::forbidden);
  if (kicked || has_code(why, ErrorCode::unauthenticated)) {
    // What has gone out behind it the server, which closes the connection, has not looked at.
    calls_.fail_all(connection, why);
    connection.enter(ConnectionState::draining);
    connections_.set_refusal(why);
    // Who was kicked may come again, and declares the same then.
    if (&connection == &connections_.first()) refused = kicked ? declarations_.names() : declarations_.refuse(why);
    connections_.tell();
  } else {
    connections_.announce(connection);
  }
  tell_refused(lock, refused, why);
  shared_.options.log(LogLevel::warning, "the server refuses this client",
                      {{"client_id", shared_.options.client_id}, {"code", why.code()}, {"error", why.message()}});
}

// ---- events ----

bool BrokerSession::event(const ClientConnection& connection, const Received& message) {
  if (message.method() == "rpc.lagged") {
    lagged(message);
    return true;
  }
  std::string unescaped;
  std::string_view topic = message.method();
  if (message.method_escaped) {
    unescaped = from_json<std::string>(message[Member::method]).value_or(std::string{});
    topic = unescaped;
  }
  if (!may_be_event(topic)) return false;
  Declarations::Subscriptions subscriptions;
  {
    const Lock lock = driver_.lock();
    if (&connection != &connections_.first()) return false;
    subscriptions = declarations_.of_event(topic);
  }
  if (subscriptions.empty()) return false;
  const std::string_view params = message.params();
  const Event event{.topic = std::string{topic}, .params_json = std::string{params}};
  for (const auto& subscription : subscriptions) deliver(*subscription, event);
  return true;
}

void BrokerSession::deliver(ClientSubscription& subscription, const Event& event) {
  {
    const Lock lock = driver_.lock();
    if (subscription.ended || driver_.closing()) return;
    subscription.calling = true;
  }
  call_user(shared_.options.log, "the function of a subscription has failed", event.topic,
            [&] { subscription.function(event); });
  const Lock lock = driver_.lock();
  subscription.calling = false;
  event_over_.notify_all();
}

// The id of such a request is "<consumer>:<seq>:<delivery>".
static std::string_view consumer_of(std::string_view id) noexcept {
  const std::size_t colon = id.find(':');
  return id.starts_with('"') && colon != std::string_view::npos ? id.substr(1, colon - 1) : std::string_view{};
}

bool BrokerSession::asked(ClientConnection& connection, const Received& message) {
  const std::string_view consumer = consumer_of(message.id());
  if (consumer.empty()) [[likely]]
    return false;
  std::shared_ptr<ClientSubscription> subscription;
  {
    const Lock lock = driver_.lock();
    if (&connection != &connections_.first()) return false;
    subscription = declarations_.of_consumer(consumer);
  }
  if (subscription == nullptr) return false;
  connection.useful = true;
  const Event event{.topic = from_json<std::string>(message[Member::method]).value_or(std::string{}),
                    .params_json = std::string{message.params()}};
  EventReply reply{subscription->core, std::string{message.id()}};
  {
    const Lock lock = driver_.lock();
    if (subscription->ended || driver_.closing()) return true;  // and the reply refuses it
    subscription->calling = true;
  }
  call_user(shared_.options.log, "the function of a consumer has failed, and is given the event again", event.topic,
            [&] { subscription->consumer(event, std::move(reply)); });
  const Lock lock = driver_.lock();
  subscription->calling = false;
  event_over_.notify_all();
  return true;
}

// Where there is no connection the event comes again on the next one.
void BrokerSession::reply(std::string message) {
  Lock lock = driver_.lock();
  ClientConnection& connection = connections_.first();
  if (!connection.is_open() || driver_.closing()) return;
  connection.controls.push_back(std::move(message));
  driver_.write_or_send(lock);
}

void BrokerSession::lagged(const Received& message) {
  if (!message.has(Member::params)) return;
  const auto what = from_json<Lagged>(message[Member::params]);
  if (!what) return;
  std::shared_ptr<const LaggedFunction> function;
  {
    const Lock lock = driver_.lock();
    function = on_lagged_;
  }
  shared_.options.log(LogLevel::warning, "the server has dropped events, since this client does not keep up",
                      {{"topic", what->topic}, {"dropped", static_cast<std::int64_t>(what->dropped)}});
  if (function == nullptr) return;
  call_user(shared_.options.log, "the function for dropped events has failed", what->topic,
            [&] { (*function)(what->topic, what->dropped); });
}

}  // namespace wirecall::net
