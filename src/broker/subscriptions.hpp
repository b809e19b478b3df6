// Subscriptions: who is told of which topics. A pattern is held once, with all who subscribe to it, and found by its
// text. The shape of a pattern is where its wildcards stand: of "a.*.b" and "c.*.d" it is the same. For each shape in
// use an event looks one text up: its topic with wildcards at those positions. So an event costs what shapes there are,
// however many patterns have them, and a pattern is kept as its text alone.
//
// The cost is bounded by construction. Shapes of at most kFreeWords words are few; those of longer patterns share
// kLongStepsMax steps, and a pattern whose shape finds no room there is not admitted. One that is admitted is always
// matched.
//
// One thread. Pure. Implements docs/broker.md "Events".
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/seeded_hash.hpp"

namespace wirecall::broker {

struct Group;
class Peer;
struct Pattern;
struct Shape;
struct Subscription;

/// By pattern, the groups of those who subscribe to it: "" for those in none.
using TopicGroups = std::map<std::string, std::set<std::string, std::less<>>, std::less<>>;

/// The subscriptions of one peer, which has it as a member. Goes only after Subscriptions::remove_all.
class Subscriber {
 public:
  explicit Subscriber(Peer* whose) noexcept : peer(whose) {}
  Subscriber(Subscriber&&) = delete;

  [[nodiscard]] std::size_t count() const noexcept { return subscriptions_.size(); }
  /// What they hold, by Subscriptions::cost.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// How many have ended.
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_; }

  Peer* const peer;
  /// Whether it stands for those of another broker: for those in `group`, or, where that is empty, in none. It is told
  /// nothing by other such ones, and what it publishes is for those alone.
  bool of_node = false;
  std::string group = {};
  /// Where it stands for the subscribers of another process, these: who publishes there has told those in a group
  /// already. Null for one who does not.
  const TopicGroups* elsewhere = nullptr;

 private:
  friend class Subscriptions;
  /// A long shape, and how many of its subscriptions have it.
  struct ShapeUse {
    const Shape* shape;
    std::size_t count;
  };

  std::vector<Subscription*> subscriptions_;
  std::vector<ShapeUse> long_shapes_;
  std::size_t bytes_ = 0;
  std::uint64_t event_ = 0;  // the last one that it was chosen for
  std::uint64_t ended_ = 0;
};

struct SubscriptionOptions {
  std::string_view group;  ///< of several in one group one is told; empty for none
  bool echo = false;       ///< told of its own events as well
};

/// Is told what clients of this broker subscribe to. It changes nothing meanwhile.
class SubscriptionWatcher {
 public:
  /// One of them subscribes to it from now on, or no more; `group` is empty for none.
  virtual void subscription_changed(std::string_view pattern, std::string_view group) noexcept = 0;

 protected:
  ~SubscriptionWatcher() = default;
};

class Subscriptions {
 public:
  /// Words of a pattern, a `>` at its end not counted, up to which its shape is always admitted.
  static constexpr std::size_t kFreeWords = 6;
  /// Steps that all longer shapes take together, for one event.
  static constexpr std::size_t kLongStepsMax = 8192;
  /// Steps of one event: those of the free shapes that can match one topic, and of all others.
  static constexpr std::size_t kStepsMax = 769 + kLongStepsMax;
  /// What one subscription holds beside its texts, in bytes.
  static constexpr std::size_t kOverheadBytes = 256;

  Subscriptions();
  ~Subscriptions();
  Subscriptions(Subscriptions&&) = delete;

  /// Bytes that a subscription holds.
  [[nodiscard]] static std::size_t cost(std::string_view pattern, const SubscriptionOptions& options) noexcept {
    return kOverheadBytes + pattern.size() + options.group.size();
  }
  [[nodiscard]] bool has(const Subscriber& subscriber, std::string_view pattern) const noexcept;
  /// Whether an event has steps left for `pattern`, a valid one. The long shapes of one subscriber have at
  /// most a sixteenth as many steps as are left for the others, so that those who come later find some.
  [[nodiscard]] bool admits(const Subscriber& subscriber, std::string_view pattern) const noexcept;
  /// `pattern` is valid, and admitted. Again, it replaces the options. Throws std::bad_alloc, and has no effect then.
  void subscribe(Subscriber& subscriber, std::string_view pattern, const SubscriptionOptions& options);
  /// Whether there was such a subscription.
  bool unsubscribe(Subscriber& subscriber, std::string_view pattern) noexcept;
  void remove_all(Subscriber& subscriber) noexcept;

