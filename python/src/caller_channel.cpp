// See caller_channel.hpp.
#include "caller_channel.hpp"

#include <condition_variable>
#include <mutex>

#include "async_calls.hpp"
#include "continuation.hpp"
#include "encode.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "message/own_error.hpp"
#include "reference.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/task.hpp"

namespace wirecall::python {
namespace nb = nanobind;
namespace {

using Outcome = std::variant<Buffer, Error>;

Error caller_gone() { return {ErrorCode::provider_lost, "the connection has gone on which the caller was"}; }

nb::object value_of(Outcome outcome) {
  if (const Error* const error = std::get_if<Error>(&outcome)) raise(*error);
  return result_of(std::get<Buffer>(std::move(outcome)));
}

// Whoever waits for an answer.
class Waiting {
 public:
  Waiting() = default;
  Waiting(Waiting&&) = delete;
  virtual ~Waiting() = default;
  /// Once, on any thread.
  virtual void give(Outcome outcome) = 0;
};

class WaitingThread final : public Waiting {
 public:
  void give(Outcome outcome) override {
    {
      const std::scoped_lock lock{mutex_};
      outcome_.emplace(std::move(outcome));
    }
    given_.notify_one();
  }
  Outcome wait() {
    std::unique_lock lock{mutex_};
    given_.wait(lock, [this] { return outcome_.has_value(); });
    return *std::move(outcome_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::optional<Outcome> outcome_;
};

// A future of asyncio's, which is completed on its thread.
class WaitingFuture final : public Waiting, public std::enable_shared_from_this<WaitingFuture> {
 public:
  WaitingFuture(std::weak_ptr<AsyncCalls> calls, nb::object future)
      : calls_(std::move(calls)), future_(std::move(future)) {}

  void give(Outcome outcome) override {
    const auto calls = calls_.lock();
    if (calls == nullptr) return;
    calls->call_soon([self = shared_from_this(), outcome = std::move(outcome)](PyObject*) mutable {
      self->complete(std::move(outcome));
    });
  }

 private:
  void complete(Outcome outcome) {
    const nb::object future = future_.take();
    try {
      if (nb::cast<bool>(future.attr("done")())) return;
      nb::object value;
      try {
        value = value_of(std::move(outcome));
      } catch (const nb::python_error& failure) {
        return static_cast<void>(future.attr("set_exception")(failure.value()));
      }
      future.attr("set_result")(value);
    } catch (nb::python_error& failure) {
      failure.discard_as_unraisable("the answer to ctx.call");
    }
  }

  std::weak_ptr<AsyncCalls> calls_;
  SharedObject future_;
};

// A call to the caller, until its answer. Dropped without one, it answers that the caller has gone.
class PendingCallerRequest final : public detail::Executor::Continuation,
                                   public std::enable_shared_from_this<PendingCallerRequest> {
 public:
  PendingCallerRequest(Context context, TaskScope& tasks, std::string method, Buffer params,
                       std::shared_ptr<Waiting> waiting)
      : context_(std::move(context)),
        tasks_(&tasks),
        method_(std::move(method)),
        params_(std::move(params)),
        waiting_(std::move(waiting)) {}
  ~PendingCallerRequest() override {
    if (waiting_ != nullptr) waiting_->give(caller_gone());
  }

  void resume() noexcept override {
    if (stop_.stop_requested()) return finish(Error{ErrorCode::cancelled});
    with_handler_.emplace(context_.stop_token(), [this] { stop_.request_stop(); });
    tasks_->start(ask(shared_from_this()), stop_.get_token(), [self = shared_from_this()](TaskResult<Buffer> result) {
      self->with_handler_.reset();
      if (result) return self->finish(*std::move(result));
      try {
        std::rethrow_exception(result.error());
      } catch (const Error& error) {
        self->finish(error);
      } catch (const std::exception& failure) {
        self->finish(Error{ErrorCode::internal_error, failure.what()});
      }
    });
  }
  /// On the loop's thread.
  void stop() noexcept { stop_.request_stop(); }

 private:
  static Task<Buffer> ask(std::shared_ptr<PendingCallerRequest> self) {
    const detail::CallerRequest call{self->context_, self->method_, self->params_.view()};
    co_return co_await call.answer();
  }
  void finish(Outcome outcome) { std::exchange(waiting_, nullptr)->give(std::move(outcome)); }

  Context context_;
  TaskScope* tasks_;
  std::string method_;
  Buffer params_;
  std::shared_ptr<Waiting> waiting_;
  std::stop_source stop_;
  std::optional<std::stop_callback<std::function<void()>>> with_handler_;  // the handler's end ends this call
};

Buffer params_of(nb::handle args, nb::handle kwargs) {
  Buffer text;
  if (!has_params(args, kwargs)) return text;
  const std::unique_ptr<Writer> writer = json_codec().writer();
  writer->reset(text);
  write_params(*writer, args, kwargs);
  return text;
}

}  // namespace

void refuse_to_notify(ErrorCode code, const char* why) {
  raise(message::make({.code = code, .reason = why, .delivered = "no"}));
}

CallerChannel::CallerChannel(Call& call, Context context, std::shared_ptr<AsyncCalls> calls,
                             std::shared_ptr<HandlerTask> task)
    : context_(std::move(context)),
      tasks_(&call.tasks()),
      executor_(call.executor()),
      calls_(calls),
      task_(std::move(task)),
      refused_(std::make_shared<std::atomic<int>>(0)) {}

nb::object CallerChannel::call(const std::string& method, nb::handle args, nb::handle kwargs) const {
  Buffer params = params_of(args, kwargs);
  const auto request = [&](std::shared_ptr<Waiting> waiting) {
    auto made =
        std::make_shared<PendingCallerRequest>(context_, *tasks_, method, std::move(params), std::move(waiting));
    executor_->post(made);
    return made;
  };
  if (task_ == nullptr) {
    const auto waiting = std::make_shared<WaitingThread>();
    std::optional<Outcome> outcome;
    {
      const Released released;
      request(waiting);
      outcome.emplace(waiting->wait());
    }
    return value_of(*std::move(outcome));
  }
  nb::object future = nb::module_::import_("asyncio").attr("get_running_loop")().attr("create_future")();
  const auto made = request(std::make_shared<WaitingFuture>(calls_, future));
  future.attr("add_done_callback")(
      nb::cpp_function([executor = executor_, asked = std::weak_ptr{made}](nb::handle ended) {
        const auto still = asked.lock();
        if (still == nullptr || !nb::cast<bool>(ended.attr("cancelled")())) return;
        executor->post(make_continuation([still] { still->stop(); }));
      }));
  return future;
}

bool CallerChannel::can_notify() const noexcept { return detail::can_notify_caller(context_); }

// Whether this is the handler itself, on its thread and in its task.
bool CallerChannel::is_in_handler() const {
  if (task_ == nullptr) return detail::runs_handler_of(handled_call());
  if (task_->task == nullptr) return !task_->ended;  // it is being made, and may run already
  const Reference module = Reference::steal(PyImport_ImportModule("asyncio"));
  const Reference current = module ? call_method(module.get(), "current_task") : Reference{};
  if (!current) PyErr_Clear();  // no loop runs on this thread
  return current.get() == task_->task;
}

void CallerChannel::notify(const std::string& method, nb::handle args, nb::handle kwargs) const {
  if (context_.caller_link() == nullptr)
    refuse_to_notify(ErrorCode::provider_lost,
                     "the caller cannot be told: it has no connection of its own, as by HTTP POST");
  if (!can_notify())
    refuse_to_notify(ErrorCode::provider_lost,
                     "the caller cannot be told: it has gone, or the call was answered with an error");
  if (refused_->load(std::memory_order_relaxed) == static_cast<int>(ErrorCode::limit_exceeded))
    refuse_to_notify(ErrorCode::limit_exceeded, "too many notifications wait for the call to be answered");
  executor_->post(make_continuation(
      [context = context_, method, params = params_of(args, kwargs), by_handler = is_in_handler(), refused = refused_] {
        try {
          detail::notify_caller(context, method, params.view(), by_handler);
          refused->store(0, std::memory_order_relaxed);
        } catch (const Error& error) {
          refused->store(error.code(), std::memory_order_relaxed);  // the next one raises
        }
      }));
}

}  // namespace wirecall::python
