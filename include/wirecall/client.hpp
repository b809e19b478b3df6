// Client: calls methods of a server, in four ways: a call blocks its thread, calls back, gives a std::future, or is
// awaited by a coroutine. One thread at a time drives the client: it waits on the sockets and reads the answers. Where
// all calls block, one of the blocked threads drives for all. For the other ways a background thread drives, started at
// their first use; while Client::run runs, the thread that called it drives.
//
// The client connects when it is first used. A call waits for the connection within its own time, and a lost connection
// is made again. A call that may have reached the server is never sent twice: when its connection is lost it fails with
// ConnectionError. A call that cannot have reached it waits for the next connection.
//
// At a broker (docs/client.md "At a broker") a client also provides methods to other clients, subscribes to events and
// publishes them. A client that provides or subscribes connects at once, and keeps connected.
//
// The templates here only encode and decode; everything else is compiled (src/client). Thread: any, for
// all functions except construction, move and destruction, during which no other thread may use the client.
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
#include "wirecall/detail/shared_call.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/error.hpp"
#include "wirecall/options.hpp"
#include "wirecall/provider.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/request.hpp"
#include "wirecall/request_with_outputs.hpp"
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

  /// True where the server cannot have received the call, so that it may be made again.
  [[nodiscard]] bool safe_to_retry() const noexcept;
};

/// A server's response, unparsed.
struct Response {
  std::string json;                          ///< the whole response
  std::expected<std::string, Error> result;  ///< the result as JSON text, or the error
};

/// An argument by name; made by wirecall::arg("minuend") = 42.
template <class T>
struct NamedArgument {
  std::string_view name;
  T value;  ///< a reference where the argument is an lvalue; it is read before the call returns
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

/// How many positions an argument takes.
template <class A>
std::size_t count_of(const A& argument) {
  if constexpr (is_rest<A>) return argument.size();
  return OutputOf<A>::kSent ? 1 : 0;
}
template <class A>
void write_argument(Writer& writer, const A& argument) {
  if constexpr (is_rest<A>) {
    for (const auto& element : argument) encode(writer, element);
  } else if constexpr (!OutputOf<A>::kIs) {
    encode(writer, argument);
  } else if constexpr (OutputOf<A>::kSent) {
    encode(writer, argument.get());
  }
}

template <class... Args>
void write_arguments(Writer& writer, const Args&... args) {
  static_assert((kIsNamed<Args> && ...) || (!kIsNamed<Args> && ...), "name all arguments, or none of them");
  if constexpr ((kIsNamed<Args> && ...)) {
    writer.begin_object(sizeof...(Args));
    ((writer.key(args.name), encode(writer, args.value)), ...);
    writer.end_object();
  } else if constexpr (((is_rest<Args> || OutputOf<Args>::kIs) || ...)) {
    writer.begin_array((std::size_t{0} + ... + count_of(args)));
    (write_argument(writer, args), ...);
    writer.end_array();
  } else {
    writer.begin_array(sizeof...(Args));
    (encode(writer, args), ...);
    writer.end_array();
  }
}

template <class... Args>
void write_params(OutgoingCall& call, const Args&... args) {
  if constexpr (sizeof...(Args) == 1 && (is_packed_params<Args> && ...)) (call.set_layout(Args::layout()), ...);
  if constexpr (sizeof...(Args) != 0) write_arguments(call.params(), args...);
}

}  // namespace detail

class Client {
 public:
  /// A client of the server at `uri`, such as "tcp://127.0.0.1:8545" or "http://127.0.0.1:8545/rpc" (docs/client.md "By
  /// HTTP"). It connects when it is first used. Throws std::invalid_argument for what is no endpoint URI, and for
  /// options out of their ranges.
  explicit Client(std::string_view uri);
  explicit Client(std::string_view uri, ClientOptions options);
  /// A client of one server at several endpoints: the next is tried where one does not answer. Throws
  /// std::invalid_argument for no endpoint as well.
  explicit Client(std::vector<Endpoint> endpoints);
  explicit Client(std::vector<Endpoint> endpoints, ClientOptions options);
  /// With options as JSON text: Client{uri, R"({"call_timeout_ms": 200})"}. Throws as ClientOptions::from_json.
  template <std::convertible_to<std::string_view> Json>
  Client(std::string_view uri, const Json& options_json)
      : Client(uri, ClientOptions::from_json(std::string_view{options_json})) {}
  template <std::convertible_to<std::string_view> Json>
  Client(std::vector<Endpoint> endpoints, const Json& options_json)
      : Client(std::move(endpoints), ClientOptions::from_json(std::string_view{options_json})) {}
  /// Ends all open calls with ConnectionError, runs their callbacks, and blocks until these have returned. A callback
  /// that always retries a failed call blocks it for ever.
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// Ends all open calls with ConnectionError, as the destructor does; later calls end in the same way. Other threads
  /// may be in calls meanwhile. A second call has no effect. Any thread, but not while another one is in `run`: it
  /// would wait for the end of that.
  void close() noexcept;

