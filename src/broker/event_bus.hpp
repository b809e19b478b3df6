// EventBus: brings an event from who publishes it to those who subscribe to its topic. One thread. Implements
// docs/broker.md "Events".
#pragma once

#include "broker/context.hpp"
#include "broker/event_delivery.hpp"
#include "broker/fan_outs.hpp"
#include "broker/retained.hpp"
#include "broker/subscriptions.hpp"
#include "broker/tap_feed.hpp"
#include "rpc/rendering.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

/// What an event has come to.
struct Delivered {
  std::size_t count = 0;          ///< of connections that it was queued to
  std::size_t cost = 0;           ///< in steps of a connection's share (rpc::Share)
  const FanOut* later = nullptr;  ///< in which others are still to be told; null for none
};

class EventBus {
 public:
  /// All referred to outlive it.
  EventBus(BrokerContext& context, FanOuts& fan_outs, TapFeed& tap_feed) noexcept
      : context_(&context),
        fan_outs_(&fan_outs),
        tap_feed_(&tap_feed),
        retained_(context.limits.retained_bytes, context.limits.principal_retained_bytes) {}

  /// `pattern` is valid. Throws Error -32003, -32005 and -32007.
  void subscribe(Peer& peer, std::string_view pattern, const SubscriptionOptions& options);
  bool unsubscribe(Peer& peer, std::string_view pattern) noexcept;
  /// An event with these params, none when empty, to all who subscribe to `topic`, a valid name. Returns how many
  /// connections it was queued to. Throws Error -32003, -32005, -32006.
  std::size_t publish(Peer& publisher, std::string_view topic, const EncodedText& given, bool retain);
  /// The same of one who might publish it, and has gone since; `by` is who that was. Throws Error -32005, -32006.
  std::size_t publish_of_gone(const Retained::By& by, std::string_view topic, const EncodedText& given, bool retain) {
    return publish_by(nullptr, by, topic, given, retain);
  }
  /// Whose what the peer publishes is.
  [[nodiscard]] static Retained::By by_of(const Peer& publisher) noexcept;
  /// What it is answered with in place of what `publish` has just returned, after later turns; null for that.
  [[nodiscard]] std::shared_ptr<rpc::Rendering> take_answer() noexcept { return std::move(published_); }
  /// The same for a notification, as it came.
  void notified(Peer& publisher, std::string_view name, const Received& message);
  /// The same of one that comes from another node, which is an event there: for its provider alone.
  void notified_elsewhere() noexcept { context_->notification.begin(); }
  /// An event of a peer's, or of the broker's own about one; null for one that has gone.
  Delivered deliver(Peer* publisher, const NewEvent& event);

  [[nodiscard]] const Retained& retained() const noexcept { return retained_; }
  /// What another node of the realm has kept, or deleted. Throws std::bad_alloc.
  void keep_elsewhere(std::string_view topic, std::string_view message, const Retained::By& by) {
    retained_.put(topic, message, by);
  }
  void drop_elsewhere(std::string_view topic) noexcept { retained_.clear(topic); }
  /// One that another broker has kept, as far as there is room. Throws std::bad_alloc.
  void keep_handed(std::string_view topic, std::string_view message, const Retained::By& by) {
    std::size_t evicted = 0;
    const auto tell = [this](std::string_view of, bool gone) {
      if (context_->realm) context_->realm->retained_changed(of, gone);
    };
    const Retained::Kept kept =
        retained_.keep(topic, message, by, evicted, [&](std::string_view gone) { tell(gone, true); });
    if (kept == Retained::Kept::yes) tell(topic, false);
  }
  void clear_handed(std::string_view topic) noexcept {
    retained_.clear(topic);
    if (context_->realm) context_->realm->retained_changed(topic, true);
  }
  /// Steps that have been spent on matching events with patterns, since the beginning.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  void tell_links(std::string_view topic, std::string_view text, const Retained::By& by) const noexcept;
  void require_subscribable(const Peer& peer, std::string_view pattern, const SubscriptionOptions& options) const;
  std::size_t publish_by(Peer* publisher, const Retained::By& by, std::string_view topic, const EncodedText& given,
                         bool retain);
  [[nodiscard]] std::uint64_t keep(const Peer* publisher, const Retained::By& by, std::string_view topic,
                                   std::string_view text);
  [[nodiscard]] Delivered lose(const NewEvent& event, std::span<Subscriber* const> chosen);
  [[nodiscard]] std::size_t tell_at_once(const NewEvent& event, std::span<Subscriber* const> chosen);

  BrokerContext* context_;
  FanOuts* fan_outs_;
  TapFeed* tap_feed_;
  Retained retained_;
  std::uint64_t steps_ = 0;
  std::shared_ptr<DeliveredCount> published_;  // of what has just been published, in place of an answer
};

}  // namespace wirecall::broker
