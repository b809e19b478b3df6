// One call of a generated service, from its params to its answer. The service runs the closure it is given when it
// likes, on any thread; the answer is written on the thread of the call's loop.
#include "protobuf/served_call.hpp"

#include <atomic>
#include <memory>

#include "protobuf/whole_params.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/detail/detached_context.hpp"
#include "wirecall/detail/drop_after_loop.hpp"
#include "wirecall/protobuf/controller.hpp"
#include "wirecall/protobuf/message_json.hpp"

namespace wirecall::protobuf {

using google::protobuf::Message;
using wirecall::detail::BlockingPool;
using wirecall::detail::Executor;
using wirecall::detail::WatchdogScope;
using wirecall::detail::WatchdogSlot;

/// Owned by the function that serves the call, by the service until it runs the closure, and then by the executor.
class ServedCall final : public google::protobuf::Closure, public Executor::Continuation {
 public:
  ServedCall(const ServedMethod& method, Call& call)
      : method_(method),
        request_(method.service.GetRequestPrototype(&method.method).New()),
        response_(method.service.GetResponsePrototype(&method.method).New()),
        controller_(Controller::ServedTag{}, wirecall::detail::detached_context(call.context())),
        executor_(call.executor()) {}
  /// On any thread: the service may run its closure after the server has gone.
  ~ServedCall() override { wirecall::detail::drop_after_loop(sink_); }

  /// False where the params are no request: the call has been answered.
  [[nodiscard]] bool read(Call& call) {
    const std::string_view params = call.params();
    if (params.size() < wirecall::detail::kLongParams) {
      Reader& reader = *call.param_readers().reader;
      return is_read(read_params(params, reader, *request_), reader, call);
    }
    wirecall::detail::OwnedParams owned{params, call.codec()};
    bool fits = false;
    {
      const WatchdogScope scope{call.watchdog_slot(), call.method(), &call, WatchdogSlot::kAround};
      fits = read_params(owned.text.view(), *owned.readers.reader, *request_);
    }
    return is_read(fits, *owned.readers.reader, call);
  }

  /// The service's method, on this thread. `self` is this.
  void call_service(const std::shared_ptr<ServedCall>& self) {
    closure_ = self;
    try {
      method_.service.CallMethod(&method_.method, &controller_, request_.get(), response_.get(), this);
    } catch (...) {
      closure_.reset();
      throw;
    }
  }
  void take_sink(Call& call) {
    sink_ = call.detach();
    sink_.keeps(call.params().size());
  }
  /// Answers now where the closure has run, else when it runs.
  void answer_or_detach(Call& call) {
    if (state_.load() == State::done) return answer(call);
    if (executor_ == nullptr) {
      if (state_.exchange(State::abandoned) == State::done) return answer(call);
      return call.error(Error{ErrorCode::internal_error});
    }
    take_sink(call);
    if (state_.exchange(State::detached) == State::done) resume();
  }
  /// The same for a service that blocks, on a thread of the pool.
  void detach(Call& call) {
    take_sink(call);
    state_.store(State::detached);
  }
  void call_service_off_loop(const std::shared_ptr<ServedCall>& self) noexcept {
    try {
      call_service(self);
    } catch (...) {
      thrown_ = std::current_exception();
      if (state_.exchange(State::done) == State::detached) executor_->post(self);
    }
  }

  // ---- the closure, on any thread ----

  void Run() override {
    const std::shared_ptr<ServedCall> self = std::move(closure_);
    if (state_.exchange(State::done) == State::detached) executor_->post(self);
  }
  /// On the loop's thread, where the sink goes as well: this object may go on any.
  void resume() noexcept override {
    ReplySink sink = std::move(sink_);
    answer(sink);
  }

 private:
  static bool is_read(bool fits, Reader& reader, Call& call) {
    if (!fits) call.invalid_params(reader);
    if (reader.take_own_form() && fits) call.use_own_form();
    return fits;
  }

  enum class State : std::uint8_t {
    running,    ///< the service's method
    detached,   ///< the answer is awaited
    done,       ///< the closure has run
    abandoned,  ///< the call has been answered without it
  };

  template <class Sink>
  void answer(Sink& sink) noexcept {
    try {
      controller_.answered();
      if (thrown_) std::rethrow_exception(thrown_);
      if (controller_.Failed()) return wirecall::detail::answer_error(sink, *controller_.error());
      if (Writer* const writer = sink.begin_result()) write(*writer, *response_);
      sink.end_result();
    } catch (...) {
      sink.error_in_flight();
    }
  }

  const ServedMethod& method_;
  const std::unique_ptr<Message> request_;
  const std::unique_ptr<Message> response_;
  Controller controller_;
  const std::shared_ptr<Executor> executor_;
  std::atomic<State> state_{State::running};
  std::shared_ptr<ServedCall> closure_;  // the service's share
  std::exception_ptr thrown_;
  ReplySink sink_;
};

void ServedMethod::invoke(void* callable, Call& call) {
  const auto& method = *static_cast<const ServedMethod*>(callable);
  static_cast<void>(call.bounds());  // its time is counted from here
  const auto served = std::make_shared<ServedCall>(method, call);
  if (!served->read(call)) return;
  if (BlockingPool* const pool = method.blocking ? call.blocking_pool() : nullptr) {
    served->detach(call);
    return pool->run([served]() -> BlockingPool::Job {
      served->call_service_off_loop(served);
      return [] {};
    });
  }
  {
    const WatchdogScope scope{call.watchdog_slot(), call.method(), &call};
    served->call_service(served);
  }
  served->answer_or_detach(call);
}

}  // namespace wirecall::protobuf
