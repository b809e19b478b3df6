// Driver: which thread drives a client's loop. A thread that blocks for an answer drives by itself, for all others that
// block, and passes that on when it has its answer. As soon as something is asynchronous (a callback, a future, a
// coroutine, methods that the server may call), a background thread drives, and threads that block only wait.
// Client::run makes the caller's thread do what the background thread would. So callbacks are called on the background
// thread or inside run, and nowhere else.
//
// The driver owns the client's one mutex, which guards everything that threads share. The thread that drives has the
// loop and its connections to itself, and lets go of the mutex while it is in a turn. What is driven is a DriverWork.
//
// Thread: any. A function that takes a Lock needs the mutex; so do the others below `lock`, but for what says so.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "client/lock.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::net {

/// Before what there was no memory for is tried again.
inline constexpr std::chrono::milliseconds kMemoryPause{1};

/// Of how long a step may wait, where negative is without end: at most `time`.
inline void shorten(std::chrono::nanoseconds& wait_max, std::chrono::nanoseconds time) noexcept {
  if (wait_max < std::chrono::nanoseconds{0} || time < wait_max) wait_max = time;
}

/// When a thread has to drive although nothing asynchronous is under way.
enum class BackgroundNeed : std::uint8_t {
  none,
  once_started,  ///< where the background thread exists: the server may call methods
  always,        ///< something is declared to a broker
};

/// What a Driver drives: a ClientCore. All with the mutex held.
class DriverWork {
 public:
  /// One turn of the loop, and what belongs to it. Lets go of the mutex meanwhile. `may_block`: the thread that drives
  /// blocks anyway, so it may connect as well; it returns early when others are to drive. `wait_max` < 0: no limit.
  virtual void step(Lock& lock, std::chrono::nanoseconds wait_max, bool may_block) = 0;
  /// Takes note of what has come while nobody drove. True when that took a turn of the loop.
  virtual bool catch_up(Lock& lock) = 0;
  /// Writes what waits to be written. The driver's.
  virtual void write() noexcept = 0;
  /// Something is to be written that nobody waits for.
  [[nodiscard]] virtual bool controls_wait() const noexcept = 0;
  [[nodiscard]] virtual BackgroundNeed background_need() const noexcept = 0;
  /// Tells asynchronous callers what has ended. Lets go of the mutex meanwhile. The driver's.
  virtual void deliver_ended(Lock& lock) = 0;
  /// Ends all that has not ended, for good. Lets go of the mutex meanwhile. The driver's.
  virtual void end_all(Lock& lock) noexcept = 0;
  /// Shared with the background thread.
  [[nodiscard]] virtual std::shared_ptr<void> keep_alive() = 0;

 protected:
  ~DriverWork() = default;
};

class Driver {
 public:
  /// `one_thread`: there is no background thread.
  Driver(DriverWork& work, Loop& loop, bool one_thread) noexcept : work_(work), loop_(loop), one_thread_(one_thread) {}
  Driver(Driver&&) = delete;

  /// Before the client is first used: what each blocked thread asks every 20 ms; true ends its waiting.
  void on_wait(std::function<bool()> interrupted) { interrupted_ = std::move(interrupted); }
  /// This thread drives: it is inside a callback, a handler or run. No mutex.
  [[nodiscard]] bool on_driver() const noexcept {
    return driver_.load(std::memory_order_relaxed) == this_thread_name();
  }
  /// Drives on this thread until `finished` after `begin`. Throws std::logic_error where that cannot be. No mutex.
  void run(const std::function<void()>& begin, const bool& finished, const std::function<void()>& after_each_turn);
  /// Runs `change`, without the mutex, while no other thread drives, so that it may change what is the driver's. Throws
  /// std::logic_error while another thread is in `run`. No mutex.
  void exclusively(const std::function<void()>& change);
  /// Waits while a thread is in `exclusively`. Lets go of the mutex.
  void await_change(Lock& lock);
  /// The client is no more: ends all that has not ended. No mutex.
  void close() noexcept;
  /// What drives, looks at what has changed. No mutex.
  void wake() noexcept { loop_.wake(); }

  [[nodiscard]] Lock lock() const { return Lock{mutex_}; }
  [[nodiscard]] bool closing() const noexcept { return closing_; }

  // ---- a thread that blocks ----

