// Retained: the last event of each topic that was published to be kept, for those who subscribe later. Bounded in
// bytes, all together and for each holder, the principal or source that has published it. Where there is no room the
// holder with the most gives way, its oldest events first, to one who has less; and so does, within one holder, the
// client with the most. A client is a name within its holder, since what it retains outlives its connection. Who looks
// for what a pattern matches does so in pieces (Walk), each of bounded steps. One thread. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/seeded_hash.hpp"
#include "base/words.hpp"

namespace wirecall::broker {

class Retained {
 public:
  Retained(std::size_t bytes_max, std::size_t holder_bytes_max) noexcept
      : bytes_max_(bytes_max), holder_bytes_max_(holder_bytes_max) {}
  Retained(Retained&&) = delete;

  enum class Kept : std::uint8_t { yes, no_room, too_much_of_holder };
  /// Whose an event is.
  struct By {
    std::string_view holder;
    std::string_view client;  ///< empty for one without a name
  };

  /// So many events at most give way to one: who publishes a large one among very small ones may have to do so again.
  static constexpr std::size_t kGiveWayMax = 2048;

  /// Keeps `message`, in place of what there was of this topic, whoever had published that. Throws std::bad_alloc;
  /// then, and where it is not kept, what there was of the topic is still there, unless it had to give way. Adds to
  /// `gave_way` how many events have.
  [[nodiscard]] Kept keep(std::string_view topic, std::string_view message, const By& by, std::size_t& gave_way) {
    const std::size_t after = cost(topic, message);
    std::size_t may_give_way = kGiveWayMax;
    if (after > holder_bytes_max_) return Kept::too_much_of_holder;
    if (after > bytes_max_) return Kept::no_room;
    for (;;) {
      const Sums sums = sums_with(topic, after, by);
      const bool too_much = sums.of_holder > holder_bytes_max_;
      if (!too_much && sums.of_all <= bytes_max_) break;
      const Holder* const giving = too_much ? find(by.holder) : by_bytes_.rbegin()->second;
      const Client& most = *giving->by_bytes.rbegin()->second;
      const bool own = giving->name == by.holder;
      const bool has_less =
          own ? most.bytes <= sums.of_client || most.name == by.client : giving->bytes <= sums.of_holder;
      if (has_less || may_give_way == 0) return too_much ? Kept::too_much_of_holder : Kept::no_room;
      clear(*most.topics.front());
      --may_give_way;
      ++gave_way;
    }
    put(topic, message, by);
    return Kept::yes;
  }
  void clear(std::string_view topic) noexcept {
    const auto found = messages_.find(topic);
    if (found != messages_.end()) take_out(found);
  }
  /// Calls visit(topic, message) for each topic from `next` on that `pattern`, a valid one, matches, by their names,
  /// until it returns false, or `steps` are used up. Takes what it needs off `steps`: one to begin, one for each topic
  /// looked at, and one for each kStepBytes of a message visited. Returns whether it is done; if not, `next` is where
  /// to go on.
  template <class Visit>
  bool walk(std::string_view pattern, std::string& next, std::size_t& steps, const Visit& visit) const {
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
      if (matches(pattern, topic)) {
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
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  static constexpr std::size_t kStepBytes = 1024;

 private:
  struct Client;
  struct Holder {
    std::string name;
    std::size_t bytes = 0;
    std::map<std::string, Client, std::less<>> clients;  // those that hold anything
    std::set<std::pair<std::size_t, Client*>> by_bytes;
  };
  struct Client {
    std::string name;
    Holder* holder = nullptr;
    std::size_t bytes = 0;
    std::list<const std::string*> topics;  // of its events, the oldest first
  };
  struct Event {
    std::string message;
    Client* client = nullptr;
    std::list<const std::string*>::iterator place;  // among its client's topics
  };
  // What there is once an event is kept.
  struct Sums {
    std::size_t of_all = 0;
    std::size_t of_holder = 0;
    std::size_t of_client = 0;
  };
  using Messages = std::map<std::string, Event, std::less<>>;

  static constexpr std::size_t kOverhead = 256;  // of one, in all tables
  [[nodiscard]] static std::size_t cost(std::string_view topic, std::string_view message) noexcept {
    return topic.size() + message.size() + kOverhead;
  }

  [[nodiscard]] Holder* find(std::string_view holder) const noexcept {
    const auto found = holders_.find(holder);
    return found == holders_.end() ? nullptr : found->second.get();
  }
  [[nodiscard]] Sums sums_with(std::string_view topic, std::size_t bytes, const By& by) const noexcept {
    Sums sums{.of_all = bytes_ + bytes, .of_holder = bytes, .of_client = bytes};
    const Holder* const holder = find(by.holder);
    if (holder != nullptr) {
      sums.of_holder += holder->bytes;
      const auto client = holder->clients.find(by.client);
      if (client != holder->clients.end()) sums.of_client += client->second.bytes;
    }
    const auto before = messages_.find(topic);
    if (before == messages_.end()) return sums;
    const Client& client = *before->second.client;
    const std::size_t replaced = cost(topic, before->second.message);
    sums.of_all -= replaced;
    if (client.holder == holder) sums.of_holder -= replaced;
    if (client.holder == holder && client.name == by.client) sums.of_client -= replaced;
    return sums;
  }
  // Throws std::bad_alloc, and nothing has happened.
  Client& client_of(const By& by) {
    Holder* holder = find(by.holder);
    if (holder == nullptr) {
      auto made = std::make_unique<Holder>();
      made->name = by.holder;
      holder = made.get();
      by_bytes_.emplace(0, holder);
      try {
        holders_.emplace(holder->name, std::move(made));
      } catch (...) {
        by_bytes_.erase({0, holder});
        throw;
      }
    }
    const auto known = holder->clients.find(by.client);
    if (known != holder->clients.end()) return known->second;
    std::map<std::string, Client, std::less<>> fresh;
    try {
      Client& client = fresh.emplace(by.client, Client{}).first->second;
      client.name = by.client;
      client.holder = holder;
      holder->by_bytes.emplace(0, &client);
      holder->clients.insert(fresh.extract(fresh.begin()));
      return client;
    } catch (...) {
      drop_if_empty(*holder);
      throw;
    }
  }
  // What needs memory comes first.
  void put(std::string_view topic, std::string_view message, const By& by) {
    Messages fresh;
    const auto made =
        fresh.emplace(std::string{topic}, Event{.message = std::string{message}, .client = {}, .place = {}});
    std::list<const std::string*> place{&made.first->first};
    Client& client = client_of(by);
    recount(client, client.bytes + cost(topic, message));  // so that it stays, though it may hold nothing else
    clear(topic);
    Event& event = made.first->second;
    event.client = &client;
    event.place = place.begin();
    client.topics.splice(client.topics.end(), place);
    messages_.insert(fresh.extract(fresh.begin()));
  }
  void take_out(Messages::iterator at) noexcept {
    Client& client = *at->second.client;
    client.topics.erase(at->second.place);
    recount(client, client.bytes - cost(at->first, at->second.message));
    messages_.erase(at);
    if (client.bytes != 0) return;
    Holder& holder = *client.holder;
    holder.by_bytes.erase({0, &client});
    holder.clients.erase(holder.clients.find(client.name));
    drop_if_empty(holder);
  }
  void drop_if_empty(Holder& holder) noexcept {
    if (!holder.clients.empty()) return;
    by_bytes_.erase({holder.bytes, &holder});
    static_cast<void>(
        holders_.extract(holders_.find(holder.name)));  // the key is a view into the holder: it goes first
  }
  void recount(Client& client, std::size_t bytes) noexcept {
    Holder& holder = *client.holder;
    const std::size_t holder_bytes = holder.bytes + bytes - client.bytes;
    bytes_ += bytes - client.bytes;
    move(holder.by_bytes, client, bytes);
    move(by_bytes_, holder, holder_bytes);
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
  std::unordered_map<std::string_view, std::unique_ptr<Holder>, SeededHash> holders_;  // by Holder::name
  std::set<std::pair<std::size_t, Holder*>> by_bytes_;
  std::size_t bytes_ = 0;
  std::size_t bytes_max_;
  std::size_t holder_bytes_max_;
};

}  // namespace wirecall::broker
