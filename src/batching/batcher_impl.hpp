// BatcherImpl: the Batcher. A BatchQueue behind a lock, the timers by which its calls become ripe, and the runs of its
// function.
// Thread: any, as each function says.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "batching/adaptive_wait.hpp"
#include "batching/batch_queue.hpp"
#include "batching/batched_call.hpp"
#include "wirecall/detail/batcher.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/task.hpp"

namespace wirecall::batching {

class BatcherImpl final : public detail::Batcher, public std::enable_shared_from_this<BatcherImpl> {
 public:
  BatcherImpl(std::unique_ptr<detail::BatchFunction> function, BatchOptions options)
      : function_(std::move(function)),
        options_(std::move(options)),
        queue_({.calls = options_.size,
                .rows = options_.rows != 0 ? options_.rows : std::numeric_limits<std::size_t>::max(),
                .bytes = options_.bytes,
                .waiting = options_.queue != 0 ? options_.queue : 16 * options_.size,
                .waiting_bytes = options_.queue_bytes != 0 ? options_.queue_bytes : 4 * options_.bytes}) {}

  void add(Call& call, detail::BatchArguments arguments, const std::string& group, std::size_t rows) override;

  // ---- of one of its calls, on that one's loop's thread ----

  /// It waits no more: nobody wants its answer. False where it has left already.
  [[nodiscard]] bool give_up(BatchedCall& call) noexcept;
  /// It has waited for as long as it is to.
  void ripen(BatchedCall& call) noexcept;
  /// Its timer has been stopped, on which others may have relied.
  void stopped_timer(const BatchedCall& call) noexcept;

 private:
  /// One of the places in which batches run. The place is free again when this goes.
  class Run {
   public:
    explicit Run(std::shared_ptr<BatcherImpl> of) noexcept : of_(std::move(of)) {}
    Run(Run&&) noexcept = default;
    Run& operator=(Run&&) = delete;
    ~Run() {
      if (of_) of_->end_run();
    }
    /// Without calls where none is due, which ends the run.
    [[nodiscard]] LeavingBatch next() noexcept {
      LeavingBatch leaving = of_->take();
      if (leaving.calls.empty()) of_.reset();
      return leaving;
    }
    /// False where no other batch is due, which ends the run.
    [[nodiscard]] bool goes_on() noexcept {
      if (of_->is_due_or_end_run()) return true;
      of_.reset();
      return false;
    }
    void ran(std::size_t calls, std::chrono::nanoseconds time) const noexcept { of_->count_run(calls, time); }
    [[nodiscard]] const std::shared_ptr<BatcherImpl>& batcher() const noexcept { return of_; }
    [[nodiscard]] detail::BatchFunction& function() const noexcept { return *of_->function_; }

   private:
    std::shared_ptr<BatcherImpl> of_;
  };

  // With the lock.
  [[nodiscard]] bool begin_run() noexcept;
  [[nodiscard]] bool ticks(const detail::Executor* loop) const noexcept;
  [[nodiscard]] std::chrono::nanoseconds wait_from(std::chrono::nanoseconds now) noexcept;
  void refuse(BatchedCall& call) const noexcept;

  void add_alone(Call& call, const std::shared_ptr<BatchedCall>& added);
  void run(const BatchedCall& on) noexcept;
  [[nodiscard]] LeavingBatch take() noexcept;
  void end_run() noexcept;
  [[nodiscard]] bool is_due_or_end_run() noexcept;
  void count_run(std::size_t calls, std::chrono::nanoseconds time) noexcept;
  [[nodiscard]] static bool run_next(Run& run) noexcept;
  [[nodiscard]] static detail::BlockingPool::Work work(Run run, detail::BlockingPool& pool);
  static void go_on(Run run, detail::BlockingPool& pool) noexcept;
  static void run_all(Run run) noexcept;
  static Task<void> run_tasks(Run run, std::shared_ptr<detail::Executor> executor, Scheduler& scheduler);
  static Task<void> run_task(std::shared_ptr<BatcherImpl> of, std::shared_ptr<LeavingBatch> leaving);

  const std::unique_ptr<detail::BatchFunction> function_;
  const BatchOptions options_;

  std::mutex mutex_;  // of what follows
  BatchQueue queue_;
  std::vector<WaitingCall*> taken_;
  std::size_t running_ = 0;
  // By whose timers a batch runs once those that have come in the same turn are there: one of each loop at most, since
  // a handler may keep a loop from its timers.
  std::vector<const BatchedCall*> ticking_;
  std::chrono::nanoseconds run_time_{0};  // what a run takes at least, lately
  AdaptiveWait adaptive_{options_.size};
};

}  // namespace wirecall::batching
