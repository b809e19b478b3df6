// See client.hpp.
#include "client.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <pthread.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async_calls.hpp"
#include "callback.hpp"
#include "context.hpp"
#include "described.hpp"
#include "encode.hpp"
#include "errors.hpp"
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
// How long the end of the interpreter waits for that of a client.
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

/// What is said of one call besides its params.
struct Manner {
  std::optional<double> timeout;        ///< seconds
  std::string to;                       ///< the client that is to answer, at a broker; any when empty
  const CallContext* within = nullptr;  ///< the call that is served by it
};

/// `patience`: the seconds that it has otherwise, none for a stream.
void tell(detail::OutgoingCall& call, Manner manner, std::optional<double> patience) {
  if (manner.within != nullptr) {
    // Its deadline is not told with the rest: what Python sees of a call has no clock.
    const Context& served = manner.within->seen;
    call.set_context({{}, {}, served.stop_token(), nullptr, {.hops = served.hops()}});
    if (const std::optional<double> left = remaining(served)) {
      if (!manner.timeout) manner.timeout = patience;
      manner.timeout = std::max(0.0, std::min(manner.timeout.value_or(*left), *left));
    }
  }
  if (manner.timeout) call.set_timeout(milliseconds_of(*manner.timeout));
  if (!manner.to.empty()) call.set_to(manner.to);
}

[[noreturn]] void raise(const Error& error, detail::ErrorClass kind) {
  set_exception(error, kind);
  throw nb::python_error();
}

