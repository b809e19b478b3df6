// RetainedRequests: what a peer has asked for of the events that are retained, and the live ones that are kept behind
// them. Owned by the Peer. One thread. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "base/dotted_name.hpp"

namespace wirecall::broker {

struct RetainedRequests {
  /// Bytes of events that are kept for the peer until it has been sent what is retained.
  static constexpr std::size_t kHeldBytesMax = 64 * 1024;

  /// Whether the topic's retained event, as it is then, is still to be sent to the peer; of many patterns as far as the
  /// first few say.
  [[nodiscard]] bool is_due(std::string_view topic) const noexcept {
    constexpr std::size_t kPatternsLookedAt = 16;
    return std::ranges::any_of(due | std::views::take(kPatternsLookedAt), [topic](const auto& pattern_and_next) {
      return topic >= pattern_and_next.second && matches(pattern_and_next.first, topic);
    });
  }
  /// Keeps an event for later, as far as there is room. Throws std::bad_alloc.
  [[nodiscard]] bool hold(std::string_view text) {
    const std::size_t bytes = text.size() + sizeof(std::string);
    if (held_bytes + bytes > kHeldBytesMax) return false;
    held.emplace_back(text);
    held_bytes += bytes;
    return true;
  }

  std::string asked;                                    ///< a pattern, until its subscription has been answered
  std::map<std::string, std::string, std::less<>> due;  ///< by pattern: the topic from which on it has not been sent
  bool backpressured = false;     ///< too much waits for the peer: events are dropped until it is writable
  bool queued = false;            ///< goes on in a later turn (RetainedSender::queue_)
  std::vector<std::string> held;  ///< events that follow, as they are sent
  std::size_t held_bytes = 0;
};

}  // namespace wirecall::broker
