// BatchedCall: one call of a batched function, from when it has been decoded until it has been answered. It is its
// loop's: there it comes, is cancelled and is answered, and there runs its stream, if it is answered by one. In between
// whoever runs its batch has it. Those of a batch leave as a LeavingBatch.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "batching/batch_queue.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/batcher.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/detail/items.hpp"
#include "wirecall/error.hpp"
#include "wirecall/task.hpp"

namespace wirecall::batching {

class BatcherImpl;

/// Gives the call what its reply says. On its loop's thread.
void answer(detail::BatchEntry& entry, ReplySink sink) noexcept;

/// One call, from when it has been decoded until it has been answered.
class BatchedCall final : public detail::BatchEntry,
                          public WaitingCall,
                          public detail::Executor::Continuation,
                          public Timer,
                          public std::enable_shared_from_this<BatchedCall> {
 public:
  BatchedCall(std::shared_ptr<BatcherImpl> batcher, Call& call, detail::BatchArguments decoded)
      : detail::BatchEntry{std::move(decoded), detail::OffLoopReply{call}},
        batcher_(std::move(batcher)),
        executor_(call.executor()),
        scheduler_(call.scheduler()),
        pool_(call.blocking_pool()),
        tasks_(&call.tasks()),
        method_(&call.method()),
        came_at_(scheduler_ != nullptr ? scheduler_->now() : std::chrono::nanoseconds{0}),
        stop_(call.stop_token()) {}
  ~BatchedCall();

  /// On its loop's thread.
  void wait_for_answer(Call& call) {
    sink_ = call.detach();
    sink_.keeps(bytes);
  }
  void watch() { on_stop_.emplace(stop_, Stop{this}); }
  void start_timer(std::chrono::nanoseconds delay) {
    scheduler_->start(*this, delay);
    timer_runs_ = true;
  }
  void stop_timer() noexcept;
  void expired() override;
  void resume() noexcept override;

  // With the batcher's lock.
  std::shared_ptr<BatchedCall> kept;  ///< itself, while it waits
  bool starts = false;                ///< it has been told to start a run on its loop

  [[nodiscard]] const detail::Executor* executor() const noexcept { return executor_.get(); }
  [[nodiscard]] Scheduler* scheduler() const noexcept { return scheduler_; }
  [[nodiscard]] detail::BlockingPool* pool() const noexcept { return pool_; }
  [[nodiscard]] TaskScope& tasks() const noexcept { return *tasks_; }
  [[nodiscard]] const Method& method() const noexcept { return *method_; }
  /// By its loop's clock; 0 without a loop.
  [[nodiscard]] std::chrono::nanoseconds came_at() const noexcept { return came_at_; }
  /// Has it answered on its loop's thread.
  void post() noexcept { post(shared_from_this()); }
  /// Has that run on the call's loop, or here where it has none.
  void post(std::shared_ptr<detail::Executor::Continuation> continuation) const noexcept {
    const std::shared_ptr<detail::Executor> loop = executor_;  // this may go meanwhile
    if (loop == nullptr) return continuation->resume();
    loop->post(std::move(continuation));
  }
  /// Has a run start on its loop's thread. With `starts`, which is set until then.
  void post_start() noexcept {
    executor_->post(std::shared_ptr<detail::Executor::Continuation>{shared_from_this(), &starter_});
  }

 private:
  class Starter final : public detail::Executor::Continuation {
   public:
    explicit Starter(BatchedCall& of) noexcept : of_(&of) {}
    void resume() noexcept override;

   private:
    BatchedCall* of_;
  };
  struct Stop {
    BatchedCall* call;
    void operator()() const noexcept { call->stopped(); }
  };

  void stopped() noexcept;
  void start_stream() noexcept;
  void stream_ended(const TaskResult<detail::StreamResult>& result) noexcept;

  const std::shared_ptr<BatcherImpl> batcher_;
  const std::shared_ptr<detail::Executor> executor_;
  Scheduler* const scheduler_;
  detail::BlockingPool* const pool_;
  TaskScope* const tasks_;
  const Method* const method_;
  const std::chrono::nanoseconds came_at_;
  const std::stop_token stop_;
  Starter starter_{*this};
  ReplySink sink_;
  bool timer_runs_ = false;
  std::optional<std::stop_callback<Stop>> on_stop_;
};

/// Whether the function, which has run, has a result for any of them.
[[nodiscard]] inline bool are_any_answered(detail::Batch batch) noexcept {
  return std::ranges::any_of(batch, [](const detail::BatchEntry* entry) { return !entry->reply.has_failed(); });
}

/// What leaves together. Whoever has it answers it; what is dropped unanswered, with the loop that was to run it, is
/// answered -32603.
class LeavingBatch {
 public:
  LeavingBatch() = default;
  LeavingBatch(LeavingBatch&&) = delete;
  ~LeavingBatch() {
    for (detail::BatchEntry* const entry : entries_) entry->reply.error(Error{ErrorCode::internal_error});
    answer();
  }

  void reserve(std::size_t calls) {
    calls_.reserve(calls);
    entries_.reserve(calls);
  }
  void add(std::shared_ptr<BatchedCall> call) {
    entries_.push_back(call.get());
    calls_.push_back(std::move(call));
  }
  [[nodiscard]] bool empty() const noexcept { return calls_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
  /// By the clock of a loop of theirs, of the steady clock without one. Any thread.
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept {
    const Scheduler* const scheduler = calls_.front()->scheduler();
    return scheduler != nullptr ? scheduler->now() : std::chrono::steady_clock::now().time_since_epoch();
  }
  /// For how long the first of them has waited.
  [[nodiscard]] std::chrono::nanoseconds waited() const noexcept;
  [[nodiscard]] detail::Batch entries() const noexcept { return entries_; }
  /// Each with what its reply says.
  void answer() noexcept;

 private:
  using Calls = std::vector<std::shared_ptr<BatchedCall>>;
  struct Answers;

  void post(Calls::iterator first) noexcept;

  Calls calls_;
  std::vector<detail::BatchEntry*> entries_;  // the same
};

}  // namespace wirecall::batching
