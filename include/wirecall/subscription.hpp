// Subscription: what a client has when it wants to be told of events at a broker: Client::subscribe makes it, and
// events come until it is dropped. Event: one of them. Not a connection: the client says again what it subscribes to on
// each connection that it makes, and events that were published between two of them are missed. See docs/client.md,
// "At a broker".
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {

class Client;
namespace session {
class ClientCore;
struct ClientSubscription;
}  // namespace session

/// What was published, as it came: a notification whose method is the topic. A value.
struct Event {
  std::string topic;
  std::string params_json;  ///< an array or object; empty for none

  /// The value that was published, as JSON text of this event: the params, but the x of [x] where x is no array or
  /// object, since such values are sent as that; "null" for none.
  [[nodiscard]] std::string_view value_json() const;

  /// The value as a T, which must not borrow. Throws the Error -32602 that tells what does not fit. An array of one
  /// element is taken for what it is, where T is no x of it.
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

/// Called once for each event, one after the other, on the thread that drives the client.
using EventFunction = std::move_only_function<void(const Event&)>;

/// Called when the server has dropped events of a topic, so many, since this client did not read them in time.
using LaggedFunction = std::function<void(std::string_view topic, std::uint64_t dropped)>;
/// Called when the server refuses a method that the client provides, or a topic that it subscribes to.
using RefusedFunction = std::function<void(std::string_view name, const Error& error)>;

/// What has become of a connection of a client's.
struct ConnectionNews {
  bool connected = false;  ///< it has been made; else it has ended
  std::string place;       ///< the URI
  std::string cause;       ///< why it has ended; empty for one that has been made
};
using ConnectionFunction = std::function<void(const ConnectionNews&)>;

struct SubscribeOptions {
  /// Of all subscriptions of one group, whichever client's, one gets each event; none when empty.
  std::string group = {};
  /// Events that this client's own connection has published come as well.
  bool echo = false;
  /// What is retained at the broker comes first, on each connection anew.
  bool last = false;
};

/// One owner. It may outlive its client, and does nothing then.
class [[nodiscard]] Subscription {
 public:
  /// Of nothing.
  Subscription() = default;
  Subscription(Subscription&&) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept {
    Subscription former{std::exchange(core_, std::move(other.core_)), std::exchange(entry_, std::move(other.entry_))};
    return *this;
  }
  ~Subscription() { unsubscribe(); }

  /// No call of its function begins any more; one that runs on another thread is waited for, so what it refers to may
  /// go then. Hold no lock here that the function takes. Any thread; again: no effect.
  void unsubscribe() noexcept;
  /// It lasts as long as the client.
  void keep() noexcept;

 private:
  friend class Client;
  Subscription(std::weak_ptr<session::ClientCore> core, std::shared_ptr<session::ClientSubscription> entry) noexcept
      : core_(std::move(core)), entry_(std::move(entry)) {}

  std::weak_ptr<session::ClientCore> core_;
  std::shared_ptr<session::ClientSubscription> entry_;
};

}  // namespace wirecall
