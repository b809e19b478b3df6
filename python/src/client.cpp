// See client.hpp.
#include "client.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>
#include <thread>
#include <type_traits>

#include "async_calls.hpp"
#include "batch.hpp"
#include "callback.hpp"
#include "client_input.hpp"
#include "context.hpp"
#include "encode.hpp"
#include "errors.hpp"
#include "exception.hpp"
#include "gil.hpp"
#include "method.hpp"
#include "reference.hpp"
#include "replies.hpp"
#include "shape.hpp"
#include "values.hpp"
#include "wirecall/batch.hpp"
#include "wirecall/client.hpp"

namespace wirecall::python {
namespace nb = nanobind;
namespace {

// How often this process, or those it comes from, has forked since the module was loaded.
std::atomic<unsigned> forks{0};
// How long the interpreter's end waits for a client to close.
constexpr std::chrono::milliseconds kEndMax{500};
pthread_t main_thread;

ClientOptions options_of(const std::string& json) {
  ClientOptions options = ClientOptions::from_json(json);
  options.log = stderr_log(LogFormat::human);
  return options;
}

std::vector<Endpoint> endpoints_of(const std::vector<std::string>& uris) {
  std::vector<Endpoint> endpoints;
  for (const std::string& uri : uris) endpoints.emplace_back(uri);
  return endpoints;
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  if (!(seconds >= 0)) throw nb::value_error("a timeout is a number of seconds, 0 or more");
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>{std::min(seconds, 1e9)});
}

/// What a caller says of one call besides its params.
struct CallOptions {
  std::optional<double> timeout;        ///< seconds
  std::string to;                       ///< the client that is to answer, at a broker; any when empty
  const CallContext* within = nullptr;  ///< the call that this one is part of
  bool idempotent = false;
};

/// Writes a call. `default_timeout`: its seconds where nothing else is said; none for a stream.
detail::OutgoingCall written(detail::OutgoingCall call, nb::handle args, nb::handle kwargs, CallOptions options,
                             std::optional<double> default_timeout) {
  if (has_params(args, kwargs)) write_params(call.params(), args, kwargs);
  if (options.within != nullptr) {
    // The deadline is not among these: what Python sees of a call has no clock.
    const Context& served = options.within->seen;
    call.set_context({{}, {}, served.stop_token(), nullptr, {.hops = served.hops()}});
    if (const std::optional<double> left = remaining(served)) {
      if (!options.timeout) options.timeout = default_timeout;
      options.timeout = std::max(0.0, std::min(options.timeout.value_or(*left), *left));
    }
  }
  if (options.timeout) call.set_timeout(milliseconds_of(*options.timeout));
  if (!options.to.empty()) call.set_to(options.to);
  call.set_idempotent(options.idempotent);
  return call;
}

/// What a signal handler has raised while this thread waited.
void throw_if_interrupted() {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
}

/// Gives a call the stream that it sends: an iterator, whose failure is where the answer says, or an InputQueue. None
/// for no stream: null then.
std::shared_ptr<SourceFailure> give_input(detail::OutgoingCall& call, nb::handle input) {
  if (input.is_none()) return nullptr;
  auto failure = std::make_shared<SourceFailure>();
  std::shared_ptr<InputQueue> queue;
  if (nb::try_cast(input, queue)) {
    call.set_input(queue->source());
  } else {
    call.set_input(std::make_unique<IteratorSource>(nb::borrow(input), failure));
  }
  return failure;
}

/// What the call's own input has raised is what the call raises.
void throw_if_failed(const std::shared_ptr<SourceFailure>& failure) {
  if (failure == nullptr || !failure->exception.get().is_valid()) return;
  restore_exception(Reference::steal(failure->exception.take().release().ptr()));
  throw nb::python_error();
}

/// The results of one call, as they come.
class PyStream {
 public:
  PyStream(detail::ItemReader stream, std::shared_ptr<SourceFailure> failure)
      : stream_(std::move(stream)), failure_(std::move(failure)) {}
  PyStream(PyStream&&) = delete;
  ~PyStream() {
    drop_waiting();
    if (failure_ == nullptr) return;
    // The thread that drives may be asking the input for an item, with the GIL.
    const Released released;
    stream_.reset();
  }

