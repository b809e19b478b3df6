// See async_calls.hpp.
#include "async_calls.hpp"

#include <nanobind/nanobind.h>

#include "caller_channel.hpp"
#include "errors.hpp"
#include "method.hpp"
#include "off_loop_call.hpp"
#include "reference.hpp"
#include "wirecall/detail/executor.hpp"

namespace wirecall::python {
namespace nb = nanobind;
namespace {

// One call of an async function, from its start to its answer. The queue, its task and the loop share it.
class AsyncCall final : public AsyncCalls::Entry,
                        public detail::Executor::Continuation,
                        public std::enable_shared_from_this<AsyncCall> {
 public:
  AsyncCall(const PythonMethod& method, Call& call, AsyncCalls& calls)
      : calls_(calls.weak_from_this()),
        executor_(call.executor()),
        call_{method, call, method.take_input(call),
              method.takes_context()
                  ? std::optional{context_off_loop(call, call.context(), calls.shared_from_this(), handler_)}
                  : std::nullopt},
        reply_(call),
        stop_(call.stop_token()) {}
  AsyncCall(AsyncCall&&) = delete;
  // A task that has not ended is asyncio's, and ends with its thread. Where that thread ends with the interpreter, it
  // is not the one that may drop the sink.
  ~AsyncCall() override {
    static_cast<void>(task_.release());
    if (!returned_) static_cast<void>(new ReplySink{std::move(sink_)});
  }

  /// On the loop's thread: from now on it is asyncio's.
  void start(Call& call) {
    sink_ = call.detach();
    sink_.keeps(call.params().size());
    // Not before the sink is there: a call whose caller has gone already is stopped at once.
    on_stop_.emplace(stop_, Stop{weak_from_this()});
    if (const auto calls = calls_.lock()) calls->post(shared_from_this());
  }

  // ---- on asyncio's thread ----

  void run(PyObject* loop) override {
    if (stop_.stop_requested()) return finish_with(Error{ErrorCode::cancelled});
    const auto called = call_.run();
    if (!called) return finish_with(called.error());
    // What cannot be awaited is the result of a plain function that belongs to this thread.
    if (PyObject_HasAttrString(called->get(), "__await__") == 0) return finish(called->get());
    task_ = call_method(loop, "create_task", called->get());
    if (!task_) return finish(nullptr);
    handler_->task = task_.get();
    const nb::object done = nb::cpp_function([self = shared_from_this()](nb::handle task) { self->ended(task.ptr()); });
    if (!call_method(task_.get(), "add_done_callback", done.ptr())) finish(nullptr);
  }

  // ---- on the loop's thread ----

  void resume() noexcept override {
    returned_ = true;
    on_stop_.reset();
    reply_.give(sink_);
  }

 private:
  // Nobody waits for it any more: asyncio's thread cancels the task.
  struct Stop {
    std::weak_ptr<AsyncCall> call;
    void operator()() const noexcept {
      const std::shared_ptr<AsyncCall> stopped = call.lock();
      const std::shared_ptr<AsyncCalls> calls = stopped ? stopped->calls_.lock() : nullptr;
      if (!calls) return;
      try {
        calls->call_soon([stopped](PyObject*) { stopped->cancel(); });
      } catch (const std::bad_alloc&) {
        // It goes on, for nobody.
      }
    }
  };

  void cancel() {
    if (task_ && !call_method(task_.get(), "cancel")) PyErr_Clear();
  }
  void ended(PyObject* task) {
    task_ = {};
    *handler_ = {.task = nullptr, .ended = true};
    // That it was cancelled because nobody waits any more is no error of the handler's.
    if (stop_.stop_requested() && is_cancelled(task)) return finish_with(Error{ErrorCode::cancelled});
    finish(call_method(task, "result").get());
  }
  // With a result; null for the exception that is set.
  void finish(PyObject* result) {
    call_.answer(reply_, result);
    post_answer();
  }
  void finish_with(const Error& error) {
    reply_.error(error);
    post_answer();
  }
  void post_answer() noexcept {
    if (executor_ != nullptr) executor_->post(std::static_pointer_cast<Continuation>(shared_from_this()));
  }

  std::weak_ptr<AsyncCalls> calls_;
  std::shared_ptr<detail::Executor> executor_;
  std::shared_ptr<HandlerTask> handler_ = std::make_shared<HandlerTask>();  // shared with its context
  OffLoopCall call_;
  detail::OffLoopReply reply_;
  std::stop_token stop_;
  ReplySink sink_;
  bool returned_ = false;  // on the loop's thread
  std::optional<std::stop_callback<Stop>> on_stop_;
  Reference task_;  // asyncio's; with the GIL
};

}  // namespace

bool is_cancelled(PyObject* task) {
  const Reference cancelled = call_method(task, "cancelled");
  if (!cancelled) PyErr_Clear();
  return cancelled.get() == Py_True;
}

void AsyncCalls::post(std::shared_ptr<Entry> entry) {
  bool first = false;
  {
    const std::scoped_lock lock{mutex_};
    first = entries_.empty();
    entries_.push_back(std::move(entry));
  }
  if (first) event_.set();
}

void AsyncCalls::start(const PythonMethod& method, Call& call) {
  if (call.executor() == nullptr)
    return call.error(Error{ErrorCode::internal_error, "an async method needs a server that runs"});
  const auto started = std::make_shared<AsyncCall>(method, call, *this);
  started->start(call);
}

void AsyncCalls::drain(PyObject* loop) {
  event_.clear();
  std::vector<std::shared_ptr<Entry>> entries;
  {
    const std::scoped_lock lock{mutex_};
    entries.swap(entries_);
  }
  for (const std::shared_ptr<Entry>& entry : entries) {
    // One that fails takes nothing from the others.
    try {
      entry->run(loop);
    } catch (nb::python_error& failure) {
      failure.discard_as_unraisable("a call on its way to asyncio");
    } catch (const std::exception& failure) {
      PyErr_SetString(PyExc_RuntimeError, failure.what());
      PyErr_WriteUnraisable(loop);
    }
  }
}

}  // namespace wirecall::python
