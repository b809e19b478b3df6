// LoopBatch: calls of one batched function that come in one turn of one loop, which runs them itself: those that fill a
// batch at once, the others when the turn has ended. So leave those of a function that has been quick of late, since to
// hand them to a thread would cost more than they do. While the function runs another thread may take the loop over, as
// with any plain handler. It has one of the places in which batches run, from its first call on. Thread: its loop's,
// but for what says so.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "wirecall/call.hpp"
#include "wirecall/detail/batcher.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/detail/watchdog_slot.hpp"

namespace wirecall::batching {

class BatcherImpl;

class LoopBatch final : public detail::Executor::Continuation,
                        private detail::BatchHandler,
                        public std::enable_shared_from_this<LoopBatch> {
 public:
  /// The place has been taken.
  LoopBatch(std::shared_ptr<BatcherImpl> of, Call& first);
  LoopBatch(LoopBatch&&) = delete;
  /// What is left is answered -32603. Any thread, once the loop has ended.
  ~LoopBatch() override;

  [[nodiscard]] const detail::Executor* loop() const noexcept { return loop_; }
  /// Throws std::bad_alloc, and has no effect then.
  void add(Call& call, detail::BatchArguments arguments);
  /// The turn has ended.
  void resume() noexcept override;

 private:
  struct Entry {
    detail::BatchEntry entry;
    ReplySink sink;
    std::size_t bytes;  // of its params
  };

  void run_calls() noexcept;
  void run(detail::Batch batch) noexcept;
  void lose_loop(std::chrono::nanoseconds ran) override;

  const std::shared_ptr<BatcherImpl> of_;
  const detail::Executor* const loop_;
  TaskScope* const tasks_;
  Scheduler* const scheduler_;
  const Method* const method_;
  std::vector<Entry> calls_;  // in the order in which they came; a batch at most, and what is too many bytes for it
  std::vector<detail::BatchEntry*> batch_;
  bool is_running_ = false;
  bool turn_has_ended_ = false;
  std::size_t bytes_ = 0;  // of their params
};

}  // namespace wirecall::batching