  /// The next result; StopIteration at the end.
  nb::object next() {
    detail::ItemReader::Next next{};
    {
      const ReleasedToWait released;
      next = stream_->wait();
    }
    throw_if_interrupted();
    if (next == detail::ItemReader::Next::item) return result_of(stream_->item());
    finish();
    throw nb::stop_iteration();
  }
  /// (True, item), (False, None) at the end; None when nothing has come yet: then `future` will be completed.
  nb::object poll(const std::shared_ptr<Replies>& replies, nb::handle future) {
    drop_waiting();
    waiting_ = std::make_shared<std::atomic<PyObject*>>(Py_NewRef(future.ptr()));
    const auto next = stream_->poll([replies, waiting = waiting_] {
      if (PyObject* const woken = waiting->exchange(nullptr)) replies->add_wake(woken);
    });
    if (next == detail::ItemReader::Next::none) return nb::none();
    drop_waiting();
    if (next == detail::ItemReader::Next::item) return nb::make_tuple(true, result_of(stream_->item()));
    finish();
    return nb::make_tuple(false, nb::none());
  }

 private:
  // A cancelled wait leaves a future that nobody has woken.
  void drop_waiting() {
    if (waiting_ != nullptr) Py_XDECREF(waiting_->exchange(nullptr));
  }

  void finish() {
    throw_if_failed(failure_);
    // As in the destructor: this waits for an item of the input that is being made.
    const Released released;
    stream_->finish();
  }

  std::optional<detail::ItemReader> stream_;
  std::shared_ptr<SourceFailure> failure_;           // of its input; null for none
  std::shared_ptr<std::atomic<PyObject*>> waiting_;  // a future, until it is woken
};

class PySubscription {
 public:
  explicit PySubscription(Subscription subscription) : subscription_(std::move(subscription)) {}
  void unsubscribe() {
    const ReleasedToWait released;
    subscription_.unsubscribe();
  }
  ~PySubscription() { subscription_.keep(); }

 private:
  Subscription subscription_;
};

/// The answer to one event of a consumer.
class PyEventReply {
 public:
  explicit PyEventReply(EventReply reply) : reply_(std::move(reply)) {}
  PyEventReply(PyEventReply&&) = delete;
  ~PyEventReply() {
    const ReleasedToWait released;
    const EventReply unanswered = std::move(reply_);
  }
  void acknowledge() {
    const ReleasedToWait released;
    reply_.acknowledge();
  }
  void refuse(int code, const std::string& message) {
    const Error error{code, message};
    const ReleasedToWait released;
    reply_.refuse(error);
  }

 private:
  EventReply reply_;
};

/// Several calls in one message.
class PyBatch {
 public:
  PyBatch(detail::OutgoingBatch batch, double default_timeout)
      : batch_(std::move(batch)), default_timeout_(default_timeout) {}
  PyBatch(PyBatch&&) = delete;

  /// Its outcome is the next one of `send`, or of the futures of `start`.
  void add(const std::string& method, nb::handle args, nb::handle kwargs, std::optional<double> timeout,
           const std::string& to, const CallContext* within) {
    batch_.add(written(batch_.begin_call(method), args, kwargs, {timeout, to, within}, default_timeout_), count_++);
  }
  void add_notification(const std::string& method, nb::handle args, nb::handle kwargs) {
    batch_.add_notification(written(batch_.begin_call(method), args, kwargs, {}, default_timeout_));
  }
  /// Sends it, and waits: for each call (True, its result) or (False, its exception).
  nb::list send() {
    std::vector<std::optional<detail::Answer>> answers(count_);
    {
      const ReleasedToWait released;
      if (batch_.size() != 0)
        batch_.wait([&](std::size_t at, detail::Answer& answer) { answers[at].emplace(std::move(answer)); });
    }
    throw_if_interrupted();
    nb::list outcomes;
    for (std::optional<detail::Answer>& answer : answers) {
      if (answer->ok()) {
        try {
          outcomes.append(nb::make_tuple(true, result_of(answer->reader())));
        } catch (nb::python_error& failure) {  // the others are none the worse for it
          outcomes.append(nb::make_tuple(false, nb::borrow(failure.value())));
        }
      } else {
        outcomes.append(nb::make_tuple(false, nb::steal(make_exception(answer->error(), answer->error_class()))));
      }
    }
    return outcomes;
  }
  /// Sends it; the future of each call is completed with what it comes to.
  BatchHandle start(std::shared_ptr<Replies> replies, nb::list futures) {
    std::vector<PyObject*> waiting;
    for (nb::handle future : futures) waiting.push_back(Py_NewRef(future.ptr()));
    return batch_.start([replies = std::move(replies), waiting = std::move(waiting)](
                            std::size_t at, detail::Answer& answer) { replies->add(waiting[at], answer); },
                        [] {});
  }

