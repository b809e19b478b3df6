// Who provides what, and who of several is asked.
#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::error_reply;
using test::id_of;
using test::provider_lost;
using test::request;
using test::result_reply;
using test::timed_out;
using test::World;

std::string conflict(std::string_view reason, std::string_view id = "1") {
  return error_reply(-32007, "Conflict",
                     R"({"reason":")" + std::string{reason} + R"(","origin":"local","delivered":"no"})", id);
}

class Registering : public testing::Test {
 protected:
  // Which of the providers a call reaches.
  std::string asked(std::string_view params = {}, std::string_view method = "add") {
    caller.send(request(method, params));
    std::string who;
    for (auto& [name, client] : std::map<std::string, Client*>{{"a", &a}, {"b", &b}, {"c", &c}}) {
      if (!client->dispatcher) continue;
      last = id_of(client->received());
      if (last != "unreadable") who += name;
    }
    return who;
  }

  World world;
  Client a{world};
  Client b{world};
  Client c{world};
  Client caller{world};
  std::string last;
};

TEST_F(Registering, several_methods_are_registered_at_once_or_none_is) {
  EXPECT_EQ(a.ask(request("rpc.register", R"({"methods":[{"method":"add"},{"method":"mul","concurrency":2}]})")),
            result_reply("2"));
  EXPECT_EQ(asked({}, "mul"), "a");
  EXPECT_EQ(b.ask(request("rpc.register", R"({"methods":[{"method":"div"},{"method":"a b"}]})")).find("-32602") !=
                std::string::npos,
            true);
  EXPECT_EQ(caller.ask(request("div")), error_reply(-32601, "Method not found"));
}

TEST_F(Registering, params_may_be_given_by_position) {
  EXPECT_EQ(a.ask(request("rpc.register", R"(["add"])")), result_reply("1"));
  EXPECT_EQ(asked(), "a");
  EXPECT_EQ(a.ask(request("rpc.unregister", R"(["add"])")), result_reply("1"));
  EXPECT_EQ(a.ask(request("rpc.unregister", R"(["add"])")), result_reply("0"));
}

TEST_F(Registering, what_is_said_of_methods_is_bounded_for_each_connection) {
  const auto described = [](int i) {
    return request("rpc.register",
                   R"({"method":"m)" + std::to_string(i) + R"(","summary":")" + std::string(60'000, 's') + "\"}");
  };
  for (int i = 0; i < 17; ++i) EXPECT_EQ(a.ask(described(i)), result_reply("1"));
  EXPECT_NE(a.ask(described(17)).find(R"("limit":"descriptions")"), std::string::npos);
  a.provide("small");
  b.provide("m0");  // which has its description already
  EXPECT_EQ(b.ask(described(18)), result_reply("1"));
}

TEST_F(Registering, names_that_cannot_be_are_refused) {
  for (const std::string name :
       {"", "a b", "a..b", ".a", "a.", "a.*", "a>", "*", "rpc.mine", "$/mine", "a\\u0007b", "a\\u007fb"})
    EXPECT_NE(a.ask(request("rpc.register", R"({"method":")" + name + "\"}")).find("-32602"), std::string::npos)
        << name;
  EXPECT_NE(a.ask(request("rpc.register", R"({"method":")" + std::string(256, 'x') + "\"}")).find("-32602"),
            std::string::npos);
  EXPECT_EQ(a.ask(request("rpc.register", R"({"method":")" + std::string(255, 'x') + "\"}")), result_reply("1"));
  for (const std::string wrong :
       {R"({})", R"({"method":1})", R"({"method":"x","concurrency":0})", R"({"method":"x","concurrency":"1"})",
        R"({"method":"x","queue":-1})", R"({"method":"x","policy":"best"})", R"({"method":"x","policy":"hash:"})",
        R"({"method":"x","idempotent":1})", R"({"methods":{}})", R"({"methods":[1]})", R"({"method":"x","params":5})",
        R"({"method":"x","params":["y"]})", R"({"method":"x","params":"y"})", R"({"method":"x","result":"y"})",
        R"({"method":"x","result":[]})"})
    EXPECT_NE(a.ask(request("rpc.register", wrong)).find("-32602"), std::string::npos) << wrong;
}

