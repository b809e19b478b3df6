// RelayedCredit: the credit of one stream on its way through the broker, from the receiver of the items to their
// sender. The sender is told of no more of it at a time than a window has room for. A value. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace wirecall::broker {

struct RelayedCredit {
  /// Items that may be sent before it is known how large they are.
  static constexpr std::uint64_t kFirst = 64;
  /// Of a receiver that takes whatever comes.
  static constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t credit = 0;    ///< items that the sender may still send
  std::uint64_t withheld = 0;  ///< that the receiver takes besides, and the sender has not been told of
  std::size_t item_bytes = 0;  ///< of the largest item so far

  /// What the sender was told of is not told any more: another one is asked.
  void take_back() noexcept { grant(std::exchange(credit, 0)); }
  /// The receiver takes so many items more.
  void grant(std::uint64_t more) noexcept { withheld += std::min(more, kEndless - withheld); }
  /// How much the sender is to be told of, where what it may send is to fill half of `bytes`. None for little of much:
  /// that is kept until there is more.
  [[nodiscard]] std::uint64_t due(std::size_t bytes) const noexcept {
    constexpr std::uint64_t kMax = 1024;
    const std::uint64_t window =
        item_bytes == 0 ? kFirst : std::clamp(std::uint64_t{bytes / 2 / item_bytes}, std::uint64_t{1}, kMax);
    if (credit >= window) return 0;
    const std::uint64_t more = std::min(withheld, window - credit);
    return more == withheld || credit <= window / 2 ? more : 0;
  }
  /// The sender has been told of so much.
  void pass(std::uint64_t more) noexcept {
    withheld -= more;
    credit += more;
  }
};

}  // namespace wirecall::broker
