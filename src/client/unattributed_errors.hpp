// UnattributedErrors: how many errors without an id a connection may still receive that belong to no waiting call. A
// server refuses a message that it cannot read by an error without an id, and some of what a client sends has no caller
// that waits: notifications, and calls that were given up. While there is any of it, such an error cannot be attributed
// to a call. Two rules say when an error can no longer come (docs/wire.md, Messages):
// - A server refuses a message, or an element of a batch, at most once.
// - A server reads messages in order and refuses them as it reads, while it answers calls in any order. So the answer
//   to a later message shows that the refusal has come, or never will. That is not so in a batch: the refusal of an
//   element is one of the batch's answers, which wait for the slowest.
// A position is a number of bytes of the connection's output. Guarded by the core's mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace wirecall::net {

class UnattributedErrors {
 public:
  /// The position of an element of a batch: no message comes after it.
  static constexpr std::uint64_t kInBatch = std::numeric_limits<std::uint64_t>::max();

  /// `count` more errors may come; the last message they may refuse ends at `position`.
  void add(std::uint32_t count, std::uint64_t position) noexcept {
    count_ += count;
    extend(position);
  }
  /// The last message that may be refused ends at `position`, or later.
  void extend(std::uint64_t position) noexcept {
    if (count_ != 0) end_ = std::max(end_, position);
  }
  /// An error without an id has come. True when it may be one of these; then one less may come.
  [[nodiscard]] bool refused() noexcept {
    if (count_ == 0) return false;
    if (--count_ == 0) end_ = 0;
    return true;
  }
  /// A call whose message ends at `position` has been answered.
  void answered(std::uint64_t position) noexcept {
    if (count_ != 0 && position > end_) clear();
  }
  void clear() noexcept {
    count_ = 0;
    end_ = 0;
  }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t end_ = 0;  // position of the last of them; 0 for none
};

}  // namespace wirecall::net
