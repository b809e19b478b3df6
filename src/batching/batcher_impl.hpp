// BatcherImpl: the Batcher. A BatchQueue behind a lock, the timers by which its calls become ripe, and the runs of its
// function.
// Thread: any, as each function says.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/histogram.hpp"
#include "batching/adaptive_wait.hpp"
#include "batching/batch_queue.hpp"
#include "batching/batched_call.hpp"
#include "batching/loop_batch.hpp"
#include "batching/quick_runs.hpp"
#include "wirecall/detail/batcher.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/task.hpp"

namespace wirecall::batching {

class BatcherImpl final : public detail::Batcher, public std::enable_shared_from_this<BatcherImpl> {
 public:
  BatcherImpl(std::unique_ptr<detail::BatchFunction> function, BatchOptions options);

  [[nodiscard]] bool runs_in_turn(Call& call) noexcept override;
  void add(Call& call, detail::BatchArguments arguments, const detail::BatchedAs& as) override;
  [[nodiscard]] std::optional<detail::BatchSpreads> spreads() const override;
  void leave_now() noexcept override;

  // ---- of one of its calls, on that one's loop's thread ----

  /// It waits no more: nobody wants its answer. False where it has left already.
  [[nodiscard]] bool give_up(BatchedCall& call) noexcept;
  /// Its timer has expired: it has waited for as long as it is to.
  void ripen(BatchedCall& call) noexcept;
  /// Its timer has been stopped, on which others may have relied.
  void stopped_timer(const BatchedCall& call) noexcept;
  /// It has been told to start a run.
  void start(BatchedCall& call) noexcept;

  // ---- of a LoopBatch ----

  /// No call joins it, until it is opened again. On its loop's thread.
  void close_turn(const LoopBatch& batch) noexcept;
  void open_turn(LoopBatch& batch) noexcept;
  /// The same, and its place is free. Any thread.
  void end_turn(const LoopBatch& batch) noexcept;
  /// In the place that has been taken. Any thread.
  void call_function(detail::Batch batch) noexcept { function_->run(batch); }
  struct Run {
    std::size_t calls;
    std::chrono::nanoseconds waited;  ///< for how long the first of them had
    std::chrono::nanoseconds time;
    std::chrono::nanoseconds ended;  ///< by LeavingBatch::now
    bool answered;  ///< a call has a result: a run in which all fail, such as by their params, may have done nothing
  };
  /// One has ended. Any thread.
  void count_run(const Run& run) noexcept;
  /// The most calls in a batch.
  [[nodiscard]] std::size_t size() const noexcept { return options_.size; }
  /// The most bytes of params in one.
  [[nodiscard]] std::size_t bytes() const noexcept { return options_.bytes; }

 private:
  /// One of the places in which batches run, one batch each time. When this goes, the place is free, and the next batch
  /// that is due is started by one of its own calls, on that one's loop.
  class Place {
   public:
    explicit Place(std::shared_ptr<BatcherImpl> of) noexcept : of_(std::move(of)) {}
    Place(Place&&) noexcept = default;
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (of_) of_->end_run();
    }
    /// Takes the batch that is due, if there still is one, runs it and answers it.
    void run() const noexcept;
    /// The same of a function that waits.
    [[nodiscard]] static Task<void> run_task(Place place, std::shared_ptr<detail::Executor> executor,
                                             Scheduler& scheduler);

   private:
    std::shared_ptr<BatcherImpl> of_;
  };

  // With the lock.
  [[nodiscard]] bool begin_run() noexcept;
  [[nodiscard]] bool go_on_gathering(BatchedCall& call) noexcept;
  void end_gathering() noexcept;
  void start_what_is_due() noexcept;
  [[nodiscard]] bool ticks(const detail::Executor* loop) const noexcept;
  void refuse(BatchedCall& call) const noexcept;

  void weigh_from_now_on() noexcept;
  [[nodiscard]] bool add_to_turn(Call& call, detail::BatchArguments& arguments);
  void add_alone(Call& call, const std::shared_ptr<BatchedCall>& added);
  void run(const BatchedCall& on) noexcept;
  void take(LeavingBatch& leaving) noexcept;
  void end_run() noexcept;
  void run_and_count(const LeavingBatch& leaving) noexcept;
  static Task<void> run_alone(std::shared_ptr<BatcherImpl> of, std::shared_ptr<LeavingBatch> leaving);

  const std::unique_ptr<detail::BatchFunction> function_;
  const BatchOptions options_;
  std::atomic<bool> quick_{false};  // it is called on the loop, when the turn has ended

  mutable std::mutex mutex_;  // of what follows
  bool has_to_weigh_;         // waits, streams, rows or priorities: then each call waits in the queue
  BatchQueue queue_;
  std::vector<WaitingCall*> taken_;
  std::size_t running_ = 0;
  std::vector<LoopBatch*> turns_;  // one of each loop at most
  QuickRuns quick_runs_;
  // By whose timers a batch runs once those are there that come in the same turn, or for which others wait: one of each
  // loop at most, since a handler may keep a loop from its timers. They wait.
  std::vector<const BatchedCall*> ticking_;
  std::chrono::nanoseconds run_time_{0};  // what a run takes at least, lately
  AdaptiveWait adaptive_{options_.size};
  // As rpc::MethodCounts: to an eighth, waits up to 18 minutes.
  Histogram<4, 20> calls_in_batch_;
  Histogram<4, 40> waits_;
};

}  // namespace wirecall::batching