TEST_F(Registering, what_is_wrong_with_one_of_several_says_which) {
  const std::string reply = a.ask(request("rpc.register", R"({"methods":[{"method":"x"},{"method":"rpc.y"}]})"));
  EXPECT_NE(reply.find(R"("loc":["methods",1,"method"],"expected":"a name of 1 to 255 bytes)"), std::string::npos)
      << reply;
  EXPECT_NE(reply.find(R"("got":)"), std::string::npos) << reply;
  EXPECT_EQ(a.ask(request("rpc.unregister", R"(["x"])")), result_reply("0")) << "none is registered";
}

TEST_F(Registering, nothing_begins_at_a_broker_that_is_about_to_end) {
  a.provide("add");
  world.router.drain();
  for (const std::string& text : {request("rpc.register", R"(["sub"])"), request("rpc.subscribe", R"(["news"])"),
                                  request("rpc.publish", R"(["news"])")})
    EXPECT_NE(a.ask(text).find("-32009"), std::string::npos) << text;
  EXPECT_EQ(a.ask(request("rpc.unregister", R"(["add"])")), result_reply("1"));
}

TEST_F(Registering, the_first_registration_fixes_the_policy) {
  a.provide("add", R"(,"policy":"round_robin")");
  EXPECT_EQ(b.ask(request("rpc.register", R"({"method":"add","policy":"first"})")),
            conflict("the method is provided under another policy"));
  b.provide("add");
  EXPECT_EQ(asked() + asked() + asked(), "aba");
}

TEST_F(Registering, an_exclusive_method_has_one_provider) {
  a.provide("add", R"(,"policy":"exclusive")");
  EXPECT_EQ(b.ask(request("rpc.register", R"({"method":"add"})")),
            conflict("the method is provided by another connection, which wants to be the only one"));
  a.leave();
  b.provide("add");
  EXPECT_EQ(asked(), "b");
}

TEST_F(Registering, the_servers_own_methods_are_nobody_elses) {
  world.registry.method("own", [] { return 1; });
  EXPECT_EQ(a.ask(request("rpc.register", R"({"method":"own"})")),
            conflict("the server has a method of that name itself"));
}

TEST_F(Registering, the_least_busy_provider_is_asked) {
  a.provide("add");
  b.provide("add");
  EXPECT_EQ(asked(), "a");
  EXPECT_EQ(asked(), "b");
  const std::string of_b = "1";
  b.send(result_reply("1", of_b));
  EXPECT_EQ(asked(), "b");
}

TEST_F(Registering, one_that_does_not_answer_any_more_is_asked_after_those_that_do) {
  a.provide("add");
  b.provide("add");
  const auto ask_in_turn = [&] {
    std::string asked;
    for (int i = 0; i < 6; ++i) {
      caller.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":20,"id":1})");
      const std::string at_b = b.received();
      asked += at_b.empty() ? 'a' : 'b';
      if (!at_b.empty()) b.send(result_reply("1", id_of(at_b)));
      world.advance(30ms);
    }
    return asked;
  };
  EXPECT_LE(std::ranges::count(ask_in_turn(), 'a'), 1);
  EXPECT_EQ(ask_in_turn(), "bbbbbb");
  // A late answer is an answer.
  const std::string late = a.received();
  a.send(result_reply("1", id_of(late.substr(0, late.find('\n')))));
  EXPECT_NE(std::ranges::count(ask_in_turn(), 'a'), 0);
}

TEST_F(Registering, hash_takes_the_same_provider_for_the_same_value) {
  for (Client* one : {&a, &b, &c}) one->provide("add", R"(,"policy":"hash:user")");
  std::map<std::string, std::string> who;
  std::set<std::string> all;
  for (int i = 0; i < 40; ++i) {
    const std::string user = R"({"x":1,"user":)" + std::to_string(i) + "}";
    who[user] = asked(user);
    all.insert(who[user]);
    EXPECT_EQ(asked(R"({"user":)" + std::to_string(i) + "}"), who[user]);
  }
  EXPECT_EQ(all.size(), 3u);
  c.leave();
  for (const auto& [user, before] : who) {
    if (before == "c") continue;
    EXPECT_EQ(asked(user), before);
  }
}

TEST_F(Registering, first_and_last_go_by_the_order_of_registration) {
  for (Client* one : {&a, &b, &c}) one->provide("add", R"(,"policy":"last")");
  EXPECT_EQ(asked() + asked(), "cc");
  c.leave();
  EXPECT_EQ(asked(), "b");
  for (Client* one : {&a, &b}) one->provide("mul", R"(,"policy":"first")");
  EXPECT_EQ(asked({}, "mul") + asked({}, "mul"), "aa");
}

TEST_F(Registering, random_asks_all_of_them) {
  for (Client* one : {&a, &b, &c}) one->provide("add", R"(,"policy":"random")");
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) all.insert(asked());
  EXPECT_EQ(all, (std::set<std::string>{"a", "b", "c"}));
}

