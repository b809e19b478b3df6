// MemoryBudget: the bytes that connections hold of one budget: those of one principal (rpc/accounts.hpp), or all whose
// peers have not said who they are. Beyond the budget the connection that holds most is evicted, so that newcomers find
// room. A MemoryConsumer is in the list of its budget as long as it holds anything. One thread (the loop's). Pure.
#pragma once

#include <cstddef>

namespace wirecall::rpc {

/// Bytes of a message that a peer may send before it has said who it is, and of answers that it may leave unread.
inline constexpr std::size_t kUnidentifiedBytesMax = 64 * 1024;

/// What a connection may hold without being on an account (rpc/accounts.hpp).
inline constexpr std::size_t kBytesUnweighed = 64 * 1024;
/// Messages that nobody waits for are sent without a question for room in the budget (MessageSink::has_budget_for) when
/// they are no larger: a connection is overfull with so much less, and what is written around one.
inline constexpr std::size_t kBytesUnasked = 4 * 1024;

class MemoryBudget;

class MemoryConsumer {
 public:
  MemoryConsumer() noexcept = default;
  MemoryConsumer(MemoryConsumer&&) = delete;

 protected:
  ~MemoryConsumer() { leave(); }

 private:
  friend class MemoryBudget;
  /// Its connection is to be closed, and what it holds be given back.
  virtual void evict() = 0;
  inline void leave() noexcept;

  MemoryBudget* all_ = nullptr;  ///< null for one that holds nothing
  MemoryConsumer* before_ = nullptr;
  MemoryConsumer* after_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Outlives the consumers that hold anything of it.
class MemoryBudget {
 public:
  /// `one` holds so many bytes now, and nothing of another budget. While all together hold more than `bytes_max`, the
  /// one that holds most is evicted.
  void hold(MemoryConsumer& one, std::size_t bytes, std::size_t bytes_max) {
    set(one, bytes);
    while (bytes_ > bytes_max) {
      MemoryConsumer* heaviest = first_;
      for (MemoryConsumer* other = first_; other != nullptr; other = other->after_) {
        if (other->bytes_ > heaviest->bytes_) heaviest = other;
      }
      heaviest->leave();
      heaviest->evict();
    }
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// How many of them are that consumer's.
  [[nodiscard]] std::size_t of(const MemoryConsumer& one) const noexcept { return one.all_ == this ? one.bytes_ : 0; }

 private:
  friend class MemoryConsumer;
  void set(MemoryConsumer& one, std::size_t bytes) noexcept {
    if (one.all_ != this || bytes == 0) one.leave();
    if (bytes == 0) return;
    if (one.all_ == nullptr) {
      one.all_ = this;
      one.after_ = first_;
      if (first_ != nullptr) first_->before_ = &one;
      first_ = &one;
    }
    bytes_ += bytes - one.bytes_;
    one.bytes_ = bytes;
  }

  MemoryConsumer* first_ = nullptr;
  std::size_t bytes_ = 0;
};

inline void MemoryConsumer::leave() noexcept {
  if (all_ == nullptr) return;
  all_->bytes_ -= bytes_;
  (before_ != nullptr ? before_->after_ : all_->first_) = after_;
  if (after_ != nullptr) after_->before_ = before_;
  all_ = nullptr;
  before_ = after_ = nullptr;
  bytes_ = 0;
}

}  // namespace wirecall::rpc
