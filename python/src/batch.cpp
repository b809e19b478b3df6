// See batch.hpp.
#include "batch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <unordered_map>
#include <vector>

#include "async_calls.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "off_loop_call.hpp"
#include "wirecall/detail/batcher.hpp"

namespace wirecall::python {
namespace nb = nanobind;
namespace {

using detail::Batch;
using detail::BatchEntry;

OffLoopCall& call_of(const BatchEntry& entry) noexcept { return *static_cast<OffLoopCall*>(entry.arguments.get()); }

// Those of a batch whose params have been decoded, with the GIL.
class Decoded {
 public:
  explicit Decoded(Batch batch) : arguments_(Reference::steal(PyList_New(0))) {
    for (BatchEntry* const entry : batch) {
      std::expected<Reference, Error> tuple = call_of(*entry).arguments();
      if (!tuple) {
        entry->reply.error(tuple.error());
      } else if (arguments_ && PyList_Append(arguments_.get(), tuple->get()) == 0) {
        entries_.push_back(entry);
      } else {
        entry->reply.error(call_of(*entry).take_error());
      }
    }
  }

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  /// A list of each call's. Once: this then needs no GIL to go.
  [[nodiscard]] Reference take_arguments() noexcept { return std::move(arguments_); }
  /// With what the function has returned; where that is null, with the Python exception that is set.
  void answer(PyObject* results) const {
    if (entries_.empty()) return;
    if (results == nullptr) return fail(call_of(*entries_.front()).take_error());
    Failures failures;
    for (std::size_t i = 0; i != entries_.size(); ++i) {
      // What is encoded may run code of the user's, which may have the list.
      const Reference result = Reference::share(PyList_GetItem(results, static_cast<Py_ssize_t>(i)));
      const OffLoopCall& call = call_of(*entries_[i]);
      if (result && PyExceptionInstance_Check(result.get())) {
        entries_[i]->reply.error(failures.error_of(result.get(), call));
      } else {
        call.answer(entries_[i]->reply, result.get());
      }
    }
  }
  void fail(const Error& error) const {
    for (BatchEntry* const entry : entries_) entry->reply.error(error);
  }

 private:
  // Of an exception that several calls share the log is told once.
  class Failures {
   public:
    const Error& error_of(PyObject* exception, const OffLoopCall& call) {
      const auto [found, is_new] = errors_.try_emplace(exception, Error{ErrorCode::internal_error});
      if (is_new) {
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
        found->second = call.take_error();
      }
      return found->second;
    }

   private:
    std::unordered_map<PyObject*, Error> errors_;
  };

