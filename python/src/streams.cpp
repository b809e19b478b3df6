// See streams.hpp.
#include "streams.hpp"

#include <deque>
#include <expected>
#include <mutex>
#include <nanobind/stl/shared_ptr.h>

#include "async_calls.hpp"
#include "callback.hpp"
#include "caller_channel.hpp"
#include "context.hpp"
#include "continuation.hpp"
#include "errors.hpp"
#include "exception.hpp"
#include "gil.hpp"
#include "method.hpp"
#include "off_loop_call.hpp"
#include "reference.hpp"
#include "validating_encoder.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/detail/items.hpp"
#include "wirecall/task.hpp"

namespace wirecall::python {
namespace nb = nanobind;

// Items between the generator and the caller: a generator with so many waits.
constexpr std::size_t kFeedMax = 64;

/// What a generator has yielded, between its thread and the loop's. A plain generator occupies a thread of the pool
/// only while there is room for what it yields. Any thread.
class Feed final : public std::enable_shared_from_this<Feed> {
 public:
  /// `context` is the call's; `subscription`: it yields events.
  Feed(const PythonMethod& method, Call& call, InputShare input, const Context& context, AsyncCalls& calls,
       bool subscription)
      : handler_(method.runs_on() == RunsOn::asyncio_stream ? std::make_shared<HandlerTask>() : nullptr),
        call_(method, call, std::move(input),
              method.takes_context() ? std::optional{context_off_loop(
                                           call, context, handler_ ? calls.shared_from_this() : nullptr, handler_)}
                                     : std::nullopt),
        item_codec_(&call.item_codec()),
        calls_(calls.weak_from_this()),
        executor_(call.executor()),
        pool_(call.blocking_pool()),
        subscription_(subscription),
        handled_(call_.handled_call()) {}
  Feed(Feed&&) = delete;

  [[nodiscard]] bool is_subscription() const noexcept { return subscription_; }
  /// For detail::HandlerScope.
  [[nodiscard]] const void* handled_call() const noexcept { return handled_; }

  // ---- the generator's thread, with the GIL ----

  /// The generator; null when there is none, and then it has ended.
  [[nodiscard]] nb::object begin() {
    if (parked_generator_.get().is_valid()) return parked_generator_.take();
    std::expected<Reference, Error> generator = call_.run();
    if (generator) return nb::steal(generator->release());
    end(std::move(generator).error());
    return {};
  }
  /// False when there is no room for another one, or nobody wants one.
  [[nodiscard]] bool push(PyObject* item) {
    Buffer text;
    const std::unique_ptr<Writer> writer = item_codec_->writer();
    writer->reset(text);
    std::string where;
    if (!encode_as(*writer, item, call_.method().checked(), where) || writer->failed()) {
      end(Error{ErrorCode::internal_error});
      const std::string& why = where.empty() ? writer->failure() : where;
      PyErr_Format(PyExc_TypeError, "an item of the stream %s%s",
                   why.starts_with(kNotAsDeclared) ? "" : "cannot be sent: ", why.c_str());
      static_cast<void>(call_.take_error());
      return false;
    }
    const std::scoped_lock lock{mutex_};
    if (ended_ || stopped_) return false;
    items_.push_back(std::move(text));
    tell();
    return items_.size() < kFeedMax;
  }
  /// The generator has come to its first wait without raising.
  void started() {
    const std::scoped_lock lock{mutex_};
    if (ended_ || std::exchange(started_, true)) return;
    tell();
  }
  void end(std::optional<Error> error) {
    std::shared_ptr<Callback> cancel;  // goes after the mutex, with the GIL
    const std::scoped_lock lock{mutex_};
    if (ended_) return;
    ended_ = true;
    error_ = std::move(error);
    cancel = std::move(cancel_);
    tell();
  }
  /// The task that runs the generator.
  void run_by(nb::handle task) noexcept { handler_->task = task.ptr(); }
  void run_by_none() noexcept {
    if (handler_) *handler_ = {.task = nullptr, .ended = true};
  }
  /// `function` cancels the generator's task. It is called when nobody wants more, whatever the task waits for.
  void cancel_by(nb::object function) {
    const auto calls = calls_.lock();
    if (calls == nullptr) return;
    auto cancel = std::make_shared<Callback>(std::move(function), calls);
    const std::scoped_lock lock{mutex_};
    if (ended_) return;
    cancel_ = std::move(cancel);
    if (stopped_) cancel_now();
  }
  void end_with(PyObject* exception) { end(error_of(exception, call_.registered().name(), call_.id())); }
  [[nodiscard]] bool wanted() const {
    const std::scoped_lock lock{mutex_};
    return !stopped_ && !ended_;
  }
  /// Keeps a plain generator until there is room, or nobody wants more; then the pool runs it again. False when that is
  /// so already.
  [[nodiscard]] bool park(nb::object& generator) {
    const std::scoped_lock lock{mutex_};
    if (stopped_ || ended_ || items_.size() < kFeedMax / 2) return false;
    parked_generator_ = std::move(generator);
    return parked_ = true;
  }
  /// `future` is given a result when there is room, or nobody wants more.
  void on_writable(nb::object future) {
    const std::scoped_lock lock{mutex_};
    future_ = std::move(future);
    future_waits_ = true;
    if (stopped_ || ended_ || items_.size() < kFeedMax / 2) post_writable();
  }
  [[nodiscard]] nb::object take_future() {
    const std::scoped_lock lock{mutex_};
    return future_.take();
  }

