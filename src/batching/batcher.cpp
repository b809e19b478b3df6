// See batcher_impl.hpp and wirecall/detail/batcher.hpp.
#include "wirecall/detail/batcher.hpp"

#include <algorithm>
#include <limits>
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

static std::size_t waiting_bytes(const BatchOptions& options) noexcept {
  constexpr std::size_t kFactor = 4;
  if (options.queue_bytes != 0) return options.queue_bytes;
  return std::max(options.bytes, std::min(options.bytes, std::numeric_limits<std::size_t>::max() / kFactor) * kFactor);
}

BatcherImpl::BatcherImpl(std::unique_ptr<detail::BatchFunction> function, BatchOptions options)
    : function_(std::move(function)),
      options_(std::move(options)),
      has_to_weigh_(function_->waits() || function_->gives_streams() || options_.wait != nanoseconds{0} ||
                    options_.adaptive || options_.rows != 0),
      queue_({.calls = options_.size,
              .rows = options_.rows != 0 ? options_.rows : std::numeric_limits<std::size_t>::max(),
              .bytes = options_.bytes,
              .waiting = options_.queue != 0 ? options_.queue : 16 * options_.size,
              .waiting_bytes = waiting_bytes(options_)}) {}

// ---- who comes and goes ----

void BatcherImpl::add(Call& call, BatchArguments arguments, const detail::BatchedAs& as) {
  if (as.priority != 0) weigh_from_now_on();
  if (runs_in_turn(call) && as.group.empty() && add_to_turn(call, arguments)) return;
  const auto added = std::make_shared<BatchedCall>(shared_from_this(), call, std::move(arguments));
  if (call.executor() == nullptr || call.scheduler() == nullptr) return add_alone(call, added);
  added->rows = std::max(as.rows, std::size_t{1});
  added->bytes = call.params().size();
  added->deadline = call.bounds().deadline;
  added->priority = as.priority;
  const nanoseconds now = added->came_at();
  added->wait_for_answer(call);

  std::shared_ptr<BatchedCall> leaver;
  bool runs = false;
  try {
    const std::scoped_lock lock{mutex_};
    if (options_.adaptive) adaptive_.came(now);
    const bool gathered = adaptive_.gathers();
    const nanoseconds wait = gathered ? adaptive_.wait(queue_.size() + 1, now) : options_.wait;
    const bool ripens = options_.wait == nanoseconds{0};
    const bool ticks_for_all = ripens && running_ < options_.concurrent && !ticks(added->executor());
    ticking_.reserve(ticking_.size() + 1);
    // Whether or not it fills a batch: it may not be in the one that leaves.
    if (!ripens || ticks_for_all) added->start_timer(wait);
    WaitingCall* const leaves = queue_.add(*added, as.group, now + run_time_);
    if (gathered && (!adaptive_.gathers() || queue_.fills_batch(*added))) end_gathering();
    if (leaves != nullptr) {
      std::erase(ticking_, leaves);
      leaver = leaves == added.get() ? added : static_cast<BatchedCall*>(leaves)->shared_from_this();
      leaver->kept.reset();
      refuse(*leaver);
    }
    if (leaves != added.get()) {
      added->kept = added;
      if (ticks_for_all) ticking_.push_back(added.get());
      if (ripens) queue_.ripen(*added);
      runs = (gathered || queue_.fills_batch(*added)) && begin_run();
    }
    // On who goes others may have relied to wake them, and who ends the gathering may be refused.
    if (leaver) start_what_is_due();
  } catch (const std::bad_alloc&) {
    added->reply.error_in_flight();
    return added->resume();
  }
  if (leaver == added) return added->resume();
  if (leaver) leaver->post();
  added->watch();
  if (runs) run(*added);
}

void BatcherImpl::weigh_from_now_on() noexcept {
  const std::scoped_lock lock{mutex_};
  has_to_weigh_ = true;
  quick_.store(false, std::memory_order_relaxed);
}

bool BatcherImpl::runs_in_turn(Call& call) noexcept {
  if (!quick_.load(std::memory_order_relaxed) || call.executor() == nullptr || call.scheduler() == nullptr)
    return false;
  // Who runs on a thread of the pool may take long and wait for anything, even for an answer of this loop. So may who
  // can lose the loop.
  return call.watchdog_slot() != nullptr || call.blocking_pool() == nullptr;
}