  /// `watcher` is told from now on; null for nobody.
  void watch(SubscriptionWatcher* watcher) noexcept { watcher_ = watcher; }
  /// `watcher` is told of these and of all others as well.
  void watch_all(SubscriptionWatcher* watcher) { watchers_.push_back(watcher); }
  void unwatch(SubscriptionWatcher* watcher) noexcept { std::erase(watchers_, watcher); }
  [[nodiscard]] std::vector<std::string> patterns() const;
  /// Of those who subscribe to the pattern, but for that one, which may be null, the groups; of one who stands for
  /// others, theirs.
  [[nodiscard]] TopicGroups::mapped_type groups_of(std::string_view pattern, const Subscriber* but) const;
  /// Whether a client of this broker has that subscription, in that group or, where it is empty, in none.
  [[nodiscard]] bool has_here(std::string_view pattern, std::string_view group) const noexcept;
  /// Calls visit(pattern, group) for each of these.
  template <class Visit>
  void each_here(const Visit& visit) const {
    visit_here([](const void* visitor, std::string_view pattern,
                  std::string_view group) { (*static_cast<const Visit*>(visitor))(pattern, group); },
               &visit);
  }

  [[nodiscard]] bool empty() const noexcept { return patterns_.empty(); }
  /// Steps that matching took for the last event: at most kStepsMax.
  [[nodiscard]] std::size_t last_steps() const noexcept { return last_steps_; }

  /// Members of groups that were looked at for it.
  [[nodiscard]] std::size_t last_members() const noexcept { return last_members_; }

  /// Whether it can be told of an event now.
  using Takes = bool (*)(Subscriber& subscriber);
  static bool always(Subscriber&) { return true; }

  /// Each that is to be told of an event by `publisher`, which may be null, once. They last until the next event, or
  /// until one of them goes. `topic` is a valid name. Of a group that is one that takes it, if any does.
  [[nodiscard]] std::span<Subscriber* const> choose_for(std::string_view topic, Subscriber* publisher,
                                                        Takes takes = &always) {
    last_steps_ = last_members_ = 0;
    if (empty()) return {};
    match(topic);
    choose(publisher, takes);
    return chosen_;
  }
  /// Calls visit(Subscriber&) for each of them. It must not change the subscriptions.
  template <class Visit>
  void each(std::string_view topic, Subscriber* publisher, const Visit& visit, Takes takes = &always) {
    for (Subscriber* const subscriber : choose_for(topic, publisher, takes)) visit(*subscriber);
  }
  /// The number of the last event: one more than that of the one before.
  [[nodiscard]] std::uint64_t last_event() const noexcept { return event_; }
  /// Whether one that was chosen for that event still has a subscription by which it is told of it, and which it had
  /// then. Takes as long as it has subscriptions.
  [[nodiscard]] static bool still_has(const Subscriber& subscriber, std::string_view topic,
                                      std::uint64_t event) noexcept;

 private:
  void visit_here(void (*visit)(const void*, std::string_view, std::string_view), const void* visitor) const;
  void match(std::string_view topic);
  void choose(Subscriber* publisher, Takes takes);
  void choose(Subscription& subscription);
  [[nodiscard]] Pattern* find(std::string_view pattern) const noexcept;
  [[nodiscard]] static Subscription* find(const Subscriber& subscriber, const Pattern& pattern) noexcept;
  Pattern& make_pattern(std::string_view text);
  void add(Subscriber& subscriber, Pattern& pattern, const SubscriptionOptions& options);
  void remove(Subscription& subscription) noexcept;
  void tell_watchers(const Subscriber& subscriber, const Pattern& pattern, std::string_view group) const noexcept;
  void clean(Pattern& pattern, const Group* group) noexcept;
  [[nodiscard]] Shape* find_shape(std::string_view pattern) const noexcept;
  Shape& take_shape(std::string_view pattern);
  void give_back(Shape& shape) noexcept;

  // Keyed by the pattern's own text, which peers choose.
  std::unordered_map<std::string_view, std::unique_ptr<Pattern>, SeededHash> patterns_;
  std::vector<std::unique_ptr<Shape>> shapes_;  // of all patterns with wildcards
  std::size_t long_steps_ = 0;                  // of the long ones, at most kLongStepsMax
  std::size_t last_steps_ = 0;
  std::size_t last_members_ = 0;
  std::uint64_t event_ = 0;
  SubscriptionWatcher* watcher_ = nullptr;
  std::vector<SubscriptionWatcher*> watchers_;

  // Of the event at hand, kept for their memory.
  std::vector<Pattern*> matched_;
  std::vector<Subscriber*> chosen_;
};

}  // namespace wirecall::broker
