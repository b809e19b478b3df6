// Sessions: a client that comes back on another connection, and shows by a secret that it is who it was.
#include "broker/sessions.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "rpc/access.hpp"
#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::cancel_notification;
using test::Client;
using test::id_of;
using test::provider_lost;
using test::request;
using test::result_reply;
using test::World;

class Sessions : public testing::Test {
 protected:
  static json hello(Client& client, const json& params) {
    const json reply = json::parse(client.ask(request("rpc.hello", params.dump())));
    return reply.contains("result") ? reply.at("result") : reply.at("error").at("code");
  }
  static std::string session_of(Client& client, std::string_view name) {
    return hello(client, {{"name", name}}).at("session");
  }

  World world;
  Client first{world};
  Client second{world};
  Client caller{world};
};

TEST_F(Sessions, each_connection_has_a_secret_of_its_own) {
  const std::string a = session_of(first, "worker");
  EXPECT_EQ(a.size(), 48U);
  EXPECT_EQ(session_of(first, "worker"), a) << "the same as long as it lasts";
  EXPECT_NE(session_of(second, "worker"), a);
}

TEST_F(Sessions, a_broker_says_that_it_is_one) {
  EXPECT_EQ(hello(first, json::object()).at("features").back(), "broker");
}

TEST_F(Sessions, who_resumes_takes_the_name_and_ends_the_old_connection) {
  const std::string session = session_of(first, "worker");
  first.provide("add");
  caller.send(request("add", {}, "7"));
  const std::string asked = id_of(first.received());
  const json resumed = hello(second, {{"name", "worker"}, {"resume", session}});
  EXPECT_EQ(resumed.at("name"), "worker");
  EXPECT_NE(resumed.at("session"), session);
  EXPECT_EQ(caller.received(), provider_lost("maybe", "7"));
  EXPECT_EQ(first.sink->closes, 1);
  EXPECT_EQ(second.sink->closes, 0);
  first.send(result_reply("1", asked));
  EXPECT_EQ(caller.received(), "");
  second.provide("add");
  caller.send(R"({"jsonrpc":"2.0","method":"add","to":"worker","id":8})");
  EXPECT_NE(second.received(), "");
  first.leave();
  Client third{world};
  EXPECT_EQ(hello(third, {{"name", "worker"}}).at("name"), "worker~2") << "it still has its holder";
}

TEST_F(Sessions, what_the_old_connection_had_asked_for_is_given_up) {
  const std::string session = session_of(first, "worker");
  Client provider{world};
  provider.provide("add");
  first.send(request("add"));
  const std::string asked = id_of(provider.received());
  EXPECT_TRUE(hello(second, {{"resume", session}}).is_object());
  EXPECT_EQ(provider.received(), cancel_notification(asked));
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
}

TEST_F(Sessions, nobody_is_told_of_a_client_that_only_changed_its_connection) {
  static_cast<void>(caller.ask(request("rpc.subscribe", R"(["rpc.client.*"])")));
  const std::string session = session_of(first, "worker");
  EXPECT_NE(caller.received(), "");
  EXPECT_EQ(hello(second, {{"resume", session}}).at("name"), "worker");
  first.leave();
  EXPECT_EQ(caller.received(), "");
  second.leave();
  EXPECT_NE(caller.received().find("rpc.client.left"), std::string::npos);
}

TEST_F(Sessions, who_resumes_under_another_name_gives_the_old_one_free) {
  static_cast<void>(caller.ask(request("rpc.subscribe", R"(["rpc.client.*"])")));
  const std::string session = session_of(first, "worker");
  EXPECT_EQ(hello(second, {{"name", "other"}, {"resume", session}}).at("name"), "other");
  EXPECT_NE(caller.received().find(R"("method":"rpc.client.left","params":{"client":"worker"})"), std::string::npos);
  Client third{world};
  EXPECT_EQ(hello(third, {{"name", "worker"}}).at("name"), "worker");
}

TEST_F(Sessions, of_a_connection_that_has_gone_is_resumed_for_a_day) {
  const std::string session = session_of(first, "worker");
  first.leave();
  world.advance(23h);
  EXPECT_EQ(hello(second, {{"name", "worker"}, {"resume", session}}).at("name"), "worker");
  world.advance(2h);
  Client third{world};
  EXPECT_EQ(hello(third, {{"name", "other"}, {"resume", session}}), -32004);
}

TEST_F(Sessions, of_a_connection_that_lasts_does_not_end) {
  const std::string session = session_of(first, "worker");
  world.advance(100h);
  EXPECT_EQ(hello(second, {{"resume", session}}).at("name"), "worker");
}

TEST_F(Sessions, that_are_none_are_refused_alike_and_change_nothing) {
  const std::string session = session_of(first, "worker");
  std::string changed = session;
  changed.back() = changed.back() == '0' ? '1' : '0';
  std::string earlier = session;
  earlier.front() = '1';
  for (const std::string& wrong : {std::string{"x"}, changed, earlier, session + "0", std::string(48, '0')})
    EXPECT_EQ(hello(second, {{"name", "worker"}, {"resume", wrong}}), -32004) << wrong;
  EXPECT_EQ(first.sink->closes + second.sink->closes, 0);
  EXPECT_EQ(hello(second, {{"name", "worker"}}).at("name"), "worker~2");
}

TEST_F(Sessions, one_of_its_own_is_nothing_new) {
  const std::string session = session_of(first, "worker");
  EXPECT_EQ(hello(first, {{"resume", session}}).at("session"), session);
  EXPECT_EQ(first.sink->closes, 0);
}

TEST_F(Sessions, of_another_principal_is_none) {
  const auto principal = [](std::string name, std::string token) {
    return Principal{.name = std::move(name),
                     .tokens = {std::move(token)},
                     .call = {},
                     .provide = {},
                     .publish = {},
                     .subscribe = {},
                     .admin = false};
  };
  world.loop_context.services.authority =
      std::make_shared<const rpc::Authority>(std::vector<Principal>{principal("a", "one"), principal("b", "two")});
  const std::string session = hello(first, {{"token", "one"}, {"name", "worker"}}).at("session");
  EXPECT_EQ(hello(second, {{"token", "two"}, {"resume", session}}), -32004);
  EXPECT_EQ(first.sink->closes + second.sink->closes, 0);
  Client third{world};
  EXPECT_EQ(hello(third, {{"token", "one"}, {"resume", session}}).at("name"), "worker");
}

TEST(SessionKeys, hashes_as_published) {
  std::string text;
  for (char c = 0; c < 15; ++c) text += c;
  EXPECT_EQ(broker::sip_hash(0x0706050403020100, 0x0f0e0d0c0b0a0908, text), 0xa129ca6149be45e5U);
  EXPECT_EQ(broker::sip_hash(0x0706050403020100, 0x0f0e0d0c0b0a0908, ""), 0x726fdb47dd0e0e31U);
}

TEST(SessionKeys, numbers_grow_and_those_of_another_run_are_none) {
  broker::SessionKeys keys;
  const std::uint64_t first = keys.begin(5ms);
  const std::uint64_t second = keys.begin(5ms);
  EXPECT_GT(second, first);
  EXPECT_GT(keys.begin(1ms), second);
  EXPECT_EQ(broker::SessionKeys::began(first), 5ms);
  EXPECT_EQ(keys.find(keys.secret_of(first, "a"), "a"), first);
  EXPECT_FALSE(keys.find(keys.secret_of(first, "a"), "b"));
  EXPECT_FALSE(broker::SessionKeys{}.find(keys.secret_of(first, "a"), "a"));
}

}  // namespace
}  // namespace wirecall
