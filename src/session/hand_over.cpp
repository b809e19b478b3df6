// See hand_over.hpp. How a loop is taken from a handler: the watcher marks the window as taken, makes every thread of
// the process see that (membarrier), and looks again whether the same handler runs. If so it cannot have left the
// window unseen: it will find the mark, come to `come_back`, and wait there. If not, the mark is harmless: whoever
// finds it learns under the mutex that nothing was taken.
#include "session/hand_over.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <linux/membarrier.h>
#include <new>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "session/channel.hpp"

namespace wirecall::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// How often the watcher looks at most, while handlers run: a look costs the loop some microseconds.
constexpr milliseconds kLookMax{10};
// One method is logged at most so often: thousands of calls of it may be slow at once.
constexpr milliseconds kLogPause{1000};
// What to do is told with each: these are handlers that do not say that they block.
constexpr std::string_view kGoesOnWithout =
    "a handler has not returned yet; its loop goes on without it: mark handlers that wait or compute for long as "
    "blocking (wirecall::blocking, in Python blocking=True)";
constexpr std::string_view kReturned =
    "a handler has returned; mark it as blocking if it often takes so long (wirecall::blocking, in Python "
    "blocking=True)";
// When no handler has run for so many looks, it sleeps until one does.
constexpr int kLooksBeforeSleep = 25;

// Twice in the shortest time that a handler is given, so that none has more than half as much again.
milliseconds time_between_looks(milliseconds after, milliseconds logged_after) noexcept {
  if (after == milliseconds{0} || (logged_after != milliseconds{0} && logged_after < after)) after = logged_after;
  return std::clamp(after / 2, milliseconds{1}, kLookMax);
}

// Whether `took` is more than `limit`, which is none when it is 0.
bool is_over(std::chrono::steady_clock::duration took, milliseconds limit) noexcept {
  return limit != milliseconds{0} && took >= limit;
}

bool wants_watcher(const HandOver::Settings& settings) noexcept {
  return settings.after != milliseconds{0} || settings.logged_after != milliseconds{0};
}

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

HandOver::HandOver(Host& host, Settings settings)
    : host_(&host),
      settings_(settings),
      look_(time_between_looks(settings.after, settings.logged_after)),
      refused_(wants_watcher(settings) && !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? errno : 0),
      watches_(wants_watcher(settings) && refused_ == 0) {}

HandOver::~HandOver() = default;

// ---- the threads that serve ----

