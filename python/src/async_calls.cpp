// See async_calls.hpp.
#include "async_calls.hpp"

#include <cerrno>
#include <cstdint>
#include <exception>
#include <nanobind/nanobind.h>
#include <optional>
#include <stop_token>
#include <string>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "caller_channel.hpp"
#include "context.hpp"
#include "errors.hpp"
#include "method.hpp"
#include "reference.hpp"
#include "wirecall/detail/executor.hpp"

namespace wirecall::python {
namespace nb = nanobind;
namespace {

// One call of an async function, from its start to its answer. Shared by whoever has to do with it next.
class AsyncCall final : public AsyncCalls::Entry,
                        public detail::Executor::Continuation,
                        public std::enable_shared_from_this<AsyncCall> {
 public:
  AsyncCall(const PythonMethod& method, Call& call, AsyncCalls& calls)
      : method_(&method),
        registered_(&call.method()),
        codec_(&call.codec()),
        calls_(calls.weak_from_this()),
        executor_(call.executor()),
        id_(call.is_notification() ? std::string_view{} : call.message().id()),
        params_(call.params()),
        reply_(call),
        stop_(call.stop_token()) {
    if (method.takes_context()) {
      const Context context = call.context();
      context_ = off_loop_context(context, {call, context, calls.shared_from_this(), handler_});
    }
    static_cast<void>(params_.padded());
  }
  AsyncCall(AsyncCall&&) = delete;
  // A task that has never ended is asyncio's own, which ends with its thread. Where that ends with the interpreter, the
  // sink is not this thread's to drop.
  ~AsyncCall() override {
    static_cast<void>(task_.release());
    if (!returned_) static_cast<void>(new ReplySink{std::move(sink_)});
  }

  // On the loop's thread: from now on it is asyncio's.
  void hand_in(Call& call) {
    sink_ = call.detach();
    // Not before the sink is there: a call whose caller has gone already is stopped at once.
    on_stop_.emplace(stop_, Stop{weak_from_this()});
    if (const auto calls = calls_.lock()) calls->post(shared_from_this());
  }

  // ---- on asyncio's thread ----

  void run(PyObject* loop) override {
    if (stop_.stop_requested()) return give_up();
    detail::ParamReaders readers{.reader = codec_->reader(), .defaults = {}};
    PythonMethod::Arguments arguments{*method_};
    if (!detail::decode_params(params_.view(), *registered_, readers, arguments.pointers())) {
      if (PyErr_Occurred() != nullptr) return fail();
      reply_.error(decode_error(*readers.reader));
      return return_to_loop();
    }
    Reference context;
    if (method_->takes_context()) context = Reference::steal(make_context(std::move(*context_)));
    const Reference coroutine = Reference::steal(method_->call(arguments, context.get()));
    if (!coroutine) return fail();
    if (PyObject_HasAttrString(coroutine.get(), "__await__") == 0) {
      // A plain function, which belongs to this thread.
      answer(reply_, coroutine.get(), registered_->name(), id_, method_->checked());
      return return_to_loop();
    }
    const Reference name = Reference::steal(PyUnicode_FromString("create_task"));
    task_ = Reference::steal(PyObject_CallMethodObjArgs(loop, name.get(), coroutine.get(), nullptr));
    if (!task_) return fail();
    handler_->task = task_.get();
    // Where it ends, `ended` is called.
    const nb::object done = nb::cpp_function([self = shared_from_this()](nb::handle task) { self->ended(task.ptr()); });
    const Reference add = Reference::steal(PyUnicode_FromString("add_done_callback"));
    const Reference added = Reference::steal(PyObject_CallMethodObjArgs(task_.get(), add.get(), done.ptr(), nullptr));
    if (!added) fail();
  }

  void cancel() {
    if (!task_) return;
    const Reference name = Reference::steal(PyUnicode_FromString("cancel"));
    const Reference done = Reference::steal(PyObject_CallMethodObjArgs(task_.get(), name.get(), nullptr));
    if (!done) PyErr_Clear();
  }

  // ---- on the loop's thread ----

  void resume() noexcept override {
    returned_ = true;
    on_stop_.reset();
    reply_.give(sink_);
  }

 private:
  struct Cancel final : AsyncCalls::Entry {
    explicit Cancel(std::shared_ptr<AsyncCall> what) : call(std::move(what)) {}
    void run(PyObject*) override { call->cancel(); }
    std::shared_ptr<AsyncCall> call;
  };
  // Nobody waits for it any more: asyncio's thread is told.
  struct Stop {
    std::weak_ptr<AsyncCall> call;
    void operator()() const noexcept {
      const std::shared_ptr<AsyncCall> stopped = call.lock();
      const std::shared_ptr<AsyncCalls> calls = stopped ? stopped->calls_.lock() : nullptr;
      if (!calls) return;
      try {
        calls->post(std::make_shared<Cancel>(stopped));
      } catch (const std::bad_alloc&) {
        // It goes on, for nobody.
      }
    }
  };

  void ended(PyObject* task) {
    task_ = {};
    *handler_ = {.task = nullptr, .ended = true};
    // That it was cancelled because nobody waits any more is no error of the handler's.
    if (stop_.stop_requested() && is_cancelled(task)) return give_up();
    const Reference name = Reference::steal(PyUnicode_FromString("result"));
    const Reference result = Reference::steal(PyObject_CallMethodObjArgs(task, name.get(), nullptr));
    answer(reply_, result.get(), registered_->name(), id_, method_->checked());
    return_to_loop();
  }
  static bool is_cancelled(PyObject* task) {
    const Reference name = Reference::steal(PyUnicode_FromString("cancelled"));
    const Reference cancelled = Reference::steal(PyObject_CallMethodObjArgs(task, name.get(), nullptr));
    if (!cancelled) PyErr_Clear();
    return cancelled.get() == Py_True;
  }
  void fail() {
    answer(reply_, nullptr, registered_->name(), id_, method_->checked());
    return_to_loop();
  }
  void give_up() {
    reply_.error(Error{ErrorCode::cancelled});
    return_to_loop();
  }
  void return_to_loop() noexcept {
    if (executor_ != nullptr) executor_->post(std::static_pointer_cast<Continuation>(shared_from_this()));
  }

  const PythonMethod* method_;
  const Method* registered_;
  const Codec* codec_;
  std::weak_ptr<AsyncCalls> calls_;
  std::shared_ptr<detail::Executor> executor_;
  std::string id_;
  Buffer params_;
  detail::OffLoopReply reply_;
  std::optional<CallContext> context_;
  std::stop_token stop_;
  ReplySink sink_;
  bool returned_ = false;  // again
  std::optional<std::stop_callback<Stop>> on_stop_;
  Reference task_;                                                          // asyncio's, with the GIL
  std::shared_ptr<HandlerTask> handler_ = std::make_shared<HandlerTask>();  // the same, for its context
};

}  // namespace

AsyncCalls::AsyncCalls() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
}

AsyncCalls::~AsyncCalls() { ::close(event_); }

void AsyncCalls::post(std::shared_ptr<Entry> entry) {
  bool first = false;
  {
    const std::scoped_lock lock{mutex_};
    first = entries_.empty();
    entries_.push_back(std::move(entry));
  }
  if (!first) return;
  const std::uint64_t one = 1;
  static_cast<void>(::write(event_, &one, sizeof one));
}

void AsyncCalls::start(const PythonMethod& method, Call& call) {
  if (call.executor() == nullptr)
    return call.error(Error{ErrorCode::internal_error, "an async method needs a server that runs"});
  const auto started = std::make_shared<AsyncCall>(method, call, *this);
  started->hand_in(call);
}

void AsyncCalls::drain(PyObject* loop) {
  std::uint64_t count = 0;
  static_cast<void>(::read(event_, &count, sizeof count));
  std::vector<std::shared_ptr<Entry>> entries;
  {
    const std::scoped_lock lock{mutex_};
    entries.swap(entries_);
  }
  for (const std::shared_ptr<Entry>& entry : entries) {
    // Whatever befalls one, the others are somebody else's.
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
