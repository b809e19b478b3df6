// See loop_batch.hpp.
#include "batching/loop_batch.hpp"

#include <algorithm>
#include <utility>

#include "batching/batched_call.hpp"
#include "batching/batcher_impl.hpp"
#include "wirecall/detail/drop_after_loop.hpp"

namespace wirecall::batching {

static constexpr std::size_t kCallsExpected = 128;

LoopBatch::LoopBatch(std::shared_ptr<BatcherImpl> of, Call& first)
    : of_(std::move(of)),
      loop_(first.executor().get()),
      tasks_(&first.tasks()),
      scheduler_(first.scheduler()),
      method_(&first.method()) {
  calls_.reserve(std::min(of_->size(), kCallsExpected));
}

LoopBatch::~LoopBatch() {
  for (Entry& call : calls_) detail::drop_after_loop(call.sink);
  of_->end_turn(*this);
}

void LoopBatch::add(Call& call, detail::BatchArguments arguments) {
  Entry& added =
      calls_.emplace_back(Entry{{std::move(arguments), detail::OffLoopReply{call}}, {}, call.params().size()});
  try {
    batch_.reserve(calls_.capacity());  // so that nothing fails when they run
    added.sink = call.detach_within_turn();
  } catch (...) {
    calls_.pop_back();
    throw;
  }
  added.sink.keeps(added.bytes);
  bytes_ += added.bytes;
  if (calls_.size() == of_->size() || bytes_ > of_->bytes()) run_calls();
}

void LoopBatch::resume() noexcept {
  turn_has_ended_ = true;
  run_calls();
}

// Another thread that takes the loop over meanwhile may end the turn; it adds nothing.
void LoopBatch::run_calls() noexcept {
  if (calls_.empty() || is_running_) return;
  const std::shared_ptr<LoopBatch> self = shared_from_this();
  is_running_ = true;
  of_->close_turn(*this);
  for (auto next = calls_.begin(); next != calls_.end();) {
    const auto first = next;
    std::size_t bytes = 0;
    batch_.clear();
    for (; next != calls_.end() && (bytes == 0 || bytes + next->bytes <= of_->bytes()); ++next) {
      if (!next->sink.wanted()) continue;
      batch_.push_back(&next->entry);
      bytes += next->bytes;
    }
    if (!batch_.empty()) run(batch_);
    for (auto done = first; done != next; ++done) answer(done->entry, std::move(done->sink));
  }
  calls_.clear();
  bytes_ = 0;
  is_running_ = false;
  if (!turn_has_ended_) of_->open_turn(*this);
}

void LoopBatch::run(detail::Batch batch) noexcept {
  const std::chrono::nanoseconds began = scheduler_->now();
  {
    const detail::WatchdogScope scope{tasks_->watchdog_slot(), *method_, *this};
    of_->call_function(batch);
  }
  const std::chrono::nanoseconds ended = scheduler_->now();
  of_->count_run({.calls = batch.size(),
                  .waited = std::chrono::nanoseconds{0},
                  .time = ended - began,
                  .ended = ended,
                  .answered = are_any_answered(batch)});
}

// They came in this turn, and so before the function ran.
void LoopBatch::lose_loop(std::chrono::nanoseconds ran) {
  const std::chrono::nanoseconds began = scheduler_->now() - ran;
  for (Entry& call : calls_) call.sink.outlive_turn(began);
}

}  // namespace wirecall::batching
