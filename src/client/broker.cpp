// The part of ClientCore (client_core.hpp) that deals with a broker: what the client provides and subscribes to is
// declared on its first connection, behind rpc.hello and before any call, each time that this is made; events go to
// their subscriptions. What is declared is in client_declarations.hpp. At the end what users hold.
// See docs/client.md, "At a broker".
#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dotted_name.hpp"
#include "base/reserve_extra.hpp"
#include "client/core.hpp"
#include "client/declarations.hpp"
#include "message/error_description.hpp"
#include "message/read_error.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/client.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::session {

using std::chrono::milliseconds;

namespace {

struct Lagged {
  std::string topic;
  std::uint64_t dropped;
};

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
  return R"({"jsonrpc":"2.0","method":"rpc.unsubscribe","params":{"topic":)" + to_json(subscription.name) + "}}";
}

// A function of the user's that throws has failed at something, and all goes on.
template <class Function>
void call_user(const LogSink& log, std::string_view failure, std::string_view name, const Function& function) noexcept {
  try {
    function();
  } catch (const std::exception& error) {
    log(LogLevel::error, failure, {{"name", name}, {"error", error.what()}});
  } catch (...) {
    log(LogLevel::error, failure, {{"name", name}, {"error", "what is no std::exception"}});
  }
}

}  // namespace

// ---- declaring ----

// What only http:// can be had for would wait for ever.
void ClientCore::require_callable(std::string_view what) const {
  const bool any =
      std::ranges::any_of(endpoints_, [](const Endpoint& endpoint) { return endpoint.kind() != EndpointKind::http; });
  if (any) return;
  throw std::logic_error(std::string{what} + " at " + endpoints_.front().uri() +
                         ": a server does not call its client by HTTP; connect to tcp:// or unix://");
}

void ClientCore::exclusively(const std::function<void()>& change) {
  if (on_driver()) return change();
  Lock lock{mutex_};
  while (exclusive_) run_ready_.wait(lock);
  if (running_) {
    throw std::logic_error(
        "what a client offers cannot be changed while another thread is in Client::run: do it before, or inside");
  }
  running_ = exclusive_ = true;
  const Leaving leaving{*this};
  while (driven_) {
    wake_driver();
    run_ready_.wait(lock);
  }
  change();
}

void ClientCore::provide(std::string_view name, const ProvideOptions& options,
                         const std::function<Method&(Registry&)>& add) {
  require_callable("Client::provide");
  if (options.concurrency == 0U) throw std::invalid_argument("wirecall: concurrency is 0, and must be 1 or more");
  bool withdrawn = false;
  {
    const std::scoped_lock lock{mutex_};
    withdrawn = std::erase(withdrawn_, name) != 0;
  }
  Declaration declaration;
  exclusively([&] {
    if (withdrawn) registry_.remove(name);
    Method& method = add(registry_);
    method.summary(options.summary);
    if (options.safe) method.safe();
    declaration = Declarations::of_method(method, options);
  });
  Lock lock{mutex_};
  declarations_.add(std::move(declaration));
  declare_now(lock);
}

// The method stays where it is, for the calls that are on their way, until another one has its name.
bool ClientCore::unprovide(std::string_view name) {
  std::string message = R"({"jsonrpc":"2.0","method":"rpc.unregister","params":{"method":)" + to_json(name) + "}}";
  Lock lock{mutex_};
  reserve_extra(withdrawn_, 1);
  std::string withdrawn{name};
  const std::optional<bool> told = declarations_.remove_method(name);
  if (!told) return false;
  withdrawn_.push_back(std::move(withdrawn));
  tell_connecting();
  if (ClientConnection& connection = declaring(); *told && connection.up() && !closing_)
    say(lock, connection, std::move(message));
  return true;
}

// What nobody waits for an answer to, at once.
void ClientCore::say(Lock& lock, ClientConnection& connection, std::string message) {
  connection.controls.push_back(std::move(message));
  connection.unattributed.add(1, 0);
  if (on_driver()) return write_queued();
  send_controls(lock);
}

