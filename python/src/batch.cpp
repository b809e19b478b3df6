// See batch.hpp.
#include "batch.hpp"

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <unordered_map>
#include <vector>

#include "async_calls.hpp"
#include "continuation.hpp"
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
  [[nodiscard]] PyObject* arguments() const noexcept { return arguments_.get(); }
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
class AsyncBatch final : public AsyncCalls::Entry, public std::enable_shared_from_this<AsyncBatch> {
 public:
  AsyncBatch(std::shared_ptr<const SharedObject> run, detail::StartedBatch started)
      : run_(std::move(run)), started_(std::move(started)) {}

  // ---- on the loop's thread: awaited ----

  void wait(std::coroutine_handle<> waiter, AsyncCalls& calls) {
    waiter_ = waiter;
    calls.post(shared_from_this());
  }
  /// The task has gone with its loop.
  void forget() noexcept { waiter_ = nullptr; }

  // ---- on asyncio's thread ----

  void run(PyObject* loop) override {
    decoded_.emplace(started_.batch);
    if (decoded_->empty()) return end();
    const Reference coroutine = call_function(run_->get().ptr(), decoded_->arguments());
    const Reference task = coroutine ? call_method(loop, "create_task", coroutine.get()) : Reference{};
    if (!task) return finish(nullptr);
    const nb::object done = nb::cpp_function([self = shared_from_this()](nb::handle ended) {
      if (is_cancelled(ended.ptr())) return self->end_cancelled();
      const Reference result = call_method(ended.ptr(), "result");
      self->finish(result.get());
    });
    if (!call_method(task.get(), "add_done_callback", done.ptr())) finish(nullptr);
  }

 private:
  void finish(PyObject* results) {
    decoded_->answer(results);
    end();
  }
  // As it is when the server ends.
  void end_cancelled() {
    decoded_->fail(Error{ErrorCode::cancelled});
    end();
  }
  void end() {
    decoded_.reset();
    if (started_.executor == nullptr) return;
    started_.executor->post(make_continuation([self = shared_from_this()]() noexcept {
      if (self->waiter_) self->waiter_.resume();
    }));
  }

  const std::shared_ptr<const SharedObject> run_;
  const detail::StartedBatch started_;
  std::optional<Decoded> decoded_;
  std::coroutine_handle<> waiter_;  // the loop's
};

// To be awaited: the batch has been run.
struct AsyncRun {
  AsyncRun(std::shared_ptr<AsyncBatch> of, AsyncCalls& on) noexcept : batch(std::move(of)), calls(on) {}
  AsyncRun(AsyncRun&&) = delete;
  ~AsyncRun() { batch->forget(); }
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) const { batch->wait(waiter, calls); }
  void await_resume() const noexcept {}

  std::shared_ptr<AsyncBatch> batch;
  AsyncCalls& calls;
};

class PythonBatchFunction final : public detail::BatchFunction {
 public:
  PythonBatchFunction(nb::object run, std::shared_ptr<AsyncCalls> calls)
      : run_(std::make_shared<const SharedObject>(std::move(run))), calls_(std::move(calls)) {}

  [[nodiscard]] bool waits() const noexcept override { return calls_ != nullptr; }
  void run(Batch batch) noexcept override {
    try {
      const Gil gil;
      const Decoded decoded{batch};
      if (decoded.empty()) return;
      const Reference results = call_function(run_->get().ptr(), decoded.arguments());
      decoded.answer(results.get());
    } catch (...) {
      detail::fail_batch(batch);
    }
  }
  [[nodiscard]] Task<void> start(detail::StartedBatch started) override {
    const auto batch = std::make_shared<AsyncBatch>(run_, std::move(started));
    const AsyncRun run{batch, *calls_};
    co_await run;
  }

 private:
  const std::shared_ptr<const SharedObject> run_;  // which goes on any thread
  const std::shared_ptr<AsyncCalls> calls_;        // null for a plain function
};

struct BatchedMethod {
  std::unique_ptr<PythonMethod> method;
  std::shared_ptr<detail::Batcher> batcher;
};

void invoke(void* stored, Call& call) {
  BatchedMethod& batched = *static_cast<BatchedMethod*>(stored);
  if (batched.method->is_asynchronous() && call.executor() == nullptr)
    return call.error(Error{ErrorCode::internal_error, "an async method needs a server that runs"});
  std::optional<CallContext> context;
  // One on asyncio's thread knows its call, and cannot call its caller.
  if (batched.method->takes_context())
    context = batched.method->is_asynchronous() ? context_on_loop(call)
                                                : context_off_loop(call, call.context(), nullptr, nullptr);
  auto arguments = std::make_unique<OffLoopCall>(*batched.method, call, InputShare{}, std::move(context));
  batched.batcher->add(call, {arguments.release(), [](void* held) { delete static_cast<OffLoopCall*>(held); }}, {}, 1);
}

}  // namespace

detail::Binding bind_batched(std::unique_ptr<PythonMethod> method, nb::object run, const BatchBounds& bounds,
                             std::shared_ptr<AsyncCalls> calls) {
  const auto [size, wait_us, bytes, concurrent, queue, queue_bytes] = bounds;
  BatchOptions options{.size = size,
                       .wait = std::chrono::microseconds{std::max(wait_us, std::int64_t{0})},
                       .adaptive = wait_us < 0,
                       .bytes = bytes,
                       .concurrent = concurrent,
                       .queue = queue,
                       .queue_bytes = queue_bytes};
  const std::uint32_t of_use = detail::calls_of_use(options);
  auto function =
      std::make_unique<PythonBatchFunction>(std::move(run), method->is_asynchronous() ? std::move(calls) : nullptr);
  const detail::Signature* const signature = &method->signature();
  auto batched = std::make_unique<BatchedMethod>(std::move(method),
                                                 detail::Batcher::make(std::move(function), std::move(options)));
  const auto destroy = [](void* stored) {
    const Gil gil;
    delete static_cast<BatchedMethod*>(stored);
  };
  return {.callable = {batched.release(), destroy}, .invoke = &invoke, .signature = signature, .concurrency = of_use};
}

}  // namespace wirecall::python