TEST_F(Registering, a_prefix_is_used_where_there_is_no_exact_name_the_longest_first) {
  a.provide("gpu.>");
  b.provide("gpu.math.>");
  c.provide("gpu.math.add");
  EXPECT_EQ(asked({}, "gpu.math.add"), "c");
  EXPECT_EQ(asked({}, "gpu.math.mul"), "b");
  EXPECT_EQ(asked({}, "gpu.x"), "a");
  EXPECT_EQ(asked({}, "gpu"), "");
  EXPECT_EQ(asked({}, "gpu.>"), "");
  EXPECT_EQ(asked({}, "gpux.y"), "");
  c.provide(">");
  EXPECT_EQ(asked({}, "anything.else"), "c");
}

TEST_F(Registering, a_prefix_is_not_above_the_exact_names_that_are_gone) {
  a.provide("gpu.>");
  c.provide("gpu.add");
  c.leave();
  EXPECT_EQ(asked({}, "gpu.add"), "a");
}

TEST_F(Registering, a_call_can_name_its_provider) {
  a.provide("add");
  b.provide("add");
  EXPECT_NE(b.ask(request("rpc.hello", R"({"name":"bee"})")), "");
  for (int i = 0; i < 4; ++i) {
    caller.send(R"({"jsonrpc":"2.0","method":"add","to":"bee","id":1})");
    EXPECT_NE(b.received(), "");
    EXPECT_EQ(a.received(), "");
  }
  const std::string not_there =
      error_reply(-32001, "Provider lost",
                  R"({"reason":"no client of that name provides the method","origin":"local","delivered":"no"})", "1");
  EXPECT_EQ(caller.ask(R"({"jsonrpc":"2.0","method":"add","to":"nobody","id":1})"), not_there);
  EXPECT_EQ(caller.ask(R"({"jsonrpc":"2.0","method":"add","to":7,"id":1})"), not_there);
}

TEST_F(Registering, no_client_provides_what_the_broker_answers_itself) {
  world.registry.method("own", [] { return 1; });
  const auto not_there = [](std::string_view id) {
    return error_reply(-32001, "Provider lost",
                       R"({"reason":"no client of that name provides the method","origin":"local","delivered":"no"})",
                       id);
  };
  const auto addressed = [](std::string_view method, std::string_view rest) {
    return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","to":"nobody")" + std::string{rest} + "}";
  };
  EXPECT_EQ(caller.ask(addressed("own", R"(,"id":1)")), not_there("1"));
  EXPECT_EQ(caller.ask("[" + addressed("own", R"(,"id":2)") + "," + request("own", {}, "3") + "]"),
            "[" + not_there("2") + "," + result_reply("1", "3") + "]");
  for (const std::string method : {"rpc.ping", "rpc.methods", "rpc.hello", "rpc.call_all"})
    EXPECT_EQ(caller.ask(addressed(method, R"(,"id":4)")), not_there("4")) << method;
  EXPECT_EQ(caller.ask(addressed("own", "")), "");
  EXPECT_EQ(caller.ask(addressed("none", R"(,"id":5)")), error_reply(-32601, "Method not found", {}, "5"))
      << "which nobody provides";
}

TEST_F(Registering, what_is_said_of_a_call_is_said_of_it_whomever_it_names) {
  a.provide("add");
  caller.send(request("add", {}, "7"));
  EXPECT_NE(a.received(), "");
  caller.send(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7},"to":"nobody"})");
  EXPECT_NE(a.received().find("$/cancelRequest"), std::string::npos);
}

TEST_F(Registering, a_name_that_is_taken_is_given_with_a_number) {
  const auto given = [](Client& client, std::string_view name) {
    const std::string reply = client.ask(request("rpc.hello", R"({"name":")" + std::string{name} + "\"}"));
    const std::size_t at = reply.find(R"("name":")") + 8;
    return reply.substr(at, reply.find('"', at) - at);
  };
  EXPECT_EQ(given(a, "worker"), "worker");
  EXPECT_EQ(given(b, "worker"), "worker~2");
  EXPECT_EQ(given(a, "worker"), "worker");
  EXPECT_EQ(given(c, "worker"), "worker~3");
  b.leave();
  b.connect();
  EXPECT_EQ(given(b, "worker"), "worker~2");
  EXPECT_EQ(given(b, "other"), "other");
  EXPECT_EQ(given(c, "worker"), "worker~2");
}

