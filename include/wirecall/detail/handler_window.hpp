// What the thread of a loop shows of the handler that it runs, for somebody who watches whether it comes back
// (src/session/hand_over.hpp). Open while the handler has the thread, or long params are decoded for it, or its answer
// is written aside (AsideAnswer). A plain function touches nothing of the loop, so in that time the loop can be given
// to another thread; a coroutine does, and keeps it. Opening and closing are plain stores and loads, since the watcher
// makes up for the missing fence. Thread: the loop's, but for what says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace wirecall {

class Call;
class Method;

namespace detail {

struct HandlerWindow;

/// Who watches.
class HandlerWatch {
 public:
  /// The watcher sleeps, because no handler has run for a while.
  std::atomic<bool> asleep{false};

  virtual void wake() noexcept = 0;
  /// The handler has come back, and may be too late: then this returns when its thread may touch the loop again.
  virtual void come_back(HandlerWindow& window) noexcept = 0;

 protected:
  ~HandlerWatch() = default;
};

struct HandlerWindow {
  explicit HandlerWindow(HandlerWatch& watch) noexcept : watch(&watch) {}

  HandlerWatch* watch;
  // What runs, as bits of `running`.
  static constexpr std::uint64_t kHandler = 0;
  static constexpr std::uint64_t kKeepsLoop = 1;  ///< the handler, which keeps the loop
  static constexpr std::uint64_t kAround = 2;     ///< not the handler, but what is done for it

  std::uint64_t count = 0;
  Call* call = nullptr;                        ///< whose handler runs; for whoever has made sure that it still does
  std::atomic<const Method*> method{nullptr};  ///< the one that runs; any thread may read it
  /// The how-manieth it is since the start, four times, and what it is; 0 for nothing. Any thread may read it.
  std::atomic<std::uint64_t> running{0};
  std::atomic<bool> taken{false};  ///< the watcher's: the loop may have been given away
};

/// Opens the call's window, if there is one, for as long as it lives. Without a call the handler keeps the loop.
class InHandler {
 public:
  InHandler(HandlerWindow* window, const Method& method, Call* call,
            std::uint64_t what = HandlerWindow::kHandler) noexcept
      : window_(window) {
    if (window_ == nullptr) return;
    window_->call = call;
    window_->method.store(&method, std::memory_order_relaxed);
    goes_on_to(call == nullptr ? HandlerWindow::kKeepsLoop : what);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (window_->watch->asleep.load(std::memory_order_relaxed)) [[unlikely]]
      window_->watch->wake();
  }
  ~InHandler() { close(); }
  InHandler(InHandler&& other) noexcept : window_(std::exchange(other.window_, nullptr)) {}

  /// Something else runs from here on, and has its own time.
  void goes_on_to(std::uint64_t what) noexcept {
    if (window_ != nullptr) window_->running.store(++window_->count << 2 | what, std::memory_order_release);
  }
  /// Somebody else may have the loop by now.
  [[nodiscard]] bool may_be_late() const noexcept {
    return window_ != nullptr && window_->taken.load(std::memory_order_relaxed);
  }
  /// This thread has the loop when it returns.
  void close() noexcept {
    if (window_ == nullptr) return;
    window_->running.store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (window_->taken.load(std::memory_order_relaxed)) [[unlikely]]
      window_->watch->come_back(*window_);
    window_ = nullptr;
  }

 private:
  HandlerWindow* window_;
};

}  // namespace detail
}  // namespace wirecall
