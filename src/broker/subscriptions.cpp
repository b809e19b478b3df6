// See subscriptions.hpp.
#include "broker/subscriptions.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "base/dotted_name.hpp"
#include "base/reserve_extra.hpp"

namespace wirecall::broker {

struct Subscription {
  Subscriber* subscriber;
  Pattern* pattern;
  Group* group;      // null for none
  std::uint32_t at;  // where it is in its pattern's, or its group's, members
  std::uint32_t of_subscriber;
  std::uint64_t echo : 1;
  std::uint64_t since : 63;  // the last event before it
};

using Members = std::vector<std::unique_ptr<Subscription>>;

struct Group {
  std::string name;
  Members members;
  std::size_t next = 0;  // whose turn it is
};

struct Pattern {
  std::string text;
  Shape* shape = nullptr;                                     // null for one without wildcards
  Members members;                                            // without a group
  std::map<std::string_view, std::unique_ptr<Group>> groups;  // by Group::name
  std::size_t subscriptions = 0;                              // of members, and of the groups'
};

constexpr std::size_t kWordsMax = kNameBytesMax / 2 + 1;
constexpr std::size_t kWordBits = 64;
// Long steps that are left for one that a subscriber has.
constexpr std::size_t kLeftPerOwn = 16;

struct Shape {
  std::array<std::uint64_t, kWordsMax / kWordBits> stars{};  // bit i: word i is `*`
  std::uint16_t words = 0;                                   // without a `>` at the end
  bool rest = false;                                         // with one
  std::size_t patterns = 0;

  [[nodiscard]] bool starts_with_wildcard() const noexcept { return words == 0 || (stars[0] & 1) != 0; }
  [[nodiscard]] bool is_long() const noexcept { return words > Subscriptions::kFreeWords; }
  [[nodiscard]] std::size_t steps() const noexcept { return words + std::size_t{1}; }
  [[nodiscard]] bool equals(const Shape& other) const noexcept {
    return stars == other.stars && words == other.words && rest == other.rest;
  }
  [[nodiscard]] bool fits(std::size_t topic_words) const noexcept {
    return rest ? topic_words > words : topic_words == words;
  }
};

namespace {

static_assert(kWordsMax % kWordBits == 0);

// Where the words of a topic are in it.
struct Words {
  explicit Words(std::string_view topic) noexcept {
    for (std::size_t at = 0; at < topic.size(); ++count) {
      begins[count] = static_cast<std::uint8_t>(at);
      at = std::min(topic.find('.', at), topic.size());
      ends[count] = static_cast<std::uint8_t>(at);
      ++at;
    }
  }
  std::array<std::uint8_t, kWordsMax> begins;
  std::array<std::uint8_t, kWordsMax> ends;
  std::size_t count = 0;
};

// The pattern of that shape that stands for the topic. Not longer than the topic: a wildcard is the shortest word.
class Candidate {
 public:
  Candidate(const Shape& shape, std::string_view topic, const Words& words) noexcept {
    std::size_t from = 0;
    for (std::size_t i = 0; i < shape.stars.size(); ++i) {
      for (std::uint64_t left = shape.stars[i]; left != 0; left &= left - 1) {
        const std::size_t word = i * kWordBits + static_cast<std::size_t>(std::countr_zero(left));
        append(topic.substr(from, words.begins[word] - from));
        append("*");
        from = words.ends[word];
      }
    }
    if (shape.words != 0) append(topic.substr(from, words.ends[shape.words - std::size_t{1}] - from));
    if (shape.rest) append(shape.words == 0 ? ">" : ".>");
  }
  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), size_}; }

 private:
  void append(std::string_view part) noexcept {
    std::ranges::copy(part, text_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += part.size();
  }

  std::array<char, kNameBytesMax> text_;
  std::size_t size_ = 0;
};

Shape shape_of(std::string_view pattern) noexcept {
  Shape shape;
  while (!pattern.empty()) {
    const std::string_view word = take_word(pattern);
    if (word == ">") {
      shape.rest = true;
      break;
    }
    if (word == "*") shape.stars[shape.words / kWordBits] |= std::uint64_t{1} << shape.words % kWordBits;
    ++shape.words;
  }
  return shape;
}

}  // namespace

