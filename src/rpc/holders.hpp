// Holders: what connections hold of one budget of bytes: those of one principal (rpc/accounts.hpp), or all whose peers
// have not said who they are. Beyond the budget the one that holds most gives way, so that newcomers find room. A
// holder stands in the list of its budget as long as it holds anything. One thread (the loop's). Pure.
#pragma once

#include <cstddef>

namespace wirecall::rpc {

/// Bytes of a message that a peer may send before it has said who it is, and of answers that it may leave unread.
inline constexpr std::size_t kUnidentifiedBytesMax = 64 * 1024;

/// What a connection may hold without being on an account (rpc/accounts.hpp).
inline constexpr std::size_t kBytesUnweighed = 64 * 1024;
/// Messages that nobody waits for are sent without a question for room in the budget (Outlet::has_budget_for) when they
/// are no larger: a connection is overfull with so much less, and what is written around one.
inline constexpr std::size_t kBytesUnasked = 4 * 1024;

class Holders;

class Holder {
 public:
  Holder() noexcept = default;
  Holder(Holder&&) = delete;

 protected:
  ~Holder() { leave(); }

 private:
  friend class Holders;
  /// Its connection is to be closed, and what it holds be given back.
  virtual void give_way() = 0;
  inline void leave() noexcept;

  Holders* all_ = nullptr;  ///< null for one that holds nothing
  Holder* before_ = nullptr;
  Holder* after_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Outlives the holders that hold anything of it.
class Holders {
 public:
  /// `one` holds so many bytes now, and nothing of another budget. While all together hold more than `bytes_max`, the
  /// one that holds most gives way.
  void hold(Holder& one, std::size_t bytes, std::size_t bytes_max) {
    set(one, bytes);
    while (bytes_ > bytes_max) {
      Holder* heaviest = first_;
      for (Holder* other = first_; other != nullptr; other = other->after_) {
        if (other->bytes_ > heaviest->bytes_) heaviest = other;
      }
      heaviest->leave();
      heaviest->give_way();
    }
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// How many of them are that holder's.
  [[nodiscard]] std::size_t of(const Holder& one) const noexcept { return one.all_ == this ? one.bytes_ : 0; }

 private:
  friend class Holder;
  void set(Holder& one, std::size_t bytes) noexcept {
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

  Holder* first_ = nullptr;
  std::size_t bytes_ = 0;
};

inline void Holder::leave() noexcept {
  if (all_ == nullptr) return;
  all_->bytes_ -= bytes_;
  (before_ != nullptr ? before_->after_ : all_->first_) = after_;
  if (after_ != nullptr) after_->before_ = before_;
  all_ = nullptr;
  before_ = after_ = nullptr;
  bytes_ = 0;
}

}  // namespace wirecall::rpc
