// LoopTakeover: keeps a loop going when a handler does not return. A handler that has run for too long loses the
// loop: another thread takes it over, ends the turn and makes the next ones. When the handler returns at last, its
// thread waits for the end of a turn, has the loop to itself while it answers and leaves what it was called from, and
// is then idle. Its call is meanwhile one of those in flight: it can be cancelled, and its time can be up. So a
// slow handler delays nobody but whoever waits for its answer, and one that is quick costs a few plain stores.
//
// Only handlers that are plain functions can lose the loop: a coroutine touches it whenever it waits, and middleware
// whenever it answers. A coroutine that blocks is only logged. The loop goes on as well without who decodes long
// params, of a coroutine too, or writes a late answer; but that is not the handler's time, and not logged.
//
// Exactly one thread has the loop at any time; passing it on goes through one mutex. Threads are made when they are
// needed and kept. Owned by whoever owns the loop, whose thread is that which calls `run`.
//
// Who has the loop, under the mutex:
//   current_ alone             its thread, in turns of the loop
//   neither                    nobody yet: it was taken from a handler (lost_), and `wanted_` by an idle thread
//   interrupted_, current_     the thread let_in_, which rejoins; that of interrupted_ waits in `let_in`
//   interrupted_ alone         let_in_, about to begin; or nobody: taken from a handler once more, and about to go back
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "connection/connection.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/detail/watchdog_slot.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::net {

class LoopTakeover final : private detail::Watchdog {
 public:
  struct Settings {
    /// A handler that has run for so long loses the loop; 0 for never.
    std::chrono::milliseconds after{20};
    /// And after so long it is logged, with its name; 0 for never.
    std::chrono::milliseconds logged_after{50};
    /// Handlers that may be off the loop at once; the next slow one keeps the loop.
    std::size_t threads_max = 256;
  };

  /// `host` outlives it. Where the kernel refuses the fence that this stands on, every handler keeps its loop, and none
  /// is logged.
  LoopTakeover(Host& host, Settings settings);
  ~LoopTakeover();
  LoopTakeover(LoopTakeover&&) = delete;

  /// Calls `serve` on this thread; when a handler keeps it there, on another one once more; and so on. Returns when one
  /// of them has returned and all handlers have rejoined. `serve` makes its turns by `turn`.
  void run(std::function<void()> serve);
  /// One turn of the loop. Throws something that is to pass through `serve` when the loop has been given to another
  /// thread meanwhile.
  void turn(std::chrono::nanoseconds wait_max);
  /// Handlers that have lost the loop and not rejoined it. What they were called from must outlive that.
  [[nodiscard]] std::size_t off_loop() const noexcept { return off_loop_; }
  /// The errno with which the kernel has refused what `settings` need; 0 for none.
  [[nodiscard]] int refused() const noexcept { return refused_; }
  /// How often the loop was taken from a handler. Any thread.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  /// Handlers that were slow enough to be logged. Any thread.
  [[nodiscard]] std::uint64_t slow() const noexcept { return slow_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;

  // The time in which one thread has the loop.
  struct LoopLease {
    explicit LoopLease(Watchdog& watchdog) : slot(watchdog) {}

    detail::WatchdogSlot slot;
    std::thread::id thread;
    // Once the loop has been taken: from which handler, what of it runs, when that began, and what it may still read
    // from.
    const Method* method = nullptr;
    std::uint64_t running = 0;
    Clock::time_point since;
    Clock::time_point handler_since;
    bool logged = false;
    std::vector<std::shared_ptr<void>> lent;
    rpc::LoopCodecs::Scratch scratch;
    std::vector<Buffer> buffers;
  };
  struct Lost {};
  // A handler that has taken, or takes, so long.
  struct Slow {
    const Method* method;
    Clock::duration took;
  };
  // What the log was told last about a method, and how often it was not told the same since.
  struct Told {
    Clock::time_point when = Clock::time_point::min();
    std::int64_t untold = 0;
  };

  void wake() noexcept override;
  void rejoin(detail::WatchdogSlot& slot) noexcept override;

  void work(bool resume);
  void begin_lease() noexcept;
  void reserve_leases();
  void after_turn() noexcept;
  void end_turn();
  void let_in(std::unique_lock<std::mutex>& lock);
  void watch();
  bool take_loop(std::uint64_t handler, Clock::time_point since);
  [[nodiscard]] std::string_view why_it_waits(bool keeps) const noexcept;
  void log_lost(std::unique_lock<std::mutex>& lock);
  void log_returned(std::unique_lock<std::mutex>& lock);
  void note_returned(const Method* method, Clock::duration took) noexcept;
  void log_slow(std::unique_lock<std::mutex>& lock, const std::vector<Slow>& slow, std::string_view words);

  Host* host_;
  const Settings settings_;
  const std::chrono::milliseconds poll_interval_;  // of the watcher
  std::function<void()> serve_;
  const int refused_;   // by the kernel, the fence that this stands on: an errno, or 0
  const bool watches_;  // there is something to watch for, and that fence

  std::mutex mutex_;
  std::condition_variable changed_;         // any of what follows
  std::condition_variable wake_up_;         // for the watcher
  std::unique_ptr<LoopLease> current_;      // of the thread that has the loop
  std::unique_ptr<LoopLease> interrupted_;  // of the thread that has let in one that rejoins, and waits
  std::vector<std::unique_ptr<LoopLease>> lost_;
  std::vector<std::unique_ptr<LoopLease>> spare_;  // one for each of lost_, and one for the thread that takes over
  std::vector<std::thread::id> waiting_;           // threads that want to rejoin; has capacity for each of lost_
  std::atomic<bool> anybody_waits_{false};
  std::thread::id let_in_;  // the one of them that has the loop now
  bool wanted_ = false;     // a thread is to take the loop over
  bool finished_ = false;
  std::exception_ptr error_;
  std::size_t idle_ = 0;
  std::size_t off_loop_ = 0;  // changed with the mutex held and the loop not running
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> slow_{0};
  std::vector<Slow> returned_;  // handlers that were logged, have returned, and are to be told of
  std::map<std::pair<const Method*, std::string_view>, Told> told_;  // by method and words
  std::vector<std::thread> threads_;
  std::thread watcher_;
};

}  // namespace wirecall::net