Subscriptions::Subscriptions() = default;
Subscriptions::~Subscriptions() = default;

// ---- who subscribes ----

Pattern* Subscriptions::find(std::string_view pattern) const noexcept {
  const auto found = patterns_.find(pattern);
  return found == patterns_.end() ? nullptr : found->second.get();
}

// Looks through the shorter of the two lists it may be in.
Subscription* Subscriptions::find(const Subscriber& subscriber, const Pattern& pattern) noexcept {
  if (subscriber.subscriptions_.size() <= pattern.subscriptions) {
    const auto found = std::ranges::find(subscriber.subscriptions_, &pattern, &Subscription::pattern);
    return found == subscriber.subscriptions_.end() ? nullptr : *found;
  }
  const auto among = [&](const Members& members) -> Subscription* {
    const auto found = std::ranges::find_if(members, [&](const auto& one) { return one->subscriber == &subscriber; });
    return found == members.end() ? nullptr : found->get();
  };
  if (Subscription* const found = among(pattern.members)) return found;
  for (const auto& [name, group] : pattern.groups) {
    if (Subscription* const found = among(group->members)) return found;
  }
  return nullptr;
}

bool Subscriptions::has(const Subscriber& subscriber, std::string_view pattern) const noexcept {
  const Pattern* const known = find(pattern);
  return known != nullptr && find(subscriber, *known) != nullptr;
}

bool Subscriptions::still_has(const Subscriber& subscriber, std::string_view topic, std::uint64_t event) noexcept {
  return std::ranges::any_of(subscriber.subscriptions_, [&](const Subscription* one) {
    return one->since < event && matches(one->pattern->text, topic);
  });
}

void Subscriptions::subscribe(Subscriber& subscriber, std::string_view pattern, const SubscriptionOptions& options) {
  Pattern* at = find(pattern);
  Subscription* const before = at != nullptr ? find(subscriber, *at) : nullptr;
  if (before != nullptr) {
    const std::string_view group = before->group != nullptr ? std::string_view{before->group->name} : "";
    if (group == options.group) {
      before->echo = options.echo ? 1 : 0;
      return;
    }
  }
  reserve_extra(subscriber.subscriptions_, 1);
  reserve_extra(subscriber.long_shapes_, 1);
  if (at == nullptr) at = &make_pattern(pattern);
  try {
    add(subscriber, *at, options);
  } catch (...) {
    const auto made = at->groups.find(options.group);
    clean(*at, made != at->groups.end() ? made->second.get() : nullptr);
    throw;
  }
  if (before == nullptr) return;
  subscriber.subscriptions_.back()->since = before->since;
  remove(*before);
}

Pattern& Subscriptions::make_pattern(std::string_view text) {
  auto made = std::make_unique<Pattern>();
  made->text = text;
  Pattern& pattern = *made;
  Shape* const shape = has_wildcard(text) ? &take_shape(text) : nullptr;
  pattern.shape = shape;
  try {
    patterns_.emplace(pattern.text, std::move(made));
  } catch (...) {
    // The pattern is gone already where the table had taken it and found no memory to grow.
    if (shape != nullptr) give_back(*shape);
    throw;
  }
  return pattern;
}