 private:
  detail::OutgoingBatch batch_;
  double default_timeout_;
  std::size_t count_ = 0;
};

ProvideOptions provide_options(const nb::dict& options, const PythonMethod& method) {
  ProvideOptions provided{.summary = method.summary(), .params = method.params()};
  const auto set = [&options]<class T>(const char* name, T& member) {
    if (options.contains(name)) member = nb::cast<T>(options[name]);
  };
  set("concurrency", provided.concurrency);
  set("queue", provided.queue);
  set("policy", provided.policy);
  set("idempotent", provided.idempotent);
  set("safe", provided.safe);
  return provided;
}

class PyClient {
 public:
  PyClient(const std::vector<std::string>& uris, const std::string& options_json) : forks_at_birth_(forks.load()) {
    ClientOptions options = options_of(options_json);
    options.blocking_threads = 0;  // what it provides is called by one thread
    default_timeout_ = options.call_timeout_ms / 1000.0;
    client_ = std::make_shared<Client>(endpoints_of(uris), std::move(options));
    client_->on_wait([] {
      // Signals are the main thread's.
      if (::pthread_equal(::pthread_self(), main_thread) == 0) return false;
      const Gil gil;
      return PyErr_CheckSignals() != 0;
    });
  }
  PyClient(PyClient&&) = delete;
  ~PyClient() { close(); }

  void connect() {
    const std::optional<Error> failure = without_gil([](Client& client) -> std::optional<Error> {
      try {
        client.connect();
      } catch (const Error& error) {
        return error;
      }
      return std::nullopt;
    });
    throw_if_interrupted();
    if (failure) raise(*failure, detail::ErrorClass::connection_error);
  }

  nb::object call(const std::string& method, nb::handle args, nb::handle kwargs, std::optional<double> timeout,
                  const std::string& to, const CallContext* within, bool idempotent, nb::handle input) {
    detail::OutgoingCall call = outgoing(method, args, kwargs, {timeout, to, within, idempotent}, default_timeout_);
    const auto failure = give_input(call, input);
    detail::Answer answer;
    {
      const ReleasedToWait released;
      answer = call.wait();
    }
    throw_if_failed(failure);
    return value_of(answer);
  }

  void notify(const std::string& method, nb::handle args, nb::handle kwargs) {
    detail::OutgoingCall call = outgoing(method, args, kwargs, {}, default_timeout_);
    detail::Answer answer;
    {
      const ReleasedToWait released;
      answer = call.notify();
    }
    throw_if_interrupted();
    if (!answer.ok()) raise(answer.error(), answer.error_class());
  }

  CallHandle start(const std::string& method, nb::handle args, nb::handle kwargs, std::optional<double> timeout,
                   const std::string& to, const CallContext* within, bool idempotent, nb::handle input,
                   std::shared_ptr<Replies> replies, nb::handle future) {
    detail::OutgoingCall call = outgoing(method, args, kwargs, {timeout, to, within, idempotent}, default_timeout_);
    give_input(call, input);
    PyObject* const waiting = Py_NewRef(future.ptr());
    call.start([replies = std::move(replies), waiting](detail::Answer& answer) { replies->add(waiting, answer); });
    return call.handle();
  }

  std::unique_ptr<PyBatch> batch() { return std::make_unique<PyBatch>(usable()->outgoing_batch(), default_timeout_); }