  /// Connects now instead of with the first call: tries each endpoint once, and goes on for ClientOptions::wait_ms.
  /// Throws ConnectionError, whose message has the cause and a fix. Where something is provided or subscribed to, waits
  /// until the server has accepted all of it. Throws the Error of the first refusal: conflict (-32007), forbidden
  /// (-32003), or method not found (-32601), where the server is no broker; timeout (-32002) without an answer in
  /// ClientOptions::call_timeout_ms. After an error the client stays usable, and keeps trying to connect.
  void connect();

  /// Calls `method` with `args` by position, or by name with `arg`, and blocks for the result. Throws
  /// - the Error of the answer;
  /// - Error timeout (-32002) when no answer has come within ClientOptions::call_timeout_ms. The connection stays
  ///   usable, but by HTTP it is closed;
  /// - ConnectionError (-32001) when the connection is lost, or none can be made;
  /// - LocalError invalid params (-32602) when JSON cannot hold an argument, internal error (-32603) when the result is
  ///   not a Result;
  /// - LocalError -32603 at once inside a callback, handler or coroutine of this client, where it would deadlock.
  template <class Result = void, class... Args>
  Result call(std::string_view method, const Args&... args) {
    return request<Result>(method, args...).call();
  }

  /// The same without exceptions.
  template <class Result = void, class... Args>
  [[nodiscard]] std::expected<Result, Error> try_call(std::string_view method, const Args&... args) {
    return request<Result>(method, args...).try_call();
  }

  /// Prepares a call, to be made in any of the four ways, with its own timeout and stop token:
  ///     client.request<int>("subtract", 42, 23).timeout(200ms).then([](std::expected<int, Error> result) { … });
  /// With std::ref(x) or Out{x} among the arguments it is a RequestWithOutputs.
  template <class Result = void, class... Args>
  [[nodiscard]] detail::RequestOf<Result, Args...> request(std::string_view method, const Args&... args) {
    detail::OutgoingCall call{core_, method};
    detail::write_params(call, args...);
    return detail::make_request<Result>(std::move(call), args...);
  }

  // By a function that both sides know from a shared header (docs/typed.md): client.call<math::mean>(values). It is
  // called by its name, method_name<math::mean>(). The arguments are checked as those of a direct call and converted to
  // the types of its parameters, and its result is what is returned; of a Task, an expected or a Stream what that
  // holds. A variable given for a parameter `T&` or `Out<T>` is written when the answer comes. What does not fit does
  // not compile.

  /// Throws as the `call` above.
  template <auto Function, class... Args>
  typename detail::SharedFunction<Function>::Result call(Args&&... args) {
    return request<Function>(std::forward<Args>(args)...).call();
  }
  template <auto Function, class... Args>
  [[nodiscard]] std::expected<typename detail::SharedFunction<Function>::Result, Error> try_call(Args&&... args) {
    return request<Function>(std::forward<Args>(args)...).try_call();
  }
  /// A Request, or a RequestWithOutputs where variables are to be written.
  template <auto Function, class... Args>
  [[nodiscard]] typename detail::SharedFunction<Function>::Request request(Args&&... args) {
    using Result = typename detail::SharedFunction<Function>::Result;
    if constexpr (detail::check_call<Function, Args&&...>()) {
      return detail::SharedFunction<Function>::write(
          [this](const auto&... written) {
            return this->template request<Result>(method_name<Function>(), written...);
          },
          std::forward<Args>(args)...);
    } else {
      std::unreachable();
    }
  }
  /// Of a function that returns a Stream. Variables are written at the end of the stream.
  template <auto Function, class... Args>
  [[nodiscard]] auto stream(Args&&... args) {
    using Item = typename detail::SharedFunction<Function>::Item;
    static_assert(!std::is_void_v<Item>, "wirecall: this function returns no Stream; call it by `call`");
    if constexpr (!std::is_void_v<Item> && detail::check_call<Function, Args&&...>()) {
      return detail::SharedFunction<Function>::write(
          [this](const auto&... written) { return this->template stream<Item>(method_name<Function>(), written...); },
          std::forward<Args>(args)...);
    }
  }
  template <auto Function, class... Args>
  void notify(Args&&... args) {
    detail::check_notification<detail::SharedFunction<Function>::kGivesBack>();
    if constexpr (!detail::SharedFunction<Function>::kGivesBack && detail::check_call<Function, Args&&...>()) {
      detail::SharedFunction<Function>::write(
          [this](const auto&... written) { this->notify(method_name<Function>(), written...); },
          std::forward<Args>(args)...);
    }
  }

