// Who may do what at a broker: what is not allowed does not exist, or is refused, and nothing tells which.
#include "rpc/access.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::error_reply;
using test::id_of;
using test::notification;
using test::request;
using test::result_reply;
using test::World;

const Principal kRobot{.name = "robot",
                       .tokens = {"robot-secret", "robot-second"},
                       .call = {"status", "own.*"},
                       .provide = {"arm.>", "status"},
                       .publish = {"arm.*"},
                       .subscribe = {"news.>", "rpc.client.*"},
                       .admin = false};
const Principal kDesk{.name = "desk",
                      .tokens = {"desk-secret"},
                      .call = {"arm.>"},
                      .provide = {},
                      .publish = {">"},
                      .subscribe = {"arm.*"},
                      .admin = false};
const Principal kBoss{.name = "boss",
                      .tokens = {"boss-secret"},
                      .call = {">"},
                      .provide = {">"},
                      .publish = {">"},
                      .subscribe = {">"},
                      .admin = true};

class AccessTest : public testing::Test {
 protected:
  AccessTest() {
    world.registry.method("own.one", [] { return 1; });
    world.registry.method("secret", [] { return 2; });
    world.registry.method("own.two.three", [] { return 3; });
    use({kRobot, kDesk, kBoss});
  }
  void use(std::vector<Principal> principals) {
    world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::move(principals));
  }
  static std::string hello(std::string_view token) {
    return request("rpc.hello", R"({"token":")" + std::string{token} + "\"}");
  }
  void log_in(Client& client, std::string_view token) {
    EXPECT_NE(client.ask(hello(token)).find("\"result\""), std::string::npos);
  }
  static bool is_refused(const std::string& reply) {
    return reply.find("\"code\":-32004") != std::string::npos && reply.find("status") == std::string::npos;
  }

  World world;
  Client robot{world};
  Client desk{world};
  Client boss{world};
};

TEST_F(AccessTest, behind_a_wrong_token_nothing_of_its_batch_is_run) {
  log_in(robot, "robot-secret");
  int ran = 0;
  world.registry.method("counted", [&] { return ++ran; });
  const std::string reply = robot.ask("[" + hello("wrong") + "," + request("counted", {}, "2") + "," +
                                      request("rpc.subscribe", R"({"topic":">"})", "3") + "]");
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(reply.find("\"result\""), std::string::npos) << reply;
}

TEST_F(AccessTest, events_of_subscriptions_have_names_that_their_provider_may_publish) {
  log_in(robot, "robot-secret");
  const auto declared = [](std::string_view name) {
    return request("rpc.register",
                   R"({"method":"arm.watch","subscription":{"unsubscribe":"arm.unwatch","notification":")" +
                       std::string{name} + R"("}})");
  };
  EXPECT_NE(robot.ask(declared("secret")).find("\"code\":-32003"), std::string::npos);
  EXPECT_EQ(robot.ask(declared("arm.seen")), result_reply("1"));
}

TEST_F(AccessTest, before_a_token_only_hello_and_ping_are_accepted) {
  EXPECT_EQ(robot.ask(request("rpc.ping")), result_reply("\"pong\""));
  EXPECT_EQ(robot.ask(request("keepAlive")), result_reply("\"pong\""));
  EXPECT_EQ(robot.sink->closes, 0);
  for (const std::string& message :
       {request("own.one"), request("nothing"), request("rpc.methods"), request("rpc.cancel", "[1]"),
        request("rpc.h\\u0065llo"), "[" + request("rpc.ping") + "]", request("rpc.hello"), hello("wrong"), hello(""),
        request("rpc.hello", R"({"token":null,"name":"x"})"), std::string{R"({"jsonrpc":"2.0"})"}}) {
    Client stranger{world};
    const std::string reply = stranger.ask(message);
    EXPECT_NE(reply.find("\"code\":-32004"), std::string::npos) << message << reply;
    EXPECT_EQ(stranger.sink->closes, 1) << message;
  }
  Client stranger{world};
  EXPECT_EQ(stranger.ask(notification("own.one")), "");
  EXPECT_EQ(stranger.sink->closes, 1);
}