  std::shared_ptr<PyStream> stream(const std::string& method, nb::handle args, nb::handle kwargs,
                                   std::optional<double> timeout, const std::string& to, const CallContext* within,
                                   nb::handle input) {
    detail::OutgoingCall call = outgoing(method, args, kwargs, {timeout, to, within}, std::nullopt);
    auto failure = give_input(call, input);
    return std::make_shared<PyStream>(detail::ItemReader{std::move(call), kStreamCredit}, std::move(failure));
  }

  /// A method for the server alone, by calls within calls. `described`: as of _methods.py.
  void offer(const std::string& name, nb::object function, nb::tuple described, std::shared_ptr<AsyncCalls> calls) {
    auto method = std::make_unique<PythonMethod>(std::move(function), std::move(described), std::move(calls));
    std::vector<Param> params = method->params();
    detail::Binding binding = PythonMethod::bind(std::move(method));
    without_gil([&](Client& client) { client.method(name, std::move(binding), std::move(params)); });
  }

  void provide(const std::string& name, nb::object function, nb::tuple described, nb::dict options,
               std::shared_ptr<AsyncCalls> calls) {
    auto method = std::make_unique<PythonMethod>(std::move(function), std::move(described), std::move(calls));
    const ProvideOptions provided = provide_options(options, *method);
    detail::Binding binding = PythonMethod::bind(std::move(method));
    without_gil([&](Client& client) { client.provide(name, std::move(binding), provided); });
  }
  /// `described`: one call. `run`, `weigh` and `bounds` as for bind_batched.
  void provide_batched(const std::string& name, nb::object run, nb::object weigh, nb::tuple described, nb::dict options,
                       const BatchBounds& bounds, std::shared_ptr<AsyncCalls> calls) {
    auto method = std::make_unique<PythonMethod>(run, std::move(described), calls);
    const ProvideOptions provided = provide_options(options, *method);
    detail::Binding binding =
        bind_batched(std::move(method), std::move(run), std::move(weigh), bounds, std::move(calls));
    without_gil([&](Client& client) { client.provide(name, std::move(binding), provided); });
  }
  /// `names` as of subscription_names.
  void provide_subscription(nb::tuple names, nb::object function, nb::tuple described, nb::dict options,
                            std::shared_ptr<AsyncCalls> calls) {
    auto method = std::make_unique<PythonMethod>(std::move(function), std::move(described), std::move(calls));
    const ProvideOptions provided = provide_options(options, *method);
    const SubscriptionNames declared = subscription_names(names);
    detail::Binding binding = PythonMethod::bind_subscription(std::move(method));
    without_gil([&](Client& client) { client.provide_subscription(declared, std::move(binding), provided); });
  }
  bool unprovide(const std::string& name) {
    return without_gil([&](Client& client) { return client.unprovide(name); });
  }