  /// Calls a server-streaming method: for (int i : client.stream<int>("count", 5)). The stream ends with -32002 when
  /// the consumer has waited for one result for ClientOptions::call_timeout_ms. From a server without streams all
  /// results come at once.
  template <class Item, class... Args>
  [[nodiscard]] ResultStream<Item> stream(std::string_view method, const Args&... args) {
    detail::OutgoingCall call{core_, method};
    detail::write_params(call, args...);
    return ResultStream<Item>{
        detail::ItemReader{std::move(call), kStreamCredit, detail::stream_outputs(detail::variables_of(args...))}};
  }

  /// Several calls in one message (a JSON-RPC batch), their results typed; see batch.hpp.
  [[nodiscard]] Batch<> batch();
  /// Any number of calls in one message, each with a T as its result; see batch.hpp.
  template <class T = void>
  [[nodiscard]] BatchOf<T> batch_of() {
    return BatchOf<T>{detail::OutgoingBatch{core_}};
  }

  /// Sends a notification, which has no answer. Returns when the kernel has accepted its bytes, by HTTP when the server
  /// has responded, and at once inside a callback, handler or coroutine of this client. Throws ConnectionError when it
  /// may not have been sent, Error -32002 when the kernel has not accepted it within ClientOptions::call_timeout_ms,
  /// and LocalError -32602 when JSON cannot hold an argument.
  template <class... Args>
  void notify(std::string_view method, const Args&... args) {
    detail::check_notification<detail::kHasOutputs<Args...>, Args...>();
    detail::OutgoingCall call{core_, method};
    detail::write_params(call, args...);
    detail::Answer sent = call.notify();
    if (!sent.ok()) sent.throw_error();
  }

  /// Calls with params that are JSON text (an array or object; empty for none) and returns the result's JSON text.
  [[nodiscard]] std::expected<std::string, Error> call_raw(std::string_view method, std::string_view params_json);
  /// The same for the whole response. Response::result has the server's error; the outer error means that no response
  /// came, or an unreadable one. `timeout`: by default ClientOptions::call_timeout_ms.
  [[nodiscard]] std::expected<Response, Error> call_for_response(std::string_view method, std::string_view params_json,
                                                                 std::optional<std::chrono::milliseconds> timeout = {});
  /// Sends a notification with params that are JSON text; blocks as `notify`. `timeout`: as above.
  [[nodiscard]] std::expected<void, Error> notify_raw(std::string_view method, std::string_view params_json,
                                                      std::optional<std::chrono::milliseconds> timeout = {});

  /// Methods that the server may call on this client's connections; they are not announced to it. Fill it before the
  /// client is first used.
  [[nodiscard]] Registry& registry() noexcept;
  /// Adds such a method at any time. Throws as Registry::method, and std::logic_error while another thread is in `run`.
  template <class F>
  Method& method(std::string name, F&& callable, std::vector<Param> params = {}) {
    Method* added = nullptr;
    exclusively([&] { added = &registry().method(std::move(name), std::forward<F>(callable), std::move(params)); });
    return *added;
  }

  /// Adds a function, or a member function of `object`, by its own name; see Registry::method.
  template <auto Function>
  Method& method(std::vector<Param> params = {}) {
    Method* added = nullptr;
    exclusively([&] { added = &registry().method<Function>(std::move(params)); });
    return *added;
  }
  template <auto Function, class C>
    requires std::is_member_function_pointer_v<decltype(Function)>
  Method& method(C& object, std::vector<Param> params = {}) {
    Method* added = nullptr;
    exclusively([&] { added = &registry().method<Function>(object, std::move(params)); });
    return *added;
  }