// False where others wait already: then it waits in the queue.
bool BatcherImpl::add_to_turn(Call& call, BatchArguments& arguments) {
  LoopBatch* joined = nullptr;
  std::shared_ptr<LoopBatch> begun;
  {
    const std::scoped_lock lock{mutex_};
    const auto found = std::ranges::find(turns_, call.executor().get(), &LoopBatch::loop);
    if (found != turns_.end()) {
      joined = *found;
    } else {
      if (queue_.size() != 0 || running_ == options_.concurrent) return false;
      turns_.reserve(options_.concurrent);
      begun = std::make_shared<LoopBatch>(shared_from_this(), call);
      joined = begun.get();
      turns_.push_back(joined);
      ++running_;
    }
  }
  joined->add(call, std::move(arguments));
  if (begun) call.executor()->post(std::move(begun));
  return true;
}

void BatcherImpl::close_turn(const LoopBatch& batch) noexcept {
  const std::scoped_lock lock{mutex_};
  std::erase(turns_, &batch);
}

void BatcherImpl::open_turn(LoopBatch& batch) noexcept {
  const std::scoped_lock lock{mutex_};
  turns_.push_back(&batch);  // it had its place there
}

void BatcherImpl::end_turn(const LoopBatch& batch) noexcept {
  close_turn(batch);
  end_run();
}

// Without a loop nothing else comes meanwhile.
void BatcherImpl::add_alone(Call& call, const std::shared_ptr<BatchedCall>& added) {
  added->wait_for_answer(call);
  auto leaving = std::make_shared<LeavingBatch>();
  leaving->reserve(1);
  leaving->add(added);
  if (function_->waits())
    return call.tasks().start(run_alone(shared_from_this(), std::move(leaving)), std::stop_token{},
                              [](const TaskResult<void>&) {});
  run_and_count(*leaving);
  leaving->answer();
}

bool BatcherImpl::give_up(BatchedCall& call) noexcept {
  const std::scoped_lock lock{mutex_};
  if (call.group == nullptr) return false;
  queue_.remove(call);
  call.kept.reset();
  if (call.starts) start_what_is_due();
  return true;
}

void BatcherImpl::ripen(BatchedCall& call) noexcept {
  {
    const std::scoped_lock lock{mutex_};
    std::erase(ticking_, &call);
    queue_.ripen(call);
    if (go_on_gathering(call) || !begin_run()) return;
  }
  run(call);
}

void BatcherImpl::stopped_timer(const BatchedCall& call) noexcept {
  const std::scoped_lock lock{mutex_};
  if (std::erase(ticking_, &call) != 0) start_what_is_due();
}