TEST_F(AccessTest, nothing_tells_which_methods_there_are) {
  Client other{world};
  EXPECT_EQ(robot.ask(request("own.one")), other.ask(request("own.nothing")));
}

TEST_F(AccessTest, a_method_that_may_not_be_called_is_as_one_that_is_not_there) {
  log_in(robot, "robot-secret");
  EXPECT_EQ(robot.ask(request("own.one")), result_reply("1"));
  EXPECT_EQ(robot.ask(request("secret")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(robot.ask(request("secres")), error_reply(-32601, "Method not found")) << "no hint";
  EXPECT_EQ(robot.ask(request("own.two.three")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(robot.ask(request("own.two.thre")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(robot.ask(request("own.onw")), error_reply(-32601, "Method not found", R"({"did_you_mean":"own.one"})"));
  // The forbidden name would be nearer than the one that is told.
  world.registry.method("own.onx.y", [] {});
  log_in(boss, "boss-secret");
  boss.provide("own.secrev");
  boss.provide("own.secret.x");
  EXPECT_EQ(robot.ask(request("own.secret.x")).find("did_you_mean\":\"own.secret.x"), std::string::npos);
  EXPECT_EQ(boss.ask(request("secret")), result_reply("2"));
}

TEST_F(AccessTest, a_second_hello_may_not_say_another) {
  log_in(robot, "robot-secret");
  log_in(robot, "robot-second");
  EXPECT_NE(robot.ask(request("rpc.hello", R"({"name":"r"})")).find("\"name\":\"r\""), std::string::npos);
  EXPECT_EQ(robot.sink->closes, 0);
  EXPECT_NE(robot.ask(hello("desk-secret")).find("-32004"), std::string::npos);
  EXPECT_EQ(robot.sink->closes, 1);
  EXPECT_NE(robot.ask(request("own.one")).find("-32004"), std::string::npos) << "what it had sent behind it";
}

TEST_F(AccessTest, registering_subscribing_and_publishing_need_a_grant) {
  log_in(robot, "robot-secret");
  robot.provide("arm.move");
  robot.provide("arm.>");
  robot.provide("status");
  const auto forbidden = [](const std::string& reply) { return reply.find("\"code\":-32003") != std::string::npos; };
  for (const std::string name : {"leg.move", "arm", "statusx", ">", "news"})
    EXPECT_TRUE(forbidden(robot.ask(request("rpc.register", R"({"method":")" + name + "\"}")))) << name;
  for (const std::string topic : {">", "*", "*.x", "new", "news", "rpc.method.registered", "rpc.>", "news2.>"})
    EXPECT_TRUE(forbidden(robot.ask(request("rpc.subscribe", R"({"topic":")" + topic + "\"}")))) << topic;
  for (const std::string topic : {"news.>", "news.a", "news.*", "news.*.>", "rpc.client.joined", "rpc.client.*"})
    EXPECT_EQ(robot.ask(request("rpc.subscribe", R"({"topic":")" + topic + "\"}")), result_reply("true")) << topic;
  for (const std::string topic : {"news.a", "arm", "arm.a.b", "status"})
    EXPECT_TRUE(forbidden(robot.ask(request("rpc.publish", R"({"topic":")" + topic + "\"}")))) << topic;
  EXPECT_EQ(robot.ask(request("rpc.publish", R"({"topic":"arm.up"})")), result_reply("0"));
  for (const std::string topic : {"a..b", "arm.", ".arm", "arm. x"})
    EXPECT_NE(robot.ask(request("rpc.subscribe", R"({"topic":")" + topic + "\"}")).find("-32602"), std::string::npos);
}

TEST_F(AccessTest, presence_tells_of_methods_that_one_may_call) {
  world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "watch",
       .tokens = {"watch-secret"},
       .call = {"shown"},
       .provide = {},
       .publish = {},
       .subscribe = {"rpc.>"}},
      {.name = "worker", .tokens = {"worker-secret"}, .call = {}, .provide = {">"}, .publish = {}, .subscribe = {}}});
  Client watch{world};
  Client worker{world};
  log_in(watch, "watch-secret");
  log_in(worker, "worker-secret");
  EXPECT_EQ(watch.ask(request("rpc.subscribe", R"(["rpc.method.*"])")), result_reply("true"));
  worker.provide("hidden");
  worker.provide("shown");
  EXPECT_EQ(watch.received(), notification("rpc.method.registered", R"({"client":null,"method":"shown"})"));
  worker.leave();
  EXPECT_EQ(watch.received(), notification("rpc.method.unregistered", R"({"client":null,"method":"shown"})"));
}

