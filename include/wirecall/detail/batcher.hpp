// Batcher: gathers the calls of one batched function, on whichever loops they come, and has the function run for those
// that leave together (src/batching/batch_queue.hpp says which). BatchFunction is that function without its types.
// Thread: any, as each function says; one lock guards what waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "wirecall/batch_options.hpp"
#include "wirecall/detail/batch_counts.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/detail/items.hpp"
#include "wirecall/detail/off_loop_reply.hpp"
#include "wirecall/task.hpp"

namespace wirecall {

class Call;

namespace detail {

/// What a call has decoded, without its type.
using BatchArguments = std::unique_ptr<void, void (*)(void*)>;

/// An exception that fails several calls. The log is told of it once, by the first of them that somebody waits for.
struct BatchFailure {
  explicit BatchFailure(std::exception_ptr of) noexcept : exception(std::move(of)) {}

  const std::exception_ptr exception;
  std::atomic<bool> told = false;
};

/// One call in a batch.
struct BatchEntry {
  BatchArguments arguments;
  OffLoopReply reply;
  std::shared_ptr<BatchFailure> failure{};  ///< null for none
  /// Passes the items of the call's own stream on, on the call's loop, and stands for the reply then; empty for none.
  Task<StreamResult> stream{};
};
using Batch = std::span<BatchEntry* const>;

/// Of a function that waits.
struct StartedBatch {
  Batch batch;
  std::shared_ptr<Executor> executor;  ///< of the loop on which the task runs
  Scheduler* scheduler;                ///< the same loop's
  std::shared_ptr<const void> keep;    ///< has the batch, also for threads that go on when that loop has ended
};

class BatchFunction {
 public:
  BatchFunction() = default;
  BatchFunction(BatchFunction&&) = delete;
  virtual ~BatchFunction() = default;
  /// Calls the function, and writes each entry's reply, or sets its stream. Any thread.
  virtual void run(Batch batch) noexcept = 0;
  /// The same of one that waits: the task ends when that is done. It runs on a loop's thread. Throws std::bad_alloc.
  [[nodiscard]] virtual Task<void> start(StartedBatch started) = 0;
  /// Whether it waits, as coroutines do.
  [[nodiscard]] virtual bool waits() const noexcept = 0;
  /// Whether it answers calls by streams, which go on when it has ended.
  [[nodiscard]] virtual bool gives_streams() const noexcept { return false; }
};

/// With whom a call leaves, and when.
struct BatchedAs {
  std::string group{};   ///< only calls of an equal one run together
  std::size_t rows = 1;  ///< as BatchOptions::rows
  int priority = 0;      ///< as BatchOptions::priority
};

class Batcher : public BatchCounts {
 public:
  /// Throws std::invalid_argument for options out of their ranges.
  [[nodiscard]] static std::shared_ptr<Batcher> make(std::unique_ptr<BatchFunction> function, BatchOptions options);
  /// Whether such a call now would be answered before its turn ends: the function is quick, and runs on the loop then.
  /// On the loop's thread.
  [[nodiscard]] virtual bool runs_in_turn(Call& call) noexcept = 0;
  /// The call is answered with its part of a batch. On the loop's thread.
  virtual void add(Call& call, BatchArguments arguments, const BatchedAs& as) = 0;
};

/// How many calls at once are of use: those of the batches that run, and of one that is gathered meanwhile.
[[nodiscard]] inline std::uint32_t calls_of_use(const BatchOptions& options) noexcept {
  return static_cast<std::uint32_t>(options.size * (options.concurrent + 1));
}

/// Fails all with the exception in flight; only in a catch block. An Error is everybody's answer; of another exception
/// the log is told once.
void fail_batch(Batch batch) noexcept;
/// The function has given another number of results than there are calls.
void fail_batch_count(Batch batch, std::size_t results) noexcept;

}  // namespace detail
}  // namespace wirecall
