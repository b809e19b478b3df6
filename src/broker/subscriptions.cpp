// See subscriptions.hpp.
#include "broker/subscriptions.hpp"

#include <algorithm>
#include <utility>

#include "base/room.hpp"
#include "base/words.hpp"

namespace wirecall::broker {

struct Group;

struct Subscription {
  Subscriber* subscriber;
  Pattern* pattern;
  Group* group;      // null for none
  std::uint32_t at;  // where it is in its pattern's, or its group's, members
  std::uint32_t of_subscriber;
  bool echo;
};

using Members = std::vector<std::unique_ptr<Subscription>>;

struct Group {
  std::string name;
  Members members;
  std::size_t next = 0;  // whose turn it is
};

struct Pattern {
  std::string text;
  Members members;  // without a group
  std::vector<std::unique_ptr<Group>> groups;
};

// A word of patterns with wildcards, with those words that follow it.
struct Subscriptions::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> words;
  std::unique_ptr<Node> any;  // behind `*`
  Pattern* rest = nullptr;    // with `>` as the next and last word
  Pattern* end = nullptr;     // whose last word this is

  [[nodiscard]] bool empty() const noexcept { return words.empty() && !any && rest == nullptr && end == nullptr; }
};

Subscriptions::Subscriptions() : root_(std::make_unique<Node>()) {}
Subscriptions::~Subscriptions() = default;

// ---- who subscribes ----

Pattern* Subscriptions::find(std::string_view pattern) const noexcept {
  const auto found = patterns_.find(pattern);
  return found == patterns_.end() ? nullptr : found->second.get();
}

// Looks through the shorter of the two lists it may be in.
Subscription* Subscriptions::find(const Subscriber& subscriber, const Pattern& pattern) noexcept {
  const auto found = std::ranges::find(subscriber.subscriptions_, &pattern, &Subscription::pattern);
  return found == subscriber.subscriptions_.end() ? nullptr : *found;
}

void Subscriptions::subscribe(Subscriber& subscriber, std::string_view pattern, const SubscribeTerms& terms) {
  Pattern* at = find(pattern);
  Subscription* const before = at != nullptr ? find(subscriber, *at) : nullptr;
  if (before != nullptr) {
    const std::string_view group = before->group != nullptr ? std::string_view{before->group->name} : "";
    if (group == terms.group) {
      before->echo = terms.echo;
      return;
    }
  }
  make_room(subscriber.subscriptions_, 1);
  if (at == nullptr) {
    auto made = std::make_unique<Pattern>();
    made->text = pattern;
    at = made.get();
    patterns_.emplace(at->text, std::move(made));
  }
  try {
    if (at->members.empty() && at->groups.empty() && has_wildcard(at->text)) plant(*at);
    add(subscriber, *at, terms);
  } catch (...) {
    clean(*at);
    throw;
  }
  if (before != nullptr) remove(*before);
}

void Subscriptions::add(Subscriber& subscriber, Pattern& pattern, const SubscribeTerms& terms) {
  Group* group = nullptr;
  if (!terms.group.empty()) {
    const auto found =
        std::ranges::find(pattern.groups, terms.group, [](const auto& one) -> std::string_view { return one->name; });
    if (found != pattern.groups.end()) {
      group = found->get();
    } else {
      make_room(pattern.groups, 1);
      auto made = std::make_unique<Group>();
      made->name = terms.group;
      group = made.get();
      pattern.groups.push_back(std::move(made));
    }
  }
  Members& members = group != nullptr ? group->members : pattern.members;
  make_room(members, 1);
  members.push_back(std::make_unique<Subscription>(
      Subscription{.subscriber = &subscriber,
                   .pattern = &pattern,
                   .group = group,
                   .at = static_cast<std::uint32_t>(members.size()),
                   .of_subscriber = static_cast<std::uint32_t>(subscriber.subscriptions_.size()),
                   .echo = terms.echo}));
  subscriber.subscriptions_.push_back(members.back().get());
}

bool Subscriptions::unsubscribe(Subscriber& subscriber, std::string_view pattern) noexcept {
  const Pattern* const known = find(pattern);
  Subscription* const subscription = known == nullptr ? nullptr : find(subscriber, *known);
  if (subscription == nullptr) return false;
  remove(*subscription);
  return true;
}

void Subscriptions::remove_all(Subscriber& subscriber) noexcept {
  while (!subscriber.subscriptions_.empty()) remove(*subscriber.subscriptions_.back());
}

void Subscriptions::remove(Subscription& subscription) noexcept {
  std::vector<Subscription*>& own = subscription.subscriber->subscriptions_;
  own[subscription.of_subscriber] = own.back();
  own[subscription.of_subscriber]->of_subscriber = subscription.of_subscriber;
  own.pop_back();

  Pattern& pattern = *subscription.pattern;
  Group* const group = subscription.group;
  Members& members = group != nullptr ? group->members : pattern.members;
  const std::uint32_t at = subscription.at;
  const std::unique_ptr<Subscription> gone = std::exchange(members[at], std::move(members.back()));
  members.pop_back();
  if (at < members.size()) members[at]->at = at;
  clean(pattern);
}

