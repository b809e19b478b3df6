// The Batcher: a BatchQueue behind a lock, the timers by which its calls become ripe, and the runs of its function.
// A call is its loop's: there it comes, is cancelled and is answered. In between whoever runs its batch has it.
#include "wirecall/detail/batcher.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "base/assert.hpp"
#include "batching/adaptive_wait.hpp"
#include "batching/batch_queue.hpp"
#include "message/own_error.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/detail/drop_after_loop.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::batching {
namespace {

using detail::Batch;
using detail::BatchArguments;
using detail::BatchEntry;
using detail::BatchFunction;
using detail::BlockingPool;
using detail::Executor;
using std::chrono::nanoseconds;

class Gatherer;

/// One call, from when it has been decoded until it has been answered.
class BatchedCall final : public BatchEntry,
                          public WaitingCall,
                          public Executor::Continuation,
                          public Timer,
                          public std::enable_shared_from_this<BatchedCall> {
 public:
  BatchedCall(std::shared_ptr<Gatherer> gatherer, Call& call, BatchArguments decoded)
      : BatchEntry{std::move(decoded), detail::OffLoopReply{call}},
        gatherer_(std::move(gatherer)),
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
  void start_timer(nanoseconds delay) {
    scheduler_->start(*this, delay);
    timer_runs_ = true;
  }
  void expired() override;
  void resume() noexcept override;

  /// With the gatherer's lock: while it waits it keeps itself.
  std::shared_ptr<BatchedCall> kept;

  [[nodiscard]] BlockingPool* pool() const noexcept { return pool_; }
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

  const std::shared_ptr<Gatherer> gatherer_;
  const std::shared_ptr<Executor> executor_;
  Scheduler* const scheduler_;
  BlockingPool* const pool_;
  TaskScope* const tasks_;
  ReplySink sink_;
  bool timer_runs_ = false;
  std::optional<std::stop_callback<Stop>> on_stop_;
};

/// What leaves together.
struct Leaving {
  std::vector<std::shared_ptr<BatchedCall>> calls;
  std::vector<BatchEntry*> entries;  // the same

  void add(std::shared_ptr<BatchedCall> call) {
    entries.push_back(call.get());
    calls.push_back(std::move(call));
  }
  void answer() const noexcept {
    for (const std::shared_ptr<BatchedCall>& call : calls) call->post();
  }
};

class Gatherer final : public detail::Batcher, public std::enable_shared_from_this<Gatherer> {
 public:
  Gatherer(std::unique_ptr<BatchFunction> function, BatchOptions options)
      : function_(std::move(function)),
        options_(std::move(options)),
        queue_({.calls = options_.size,
                .rows = options_.size,
                .bytes = options_.bytes,
                .waiting = options_.queue != 0 ? options_.queue : 16 * options_.size,
                .waiting_bytes = options_.queue_bytes}) {}

  void add(Call& call, BatchArguments arguments, const std::string& group) override;

  // ---- of one of its calls, on that one's loop's thread ----

  /// It waits no more: nobody wants its answer. False where it has left already.
  [[nodiscard]] bool give_up(BatchedCall& call) noexcept;
  /// It has waited for as long as it is to.
  void ripen(BatchedCall& call) noexcept;
  /// Its timer has been stopped, on which others may have relied.
  void stopped_timer(const BatchedCall& call) noexcept;

 private:
  /// One of the places in which batches run. Whoever has it goes on as long as a batch is due; the place is free again
  /// when this goes.
  class Run {
   public:
    explicit Run(std::shared_ptr<Gatherer> of) noexcept : of_(std::move(of)) {}
    Run(Run&&) noexcept = default;
    Run& operator=(Run&&) = delete;
    ~Run() {
      if (of_) of_->end_run();
    }
    /// Without calls where none is due, which ends the run.
    [[nodiscard]] Leaving next() noexcept {
      Leaving leaving = of_->take();
      if (leaving.calls.empty()) of_.reset();
      return leaving;
    }
    void ran(std::size_t calls, nanoseconds time) const noexcept { of_->count_run(calls, time); }
    [[nodiscard]] BatchFunction& function() const noexcept { return *of_->function_; }

   private:
    std::shared_ptr<Gatherer> of_;
  };

  // With the lock.
  [[nodiscard]] bool begin_run() noexcept;
  [[nodiscard]] nanoseconds wait_from(nanoseconds now) noexcept;
  void refuse(BatchedCall& call) const noexcept;

  void add_alone(Call& call, const std::shared_ptr<BatchedCall>& added);
  void run(const BatchedCall& on) noexcept;
  [[nodiscard]] Leaving take() noexcept;
  void end_run() noexcept;
  void count_run(std::size_t calls, nanoseconds time) noexcept;
  static void run_all(Run run) noexcept;
  static Task<void> run_tasks(Run run, std::shared_ptr<Executor> executor);
  static Task<void> run_task(std::shared_ptr<Gatherer> of, std::shared_ptr<Leaving> leaving);

