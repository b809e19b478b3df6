// See loop_takeover.hpp. How a loop is taken from a handler: the watcher marks the slot as taken, makes every thread of
// the process see that (membarrier), and checks again whether the same handler runs. If so it cannot have left the
// scope unseen: it will find the mark, call `rejoin`, and wait there. If not, the mark is harmless: whoever finds it
// learns under the mutex that nothing was taken.
#include "server/loop_takeover.hpp"

#include <cerrno>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "connection/channel.hpp"

namespace wirecall::net {

using std::chrono::milliseconds;

// The watcher polls at most so seldom while handlers run: a poll costs the loop some microseconds.
constexpr milliseconds kPollIntervalMax{10};
// One method is logged at most so often: thousands of calls of it may be slow at once.
constexpr milliseconds kLogPause{1000};
// What to do is told with each: these are handlers that do not say that they block.
constexpr std::string_view kGoesOnWithout =
    "a handler has not returned yet; its loop goes on without it: mark handlers that wait or compute for long as "
    "blocking (wirecall::blocking, in Python blocking=True)";
constexpr std::string_view kReturned =
    "a handler has returned; mark it as blocking if it often takes so long (wirecall::blocking, in Python "
    "blocking=True)";
// When no handler has run for so many polls, it sleeps until one does.
constexpr int kQuietPollsBeforeSleep = 25;

// Twice in the shortest time that a handler is given, so that none has more than half as much again.
static milliseconds poll_interval(milliseconds after, milliseconds logged_after) noexcept {
  if (after == milliseconds{0} || (logged_after != milliseconds{0} && logged_after < after)) after = logged_after;
  return std::clamp(after / 2, milliseconds{1}, kPollIntervalMax);
}

// Whether `took` is more than `limit`, which is none when it is 0.
static bool is_over(std::chrono::steady_clock::duration took, milliseconds limit) noexcept {
  return limit != milliseconds{0} && took >= limit;
}

static bool wants_watcher(const LoopTakeover::Settings& settings) noexcept {
  return settings.after != milliseconds{0} || settings.logged_after != milliseconds{0};
}

static bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

LoopTakeover::LoopTakeover(Host& host, Settings settings)
    : host_(&host),
      settings_(settings),
      poll_interval_(poll_interval(settings.after, settings.logged_after)),
      refused_(wants_watcher(settings) && !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? errno : 0),
      watches_(wants_watcher(settings) && refused_ == 0) {}

LoopTakeover::~LoopTakeover() = default;

// ---- the threads that serve ----

void LoopTakeover::run(std::function<void()> serve) {
  serve_ = std::move(serve);
  finished_ = wanted_ = false;
  reserve_leases();
  {
    const std::scoped_lock lock{mutex_};
    begin_lease();
  }
  if (watches_) watcher_ = std::thread{[this] { watch(); }};
  work(false);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (watcher_.joinable()) watcher_.join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// Called by a thread that has the loop, and at its start by others that do not have it yet; `resume` says which.
void LoopTakeover::work(bool resume) {
  for (;;) {
    if (resume) {
      std::unique_lock lock{mutex_};
      ++idle_;
      changed_.wait(lock, [this] { return wanted_ || finished_; });
      --idle_;
      if (finished_) return;
      wanted_ = false;
      begin_lease();
    }
    std::exception_ptr error;
    try {
      if (resume) {
        host_->loop.finish_turn();
        end_turn();
      }
      serve_();
    } catch (const Lost&) {
      resume = true;
      continue;
    } catch (...) {
      error = std::current_exception();
    }
    std::unique_lock lock{mutex_};
    // Handlers that rejoin still have to leave what they were called from, one after the other.
    while (off_loop_ != 0) {
      changed_.wait(lock, [this] { return off_loop_ == 0 || !waiting_.empty(); });
      if (off_loop_ != 0) let_in(lock);
    }
    current_.reset();
    host_->loop_context.services.watchdog_slot = nullptr;
    error_ = error;
    finished_ = true;
    changed_.notify_all();
    wake_up_.notify_all();
    return;
  }
}

// A handler that has lost the loop rejoins it, whether there is memory then or not.
void LoopTakeover::reserve_leases() {
  lost_.reserve(lost_.size() + 1);
  waiting_.reserve(lost_.size() + 1);
  spare_.reserve(lost_.size() + 2);
  while (spare_.size() < lost_.size() + 2) spare_.push_back(std::make_unique<LoopLease>(static_cast<Watchdog&>(*this)));
}

// With the mutex held, and for the thread that calls it.
void LoopTakeover::begin_lease() noexcept {
  WIRECALL_ASSERT(!current_);
  WIRECALL_ASSERT(!spare_.empty());
  current_ = std::move(spare_.back());
  spare_.pop_back();
  current_->thread = std::this_thread::get_id();
  if (watches_) host_->loop_context.services.watchdog_slot = &current_->slot;
}

void LoopTakeover::turn(std::chrono::nanoseconds wait_max) {
  try {
    host_->loop.turn(wait_max);
  } catch (...) {
    after_turn();
    throw;
  }
  end_turn();
}

// What handlers have left to be done, by whoever has had the loop.
void LoopTakeover::after_turn() noexcept {
  if (const auto after = std::exchange(host_->loop_context.services.after_turn, nullptr)) after();
}

void LoopTakeover::end_turn() {
  after_turn();
  if (let_in_ == std::this_thread::get_id()) [[unlikely]] {
    // This thread has left what it was called from: those who have the loop go on.
    const std::scoped_lock lock{mutex_};
    WIRECALL_ASSERT(current_ && current_->thread == std::this_thread::get_id());
    WIRECALL_ASSERT(interrupted_ && off_loop_ != 0);
    --off_loop_;
    for (const auto& lease : lost_) {
      if (lease->logged && lease->thread == std::this_thread::get_id())
        note_returned(lease->method, Clock::now() - lease->handler_since);
    }
    std::erase_if(lost_, [](const auto& lease) { return lease->thread == std::this_thread::get_id(); });
    let_in_ = {};
    changed_.notify_all();
    throw Lost{};
  }
  if (anybody_waits_.load(std::memory_order_relaxed)) [[unlikely]] {
    std::unique_lock lock{mutex_};
    while (!waiting_.empty()) let_in(lock);
    anybody_waits_.store(false, std::memory_order_relaxed);
  }
}

// Gives the loop to the first of those that wait for it, and waits for it to be given back.
void LoopTakeover::let_in(std::unique_lock<std::mutex>& lock) {
  WIRECALL_ASSERT(current_ && current_->thread == std::this_thread::get_id());
  WIRECALL_ASSERT(!interrupted_ && let_in_ == std::thread::id{});
  WIRECALL_ASSERT(!waiting_.empty());
  interrupted_ = std::move(current_);
  let_in_ = waiting_.front();
  waiting_.erase(waiting_.begin());
  changed_.notify_all();
  changed_.wait(lock, [this] { return let_in_ == std::thread::id{}; });
  current_ = std::move(interrupted_);
  host_->loop_context.services.watchdog_slot = &current_->slot;
}

void LoopTakeover::rejoin(detail::WatchdogSlot& slot) noexcept {
  std::unique_lock lock{mutex_};
  if (current_ && &current_->slot == &slot) {
    slot.taken.store(false, std::memory_order_relaxed);  // the watcher found another handler, or none
    return;
  }
  waiting_.push_back(std::this_thread::get_id());
  anybody_waits_.store(true, std::memory_order_relaxed);
  host_->loop.wake();
  changed_.notify_all();
  changed_.wait(lock, [this] { return let_in_ == std::this_thread::get_id(); });
  WIRECALL_ASSERT(interrupted_);
  begin_lease();
  if (slot.call != nullptr) slot.call->renew_watchdog_slot();
}

// ---- the watcher ----

void LoopTakeover::wake() noexcept {
  if (!asleep.exchange(false)) return;
  const std::scoped_lock lock{mutex_};  // or the watcher, about to wait, would miss it
  wake_up_.notify_all();
}

void LoopTakeover::watch() {
  const LoopLease* seen_lease = nullptr;
  const Method* seen_method = nullptr;
  std::uint64_t seen = 0;
  Clock::time_point since;
  bool logged = false;
  int quiet = 0;
  std::unique_lock lock{mutex_};
  while (!finished_) {
    if (quiet >= kQuietPollsBeforeSleep && lost_.empty() && returned_.empty()) {
      asleep.store(true);
      membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
      // A handler that begins now sees that nobody watches.
      if (current_->slot.running.load(std::memory_order_acquire) == 0)
        wake_up_.wait(lock, [this] { return finished_ || !asleep.load(); });
      asleep.store(false);
      quiet = 0;
      continue;
    }
    wake_up_.wait_for(lock, poll_interval_);
    if (!current_) continue;
    try {
      log_lost(lock);
      log_returned(lock);
    } catch (const std::bad_alloc&) {
      continue;  // the next poll tries again
    }
    if (!current_) continue;
    const std::uint64_t running = current_->slot.running.load(std::memory_order_acquire);
    quiet = running == 0 ? quiet + 1 : 0;
    if (running != seen || current_.get() != seen_lease) {
      // One that has lost the loop is noted when its thread rejoins.
      if (logged && current_.get() == seen_lease) note_returned(seen_method, Clock::now() - since);
      seen_method = current_->slot.method.load(std::memory_order_relaxed);
      seen_lease = current_.get();
      seen = running;
      since = Clock::now();
      logged = false;
    } else if (running != 0) {
      const Clock::duration took = Clock::now() - since;
      const bool keeps = (running & detail::WatchdogSlot::kKeepsLoop) != 0;
      if (!keeps && is_over(took, settings_.after) && take_loop(running, since)) continue;
      const bool around = (running & detail::WatchdogSlot::kAround) != 0;
      if (around || logged || !is_over(took, settings_.logged_after)) continue;
      try {
        log_slow(lock, {{current_->slot.method.load(std::memory_order_relaxed), took}}, why_it_waits(keeps));
        logged = true;
      } catch (const std::bad_alloc&) {
        continue;
      }
    }
  }
}

std::string_view LoopTakeover::why_it_waits(bool keeps) const noexcept {
  if (keeps) {
    return "a coroutine blocks, and holds up its loop: let it wait by co_await, or make it a plain function "
           "(wirecall::blocking)";
  }
  if (idle_ == 0 && threads_.size() == settings_.threads_max) {
    return "a handler has not returned yet, and holds up its loop, since takeover_threads others are off the loop: "
           "mark handlers that wait or compute for long as blocking (wirecall::blocking, in Python blocking=True)";
  }
  return "a handler has not returned yet, and holds up its loop: mark handlers that wait or compute for long as "
         "blocking (wirecall::blocking, in Python blocking=True)";
}

// False when the handler keeps it.
bool LoopTakeover::take_loop(std::uint64_t handler, Clock::time_point since) {
  const bool interrupts = let_in_ != std::thread::id{};  // then there is somebody to go on
  try {
    if (!interrupts && idle_ == 0) {
      if (threads_.size() == settings_.threads_max) return false;
      threads_.emplace_back([this] { work(true); });
    }
    reserve_leases();
    rpc::LoopCodecs::Scratch fresh = host_->loop_context.codecs.make_scratch();
    LoopLease& lease = *current_;
    lease.slot.taken.store(true);
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    if (lease.slot.running.load(std::memory_order_acquire) != handler) return false;
    // From here on nobody has the loop.
    lease.lent = host_->loop.keep_lent();
    if (lease.slot.call != nullptr) {
      lease.slot.call->lose_loop(Clock::now() - since);
    } else {
      lease.slot.batch->lose_loop(Clock::now() - since);
    }
    if (host_->active_channel != nullptr) host_->active_channel->leave_handler(lease.buffers);
    // Nothing fails any more.
    lease.scratch = host_->loop_context.codecs.give_up_scratch(std::move(fresh));
    lease.method = lease.slot.method.load(std::memory_order_relaxed);
    lease.running = handler;
    lease.since = lease.handler_since = since;
    lost_.push_back(std::move(current_));
    WIRECALL_ASSERT(interrupts == (interrupted_ != nullptr));
  } catch (const std::exception&) {
    return false;  // no memory or no thread: the next poll tries again
  }
  count_.fetch_add(1, std::memory_order_relaxed);
  if (interrupts) {
    let_in_ = {};
  } else {
    ++off_loop_;
    wanted_ = true;
  }
  WIRECALL_ASSERT(off_loop_ <= lost_.size());
  changed_.notify_all();
  return true;
}

void LoopTakeover::log_lost(std::unique_lock<std::mutex>& lock) {
  std::vector<Slow> slow;
  for (const auto& lease : lost_) {
    const std::uint64_t running = lease->slot.running.load(std::memory_order_acquire);
    if (running != lease->running) {
      lease->running = running;
      lease->since = Clock::now();
    }
    const bool in_handler = running != 0 && (running & detail::WatchdogSlot::kAround) == 0;
    if (!in_handler || lease->logged || !is_over(Clock::now() - lease->since, settings_.logged_after)) continue;
    slow.push_back({lease->method, Clock::now() - lease->handler_since});
    lease->logged = true;
  }
  if (!slow.empty()) log_slow(lock, slow, kGoesOnWithout);
}

// With the mutex held. For want of memory it is not told.
void LoopTakeover::note_returned(const Method* method, Clock::duration took) noexcept {
  try {
    returned_.push_back({method, took});
  } catch (const std::bad_alloc&) {
    return;
  }
}

void LoopTakeover::log_returned(std::unique_lock<std::mutex>& lock) {
  if (!returned_.empty()) log_slow(lock, std::exchange(returned_, {}), kReturned);
}

// Without the lock: the sink may take its time.
void LoopTakeover::log_slow(std::unique_lock<std::mutex>& lock, const std::vector<Slow>& slow, std::string_view words) {
  if (words != kReturned) slow_.fetch_add(slow.size(), std::memory_order_relaxed);
  const LogSink* const log = host_->loop_context.log;
  if (log == nullptr) return;
  const Clock::time_point now = Clock::now();
  std::vector<std::pair<Slow, std::int64_t>> due;
  for (const Slow& one : slow) {
    Told& told = told_[{one.method, words}];
    if (told.when > now - kLogPause) {
      ++told.untold;
      continue;
    }
    due.emplace_back(one, told.untold);
    told = {.when = now};
  }
  lock.unlock();
  for (const auto& [one, untold] : due) {
    const std::int64_t ms = std::chrono::floor<milliseconds>(one.took).count();
    (*log)(LogLevel::warning, words, {{"method", one.method->name()}, {"ms", ms}, {"not_logged", untold}});
  }
  lock.lock();
}

}  // namespace wirecall::net
