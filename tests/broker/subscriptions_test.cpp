// Who is told of an event: by hand, and against a model that looks at all subscriptions one by one.
#include "broker/subscriptions.hpp"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/dotted_name.hpp"

namespace wirecall::broker {
namespace {

// Whose they are is never looked at.
class Someone final : public Subscriber {
 public:
  Someone() : Subscriber(nullptr) {}
};

class SubscriptionsTest : public testing::Test {
 protected:
  ~SubscriptionsTest() override {
    for (Someone* one : {&a, &b, &c}) subscriptions.remove_all(*one);
    EXPECT_TRUE(subscriptions.empty());
  }
  std::string told(std::string_view topic, Someone* publisher = nullptr) {
    std::string names;
    subscriptions.each(topic, publisher, [&](Subscriber& one) { names += &one == &a ? 'a' : &one == &b ? 'b' : 'c'; });
    std::ranges::sort(names);
    return names;
  }

  Subscriptions subscriptions;
  Someone a;
  Someone b;
  Someone c;
};

TEST_F(SubscriptionsTest, each_is_told_once_however_many_of_its_patterns_match) {
  for (const std::string pattern : {"x.y", "x.*", "x.>", ">", "*.y"}) subscriptions.subscribe(a, pattern, {});
  subscriptions.subscribe(b, "x.*", {});
  subscriptions.subscribe(c, "z", {});
  EXPECT_EQ(told("x.y"), "ab");
  EXPECT_EQ(told("z"), "ac");
  EXPECT_EQ(told("w"), "a");
}

TEST_F(SubscriptionsTest, the_publisher_is_told_of_its_own_event_where_it_asked_for_that) {
  subscriptions.subscribe(a, "x", {});
  EXPECT_EQ(told("x", &a), "");
  subscriptions.subscribe(a, "*", {.group = {}, .echo = true});
  EXPECT_EQ(told("x", &a), "a");
  subscriptions.subscribe(a, "*", {});
  EXPECT_EQ(told("x", &a), "");
}

TEST_F(SubscriptionsTest, one_of_a_group_is_told_and_they_take_turns) {
  for (Someone* one : {&a, &b, &c}) subscriptions.subscribe(*one, "x", {.group = "g"});
  std::multiset<std::string> all;
  for (int i = 0; i < 6; ++i) all.insert(told("x"));
  EXPECT_EQ(all, (std::multiset<std::string>{"a", "a", "b", "b", "c", "c"}));
  EXPECT_EQ(told("x", &a).size(), 1u);
  EXPECT_EQ(told("x", &a).find('a'), std::string::npos);
}

TEST_F(SubscriptionsTest, who_is_told_without_its_group_is_told_for_it) {
  subscriptions.subscribe(a, "x", {.group = "g"});
  subscriptions.subscribe(b, "x", {.group = "g"});
  subscriptions.subscribe(a, ">", {});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(told("x"), "a");
}

TEST_F(SubscriptionsTest, groups_of_other_names_and_other_patterns_are_others) {
  subscriptions.subscribe(a, "x", {.group = "g"});
  subscriptions.subscribe(b, "x", {.group = "h"});
  subscriptions.subscribe(c, "*", {.group = "g"});
  EXPECT_EQ(told("x"), "abc");
}

TEST_F(SubscriptionsTest, subscribing_again_replaces_the_terms) {
  subscriptions.subscribe(a, "x", {.group = "g"});
  subscriptions.subscribe(b, "x", {.group = "g"});
  subscriptions.subscribe(a, "x", {});
  EXPECT_EQ(told("x"), "ab");
  EXPECT_EQ(a.count(), 1u);
}

TEST_F(SubscriptionsTest, unsubscribing_takes_that_pattern_and_no_other) {
  subscriptions.subscribe(a, "x.*", {});
  subscriptions.subscribe(a, "x.*.z", {});
  EXPECT_FALSE(subscriptions.unsubscribe(a, "x.y"));
  EXPECT_TRUE(subscriptions.unsubscribe(a, "x.*"));
  EXPECT_FALSE(subscriptions.unsubscribe(a, "x.*"));
  EXPECT_EQ(told("x.y"), "");
  EXPECT_EQ(told("x.y.z"), "a");
  EXPECT_FALSE(subscriptions.unsubscribe(b, "x.*.z"));
}

std::string text_of(unsigned stars, std::size_t words, bool rest) {
  std::string text;
  for (std::size_t i = 0; i < words; ++i) {
    if (i != 0) text += '.';
    text += (stars >> i & 1) != 0 ? "*" : "a";
  }
  if (!rest) return text;
  return text.empty() ? ">" : text + ".>";
}

TEST_F(SubscriptionsTest, patterns_of_few_words_are_always_admitted) {
  std::size_t patterns = 0;
  for (std::size_t words = 0; words <= Subscriptions::kFreeWords; ++words) {
    for (unsigned stars = 0; stars < 1U << words; ++stars) {
      for (const bool rest : {false, true}) {
        const std::string pattern = text_of(stars, words, rest);
        if (pattern.empty()) continue;
        ASSERT_TRUE(subscriptions.admits(a, pattern)) << pattern;
        subscriptions.subscribe(a, pattern, {});
        ++patterns;
      }
    }
  }
  EXPECT_EQ(a.count(), patterns);
  std::string topic = "a";
  for (int words = 1; words < 120; ++words, topic += ".a") {
    EXPECT_EQ(told(topic), "a") << topic;
    EXPECT_LE(subscriptions.last_steps(), Subscriptions::kStepsMax - Subscriptions::kLongStepsMax);
  }
}

TEST_F(SubscriptionsTest, an_event_costs_no_more_steps_whoever_subscribes_to_what) {
  std::mt19937 random{1};
  std::vector<std::unique_ptr<Someone>> crowd;
  std::vector<std::string> admitted;
  for (int i = 0; i < 40; ++i) {
    Someone& one = *crowd.emplace_back(std::make_unique<Someone>());
    const std::size_t before = admitted.size();
    for (int tries = 0; tries < 300; ++tries) {
      const std::string pattern = text_of(random() | 1U << 7, 20, tries % 2 == 0);
      if (!subscriptions.admits(one, pattern)) continue;
      subscriptions.subscribe(one, pattern, {});
      admitted.push_back(pattern);
    }
    EXPECT_GT(admitted.size(), before) << "those before leave room for number " << i;
  }
  std::string topic = "a";
  for (int words = 1; words < 20; ++words) topic += ".a";
  std::size_t times = 0;
  subscriptions.each(topic, nullptr, [&](Subscriber&) { ++times; });
  EXPECT_EQ(times, crowd.size()) << "each has one that matches";
  EXPECT_LE(subscriptions.last_steps(), Subscriptions::kStepsMax);
  // A shape that is there already costs nothing.
  EXPECT_TRUE(subscriptions.admits(b, admitted.front()));
  for (const auto& one : crowd) subscriptions.remove_all(*one);
  EXPECT_TRUE(subscriptions.admits(b, text_of(1U << 7, 20, false)));
  subscriptions.each(topic, nullptr, [&](Subscriber&) { ADD_FAILURE(); });
  EXPECT_EQ(subscriptions.last_steps(), 0U);
}

TEST_F(SubscriptionsTest, many_patterns_of_one_shape_cost_what_one_does) {
  for (int i = 0; i < 4096; ++i) {
    std::string pattern = std::to_string(i);
    while (pattern.size() < 248) pattern += ".a";
    pattern += ".*";
    ASSERT_TRUE(subscriptions.admits(a, pattern));
    subscriptions.subscribe(a, pattern, {});
  }
  std::string topic = "77";
  while (topic.size() < 248) topic += ".a";
  EXPECT_EQ(told(topic + ".b"), "a");
  EXPECT_LE(subscriptions.last_steps(), 2 * 126U);
  EXPECT_EQ(told(topic + ".b.c"), "");
}

TEST_F(SubscriptionsTest, what_they_hold_is_counted) {
  subscriptions.subscribe(a, "x.*", {.group = "group"});
  EXPECT_EQ(a.bytes(), Subscriptions::kOverheadBytes + 3 + 5);
  subscriptions.subscribe(a, "x.*", {});
  EXPECT_EQ(a.bytes(), Subscriptions::kOverheadBytes + 3);
  EXPECT_TRUE(subscriptions.unsubscribe(a, "x.*"));
  EXPECT_EQ(a.bytes(), 0U);
}

TEST(SubscriptionsModel, agree_with_looking_at_all_of_them) {
  const char* const only = std::getenv("WIRECALL_SEED");
  const unsigned first = only != nullptr ? static_cast<unsigned>(std::strtoul(only, nullptr, 10)) : 0;
  const std::vector<std::string> words{"a", "b", "rpc"};
  for (unsigned seed = first; seed < (only != nullptr ? first + 1 : 1000); ++seed) {
    std::mt19937 random{seed};
    const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
    const auto make = [&](bool pattern) {
      std::string text;
      for (std::size_t i = 0, count = seed % 4 == 0 ? 6 + pick(3) : 1 + pick(3); i < count; ++i) {
        if (i != 0) text += '.';
        const std::size_t which = pick(pattern ? 5 : 3);
        if (which < 3) {
          text += seed % 4 == 0 ? "a" : words[which];
        } else if (which == 4 && i + 1 == count) {
          text += '>';
        } else {
          text += '*';
        }
      }
      return text;
    };
    struct Model {
      std::string group;
      bool echo;
    };
    constexpr std::size_t kPeers = 5;
    Subscriptions subscriptions;
    std::vector<std::unique_ptr<Someone>> peers;
    for (std::size_t i = 0; i < kPeers; ++i) peers.push_back(std::make_unique<Someone>());
    std::map<std::pair<std::size_t, std::string>, Model> model;
    for (int step = 0; step < 80; ++step) {
      const std::size_t who = pick(kPeers);
      const std::string pattern = make(true);
      switch (pick(6)) {
        case 0:
        case 1:
        case 2: {
          const Model terms{.group = pick(3) == 0 ? "g" : "", .echo = pick(3) == 0};
          subscriptions.subscribe(*peers[who], pattern, {.group = terms.group, .echo = terms.echo});
          model[{who, pattern}] = terms;
          break;
        }
        case 3: {
          ASSERT_EQ(subscriptions.unsubscribe(*peers[who], pattern), model.erase({who, pattern}) == 1)
              << "WIRECALL_SEED=" << seed;
          break;
        }
        case 4:
          if (pick(4) != 0) break;
          subscriptions.remove_all(*peers[who]);
          std::erase_if(model, [&](const auto& one) { return one.first.first == who; });
          break;
        default: {
          const std::string topic = make(false);
          std::multiset<std::size_t> told;
          subscriptions.each(topic, peers[who].get(), [&](Subscriber& one) {
            told.insert(static_cast<std::size_t>(
                std::ranges::find(peers, &one, [](const auto& peer) -> Subscriber* { return peer.get(); }) -
                peers.begin()));
          });
          std::set<std::size_t> due;
          struct GroupModel {
            std::set<std::size_t> all;
            std::set<std::size_t> may;  // be told for it
          };
          std::map<std::pair<std::string, std::string>, GroupModel> groups;
          for (const auto& [key, terms] : model) {
            if (!matches(key.second, topic)) continue;
            const bool may = key.first != who || terms.echo;
            if (terms.group.empty()) {
              if (may) due.insert(key.first);
              continue;
            }
            groups[{key.second, terms.group}].all.insert(key.first);
            if (may) groups[{key.second, terms.group}].may.insert(key.first);
          }
          for (const std::size_t one : told) ASSERT_EQ(told.count(one), 1u) << "WIRECALL_SEED=" << seed;
          for (const std::size_t one : due) ASSERT_EQ(told.count(one), 1u) << "WIRECALL_SEED=" << seed << ' ' << topic;
          std::set<std::size_t> allowed = due;
          for (const auto& [key, group] : groups) {
            allowed.insert(group.may.begin(), group.may.end());
            if (group.may.empty()) continue;
            ASSERT_TRUE(std::ranges::any_of(group.all, [&](std::size_t one) { return told.contains(one); }))
                << "WIRECALL_SEED=" << seed << ' ' << topic;
          }
          for (const std::size_t one : told)
            ASSERT_TRUE(allowed.contains(one)) << "WIRECALL_SEED=" << seed << ' ' << topic;
          // Each group adds one at most.
          ASSERT_LE(told.size(), due.size() + groups.size()) << "WIRECALL_SEED=" << seed;
        }
      }
    }
    for (const auto& peer : peers) subscriptions.remove_all(*peer);
    ASSERT_TRUE(subscriptions.empty());
  }
}

}  // namespace
}  // namespace wirecall::broker
