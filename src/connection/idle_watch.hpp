// IdleWatch: counts the intervals in which a peer has done too little (Connection::end_if_idle). Owned by a channel;
// used on its loop's thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace wirecall::net {

class IdleWatch {
 public:
  void received(std::size_t bytes) noexcept {
    heard_ = true;
    moved(bytes);
  }
  void sent() noexcept {
    sent_ = true;
    moved(1);
  }
  void message_completed() noexcept { moved(kMessageBytesMin); }

  /// Intervals in a row, this one included, at whose ends output waited of which the peer had taken nothing.
  /// `unsent` bytes of the send in flight wait now.
  [[nodiscard]] std::uint8_t count_unread(std::size_t unsent) noexcept {
    const std::uint32_t before = std::exchange(unsent_, static_cast<std::uint32_t>(unsent));
    const bool taken = sent_ || unsent_ != before;  // while it is one send, there is less and less
    sent_ = false;
    unread_times_ = unsent_ != 0 && !taken ? (unread_times_ + 1) & kTimesMax : 0;
    return unread_times_;
  }
  /// Intervals in a row, this one included, in which nothing has moved on a connection that is not `active`. A message
  /// that is `unfinished` moves when it brings 4 KiB in `times` intervals, the one in which it began aside.
  [[nodiscard]] std::uint8_t count_idle(bool unfinished, bool active, std::uint8_t times) noexcept {
    const std::size_t least = was_unfinished_ && unfinished ? kMessageBytesMin / times : 1;
    was_unfinished_ = unfinished;
    const bool alive = std::exchange(moved_, 0) >= least || active;
    idle_times_ = alive ? 0 : (idle_times_ + 1) & kTimesMax;
    return idle_times_;
  }
  /// Intervals in a row, this one included, in which nothing was received; 15 for more.
  [[nodiscard]] std::uint8_t count_silent() noexcept {
    silent_times_ = heard_ ? 0 : std::min<std::uint8_t>(silent_times_ + 1, kTimesMax);
    heard_ = false;
    return silent_times_;
  }
  void forget_idle() noexcept {
    moved_ = 0;
    idle_times_ = 0;
  }
  /// From now on the system watches the peer. False: it has done so before.
  [[nodiscard]] bool begin_system_watch() noexcept {
    const bool first = !watched_by_system_;
    watched_by_system_ = true;
    return first;
  }

 private:
  static constexpr std::size_t kMessageBytesMin = 4096;
  static constexpr std::size_t kMovedMax = 0xffff;
  static constexpr std::uint8_t kTimesMax = 15;  // the counters have four bits

  void moved(std::size_t bytes) noexcept { moved_ = static_cast<std::uint16_t>(std::min(moved_ + bytes, kMovedMax)); }

  std::uint32_t unsent_ = 0;  // bytes that waited at the last `count_unread`, modulo 2^32
  std::uint16_t moved_ = 0;   // bytes received, and more, since the last `count_idle`; no more than kMovedMax
  std::uint8_t idle_times_ : 4 = 0;
  std::uint8_t unread_times_ : 4 = 0;
  std::uint8_t silent_times_ : 4 = 0;
  bool was_unfinished_ : 1 = false;  // a message had begun at the last `count_idle` and not ended
  bool sent_ : 1 = false;            // a send has ended since the last `count_unread`
  bool heard_ : 1 = true;            // something has been received since the last `count_silent`
  bool watched_by_system_ : 1 = false;
};

}  // namespace wirecall::net