  /// Drives, or waits for who does, until `waiting` is told or the time is over. `now` is the time, or was a moment
  /// ago: that saves a look at the clock for most calls. False when the waiting has been interrupted.
  [[nodiscard]] bool wait(Lock& lock, Waiting& waiting, std::chrono::nanoseconds now,
                          std::chrono::nanoseconds deadline);
  /// One of what it waits for has ended.
  void tell(Waiting& waiting) noexcept {
    if (waiting.unfinished == 0 || --waiting.unfinished != 0) return;
    waiting.ready.notify_one();
    told_ = true;
  }

  // ---- what is asynchronous ----

  /// Before something asynchronous is begun: somebody drives, or will. Throws std::system_error.
  void want_background();
  /// So many calls whose end has not been delivered more.
  void asynchronous(std::size_t more) noexcept { asynchronous_ += more; }
  void asynchronous_over() noexcept { --asynchronous_; }
  /// One call's end has been delivered; it counts from `settle` on. The driver's; no mutex.
  void delivered() noexcept { ++delivered_; }
  void settle() noexcept { asynchronous_ -= std::exchange(delivered_, 0); }
  /// Starts the background thread, which stays. Throws std::system_error.
  void start_background();
  [[nodiscard]] bool background_needed() const noexcept {
    return background_.joinable() && (asynchronous_ != 0 || work_.background_need() != BackgroundNeed::none);
  }
  /// A thread that blocks has to leave driving to `run`, to the background thread, or to who closes.
  [[nodiscard]] bool others_drive() const noexcept { return claim_ != Claim::none || closing_ || background_needed(); }
  [[nodiscard]] bool in_run() const noexcept { return claim_ != Claim::none; }

  // ---- what is to be looked at ----

  /// Something asynchronous has been begun.
  void asynchronous_begun(Lock& lock) noexcept;
  /// What nobody waits for is sent now, by whoever drives. Where that fails, with the next call.
  void send_controls(Lock& lock) noexcept;
  /// The same; on the driver's thread it is written at once, with the calls that wait.
  void write_or_send(Lock& lock) noexcept { on_driver() ? write() : send_controls(lock); }
  void wake_driver() noexcept;
  /// What has been posted to who drives is done now where nobody does. No mutex.
  void run_posted() noexcept;
  /// At the beginning of a step: what is asked for from now on is asked anew.
  void begin_step() noexcept { wake_asked_ = told_ = false; }
  /// What a wake was for has been looked at.
  void wakes_seen() noexcept { wake_asked_ = false; }
  /// A thread that blocks has been told something in this step.
  [[nodiscard]] bool told() const noexcept { return told_; }

 private:
  enum class Claim : std::uint8_t { none, run, exclusive };
  struct Driving;
  struct Claiming;
  struct MakingUp;

  // A name for the present thread that costs no call.
  static const void* this_thread_name() noexcept {
    thread_local const char name = 0;
    return &name;
  }
  void drive(Lock& lock, const Waiting& waiting, std::chrono::nanoseconds now, std::chrono::nanoseconds deadline);
  void drive_once(Lock& lock, std::chrono::nanoseconds wait_max);
  void step_once(Lock& lock) noexcept;
  void background();
  [[nodiscard]] bool interrupted(Lock& lock);
  void claim(Lock& lock, Claim claim, const char* refusal);
  void pass_on() noexcept;
  void write() noexcept;

  DriverWork& work_;
  Loop& loop_;
  const bool one_thread_;
  std::function<bool()> interrupted_;  // may be empty
  std::size_t delivered_ = 0;          // the driver's: not yet taken off asynchronous_

  mutable std::mutex mutex_;
  std::atomic<const void*> driver_{nullptr};  // names the thread that drives
  bool driven_ = false;                       // a thread drives
  Claim claim_ = Claim::none;                 // who drives, or waits to, instead of threads that block
  bool closing_ = false;
  bool wake_asked_ = false;
  bool left_over_ = false;  // something is to be done by a step, of which nothing above tells; for `exclusively`
  bool told_ = false;
  std::condition_variable background_ready_;
  std::condition_variable run_ready_;
  std::condition_variable close_ready_;
  std::thread background_;
  std::vector<Waiting*> waiting_;  // in the order in which they came
  std::size_t asynchronous_ = 0;   // calls that have not been delivered
};

}  // namespace wirecall::net
