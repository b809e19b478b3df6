// Client: calls methods of a server. One object, four ways: a call may block its thread, call back, give a std::future
// or be awaited by a coroutine. A call that blocks does the waiting on the socket itself and needs no other thread;
// several threads may, and then one of them waits for all. The other ways have a thread in the background, started at
// their first use, unless Client::run lends them the caller's.
//
// The client connects when it is first used, waits for its server within a call's time, and connects again when the
// connection is lost. A call that may have reached the server is not made twice: when its connection is lost it fails
// with ConnectionError. One that cannot have waits for the next connection.
//
// At a broker (docs/client.md "At a broker") a client also provides methods to other clients, subscribes to events and
// publishes them. One that provides or subscribes connects at once, and again by itself whenever its connection is
// lost.
//
// The templates here only encode and decode; everything else is compiled (src/session/client*.cpp). Thread: any, for
// all calls; making, moving and destroying the client happens while nobody calls.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wirecall/batch.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/error.hpp"
#include "wirecall/options.hpp"
#include "wirecall/provider.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/request.hpp"
#include "wirecall/result_stream.hpp"
#include "wirecall/subscription.hpp"
#include "wirecall/task.hpp"

namespace wirecall {

/// The connection could not be made, or was lost before the answer came: -32001.
class ConnectionError : public Error {
 public:
  enum class Delivered { no, maybe };

  ConnectionError(std::string message, Delivered delivered);
  explicit ConnectionError(Error error) : Error(std::move(error)) {}

  /// The server cannot have seen the call: calling again is safe.
  [[nodiscard]] bool safe_to_retry() const noexcept;
};

/// What a server answered, as it came.
struct Response {
  std::string json;                          ///< the whole response
  std::expected<std::string, Error> result;  ///< its result's JSON text, or its error
};

/// An argument by name; made by wirecall::arg("minuend") = 42.
template <class T>
struct NamedArgument {
  std::string_view name;
  T value;  ///< a reference for an lvalue, which is read before the call returns
};

/// Names an argument: client.call<int>("subtract", arg("minuend") = 42, arg("subtrahend") = 23).
class arg {
 public:
  constexpr explicit arg(std::string_view name) noexcept : name_(name) {}
  template <class T>
  constexpr NamedArgument<T> operator=(T&& value) const {
    return {name_, std::forward<T>(value)};
  }

 private:
  std::string_view name_;
};

namespace detail {

struct ClientAccess;

template <class T>
inline constexpr bool kIsNamed = false;
template <class T>
inline constexpr bool kIsNamed<NamedArgument<T>> = true;

template <class... Args>
void write_arguments(Writer& writer, const Args&... args) {
  static_assert((kIsNamed<Args> && ...) || (!kIsNamed<Args> && ...), "name all arguments, or none of them");
  if constexpr ((kIsNamed<Args> && ...)) {
    writer.begin_object(sizeof...(Args));
    ((writer.key(args.name), encode(writer, args.value)), ...);
    writer.end_object();
  } else {
    writer.begin_array(sizeof...(Args));
    (encode(writer, args), ...);
    writer.end_array();
  }
}

template <class... Args>
void write_params(OutgoingCall& call, const Args&... args) {
  if constexpr (sizeof...(Args) != 0) write_arguments(call.params(), args...);
}

}  // namespace detail

class Client {
 public:
  /// Of a server at a place such as "tcp://127.0.0.1:8545" or "http://127.0.0.1:8545/rpc" (docs/client.md "By HTTP").
  /// Throws std::invalid_argument for what names no place and for options that cannot be.
  explicit Client(std::string_view uri, ClientOptions options = {});
  /// Of a server at one of several places: the next is tried where one does not answer.
  explicit Client(std::vector<Endpoint> endpoints, ClientOptions options = {});
  /// Of options as JSON text: Client{uri, R"({"call_timeout_ms": 200})"}. Throws as ClientOptions::from_json.
  template <std::convertible_to<std::string_view> Json>
  Client(std::string_view uri, const Json& options_json)
      : Client(uri, ClientOptions::from_json(std::string_view{options_json})) {}
  template <std::convertible_to<std::string_view> Json>
  Client(std::vector<Endpoint> endpoints, const Json& options_json)
      : Client(std::move(endpoints), ClientOptions::from_json(std::string_view{options_json})) {}
  /// Ends what has not ended, with ConnectionError.
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// Ends what has not ended, with ConnectionError, as the destructor does; what is begun afterwards ends in the same
  /// way. Other threads may be in calls. Again: no effect. Any thread but, while another is in it, that of `run`.
  void close() noexcept;

