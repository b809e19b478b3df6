// Retained: the last event of each topic that was published to be kept, for those who subscribe later. Bounded in
// bytes, all together and for each holder, the principal or source that has published it. Where there is no room the
// holder with the most gives way, its oldest events first, to one who has less. Who looks for what a pattern matches
// does so in pieces (Walk), each of bounded steps. One thread. Pure.
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

  /// Keeps `message`, in place of what there was of this topic, whoever had published that. Throws std::bad_alloc;
  /// then, and where it is not kept, what there was of the topic is still there, unless it had to give way.
  [[nodiscard]] Kept keep(std::string_view topic, std::string_view message, std::string_view holder) {
    const std::size_t after = cost(topic, message);
    const auto before = [&](std::string_view of) {
      const auto found = messages_.find(topic);
      if (found == messages_.end() || (!of.empty() && found->second.holder->name != of)) return std::size_t{0};
      return cost(topic, found->second.message);
    };
    const auto known = holders_.find(holder);
    const std::size_t own = (known != holders_.end() ? known->second->bytes - before(holder) : 0) + after;
    if (own > holder_bytes_max_) return Kept::too_much_of_holder;
    if (after > bytes_max_) return Kept::no_room;
    while (bytes_ - before({}) + after > bytes_max_) {
      const Holder& heaviest = *by_bytes_.rbegin()->second;
      if (heaviest.name == holder || heaviest.bytes <= own) return Kept::no_room;
      clear(*heaviest.topics.front());
    }
    put(topic, message, holder);
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
  struct Holder {
    std::string name;
    std::size_t bytes = 0;
    std::list<const std::string*> topics;  // of its events, the oldest first
    std::size_t uses = 0;                  // it stays, though it may hold nothing
  };
  struct Event {
    std::string message;
    Holder* holder = nullptr;
    std::list<const std::string*>::iterator place;  // among its holder's topics
  };
  using Messages = std::map<std::string, Event, std::less<>>;
  using ByBytes = std::set<std::pair<std::size_t, Holder*>>;

  static constexpr std::size_t kOverhead = 256;  // of one, in all tables
  [[nodiscard]] static std::size_t cost(std::string_view topic, std::string_view message) noexcept {
    return topic.size() + message.size() + kOverhead;
  }

  // What needs memory comes first.
  void put(std::string_view topic, std::string_view message, std::string_view holder_name) {
    Messages fresh;
    const auto made =
        fresh.emplace(std::string{topic}, Event{.message = std::string{message}, .holder = {}, .place = {}});
    std::list<const std::string*> place{&made.first->first};
    auto known = holders_.find(holder_name);
    if (known == holders_.end()) {
      auto holder = std::make_unique<Holder>();
      holder->name = holder_name;
      by_bytes_.emplace(0, holder.get());
      try {
        known = holders_.emplace(holder->name, std::move(holder)).first;
      } catch (...) {
        by_bytes_.erase(by_bytes_.begin());  // nobody else has nothing
        throw;
      }
    }
    Holder& holder = *known->second;
    ++holder.uses;
    clear(topic);
    --holder.uses;
    Event& event = made.first->second;
    event.holder = &holder;
    event.place = place.begin();
    holder.topics.splice(holder.topics.end(), place);
    recount(holder, holder.bytes + cost(topic, message));
    messages_.insert(fresh.extract(fresh.begin()));
  }
  void take_out(Messages::iterator at) noexcept {
    Holder& holder = *at->second.holder;
    holder.topics.erase(at->second.place);
    recount(holder, holder.bytes - cost(at->first, at->second.message));
    messages_.erase(at);
    if (!holder.topics.empty() || holder.uses != 0) return;
    by_bytes_.erase({holder.bytes, &holder});
    static_cast<void>(
        holders_.extract(holders_.find(holder.name)));  // the key is a view into the holder: it goes first
  }
  void recount(Holder& holder, std::size_t bytes) noexcept {
    auto node = by_bytes_.extract({holder.bytes, &holder});
    bytes_ += bytes - holder.bytes;
    holder.bytes = bytes;
    node.value() = {bytes, &holder};
    by_bytes_.insert(std::move(node));
  }

  Messages messages_;
  std::unordered_map<std::string_view, std::unique_ptr<Holder>, SeededHash> holders_;  // by Holder::name
  ByBytes by_bytes_;
  std::size_t bytes_ = 0;
  std::size_t bytes_max_;
  std::size_t holder_bytes_max_;
};

}  // namespace wirecall::broker