  /// Provides a method to the other clients of a broker: client.provide("gpu.add", add, {.concurrency = 1}). Returns at
  /// once; from then on the client keeps connected, and registers the method on each new connection. Handlers run on
  /// the thread that drives, one at a time unless they are coroutines; those of wirecall::blocking on a pool of
  /// ClientOptions::blocking_threads threads, for which the client's end waits. `connect` throws the broker's refusal;
  /// it also goes to the log and to `on_refused`. Throws as Registry::method; std::logic_error where all endpoints are
  /// HTTP, and while another thread is in `run`.
  template <class F>
  void provide(std::string name, F&& callable, const ProvideOptions& options = {}) {
    provide_method(name, options, [&](Registry& methods) -> Method& {
      return methods.method(name, std::forward<F>(callable), options.params);
    });
  }
  /// Provides a function of a shared header by its name: client.provide<math::mean>({.params = {"values"}}).
  template <auto Function>
  void provide(const ProvideOptions& options = {}) {
    constexpr bool kNeedsObject = std::is_member_function_pointer_v<decltype(Function)>;
    static_assert(!kNeedsObject, "wirecall: a member function is provided together with its object");
    if constexpr (!kNeedsObject && detail::check_function<Function>())
      provide(std::string{method_name<Function>()}, Function, options);
  }
  /// A member function of `object`, which outlives the client: client.provide<&Counter::add>(counter).
  template <auto Function, class C>
    requires std::is_member_function_pointer_v<decltype(Function)>
  void provide(C& object, const ProvideOptions& options = {}) {
    if constexpr (detail::check_function<Function>()) {
      const std::string name{method_name<Function>()};
      provide_method(name, options,
                     [&](Registry& methods) -> Method& { return methods.method<Function>(object, options.params); });
    }
  }
  /// Provides a subscription method to the other clients of a broker: client.provide_subscription(
  /// {.subscribe = "eth_subscribe", .unsubscribe = "eth_unsubscribe", .notification = "eth_subscription"}, heads). The
  /// coroutine yields events as with Registry::subscription. The broker sends each subscriber its own events, and calls
  /// `names.unsubscribe` for a subscriber that disconnects (docs/broker.md "Subscriptions to a method").
  /// unprovide(names.subscribe) ends it. Returns and throws as `provide`; throws Error -32007 as well where
  /// names.unsubscribe is another method of this client.
  template <class F>
  void provide_subscription(const SubscriptionNames& names, F&& stream_function, const ProvideOptions& options = {}) {
    provide_method(names.subscribe, options, [&](Registry& methods) -> Method& {
      return methods.subscription(names, std::forward<F>(stream_function), options.params);
    });
  }
  /// Unregisters a method that this client provides; false where it provides none of that name. Returns at once, and
  /// the name may be provided anew. Calls that the broker has sent already are still answered; once a later call of
  /// this client has been answered, no more of them come. Any thread.
  bool unprovide(std::string_view name);

  /// Calls `function` with each event of a topic. In the topic, `*` stands for any one word and a last `>` for one or
  /// more words:
  ///     auto subscription = client.subscribe("sensors.*.temp", [](const Event& event) { use(event.as<double>()); });
  /// Returns at once and keeps connected, as `provide`; a refusal is reported as by `provide`. The function runs on the
  /// thread that drives; what it throws goes to the log. An event that matches a subscription calls no method of
  /// `registry`. Throws std::invalid_argument for a malformed topic, and for a second subscription to the same topic
  /// that differs in group or echo; std::logic_error where all endpoints are HTTP.
  [[nodiscard]] Subscription subscribe(std::string_view topic, SubscribeOptions options, EventFunction function);
  [[nodiscard]] Subscription subscribe(std::string_view topic, EventFunction function) {
    return subscribe(topic, {}, std::move(function));
  }

  /// As `subscribe` with SubscribeOptions::durable, but the function says itself when it has the event, by the reply:
  /// later, on any thread. So several events may be at work at once.
  [[nodiscard]] Subscription consume(std::string_view topic, SubscribeOptions options, ConsumerFunction function);

  /// Watches the traffic of a broker, as an admin: `function` gets each call and event of the methods and topics that
  /// `pattern` matches, as an event of the topic rpc.tap (docs/broker.md "Tapping traffic"). Otherwise as `subscribe`.
  /// Throws std::invalid_argument for a malformed pattern, and for a second tap with another pattern.
  [[nodiscard]] Subscription tap(std::string_view pattern, EventFunction function);

  /// Publishes a value at the broker, and returns to how many connections the broker queued it. Throws as `call`.
  template <class T>
  std::size_t publish(std::string_view topic, const T& value, PublishOptions options = {}) {
    return publication(topic, value, options).call();
  }
  /// Publishes an event without a value; with `retain`, this also clears the value that is retained for the topic.
  std::size_t publish(std::string_view topic, PublishOptions options) { return publication(topic, options).call(); }
  /// Prepares the same, to be made in any of the four ways.
  template <class T>
  [[nodiscard]] Request<std::size_t> publication(std::string_view topic, const T& value, PublishOptions options = {}) {
    return publication_of(topic, options, [&value](Writer& writer) { encode(writer, value); });
  }
  [[nodiscard]] Request<std::size_t> publication(std::string_view topic, PublishOptions options) {
    return publication_of(topic, options, nullptr);
  }

