// BatchedCall: one call of a batched function, from when it has been decoded until it has been answered. It is its
// loop's: there it comes, is cancelled and is answered. In between whoever runs its batch has it. Those of a batch
// leave as a LeavingBatch.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "batching/batch_queue.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/batcher.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/detail/drop_after_loop.hpp"
#include "wirecall/detail/executor.hpp"

namespace wirecall::batching {

class BatcherImpl;

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
        tasks_(&call.tasks()) {}
  ~BatchedCall() { detail::drop_after_loop(sink_); }

  /// On its loop's thread.
  void wait_for_answer(Call& call) {
    sink_ = call.detach();
    sink_.keeps(bytes);
  }
  void watch(std::stop_token stop) { on_stop_.emplace(std::move(stop), Stop{this}); }
  void start_timer(std::chrono::nanoseconds delay) {
    scheduler_->start(*this, delay);
    timer_runs_ = true;
  }
  void expired() override;
  void resume() noexcept override;

  /// With the batcher's lock: while it waits it keeps itself.
  std::shared_ptr<BatchedCall> kept;

  [[nodiscard]] const detail::Executor* executor() const noexcept { return executor_.get(); }
  [[nodiscard]] Scheduler* scheduler() const noexcept { return scheduler_; }
  [[nodiscard]] detail::BlockingPool* pool() const noexcept { return pool_; }
  [[nodiscard]] TaskScope& tasks() const noexcept { return *tasks_; }
  /// Has it answered on its loop's thread.
  void post() noexcept {
    if (executor_ == nullptr) return resume();
    executor_->post(shared_from_this());
  }

 private:
  struct Stop {
    BatchedCall* call;
    void operator()() const noexcept { call->stopped(); }
  };

  void stopped() noexcept;
  void stop_timer() noexcept;

  const std::shared_ptr<BatcherImpl> batcher_;
  const std::shared_ptr<detail::Executor> executor_;
  Scheduler* const scheduler_;
  detail::BlockingPool* const pool_;
  TaskScope* const tasks_;
  ReplySink sink_;
  bool timer_runs_ = false;
  std::optional<std::stop_callback<Stop>> on_stop_;
};

/// What leaves together.
struct LeavingBatch {
  std::vector<std::shared_ptr<BatchedCall>> calls;
  std::vector<detail::BatchEntry*> entries;  // the same

  void add(std::shared_ptr<BatchedCall> call) {
    entries.push_back(call.get());
    calls.push_back(std::move(call));
  }
  void answer() const noexcept {
    for (const std::shared_ptr<BatchedCall>& call : calls) call->post();
  }
};

}  // namespace wirecall::batching
