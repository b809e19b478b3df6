// Taps: what admins are shown of what passes through a broker (rpc.tap): who looks on at which names, the calls that
// somebody was shown and that have not ended, and the texts of what they are shown. What is sent is the router's
// (tap_feed.cpp). Nothing of it is asked where nobody looks on. One thread. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dotted_name.hpp"

namespace wirecall::broker {

class Peer;

/// One who looks on.
struct Tap {
  Peer* peer;
  std::string pattern;  ///< valid
};

/// A call that somebody was shown.
struct TappedCall {
  std::uint64_t id;  ///< the taps' own
  std::string method;
  std::string client;  ///< its caller's name, empty for none
};

/// A value as it was sent.
struct EncodedValue {
  std::string_view text;  ///< empty for none
  bool msgpack = false;   ///< it is not JSON but MessagePack
};

/// What somebody is shown. The texts are shown as they are; empty ones are left out.
struct TapRecord {
  std::string_view kind;
  std::optional<std::uint64_t> id = {};
  std::string_view method;
  std::string_view client = {};                    ///< null where it is empty
  std::optional<std::string_view> provider = {};   ///< the same
  std::optional<std::size_t> delivered = {};       ///< to how many
  std::optional<std::chrono::nanoseconds> time{};  ///< from the request to the response
  std::string_view member = {};                    ///< the name of `value`
  EncodedValue value = {};                         ///< shown as JSON
};

class Taps {
 public:
  /// Values are shown up to so many bytes.
  static constexpr std::size_t kValueShownMax = 1024;

  [[nodiscard]] bool empty() const noexcept { return taps_.empty(); }
  /// Again, it replaces the pattern. Throws std::bad_alloc.
  void set(Peer& peer, std::string_view pattern);
  /// Whether the peer looked on.
  bool remove(const Peer& peer) noexcept;
  /// Whether anybody looks on at that name.
  [[nodiscard]] bool any(std::string_view name) const noexcept;
  /// Calls visit(Peer&) for each who does.
  template <class Visit>
  void each(std::string_view name, const Visit& visit) const {
    for (const Tap& tap : taps_) {
      if (matches(tap.pattern, name)) visit(*tap.peer);
    }
  }

  /// A call by the broker's number of it; one that has none is not kept.
  TappedCall begin(std::optional<std::uint64_t> number, std::string_view method, std::string_view client);
  /// The call, which is forgotten; nothing for one that nobody was shown.
  [[nodiscard]] std::optional<TappedCall> end(std::uint64_t number);

 private:
  std::vector<Tap> taps_;
  std::unordered_map<std::uint64_t, TappedCall> calls_;  // by the broker's number
  std::uint64_t last_id_ = 0;
};

/// The notification that shows it.
[[nodiscard]] std::string text_of(const TapRecord& record);

}  // namespace wirecall::broker
