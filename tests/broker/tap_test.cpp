// rpc.tap: who looks on is shown calls, their outcomes and events, and nobody else notices.
#include <chrono>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "broker/tap_feed.hpp"
#include "rpc/access.hpp"
#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::cancel_notification;
using test::Client;
using test::error_reply;
using test::id_of;
using test::notification;
using test::request;
using test::result_reply;
using test::World;

class Tap : public testing::Test {
 protected:
  Tap() {
    world.registry.method("own.add", [](int a, int b) { return a + b; });
    world.registry.method("own.fail", [] { throw Error{-5, "no"}; });
    hello(caller, "ada");
    hello(provider, "worker");
  }
  static void hello(Client& client, const std::string& name) {
    static_cast<void>(client.ask(request("rpc.hello", R"({"name":")" + name + "\"}")));
  }
  static void tap(Client& client, std::string_view params = {}) {
    EXPECT_EQ(client.ask(request("rpc.tap", params)), result_reply("true"));
  }
  /// What has come, each the params of a rpc.tap without its id.
  static std::vector<json> seen(Client& client) {
    std::vector<json> all;
    for (const std::string& message : std::exchange(client.sink->messages, {})) {
      json one = json::parse(message);
      EXPECT_EQ(one.at("method"), "rpc.tap") << message;
      EXPECT_FALSE(one.contains("id")) << message;
      one.at("params").erase("id");
      all.push_back(one.at("params"));
    }
    return all;
  }
  static std::vector<json> list(std::initializer_list<const char*> texts) {
    std::vector<json> all;
    for (const char* text : texts) all.push_back(json::parse(text));
    return all;
  }
  std::string answer(std::string_view result) {
    const std::string id = id_of(provider.received());
    provider.send(result_reply(result, id));
    return id;
  }

  World world;
  Client caller{world};
  Client provider{world};
  Client admin{world};
};

TEST_F(Tap, a_call_and_its_outcome_are_shown) {
  provider.provide("add");
  tap(admin);
  caller.send(request("add", "[1, 2]"));
  EXPECT_EQ(admin.received(),
            R"({"jsonrpc":"2.0","method":"rpc.tap","params":{"kind":"call","id":1,"method":"add","client":"ada",)"
            R"("provider":"worker","params":[1, 2]}})");
  world.advance(1500us);
  answer("3");
  EXPECT_EQ(admin.received(),
            R"({"jsonrpc":"2.0","method":"rpc.tap","params":{"kind":"reply","id":1,"method":"add","client":"ada",)"
            R"("provider":"worker","ms":1.500,"result":3}})");
  EXPECT_EQ(caller.received(), result_reply("3")) << "as if nobody looked on";
  caller.send(request("add"));
  EXPECT_NE(admin.received().find(R"("kind":"call","id":2,"method":"add","client":"ada","provider":"worker"})"),
            std::string::npos);
}

TEST_F(Tap, every_way_in_which_a_call_ends_is_one_reply) {
  provider.provide("add", R"(,"concurrency":4)");
  caller.provide("twice");
  tap(admin);
  const auto end = [&](const char* what) {
    const std::vector<json> all = seen(admin);
    EXPECT_EQ(all.size(), 2U) << what;
    EXPECT_EQ(all.front().at("kind"), "call") << what;
    EXPECT_EQ(all.back().at("kind"), "reply") << what;
    return all.back().at("error").at("code").get<int>();
  };
  caller.send(request("add"));
  provider.send(error_reply(-7, "no", R"({"origin":"local","a":1})", id_of(provider.received())));
  EXPECT_EQ(admin.sink->messages.back(),
            R"({"jsonrpc":"2.0","method":"rpc.tap","params":{"kind":"reply","id":1,"method":"add","client":"ada",)"
            R"("provider":"worker","ms":0.000,"error":{"code":-7,"message":"no","data":{"a":1}}}})");
  EXPECT_EQ(end("an error"), -7);
  caller.send(request("add"));
  provider.send(R"({"jsonrpc":"2.0","result":1,"error":1,"id":)" + id_of(provider.received()) + "}");
  EXPECT_EQ(end("a malformed response"), -32603);
  caller.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":10,"id":1})");
  world.advance(20ms);
  EXPECT_EQ(end("too late"), -32002);
  caller.send(request("add", {}, "2"));
  static_cast<void>(caller.ask(request("rpc.cancel", R"({"id":2})")));
  EXPECT_EQ(end("cancelled"), -32800);
  caller.send("[" + request("add", {}, "3") + "]");
  static_cast<void>(caller.ask(request("rpc.cancel", R"({"id":3})")));
  EXPECT_EQ(end("cancelled in a batch"), -32800);
  Client other{world};
  other.send(request("add"));
  other.leave();
  EXPECT_EQ(end("the caller has gone"), -32800);
  other.connect();
  other.send("[" + request("add") + "]");
  provider.leave();
  EXPECT_EQ(end("the provider has gone"), -32001);
}

