// Subscription: keeps a client subscribed to events at a broker. Client::subscribe makes it, and destroying it
// unsubscribes. Event: one of the events. The client subscribes anew on each connection that it makes; it misses the
// events that are published between two connections. See docs/client.md, "At a broker".
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {

class Client;
namespace net {
class BrokerSession;
class ClientCore;
struct ClientSubscription;
}  // namespace net

/// One published event: a notification whose method is the topic. A value.
struct Event {
  std::string topic;
  std::string params_json;  ///< an array or object; empty for none

  /// The published value as JSON text, a view into this event. A value that is no array or object travels as an array
  /// of one element, and is taken out of it again; "null" where there are no params.
  [[nodiscard]] std::string_view value_json() const;

  /// The value as a T that owns its memory (no std::string_view). Throws Error -32602, whose data says what does not
  /// fit. Where T is an array, an array of one element is decoded as such.
  template <class T>
  [[nodiscard]] T as() const {
    const std::string_view text = value_json();
    std::expected<T, Error> value = from_json<T>(text);
    if (!value && !params_json.empty() && text.size() != params_json.size()) {
      if (std::expected<T, Error> whole = from_json<T>(params_json)) return std::move(*whole);
    }
    if (!value) throw std::move(value.error());
    return std::move(*value);
  }
};

/// A function that receives events. The thread that drives the client calls it once for each event, one after the
/// other. An exception that it throws goes to the log.
using EventFunction = std::move_only_function<void(const Event&)>;

/// Answers an event of a consumer (Client::consume), once, at any later time. Movable. Destroying it without an answer
/// refuses the event. Without effect once the client has gone, or is not connected: then the event comes again. Any
/// thread, one at a time.
class EventReply {
 public:
  EventReply() = default;
  EventReply(EventReply&& other) noexcept : core_(std::move(other.core_)), id_(std::exchange(other.id_, {})) {}
  EventReply& operator=(EventReply&& other) noexcept;
  ~EventReply();

  /// The consumer has the event.
  void acknowledge() noexcept;
  /// The event is to come again, at this client or at another that has joined the consumer.
  void refuse(const Error& error) noexcept;

 private:
  friend class net::BrokerSession;
  EventReply(std::weak_ptr<net::ClientCore> core, std::string id) noexcept
      : core_(std::move(core)), id_(std::move(id)) {}
  void answer(std::string_view member) noexcept;

  std::weak_ptr<net::ClientCore> core_;
  std::string id_;  // JSON; empty once answered
};
/// A function that receives the events of a consumer. Called as an EventFunction.
using ConsumerFunction = std::move_only_function<void(const Event&, EventReply)>;

/// A function that is called when the server has dropped `dropped` events of a topic, since this client did not read
/// them in time. The thread that drives the client calls it. An exception that it throws goes to the log.
using LaggedFunction = std::function<void(std::string_view topic, std::uint64_t dropped)>;
/// A function that is called when the server refuses a method that the client provides, or a topic that it subscribes
/// to. The thread that drives the client calls it. An exception that it throws goes to the log.
using RefusedFunction = std::function<void(std::string_view name, const Error& error)>;

/// A connection of a client has been made, or has ended.
struct ConnectionEvent {
  bool connected = false;  ///< true: made; false: ended
  std::string endpoint;    ///< the URI
  std::string cause;       ///< why it has ended; empty for `connected`
};
/// A function that receives these events, in order. The thread that drives the client calls it. An exception that it
/// throws goes to the log.
using ConnectionFunction = std::function<void(const ConnectionEvent&)>;

struct SubscribeOptions {
  /// The name of a group, which subscriptions of several clients may share: each event goes to one of its members.
  /// Empty for no group: the event comes to this subscription in any case.
  std::string group = {};
  /// The subscription also receives the events that this client's own connection publishes.
  bool echo = false;
  /// The subscription first receives the event that the broker retains for the topic, and again after each
  /// reconnection.
  bool last = false;
  /// The name of a consumer at the broker's durable store (docs/durable.md), of ASCII letters, digits, - and _; empty
  /// for none. Then each event is kept for the consumer until its function has returned, which acknowledges it: where
  /// it throws, and where it has not returned within `ack_wait_ms`, the event comes again, at this client or at another
  /// that has joined the consumer. Not together with the options above.
  std::string durable = {};
  /// Where a new consumer begins: "first" for all that the store has, "new" for what is published from now on, or the
  /// seq of an event.
  std::string start = {};
  /// Milliseconds. Default: 30,000.
  std::optional<std::uint32_t> ack_wait_ms = {};
  /// How often an event is delivered before it is given up, and kept under dead.<consumer>; 0 for no limit. Default: 5.
  std::optional<std::uint32_t> max_deliver = {};
  /// How many events all members of the consumer are at work on at most. Default: 64.
  std::optional<std::uint32_t> max_in_flight = {};
};

/// One owner. It may outlive its client; then its functions have no effect.
class [[nodiscard]] Subscription {
 public:
  /// A subscription to nothing.
  Subscription() = default;
  Subscription(Subscription&&) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept {
    Subscription former{std::exchange(core_, std::move(other.core_)), std::exchange(entry_, std::move(other.entry_))};
    return *this;
  }
  ~Subscription() { unsubscribe(); }

  /// Ends the subscription: its function is not called any more. Blocks while the function runs on another thread, so
  /// that afterwards what it refers to may be destroyed; hold no lock that the function takes. Any thread. A second
  /// call has no effect.
  void unsubscribe() noexcept;
  /// Keeps the subscription for as long as the client exists, without this object.
  void keep() noexcept;

 private:
  friend class Client;
  Subscription(std::weak_ptr<net::ClientCore> core, std::shared_ptr<net::ClientSubscription> entry) noexcept
      : core_(std::move(core)), entry_(std::move(entry)) {}

  std::weak_ptr<net::ClientCore> core_;
  std::shared_ptr<net::ClientSubscription> entry_;
};

}  // namespace wirecall