  // ---- the loop's thread ----

  struct Taken {
    std::deque<Buffer> items;
    bool ended = false;
    bool started = false;
  };
  [[nodiscard]] Taken take() {
    std::unique_lock lock{mutex_};
    Taken taken{std::exchange(items_, {}), ended_, started_};
    started_told_ = started_;
    if (future_waits_) post_writable();
    const bool resumes = std::exchange(parked_, false);
    lock.unlock();
    if (resumes) resume();
    return taken;
  }
  /// Has a plain generator run on a thread of the pool.
  void resume();
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }
  /// Completes `news` on the loop's thread when there is something to take.
  void wait(Completion<> news) {
    const std::scoped_lock lock{mutex_};
    news_ = make_continuation([news = std::move(news)] { news.set(); });
    if (!items_.empty() || ended_ || started_ != started_told_) tell();
  }
  /// Nobody wants more.
  void stop() noexcept {
    std::shared_ptr<Callback> cancel;  // goes after the mutex, for which the generator's thread may wait with the GIL
    const std::scoped_lock lock{mutex_};
    cancel = cancel_;
    stopped_ = true;
    items_.clear();
    if (future_waits_) post_writable();
    if (!ended_ && cancel_ != nullptr) cancel_now();
    // What it has to do at its end, it does on the pool, which is there as long as the loop turns.
    if (!std::exchange(parked_, false)) return;
    try {
      executor_->post(make_continuation([feed = shared_from_this()] { feed->resume(); }));
    } catch (const std::bad_alloc&) {
      // It goes with the feed.
    }
  }

 private:
  // With the mutex held.
  void tell() noexcept {
    if (news_ != nullptr) executor_->post(std::exchange(news_, nullptr));
  }
  void cancel_now() {
    Callback::invoke_last(std::exchange(cancel_, nullptr), "the cancelling of a stream",
                          [] { return nb::make_tuple(); });
  }
  void post_writable() {
    future_waits_ = false;
    const auto calls = calls_.lock();
    if (calls == nullptr) return;
    calls->call_soon([feed = shared_from_this()](PyObject*) {
      const nb::object future = feed->take_future();
      if (future.is_valid() && !nb::cast<bool>(future.attr("done")())) future.attr("set_result")(nb::none());
    });
  }