TEST_F(Tap, what_is_in_a_batch_or_asked_of_all_is_shown_one_by_one) {
  provider.provide("add");
  Client other{world};
  other.provide("add");
  tap(admin);
  caller.send(request("rpc.call_all", R"({"method":"add","params":[7]})"));
  provider.send(result_reply("1", id_of(provider.received())));
  other.send(error_reply(-5, "no", {}, id_of(other.received())));
  EXPECT_EQ(
      seen(admin),
      list(
          {R"({"kind":"call","method":"add","client":"ada","provider":"worker","params":[7]})",
           R"({"kind":"call","method":"add","client":"ada","provider":null,"params":[7]})",
           R"({"kind":"reply","method":"add","client":"ada","provider":"worker","ms":0.0,"result":1})",
           R"({"kind":"reply","method":"add","client":"ada","provider":null,"ms":0.0,"error":{"code":-5,"message":"no"}})"}));
  caller.send("[" + request("add", "[1]") + "]");
  EXPECT_EQ(seen(admin).size(), 1U);
  answer("2");
  EXPECT_EQ(seen(admin).size(), 1U);
}

TEST_F(Tap, notifications_and_events_are_shown_though_nobody_is_told) {
  tap(admin);
  caller.send(notification("news", "[1]"));
  static_cast<void>(caller.ask(request("rpc.publish", R"({"topic":"news","params":{"a":1}})")));
  EXPECT_EQ(seen(admin), list({R"({"kind":"event","method":"news","client":"ada","delivered":0,"params":[1]})",
                               R"({"kind":"event","method":"news","client":"ada","delivered":0,"params":{"a":1}})"}));
  static_cast<void>(provider.ask(request("rpc.subscribe", R"({"topic":"log"})")));
  Client other{world};
  other.provide("log");
  caller.send(notification("log"));
  caller.send(notification("own.add", "[1,2]"));
  EXPECT_EQ(seen(admin), list({R"({"kind":"event","method":"log","client":"ada","delivered":1})",
                               R"({"kind":"notification","method":"log","client":"ada","provider":null})",
                               R"({"kind":"event","method":"own.add","client":"ada","delivered":0,"params":[1,2]})",
                               R"({"kind":"notification","method":"own.add","client":"ada","params":[1,2]})"}));
}

TEST_F(Tap, methods_of_the_process_are_shown_with_the_code_of_their_outcome) {
  tap(admin, R"(["own.*"])");
  EXPECT_EQ(caller.ask(request("own.add", "[1,2]")), result_reply("3"));
  EXPECT_EQ(caller.ask(request("own.fail")), error_reply(-5, "no"));
  EXPECT_EQ(seen(admin), list({R"({"kind":"call","method":"own.add","client":"ada","params":[1,2]})",
                               R"({"kind":"reply","method":"own.add","client":"ada","ms":0.0})",
                               R"({"kind":"call","method":"own.fail","client":"ada"})",
                               R"({"kind":"reply","method":"own.fail","client":"ada","ms":0.0,"error":{"code":-5}})"}));
  tap(admin, R"({"pattern":null})");
  EXPECT_EQ(caller.ask(request("own.add", "[1,2]")), result_reply("3"));
  EXPECT_EQ(seen(admin), list({}));
}

TEST_F(Tap, a_pattern_chooses_what_is_shown) {
  for (const std::string method : {"gpu.add", "gpu.a.b", "add"}) provider.provide(method);
  const auto shown = [&](std::string_view params) {
    tap(admin, params);
    for (const std::string method : {"gpu.add", "gpu.a.b", "add"}) {
      caller.send(request(method));
      answer("1");
    }
    Client other{world};
    hello(other, "other");
    other.leave();
    std::string names;
    for (const json& one : seen(admin)) {
      if (one.at("kind") != "reply") names += one.at("method").get<std::string>() + ' ';
    }
    return names;
  };
  EXPECT_EQ(shown(R"(["gpu.*"])"), "gpu.add ");
  EXPECT_EQ(shown(R"(["gpu.>"])"), "gpu.add gpu.a.b ") << "again, it replaces the pattern";
  EXPECT_EQ(shown(R"({"pattern":"add"})"), "add ");
  EXPECT_EQ(shown(""), "gpu.add gpu.a.b add ");
  EXPECT_EQ(shown(R"(["rpc.>"])"), "rpc.client.joined rpc.client.left ");
  for (const std::string params : {R"(["a..b"])", R"({"pattern":1})", R"([""])", R"(["a",1])"})
    EXPECT_NE(admin.ask(request("rpc.tap", params)).find("-32602"), std::string::npos) << params;
}