void HandOver::run(std::function<void()> serve) {
  serve_ = std::move(serve);
  finished_ = wanted_ = false;
  keep_places();
  {
    const std::scoped_lock lock{mutex_};
    begin_stint();
  }
  if (watches_) watcher_ = std::thread{[this] { watch(); }};
  work(false);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (watcher_.joinable()) watcher_.join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// Called by a thread that has the loop, and at its start by others that do not have it yet; `resume` says which.
void HandOver::work(bool resume) {
  for (;;) {
    if (resume) {
      std::unique_lock lock{mutex_};
      ++idle_;
      changed_.wait(lock, [this] { return wanted_ || finished_; });
      --idle_;
      if (finished_) return;
      wanted_ = false;
      begin_stint();
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
    // Those who come back still have to leave what they were called from, one after the other.
    while (away_ != 0) {
      changed_.wait(lock, [this] { return away_ == 0 || !waiting_.empty(); });
      if (away_ != 0) let_in(lock);
    }
    current_.reset();
    host_->workspace.window = nullptr;
    error_ = error;
    finished_ = true;
    changed_.notify_all();
    wake_up_.notify_all();
    return;
  }
}

// Whoever has lost the loop comes back, whether there is memory then or not.
void HandOver::keep_places() {
  lost_.reserve(lost_.size() + 1);
  waiting_.reserve(lost_.size() + 1);
  spare_.reserve(lost_.size() + 2);
  while (spare_.size() < lost_.size() + 2) spare_.push_back(std::make_unique<Stint>(static_cast<HandlerWatch&>(*this)));
}

// With the mutex held, and for the thread that calls it.
void HandOver::begin_stint() noexcept {
  current_ = std::move(spare_.back());
  spare_.pop_back();
  current_->thread = std::this_thread::get_id();
  if (watches_) host_->workspace.window = &current_->window;
}

void HandOver::turn(nanoseconds wait_max) {
  try {
    host_->loop.turn(wait_max);
  } catch (...) {
    after_turn();
    throw;
  }
  end_turn();
}

// What handlers have left to be done, by whoever has had the loop.
void HandOver::after_turn() noexcept {
  if (const auto after = std::exchange(host_->workspace.after_turn, nullptr)) after();
}

void HandOver::end_turn() {
  after_turn();
  if (let_in_ == std::this_thread::get_id()) [[unlikely]] {
    // This thread has left what it was called from: those who have the loop go on.
    const std::scoped_lock lock{mutex_};
    --away_;
    for (const auto& stint : lost_) {
      if (stint->logged && stint->thread == std::this_thread::get_id())
        note_returned(stint->method, Clock::now() - stint->handler_since);
    }
    std::erase_if(lost_, [](const auto& stint) { return stint->thread == std::this_thread::get_id(); });
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
void HandOver::let_in(std::unique_lock<std::mutex>& lock) {
  interrupted_ = std::move(current_);
  let_in_ = waiting_.front();
  waiting_.erase(waiting_.begin());
  changed_.notify_all();
  changed_.wait(lock, [this] { return let_in_ == std::thread::id{}; });
  current_ = std::move(interrupted_);
  host_->workspace.window = &current_->window;
}

void HandOver::come_back(detail::HandlerWindow& window) noexcept {
  std::unique_lock lock{mutex_};
  if (current_ && &current_->window == &window) {
    window.taken.store(false, std::memory_order_relaxed);  // the watcher found another handler, or none
    return;
  }
  waiting_.push_back(std::this_thread::get_id());
  anybody_waits_.store(true, std::memory_order_relaxed);
  host_->loop.wake();
  changed_.notify_all();
  changed_.wait(lock, [this] { return let_in_ == std::this_thread::get_id(); });
  begin_stint();
  window.call->renew_window();
}

// ---- the watcher ----

void HandOver::wake() noexcept {
  if (!asleep.exchange(false)) return;
  const std::scoped_lock lock{mutex_};  // or the watcher, about to wait, would miss it
  wake_up_.notify_all();
}

void HandOver::watch() {
  const Stint* seen_stint = nullptr;
  const Method* seen_method = nullptr;
  std::uint64_t seen = 0;
  Clock::time_point since;
  bool logged = false;
  int quiet = 0;
  std::unique_lock lock{mutex_};
  while (!finished_) {
    if (quiet >= kLooksBeforeSleep && lost_.empty() && returned_.empty()) {
      asleep.store(true);
      membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
      // A handler that begins now sees that nobody watches.
      if (current_->window.running.load(std::memory_order_acquire) == 0)
        wake_up_.wait(lock, [this] { return finished_ || !asleep.load(); });
      asleep.store(false);
      quiet = 0;
      continue;
    }
    wake_up_.wait_for(lock, look_);
    if (!current_) continue;
    try {
      log_lost(lock);
      log_returned(lock);
    } catch (const std::bad_alloc&) {
      continue;  // the next look tries again
    }
    if (!current_) continue;
    const std::uint64_t running = current_->window.running.load(std::memory_order_acquire);
    quiet = running == 0 ? quiet + 1 : 0;
    if (running != seen || current_.get() != seen_stint) {
      // One that has lost the loop is noted when its thread comes back.
      if (logged && current_.get() == seen_stint) note_returned(seen_method, Clock::now() - since);
      seen_method = current_->window.method.load(std::memory_order_relaxed);
      seen_stint = current_.get();
      seen = running;
      since = Clock::now();
      logged = false;
    } else if (running != 0) {
      const Clock::duration took = Clock::now() - since;
      const bool keeps = (running & detail::HandlerWindow::kKeepsLoop) != 0;
      if (!keeps && is_over(took, settings_.after) && take_loop(running, since)) continue;
      const bool around = (running & detail::HandlerWindow::kAround) != 0;
      if (around || logged || !is_over(took, settings_.logged_after)) continue;
      try {
        log_slow(lock, {{current_->window.method.load(std::memory_order_relaxed), took}}, why_it_waits(keeps));
        logged = true;
      } catch (const std::bad_alloc&) {
        continue;
      }
    }
  }
}

std::string_view HandOver::why_it_waits(bool keeps) const noexcept {
  if (keeps) {
    return "a coroutine blocks, and holds up its loop: let it wait by co_await, or make it a plain function "
           "(wirecall::blocking)";
  }
  if (idle_ == 0 && threads_.size() == settings_.threads_max) {
    return "a handler has not returned yet, and holds up its loop, since hand_over_threads others are away: mark "
           "handlers that wait or compute for long as blocking (wirecall::blocking, in Python blocking=True)";
  }
  return "a handler has not returned yet, and holds up its loop: mark handlers that wait or compute for long as "
         "blocking (wirecall::blocking, in Python blocking=True)";
}

// False when the handler keeps it.
bool HandOver::take_loop(std::uint64_t handler, Clock::time_point since) {
  const bool interrupts = let_in_ != std::thread::id{};  // then there is somebody to go on
  try {
    if (!interrupts && idle_ == 0) {
      if (threads_.size() == settings_.threads_max) return false;
      threads_.emplace_back([this] { work(true); });
    }
    keep_places();
    rpc::Workspace::Scratch fresh = host_->workspace.make_scratch();
    Stint& stint = *current_;
    stint.window.taken.store(true);
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    if (stint.window.running.load(std::memory_order_acquire) != handler) return false;
    // From here on nobody has the loop.
    stint.lent = host_->loop.keep_lent();
    stint.window.call->lose_loop(Clock::now() - since);
    if (host_->looking != nullptr) host_->looking->leave_handler(stint.buffers);
    // Nothing fails any more.
    stint.scratch = host_->workspace.give_up_scratch(std::move(fresh));
    stint.method = stint.window.method.load(std::memory_order_relaxed);
    stint.running = handler;
    stint.since = stint.handler_since = since;
    lost_.push_back(std::move(current_));
  } catch (const std::exception&) {
    return false;  // no memory or no thread: the next look tries again
  }
  count_.fetch_add(1, std::memory_order_relaxed);
  if (interrupts) {
    let_in_ = {};
  } else {
    ++away_;
    wanted_ = true;
  }
  changed_.notify_all();
  return true;
}

void HandOver::log_lost(std::unique_lock<std::mutex>& lock) {
  std::vector<Slow> slow;
  for (const auto& stint : lost_) {
    const std::uint64_t running = stint->window.running.load(std::memory_order_acquire);
    if (running != stint->running) {
      stint->running = running;
      stint->since = Clock::now();
    }
    const bool in_handler = running != 0 && (running & detail::HandlerWindow::kAround) == 0;
    if (!in_handler || stint->logged || !is_over(Clock::now() - stint->since, settings_.logged_after)) continue;
    slow.push_back({stint->method, Clock::now() - stint->handler_since});
    stint->logged = true;
  }
  if (!slow.empty()) log_slow(lock, slow, kGoesOnWithout);
}

// With the mutex held. For want of memory it is not told.
void HandOver::note_returned(const Method* method, Clock::duration took) noexcept {
  try {
    returned_.push_back({method, took});
  } catch (const std::bad_alloc&) {
    return;
  }
}

void HandOver::log_returned(std::unique_lock<std::mutex>& lock) {
  if (!returned_.empty()) log_slow(lock, std::exchange(returned_, {}), kReturned);
}

// Without the lock: the sink may take its time.
void HandOver::log_slow(std::unique_lock<std::mutex>& lock, const std::vector<Slow>& slow, std::string_view words) {
  if (words != kReturned) slow_.fetch_add(slow.size(), std::memory_order_relaxed);
  const LogSink* const log = host_->workspace.log;
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

}  // namespace wirecall::session
