// WatchdogSlot: shows a watchdog which handler the thread of a loop runs, and for how long
// (src/server/loop_takeover.hpp). WatchdogScope fills it while the handler has the thread, long params are decoded for
// it, or its answer is written off the loop (OffLoopReply). A plain function touches nothing of the loop, so another
// thread can take the loop over in that time; a coroutine touches it, and keeps it. Opening and closing a scope are
// plain stores and loads: the watcher makes up for the missing fence. Thread: the loop's, but for what says so.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

namespace wirecall {

class Call;
class Method;

namespace detail {

struct WatchdogSlot;

/// Watches for handlers that do not return.
class Watchdog {
 public:
  /// The watcher sleeps, because no handler has run for a while.
  std::atomic<bool> asleep{false};

  virtual void wake() noexcept = 0;
  /// The handler has returned, and may have lost the loop: then this returns when its thread may touch the loop again.
  virtual void rejoin(WatchdogSlot& slot) noexcept = 0;

 protected:
  ~Watchdog() = default;
};

/// A handler of several calls, which is told when its thread loses the loop.
class BatchHandler {
 public:
  /// The handler has run for `ran`. On the watcher's thread, while nobody has the loop. Throws std::bad_alloc.
  virtual void lose_loop(std::chrono::nanoseconds ran) = 0;

 protected:
  ~BatchHandler() = default;
};

struct WatchdogSlot {
  explicit WatchdogSlot(Watchdog& watchdog) noexcept : watchdog(&watchdog) {}

  Watchdog* watchdog;
  // What runs, as bits of `running`.
  static constexpr std::uint64_t kHandler = 0;
  static constexpr std::uint64_t kKeepsLoop = 1;  ///< the handler, which keeps the loop
  static constexpr std::uint64_t kAround = 2;     ///< not the handler, but what is done for it

  std::uint64_t count = 0;
  // Whose handler runs, for whoever has made sure that it still does: a call's or a batch's.
  Call* call = nullptr;
  BatchHandler* batch = nullptr;
  std::atomic<const Method*> method{nullptr};  ///< the one that runs; any thread may read it
  /// Handler sequence number << 2 | kind; 0 when idle. Any thread may read it.
  std::atomic<std::uint64_t> running{0};
  std::atomic<bool> taken{false};  ///< the watcher's: the loop may have been given away
};

/// Fills the call's slot, if there is one, for as long as it lives.
class WatchdogScope {
 public:
  /// `call` is null for a handler that keeps the loop.
  WatchdogScope(WatchdogSlot* slot, const Method& method, Call* call,
                std::uint64_t what = WatchdogSlot::kHandler) noexcept
      : slot_(slot) {
    if (slot_ == nullptr) return;
    slot_->call = call;
    begin(method, what);
  }
  WatchdogScope(WatchdogSlot* slot, const Method& method, BatchHandler& batch) noexcept : slot_(slot) {
    if (slot_ == nullptr) return;
    slot_->call = nullptr;
    slot_->batch = &batch;
    begin(method, WatchdogSlot::kHandler);
  }
  ~WatchdogScope() { close(); }
  WatchdogScope(WatchdogScope&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}

  /// Something else runs from here on, and has its own time.
  void enter_phase(std::uint64_t what) noexcept {
    if (slot_ != nullptr) slot_->running.store(++slot_->count << 2 | what, std::memory_order_release);
  }
  /// Somebody else may have the loop by now.
  [[nodiscard]] bool may_be_late() const noexcept {
    return slot_ != nullptr && slot_->taken.load(std::memory_order_relaxed);
  }
  /// This thread has the loop when it returns.
  void close() noexcept {
    close([] {});
  }
  /// The same; `before` is called where it has to wait for the loop, to give up what those who have the loop may need.
  template <class F>
  void close(F before) noexcept {
    if (slot_ == nullptr) return;
    slot_->running.store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (slot_->taken.load(std::memory_order_relaxed)) [[unlikely]] {
      before();
      slot_->watchdog->rejoin(*slot_);
    }
    slot_ = nullptr;
  }

 private:
  void begin(const Method& method, std::uint64_t what) noexcept {
    slot_->method.store(&method, std::memory_order_relaxed);
    enter_phase(what);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (slot_->watchdog->asleep.load(std::memory_order_relaxed)) [[unlikely]]
      slot_->watchdog->wake();
  }

  WatchdogSlot* slot_;
};

}  // namespace detail
}  // namespace wirecall