void BatcherImpl::start(BatchedCall& call) noexcept {
  {
    const std::scoped_lock lock{mutex_};
    call.starts = false;
    if (go_on_gathering(call) || !begin_run()) return;
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
  const bool may = running_ < options_.concurrent && queue_.is_due() && !adaptive_.gathers();
  running_ += std::size_t{may};
  return may;
}

// Whether those that wait still wait for others. Then a timer of the call's loop ends that. On its loop's thread.
bool BatcherImpl::go_on_gathering(BatchedCall& call) noexcept {
  if (!adaptive_.gathers() || queue_.size() == 0) return false;
  // One that waits no more may go at any time, and its timer with it: another one goes on.
  if (call.group == nullptr) {
    start_what_is_due();
    return true;
  }
  const nanoseconds wait = adaptive_.wait(queue_.size(), call.scheduler()->now());
  if (adaptive_.gathers() && !ticks(call.executor())) {
    try {
      ticking_.push_back(&call);
      call.start_timer(wait);
    } catch (const std::bad_alloc&) {
      adaptive_.leave();
    }
  }
  if (!adaptive_.gathers()) end_gathering();
  return adaptive_.gathers();
}

// No timer says any more when the next batch runs.
void BatcherImpl::end_gathering() noexcept {
  adaptive_.leave();
  ticking_.clear();
}

void BatcherImpl::leave_now() noexcept {
  const std::scoped_lock lock{mutex_};
  if (adaptive_.gathers()) end_gathering();
  queue_.ripen_all();
  start_what_is_due();
}

// On the loop of a call that waits, for such a loop goes on to turn.
void BatcherImpl::start_what_is_due() noexcept {
  if (running_ == options_.concurrent) return;
  auto* const call = static_cast<BatchedCall*>(queue_.first_due());
  if (call != nullptr && !std::exchange(call->starts, true)) call->post_start();
}

void BatcherImpl::end_run() noexcept {
  const std::scoped_lock lock{mutex_};
  --running_;
  start_what_is_due();
}

void BatcherImpl::take(LeavingBatch& leaving) noexcept {
  const std::scoped_lock lock{mutex_};
  try {
    leaving.reserve(std::min(options_.size, queue_.size()));
    queue_.take(taken_);
  } catch (const std::bad_alloc&) {
    return;  // and they are tried again at once
  }
  for (WaitingCall* const call : taken_) {
    std::erase(ticking_, call);
    leaving.add(std::move(static_cast<BatchedCall*>(call)->kept));
  }
  start_what_is_due();
}

static std::uint64_t not_negative(nanoseconds time) noexcept {
  return static_cast<std::uint64_t>(std::max(time, nanoseconds{0}).count());
}

void BatcherImpl::count_run(const Run& run) noexcept {
  const auto [calls, waited, time, ended, answered] = run;
  const std::scoped_lock lock{mutex_};
  calls_in_batch_.record(calls);
  waits_.record(not_negative(waited));
  if (!answered) return;
  if (options_.adaptive) adaptive_.ran(calls, queue_.size(), time, ended);
  quick_runs_.ran(calls, time);
  if (!has_to_weigh_) quick_.store(quick_runs_.are_quick(), std::memory_order_relaxed);
  // It follows a quicker run at once, so that the first one, in which a model is loaded, is soon forgotten.
  run_time_ = run_time_ == nanoseconds{0} || time < run_time_ ? time : run_time_ + (time - run_time_) / 8;
}

std::optional<detail::BatchSpreads> BatcherImpl::spreads() const {
  const std::scoped_lock lock{mutex_};
  return detail::BatchSpreads{.calls = detail::spread_of(calls_in_batch_), .waits = detail::spread_of(waits_)};
}

// The place has been taken: begin_run.
void BatcherImpl::run(const BatchedCall& on) noexcept {
  Place place{shared_from_this()};
  try {
    if (function_->waits())
      return on.tasks().start(
          Place::run_task(std::move(place), on.tasks().executor(), *on.scheduler()), std::stop_token{},
          [](const TaskResult<void>&) {}, &on.method());
    if (on.pool() == nullptr) return place.run();
    return on.pool()->run([place = std::move(place)]() mutable -> BlockingPool::Job {
      const Place own = std::move(place);
      own.run();
      return [] {};
    });
  } catch (const std::exception&) {
    // There is no thread to be had, or no memory.
    const std::scoped_lock lock{mutex_};
    if (!begin_run()) return;
  }
  const Place again{shared_from_this()};
  if (!function_->waits()) return again.run();
  LeavingBatch failed;
  take(failed);
}

void BatcherImpl::run_and_count(const LeavingBatch& leaving) noexcept {
  const nanoseconds waited = leaving.waited();
  const nanoseconds began = leaving.now();
  function_->run(leaving.entries());
  const nanoseconds ended = leaving.now();
  count_run({.calls = leaving.size(),
             .waited = waited,
             .time = ended - began,
             .ended = ended,
             .answered = are_any_answered(leaving.entries())});
}

void BatcherImpl::Place::run() const noexcept {
  LeavingBatch leaving;
  of_->take(leaving);
  if (leaving.empty()) return;
  of_->run_and_count(leaving);
  leaving.answer();
}

Task<void> BatcherImpl::Place::run_task(Place place, std::shared_ptr<Executor> executor, Scheduler& scheduler) {
  const Place own = std::move(place);
  const auto leaving = std::make_shared<LeavingBatch>();
  own.of_->take(*leaving);
  if (leaving->empty()) co_return;
  const nanoseconds waited = leaving->waited();
  const nanoseconds began = leaving->now();
  try {
    detail::StartedBatch started{
        .batch = leaving->entries(), .executor = std::move(executor), .scheduler = &scheduler, .keep = leaving};
    co_await own.of_->function_->start(std::move(started));
  } catch (...) {
    detail::fail_batch(leaving->entries());
  }
  const nanoseconds ended = leaving->now();
  own.of_->count_run({.calls = leaving->size(),
                      .waited = waited,
                      .time = ended - began,
                      .ended = ended,
                      .answered = are_any_answered(leaving->entries())});
  leaving->answer();
}

Task<void> BatcherImpl::run_alone(std::shared_ptr<BatcherImpl> of, std::shared_ptr<LeavingBatch> leaving) {
  detail::StartedBatch started{.batch = leaving->entries(), .executor = nullptr, .scheduler = nullptr, .keep = leaving};
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
  if (options.adaptive) options.wait = std::chrono::microseconds{0};
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