TEST_F(Registering, a_name_that_many_have_is_given_with_a_number_that_nobody_has) {
  const auto given = [](Client& client) {
    const std::string reply = client.ask(request("rpc.hello", R"({"name":"worker"})"));
    const std::size_t at = reply.find(R"("name":")") + 8;
    return reply.substr(at, reply.find('"', at) - at);
  };
  std::set<std::string> names;
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t count = 1; count <= 100; ++count) {
    Client& client = *clients.emplace_back(std::make_unique<Client>(world));
    const std::string name = given(client);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(given(client), name);
  }
  EXPECT_TRUE(names.contains("worker~100"));
}

// ---- concurrency and queues ----

TEST_F(Registering, no_call_reaches_a_provider_before_it_has_answered_as_many_as_it_takes) {
  a.provide("add", R"(,"concurrency":1)");
  for (int i = 0; i < 50; ++i) caller.send(request("add", {}, std::to_string(i)));
  for (int i = 0; i < 50; ++i) {
    const std::string one = a.received();
    EXPECT_EQ(one, request("add", {}, id_of(one)));
    a.send(result_reply(std::to_string(i), id_of(one)));
    EXPECT_EQ(caller.received(), result_reply(std::to_string(i), std::to_string(i)));
  }
  EXPECT_EQ(a.received(), "");
}

TEST_F(Registering, a_call_that_was_given_up_counts_until_its_provider_has_answered) {
  a.provide("add", R"(,"concurrency":1)");
  caller.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":20,"id":1})");
  caller.send(request("add", {}, "2"));
  world.advance(30ms);
  EXPECT_EQ(caller.received(), timed_out());
  EXPECT_EQ(a.received(), R"({"jsonrpc":"2.0","method":"add","timeout_ms":20,"id":0})"
                          "\n" +
                              test::cancel_notification("0"));
  a.send(test::cancelled("0"));
  EXPECT_EQ(a.dropped, 1u);
  EXPECT_EQ(a.received(), request("add", {}, "1"));
  EXPECT_EQ(caller.received(), "");
}

TEST_F(Registering, a_full_queue_refuses_and_those_in_it_expire_in_time) {
  a.provide("add", R"(,"concurrency":1,"queue":1)");
  caller.send(request("add", {}, "1"));
  caller.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":20,"id":2})");
  EXPECT_EQ(caller.ask(request("add", {}, "3")),
            error_reply(-32005, "Limit exceeded",
                        R"({"reason":"too many calls wait for the provider","origin":"local","delivered":"no",)"
                        R"("limit":"queue"})",
                        "3"));
  world.advance(30ms);
  EXPECT_EQ(caller.received(),
            error_reply(-32002, "Timeout",
                        R"({"reason":"the call was not answered in time","origin":"local","delivered":"no"})", "2"));
  EXPECT_EQ(a.received(), request("add", {}, "0"));  // and nothing of what has expired
  EXPECT_EQ(caller.ask(request("add", {}, "4")), "");
}

TEST_F(Registering, of_calls_that_wait_each_caller_has_one_in_turn) {
  a.provide("add", R"(,"concurrency":1)");
  Client light{world};
  Client other{world};
  for (int i = 1; i <= 6; ++i) caller.send(request("add", R"(["heavy"])", std::to_string(i)));
  std::string order;
  const auto serve = [&] {
    const std::string one = a.received();
    order += one.substr(one.find('[') + 2, 1);
    a.send(result_reply("1", id_of(one)));
  };
  serve();
  light.send(request("add", R"(["light"])"));
  other.send(request("add", R"(["other"])"));
  for (int i = 0; i < 3; ++i) serve();
  light.send(request("add", R"(["light"])"));
  for (int i = 0; i < 5; ++i) serve();
  EXPECT_EQ(order, "hhlohlhhh");
}

TEST_F(Registering, who_comes_again_and_again_holds_nobody_up_for_ever) {
  a.provide("add", R"(,"concurrency":1)");
  Client light{world};
  Client other{world};
  for (int i = 1; i <= 3; ++i) caller.send(request("add", R"(["heavy"])", std::to_string(i)));
  light.send(request("add", R"(["light"])"));
  other.send(request("add", R"(["other"])"));
  std::string order;
  for (int i = 0; i < 9; ++i) {
    const std::string one = a.received();
    const char who = one[one.find('[') + 2];
    order += who;
    a.send(result_reply("1", id_of(one)));
    if (who == 'l') light.send(request("add", R"(["light"])"));
    if (who == 'o') other.send(request("add", R"(["other"])"));
  }
  EXPECT_EQ(order, "hhlohlolo");
}

