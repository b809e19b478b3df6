// `from`: never what a client says of itself; its name, where callers are disclosed.
#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::id_of;
using test::notification;
using test::request;
using test::result_reply;
using test::World;

void hello(Client& client, const std::string& name) {
  static_cast<void>(client.ask(request("rpc.hello", R"({"name":")" + name + "\"}")));
}

class Disclosed : public testing::TestWithParam<bool> {
 protected:
  /// The member as the broker writes it, where callers are disclosed.
  static std::string from(const std::string& name) { return GetParam() ? R"("from":")" + name + "\"," : std::string{}; }
  /// What the provider is sent, once answered.
  std::string asked(Client& caller, const std::string& text) {
    caller.send(text);
    const std::string got = provider.received();
    if (!got.empty() && id_of(got) != "null") provider.send(result_reply("1", id_of(got)));
    static_cast<void>(caller.received());
    return got;
  }

  World world{Limits{}, {.disclose_callers = GetParam()}};
  Client provider{world};
  Client ada{world};
  Client nobody{world};
};

TEST_P(Disclosed, is_the_name_of_the_caller_or_not_there) {
  provider.provide("add");
  hello(ada, "ada");
  const std::string call = asked(ada, R"({ "jsonrpc":"2.0","method":"add","params":[1.50],"id":1 })");
  EXPECT_EQ(call, "{" + from("ada") + R"( "jsonrpc":"2.0","method":"add","params":[1.50],"id":)" + id_of(call) + " }")
      << "and nothing else is changed";
  const std::string anonymous = asked(nobody, request("add"));
  EXPECT_EQ(anonymous.find("from"), std::string::npos) << "a caller without a name";
  const std::string batched = asked(ada, "[" + request("add") + "]");
  EXPECT_EQ(batched, "{" + from("ada") + request("add", {}, id_of(batched)).substr(1));
  hello(ada, "eve");
  EXPECT_NE(asked(ada, request("add")).find(GetParam() ? R"("from":"eve")" : "{"), std::string::npos);
}

TEST_P(Disclosed, is_never_what_a_client_says) {
  provider.provide("add");
  hello(ada, "ada");
  const std::string first = asked(ada, R"({"from":"root","jsonrpc":"2.0","method":"add","id":1})");
  EXPECT_EQ(first, "{" + from("ada") + R"("jsonrpc":"2.0","method":"add","id":)" + id_of(first) + "}");
  const std::string last = asked(ada, R"({"jsonrpc":"2.0","method":"add","id":1, "from" : {"a":"from"} })");
  const std::string set = GetParam() ? R"(, "from" : "ada" })" : "}";
  EXPECT_EQ(last, R"({"jsonrpc":"2.0","method":"add","id":)" + id_of(last) + set);
  const std::string escaped = asked(ada, R"({"jsonrpc":"2.0","fr\u006fm":null,"method":"add","id":1})");
  EXPECT_EQ(escaped.find("null"), std::string::npos) << escaped;
  EXPECT_EQ(escaped.find("\"ada\"") != std::string::npos, GetParam()) << escaped;
  const std::string anonymous = asked(nobody, R"({"jsonrpc":"2.0","method":"add","from":"ada","id":1})");
  EXPECT_EQ(anonymous, R"({"jsonrpc":"2.0","method":"add","id":)" + id_of(anonymous) + "}");
  EXPECT_NE(ada.ask(R"({"jsonrpc":"2.0","from":"a","method":"add","fr\u006fm":"b","id":1})").find("-32600"),
            std::string::npos);
}

TEST_P(Disclosed, goes_with_all_other_changes) {
  provider.provide("add");
  hello(ada, "ada");
  hello(provider, "w");
  const std::string call =
      asked(ada, R"({"jsonrpc":"2.0","to":"w","method":"add","timeout_ms":50,"stream":2,"hops":3,"id":"x"})");
  EXPECT_EQ(call, "{" + from("ada") + R"("jsonrpc":"2.0","method":"add","timeout_ms":50,"stream":2,"hops":3,"id":)" +
                      id_of(call) + "}");
}

TEST_P(Disclosed, is_said_of_calls_that_wait_or_are_made_again_as_well) {
  provider.provide("slow", R"(,"concurrency":1,"idempotent":true)");
  hello(ada, "ada");
  ada.send(request("slow", {}, "1"));
  ada.send(R"({"from":"root","jsonrpc":"2.0","method":"slow","id":2})");
  const std::string first = provider.received();
  provider.send(result_reply("1", id_of(first)));
  const std::string second = provider.received();
  EXPECT_EQ(second, "{" + from("ada") + R"("jsonrpc":"2.0","method":"slow","id":)" + id_of(second) + "}");
  Client other{world};
  other.provide("slow");
  provider.leave();
  const std::string again = other.received();
  EXPECT_EQ(again, "{" + from("ada") + R"("jsonrpc":"2.0","method":"slow","id":)" + id_of(again) + "}");
}

TEST_P(Disclosed, is_said_by_call_all) {
  provider.provide("add");
  hello(ada, "ada");
  ada.send(request("rpc.call_all", R"({"method":"add","params":{"from":"root"}})"));
  const std::string got = provider.received();
  EXPECT_EQ(got,
            "{" + from("ada") + R"("jsonrpc":"2.0","method":"add","params":{"from":"root"},"id":)" + id_of(got) + "}");
}

TEST_P(Disclosed, goes_with_notifications_to_providers_and_subscribers) {
  provider.provide("log");
  hello(ada, "ada");
  EXPECT_EQ(asked(ada, notification("log", "[1]")), "{" + from("ada") + notification("log", "[1]").substr(1));
  EXPECT_EQ(asked(ada, R"({"jsonrpc":"2.0","method":"log","from":7,"to":"x"})"), "") << "to nobody";
  EXPECT_EQ(asked(nobody, R"({"from":"ada","jsonrpc":"2.0","method":"log"})"), notification("log"));
  EXPECT_EQ(provider.ask(request("rpc.subscribe", R"(["log"])")), result_reply("true"));
  EXPECT_EQ(asked(ada, notification("log", "[1]")), "{" + from("ada") + notification("log", "[1]").substr(1)) << "once";
  EXPECT_EQ(asked(ada, request("rpc.publish", R"({"topic":"log"})")), notification("log"))
      << "the broker's own message";
}

TEST_P(Disclosed, a_name_is_written_as_JSON) {
  provider.provide("add");
  hello(ada, R"(a\"b\\c\n\u00e9)");
  const std::string call = asked(ada, request("add"));
  EXPECT_EQ(call, "{" + from("a\\\"b\\\\c\\n\u00e9") + request("add", {}, id_of(call)).substr(1));
}

INSTANTIATE_TEST_SUITE_P(Each, Disclosed, testing::Bool(),
                         [](const auto& info) { return info.param ? "disclosed" : "not_disclosed"; });

}  // namespace
}  // namespace wirecall
