// Detached (call.hpp): answers that are given later, on any thread.
#include "c/call.hpp"
#include "wirecall/detail/detached_context.hpp"
#include "wirecall/detail/drop_after_loop.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::c {

Detached::Detached(Call& call)
    : text_(call.params()),
      reader_(call.codec().reader()),
      call_({text_.padded().data(), text_.size()}, nullptr, reader_.get(), nullptr),
      context_(detail::detached_context(call.context())),
      executor_(call.executor()),
      reply_(call),
      sink_(call.detach()) {
  call_.detached = this;
  sink_.keeps(text_.size());
}

Detached::~Detached() { detail::drop_after_loop(sink_); }

void Detached::resume() noexcept {
  reply_.give(sink_);
  sink_ = ReplySink{};
}

void Detached::post_answer() noexcept {
  answer_.store(Answer::written, std::memory_order_release);
  if (executor_ != nullptr) executor_->post(shared_from_this());
}

// An answer that another thread is writing just now comes too late, and the sink answers as one that was dropped.
void Detached::end_without_executor() noexcept {
  if (begin_answer()) {
    reply_.error(Error{ErrorCode::cancelled});
    post_answer();
  }
  if (answer_.load(std::memory_order_acquire) == Answer::written) reply_.give(sink_);
  sink_ = ReplySink{};
}

void Detached::release() noexcept {
  const std::shared_ptr<Detached> owner = std::move(owner_);
  if (!begin_answer()) return;
  try {
    reply_.error(call_.params.failed ? failure_of(call_.params) : Error{ErrorCode::internal_error});
  } catch (...) {
    reply_.error_in_flight();
  }
  post_answer();
}

}  // namespace wirecall::c

using wirecall::c::Detached;

wc_call* wc_call_defer(wc_call* call) {
  if (call == nullptr) {
    wirecall::c::fail_null();
    return nullptr;
  }
  // The handler of a blocking method has a detached call, which it may keep.
  if (call->detached != nullptr && !call->detached->is_deferred()) return call->detached->give_to_owner();
  if (call->detached != nullptr || call->answered || call->params.failed) {
    wirecall::c::fail(WC_ERROR_STATE, "the call has an answer, or is deferred, already");
    return nullptr;
  }
  return wirecall::c::guarded_pointer([call] {
    return wirecall::c::on_loop(*call, [call] {
      try {
        std::shared_ptr<Detached>& deferred = call->params.extras().deferred;
        deferred = std::make_shared<Detached>(*call->call);
        call->answered = true;
        return deferred->give_to_owner();
      } catch (...) {
        call->answered = true;
        call->call->error(wirecall::Error{wirecall::ErrorCode::internal_error});
        throw;
      }
    });
  });
}

void wc_call_release(wc_call* deferred) {
  if (deferred != nullptr && deferred->detached != nullptr) deferred->detached->release();
}