void Subscriptions::add(Subscriber& subscriber, Pattern& pattern, const SubscriptionOptions& options) {
  Group* group = nullptr;
  if (!options.group.empty()) {
    const auto found = pattern.groups.find(options.group);
    if (found != pattern.groups.end()) {
      group = found->second.get();
    } else {
      auto made = std::make_unique<Group>();
      made->name = options.group;
      group = made.get();
      pattern.groups.emplace(group->name, std::move(made));
    }
  }
  Members& members = group != nullptr ? group->members : pattern.members;
  reserve_extra(members, 1);
  members.push_back(std::make_unique<Subscription>(
      Subscription{.subscriber = &subscriber,
                   .pattern = &pattern,
                   .group = group,
                   .at = static_cast<std::uint32_t>(members.size()),
                   .of_subscriber = static_cast<std::uint32_t>(subscriber.subscriptions_.size()),
                   .echo = options.echo,
                   .since = event_}));
  subscriber.subscriptions_.push_back(members.back().get());
  subscriber.bytes_ += cost(pattern.text, options);
  ++pattern.subscriptions;
  tell_watchers(subscriber, pattern, options.group);
  if (pattern.shape == nullptr || !pattern.shape->is_long()) return;
  const auto use = std::ranges::find(subscriber.long_shapes_, pattern.shape, &Subscriber::ShapeUse::shape);
  if (use != subscriber.long_shapes_.end()) {
    ++use->count;
  } else {
    subscriber.long_shapes_.push_back({.shape = pattern.shape, .count = 1});  // there is room
  }
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
  Subscriber& subscriber = *subscription.subscriber;
  std::vector<Subscription*>& own = subscriber.subscriptions_;
  own[subscription.of_subscriber] = own.back();
  own[subscription.of_subscriber]->of_subscriber = subscription.of_subscriber;
  own.pop_back();
  ++subscriber.ended_;

  Pattern& pattern = *subscription.pattern;
  Group* const group = subscription.group;
  subscriber.bytes_ -=
      cost(pattern.text, {.group = group != nullptr ? std::string_view{group->name} : std::string_view{}});
  --pattern.subscriptions;
  if (pattern.shape != nullptr && pattern.shape->is_long()) {
    const auto use = std::ranges::find(subscriber.long_shapes_, pattern.shape, &Subscriber::ShapeUse::shape);
    if (--use->count == 0) subscriber.long_shapes_.erase(use);
  }
  Members& members = group != nullptr ? group->members : pattern.members;
  const std::uint32_t at = subscription.at;
  tell_watchers(subscriber, pattern, group != nullptr ? std::string_view{group->name} : std::string_view{});
  const std::unique_ptr<Subscription> gone = std::exchange(members[at], std::move(members.back()));
  members.pop_back();
  if (at < members.size()) members[at]->at = at;
  clean(pattern, group);
}

// The group, null for none, goes if nobody is in it any more, and so does a pattern to which nobody subscribes.
void Subscriptions::clean(Pattern& pattern, const Group* group) noexcept {
  // The key is a view into the group: it goes first.
  if (group != nullptr && group->members.empty())
    const auto node = pattern.groups.extract(pattern.groups.find(group->name));
  if (!pattern.members.empty() || !pattern.groups.empty()) return;
  if (pattern.shape != nullptr) give_back(*pattern.shape);
  // The key is a view into the pattern: it goes first.
  const auto node = patterns_.extract(patterns_.find(pattern.text));
}

void Subscriptions::tell_watchers(const Subscriber& subscriber, const Pattern& pattern,
                                  std::string_view group) const noexcept {
  if (watcher_ != nullptr && !subscriber.of_node) watcher_->subscription_changed(pattern.text, group);
  for (SubscriptionWatcher* const watcher : watchers_) watcher->subscription_changed(pattern.text, group);
}

std::vector<std::string> Subscriptions::patterns() const {
  std::vector<std::string> all;
  all.reserve(patterns_.size());
  for (const auto& [text, pattern] : patterns_) all.emplace_back(text);
  return all;
}

TopicGroups::mapped_type Subscriptions::groups_of(std::string_view pattern, const Subscriber* but) const {
  TopicGroups::mapped_type all;
  const Pattern* const known = find(pattern);
  if (known == nullptr) return all;
  for (const auto& member : known->members) {
    const Subscriber& one = *member->subscriber;
    if (&one == but) continue;
    if (one.elsewhere == nullptr) {
      all.emplace();
    } else if (const auto found = one.elsewhere->find(pattern); found != one.elsewhere->end()) {
      all.insert(found->second.begin(), found->second.end());
    }
  }
  for (const auto& [name, group] : known->groups) all.emplace(name);
  return all;
}

// ---- of this broker's clients ----

static bool any_here(const Members& members) noexcept {
  return std::ranges::any_of(members, [](const auto& one) { return !one->subscriber->of_node; });
}

bool Subscriptions::has_here(std::string_view pattern, std::string_view group) const noexcept {
  const Pattern* const known = find(pattern);
  if (known == nullptr) return false;
  if (group.empty()) return any_here(known->members);
  const auto found = known->groups.find(group);
  return found != known->groups.end() && any_here(found->second->members);
}

