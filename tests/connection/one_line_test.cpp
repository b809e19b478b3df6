// A peer that reads lines gets one message a line, whoever has written what is in it: a provider that writes its JSON
// for people, or one that means to have its reader take a part of its answer for an answer of somebody else's.
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/codec/msgpack.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

// What would be an answer to the call 7, did it stand on a line of its own; where it is `@`, the test says what is
// between tokens.
constexpr std::string_view kForged = R"([1,@{"jsonrpc":"2.0","result":"forged","id":7}@])";
constexpr std::string_view kPretty = "{@  \"list\": [@    1,@    2@  ],@  \"text\": \"a\\nb\"@}";

std::string with_breaks(std::string_view text, std::string_view breaks) {
  std::string out;
  for (const char c : text) c == '@' ? out += breaks : out += c;
  return out;
}
std::string request(std::string_view method, std::string_view params, int id, std::string_view more = {}) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} +
         std::string{more} + R"(,"id":)" + std::to_string(id) + "}";
}
std::string notification(std::string_view method, std::string_view params) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + "}";
}
std::string id_of(const std::string& request) { return to_json(from_json<Value>(request).value().at("id")); }
std::string reply_to(const std::string& request, std::string_view member, std::string_view json) {
  return R"({"jsonrpc":"2.0",")" + std::string{member} + "\":" + std::string{json} + R"(,"id":)" + id_of(request) + "}";
}

struct Breaks {
  std::string_view text;
  std::string_view payload;
};

// RawPeer::line sees to it that a line is one message; here it is also the one that is due.
class OneLine : public testing::TestWithParam<Breaks> {
 protected:
  void SetUp() override {
    provider.send(request("rpc.register", R"(["work"])", 1) + "\n");
    EXPECT_EQ(provider.line(), R"({"jsonrpc":"2.0","result":1,"id":1})");
  }
  // What the same value is with blanks.
  [[nodiscard]] static std::string flat() {
    return with_breaks(GetParam().payload, std::string(GetParam().text.size(), ' '));
  }
  [[nodiscard]] static std::string broken() { return with_breaks(GetParam().payload, GetParam().text); }
  // A message that is `text` when it is one line.
  static void expect_message(const std::string& line, std::string_view text) {
    EXPECT_EQ(from_json<Value>(line).value(), from_json<Value>(text).value()) << line;
  }
  // Nothing came besides what was expected.
  static void expect_nothing_more(RawPeer& peer) {
    peer.send(request("rpc.ping", "[]", 7) + "\n");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":"pong","id":7})");
  }
  static void subscribe(RawPeer& peer, std::string_view params) {
    peer.send(request("rpc.subscribe", params, 2) + "\n");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":true,"id":2})");
  }

  Broker broker;
  Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  RunningServer running{broker};
  RawPeer provider{endpoint};
  RawPeer caller{endpoint};
};

TEST_P(OneLine, a_result_and_an_error_are_for_their_caller) {
  for (const std::string_view member : {"result", "error"}) {
    const std::string error = R"({"code":1,"message":"m","data":)";
    const bool fails = member == "error";
    caller.send(request("work", "[]", 1) + "\n");
    provider.send(reply_to(provider.line(), member, fails ? error + broken() + "}" : broken()) + "\n");
    expect_message(caller.line(), reply_to(R"({"id":1})", member, fails ? error + flat() + "}" : flat()));
    expect_nothing_more(caller);
  }
}

TEST_P(OneLine, params_are_for_their_provider) {
  caller.send(request("work", broken(), 1) + "\n");
  const std::string asked = provider.line();
  expect_message(asked, request("work", flat(), std::stoi(id_of(asked))));
  expect_nothing_more(provider);
}

TEST_P(OneLine, the_results_of_a_batch_are_one_array) {
  caller.send("[" + request("work", "[]", 1) + "," + request("rpc.ping", "[]", 2) + "," + request("work", "[]", 3) +
              "]\n");
  const std::string first = provider.line();
  const std::string second = provider.line();
  provider.send(reply_to(second, "error", R"({"code":1,"message":"m","data":)" + broken() + "}") + "\n");
  provider.send(reply_to(first, "result", broken()) + "\n");
  expect_message(caller.line(), R"([{"jsonrpc":"2.0","result":)" + flat() + R"(,"id":1},)" +
                                    R"({"jsonrpc":"2.0","result":"pong","id":2},)" +
                                    R"({"jsonrpc":"2.0","error":{"code":1,"message":"m","data":)" + flat() +
                                    R"(},"id":3}])");
  expect_nothing_more(caller);
}