  const std::unique_ptr<BatchFunction> function_;
  const BatchOptions options_;

  std::mutex mutex_;  // of what follows
  BatchQueue queue_;
  std::vector<WaitingCall*> taken_;
  std::size_t running_ = 0;
  // By whose timer a batch runs once those that have come in the same turn are there; null for nobody's.
  const BatchedCall* ticking_ = nullptr;
  nanoseconds run_time_{0};  // what a run takes, lately
  AdaptiveWait adaptive_{options_.size};
};

// ---- a call ----

void BatchedCall::expired() {
  timer_runs_ = false;
  gatherer_->ripen(*this);
}

void BatchedCall::stop_timer() noexcept {
  if (!timer_runs_) return;
  scheduler_->stop(*this);
  timer_runs_ = false;
  gatherer_->stopped_timer(*this);
}

void BatchedCall::stopped() noexcept {
  const std::shared_ptr<BatchedCall> self = shared_from_this();
  if (!gatherer_->give_up(*this)) return;
  stop_timer();
  const ReplySink dropped = std::move(sink_);
}

void BatchedCall::resume() noexcept {
  on_stop_.reset();
  stop_timer();
  ReplySink sink = std::move(sink_);
  reply.give(sink);
}

// ---- who comes and goes ----

void Gatherer::add(Call& call, BatchArguments arguments, const std::string& group) {
  const auto added = std::make_shared<BatchedCall>(shared_from_this(), call, std::move(arguments));
  if (call.executor() == nullptr || call.scheduler() == nullptr) return add_alone(call, added);
  added->bytes = call.params().size();
  added->deadline = call.bounds().deadline;
  if (options_.priority) added->priority = options_.priority(call.context());
  const std::stop_token stop = call.stop_token();
  const nanoseconds now = call.scheduler()->now();
  added->wait_for_answer(call);

  std::shared_ptr<BatchedCall> leaver;
  std::optional<nanoseconds> timer;
  bool runs = false;
  try {
    const std::scoped_lock lock{mutex_};
    WaitingCall* const leaves = queue_.add(*added, group, now + run_time_);
    if (leaves != added.get()) added->kept = added;
    if (leaves != nullptr) {
      leaver = leaves == added.get() ? added : static_cast<BatchedCall*>(leaves)->shared_from_this();
      leaver->kept.reset();
      refuse(*leaver);
    }
    if (leaves != added.get()) {
      const nanoseconds wait = wait_from(now);
      if (wait == nanoseconds{0}) queue_.ripen(*added);
      runs = queue_.fills_batch(*added) && begin_run();
      if (!runs && wait != nanoseconds{0}) {
        timer = wait;
      } else if (!runs && running_ < options_.concurrent && ticking_ == nullptr) {
        timer = nanoseconds{0};
        ticking_ = added.get();
      }
    }
  } catch (const std::bad_alloc&) {
    added->reply.error_in_flight();
    return added->resume();
  }
  if (leaver == added) return added->resume();
  if (leaver) leaver->post();
  if (timer) added->start_timer(*timer);
  added->watch(stop);
  if (runs) run(*added);
}

// Without a loop nothing else comes meanwhile.
void Gatherer::add_alone(Call& call, const std::shared_ptr<BatchedCall>& added) {
  added->wait_for_answer(call);
  auto leaving = std::make_shared<Leaving>();
  leaving->add(added);
  if (function_->waits())
    return call.tasks().start(run_task(shared_from_this(), std::move(leaving)), std::stop_token{},
                              [](const TaskResult<void>&) {});
  function_->run(leaving->entries);
  leaving->answer();
}

bool Gatherer::give_up(BatchedCall& call) noexcept {
  const std::scoped_lock lock{mutex_};
  if (call.group == nullptr) return false;
  queue_.remove(call);
  call.kept.reset();
  return true;
}

void Gatherer::ripen(BatchedCall& call) noexcept {
  {
    const std::scoped_lock lock{mutex_};
    if (ticking_ == &call) ticking_ = nullptr;
    queue_.ripen(call);
    if (!begin_run()) return;
  }
  run(call);
}

void Gatherer::stopped_timer(const BatchedCall& call) noexcept {
  {
    const std::scoped_lock lock{mutex_};
    if (ticking_ != &call) return;
    ticking_ = nullptr;
    if (!begin_run()) return;
  }
  run(call);
}

void Gatherer::refuse(BatchedCall& call) const noexcept {
  const std::size_t batches = (queue_.size() + options_.size - 1) / options_.size;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(run_time_ * static_cast<std::int64_t>(batches) /
                                                                 static_cast<std::int64_t>(options_.concurrent));
  try {
    call.reply.error(
        message::make({.code = ErrorCode::limit_exceeded,
                       .reason = "too many calls wait for a batch",
                       .delivered = "no",
                       .limit = "queue",
                       .retry_after_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(wait.count(), 1))}));
  } catch (const std::bad_alloc&) {
    call.reply.error_in_flight();
  }
}

// ---- who runs ----