  Reference arguments_;
  std::vector<BatchEntry*> entries_;
};

// One batch of an async function, from its start on the loop until its answers are written on asyncio's thread.
class AsyncBatch final : public AsyncCalls::Entry,
                         public detail::Executor::Continuation,
                         public std::enable_shared_from_this<AsyncBatch> {
 public:
  AsyncBatch(std::shared_ptr<const SharedObject> run, detail::StartedBatch started)
      : run_(std::move(run)), started_(std::move(started)) {}

  // ---- on the loop's thread ----

  void wait(std::coroutine_handle<> waiter, AsyncCalls& calls) {
    waiter_ = waiter;
    calls.post(shared_from_this());
  }
  void resume() noexcept override {
    if (waiter_) std::exchange(waiter_, nullptr).resume();
  }
  /// The task has gone with its loop, and with it perhaps the method: nobody is answered any more.
  void forget(AsyncCalls& calls) noexcept {
    if (!std::exchange(waiter_, nullptr)) return;
    forgotten_ = true;
    try {
      calls.call_soon([weak = weak_from_this()](PyObject*) {
        if (const auto self = weak.lock()) self->cancel();
      });
    } catch (const std::bad_alloc&) {
      // It goes on for nobody.
    }
  }

  // ---- on asyncio's thread ----

  void run(PyObject* loop) override {
    if (forgotten_) return;
    try {
      decoded_.emplace(started_.batch);
      const Reference arguments = decoded_->take_arguments();
      if (decoded_->empty()) return end();
      const Reference coroutine = call_function(run_->get().ptr(), arguments.get());
      if (coroutine) task_ = call_method(loop, "create_task", coroutine.get());
      if (!task_) return finish(nullptr);
      const nb::object done = nb::cpp_function([self = shared_from_this()](nb::handle ended) { self->ended(ended); });
      if (!call_method(task_.get(), "add_done_callback", done.ptr())) finish(nullptr);
    } catch (...) {
      fail();
    }
  }

 private:
  void ended(nb::handle task) noexcept {
    try {
      task_ = {};
      if (forgotten_) return;
      if (!is_cancelled(task.ptr())) return finish(call_method(task.ptr(), "result").get());
      decoded_->fail(Error{ErrorCode::cancelled});  // as it is when the server ends
      end();
    } catch (...) {
      fail();
    }
  }
  void finish(PyObject* results) {
    decoded_->answer(results);
    end();
  }
  // In a catch block.
  void fail() noexcept {
    detail::fail_batch(started_.batch);
    end();
  }
  // From here on it may go without the GIL.
  void end() noexcept {
    task_ = {};
    if (started_.executor != nullptr) started_.executor->post(shared_from_this());
  }
  void cancel() {
    if (task_ && !call_method(task_.get(), "cancel")) PyErr_Clear();
  }

  const std::shared_ptr<const SharedObject> run_;
  const detail::StartedBatch started_;
  std::optional<Decoded> decoded_;
  Reference task_;                  // while it runs
  std::coroutine_handle<> waiter_;  // the loop's
  std::atomic<bool> forgotten_ = false;
};

// To be awaited: the batch has been run.
struct AsyncRun {
  AsyncRun(std::shared_ptr<AsyncBatch> of, std::shared_ptr<AsyncCalls> on) noexcept
      : batch(std::move(of)), calls(std::move(on)) {}
  AsyncRun(AsyncRun&&) = delete;
  ~AsyncRun() { batch->forget(*calls); }
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) const { batch->wait(waiter, *calls); }
  void await_resume() const noexcept {}

  std::shared_ptr<AsyncBatch> batch;
  std::shared_ptr<AsyncCalls> calls;
};

class PythonBatchFunction final : public detail::BatchFunction {
 public:
  PythonBatchFunction(nb::object run, std::shared_ptr<AsyncCalls> calls)
      : run_(std::make_shared<const SharedObject>(std::move(run))), waits_(calls != nullptr), calls_(calls) {}

  [[nodiscard]] bool waits() const noexcept override { return waits_; }
  void run(Batch batch) noexcept override {
    try {
      // On a loop's thread, that may lose the loop meanwhile: then it must not have the GIL until the turn ends.
      turn::release();
      const Gil gil;
      Decoded decoded{batch};
      if (decoded.empty()) return;
      const Reference results = call_function(run_->get().ptr(), decoded.take_arguments().get());
      decoded.answer(results.get());
    } catch (...) {
      detail::fail_batch(batch);
    }
  }
  [[nodiscard]] Task<void> start(detail::StartedBatch started) override {
    const std::shared_ptr<AsyncCalls> calls = calls_.lock();
    if (calls == nullptr) co_return;  // asyncio has ended, and with it the calls
    const auto batch = std::make_shared<AsyncBatch>(run_, std::move(started));
    const AsyncRun run{batch, calls};
    co_await run;
  }