TEST_F(AccessTest, a_notification_reaches_those_that_its_sender_may_reach) {
  log_in(robot, "robot-secret");
  log_in(desk, "desk-secret");
  robot.provide("arm.move");
  EXPECT_EQ(robot.ask(request("rpc.subscribe", R"({"topic":"news.>"})")), result_reply("true"));
  EXPECT_EQ(desk.ask(request("rpc.subscribe", R"({"topic":"arm.*"})")), result_reply("true"));
  desk.send(notification("arm.move", "[1]"));
  EXPECT_EQ(robot.received(), notification("arm.move", "[1]")) << "may call it";
  desk.send(notification("news.today", "[2]"));
  EXPECT_EQ(robot.received(), notification("news.today", "[2]")) << "may publish it";
  robot.send(notification("arm.up", "[3]"));
  EXPECT_EQ(desk.received(), notification("arm.up", "[3]"));
  robot.send(notification("arm.up.more", "[4]"));
  robot.send(notification("secret"));
  EXPECT_EQ(desk.received() + robot.received(), "");
}

TEST_F(AccessTest, what_there_is_shows_what_a_principal_may_use) {
  log_in(robot, "robot-secret");
  log_in(desk, "desk-secret");
  log_in(boss, "boss-secret");
  robot.provide("arm.move");
  boss.provide("plan");
  const auto names = [](Client& client, std::string_view method) {
    const std::string reply = client.ask(request(method));
    std::string found;
    for (const std::string_view name : {"arm.move", "own.one", "plan", "secret"}) {
      if (reply.find("\"name\":\"" + std::string{name} + '"') != std::string::npos) found += std::string{name} + " ";
    }
    return found;
  };
  for (const std::string_view method : {"rpc.methods", "rpc.discover", "rpc.stats"}) {
    EXPECT_EQ(names(robot, method), "own.one ") << method;
    EXPECT_EQ(names(desk, method), "arm.move ") << method;
    EXPECT_EQ(names(boss, method), "arm.move own.one plan secret ") << method;
  }
  const auto clients = [](Client& client) {
    const std::string reply = client.ask(request("rpc.clients"));
    return std::ranges::count(reply, '{');
  };
  static_cast<void>(boss.ask(request("rpc.hello", R"({"name":"boss"})")));
  static_cast<void>(robot.ask(request("rpc.hello", R"({"name":"robot"})")));
  EXPECT_EQ(clients(boss), 1 + 2);
  EXPECT_EQ(clients(desk), 1 + 1) << "the robot, whose methods it may call";
  EXPECT_EQ(clients(robot), 1 + 1) << "itself";
  EXPECT_EQ(desk.ask(request("rpc.call_all", R"(["plan"])")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(robot.ask(request("rpc.call_all", R"(["secret"])")), error_reply(-32601, "Method not found"));
}

TEST_F(AccessTest, only_admins_kick) {
  log_in(robot, "robot-secret");
  log_in(boss, "boss-secret");
  static_cast<void>(robot.ask(request("rpc.hello", R"({"name":"robot"})")));
  const std::string kick = request("rpc.kick", R"(["robot"])");
  EXPECT_NE(robot.ask(kick).find("-32003"), std::string::npos);
  EXPECT_EQ(robot.sink->closes, 0);
  EXPECT_EQ(boss.ask(kick), result_reply("true"));
  EXPECT_EQ(robot.sink->closes, 1);
}

TEST_F(AccessTest, a_name_belongs_to_the_principal_that_holds_it) {
  log_in(robot, "robot-secret");
  log_in(desk, "desk-secret");
  EXPECT_NE(robot.ask(request("rpc.hello", R"({"name":"arm"})")).find("\"name\":\"arm\""), std::string::npos);
  EXPECT_NE(desk.ask(request("rpc.hello", R"({"name":"arm"})")).find("-32007"), std::string::npos);
  Client second{world};
  EXPECT_NE(second.ask(request("rpc.hello", R"({"name":"arm","token":"robot-second"})")).find("\"name\":\"arm~2\""),
            std::string::npos);
}

TEST_F(AccessTest, a_token_that_is_removed_ends_what_it_had_let_in) {
  log_in(robot, "robot-secret");
  Client second{world};
  log_in(second, "robot-second");
  log_in(desk, "desk-secret");
  Principal robot_with_one = kRobot;
  robot_with_one.tokens = {"robot-secret"};
  Principal desk_with_more = kDesk;
  desk_with_more.call.push_back("own.one");
  use({robot_with_one, desk_with_more});
  EXPECT_FALSE(second.dispatcher->is_still_known());
  EXPECT_FALSE(desk.dispatcher->is_still_known()) << "it may do something else now";
  EXPECT_NE(second.ask(request("own.one")).find("-32004"), std::string::npos);
  EXPECT_EQ(second.sink->closes, 1);
  EXPECT_EQ(robot.ask(request("own.one")), result_reply("1")) << "another token was removed";
}

TEST_F(AccessTest, a_principal_that_has_not_changed_goes_on) {
  log_in(robot, "robot-second");
  use({kBoss, kRobot});
  EXPECT_TRUE(robot.dispatcher->is_still_known());
  EXPECT_EQ(robot.ask(request("own.one")), result_reply("1"));
  world.loop_context.services.authority = nullptr;
  EXPECT_FALSE(robot.dispatcher->is_still_known());
}

TEST_F(AccessTest, after_a_reload_a_principal_is_the_same_one) {
  log_in(robot, "robot-secret");
  EXPECT_NE(robot.ask(request("rpc.hello", R"({"name":"arm"})")).find("\"name\":\"arm\""), std::string::npos);
  use({kBoss, kRobot, kDesk});
  Client second{world};
  log_in(second, "robot-second");
  EXPECT_NE(second.ask(request("rpc.hello", R"({"name":"arm"})")).find("\"name\":\"arm~2\""), std::string::npos);
  const std::string clients = second.ask(request("rpc.clients"));
  EXPECT_NE(clients.find("\"arm\""), std::string::npos) << "its own, which has said nothing since: " << clients;
  EXPECT_NE(clients.find("\"arm~2\""), std::string::npos) << clients;
  EXPECT_NE(robot.ask(hello("robot-second")).find("\"result\""), std::string::npos) << "another token of the same";
  log_in(desk, "desk-secret");
  EXPECT_NE(desk.ask(request("rpc.hello", R"({"name":"arm"})")).find("-32007"), std::string::npos);
}

TEST_F(AccessTest, a_session_is_resumed_after_a_reload) {
  log_in(robot, "robot-secret");
  const std::string greeted = robot.ask(request("rpc.hello", R"({"name":"arm"})"));
  const std::size_t at = greeted.find("\"session\":\"");
  ASSERT_NE(at, std::string::npos) << greeted;
  const std::string session = greeted.substr(at + 11, 48);
  use({kBoss, kRobot, kDesk});
  Client second{world};
  log_in(second, "robot-second");
  const std::string resumed = second.ask(request("rpc.hello", R"({"resume":")" + session + "\"}"));
  EXPECT_NE(resumed.find("\"name\":\"arm\""), std::string::npos) << resumed;
  EXPECT_EQ(robot.sink->closes, 1);
}

TEST_F(AccessTest, no_error_of_hello_quotes_a_token) {
  for (const std::string_view params :
       {R"({"token":"hidden","token":"hidden"})", R"({"token":"robot-secret","token":"hidden"})",
        R"(["a","hidden","b","hidden"])", R"({"token":["hidden"]})", R"({"name":{"token":"hidden"}})",
        R"({"name":["hidden"]})", R"({"resume":{"a":"hidden"}})", R"({"resume":"hidden","resume":"hidden"})"}) {
    Client client{world};
    const std::string reply = client.ask(request("rpc.hello", std::string{params}));
    EXPECT_NE(reply.find("-32602"), std::string::npos) << reply;
    EXPECT_EQ(reply.find("hidden"), std::string::npos) << reply;
    EXPECT_NE(reply.find("\"loc\":["), std::string::npos) << reply;
  }
}

TEST(Authority, finds_each_of_many_tokens_and_no_other) {
  std::vector<Principal> many;
  for (int i = 0; i < 2000; ++i) {
    const std::string number = std::to_string(i);
    many.push_back({.name = "p" + number,
                    .tokens = {"token-" + number, "second-" + number},
                    .call = {},
                    .provide = {},
                    .publish = {},
                    .subscribe = {},
                    .admin = false});
  }
  const rpc::Authority authority{std::move(many)};
  for (int i = 0; i < 2000; ++i) {
    const std::string number = std::to_string(i);
    for (const std::string& token : {"token-" + number, "second-" + number}) {
      const Principal* const found = authority.find(token);
      ASSERT_NE(found, nullptr) << token;
      EXPECT_EQ(found->name, "p" + number);
    }
  }
  for (const std::string_view none : {"", "token-", "token-2000", "token-00", "x"})
    EXPECT_EQ(authority.find(none), nullptr) << none;
}

TEST(Authority, refuses_principals_that_cannot_be_without_a_word_of_tokens) {
  const auto why = [](std::vector<Principal> principals) -> std::string {
    try {
      const rpc::Authority authority{std::move(principals)};
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return {};
  };
  const auto with = [](auto change) {
    Principal principal = kRobot;
    change(principal);
    return principal;
  };
  EXPECT_EQ(why({kRobot, kDesk}), "");
  EXPECT_NE(why({kRobot, kRobot}), "");
  EXPECT_NE(why({with([](Principal& p) { p.name.clear(); })}), "");
  for (const std::string& token :
       std::initializer_list<std::string>{"", "a b", "a\n", "\xc3\xa4", std::string(4097, 'x'), "robot-second"}) {
    const std::string said = why({with([&](Principal& p) { p.tokens = {"robot-second", token}; })});
    EXPECT_NE(said, "") << token;
    EXPECT_EQ(said.find("robot-second"), std::string::npos) << said;
  }
  EXPECT_NE(why({kRobot, with([](Principal& p) { p.name = "other"; })}), "") << "tokens of another";
  for (const std::string pattern : {"", "a..b", "a b", ">.a", "a*"}) {
    EXPECT_NE(why({with([&](Principal& p) { p.call = {pattern}; })}), "") << pattern;
    EXPECT_NE(why({with([&](Principal& p) { p.call = {"!" + pattern}; })}), "") << pattern;
    EXPECT_NE(why({with([&](Principal& p) { p.subscribe = {pattern}; })}), "") << pattern;
  }
}

TEST(Authority, takes_out_of_the_methods_that_one_may_call_what_an_exception_stands_for) {
  Principal with = kDesk;
  with.call = {">", "!own.secret", "!arm.*", "!!odd"};
  Principal without = kRobot;
  without.call = {"!own.one"};
  const rpc::Authority known{{with, without}};
  const Principal* const desk = known.find_named(kDesk.name);
  for (const std::string_view name : {"own.one", "own", "own.secret.x", "arm", "arm.a.b", "!own.secret", "odd"})
    EXPECT_TRUE(rpc::may_call(desk, name)) << name;
  for (const std::string_view name : {"own.secret", "arm.a", "!odd"}) EXPECT_FALSE(rpc::may_call(desk, name)) << name;
  for (const std::string_view name : {"own.one", "own.two", "!own.one"})
    EXPECT_FALSE(rpc::may_call(known.find_named(kRobot.name), name)) << name;
}

TEST(Authority, finds_a_certificate_by_any_spelling_of_its_names_and_says_what_is_wrong_with_it) {
  const auto authority_of = [](std::vector<std::string> robots, std::vector<std::string> desks) {
    Principal robot = kRobot;
    Principal desk = kDesk;
    robot.certificates = std::move(robots);
    desk.certificates = std::move(desks);
    return std::make_unique<const rpc::Authority>(std::vector{robot, desk});
  };
  const auto known = authority_of({"ip:0:0:0:0:0:0:0:1", "dns:Robot.Example"}, {"uri:SPIFFE://Example/desk"});
  using Names = std::vector<std::string>;
  const auto whose = [&](const Names& names) {
    const Principal* const found = known->find_certificate(rpc::certificate_credential(names));
    return found != nullptr ? found->name : known->fault_of_certificate(names);
  };
  EXPECT_EQ(whose({"ip:::1"}), kRobot.name);
  EXPECT_EQ(whose({"dns:nobody.example", "dns:robot.EXAMPLE", "ip:::1"}), kRobot.name);
  EXPECT_EQ(whose({"uri:spiffe://example/desk"}), kDesk.name);
  EXPECT_EQ(whose({"uri:spiffe://example/Desk", "dns:a\nb"}),
            "a certificate of nobody who is known: uri:spiffe://example/Desk, dns:a\\x0ab");
  EXPECT_EQ(whose({"dns:robot.example", "uri:spiffe://example/desk"}),
            "a certificate of several principals: dns:robot.example, uri:spiffe://example/desk");
  EXPECT_EQ(whose({}), "a certificate without alternative names");
  EXPECT_EQ(known->fault_of_certificate({"ip:::1"}),
            "a certificate that was nobody's when the connection began: ip:::1");
  const auto refusal = [&](const Names& robots, const Names& desks) -> std::string {
    try {
      static_cast<void>(authority_of(robots, desks));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return {};
  };
  const std::string of_desk = "principals: certificates of " + kDesk.name + ", entry 2, is ";
  EXPECT_EQ(refusal({"ip:::1"}, {"ip:::2", "ip:0::1"}), of_desk + "another's, or there twice");
  EXPECT_EQ(refusal({}, {"dns:a", "dns:A"}), of_desk + "another's, or there twice");
  EXPECT_EQ(refusal({}, {"dns:a", "ip:10.0.0.0/8"}), of_desk + "no address: write ip:192.0.2.1, or ip:2001:db8::1");
  EXPECT_EQ(refusal({}, {"dns:a", "desk.example"}),
            of_desk + "no name of a certificate: write dns:, uri:, email: or ip: and the name");
}

TEST(Authority, tells_secrets_apart) {
  EXPECT_TRUE(rpc::same_secret("abc", "abc"));
  for (const std::string_view other : {"", "a", "ab", "abd", "abcabc", "bbc", "abcd"})
    EXPECT_FALSE(rpc::same_secret("abc", other)) << other;
  EXPECT_FALSE(rpc::same_secret("", ""));
  EXPECT_FALSE(rpc::same_secret("aaa", "a"));
}

}  // namespace
}  // namespace wirecall