  std::shared_ptr<HandlerTask> handler_;  // null for a plain generator
  OffLoopCall call_;
  const Codec* item_codec_;
  std::weak_ptr<AsyncCalls> calls_;
  std::shared_ptr<detail::Executor> executor_;
  detail::BlockingPool* pool_;  // the loop's
  bool subscription_;
  const void* handled_;

  mutable std::mutex mutex_;
  bool started_ = false;
  bool started_told_ = false;
  std::deque<Buffer> items_;
  std::optional<Error> error_;
  bool ended_ = false;
  bool stopped_ = false;
  bool future_waits_ = false;
  bool parked_ = false;
  SharedObject future_;
  SharedObject parked_generator_;  // or about to go on
  std::shared_ptr<Callback> cancel_;
  std::shared_ptr<detail::Executor::Continuation> news_;
};

namespace {

// Stops the feed when nothing passes its items on any more.
struct Consumer {
  explicit Consumer(std::shared_ptr<Feed> from) : feed(std::move(from)) {}
  Consumer(Consumer&&) = default;
  ~Consumer() {
    if (feed != nullptr) feed->stop();
  }
  std::shared_ptr<Feed> feed;
};

// What a subscription and the call that asks for it share.
struct Subscribing {
  std::shared_ptr<detail::EventSink> events;
  ReplySink reply;
  bool answered = false;
};

// The call is answered as soon as the generator waits or yields: what it raises before that is the answer.
bool is_to_be_answered(const Feed& feed, const Feed::Taken& taken) {
  const bool refused = taken.ended && feed.error() && taken.items.empty() && !taken.started;
  return !refused && (taken.started || taken.ended || !taken.items.empty());
}

// Passes what the generator yields on as the items of a stream; as events where `subscribing` is not null. Throws the
// error by which the generator ends.
Task<void> pass_on(Consumer consumer, std::shared_ptr<detail::Items> items, std::shared_ptr<Subscribing> subscribing,
                   Scheduler* scheduler) {
  Feed& feed = *consumer.feed;
  std::size_t count = 0;
  for (;;) {
    const Feed::Taken taken = feed.take();
    if (subscribing != nullptr && !subscribing->answered && is_to_be_answered(feed, taken)) {
      subscribing->answered = true;
      detail::answer(subscribing->reply, subscribing->events->id());
      co_await subscribing->events->answered();
    }
    for (const Buffer& item : taken.items) {
      co_await items->until_writable();
      items->add_encoded(item.view());
      if (++count % detail::kItemsPerTurn == 0 && scheduler != nullptr)
        co_await sleep_for(*scheduler, std::chrono::nanoseconds{0});
    }
    if (taken.ended) break;
    const Completion<> news;
    feed.wait(news);
    co_await news;
  }
  if (feed.error()) throw Error{*feed.error()};
}

// On a thread of the pool.
void run_generator(Feed& feed) {
  const Gil gil;
  const detail::HandlerScope handler{feed.handled_call()};
  nb::object generator = feed.begin();
  while (generator.is_valid() && feed.wanted()) {
    const Reference item = Reference::steal(PyIter_Next(generator.ptr()));
    if (!item) {
      if (PyErr_Occurred() == nullptr) return feed.end(std::nullopt);
      return feed.end_with(take_exception().get());
    }
    if (!feed.push(item.get()) && feed.park(generator)) return;
  }
}

// On asyncio's thread: wirecall/_asyncio_thread.py runs the generator.
void start_async(AsyncCalls& calls, std::shared_ptr<Feed> started) {
  calls.call_soon([feed = std::move(started)](PyObject* loop) {
    const nb::object generator = feed->begin();
    if (!generator.is_valid()) return;
    try {
      const nb::object feed_from = nb::module_::import_("wirecall._asyncio_thread").attr("feed_from");
      const nb::object task =
          nb::borrow(loop).attr("create_task")(feed_from(generator, nb::cast(feed), feed->is_subscription()));
      feed->run_by(task);
      feed->cancel_by(task.attr("cancel"));
    } catch (nb::python_error& failure) {
      feed->end_with(failure.value().ptr());
    }
  });
}

}  // namespace

