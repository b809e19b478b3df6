// Subscriptions: who is told of which topics. A pattern is held once, with all who subscribe to it; those without
// wildcards are found by the topic's own name, the others by a tree of words, in which an event follows the branch of
// its word and that of `*`. So an event costs what it matches, however many others there are.
//
// One thread. Pure. Implements docs/broker.md "Events".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/seeded_hash.hpp"

namespace wirecall::broker {

struct Pattern;
struct Subscription;

/// Who subscribes; a base of those who do. Goes only after Subscriptions::remove_all.
class Subscriber {
 public:
  Subscriber() = default;
  Subscriber(Subscriber&&) = delete;

  [[nodiscard]] std::size_t subscription_count() const noexcept { return subscriptions_.size(); }

 protected:
  ~Subscriber() = default;

 private:
  friend class Subscriptions;
  std::vector<Subscription*> subscriptions_;
  std::uint64_t event_ = 0;  // the last one that it was visited for
};

struct SubscribeTerms {
  std::string_view group;  ///< of several in one group one is told; empty for none
  bool echo = false;       ///< told of its own events as well
};

class Subscriptions {
 public:
  Subscriptions();
  ~Subscriptions();
  Subscriptions(Subscriptions&&) = delete;

  /// `pattern` is valid. Again, it replaces the terms. Throws std::bad_alloc, and has no effect then.
  void subscribe(Subscriber& subscriber, std::string_view pattern, const SubscribeTerms& terms);
  /// Whether there was such a subscription.
  bool unsubscribe(Subscriber& subscriber, std::string_view pattern) noexcept;
  void remove_all(Subscriber& subscriber) noexcept;

  [[nodiscard]] bool empty() const noexcept { return patterns_.empty(); }

  /// Whether it can be told of an event now.
  using Takes = bool (*)(Subscriber& subscriber);
  static bool always(Subscriber&) { return true; }

  /// Calls visit(Subscriber&) once for each that is to be told of an event by `publisher`, which may be null. It must
  /// not change the subscriptions. `topic` is a valid name. Of a group that is one that takes it, if any does.
  template <class Visit>
  void each(std::string_view topic, Subscriber* publisher, const Visit& visit, Takes takes = &always) {
    if (empty()) return;
    match(topic);
    choose(publisher, takes);
    for (Subscriber* subscriber : chosen_) visit(*subscriber);
  }

 private:
  struct Node;

  void match(std::string_view topic);
  void choose(Subscriber* publisher, Takes takes);
  void choose(Subscription& subscription);
  [[nodiscard]] Pattern* find(std::string_view pattern) const noexcept;
  [[nodiscard]] static Subscription* find(const Subscriber& subscriber, const Pattern& pattern) noexcept;
  void add(Subscriber& subscriber, Pattern& pattern, const SubscribeTerms& terms);
  void remove(Subscription& subscription) noexcept;
  void clean(Pattern& pattern) noexcept;
  void plant(Pattern& pattern);
  void fell(const Pattern& pattern) noexcept;

  // Keyed by the pattern's own text, which peers choose.
  std::unordered_map<std::string_view, std::unique_ptr<Pattern>, SeededHash> patterns_;
  std::unique_ptr<Node> root_;  // of those with wildcards
  std::size_t wildcards_ = 0;
  std::uint64_t event_ = 0;

  // Of the event at hand, kept for their memory.
  std::vector<Pattern*> matched_;
  std::vector<Subscriber*> chosen_;
  struct Place {
    const Node* node;
    std::string_view rest;
  };
  std::vector<Place> places_;
};

}  // namespace wirecall::broker