// Groups that nobody is in go, and so does a pattern to which nobody subscribes.
void Subscriptions::clean(Pattern& pattern) noexcept {
  std::erase_if(pattern.groups, [](const auto& group) { return group->members.empty(); });
  if (!pattern.members.empty() || !pattern.groups.empty()) return;
  if (has_wildcard(pattern.text)) fell(pattern);
  // The key is a view into the pattern: it goes first.
  const auto node = patterns_.extract(patterns_.find(pattern.text));
}

// ---- the tree ----

// Where it throws, the pattern is to be felled, however far it has come.
void Subscriptions::plant(Pattern& pattern) {
  Node* node = root_.get();
  std::string_view rest = pattern.text;
  while (!rest.empty()) {
    const std::string_view word = take_word(rest);
    if (word == ">") {
      node->rest = &pattern;
      ++wildcards_;
      return;
    }
    if (word == "*") {
      if (!node->any) node->any = std::make_unique<Node>();
      node = node->any.get();
    } else if (const auto found = node->words.find(word); found != node->words.end()) {
      node = found->second.get();
    } else {
      node = node->words.emplace(std::string{word}, std::make_unique<Node>()).first->second.get();
    }
  }
  node->end = &pattern;
  ++wildcards_;
}

// Takes the pattern off, and what of its way leads nowhere else.
void Subscriptions::fell(const Pattern& pattern) noexcept {
  // The last place on the way that is still needed, and the word behind it that is not.
  Node* node = root_.get();
  Node* kept = node;
  std::string_view cut;
  std::string_view rest = pattern.text;
  while (!rest.empty()) {
    const std::string_view before = rest;
    const std::string_view word = take_word(rest);
    if (word == ">") {
      if (node->rest == &pattern) {
        node->rest = nullptr;
        --wildcards_;
      }
      break;
    }
    const std::size_t ways =
        node->words.size() + (node->any ? 1 : 0) + (node->rest != nullptr ? 1 : 0) + (node->end != nullptr ? 1 : 0);
    if (node == root_.get() || ways > 1) {
      kept = node;
      cut = before;
    }
    const auto found = word == "*" ? node->words.end() : node->words.find(word);
    Node* const next = word == "*" ? node->any.get() : found != node->words.end() ? found->second.get() : nullptr;
    if (next == nullptr) break;  // it had been planted only so far
    node = next;
  }
  if (node->end == &pattern) {
    node->end = nullptr;
    --wildcards_;
  }
  if (!node->empty() || node == root_.get()) return;
  const std::string_view word = take_word(cut);
  if (word == "*") {
    kept->any.reset();
  } else if (const auto found = kept->words.find(word); found != kept->words.end()) {
    kept->words.erase(found);
  }
}

// ---- events ----

// Fills matched_. The places still to be looked at are at most one a level and branch: no recursion.
void Subscriptions::match(std::string_view topic) {
  matched_.clear();
  if (Pattern* const exact = find(topic)) matched_.push_back(exact);
  if (wildcards_ == 0) return;
  const bool reserved = is_reserved(topic);
  places_.clear();
  places_.push_back({root_.get(), topic});
  while (!places_.empty()) {
    auto [node, rest] = places_.back();
    places_.pop_back();
    if (rest.empty()) {
      if (node->end != nullptr) matched_.push_back(node->end);
      continue;
    }
    const bool plain_only = reserved && node == root_.get();
    if (node->rest != nullptr && !plain_only) matched_.push_back(node->rest);
    const std::string_view word = take_word(rest);
    if (node->any && !plain_only) places_.push_back({node->any.get(), rest});
    if (const auto found = node->words.find(word); found != node->words.end())
      places_.push_back({found->second.get(), rest});
  }
}

void Subscriptions::choose(Subscription& subscription) {
  Subscriber& subscriber = *subscription.subscriber;
  if (std::exchange(subscriber.event_, event_) == event_) return;
  chosen_.push_back(&subscriber);
}

// Fills chosen_: all without a group, and then of each group one, unless one of it is told already.
void Subscriptions::choose(Subscriber* publisher, Takes takes) {
  ++event_;
  chosen_.clear();
  for (const Pattern* pattern : matched_) {
    for (const auto& member : pattern->members) {
      if (member->subscriber != publisher || member->echo) choose(*member);
    }
  }
  for (const Pattern* pattern : matched_) {
    for (const auto& group : pattern->groups) {
      Members& members = group->members;
      if (std::ranges::any_of(members, [&](const auto& one) { return one->subscriber->event_ == event_; })) continue;
      const std::size_t none = members.size();
      std::size_t chosen = none;
      for (std::size_t i = 0; i < members.size(); ++i) {
        const std::size_t at = (group->next + i) % members.size();
        const Subscription& member = *members[at];
        if (member.subscriber == publisher && !member.echo) continue;
        const bool ready = takes(*member.subscriber);
        if (ready || chosen == none) chosen = at;
        if (ready) break;
      }
      if (chosen == none) continue;
      group->next = (chosen + 1) % members.size();
      choose(*members[chosen]);
    }
  }
}

}  // namespace wirecall::broker
