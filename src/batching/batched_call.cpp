// See batched_call.hpp.
#include "batching/batched_call.hpp"

#include "batching/batcher_impl.hpp"

namespace wirecall::batching {

void BatchedCall::expired() {
  timer_runs_ = false;
  batcher_->ripen(*this);
}

void BatchedCall::stop_timer() noexcept {
  if (!timer_runs_) return;
  scheduler_->stop(*this);
  timer_runs_ = false;
  batcher_->stopped_timer(*this);
}

void BatchedCall::stopped() noexcept {
  const std::shared_ptr<BatchedCall> self = shared_from_this();
  stop_timer();  // also of one that runs: it may go with another loop
  if (!batcher_->give_up(*this)) return;
  const ReplySink dropped = std::move(sink_);
}

void BatchedCall::Starter::resume() noexcept { of_->batcher_->start(*of_); }

void BatchedCall::resume() noexcept {
  on_stop_.reset();
  stop_timer();
  ReplySink sink = std::move(sink_);
  if (failure != nullptr && sink.wanted() && !failure->told.exchange(true)) reply.error(failure->exception);
  reply.give(sink);
}

}  // namespace wirecall::batching
