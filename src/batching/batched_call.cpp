// See batched_call.hpp.
#include "batching/batched_call.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <ranges>

#include "batching/batcher_impl.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/detail/drop_after_loop.hpp"

namespace wirecall::batching {

// The items of a stream that has not run refer to the caller's calls, as the sink does, which has to go last.
BatchedCall::~BatchedCall() {
  stream = {};
  arguments.reset();
  detail::drop_after_loop(sink_);
}

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
  const bool waited = batcher_->give_up(*this);
  stop_timer();  // also of one that runs: it may go with another loop
  if (!waited) return;
  const ReplySink dropped = std::move(sink_);
}

void BatchedCall::Starter::resume() noexcept { of_->batcher_->start(*of_); }

void BatchedCall::resume() noexcept {
  on_stop_.reset();
  stop_timer();
  if (!stream) return batching::answer(*this, std::move(sink_));
  if (!stop_.stop_requested()) return start_stream();
  stream = {};
  const ReplySink dropped = std::move(sink_);
}

// What it borrows of the call's params lasts until it has ended, since it keeps the call.
void BatchedCall::start_stream() noexcept {
  try {
    tasks_->start(
        std::move(stream), stop_,
        [self = shared_from_this()](const TaskResult<detail::StreamResult>& result) { self->stream_ended(result); },
        method_);
  } catch (const std::bad_alloc&) {
    sink_.error_in_flight();
  }
}

void BatchedCall::stream_ended(const TaskResult<detail::StreamResult>& result) noexcept {
  try {
    if (!result) std::rethrow_exception(result.error());
    detail::answer(sink_, *result);
  } catch (...) {
    sink_.error_in_flight();
  }
}

void answer(detail::BatchEntry& entry, ReplySink sink) noexcept {
  if (entry.failure != nullptr && sink.wanted() && !entry.failure->told.exchange(true))
    entry.reply.error(entry.failure->exception);
  entry.reply.give(sink);
}

// ---- those of a batch ----

// The answers to one loop's calls. They are posted together: each post may wake that loop.
struct LeavingBatch::Answers final : detail::Executor::Continuation {
  void resume() noexcept override {
    for (const std::shared_ptr<BatchedCall>& call : calls) call->resume();
  }

  Calls calls;
};

std::chrono::nanoseconds LeavingBatch::waited() const noexcept {
  if (calls_.front()->scheduler() == nullptr) return std::chrono::nanoseconds{0};  // without a loop nobody waits
  const auto came_at = [](const std::shared_ptr<BatchedCall>& call) { return call->came_at(); };
  return calls_.front()->scheduler()->now() - std::ranges::min(calls_ | std::views::transform(came_at));
}

void LeavingBatch::answer() noexcept {
  entries_.clear();
  while (!calls_.empty()) {
    const BatchedCall& last = *calls_.back();
    const auto first = std::find_if(calls_.rbegin(), calls_.rend(), [&last](const std::shared_ptr<BatchedCall>& call) {
                         return call->executor() != last.executor();
                       }).base();
    post(first);
    calls_.erase(first, calls_.end());
  }
}

// All from there on are of one loop.
void LeavingBatch::post(Calls::iterator first) noexcept {
  std::shared_ptr<Answers> answers;
  try {
    answers = std::make_shared<Answers>();
    answers->calls.reserve(static_cast<std::size_t>(calls_.end() - first));
  } catch (const std::bad_alloc&) {
    for (auto call = first; call != calls_.end(); ++call) (*call)->post();
    return;
  }
  const BatchedCall& any = **first;  // kept by what is posted
  std::move(first, calls_.end(), std::back_inserter(answers->calls));
  any.post(std::move(answers));
}

}  // namespace wirecall::batching