nb::object value_at(Reader& reader) {
  PyObject* const value = decode_any(reader);
  if (value == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (value == nullptr) raise(unreadable(reader), detail::ErrorClass::local_error);
  return nb::steal(value);
}

/// The results of one call, as they come.
class PyStream {
 public:
  explicit PyStream(detail::ItemReader stream) : stream_(std::move(stream)) {}
  PyStream(PyStream&&) = delete;
  ~PyStream() { drop_waiting(); }

  /// The next result; StopIteration at the end.
  nb::object next() {
    detail::ItemReader::Next next{};
    {
      const ReleasedToWait released;
      next = stream_.wait();
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error();  // a signal has ended the waiting
    if (next == detail::ItemReader::Next::item) return value_at(stream_.item());
    stream_.throw_if_failed();
    throw nb::stop_iteration();
  }
  /// (True, item), (False, None) at the end; None when nothing has come yet: then `future` will be completed.
  nb::object poll(const std::shared_ptr<Replies>& replies, nb::handle future) {
    drop_waiting();
    waiting_ = std::make_shared<std::atomic<PyObject*>>(Py_NewRef(future.ptr()));
    const auto next = stream_.poll([replies, waiting = waiting_] {
      if (PyObject* const woken = waiting->exchange(nullptr)) replies->add_wake(woken);
    });
    if (next == detail::ItemReader::Next::none) return nb::none();
    drop_waiting();
    if (next == detail::ItemReader::Next::item) return nb::make_tuple(true, value_at(stream_.item()));
    stream_.throw_if_failed();
    return nb::make_tuple(false, nb::none());
  }

 private:
  // Whoever waited need not have been woken: the waiting may have been cancelled.
  void drop_waiting() {
    if (waiting_ != nullptr) Py_XDECREF(waiting_->exchange(nullptr));
  }

  detail::ItemReader stream_;
  std::shared_ptr<std::atomic<PyObject*>> waiting_;  // a future, until it is woken
};

/// A handler of events: released with the GIL, whoever drops it.
class Handler {
 public:
  explicit Handler(nb::object function) : function_(std::move(function)) {}
  Handler(Handler&&) = delete;
  ~Handler() {
    if (!Py_IsInitialized()) {
      static_cast<void>(function_.release());
      return;
    }
    const Gil gil;
    function_.reset();
  }
  void call(const Event& event) {
    try {
      const std::string value{event.value_json()};
      Buffer text{value};
      const std::unique_ptr<Reader> reader = json_codec().reader();
      reader->reset(text.padded());
      function_(event.topic, value_at(*reader));
    } catch (nb::python_error& failure) {
      failure.restore();
      static_cast<void>(take_error(event.topic, {}));
    } catch (const std::exception& failure) {  // its value cannot be read
      PyErr_SetString(PyExc_ValueError, failure.what());
      static_cast<void>(take_error(event.topic, {}));
    }
  }

 private:
  nb::object function_;
};

struct EventEntry final : AsyncCalls::Entry {
  EventEntry(std::shared_ptr<Handler> whose, const Event& what) : handler(std::move(whose)), event(what) {}
  void run(PyObject*) override { handler->call(event); }
  std::shared_ptr<Handler> handler;
  Event event;
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

/// Several calls in one message.
class PyBatch {
 public:
  PyBatch(detail::OutgoingBatch batch, double patience) : batch_(std::move(batch)), patience_(patience) {}
  PyBatch(PyBatch&&) = delete;

  /// A call, whose outcome has the next index.
  void add(const std::string& method, nb::handle args, nb::handle kwargs, std::optional<double> timeout,
           const std::string& to, const CallContext* within) {
    batch_.add(written(method, args, kwargs, {timeout, to, within}), count_++);
  }
  void add_notification(const std::string& method, nb::handle args, nb::handle kwargs) {
    batch_.add_notification(written(method, args, kwargs, {}));
  }
  /// Sends it, and waits: for each call (True, its result) or (False, its exception).
  nb::list send() {
    std::vector<std::optional<detail::Answer>> answers(count_);
    {
      const ReleasedToWait released;
      if (batch_.size() != 0)
        batch_.wait([&](std::size_t at, detail::Answer& answer) { answers[at].emplace(std::move(answer)); });
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error();  // a signal has ended the waiting
    nb::list outcomes;
    for (std::optional<detail::Answer>& answer : answers) {
      if (answer->ok()) {
        try {
          outcomes.append(nb::make_tuple(true, value_at(answer->reader())));
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
  detail::OutgoingCall written(const std::string& method, nb::handle args, nb::handle kwargs, const Manner& manner) {
    detail::OutgoingCall call = batch_.begin_call(method);
    if (has_params(args, kwargs)) write_params(call.params(), args, kwargs);
    tell(call, manner, patience_);
    return call;
  }

  detail::OutgoingBatch batch_;
  double patience_;
  std::size_t count_ = 0;
};

ProvideOptions provide_options(const nb::dict& options, const std::string& summary, std::vector<Param> params) {
  ProvideOptions provided{.summary = summary, .params = std::move(params)};
  if (options.contains("concurrency")) provided.concurrency = nb::cast<std::uint32_t>(options["concurrency"]);
  if (options.contains("queue")) provided.queue = nb::cast<std::uint32_t>(options["queue"]);
  if (options.contains("policy")) provided.policy = nb::cast<std::string>(options["policy"]);
  if (options.contains("idempotent")) provided.idempotent = nb::cast<bool>(options["idempotent"]);
  if (options.contains("safe")) provided.safe = nb::cast<bool>(options["safe"]);
  return provided;
}

class PyClient {
 public:
  PyClient(const std::vector<std::string>& uris, const std::string& options_json) : born_(forks.load()) {
    ClientOptions options = options_of(options_json);
    patience_ = options.call_timeout_ms / 1000.0;
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
    std::shared_ptr<Client> client = usable();
    std::optional<Error> failure;
    {
      const ReleasedToWait released;
      try {
        client->connect();
      } catch (const Error& error) {
        failure = error;
      }
      client.reset();
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    if (failure) raise(*failure, detail::ErrorClass::connection_error);
  }

  nb::object call(const std::string& method, nb::handle args, nb::handle kwargs, std::optional<double> timeout,
                  const std::string& to, const CallContext* within) {
    detail::OutgoingCall call = outgoing(method, args, kwargs, {timeout, to, within}, patience_);
    detail::Answer answer;
    {
      const ReleasedToWait released;
      answer = call.wait();
    }
    return value_of(answer);
  }

  void notify(const std::string& method, nb::handle args, nb::handle kwargs) {
    detail::OutgoingCall call = outgoing(method, args, kwargs, {}, patience_);
    detail::Answer answer;
    {
      const ReleasedToWait released;
      answer = call.notify();
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    if (!answer.ok()) raise(answer.error(), answer.error_class());
  }

  CallHandle start(const std::string& method, nb::handle args, nb::handle kwargs, std::optional<double> timeout,
                   const std::string& to, const CallContext* within, std::shared_ptr<Replies> replies,
                   nb::handle future) {
    detail::OutgoingCall call = outgoing(method, args, kwargs, {timeout, to, within}, patience_);
    PyObject* const waiting = Py_NewRef(future.ptr());
    call.start([replies = std::move(replies), waiting](detail::Answer& answer) { replies->add(waiting, answer); });
    return call.handle();
  }

  std::unique_ptr<PyBatch> batch() { return std::make_unique<PyBatch>(usable()->outgoing_batch(), patience_); }

  std::shared_ptr<PyStream> stream(const std::string& method, nb::handle args, nb::handle kwargs,
                                   std::optional<double> timeout, const std::string& to, const CallContext* within) {
    return std::make_shared<PyStream>(
        detail::ItemReader{outgoing(method, args, kwargs, {timeout, to, within}, std::nullopt), kStreamCredit});
  }

  /// A method for the server alone, by calls within calls.
  void offer(const std::string& name, nb::object function, int execution, nb::list parameters, nb::object result,
             nb::object checked, std::shared_ptr<AsyncCalls> calls) {
    auto method = std::make_unique<PythonMethod>(std::move(function), static_cast<Execution>(execution),
                                                 parameters_of(parameters),
                                                 Results{.declared = result, .checked = checked}, calls);
    std::vector<Param> params = described_params(*method, parameters);
    detail::Binding binding = PythonMethod::bind(std::move(method));
    std::shared_ptr<Client> client = usable();
    const ReleasedToWait released;
    client->method(name, std::move(binding), std::move(params));
    client.reset();
  }

  void provide(const std::string& name, nb::object function, int execution, nb::list parameters, nb::object result,
               nb::object checked, const std::string& summary, nb::dict options, std::shared_ptr<AsyncCalls> calls) {
    auto method = std::make_unique<PythonMethod>(std::move(function), static_cast<Execution>(execution),
                                                 parameters_of(parameters),
                                                 Results{.declared = result, .checked = checked}, calls);
    const ProvideOptions provided = provide_options(options, summary, described_params(*method, parameters));
    detail::Binding binding = PythonMethod::bind(std::move(method));
    std::shared_ptr<Client> client = usable();
    const ReleasedToWait released;
    client->provide(name, std::move(binding), provided);
    client.reset();
  }
  /// `names` as of subscription_names.
  void provide_subscription(nb::tuple names, nb::object function, nb::list parameters, nb::object event,
                            nb::object checked, const std::string& summary, nb::dict options,
                            std::shared_ptr<AsyncCalls> calls) {
    auto method =
        std::make_unique<PythonMethod>(std::move(function), Execution::asyncio_stream, parameters_of(parameters),
                                       Results{.declared = event, .checked = checked}, calls);
    const ProvideOptions provided = provide_options(options, summary, described_params(*method, parameters));
    const SubscriptionNames declared = subscription_names(names);
    detail::Binding binding = PythonMethod::bind_subscription(std::move(method));
    std::shared_ptr<Client> client = usable();
    const ReleasedToWait released;
    client->provide_subscription(declared, std::move(binding), provided);
    client.reset();
  }
  bool unprovide(const std::string& name) {
    std::shared_ptr<Client> client = usable();
    const ReleasedToWait released;
    return std::exchange(client, nullptr)->unprovide(name);
  }

  /// `handler` is called with (topic, value): on asyncio's thread, if `calls` is one's, else on the one that drives.
  std::shared_ptr<PySubscription> subscribe(const std::string& topic, nb::object handler, const std::string& group,
                                            bool echo, bool last, std::shared_ptr<AsyncCalls> calls) {
    const auto kept = std::make_shared<Handler>(std::move(handler));
    EventFunction function = [kept, calls](const Event& event) {
      if (calls != nullptr) return calls->post(std::make_shared<EventEntry>(kept, event));
      const Gil gil;
      kept->call(event);
    };
    std::shared_ptr<Client> client = usable();
    const ReleasedToWait released;
    return std::make_shared<PySubscription>(
        std::exchange(client, nullptr)
            ->subscribe(topic, {.group = group, .echo = echo, .last = last}, std::move(function)));
  }

  /// `handler` is called with what an admin is shown; where, as of `subscribe`.
  std::shared_ptr<PySubscription> tap(const std::string& pattern, nb::object handler,
                                      std::shared_ptr<AsyncCalls> calls) {
    const auto callback = std::make_shared<Callback>("rpc.tap", std::move(handler), std::move(calls));
    std::shared_ptr<Client> client = usable();
    const ReleasedToWait released;
    return std::make_shared<PySubscription>(
        std::exchange(client, nullptr)->tap(pattern, [callback](const Event& event) {
          callback->tell([event]() -> nb::object {
            Buffer text{event.params_json};
            const std::unique_ptr<Reader> reader = json_codec().reader();
            reader->reset(text.padded());
            return nb::make_tuple(value_at(*reader));
          });
        }));
  }
  /// Each function takes the place of the one before it; where they are called, as of `subscribe`.
  void on_refused(nb::object function, std::shared_ptr<AsyncCalls> calls) {
    const auto callback = std::make_shared<Callback>("on_refused", std::move(function), std::move(calls));
    std::shared_ptr<Client> client = usable();
    const ReleasedToWait released;
    std::exchange(client, nullptr)->on_refused([callback](std::string_view name, const Error& error) {
      callback->tell([name = std::string{name}, error]() -> nb::object {
        return nb::make_tuple(name, nb::steal(make_exception(error, detail::ErrorClass::error)));
      });
    });
  }
  void on_lagged(nb::object function, std::shared_ptr<AsyncCalls> calls) {
    const auto callback = std::make_shared<Callback>("on_lagged", std::move(function), std::move(calls));
    std::shared_ptr<Client> client = usable();
    const ReleasedToWait released;
    std::exchange(client, nullptr)->on_lagged([callback](std::string_view topic, std::uint64_t dropped) {
      callback->tell([topic = std::string{topic}, dropped]() -> nb::object { return nb::make_tuple(topic, dropped); });
    });
  }
  void on_connection(nb::object function, std::shared_ptr<AsyncCalls> calls) {
    const auto callback = std::make_shared<Callback>("on_connection", std::move(function), std::move(calls));
    std::shared_ptr<Client> client = usable();
    const ReleasedToWait released;
    std::exchange(client, nullptr)->on_connection([callback](const ConnectionNews& news) {
      callback->tell([news]() -> nb::object { return nb::make_tuple(news); });
    });
  }

  /// Ends what has not ended. In a child of fork its threads are not there: it is left as it is.
  void close() {
    if (client_ == nullptr) return;
    if (forks.load() != born_) return static_cast<void>(new std::shared_ptr<Client>(std::move(client_)));
    std::shared_ptr<Client> ending = std::move(client_);
    const ReleasedToWait released;
    ending->close();
    ending.reset();
  }
  /// The interpreter ends: the same, but a handler that does not come back is left where it is.
  void end() {
    if (client_ == nullptr || forks.load() != born_) return close();
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
    if (forks.load() != born_) unusable("the client was made before fork: make one in the child process");
    return client_;
  }

  detail::OutgoingCall outgoing(const std::string& method, nb::handle args, nb::handle kwargs, const Manner& manner,
                                std::optional<double> patience) {
    detail::OutgoingCall call = usable()->outgoing(method);
    if (has_params(args, kwargs)) write_params(call.params(), args, kwargs);
    tell(call, manner, patience);
    return call;
  }

  static nb::object value_of(detail::Answer& answer) {
    if (PyErr_Occurred() != nullptr) throw nb::python_error();  // a signal has ended the waiting
    if (!answer.ok()) raise(answer.error(), answer.error_class());
    return value_at(answer.reader());
  }

  std::shared_ptr<Client> client_;  // threads that are in it without the GIL have their own share
  double patience_ = 0;             // seconds that a call has if nothing else is said
  unsigned born_;
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
  nb::class_<PySubscription>(module, "Subscription", "Events come until `unsubscribe`, or as long as the client.")
      .def("unsubscribe", &PySubscription::unsubscribe,
           "No call of the handler begins any more. Any thread; again: no effect.");
  nb::class_<ConnectionNews>(module, "ConnectionNews", "What has become of a connection of a client's.")
      .def_ro("connected", &ConnectionNews::connected, "It has been made; else it has ended.")
      .def_ro("endpoint", &ConnectionNews::endpoint, "The URI.")
      .def_ro("cause", &ConnectionNews::cause, "Why it has ended; empty for one that has been made.");
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
      .def("call", &PyClient::call, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none())
      .def("notify", &PyClient::notify)
      .def("start", &PyClient::start, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none(),
           nb::arg(), nb::arg())
      .def("batch", &PyClient::batch)
      .def("stream", &PyClient::stream, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none())
      .def("offer", &PyClient::offer, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
           nb::arg().none())
      .def("provide", &PyClient::provide, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
           nb::arg(), nb::arg(), nb::arg().none())
      .def("provide_subscription", &PyClient::provide_subscription, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg().none(), nb::arg(), nb::arg(), nb::arg())
      .def("unprovide", &PyClient::unprovide)
      .def("subscribe", &PyClient::subscribe, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("tap", &PyClient::tap, nb::arg(), nb::arg(), nb::arg().none())
      .def("on_refused", &PyClient::on_refused, nb::arg(), nb::arg().none())
      .def("on_lagged", &PyClient::on_lagged, nb::arg(), nb::arg().none())
      .def("on_connection", &PyClient::on_connection, nb::arg(), nb::arg().none())
      .def("end", &PyClient::end)
      .def("close", &PyClient::close);
}

}  // namespace wirecall::python