std::shared_ptr<ClientSubscription> ClientCore::subscribe(std::string_view pattern, SubscribeOptions options,
                                                          EventFunction function) {
  require_callable("Client::subscribe");
  auto subscription = Declarations::of_topic(pattern, std::move(options), std::move(function));
  add_subscription(subscription);
  return subscription;
}

std::shared_ptr<ClientSubscription> ClientCore::tap(std::string_view pattern, EventFunction function) {
  require_callable("Client::tap");
  auto tap = Declarations::of_tap(pattern, std::move(function));
  add_subscription(tap);
  return tap;
}

void ClientCore::add_subscription(const std::shared_ptr<ClientSubscription>& subscription) {
  Lock lock{mutex_};
  declarations_.add(subscription);
  try {
    declare_now(lock);
  } catch (...) {
    static_cast<void>(declarations_.remove(*subscription));
    throw;
  }
}

void ClientCore::unsubscribe(ClientSubscription& subscription) noexcept {
  Lock lock{mutex_};
  if (!std::exchange(subscription.ended, true)) {
    const bool told = declarations_.remove(subscription);
    tell_connecting();
    ClientConnection& connection = declaring();
    if (told && connection.up() && !closing_) {
      try {
        say(lock, connection, unsubscribe_message(subscription));
      } catch (const std::bad_alloc&) {
        // Without memory to tell the broker, events come and are dropped.
      }
    }
  }
  if (on_driver()) return;
  event_over_.wait(lock, [&] { return !subscription.calling; });
  const EventFunction function = std::move(subscription.function);  // what it holds goes now, and without the mutex
  lock.unlock();
}

// On a connection that is being made, all; else what has not been said there. A server that refuses one of them
// without an id may mean any: as with what nobody waits for.
void ClientCore::declare(ClientConnection& connection) {
  if (&connection != &declaring()) return;
  if (!connection.up()) declarations_.forget_messages();
  connection.unattributed.add(static_cast<std::uint32_t>(declarations_.append_messages(connection.controls)), 0);
}

void ClientCore::declare_now(Lock& lock) {
  if (!running_) start_background();
  ClientConnection& connection = declaring();
  if (connection.up() && connection.http != nullptr) {
    connection.draining = given_up_ = true;  // another endpoint may do
  } else if (connection.up() && !connection.draining) {
    declare(connection);
  }
  asynchronous_begun(lock);
}

void ClientCore::await_declared(Lock& lock) {
  const auto known = [this] { return declarations_.all_answered() || refusal_ || !declaring().up(); };
  if (!known()) await_news(lock, milliseconds{options_.call_timeout_ms}, known);
  if (const Declaration* refused = declarations_.refused()) {
    const Error& why = *refused->refusal;
    std::string told = refused->name + " is refused: " + why.message();
    throw Error{why.code(), told.append(message::no_broker_hint(why.code())), why.data()};
  }
  if (declarations_.all_answered()) return;
  if (refusal_) throw ConnectionError{*refusal_};
  if (declaring().up())
    throw Error{ErrorCode::timeout, "the server did not answer rpc.register or rpc.subscribe in time"};
  throw ConnectionError{last_failure_.empty() ? "the connection was lost" : last_failure_,
                        ConnectionError::Delivered::maybe};
}

// Whether it is the answer to a declaration.
bool ClientCore::declared(Lock& lock, ClientConnection& connection, const Received& message) {
  if (&connection != &declaring() || !Declarations::is_answer(message.id())) return false;
  std::optional<Error> refusal;
  if (message.fault != Fault::none) {
    refusal = message::malformed_response();
  } else if (message.has(Member::error)) {
    refusal = message::read_error(*reader_, message[Member::error]);
  }
  if (refusal && refusal->code() == static_cast<int>(ErrorCode::draining)) {
    leave(connection);  // the next one is asked
    return true;
  }
  // Behind it the server closes the connection, and has looked at nothing else.
  const bool unknown = refusal && refusal->code() == static_cast<int>(ErrorCode::unauthenticated);
  const std::vector<std::string> names =
      unknown ? declarations_.refuse(*refusal) : declarations_.answered(message.id(), refusal);
  if (unknown) refusal_ = refusal;
  tell_connecting();
  if (!refusal) return true;
  if (connection.up()) declare(connection);
  tell_refused(lock, names, *refusal);
  return true;
}