 private:
  const std::shared_ptr<const SharedObject> run_;  // which goes on any thread
  const bool waits_;
  const std::weak_ptr<AsyncCalls> calls_;  // whose queue may have batches that nobody takes any more
};

struct BatchedMethod {
  std::unique_ptr<PythonMethod> method;
  std::shared_ptr<detail::Batcher> batcher;
  nb::object weigh;  // null where nothing of a call is weighed
};

// How many rows the call has, and its priority. Where its params are wrong it has the error with which it is answered.
std::expected<detail::BatchedAs, Error> weigh(const BatchedMethod& batched, Call& call, OffLoopCall& arguments) {
  // Long params take long to decode; another thread may take the loop over meanwhile. Then this one must not have the
  // GIL until the turn ends.
  turn::release();
  CallContext context = context_off_loop(call, call.context(), nullptr, nullptr);  // while this thread has the loop
  const detail::WatchdogScope scope{call.watchdog_slot(), call.method(), &call, detail::WatchdogSlot::kAround};
  const Gil gil;
  const std::expected<PyObject*, Error> decoded = arguments.decode_now();
  if (!decoded) return std::unexpected(decoded.error());
  const Reference seen = Reference::steal(make_context(std::move(context)));
  const Reference weighed = seen ? call_function(batched.weigh.ptr(), *decoded, seen.get()) : Reference{};
  detail::BatchedAs as;
  if (!weighed || !PyArg_ParseTuple(weighed.get(), "ni", &as.rows, &as.priority))
    return std::unexpected(arguments.take_error());
  return as;
}

void add(const BatchedMethod& batched, Call& call, std::unique_ptr<OffLoopCall> arguments,
         const detail::BatchedAs& as = {}) {
  batched.batcher->add(call, {arguments.release(), [](void* held) { delete static_cast<OffLoopCall*>(held); }}, as);
}

void invoke(void* stored, Call& call) {
  const BatchedMethod& batched = *static_cast<BatchedMethod*>(stored);
  const PythonMethod& method = *batched.method;
  if (method.is_asynchronous() && call.executor() == nullptr)
    return call.error(Error{ErrorCode::internal_error, "an async method needs a server that runs"});
  const bool weighs = batched.weigh.is_valid();
  if (!weighs && !method.takes_context() && batched.batcher->runs_in_turn(call)) {
    if (Reference arguments = Reference::steal(method.decode_in_turn(call)))
      return add(batched, call, std::make_unique<OffLoopCall>(method, call, std::move(arguments)));
  }
  std::optional<CallContext> context;
  // One on asyncio's thread knows its call, and cannot call its caller.
  if (method.takes_context())
    context =
        method.is_asynchronous() ? context_on_loop(call) : context_off_loop(call, call.context(), nullptr, nullptr);
  auto arguments = std::make_unique<OffLoopCall>(method, call, InputShare{}, std::move(context));
  if (!weighs) return add(batched, call, std::move(arguments));
  const std::expected<detail::BatchedAs, Error> as = weigh(batched, call, *arguments);
  if (!as) return call.error(as.error());
  add(batched, call, std::move(arguments), *as);
}

}  // namespace

detail::Binding bind_batched(std::unique_ptr<PythonMethod> method, nb::object run, nb::object weigh,
                             const BatchBounds& bounds, std::shared_ptr<AsyncCalls> calls) {
  const auto [size, wait_us, bytes, concurrent, queue, queue_bytes, rows] = bounds;
  BatchOptions options{.size = size,
                       .wait = std::chrono::microseconds{std::max(wait_us, std::int64_t{0})},
                       .adaptive = wait_us < 0,
                       .rows = rows,
                       .bytes = bytes,
                       .concurrent = concurrent,
                       .queue = queue,
                       .queue_bytes = queue_bytes};
  const std::uint32_t of_use = detail::calls_of_use(options);
  auto function =
      std::make_unique<PythonBatchFunction>(std::move(run), method->is_asynchronous() ? std::move(calls) : nullptr);
  const detail::Signature* const signature = &method->signature();
  auto batched =
      std::make_unique<BatchedMethod>(std::move(method), detail::Batcher::make(std::move(function), std::move(options)),
                                      weigh.is_none() ? nb::object{} : std::move(weigh));
  const std::shared_ptr<detail::BatchCounts> batches = batched->batcher;
  const auto destroy = [](void* stored) {
    const Gil gil;
    delete static_cast<BatchedMethod*>(stored);
  };
  return {.callable = {batched.release(), destroy},
          .invoke = &invoke,
          .signature = signature,
          .concurrency = of_use,
          .batches = batches};
}

}  // namespace wirecall::python