TEST_F(Tap, ends_by_null_and_with_its_connection) {
  provider.provide("add");
  EXPECT_EQ(admin.ask(request("rpc.tap", R"({"pattern":null})")), result_reply("false"));
  EXPECT_FALSE(world.router.is_tapped());
  tap(admin);
  EXPECT_TRUE(admin.dispatcher->idle_exempt()) << "it need not say anything";
  Client other{world};
  tap(other);
  caller.send(request("add"));
  EXPECT_EQ(seen(other), seen(admin));
  EXPECT_EQ(admin.ask(request("rpc.tap", R"({"pattern":null})")), result_reply("true"));
  EXPECT_FALSE(admin.dispatcher->idle_exempt());
  answer("1");
  EXPECT_EQ(seen(admin), list({}));
  EXPECT_EQ(seen(other).size(), 1U);
  other.leave();
  EXPECT_FALSE(world.router.is_tapped());
  tap(admin);
  admin.dispatcher->peer_ended();
  EXPECT_FALSE(world.router.is_tapped());
  EXPECT_NE(admin.ask(request("rpc.tap")).find("-32007"), std::string::npos);
  Client poster{world};
  poster.sink->can = {};
  EXPECT_NE(poster.ask(request("rpc.tap")).find("needs_connection"), std::string::npos);
}

TEST_F(Tap, calls_that_began_before_it_are_not_shown) {
  provider.provide("add");
  caller.send(request("add"));
  tap(admin);
  answer("1");
  EXPECT_EQ(seen(admin), list({}));
}

TEST_F(Tap, one_that_takes_too_little_loses_and_is_told_how_much) {
  provider.provide("add");
  tap(admin);
  admin.sink->overfull = true;
  for (int i = 0; i < 3; ++i) {
    caller.send(request("add"));
    answer("1");
  }
  EXPECT_EQ(admin.received(), "");
  admin.sink->overfull = false;
  admin.dispatcher->on_writable();
  EXPECT_EQ(admin.received(), notification("rpc.lagged", R"({"topic":"rpc.tap","dropped":6})"));
  EXPECT_EQ(world.loop_context.stats.events_dropped, 6U);
  caller.send(request("add"));
  EXPECT_EQ(seen(admin).size(), 1U);
}

TEST_F(Tap, what_is_long_is_shown_by_its_beginning) {
  provider.provide(">");
  tap(admin);
  const std::string fits = "[\"" + std::string(broker::TapFeed::kValueShownMax - 4, 'x') + "\"]";
  caller.send(request("echo", fits));
  EXPECT_EQ(seen(admin).at(0).at("params"), json::parse(fits));
  const std::string text = std::string(broker::TapFeed::kValueShownMax - 3, 'x') + "\u00e9\u00e9";
  caller.send(request("echo", "[\"" + text + "\"]"));
  const json cut = seen(admin).at(0);
  EXPECT_FALSE(cut.contains("params"));
  EXPECT_EQ(cut.at("params_begin"), "[\"" + std::string(broker::TapFeed::kValueShownMax - 3, 'x'))
      << "whole characters";
  EXPECT_EQ(cut.at("bytes"), text.size() + 4);
  caller.send(request("a\\u0062c"));
  EXPECT_EQ(seen(admin).at(0).at("method"), "abc");
}

TEST_F(Tap, nothing_secret_is_shown) {
  tap(admin);
  tap(admin, R"(["rpc.>"])");
  Client other{world};
  const std::string reply = other.ask(request("rpc.hello", R"({"name":"n","token":"token-of-other"})"));
  const std::string session = json::parse(reply).at("result").at("session");
  Client again{world};
  again.send(request("rpc.hello", R"({"resume":")" + session + "\"}"));
  const std::string shown = admin.received();
  EXPECT_EQ(shown.find(session), std::string::npos) << shown;
  EXPECT_EQ(shown.find("token"), std::string::npos) << shown;
}

TEST_F(Tap, only_admins_look_on) {
  world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "robot",
       .tokens = {"r"},
       .call = {">"},
       .provide = {},
       .publish = {},
       .subscribe = {">"},
       .admin = false},
      {.name = "boss", .tokens = {"b"}, .call = {}, .provide = {}, .publish = {}, .subscribe = {}, .admin = true}});
  Client robot{world};
  Client boss{world};
  static_cast<void>(robot.ask(request("rpc.hello", R"({"token":"r"})")));
  static_cast<void>(boss.ask(request("rpc.hello", R"({"token":"b"})")));
  EXPECT_NE(robot.ask(request("rpc.tap")).find("\"code\":-32003"), std::string::npos);
  EXPECT_NE(robot.ask(request("rpc.tap", R"({"pattern":null})")).find("\"code\":-32003"), std::string::npos);
  tap(boss);
  static_cast<void>(robot.ask(request("own.add", "[1,2]")));
  EXPECT_EQ(seen(boss).size(), 2U) << "all, whatever it may call itself";
  EXPECT_EQ(robot.received(), "");
}

}  // namespace
}  // namespace wirecall