// Lets go of the mutex: the sink may be one that calls.
void ClientCore::tell_refused(Lock& lock, const std::vector<std::string>& names, const Error& refusal) {
  const std::shared_ptr<const RefusedFunction> function = on_refused_;
  lock.unlock();
  for (const std::string& name : names) {
    options_.log(LogLevel::warning, "the server refuses what this client provides or subscribes to",
                 {{"name", name}, {"code", refusal.code()}, {"error", refusal.message()}});
    if (function == nullptr) continue;
    call_user(options_.log, "the function for refusals has failed", name, [&] { (*function)(name, refusal); });
  }
}

void ClientCore::on_refused(RefusedFunction function) {
  auto shared = function ? std::make_shared<const RefusedFunction>(std::move(function)) : nullptr;
  const std::scoped_lock lock{mutex_};
  on_refused_.swap(shared);
}

void ClientCore::on_lagged(LaggedFunction function) {
  auto shared = function ? std::make_shared<const LaggedFunction>(std::move(function)) : nullptr;
  const std::scoped_lock lock{mutex_};
  on_lagged_.swap(shared);
}

void ClientCore::on_connection(ConnectionFunction function) {
  auto shared = function ? std::make_shared<const ConnectionFunction>(std::move(function)) : nullptr;
  const std::scoped_lock lock{mutex_};
  on_connection_.swap(shared);
}

// The server takes this client: it has answered rpc.hello, or was not told any.
void ClientCore::announce(ClientConnection& connection) noexcept {
  if (!std::exchange(connection.announced, true)) note_connection(true, connection, {});
}

void ClientCore::note_connection(bool connected, const ClientConnection& connection, std::string_view cause) noexcept {
  if (on_connection_ == nullptr) return;
  try {
    news_.push_back(
        {.connected = connected, .endpoint = connection.dialer.endpoint().uri(), .cause = std::string{cause}});
  } catch (const std::bad_alloc&) {
    // Without memory nobody is told.
  }
}

void ClientCore::tell_news(Lock& lock) noexcept {
  while (!news_.empty()) {
    const std::vector<ConnectionNews> news = std::exchange(news_, {});
    const std::shared_ptr<const ConnectionFunction> function = on_connection_;
    if (function == nullptr) return;
    const Unlocked unlocked{lock};
    for (const ConnectionNews& one : news)
      call_user(options_.log, "the function for connections has failed", one.endpoint, [&] { (*function)(one); });
  }
}

// ---- events ----

// Whether the notification is an event that is subscribed to, or about such. Called without the mutex.
bool ClientCore::event(ClientConnection& connection, const Received& message) {
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
    const std::scoped_lock lock{mutex_};
    if (&connection != &declaring()) return false;
    subscriptions = declarations_.of_event(topic);
  }
  if (subscriptions.empty()) return false;
  const std::string_view params = message.has(Member::params) ? message[Member::params] : std::string_view{};
  const Event event{.topic = std::string{topic}, .params_json = std::string{params}};
  for (const auto& subscription : subscriptions) deliver_event(*subscription, event);
  return true;
}

void ClientCore::deliver_event(ClientSubscription& subscription, const Event& event) {
  {
    const std::scoped_lock lock{mutex_};
    if (subscription.ended || closing_) return;
    subscription.calling = true;
  }
  call_user(options_.log, "the function of a subscription has failed", event.topic,
            [&] { subscription.function(event); });
  const std::scoped_lock lock{mutex_};
  subscription.calling = false;
  event_over_.notify_all();
}