  /// `handler` is called with (topic, value). Where, see Callback.
  std::shared_ptr<PySubscription> subscribe(const std::string& topic, nb::object handler, const std::string& group,
                                            bool echo, bool last, std::shared_ptr<AsyncCalls> calls) {
    const auto callback = std::make_shared<Callback>(std::move(handler), std::move(calls));
    EventFunction function = [callback](const Event& event) {
      callback->invoke(event.topic,
                       [event] { return nb::make_tuple(event.topic, result_of(Buffer{event.value_json()})); });
    };
    return without_gil([&](Client& client) {
      return std::make_shared<PySubscription>(
          client.subscribe(topic, {.group = group, .echo = echo, .last = last}, std::move(function)));
    });
  }
  /// `handler` is called with (topic, value, reply). `options`: durable, start, ack_wait_ms, max_deliver,
  /// max_in_flight.
  std::shared_ptr<PySubscription> consume(const std::string& topic, nb::object handler, nb::dict options,
                                          std::shared_ptr<AsyncCalls> calls) {
    const auto number = [&](const char* name) {
      std::optional<std::uint32_t> value;
      if (options.contains(name)) value = nb::cast<std::uint32_t>(options[name]);
      return value;
    };
    SubscribeOptions joined{.durable = nb::cast<std::string>(options["durable"]),
                            .start = nb::cast<std::string>(options["start"]),
                            .ack_wait_ms = number("ack_wait_ms"),
                            .max_deliver = number("max_deliver"),
                            .max_in_flight = number("max_in_flight")};
    const auto callback = std::make_shared<Callback>(std::move(handler), std::move(calls));
    ConsumerFunction function = [callback](const Event& event, EventReply reply) {
      const auto kept = std::make_shared<EventReply>(std::move(reply));
      callback->invoke(event.topic, [event, kept] {
        return nb::make_tuple(event.topic, result_of(Buffer{event.value_json()}),
                              std::make_shared<PyEventReply>(std::move(*kept)));
      });
    };
    return without_gil([&](Client& client) {
      return std::make_shared<PySubscription>(client.consume(topic, std::move(joined), std::move(function)));
    });
  }
  /// `handler` is called with what an admin is shown.
  std::shared_ptr<PySubscription> tap(const std::string& pattern, nb::object handler,
                                      std::shared_ptr<AsyncCalls> calls) {
    const auto callback = std::make_shared<Callback>(std::move(handler), std::move(calls));
    return without_gil([&](Client& client) {
      return std::make_shared<PySubscription>(client.tap(pattern, [callback](const Event& event) {
        callback->invoke("rpc.tap", [event] { return nb::make_tuple(result_of(Buffer{event.params_json})); });
      }));
    });
  }
  /// Each function replaces the one before it.
  void on_refused(nb::object function, std::shared_ptr<AsyncCalls> calls) {
    const auto callback = std::make_shared<Callback>(std::move(function), std::move(calls));
    without_gil([&](Client& client) {
      client.on_refused([callback](std::string_view name, const Error& error) {
        callback->invoke("on_refused", [name = std::string{name}, error] {
          return nb::make_tuple(name, nb::steal(make_exception(error, detail::ErrorClass::error)));
        });
      });
    });
  }
  void on_lagged(nb::object function, std::shared_ptr<AsyncCalls> calls) {
    const auto callback = std::make_shared<Callback>(std::move(function), std::move(calls));
    without_gil([&](Client& client) {
      client.on_lagged([callback](std::string_view topic, std::uint64_t dropped) {
        callback->invoke("on_lagged", [topic = std::string{topic}, dropped] { return nb::make_tuple(topic, dropped); });
      });
    });
  }
  void on_connection(nb::object function, std::shared_ptr<AsyncCalls> calls) {
    const auto callback = std::make_shared<Callback>(std::move(function), std::move(calls));
    without_gil([&](Client& client) {
      client.on_connection([callback](const ConnectionEvent& news) {
        callback->invoke("on_connection", [news] { return nb::make_tuple(news); });
      });
    });
  }

  /// Ends what has not ended. In a forked child the client's threads do not exist: there it is leaked.
  void close() {
    if (client_ == nullptr) return;
    if (forks.load() != forks_at_birth_) return static_cast<void>(new std::shared_ptr<Client>(std::move(client_)));
    std::shared_ptr<Client> ending = std::move(client_);
    const ReleasedToWait released;
    ending->close();
    ending.reset();
  }
  /// The same at the interpreter's end, which waits for no handler longer than kEndMax.
  void end() {
    if (client_ == nullptr || forks.load() != forks_at_birth_) return close();
    std::promise<void> promise;
    const std::future<void> closed = promise.get_future();
    std::thread{[ending = std::move(client_), promise = std::move(promise)]() mutable {
      ending->close();
      ending.reset();
      promise.set_value();
    }}.detach();
    const ReleasedToWait released;
    closed.wait_for(kEndMax);
  }

 private:
  [[noreturn]] static void unusable(std::string why) {
    raise(Error{ErrorCode::internal_error, std::move(why)}, detail::ErrorClass::local_error);
  }
  std::shared_ptr<Client> usable() {
    if (client_ == nullptr) unusable("the client is closed");
    if (forks.load() != forks_at_birth_) unusable("the client was made before fork: make one in the child process");
    return client_;
  }

  /// `act(client)` without the GIL, which comes back after this share of the client has gone.
  template <class Act>
  std::invoke_result_t<const Act&, Client&> without_gil(const Act& act) {
    std::shared_ptr<Client> client = usable();
    const ReleasedToWait released;
    return act(*std::exchange(client, nullptr));
  }

