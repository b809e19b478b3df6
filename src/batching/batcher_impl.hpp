// BatcherImpl: the Batcher. A BatchQueue behind a lock, the timers by which its calls become ripe, and the runs of its
// function.
// Thread: any, as each function says.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "batching/adaptive_wait.hpp"
#include "batching/batch_queue.hpp"
#include "batching/batched_call.hpp"
#include "wirecall/detail/batcher.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/task.hpp"

namespace wirecall::batching {

class BatcherImpl final : public detail::Batcher, public std::enable_shared_from_this<BatcherImpl> {
 public:
  BatcherImpl(std::unique_ptr<detail::BatchFunction> function, BatchOptions options);

  void add(Call& call, detail::BatchArguments arguments, const std::string& group, std::size_t rows) override;

  // ---- of one of its calls, on that one's loop's thread ----

  /// It waits no more: nobody wants its answer. False where it has left already.
  [[nodiscard]] bool give_up(BatchedCall& call) noexcept;
  /// Its timer has expired: it has waited for as long as it is to.
  void ripen(BatchedCall& call) noexcept;
  /// Its timer has been stopped, on which others may have relied.
  void stopped_timer(const BatchedCall& call) noexcept;
  /// It has been told to start a run.
  void start(BatchedCall& call) noexcept;

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
  void start_what_is_due() noexcept;
  [[nodiscard]] std::chrono::nanoseconds wait_from(std::chrono::nanoseconds now) noexcept;
  [[nodiscard]] bool ticks(const detail::Executor* loop) const noexcept;
  void refuse(BatchedCall& call) const noexcept;

  void add_alone(Call& call, const std::shared_ptr<BatchedCall>& added);
  void run(const BatchedCall& on) noexcept;
  void take(LeavingBatch& leaving) noexcept;
  void end_run() noexcept;
  void count_run(std::size_t calls, std::chrono::nanoseconds time) noexcept;
  static Task<void> run_alone(std::shared_ptr<BatcherImpl> of, std::shared_ptr<LeavingBatch> leaving);

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
