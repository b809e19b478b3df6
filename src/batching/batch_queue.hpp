// BatchQueue: the calls of one batched method that wait, and which of them leave together. It goes by counts, sizes,
// priorities and what it is told of time; it knows no clock, no thread and no function. Only calls of one group leave
// together, such as those with equal shared parameters. One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace wirecall::batching {

/// The bounds of one batch, and of all calls that wait. None is 0. One call may always wait.
struct Bounds {
  std::size_t calls;
  std::size_t rows;
  std::size_t bytes;  ///< of params
  std::size_t waiting;
  std::size_t waiting_bytes;
};

struct BatchGroup;

/// A call that waits. Whoever makes it owns it, and removes it from the queue before it goes.
struct WaitingCall {
  struct Links {
    WaitingCall* before = nullptr;
    WaitingCall* after = nullptr;
  };

  std::size_t rows = 1;   ///< 1 at least
  std::size_t bytes = 0;  ///< of its params
  int priority = 0;       ///< a greater one leaves first
  std::chrono::nanoseconds deadline = std::chrono::nanoseconds::max();

  // The queue's.
  BatchGroup* group = nullptr;  ///< null while it does not wait
  bool ripe = false;            ///< it has waited for as long as it is to
  Links in_group;               ///< among those of its group and priority
  Links in_queue;               ///< among those of its priority
};

/// Calls of one priority in the order in which they came.
class CallList {
 public:
  using Links = WaitingCall::Links WaitingCall::*;
  explicit CallList(Links links) noexcept : links_(links) {}

  [[nodiscard]] WaitingCall* first() const noexcept { return first_; }
  [[nodiscard]] WaitingCall* last() const noexcept { return last_; }
  [[nodiscard]] WaitingCall* after(const WaitingCall& call) const noexcept { return (call.*links_).after; }
  void push_back(WaitingCall& call) noexcept;
  void remove(WaitingCall& call) noexcept;

 private:
  Links links_;
  WaitingCall* first_ = nullptr;
  WaitingCall* last_ = nullptr;
};

class BatchQueue {
 public:
  explicit BatchQueue(const Bounds& bounds) noexcept;
  BatchQueue(BatchQueue&&) = delete;
  ~BatchQueue();

  /// The call waits from now on. Where there is no room, one has to go for it: the call whose deadline is the earliest,
  /// if that comes before `hopeless_before`; else the last of the lowest priority, if that is lower than the call's;
  /// else the call itself, as it does where its bytes need the room of several. Returns which, and that one does not
  /// wait; null for none. Throws std::bad_alloc, and has no effect then.
  [[nodiscard]] WaitingCall* add(WaitingCall& call, const std::string& group, std::chrono::nanoseconds hopeless_before);
  /// It waits no more. No effect on one that does not.
  void remove(WaitingCall& call) noexcept;
  /// It has waited for as long as it is to, so its group is due. No effect on one that does not wait.
  void ripen(WaitingCall& call) noexcept;
  /// All have.
  void ripen_all() noexcept;
  /// Whether the calls of its group fill a batch.
  [[nodiscard]] bool fills_batch(const WaitingCall& call) const noexcept;
  /// Whether a group is due: one of its calls is ripe, or they fill a batch.
  [[nodiscard]] bool is_due() const noexcept { return due_groups_ != 0; }
  /// Takes the next batch out of a group that is due: the one whose call has the greatest priority and, of these, came
  /// first. Its calls stand by priority, then as they came. One that is more than a batch may be is a batch by itself.
  /// `batch` is empty where no group is due.
  void take(std::vector<WaitingCall*>& batch);

  /// The call of such a group whose batch is next; null for none.
  [[nodiscard]] WaitingCall* first_due() const noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  using ByPriority = std::map<int, CallList, std::greater<>>;
  friend struct BatchGroup;

  [[nodiscard]] bool has_room(const WaitingCall& call, std::size_t calls_less, std::size_t bytes_less) const noexcept;
  [[nodiscard]] WaitingCall* leaver_for(const WaitingCall& call, std::chrono::nanoseconds hopeless_before) noexcept;
  [[nodiscard]] WaitingCall* earliest() noexcept;
  [[nodiscard]] bool is_full(const BatchGroup& group) const noexcept;
  [[nodiscard]] bool is_due(const BatchGroup& group) const noexcept;
  void link(WaitingCall& call, BatchGroup& group);
  void drop_if_empty(ByPriority& lists, int priority) noexcept;

  const Bounds bounds_;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
  std::size_t ripe_ = 0;
  std::size_t due_groups_ = 0;
  std::unordered_map<std::string, std::unique_ptr<BatchGroup>> groups_;
  ByPriority calls_;
  // No call's deadline is earlier, so that a full queue is not searched for each call that comes.
  std::chrono::nanoseconds earliest_ = std::chrono::nanoseconds::max();
};

}  // namespace wirecall::batching