  detail::OutgoingCall outgoing(const std::string& method, nb::handle args, nb::handle kwargs, CallOptions options,
                                std::optional<double> default_timeout) {
    return written(usable()->outgoing(method), args, kwargs, std::move(options), default_timeout);
  }

  static nb::object value_of(detail::Answer& answer) {
    throw_if_interrupted();
    if (!answer.ok()) raise(answer.error(), answer.error_class());
    return result_of(answer.reader());
  }

  std::shared_ptr<Client> client_;  // threads that are in it without the GIL have their own share
  double default_timeout_ = 0;      // seconds
  unsigned forks_at_birth_;
};

}  // namespace

void add_client(nb::module_& module) {
  main_thread = ::pthread_self();
  ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  nb::class_<Replies>(module, "Replies")
      .def(nb::new_([] { return std::make_shared<Replies>(); }))
      .def("fileno", &Replies::fileno)
      .def("drain", &Replies::drain);
  nb::class_<AsyncCalls>(module, "Calls")
      .def(nb::new_([] { return std::make_shared<AsyncCalls>(); }))
      .def("fileno", &AsyncCalls::fileno)
      .def("drain", [](AsyncCalls& calls, nb::handle loop) { calls.drain(loop.ptr()); });
  nb::class_<PySubscription>(module, "Subscription",
                             "A subscription of a client. It ends with `unsubscribe`, or with the client.")
      .def("unsubscribe", &PySubscription::unsubscribe,
           "Ends the subscription: no further call of the handler begins. Any thread; a second call has no effect.");
  nb::class_<PyEventReply>(module, "EventReply")
      .def("acknowledge", &PyEventReply::acknowledge)
      .def("refuse", &PyEventReply::refuse);
  nb::class_<ConnectionEvent>(module, "ConnectionEvent", "A connection of a client has been made, or has ended.")
      .def_ro("connected", &ConnectionEvent::connected, "True: the connection has been made; False: it has ended.")
      .def_ro("endpoint", &ConnectionEvent::endpoint, "The URI of the endpoint.")
      .def_ro("cause", &ConnectionEvent::cause, "Why the connection has ended; empty when it has been made.");
  nb::class_<PyStream>(module, "Stream").def("next", &PyStream::next).def("poll", &PyStream::poll);
  nb::class_<CallHandle>(module, "CallHandle").def("cancel", [](const CallHandle& handle) {
    const ReleasedToWait released;
    return handle.cancel();
  });
  nb::class_<BatchHandle>(module, "BatchHandle").def("cancel", [](const BatchHandle& handle) {
    const ReleasedToWait released;
    return handle.cancel();
  });
  nb::class_<PyBatch>(module, "Batch")
      .def("add", &PyBatch::add, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none())
      .def("add_notification", &PyBatch::add_notification)
      .def("send", &PyBatch::send)
      .def("start", &PyBatch::start);
  nb::class_<PyClient>(module, "Client")
      .def(nb::init<const std::vector<std::string>&, const std::string&>())
      .def("connect", &PyClient::connect)
      .def("call", &PyClient::call, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none(),
           nb::arg(), nb::arg().none())
      .def("notify", &PyClient::notify)
      .def("start", &PyClient::start, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none(),
           nb::arg(), nb::arg().none(), nb::arg(), nb::arg())
      .def("batch", &PyClient::batch)
      .def("stream", &PyClient::stream, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none(),
           nb::arg().none())
      .def("offer", &PyClient::offer, nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("provide", &PyClient::provide, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("provide_batched", &PyClient::provide_batched, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
           nb::arg(), nb::arg().none())
      .def("provide_subscription", &PyClient::provide_subscription)
      .def("unprovide", &PyClient::unprovide)
      .def("subscribe", &PyClient::subscribe, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("consume", &PyClient::consume, nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("tap", &PyClient::tap, nb::arg(), nb::arg(), nb::arg().none())
      .def("on_refused", &PyClient::on_refused, nb::arg(), nb::arg().none())
      .def("on_lagged", &PyClient::on_lagged, nb::arg(), nb::arg().none())
      .def("on_connection", &PyClient::on_connection, nb::arg(), nb::arg().none())
      .def("end", &PyClient::end)
      .def("close", &PyClient::close);
}

}  // namespace wirecall::python