void Feed::resume() {
  try {
    pool_->run([feed = shared_from_this()]() -> detail::BlockingPool::Job {
      run_generator(*feed);
      return [] {};
    });
  } catch (const std::exception&) {
    end(Error{ErrorCode::internal_error});  // no thread or no memory for it
  }
}

void start_stream(const PythonMethod& method, Call& call, AsyncCalls& calls) {
  detail::BlockingPool* const pool = call.blocking_pool();
  if (call.executor() == nullptr || (pool == nullptr && method.runs_on() == RunsOn::pool_stream))
    return call.error(Error{ErrorCode::internal_error, "a stream needs a server that runs"});
  const std::shared_ptr<detail::Items> items = call.items();
  InputShare input = method.take_input(call);
  const Context context = call.context();
  const auto feed = std::make_shared<Feed>(method, call, std::move(input), context, calls, false);
  // The sink has to be there before the task can end.
  struct State {
    ReplySink sink;
    std::optional<TaskResult<void>> early;
    bool detached = false;
  };
  const auto state = std::make_shared<State>();
  const auto finish = [items](ReplySink& sink, const TaskResult<void>& result) {
    try {
      if (!result) std::rethrow_exception(result.error());
      detail::answer(sink, detail::StreamResult{items});
    } catch (...) {
      sink.error_in_flight();
    }
  };
  call.tasks().start(
      pass_on(Consumer{feed}, items, nullptr, context.scheduler()), context.stop_token(),
      [state, finish](TaskResult<void> result) {
        if (state->detached) return finish(state->sink, result);
        state->early.emplace(std::move(result));
      },
      &call.method());
  state->sink = call.detach();
  state->sink.keeps(call.params().size());
  state->detached = true;
  if (state->early) return finish(state->sink, *state->early);
  if (method.runs_on() == RunsOn::asyncio_stream) {
    start_async(calls, feed);
  } else {
    feed->resume();
  }
}

void start_subscription(const PythonMethod& method, Call& call, AsyncCalls& calls) {
  const auto state = std::make_shared<Subscribing>();
  state->events = call.subscribe();
  if (state->events == nullptr) return;
  if (call.executor() == nullptr)
    return call.error(Error{ErrorCode::internal_error, "a subscription needs a server that runs"});
  const Context& context = state->events->context();
  const auto feed = std::make_shared<Feed>(method, call, InputShare{}, context, calls, true);
  state->reply = call.detach();
  std::shared_ptr<detail::Items> items{state->events, &state->events->items()};
  call.tasks().start(
      pass_on(Consumer{feed}, std::move(items), state, context.scheduler()), context.stop_token(),
      [state](const TaskResult<void>& result) {
        if (result) return;
        if (state->answered) return state->events->fail(result.error());
        try {
          std::rethrow_exception(result.error());
        } catch (...) {
          state->reply.error_in_flight();
        }
      },
      &call.method());
  start_async(calls, feed);
}

void add_feed(nb::module_& module) {
  nb::class_<Feed>(module, "Feed")
      .def(
          "push", [](Feed& feed, nb::handle item) { return feed.push(item.ptr()); }, nb::arg("item").none())
      .def("started", &Feed::started)
      .def("run_by_none", &Feed::run_by_none)
      .def("end", [](Feed& feed) { feed.end(std::nullopt); })
      .def("end_with", [](Feed& feed, nb::handle exception) { feed.end_with(exception.ptr()); })
      .def("on_writable", &Feed::on_writable)
      .def_prop_ro("wanted", &Feed::wanted);
}

}  // namespace wirecall::python
