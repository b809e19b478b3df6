// What a broker tells of itself, where one connection registers thousands of methods before many who watch: each turn
// tells a share of it, everybody is told all of it in order, and what is too much to be kept is told by rpc.lagged.
#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "broker/announcer.hpp"
#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace test;

constexpr int kWatchers = 100;
constexpr std::size_t kMany = 1000;
// Deliveries of a turn: kAnnouncingSteps of two, and those of the event that goes beyond.
constexpr std::size_t kShare = 2 * 2048 + kWatchers;

std::string registration(std::size_t count) {
  std::string methods;
  for (std::size_t i = 0; i < count; ++i)
    methods += (methods.empty() ? R"({"method":"m)" : R"(,{"method":"m)") + std::to_string(i) + "\"}";
  return request("rpc.register", R"({"methods":[)" + methods + "]}");
}
std::string subscription(std::string_view topic) {
  return request("rpc.subscribe", R"({"topic":")" + std::string{topic} + "\"}");
}
std::string of_method(std::string_view topic, std::size_t number) {
  return notification(topic, R"({"client":null,"method":"m)" + std::to_string(number) + "\"}");
}

class Announcing : public testing::Test {
 protected:
  Announcing() {
    for (int i = 0; i < kWatchers; ++i) {
      watchers.push_back(std::make_unique<Client>(world));
      static_cast<void>(watchers.back()->ask(subscription("rpc.method.registered")));
      static_cast<void>(watchers.back()->ask(subscription("rpc.method.unregistered")));
    }
  }
  // What the first watcher is told, while no turn tells more than its share.
  std::vector<std::string> hear_all() {
    std::vector<std::string> first;
    do {
      std::size_t told = 0;
      for (const auto& watcher : watchers) {
        told += watcher->sink->messages.size();
        if (watcher == watchers.front())
          first.insert(first.end(), watcher->sink->messages.begin(), watcher->sink->messages.end());
        watcher->sink->messages.clear();
      }
      EXPECT_LE(told, kShare);
    } while (world.scheduler.expire_one());
    return first;
  }

  World world;
  std::vector<std::unique_ptr<Client>> watchers;
  Client provider{world};
};

TEST_F(Announcing, many_methods_are_told_of_in_shares_and_in_order) {
  EXPECT_EQ(provider.ask(registration(kMany)), result_reply("1000"));
  const std::vector<std::string> told = hear_all();
  ASSERT_EQ(told.size(), kMany);
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_EQ(told[i], of_method("rpc.method.registered", i));
}

TEST_F(Announcing, a_provider_that_leaves_is_told_of_after_what_it_has_registered) {
  EXPECT_EQ(provider.ask(registration(kMany)), result_reply("1000"));
  provider.leave();
  const std::vector<std::string> told = hear_all();
  ASSERT_EQ(told.size(), 2 * kMany);
  EXPECT_EQ(told[kMany - 1], of_method("rpc.method.registered", kMany - 1));
  EXPECT_EQ(told[kMany], of_method("rpc.method.unregistered", 0));
  EXPECT_EQ(told.back(), of_method("rpc.method.unregistered", kMany - 1));
}

TEST_F(Announcing, who_registers_is_not_told_of_it_in_later_turns_either) {
  static_cast<void>(provider.ask(subscription("rpc.method.registered")));
  EXPECT_EQ(provider.ask(registration(kMany)), result_reply("1000"));
  EXPECT_EQ(hear_all().size(), kMany);
  EXPECT_EQ(provider.received(), "");
}

TEST_F(Announcing, a_watcher_that_leaves_meanwhile_is_told_no_more) {
  EXPECT_EQ(provider.ask(registration(kMany)), result_reply("1000"));
  watchers.back()->leave();
  watchers.pop_back();
  EXPECT_EQ(hear_all().size(), kMany);
}

TEST_F(Announcing, a_broker_that_ends_meanwhile_tells_nothing_more) {
  EXPECT_EQ(provider.ask(registration(kMany)), result_reply("1000"));
  EXPECT_FALSE(watchers.front()->received().empty());
}

TEST(Announcements, beyond_their_bytes_are_counted_until_the_others_have_been_taken) {
  broker::Announcements announcements;
  const std::string name(1024 * 1024, 'n');
  for (int i = 0; i < 20; ++i) {
    announcements.add({.topic = i % 2 == 0 ? "even" : "odd", .peer = 1, .client = {}, .method = name});
  }
  announcements.add({.topic = "small", .peer = 1, .client = {}, .method = {}});
  int taken = 0;
  while (!announcements.next_are_lost()) {
    EXPECT_EQ(announcements.take().topic, taken++ % 2 == 0 ? "even" : "odd");
  }
  EXPECT_EQ(taken, 15);
  EXPECT_FALSE(announcements.empty());
  const auto lost = announcements.take_lost();
  ASSERT_EQ(lost.size(), 3U);
  EXPECT_EQ(lost[0].topic, "odd");
  EXPECT_EQ(lost[0].count, 3U);
  EXPECT_EQ(lost[1].count, 2U);
  EXPECT_EQ(lost[2].topic, "small") << "since what it followed is lost";
  EXPECT_TRUE(announcements.empty());
  announcements.add({.topic = "again", .peer = 1, .client = {}, .method = name});
  EXPECT_EQ(announcements.take().topic, "again");
}

TEST_F(Announcing, what_is_lost_is_told_by_its_number) {
  // Each name counts for some 500 bytes: more than 16 MiB of them.
  const std::string long_name(200, 'n');
  constexpr std::size_t kProviders = 50;
  std::vector<std::unique_ptr<Client>> providers;
  for (std::size_t p = 0; p < kProviders; ++p) {
    std::string methods;
    for (std::size_t i = 0; i < kMany; ++i) {
      methods += (methods.empty() ? R"({"method":")" : R"(,{"method":")") + long_name + std::to_string(p) + "-" +
                 std::to_string(i) + "\"}";
    }
    providers.push_back(std::make_unique<Client>(world));
    EXPECT_EQ(providers.back()->ask(request("rpc.register", R"({"methods":[)" + methods + "]}")), result_reply("1000"));
  }
  for (auto& one : providers) one->leave();
  const std::vector<std::string> told = hear_all();
  ASSERT_LT(told.size(), 2 * kProviders * kMany);
  std::size_t lost = 0;
  for (const std::string& text : told) {
    const auto dropped = text.find(R"("dropped":)");
    if (text.find("rpc.lagged") != std::string::npos) lost += std::stoul(text.substr(dropped + 10));
  }
  const auto lags = static_cast<std::size_t>(
      std::ranges::count_if(told, [](const auto& text) { return text.find("rpc.lagged") != std::string::npos; }));
  EXPECT_EQ(told.size() - lags + lost, 2 * kProviders * kMany);
  EXPECT_GE(lags, 1U);
}

}  // namespace
}  // namespace wirecall
