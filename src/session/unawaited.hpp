// Unawaited: what a client has sent on a connection that may be refused without an id although nobody waits for it:
// notifications, and calls that were given up. While there is any, such a refusal cannot be told from that of a call.
// What is left of it is forgotten as soon as that is certain, by two rules (docs/wire.md, Messages):
// - A message, or element of a batch, is refused once at most.
// - Calls are answered in any order, but messages are looked at in theirs, and refused without an id meanwhile. So an
//   answer to what was sent behind shows that the refusal has come, or never will. Not of what is in a batch: that is
//   refused among the batch's answers, which wait for the slowest.
// Positions are of the connection's output. Guarded by the core's mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace wirecall::session {

class Unawaited {
 public:
  /// The position of what is in a batch: nothing is behind it.
  static constexpr std::uint64_t kInBatch = std::numeric_limits<std::uint64_t>::max();

  /// So many more, the last of which ends there.
  void add(std::uint32_t count, std::uint64_t position) noexcept {
    count_ += count;
    go_on(position);
  }
  /// What belongs to them ends there.
  void go_on(std::uint64_t position) noexcept {
    if (count_ != 0) end_ = std::max(end_, position);
  }
  /// A refusal without an id has come. True when it may have been of one of these, which are one less now.
  [[nodiscard]] bool refused() noexcept {
    if (count_ == 0) return false;
    if (--count_ == 0) end_ = 0;
    return true;
  }
  /// A call that ends there has been answered.
  void answered(std::uint64_t position) noexcept {
    if (count_ != 0 && position > end_) clear();
  }
  void clear() noexcept {
    count_ = 0;
    end_ = 0;
  }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t end_ = 0;  // of the last of them; 0 for none
};

}  // namespace wirecall::session