TEST_P(OneLine, the_outcomes_of_call_all_are_one_array) {
  RawPeer other{endpoint};
  other.send(request("rpc.register", R"(["work"])", 1) + "\n");
  EXPECT_EQ(other.line(), R"({"jsonrpc":"2.0","result":1,"id":1})");
  caller.send(request("rpc.call_all", R"({"method":"work","params":)" + broken() + "}", 1) + "\n");
  provider.send(reply_to(provider.line(), "result", broken()) + "\n");
  other.send(reply_to(other.line(), "error", R"({"code":1,"message":"m","data":)" + broken() + "}") + "\n");
  const Value outcomes = from_json<Value>(caller.line()).value().at("result");
  ASSERT_EQ(outcomes.as_array().size(), 2U);
  EXPECT_EQ(outcomes.as_array()[0].at("result"), from_json<Value>(flat()).value());
  EXPECT_EQ(outcomes.as_array()[1].at("error").at("data"), from_json<Value>(flat()).value());
  expect_nothing_more(caller);
}

TEST_P(OneLine, items_and_progress_are_a_notification_each) {
  caller.send(request("work", "[]", 1, R"(,"stream":9)") + "\n");
  const std::string streamed = provider.line();
  provider.send(notification("rpc.item", R"({"id":)" + id_of(streamed) + R"(,"seq":0,"value":)" + broken() + "}") +
                "\n");
  expect_message(caller.line(), notification("rpc.item", R"({"id":1,"seq":0,"value":)" + flat() + "}"));
  provider.send(reply_to(streamed, "result", broken()) + "\n");
  expect_message(caller.line(), reply_to(R"({"id":1})", "result", flat()));

  caller.send(request("work", R"({"partialResultToken":"t"})", 3) + "\n");
  const std::string told = provider.line();
  const Value token = from_json<Value>(told).value().at("params").at("partialResultToken");
  provider.send(notification("$/progress", R"({"token":)" + to_json(token) + R"(,"value":)" + broken() + "}") + "\n");
  expect_message(caller.line(), notification("$/progress", R"({"token":"t","value":)" + flat() + "}"));
  provider.send(reply_to(told, "result", "1") + "\n");
  expect_message(caller.line(), reply_to(R"({"id":3})", "result", "1"));
  expect_nothing_more(caller);
}

TEST_P(OneLine, events_are_a_notification_each_be_they_retained_or_not) {
  subscribe(caller, R"(["news"])");
  provider.send(notification("news", broken()) + "\n");
  expect_message(caller.line(), notification("news", flat()));
  provider.send(request("rpc.publish", R"({"topic":"news","retain":true,"params":)" + broken() + "}", 3) + "\n");
  EXPECT_EQ(provider.line(), R"({"jsonrpc":"2.0","result":1,"id":3})");
  expect_message(caller.line(), notification("news", flat()));
  expect_nothing_more(caller);
  RawPeer late{endpoint};
  subscribe(late, R"({"topic":"news","last":true})");
  expect_message(late.line(), notification("news", flat()));
  expect_nothing_more(late);
}

TEST_P(OneLine, who_taps_reads_a_notification_for_each_sight) {
  RawPeer tap{endpoint};
  tap.send(request("rpc.tap", R"(["work"])", 1) + "\n");
  EXPECT_EQ(tap.line(), R"({"jsonrpc":"2.0","result":true,"id":1})");
  caller.send(request("work", broken(), 1) + "\n");
  provider.send(reply_to(provider.line(), "result", broken()) + "\n");
  EXPECT_NE(caller.line(), "");
  caller.send(notification("work", broken()) + "\n");
  EXPECT_NE(provider.line(), "");
  for (const std::string_view kind : {"call", "reply", "event", "notification"}) {
    const Value sight = from_json<Value>(tap.line()).value();
    EXPECT_EQ(sight.at("method").as_string(), "rpc.tap");
    EXPECT_EQ(sight.at("params").at("kind").as_string(), kind);
  }
  expect_nothing_more(tap);
}

TEST_P(OneLine, what_a_provider_says_of_its_methods_is_within_the_description) {
  provider.send(request("rpc.register",
                        R"({"method":"described","params":[{"name":"a","schema":{"const":)" + broken() + "}}]}", 2) +
                "\n");
  EXPECT_EQ(provider.line(), R"({"jsonrpc":"2.0","result":1,"id":2})");
  caller.send(request("rpc.discover", "[]", 1) + "\n");
  const std::string document = caller.line();
  EXPECT_NE(document.find("\"described\""), std::string::npos) << document;
  expect_nothing_more(caller);
}