  /// Connects now instead of with the first call, trying each place once. Throws ConnectionError with the cause and the
  /// cure. Where something is provided or subscribed to, waits until the server has accepted all of it, and throws the
  /// Error by which it refuses the first that it does (-32007, -32003; -32601: it is no broker), or -32002 when it has
  /// not answered in ClientOptions::call_timeout_ms. The client goes on connecting, and is usable, all the same.
  void connect();

  /// Calls `method` and returns its result. Throws the Error it was answered with; Error -32002 when no answer came in
  /// time, which costs no other call, and the connection only by HTTP; ConnectionError when the connection is lost, or
  /// none could be made; LocalError -32602 when JSON cannot hold an argument, -32603 when the result is no Result.
  /// Inside a callback, handler or coroutine of this client it throws at once: it would wait for itself.
  template <class Result = void, class... Args>
  Result call(std::string_view method, const Args&... args) {
    return request<Result>(method, args...).call();
  }

  /// The same without exceptions.
  template <class Result = void, class... Args>
  [[nodiscard]] std::expected<Result, Error> try_call(std::string_view method, const Args&... args) {
    return request<Result>(method, args...).try_call();
  }

  /// A call to be made in any of the four ways, with a timeout of its own, or to be stopped:
  ///     client.request<int>("subtract", 42, 23).timeout(200ms).then([](std::expected<int, Error> result) { … });
  template <class Result = void, class... Args>
  [[nodiscard]] Request<Result> request(std::string_view method, const Args&... args) {
    detail::OutgoingCall call{core_, method};
    detail::write_params(call, args...);
    return Request<Result>{std::move(call)};
  }

  /// Calls a method for its results as they come: for (int i : client.stream<int>("count", 5)). At most
  /// ClientOptions::call_timeout_ms pass between two of them while the consumer waits. A server that knows no streams
  /// gives the same results all at once.
  template <class Item, class... Args>
  [[nodiscard]] ResultStream<Item> stream(std::string_view method, const Args&... args) {
    detail::OutgoingCall call{core_, method};
    detail::write_params(call, args...);
    return ResultStream<Item>{detail::IncomingStream{std::move(call), kStreamCredit}};
  }

  /// The same with params that are JSON text (an array or object; empty for none).
  template <class Item>
  [[nodiscard]] ResultStream<Item> stream_raw(std::string_view method, std::string_view params_json) {
    detail::OutgoingCall call{core_, method};
    if (!params_json.empty()) call.set_params(params_json);
    return ResultStream<Item>{detail::IncomingStream{std::move(call), kStreamCredit}};
  }

  /// A call whose params whoever asks writes, and whose answer he reads: what the other ways are made of.
  [[nodiscard]] detail::OutgoingCall outgoing(std::string_view method) { return {core_, method}; }

  /// Several such calls in one message, each with an answer of its own.
  [[nodiscard]] detail::OutgoingBatch outgoing_batch() { return detail::OutgoingBatch{core_}; }

  /// Several calls in one message; see batch.hpp.
  [[nodiscard]] Batch<> batch();
  /// As many calls in one message as are added, each with a T for its result.
  template <class T = void>
  [[nodiscard]] BatchOf<T> batch_of() {
    return BatchOf<T>{detail::OutgoingBatch{core_}};
  }

  /// Sends a notification: nobody answers it. Returns when the system has taken it, by HTTP when the server has
  /// responded; inside a callback, handler or coroutine of this client, at once.
  template <class... Args>
  void notify(std::string_view method, const Args&... args) {
    detail::OutgoingCall call{core_, method};
    detail::write_params(call, args...);
    detail::Answer sent = call.notify();
    if (!sent.ok()) sent.throw_error();
  }

  /// Calls with params that are JSON text (an array or object; empty for none) and returns the result's JSON text.
  [[nodiscard]] std::expected<std::string, Error> call_raw(std::string_view method, std::string_view params_json);
  /// The same for the whole response. Its errors are the server's; the outer ones are those of this side: no response
  /// came, or none that can be read. Within `timeout` where one is given.
  [[nodiscard]] std::expected<Response, Error> call_for_response(std::string_view method, std::string_view params_json,
                                                                 std::optional<std::chrono::milliseconds> timeout = {});
  [[nodiscard]] std::expected<void, Error> notify_raw(std::string_view method, std::string_view params_json,
                                                      std::optional<std::chrono::milliseconds> timeout = {});