void Subscriptions::visit_here(void (*visit)(const void*, std::string_view, std::string_view),
                               const void* visitor) const {
  for (const auto& [text, pattern] : patterns_) {
    if (any_here(pattern->members)) visit(visitor, text, {});
    for (const auto& [name, group] : pattern->groups) {
      if (any_here(group->members)) visit(visitor, text, name);
    }
  }
}

// ---- shapes ----

Shape* Subscriptions::find_shape(std::string_view pattern) const noexcept {
  const Shape shape = shape_of(pattern);
  const auto found = std::ranges::find_if(shapes_, [&](const auto& one) { return one->equals(shape); });
  return found == shapes_.end() ? nullptr : found->get();
}

bool Subscriptions::admits(const Subscriber& subscriber, std::string_view pattern) const noexcept {
  const Shape shape = shape_of(pattern);
  if (!has_wildcard(pattern) || !shape.is_long() || find_shape(pattern) != nullptr) return true;
  const std::size_t left = kLongStepsMax - long_steps_;
  std::size_t own = shape.steps();
  for (const Subscriber::ShapeUse& use : subscriber.long_shapes_) own += use.shape->steps();
  return shape.steps() <= left && own <= left / kLeftPerOwn;
}

Shape& Subscriptions::take_shape(std::string_view pattern) {
  Shape* shape = find_shape(pattern);
  if (shape == nullptr) {
    reserve_extra(shapes_, 1);
    shape = shapes_.emplace_back(std::make_unique<Shape>(shape_of(pattern))).get();
    if (shape->is_long()) long_steps_ += shape->steps();
  }
  ++shape->patterns;
  return *shape;
}

void Subscriptions::give_back(Shape& shape) noexcept {
  if (--shape.patterns != 0) return;
  if (shape.is_long()) long_steps_ -= shape.steps();
  const auto found = std::ranges::find_if(shapes_, [&](const auto& one) { return one.get() == &shape; });
  std::swap(*found, shapes_.back());
  shapes_.pop_back();
}

// ---- events ----

// Fills matched_.
void Subscriptions::match(std::string_view topic) {
  matched_.clear();
  if (Pattern* const exact = find(topic)) matched_.push_back(exact);
  if (shapes_.empty()) return;
  const bool reserved = is_reserved(topic);
  const Words words{topic};
  for (const auto& shape : shapes_) {
    if (!shape->fits(words.count) || (reserved && shape->starts_with_wildcard())) continue;
    last_steps_ += shape->steps();
    if (Pattern* const found = find(Candidate{*shape, topic, words}.text())) matched_.push_back(found);
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
  const bool from_node = publisher != nullptr && publisher->of_node;
  for (const Pattern* pattern : matched_) {
    if (from_node && !publisher->group.empty()) [[unlikely]]
      break;
    for (const auto& member : pattern->members) {
      if (from_node && member->subscriber->of_node) [[unlikely]]
        continue;
      if (member->subscriber != publisher || member->echo != 0) choose(*member);
    }
  }
  for (const Pattern* pattern : matched_) {
    for (const auto& [name, group] : pattern->groups) {
      if (from_node && name != publisher->group) [[unlikely]]
        continue;  // its node has chosen for the others
      if (publisher != nullptr && publisher->elsewhere != nullptr) [[unlikely]] {
        const auto there = publisher->elsewhere->find(pattern->text);
        if (there != publisher->elsewhere->end() && there->second.contains(name)) continue;
      }
      Members& members = group->members;
      last_members_ += members.size();
      if (std::ranges::any_of(members, [&](const auto& one) { return one->subscriber->event_ == event_; })) continue;
      const std::size_t none = members.size();
      std::size_t chosen = none;
      for (std::size_t i = 0; i < members.size(); ++i) {
        const std::size_t at = (group->next + i) % members.size();
        const Subscription& member = *members[at];
        if (member.subscriber == publisher && member.echo == 0) continue;
        if (from_node && member.subscriber->of_node) [[unlikely]]
          continue;
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