TEST_F(Registering, who_has_the_most_waiting_makes_way_for_others_when_the_queue_is_full) {
  a.provide("add", R"(,"concurrency":1,"queue":4)");
  Client light{world};
  const std::string full = R"({"reason":"too many calls wait for the provider","origin":"local","delivered":"no",)"
                           R"("limit":"queue"})";
  for (int i = 1; i <= 6; ++i) caller.send(request("add", {}, std::to_string(i)));
  EXPECT_EQ(caller.received(), error_reply(-32005, "Limit exceeded", full, "6"));
  EXPECT_EQ(light.ask(request("add", {}, "1")), "");
  EXPECT_EQ(caller.received(), error_reply(-32005, "Limit exceeded", full, "5"));
  EXPECT_EQ(light.ask(request("add", {}, "2")), "");
  EXPECT_EQ(caller.received(), error_reply(-32005, "Limit exceeded", full, "4"));
  EXPECT_EQ(light.ask(request("add", {}, "3")), error_reply(-32005, "Limit exceeded", full, "3")) << "as many as any";
  EXPECT_EQ(caller.ask(request("add", {}, "7")), error_reply(-32005, "Limit exceeded", full, "7"));
}

TEST_F(Registering, who_is_free_takes_what_waits_for_another) {
  a.provide("add", R"(,"concurrency":1)");
  b.provide("add", R"(,"concurrency":1)");
  for (const std::string id : {"1", "2", "3", "4"}) caller.send(request("add", {}, id));
  a.send(result_reply("1", id_of(a.received())));
  const std::string third = a.received();
  a.send(result_reply("1", id_of(third)));
  const std::string fourth = a.received();
  EXPECT_NE(fourth, "");
  a.send(result_reply("1", id_of(fourth)));
  EXPECT_EQ(caller.received(), result_reply("1", "1") + "\n" + result_reply("1", "3") + "\n" + result_reply("1", "4"));
}

TEST_F(Registering, what_waits_for_a_provider_that_leaves_goes_to_another) {
  a.provide("add", R"(,"concurrency":1,"policy":"first")");
  b.provide("add");
  caller.send(request("add", {}, "1"));
  caller.send(request("add", "[2]", "2"));
  static_cast<void>(a.received());
  a.leave();
  EXPECT_EQ(caller.received(), provider_lost("maybe", "1"));
  EXPECT_EQ(b.received(), request("add", "[2]", "1"));
}

TEST_F(Registering, after_unregister_no_call_comes_and_those_at_work_are_answered) {
  a.provide("add", R"(,"concurrency":1)");
  caller.send(request("add", {}, "1"));
  caller.send(request("add", {}, "2"));
  EXPECT_EQ(a.received(), request("add", {}, "0"));
  EXPECT_EQ(a.ask(request("rpc.unregister", R"({"method":"add"})")), result_reply("1"));
  EXPECT_EQ(caller.received(), provider_lost("no", "2"));
  EXPECT_EQ(caller.ask(request("add", {}, "3")), error_reply(-32601, "Method not found", {}, "3"));
  a.send(result_reply("5", "0"));
  EXPECT_EQ(caller.received(), result_reply("5", "1"));
  EXPECT_EQ(a.received(), "");
  b.provide("add", R"(,"policy":"last")");
}

TEST_F(Registering, registering_again_replaces_the_terms) {
  a.provide("add", R"(,"concurrency":1)");
  caller.send(request("add", {}, "1"));
  caller.send(request("add", {}, "2"));
  EXPECT_EQ(a.received(), request("add", {}, "0"));
  a.send(request("rpc.register", R"({"method":"add","concurrency":2})"));
  EXPECT_EQ(a.received(), request("add", {}, "1") + "\n" + result_reply("1"));
}

TEST_F(Registering, who_looks_for_a_name_like_it_is_told) {
  a.provide("subtract");
  EXPECT_EQ(caller.ask(request("subtrct")), error_reply(-32601, "Method not found", R"({"did_you_mean":"subtract"})"));
}

TEST_F(Registering, who_provides_all_names_provides_none_of_ours) {
  a.provide(">");
  EXPECT_EQ(b.ask(request("rpc.ping")), result_reply("\"pong\""));
  EXPECT_EQ(b.ask(request("rpc.unregister", R"(["add"])")), result_reply("0"));
  EXPECT_EQ(b.ask(request("rpc.nothing")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(b.ask(request("$/nothing")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(a.received(), "");
}

}  // namespace
}  // namespace wirecall
