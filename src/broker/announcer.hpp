// Announcer: tells by events what the broker does: who comes and goes, what is provided. One connection may register
// thousands of methods before thousands who watch: each turn tells a share of that. One thread.
#pragma once

#include <deque>

#include "broker/context.hpp"
#include "broker/event_bus.hpp"
#include "broker/peer_table.hpp"
#include "broker/turn_budget.hpp"

namespace wirecall::broker {

struct Announcement {
  std::string_view topic;  ///< of static storage
  std::uint64_t peer = 0;  ///< Peer::number of whom it is about
  std::string client;      ///< its name; empty for none
  std::string method;      ///< empty for none
};

/// The events that wait for a later turn, in order. Bounded in bytes: beyond that it counts what is lost, by topic,
/// until the others have been told. Pure.
class Announcements {
 public:
  static constexpr std::size_t kBytesMax = 16 * 1024 * 1024;

  struct Lost {
    std::string_view topic;
    std::uint64_t count = 0;
  };

  /// Throws std::bad_alloc, having changed nothing.
  void add(Announcement announcement) {
    const std::size_t bytes = bytes_of(announcement);
    if (!lost_.empty() || bytes > kBytesMax - bytes_) return lose(announcement.topic);
    waiting_.push_back(std::move(announcement));
    bytes_ += bytes;
  }
  /// Whether nothing waits to be told, nor has been lost.
  [[nodiscard]] bool empty() const noexcept { return waiting_.empty() && lost_.empty(); }
  /// Whether the next thing to tell of is what has been lost.
  [[nodiscard]] bool next_are_lost() const noexcept { return waiting_.empty(); }
  /// The oldest, where there is one.
  [[nodiscard]] Announcement take() noexcept {
    Announcement first = std::move(waiting_.front());
    waiting_.pop_front();
    bytes_ -= bytes_of(first);
    return first;
  }
  [[nodiscard]] std::vector<Lost> take_lost() noexcept { return std::exchange(lost_, {}); }

 private:
  static std::size_t bytes_of(const Announcement& one) noexcept {
    return sizeof(Announcement) + one.client.size() + one.method.size();
  }
  void lose(std::string_view topic) {
    for (Lost& one : lost_) {
      if (one.topic == topic) return static_cast<void>(++one.count);
    }
    lost_.push_back({.topic = topic, .count = 1});
  }

  std::deque<Announcement> waiting_;
  std::size_t bytes_ = 0;  // of them
  std::vector<Lost> lost_;
};

class Announcer {
 public:
  /// All referred to outlive it.
  Announcer(BrokerContext& context, EventBus& events, const FanOuts& fan_outs, const TapFeed& tap_feed)
      : context_(&context),
        events_(&events),
        fan_outs_(&fan_outs),
        tap_feed_(&tap_feed),
        budget_(context.loop.scheduler, kSteps, [this] { tell_more(); }) {}

  /// `topic` is of static storage; `method` is empty for none.
  void announce(Peer& peer, std::string_view topic, std::string_view method = {}) noexcept;

 private:
  // Steps of a share (rpc::Share) that one turn spends; one event may take more.
  static constexpr std::size_t kSteps = 2048;

  void tell(Peer* peer, std::string_view topic, std::string_view client, std::string_view method);
  void tell_of_lost();
  void tell_more() noexcept;

  BrokerContext* context_;
  EventBus* events_;
  const FanOuts* fan_outs_;
  const TapFeed* tap_feed_;
  Announcements waiting_;
  TurnBudget budget_;
  std::size_t cost_ = 0;  // of the last one, in steps
};

}  // namespace wirecall::broker