  /// Methods that the server may call, on this connection, without being told of them. Changed before the client is
  /// first used.
  [[nodiscard]] Registry& registry() noexcept;
  /// Adds one at any time, but not while another thread is in `run`: std::logic_error. Throws as Registry::method.
  template <class F>
  Method& method(std::string name, F&& callable, std::vector<Param> params = {}) {
    Method* added = nullptr;
    alone([&] { added = &registry().method(std::move(name), std::forward<F>(callable), std::move(params)); });
    return *added;
  }

  /// The same of what somebody has bound in another way (Registry::add).
  Method& method(std::string name, detail::Binding binding, std::vector<Param> params = {}) {
    Method* added = nullptr;
    alone([&] { added = &registry().add(std::move(name), std::move(params), std::move(binding)); });
    return *added;
  }

  /// Provides a method to the other clients of a broker: client.provide("gpu.add", add, {.concurrency = 1}). Returns at
  /// once; the client connects, also again and again, and registers there, at any time of its life. Handlers run on the
  /// thread that drives, one at a time unless they are coroutines. A refusal goes to `connect`, to the log and to
  /// `on_refused`. Throws as Registry::method; std::logic_error where all places are by HTTP, and while another thread
  /// is in `run`.
  template <class F>
  void provide(std::string name, F&& callable, const ProvideOptions& options = {}) {
    provide_method(name, options, [&](Registry& methods) -> Method& {
      return methods.method(name, std::forward<F>(callable), options.params);
    });
  }
  /// The same of what somebody has bound in another way (Registry::add).
  void provide(std::string name, detail::Binding binding, const ProvideOptions& options = {}) {
    provide_method(name, options,
                   [&](Registry& methods) -> Method& { return methods.add(name, options.params, std::move(binding)); });
  }
  /// Provides a stream to the other clients of a broker, for them to subscribe to: client.provide_subscription(
  /// {.subscribe = "eth_subscribe", .unsubscribe = "eth_unsubscribe", .notification = "eth_subscription"}, heads). The
  /// coroutine is used as by Registry::subscription; the broker sends each subscriber its own events, and ends what a
  /// subscriber leaves behind (docs/broker.md). unprovide(names.subscribe) ends it. In all else, and throws, as
  /// provide; -32007 too where names.unsubscribe is another method of this client.
  template <class F>
  void provide_subscription(const SubscriptionNames& names, F&& stream_function, const ProvideOptions& options = {}) {
    provide_method(names.subscribe, options, [&](Registry& methods) -> Method& {
      return methods.subscription(names, std::forward<F>(stream_function), options.params);
    });
  }
  /// The same of what somebody has bound in another way (Registry::add_subscription).
  void provide_subscription(const SubscriptionNames& names, detail::Binding binding,
                            const ProvideOptions& options = {}) {
    provide_method(names.subscribe, options, [&](Registry& methods) -> Method& {
      return methods.add_subscription(names, options.params, std::move(binding));
    });
  }
  /// Provides that method no longer: the broker is told, on later connections it is not registered, and the name may be
  /// provided anew. Returns at once; calls that are on their way are still answered, and none comes any more once a
  /// call that this client makes afterwards has been answered. False when it is not provided. Any thread.
  bool unprovide(std::string_view name);

  /// Calls `function` with each event of a topic, in which `*` stands for any word and a last `>` for all further ones:
  ///     auto subscription = client.subscribe("sensors.*.temp", [](const Event& event) { use(event.as<double>()); });
  /// Returns at once, and connects, as provide does, and a refusal goes where that of a method goes. The function runs
  /// on the thread that drives; what it throws goes to the log. A notification that has subscriptions is not for a
  /// method of that name. Throws std::invalid_argument for what is no topic, and for a second subscription to one that
  /// differs in group or echo; std::logic_error where all places are by HTTP.
  [[nodiscard]] Subscription subscribe(std::string_view topic, SubscribeOptions options, EventFunction function);
  [[nodiscard]] Subscription subscribe(std::string_view topic, EventFunction function) {
    return subscribe(topic, {}, std::move(function));
  }

  /// Calls `function` with what an admin of a broker is shown of the methods and topics that the pattern stands for
  /// (docs/broker.md "Looking on"): each as an event of the topic rpc.tap. In all else as subscribe. Throws
  /// std::invalid_argument for what is no pattern, and for a second one that is another.
  [[nodiscard]] Subscription tap(std::string_view pattern, EventFunction function);