TEST_P(OneLine, server_sent_events_have_one_line_of_data) {
  RawPeer browser{endpoint};
  browser.send("GET /events?topic=news HTTP/1.1\r\nHost: localhost\r\n\r\n");
  while (!browser.line().starts_with("X-Accel")) {
  }
  EXPECT_EQ(browser.line(), "\r");
  EXPECT_EQ(browser.line(), "retry: 3000");
  EXPECT_TRUE(browser.line().starts_with("id: "));
  EXPECT_EQ(browser.line(), "");
  provider.send(notification("news", broken()) + "\n");
  EXPECT_EQ(browser.line(), "event: news");
  const std::string data = browser.line();
  ASSERT_TRUE(data.starts_with("data: ")) << data;
  expect_message(data.substr(6), notification("news", flat()));
  EXPECT_EQ(data.find('\r'), std::string::npos);
  EXPECT_EQ(browser.line(), "");
}

TEST_P(OneLine, what_comes_in_messagepack_is_a_message_as_well) {
  using packing::framed;
  using packing::msgpack_of;
  RawPeer binary{endpoint};
  binary.send(framed(msgpack_of(request("rpc.register", R"(["packs"])", 1))));
  const std::string registered = framed(msgpack_of(R"({"jsonrpc":"2.0","result":1,"id":1})"));
  EXPECT_EQ(binary.take(registered.size()), registered);
  caller.send(request("packs", "[]", 7) + "\n");
  const std::string asked = framed(msgpack_of(request("packs", "[]", 0)));
  EXPECT_EQ(binary.take(asked.size()), asked);
  const std::string text = to_json(broken());  // the breaks are in a string, which has none in JSON
  binary.send(framed(msgpack_of(R"({"jsonrpc":"2.0","result":)" + text + R"(,"id":0})")));
  EXPECT_EQ(caller.line(), R"({"jsonrpc":"2.0","result":)" + text + R"(,"id":7})");
  expect_nothing_more(caller);
}

TEST_P(OneLine, what_handlers_say_in_json_text_is_compact) {
  Server server;
  server.method("value", [](Value value) { return value; });
  server.method("fails", []() -> int { throw Error{1, "m", broken()}; });
  server.method("asks", [](Context context) -> Task<Value> {
    const detail::CallerRequest call{context, "back", "[" + broken() + "]"};
    detail::notify_caller(context, "told", "[" + broken() + "]", true);
    const Buffer answer = co_await call.answer();
    co_return Value::parse(answer.view()).value();
  });
  const Endpoint bound = server.listen("tcp://127.0.0.1:0");
  const RunningServer serving{server};
  RawPeer peer{bound};
  peer.send(request("value", "[" + broken() + "]", 1) + "\n");
  expect_message(peer.line(), reply_to(R"({"id":1})", "result", flat()));
  peer.send("[" + request("value", "[" + broken() + "]", 1) + "," + request("fails", "[]", 2) + "]\n");
  expect_message(peer.line(),
                 "[" + reply_to(R"({"id":1})", "result", flat()) + "," +
                     reply_to(R"({"id":2})", "error", R"({"code":1,"message":"m","data":)" + flat() + "}") + "]");
  peer.send(request("asks", "[]", 3) + "\n");
  const std::string back = peer.line();
  EXPECT_EQ(from_json<Value>(back).value().at("params"), from_json<Value>("[" + flat() + "]").value());
  EXPECT_EQ(from_json<Value>(peer.line()).value().at("method").as_string(), "told");
  peer.send(reply_to(back, "result", broken()) + "\n");
  expect_message(peer.line(), reply_to(R"({"id":3})", "result", flat()));
}

TEST_P(OneLine, a_client_sends_lines_too) {
  const ScriptedServer server{[](RawPeer peer) {
    const std::string asked = peer.line();
    expect_message(asked, request("take", "[" + flat() + "]", std::stoi(id_of(asked))));
    peer.send(reply_to(asked, "result", broken()) + "\n");
    expect_message(peer.line(), notification("told", "[" + flat() + "]"));
  }};
  Client client{server.uri()};
  ClientOptions options;
  const auto result = client.call_raw("take", "[" + broken() + "]");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(from_json<Value>(*result).value(), from_json<Value>(flat()).value());
  static_cast<void>(client.notify_raw("told", "[" + broken() + "]"));
}

INSTANTIATE_TEST_SUITE_P(Payloads, OneLine,
                         testing::Values(Breaks{"\n", kForged}, Breaks{"\r\n", kForged}, Breaks{"\r", kForged},
                                         Breaks{"\n", kPretty}, Breaks{"\r\n", kPretty}),
                         [](const auto& info) {
                           const Breaks& breaks = info.param;
                           const std::string name = breaks.text == "\n" ? "Lf" : breaks.text == "\r" ? "Cr" : "CrLf";
                           return name + (breaks.payload == kForged ? "Forged" : "Pretty");
                         });

}  // namespace
}  // namespace wirecall::net
