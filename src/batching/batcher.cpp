// See batcher_impl.hpp and wirecall/detail/batcher.hpp.
#include "wirecall/detail/batcher.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <stop_token>

#include "batching/batched_call.hpp"
#include "batching/batcher_impl.hpp"
#include "message/own_error.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::batching {

using detail::BatchArguments;
using detail::BlockingPool;
using detail::Executor;
using std::chrono::nanoseconds;

// ---- who comes and goes ----

void BatcherImpl::add(Call& call, BatchArguments arguments, const std::string& group, std::size_t rows) {
  const auto added = std::make_shared<BatchedCall>(shared_from_this(), call, std::move(arguments));
  if (call.executor() == nullptr || call.scheduler() == nullptr) return add_alone(call, added);
  added->rows = std::max(rows, std::size_t{1});
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
    ticking_.reserve(ticking_.size() + 1);
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
      } else if (!runs && running_ < options_.concurrent && !ticks(added->executor())) {
        timer = nanoseconds{0};
        ticking_.push_back(added.get());
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
void BatcherImpl::add_alone(Call& call, const std::shared_ptr<BatchedCall>& added) {
  added->wait_for_answer(call);
  auto leaving = std::make_shared<LeavingBatch>();
  leaving->add(added);
  if (function_->waits())
    return call.tasks().start(run_task(shared_from_this(), std::move(leaving)), std::stop_token{},
                              [](const TaskResult<void>&) {});
  function_->run(leaving->entries);
  leaving->answer();
}

bool BatcherImpl::give_up(BatchedCall& call) noexcept {
  const std::scoped_lock lock{mutex_};
  if (call.group == nullptr) return false;
  queue_.remove(call);
  call.kept.reset();
  return true;
}

void BatcherImpl::ripen(BatchedCall& call) noexcept {
  {
    const std::scoped_lock lock{mutex_};
    std::erase(ticking_, &call);
    queue_.ripen(call);
    if (!begin_run()) return;
  }
  run(call);
}

void BatcherImpl::stopped_timer(const BatchedCall& call) noexcept {
  {
    const std::scoped_lock lock{mutex_};
    if (std::erase(ticking_, &call) == 0 || !begin_run()) return;
  }
  run(call);
}

bool BatcherImpl::ticks(const Executor* loop) const noexcept {
  return std::ranges::any_of(ticking_, [loop](const BatchedCall* call) { return call->executor() == loop; });
}

void BatcherImpl::refuse(BatchedCall& call) const noexcept {
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

bool BatcherImpl::begin_run() noexcept {
  const bool may = running_ < options_.concurrent && queue_.is_due();
  running_ += std::size_t{may};
  return may;
}

void BatcherImpl::end_run() noexcept {
  const std::scoped_lock lock{mutex_};
  --running_;
}

bool BatcherImpl::is_due_or_end_run() noexcept {
  const std::scoped_lock lock{mutex_};
  if (queue_.is_due()) return true;
  --running_;
  return false;
}

LeavingBatch BatcherImpl::take() noexcept {
  LeavingBatch leaving;
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
nanoseconds BatcherImpl::wait_from(nanoseconds now) noexcept {
  if (!options_.adaptive) return options_.wait;
  adaptive_.came(now);
  return running_ < options_.concurrent ? adaptive_.wait() : nanoseconds{0};
}

void BatcherImpl::count_run(std::size_t calls, nanoseconds time) noexcept {
  const std::scoped_lock lock{mutex_};
  if (options_.adaptive) adaptive_.ran(calls, time);
  // It follows a quicker run at once, so that the first one, in which a model is loaded, is soon forgotten.
  run_time_ = run_time_ == nanoseconds{0} || time < run_time_ ? time : run_time_ + (time - run_time_) / 8;
}

// The place has been taken: begin_run.
void BatcherImpl::run(const BatchedCall& on) noexcept {
  Run run{shared_from_this()};
  if (!function_->waits()) return on.pool() != nullptr ? go_on(std::move(run), *on.pool()) : run_all(std::move(run));
  try {
    on.tasks().start(run_tasks(std::move(run), on.tasks().executor(), *on.scheduler()), std::stop_token{},
                     [](const TaskResult<void>&) {});
  } catch (const std::bad_alloc&) {
    {
      const std::scoped_lock lock{mutex_};
      if (!begin_run()) return;
    }
    Run failed{shared_from_this()};
    for (LeavingBatch leaving = failed.next(); !leaving.calls.empty(); leaving = failed.next()) {
      detail::fail_batch(leaving.entries);
      leaving.answer();
    }
  }
}

// False where none was due.
bool BatcherImpl::run_next(Run& run) noexcept {
  const LeavingBatch leaving = run.next();
  if (leaving.calls.empty()) return false;
  const auto began = std::chrono::steady_clock::now();
  run.function().run(leaving.entries);
  run.ran(leaving.calls.size(), std::chrono::steady_clock::now() - began);
  leaving.answer();
  return true;
}

void BatcherImpl::run_all(Run run) noexcept {
  while (run_next(run)) {
  }
}

// One batch. Before the next one, whatever else waits for a thread of the pool has its turn.
BlockingPool::Work BatcherImpl::work(Run run, BlockingPool& pool) {
  return [run = std::move(run), &pool]() mutable -> BlockingPool::Job {
    if (!run_next(run) || !run.goes_on()) return [] {};
    return [run = std::move(run), &pool]() mutable { go_on(std::move(run), pool); };
  };
}

void BatcherImpl::go_on(Run run, BlockingPool& pool) noexcept {
  const std::shared_ptr<BatcherImpl> self = run.batcher();
  try {
    return pool.run(work(std::move(run), pool));
  } catch (const std::exception&) {
    // There is no thread to be had, or no memory for one: they run here.
    const std::scoped_lock lock{self->mutex_};
    if (!self->begin_run()) return;
  }
  run_all(Run{self});
}

Task<void> BatcherImpl::run_tasks(Run run, std::shared_ptr<Executor> executor, Scheduler& scheduler) {
  for (;;) {
    const auto leaving = std::make_shared<LeavingBatch>(run.next());
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
    if (!run.goes_on()) co_return;
    co_await sleep_for(scheduler, nanoseconds{0});  // the loop's others have their turn
  }
}

Task<void> BatcherImpl::run_task(std::shared_ptr<BatcherImpl> of, std::shared_ptr<LeavingBatch> leaving) {
  detail::StartedBatch started{.batch = leaving->entries, .executor = nullptr, .keep = leaving};
  co_await of->function_->start(std::move(started));
  leaving->answer();
}

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
  require(options.bytes != 0, "1 byte at least");
  require(options.queue == 0 || options.queue >= options.size, "a queue of its size at least");
  require(options.queue_bytes == 0 || options.queue_bytes >= options.bytes, "queue_bytes of its bytes at least");
  require(options.concurrent != 0 && options.concurrent <= 1024, "1 to 1024 runs at once");
  return std::make_shared<batching::BatcherImpl>(std::move(function), std::move(options));
}

void fail_batch(Batch batch) noexcept {
  try {
    throw;
  } catch (const Error&) {
    for (BatchEntry* const entry : batch) entry->reply.error_in_flight();
  } catch (...) {
    std::shared_ptr<BatchFailure> failure;
    try {
      failure = std::make_shared<BatchFailure>(std::current_exception());
    } catch (const std::bad_alloc&) {
      for (BatchEntry* const entry : batch) entry->reply.error_in_flight();
      return;
    }
    for (BatchEntry* const entry : batch) {
      entry->reply.error(Error{ErrorCode::internal_error});
      entry->failure = failure;
    }
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
