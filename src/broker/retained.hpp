// Retained: the last event of each topic that was published to be kept, for those who subscribe later. Bounded in
// bytes, all together and for each owner, the principal or source that has published it. Where there is no room the
// owner with the most gives way, its oldest events first, to one who has less; and so does, within one owner, the
// client with the most. Each event has a number, larger than those before it. A client is a name within its owner,
// since what it retains outlives its connection. Who looks for what a pattern matches does so in pieces (Walk), each of
// bounded steps. One thread. Pure.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dotted_name.hpp"
#include "base/seeded_hash.hpp"

namespace wirecall::broker {

class Retained {
 public:
  Retained(std::size_t bytes_max, std::size_t owner_bytes_max) noexcept
      : bytes_max_(bytes_max), owner_bytes_max_(owner_bytes_max) {}
  Retained(Retained&&) = delete;

  enum class Kept : std::uint8_t { yes, full, owner_is_full };
  /// Whose an event is.
  struct By {
    std::string_view owner;
    std::string_view client;  ///< empty for one without a name
  };

  /// So many events at most give way to one: who publishes a large one among very small ones may have to do so again.
  static constexpr std::size_t kEvictionsMax = 2048;

  /// Keeps `message`, in place of what there was of this topic, whoever had published that. Throws std::bad_alloc;
  /// then, and where it is not kept, what there was of the topic is still there, unless it had to give way. Adds to
  /// `evicted` how many events have.
  [[nodiscard]] Kept keep(std::string_view topic, std::string_view message, const By& by, std::size_t& evicted) {
    return keep(topic, message, by, evicted, [](std::string_view) {});
  }
  /// Calls gone(topic) for each event that gives way, before it does.
  template <class Gone>
  [[nodiscard]] Kept keep(std::string_view topic, std::string_view message, const By& by, std::size_t& evicted,
                          const Gone& gone) {
    const std::size_t after = cost(topic, message);
    std::size_t evictions_left = kEvictionsMax;
    if (after > owner_bytes_max_) return Kept::owner_is_full;
    if (after > bytes_max_) return Kept::full;
    for (;;) {
      const Sums sums = sums_with(topic, after, by);
      const bool too_much = sums.of_owner > owner_bytes_max_;
      if (!too_much && sums.of_all <= bytes_max_) break;
      const Owner* const victim = too_much ? find(by.owner) : by_bytes_.rbegin()->second;
      const Client& most = *victim->by_bytes.rbegin()->second;
      const bool own = victim->name == by.owner;
      const bool has_less =
          own ? most.bytes <= sums.of_client || most.name == by.client : victim->bytes <= sums.of_owner;
      if (has_less || evictions_left == 0) return too_much ? Kept::owner_is_full : Kept::full;
      gone(std::string_view{*most.topics.front()});
      clear(*most.topics.front());
      --evictions_left;
      ++evicted;
    }
    insert(topic, message, by);
    return Kept::yes;
  }
  void clear(std::string_view topic) noexcept {
    const auto found = messages_.find(topic);
    if (found != messages_.end()) erase(found);
  }
  /// Keeps what another broker has kept, though there may be no room. Throws std::bad_alloc.
  void put(std::string_view topic, std::string_view message, const By& by) { insert(topic, message, by); }
  /// Of the topic's event; nothing for none.
  [[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view topic) const noexcept {
    const auto found = messages_.find(topic);
    return found == messages_.end() ? std::nullopt : std::optional{found->second.number};
  }
  struct Found {
    std::string_view message;
    By by;
  };
  [[nodiscard]] std::optional<Found> find_event(std::string_view topic) const noexcept {
    const auto found = messages_.find(topic);
    if (found == messages_.end()) return std::nullopt;
    const Client& client = *found->second.client;
    return Found{.message = found->second.message, .by = {.owner = client.owner->name, .client = client.name}};
  }
  struct Wanted {
    std::string_view pattern;  ///< a valid one
    std::uint64_t after = 0;   ///< a number
  };
  /// Calls visit(topic, message) for each event behind `wanted.after` whose topic, from `next` on, the pattern matches,
  /// by their names, until it returns false, or `steps` are used up. Takes what it needs off `steps`: one to begin, one
  /// for each topic looked at, and one for each kStepBytes of a message visited. Returns whether it is done; if not,
  /// `next` is where to go on.
  template <class Visit>
  bool walk(const Wanted& wanted, std::string& next, std::size_t& steps, const Visit& visit) const {
    const std::string_view pattern = wanted.pattern;
    if (steps == 0) return false;
    --steps;
    const std::string_view prefix = pattern.substr(0, pattern.find_first_of("*>"));
    const bool exact = prefix.size() == pattern.size();
    auto at = exact ? messages_.find(pattern) : messages_.lower_bound(std::max<std::string_view>(prefix, next));
    for (; at != messages_.end(); ++at) {
      const std::string& topic = at->first;
      if (!topic.starts_with(prefix)) return true;
      if (steps == 0) {
        next = topic;
        return false;
      }
      --steps;
      if (at->second.number > wanted.after && matches(pattern, topic)) {
        if (!visit(topic, std::string_view{at->second.message})) {
          next = topic;
          return false;
        }
        steps -= std::min(steps, at->second.message.size() / kStepBytes);
      }
      if (exact) return true;
    }
    return true;
  }
  /// Calls visit(topic, message, by) for each, in the order of their numbers. Throws std::bad_alloc.
  template <class Visit>
  void each(const Visit& visit) const {
    std::vector<const Messages::value_type*> all;
    all.reserve(messages_.size());
    for (const auto& one : messages_) all.push_back(&one);
    std::ranges::sort(all, {}, [](const auto* one) { return one->second.number; });
    for (const auto* one : all) {
      const Client& client = *one->second.client;
      visit(one->first, one->second.message, By{.owner = client.owner->name, .client = client.name});
    }
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Of the event that was kept last; 0 before the first.
  [[nodiscard]] std::uint64_t last_number() const noexcept { return last_number_; }

  static constexpr std::size_t kStepBytes = 1024;

 private:
  struct Client;
  struct Owner {
    std::string name;
    std::size_t bytes = 0;
    std::map<std::string, Client, std::less<>> clients;  // those that hold anything
    std::set<std::pair<std::size_t, Client*>> by_bytes;
  };
  struct Client {
    std::string name;
    Owner* owner = nullptr;
    std::size_t bytes = 0;
    std::list<const std::string*> topics;  // of its events, the oldest first
  };
  struct Event {
    std::string message;
    std::uint64_t number = 0;
    Client* client = nullptr;
    std::list<const std::string*>::iterator position;  // among its client's topics
  };
  // What there is once an event is kept.
  struct Sums {
    std::size_t of_all = 0;
    std::size_t of_owner = 0;
    std::size_t of_client = 0;
  };
  using Messages = std::map<std::string, Event, std::less<>>;

  static constexpr std::size_t kOverhead = 256;  // of one, in all tables
  [[nodiscard]] static std::size_t cost(std::string_view topic, std::string_view message) noexcept {
    return topic.size() + message.size() + kOverhead;
  }

  [[nodiscard]] Owner* find(std::string_view owner) const noexcept {
    const auto found = owners_.find(owner);
    return found == owners_.end() ? nullptr : found->second.get();
  }
  [[nodiscard]] Sums sums_with(std::string_view topic, std::size_t bytes, const By& by) const noexcept {
    Sums sums{.of_all = bytes_ + bytes, .of_owner = bytes, .of_client = bytes};
    const Owner* const owner = find(by.owner);
    if (owner != nullptr) {
      sums.of_owner += owner->bytes;
      const auto client = owner->clients.find(by.client);
      if (client != owner->clients.end()) sums.of_client += client->second.bytes;
    }
    const auto before = messages_.find(topic);
    if (before == messages_.end()) return sums;
    const Client& client = *before->second.client;
    const std::size_t replaced = cost(topic, before->second.message);
    sums.of_all -= replaced;
    if (client.owner == owner) sums.of_owner -= replaced;
    if (client.owner == owner && client.name == by.client) sums.of_client -= replaced;
    return sums;
  }
  // Throws std::bad_alloc, and nothing has happened.
  Client& client_of(const By& by) {
    Owner* owner = find(by.owner);
    if (owner == nullptr) {
      auto made = std::make_unique<Owner>();
      made->name = by.owner;
      owner = made.get();
      by_bytes_.emplace(0, owner);
      try {
        owners_.emplace(owner->name, std::move(made));
      } catch (...) {
        by_bytes_.erase({0, owner});
        throw;
      }
    }
    const auto known = owner->clients.find(by.client);
    if (known != owner->clients.end()) return known->second;
    std::map<std::string, Client, std::less<>> fresh;
    try {
      Client& client = fresh.emplace(by.client, Client{}).first->second;
      client.name = by.client;
      client.owner = owner;
      owner->by_bytes.emplace(0, &client);
      owner->clients.insert(fresh.extract(fresh.begin()));
      return client;
    } catch (...) {
      drop_if_empty(*owner);
      throw;
    }
  }
  // What needs memory comes first.
  void insert(std::string_view topic, std::string_view message, const By& by) {
    Messages fresh;
    const auto made = fresh.emplace(std::string{topic},
                                    Event{.message = std::string{message}, .number = {}, .client = {}, .position = {}});
    std::list<const std::string*> node{&made.first->first};
    Client& client = client_of(by);
    recount(client, client.bytes + cost(topic, message));  // so that it stays, though it may hold nothing else
    clear(topic);
    Event& event = made.first->second;
    event.number = ++last_number_;
    event.client = &client;
    event.position = node.begin();
    client.topics.splice(client.topics.end(), node);
    messages_.insert(fresh.extract(fresh.begin()));
  }
  void erase(Messages::iterator at) noexcept {
    Client& client = *at->second.client;
    client.topics.erase(at->second.position);
    recount(client, client.bytes - cost(at->first, at->second.message));
    messages_.erase(at);
    if (client.bytes != 0) return;
    Owner& owner = *client.owner;
    owner.by_bytes.erase({0, &client});
    owner.clients.erase(owner.clients.find(client.name));
    drop_if_empty(owner);
  }
  void drop_if_empty(Owner& owner) noexcept {
    if (!owner.clients.empty()) return;
    by_bytes_.erase({owner.bytes, &owner});
    static_cast<void>(owners_.extract(owners_.find(owner.name)));  // the key is a view into the owner: it goes first
  }
  void recount(Client& client, std::size_t bytes) noexcept {
    Owner& owner = *client.owner;
    const std::size_t owner_bytes = owner.bytes + bytes - client.bytes;
    bytes_ += bytes - client.bytes;
    move(owner.by_bytes, client, bytes);
    move(by_bytes_, owner, owner_bytes);
  }
  // Within memory that there is.
  template <class One>
  static void move(std::set<std::pair<std::size_t, One*>>& by_bytes, One& one, std::size_t bytes) noexcept {
    auto node = by_bytes.extract({one.bytes, &one});
    one.bytes = bytes;
    node.value() = {bytes, &one};
    by_bytes.insert(std::move(node));
  }

  Messages messages_;
  std::unordered_map<std::string_view, std::unique_ptr<Owner>, SeededHash> owners_;  // by Owner::name
  std::set<std::pair<std::size_t, Owner*>> by_bytes_;
  std::size_t bytes_ = 0;
  std::uint64_t last_number_ = 0;
  std::size_t bytes_max_;
  std::size_t owner_bytes_max_;
};

/// A live event that follows what is retained.
struct HeldEvent {
  std::string text;
  bool retained;  ///< its topic retains it
};

/// What a peer has asked for of these, and the live events that are kept behind them. Owned by the Peer.
struct RetainedRequests {
  /// Bytes of events that are kept for the peer until it has been sent what is retained.
  static constexpr std::size_t kHeldBytesMax = 64 * 1024;

  /// Whether the topic's retained event, as it is then, is still to be sent to the peer; of many patterns as far as the
  /// first few say.
  [[nodiscard]] bool is_due(std::string_view topic) const noexcept { return is_due_from(0, topic); }
  /// The same of a topic that the first pattern is being sent: whether it comes by one of the next patterns as well.
  [[nodiscard]] bool is_due_again(std::string_view topic) const noexcept { return is_due_from(1, topic); }
  /// Keeps an event for later, as far as there is room. Throws std::bad_alloc.
  [[nodiscard]] bool hold(std::string_view text, bool retained) {
    const std::size_t bytes = text.size() + sizeof(HeldEvent);
    if (held_bytes + bytes > kHeldBytesMax) return false;
    held.push_back({.text = std::string{text}, .retained = retained});
    held_bytes += bytes;
    return true;
  }

  std::string asked;                                    ///< a pattern, until its subscription has been answered
  std::map<std::string, std::string, std::less<>> due;  ///< by pattern: the topic from which on it has not been sent
  bool backpressured = false;  ///< too much waits for the peer: events are dropped until it is writable
  bool queued = false;         ///< goes on in a later turn (RetainedSender::queue_)
  std::vector<HeldEvent> held;
  std::size_t held_bytes = 0;

 private:
  [[nodiscard]] bool is_due_from(std::ptrdiff_t first, std::string_view topic) const noexcept {
    constexpr std::ptrdiff_t kPatternsLookedAt = 16;
    auto looked_at = due | std::views::drop(first) | std::views::take(kPatternsLookedAt);
    return std::ranges::any_of(looked_at, [topic](const auto& pattern_and_next) {
      return topic >= pattern_and_next.second && matches(pattern_and_next.first, topic);
    });
  }
};

}  // namespace wirecall::broker