bool Gatherer::begin_run() noexcept {
  const bool may = running_ < options_.concurrent && queue_.is_due();
  running_ += std::size_t{may};
  return may;
}

void Gatherer::end_run() noexcept {
  const std::scoped_lock lock{mutex_};
  --running_;
}

Leaving Gatherer::take() noexcept {
  Leaving leaving;
  const std::scoped_lock lock{mutex_};
  try {
    leaving.calls.reserve(std::min(options_.size, queue_.size()));
    leaving.entries.reserve(leaving.calls.capacity());
    queue_.take(taken_);
    for (WaitingCall* const call : taken_) leaving.add(std::move(static_cast<BatchedCall*>(call)->kept));
  } catch (const std::bad_alloc&) {
    // They wait for the next one that comes.
  }
  if (leaving.calls.empty()) --running_;
  return leaving;
}

// What waits while the function is at work anyway needs no time of its own.
nanoseconds Gatherer::wait_from(nanoseconds now) noexcept {
  if (!options_.adaptive) return options_.wait;
  adaptive_.came(now);
  return running_ < options_.concurrent ? adaptive_.wait() : nanoseconds{0};
}

void Gatherer::count_run(std::size_t calls, nanoseconds time) noexcept {
  const std::scoped_lock lock{mutex_};
  if (options_.adaptive) adaptive_.ran(calls, time);
  run_time_ = run_time_ == nanoseconds{0} ? time : run_time_ + (time - run_time_) / 8;
}

// The place has been taken: begin_run.
void Gatherer::run(const BatchedCall& on) noexcept {
  Run run{shared_from_this()};
  try {
    if (function_->waits())
      return on.tasks().start(run_tasks(std::move(run), on.tasks().executor()), std::stop_token{},
                              [](const TaskResult<void>&) {});
    if (on.pool() != nullptr)
      return on.pool()->run([run = std::move(run)]() mutable -> BlockingPool::Job {
        run_all(std::move(run));
        return [] {};
      });
  } catch (const std::exception&) {
    // There is no thread to be had, or no memory for one: they run here.
    const std::scoped_lock lock{mutex_};
    if (!begin_run()) return;
  }
  run_all(Run{shared_from_this()});
}

void Gatherer::run_all(Run run) noexcept {
  for (Leaving leaving = run.next(); !leaving.calls.empty(); leaving = run.next()) {
    const auto began = std::chrono::steady_clock::now();
    run.function().run(leaving.entries);
    run.ran(leaving.calls.size(), std::chrono::steady_clock::now() - began);
    leaving.answer();
  }
}

Task<void> Gatherer::run_tasks(Run run, std::shared_ptr<Executor> executor) {
  for (;;) {
    const auto leaving = std::make_shared<Leaving>(run.next());
    if (leaving->calls.empty()) co_return;
    const auto began = std::chrono::steady_clock::now();
    try {
      detail::StartedBatch started{.batch = leaving->entries, .executor = executor, .keep = leaving};
      co_await run.function().start(std::move(started));
    } catch (...) {
      detail::fail_batch(leaving->entries);
    }
    run.ran(leaving->calls.size(), std::chrono::steady_clock::now() - began);
    leaving->answer();
  }
}

Task<void> Gatherer::run_task(std::shared_ptr<Gatherer> of, std::shared_ptr<Leaving> leaving) {
  detail::StartedBatch started{.batch = leaving->entries, .executor = nullptr, .keep = leaving};
  co_await of->function_->start(std::move(started));
  leaving->answer();
}

}  // namespace
}  // namespace wirecall::batching

namespace wirecall::detail {

static void require(bool holds, const char* rule) {
  if (!holds) throw std::invalid_argument(std::string{"wirecall: a batch has "} + rule);
}

std::shared_ptr<Batcher> Batcher::make(std::unique_ptr<BatchFunction> function, BatchOptions options) {
  constexpr std::size_t kSizeMax = 65'536;
  require(options.size != 0 && options.size <= kSizeMax, "a size of 1 to 65536 calls");
  require(options.wait >= std::chrono::microseconds{0} && options.wait <= std::chrono::minutes{1},
          "a wait of 0 to 60 s");
  require(options.bytes != 0 && options.queue_bytes != 0, "1 byte at least");
  require(options.concurrent != 0 && options.concurrent <= 1024, "1 to 1024 runs at once");
  return std::make_shared<batching::Gatherer>(std::move(function), std::move(options));
}

void fail_batch(Batch batch) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    for (BatchEntry* const entry : batch) entry->reply.error(error);
  } catch (...) {
    batch.front()->reply.error_in_flight();
    for (BatchEntry* const entry : batch.subspan(1)) entry->reply.error(Error{ErrorCode::internal_error});
  }
}

void fail_batch_count(Batch batch, std::size_t results) noexcept {
  try {
    throw std::runtime_error("a batch of " + std::to_string(batch.size()) + " calls has " + std::to_string(results) +
                             " results");
  } catch (...) {
    fail_batch(batch);
  }
}

}  // namespace wirecall::detail