  /// Publishes a value at the broker and returns to how many of its connections it was queued. Throws as call does.
  template <class T>
  std::size_t publish(std::string_view topic, const T& value, PublishOptions options = {}) {
    return publication(topic, value, options).call();
  }
  /// An event without a value; with `retain`, forgets what is retained.
  std::size_t publish(std::string_view topic, PublishOptions options) { return publication(topic, options).call(); }
  /// The same to be made in any of the four ways.
  template <class T>
  [[nodiscard]] Request<std::size_t> publication(std::string_view topic, const T& value, PublishOptions options = {}) {
    return publication_of(topic, options, [&value](Writer& writer) { encode(writer, value); });
  }
  [[nodiscard]] Request<std::size_t> publication(std::string_view topic, PublishOptions options) {
    return publication_of(topic, options, nullptr);
  }

  /// Calls a method at all who provide it, and returns what each has answered. Throws as call does.
  template <class Result = void, class... Args>
  std::vector<ProviderOutcome<Result>> call_all(std::string_view method, const Args&... args) {
    return request_all<Result>(method, args...).call();
  }
  /// The same to be made in any of the four ways.
  template <class Result = void, class... Args>
  [[nodiscard]] Request<std::vector<ProviderOutcome<Result>>> request_all(std::string_view method,
                                                                          const Args&... args) {
    detail::OutgoingCall call{core_, "rpc.call_all"};
    Writer& writer = call.params();
    writer.begin_object(sizeof...(Args) == 0 ? 1 : 2);
    writer.key("method");
    writer.string(method);
    if constexpr (sizeof...(Args) != 0) {
      writer.key("params");
      detail::write_arguments(writer, args...);
    }
    writer.end_object();
    return Request<std::vector<ProviderOutcome<Result>>>{std::move(call)};
  }

  /// What is called, on the thread that drives, when the server refuses what is provided or subscribed to, after a
  /// reconnection too; the log is told in any case.
  void on_refused(RefusedFunction function);
  /// What is called, on the thread that drives, when the server has dropped events.
  void on_lagged(LaggedFunction function);
  /// What is called, on the thread that drives, when a connection has been made or has ended: a program that has to
  /// look anew at what it has missed does so here. Of several that end and are made, each is told, in order.
  void on_connection(ConnectionFunction function);

  /// Runs a task on this thread, and returns what it comes to or throws what it throws. Where it awaits requests of
  /// this client, no other thread is involved: the fastest way for many calls at once. `stop` may be requested on any
  /// thread. Callbacks are called on this thread as well, while it runs. Throws std::logic_error inside a callback,
  /// handler or coroutine of this client, and while another thread is in it.
  template <class T>
  T run(Task<T> task, std::stop_token stop = {});
  /// Timers for tasks inside `run`: co_await sleep_for(client.scheduler(), 10ms).
  [[nodiscard]] Scheduler& scheduler() noexcept;

  /// Asks `interrupted` every 20 ms on each thread that is blocked in a call; after true that call ends with -32800,
  /// and the server is told. Set before the client is first used. `interrupted` does not throw, and does not use the
  /// client.
  void on_wait(std::function<bool()> interrupted);
  /// Responses that nobody was waiting for: late, unknown or given twice.
  [[nodiscard]] std::uint64_t responses_dropped() const;

 private:
  friend struct detail::ClientAccess;
  explicit Client(std::shared_ptr<session::ClientCore> core) noexcept;
  [[nodiscard]] std::shared_ptr<detail::Home> home() const;
  /// Changes what nobody may use meanwhile.
  void alone(const std::function<void()>& change);
  void provide_method(std::string_view name, const ProvideOptions& options,
                      const std::function<Method&(Registry&)>& add);
  [[nodiscard]] Request<std::size_t> publication_of(std::string_view topic, const PublishOptions& options,
                                                    const std::function<void(Writer&)>& encode_value) const;
  /// Drives on this thread until `finished`; `begin` is given the stop token of what it begins.
  void run(std::stop_token stop, const std::function<void(std::stop_token)>& begin, const bool& finished);

  std::shared_ptr<session::ClientCore> core_;
};

template <class T>
T Client::run(Task<T> task, std::stop_token stop) {
  std::optional<TaskResult<T>> result;
  bool finished = false;
  TaskScope tasks;
  tasks.set_home(home());
  run(
      std::move(stop),
      [&](std::stop_token inner) {
        tasks.start(std::move(task), std::move(inner), [&](TaskResult<T> outcome) {
          result.emplace(std::move(outcome));
          finished = true;
        });
      },
      finished);
  if (!*result) std::rethrow_exception(result->error());
  if constexpr (!std::is_void_v<T>) return std::move(**result);
}

}  // namespace wirecall