  /// Publishes a value, and returns once the broker's durable store has it safely (docs/durable.md). An event of the
  /// same topic and `msg_id` is kept once; empty for none. Throws as `call`; where the outcome is unknown, the same
  /// msg_id makes it safe to publish again.
  template <class T>
  Published publish_durable(std::string_view topic, const T& value, std::string_view msg_id = {}) {
    return durable_publication(topic, value, msg_id).call();
  }
  /// Prepares the same, to be made in any of the four ways.
  template <class T>
  [[nodiscard]] Request<Published> durable_publication(std::string_view topic, const T& value,
                                                       std::string_view msg_id = {}) {
    return Request<Published>{durable_call(topic, msg_id, [&value](Writer& writer) { encode(writer, value); })};
  }

  /// Calls a method at every client that provides it, and returns the outcome of each. Throws as `call`.
  template <class Result = void, class... Args>
  std::vector<ProviderOutcome<Result>> call_all(std::string_view method, const Args&... args) {
    return request_all<Result>(method, args...).call();
  }
  /// Prepares the same, to be made in any of the four ways.
  template <class Result = void, class... Args>
  [[nodiscard]] Request<std::vector<ProviderOutcome<Result>>> request_all(std::string_view method,
                                                                          const Args&... args) {
    static_assert(!detail::kHasOutputs<Args...>,
                  "wirecall: several providers answer, so nothing can come back into one variable");
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

  /// Sets what is called, on the thread that drives, each time the server refuses a method or a subscription, on later
  /// connections as well. The refusal is logged in any case.
  void on_refused(RefusedFunction function);
  /// Sets what is called, on the thread that drives, when the server has dropped events for this client.
  void on_lagged(LaggedFunction function);
  /// Sets what is called, on the thread that drives, each time a connection has been made or has ended, in order. Here
  /// a program fetches again what it may have missed.
  void on_connection(ConnectionFunction function);

  /// Runs a task on this thread, and returns its value or throws what it throws. Meanwhile this thread drives, and
  /// callbacks run on it: the fastest way for many calls at once. `stop` may be requested on any thread. Throws
  /// std::logic_error inside a callback, handler or coroutine of this client, and while another thread is in `run`.
  template <class T>
  T run(Task<T> task, std::stop_token stop = {});
  /// Timers for tasks inside `run`: co_await sleep_for(client.scheduler(), 10ms).
  [[nodiscard]] Scheduler& scheduler() noexcept;

  /// Calls `interrupted` every 20 ms on each thread that is blocked in a call. Where it returns true, that call is
  /// cancelled and ends with -32800. Set it before the client is first used. It must not throw or use the client.
  void on_wait(std::function<bool()> interrupted);
  /// How many responses no call was waiting for: late, unknown or duplicate ones.
  [[nodiscard]] std::uint64_t responses_dropped() const;

  // For packages of other languages: a call, or a batch, whose params they write and whose answers they read.
  [[nodiscard]] detail::OutgoingCall outgoing(std::string_view method) { return {core_, method}; }
  [[nodiscard]] detail::OutgoingBatch outgoing_batch() { return detail::OutgoingBatch{core_}; }

 private:
  friend struct detail::ClientAccess;
  explicit Client(std::shared_ptr<net::ClientCore> core) noexcept;
  [[nodiscard]] std::shared_ptr<detail::Executor> executor() const;
  /// Runs `change` while no thread drives the client, so that nothing reads what it changes.
  void exclusively(const std::function<void()>& change);
  void provide_method(std::string_view name, const ProvideOptions& options,
                      const std::function<Method&(Registry&)>& add);
  [[nodiscard]] detail::OutgoingCall durable_call(std::string_view topic, std::string_view msg_id,
                                                  const std::function<void(Writer&)>& encode_value) const;
  [[nodiscard]] Request<std::size_t> publication_of(std::string_view topic, const PublishOptions& options,
                                                    const std::function<void(Writer&)>& encode_value) const;
  /// Drives on this thread until `finished`. `begin` is called first, with the stop token for what it starts.
  void run(std::stop_token stop, const std::function<void(std::stop_token)>& begin, const bool& finished);

  std::shared_ptr<net::ClientCore> core_;
};

template <class T>
T Client::run(Task<T> task, std::stop_token stop) {
  std::optional<TaskResult<T>> result;
  bool finished = false;
  TaskScope tasks;
  tasks.set_executor(executor());
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