void ClientCore::lagged(const Received& message) {
  if (!message.has(Member::params)) return;
  const auto what = from_json<Lagged>(message[Member::params]);
  if (!what) return;
  std::shared_ptr<const LaggedFunction> function;
  {
    const std::scoped_lock lock{mutex_};
    function = on_lagged_;
  }
  options_.log(LogLevel::warning, "the server has dropped events, since this client does not keep up",
               {{"topic", what->topic}, {"dropped", static_cast<std::int64_t>(what->dropped)}});
  if (function == nullptr) return;
  call_user(options_.log, "the function for dropped events has failed", what->topic,
            [&] { (*function)(what->topic, what->dropped); });
}

}  // namespace wirecall::session

// ---- what users hold ----

namespace wirecall {

std::string_view Event::value_json() const {
  if (params_json.empty()) return "null";
  Buffer padded{params_json};
  const std::unique_ptr<Reader> reader = json_codec().reader();
  reader->reset(padded.padded());
  if (reader->kind() != ValueKind::array || !reader->begin_array() || !reader->next_element()) return params_json;
  const ValueKind kind = reader->kind();
  const std::string_view element = reader->skip();
  if (kind == ValueKind::array || kind == ValueKind::object || reader->next_element()) return params_json;
  return std::string_view{params_json}.substr(static_cast<std::size_t>(element.data() - padded.data()), element.size());
}

void Subscription::unsubscribe() noexcept {
  const std::shared_ptr<session::ClientSubscription> entry = std::exchange(entry_, nullptr);
  const std::shared_ptr<session::ClientCore> core = std::exchange(core_, {}).lock();
  if (entry != nullptr && core != nullptr) core->unsubscribe(*entry);
}

void Subscription::keep() noexcept {
  entry_.reset();
  core_.reset();
}

void Client::provide_method(std::string_view name, const ProvideOptions& options,
                            const std::function<Method&(Registry&)>& add) {
  core_->provide(name, options, add);
}
bool Client::unprovide(std::string_view name) { return core_->unprovide(name); }
void Client::exclusively(const std::function<void()>& change) { core_->exclusively(change); }
Subscription Client::subscribe(std::string_view topic, SubscribeOptions options, EventFunction function) {
  return Subscription{core_, core_->subscribe(topic, std::move(options), std::move(function))};
}
Subscription Client::tap(std::string_view pattern, EventFunction function) {
  return Subscription{core_, core_->tap(pattern, std::move(function))};
}
void Client::on_refused(RefusedFunction function) { core_->on_refused(std::move(function)); }
void Client::on_lagged(LaggedFunction function) { core_->on_lagged(std::move(function)); }
void Client::on_connection(ConnectionFunction function) { core_->on_connection(std::move(function)); }

Request<std::size_t> Client::publication_of(std::string_view topic, const PublishOptions& options,
                                            const std::function<void(Writer&)>& encode_value) const {
  detail::OutgoingCall call{core_, "rpc.publish"};
  Buffer value;
  std::string failure;
  if (encode_value) {
    const std::unique_ptr<Writer> own = json_codec().writer();
    own->reset(value);
    encode_value(*own);
    failure = own->failure();
  }
  Writer& writer = call.params();
  writer.begin_object(Writer::kUnknownSize);
  writer.key("topic");
  writer.string(topic);
  if (!failure.empty()) {
    writer.fail(failure);
  } else if (const std::string_view text = value.view(); !text.empty()) {
    const bool wrapped = text.front() != '[' && text.front() != '{';
    writer.key("params");
    if (wrapped) writer.begin_array(1);
    writer.json(text);
    if (wrapped) writer.end_array();
  }
  if (options.retain) {
    writer.key("retain");
    writer.boolean(true);
  }
  writer.end_object();
  return Request<std::size_t>{std::move(call)};
}

namespace detail {

Error take_error(Reader& reader) {
  const std::string_view text = reader.skip();
  const std::unique_ptr<Reader> own = json_codec().reader();
  return message::read_error(*own, text);
}

}  // namespace detail
}  // namespace wirecall
