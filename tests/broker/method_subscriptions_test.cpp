// Subscriptions to methods that clients provide: ids are mapped both ways, events reach their caller alone and behind
// its answer, and whoever goes ends what the other side has.
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/broker/world.hpp"
#include "tests/rpc/peer.hpp"

namespace wirecall {
namespace {

using test::Client;
using test::error_reply;
using test::notification;
using test::request;
using test::result_reply;
using test::World;

constexpr std::string_view kDeclared =
    R"(,"subscription":{"unsubscribe":"eth_unsubscribe","notification":"eth_subscription"})";

class MethodSubscriptions : public testing::Test {
 protected:
  void provide(Client& client, std::string_view terms = kDeclared) {
    EXPECT_EQ(client.ask(request("rpc.register", R"({"method":"eth_subscribe")" + std::string{terms} + "}")),
              result_reply("1"));
  }
  // The id by which a provider has just been asked.
  static std::string asked(Client& provider) {
    const std::string text = provider.received();
    const std::string_view head = R"({"jsonrpc":"2.0","method":"eth_subscribe","params":["newHeads"],"id":)";
    EXPECT_EQ(text.substr(0, head.size()), head) << text;
    return text.substr(head.size(), text.size() - head.size() - 1);
  }
  // The id that the caller is told, where the provider says `own`.
  static std::string subscribe(Client& caller, Client& provider, std::string_view own) {
    EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
    provider.send(result_reply(own, asked(provider)));
    return id_of(caller.received());
  }
  static std::string id_of(std::string_view answer) {
    const std::string_view head = R"({"jsonrpc":"2.0","result":"0x)";
    EXPECT_EQ(answer.substr(0, head.size()), head) << answer;
    return std::string{answer.substr(head.size() - 2, 34)};
  }
  static std::string event(std::string_view id, std::string_view value) {
    return R"({"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":)" + std::string{id} +
           R"(,"result":)" + std::string{value} + "}}";
  }
  static std::string quoted(std::string_view id) { return '"' + std::string{id} + '"'; }
  static std::string unsubscribe(std::string_view id) {
    return request("eth_unsubscribe", "[" + quoted(id) + "]", "9");
  }
  static std::string told_to_end(std::string_view own) {
    return R"({"jsonrpc":"2.0","method":"eth_unsubscribe","params":[)" + std::string{own} +
           R"(],"id":"rpc.unsubscribe"})";
  }
  static std::string lost(std::string_view id) {
    return R"({"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":)" + quoted(id) +
           R"(,"error":{"code":-32001,"message":"Provider lost","data":{"reason":"the provider has gone",)"
           R"("origin":"local","delivered":"maybe"}}}})";
  }

  World world;
  Client provider{world};
  Client caller{world};
  Client other{world};
};

TEST_F(MethodSubscriptions, MapIdsBothWays) {
  provide(provider);
  const std::string id = subscribe(caller, provider, R"("0x1")");
  EXPECT_NE(id, "0x1");
  provider.send(event(R"("0x1")", R"({"number":1})"));
  EXPECT_EQ(caller.received(), event(quoted(id), R"({"number":1})"));
  EXPECT_EQ(other.received(), "");
  EXPECT_EQ(caller.ask(unsubscribe(id)), result_reply("true", "9"));
  EXPECT_EQ(provider.received(), told_to_end(R"("0x1")"));
  provider.send(R"({"jsonrpc":"2.0","result":true,"id":"rpc.unsubscribe"})");
  EXPECT_EQ(provider.dropped, 0U) << "nothing strange about that response";
  provider.send(event(R"("0x1")", "2"));
  EXPECT_EQ(caller.received(), "");
  EXPECT_EQ(caller.ask(unsubscribe(id)), result_reply("false", "9"));
}

TEST_F(MethodSubscriptions, TakeNumbersForProvidersIds) {
  provide(provider);
  const std::string id = subscribe(caller, provider, "7");
  provider.send(event("7", "[1]"));
  EXPECT_EQ(caller.received(), event(quoted(id), "[1]"));
  provider.send(event(R"("7")", "[2]"));
  EXPECT_EQ(caller.received(), "") << "another id";
}

TEST_F(MethodSubscriptions, OfTwoProvidersAndCallersNeverMeet) {
  Client second{world};
  provide(provider);
  provide(second);
  const std::string of_first = subscribe(caller, provider, R"("0x1")");
  const std::string of_second = subscribe(other, second, R"("0x1")");
  EXPECT_NE(of_first, of_second);
  second.send(event(R"("0x1")", "2"));
  EXPECT_EQ(caller.received(), "");
  EXPECT_EQ(other.received(), event(quoted(of_second), "2"));
  EXPECT_EQ(caller.ask(unsubscribe(of_second)), result_reply("false", "9")) << "another's";
  EXPECT_EQ(second.received(), "");
  caller.send(event(quoted(of_second), "3"));
  EXPECT_EQ(other.received(), "") << "nobody forges another's event";
  provider.send(event(quoted(of_second), "3"));
  EXPECT_EQ(other.received() + caller.received(), "");
}

TEST_F(MethodSubscriptions, EndAtTheProviderWhenTheirCallerLeaves) {
  provide(provider);
  subscribe(caller, provider, R"("0x1")");
  subscribe(caller, provider, R"("0x2")");
  subscribe(other, provider, R"("0x3")");
  caller.leave();
  const std::string told = provider.received();
  EXPECT_NE(told.find(told_to_end(R"("0x1")")), std::string::npos);
  EXPECT_NE(told.find(told_to_end(R"("0x2")")), std::string::npos);
  EXPECT_EQ(told.find(R"("0x3")"), std::string::npos);
  other.dispatcher->peer_ended();
  EXPECT_EQ(provider.received(), told_to_end(R"("0x3")")) << "and when it ends its side";
}

TEST_F(MethodSubscriptions, TellTheirCallersWhenTheProviderLeaves) {
  provide(provider);
  const std::string id = subscribe(caller, provider, R"("0x1")");
  provider.leave();
  EXPECT_EQ(caller.received(), lost(id));
  EXPECT_EQ(caller.ask(unsubscribe(id)).find("Method not found") != std::string::npos, true) << "nobody provides it";
}

TEST_F(MethodSubscriptions, EndWhenTheirMethodIsUnregistered) {
  provide(provider);
  const std::string id = subscribe(caller, provider, R"("0x1")");
  EXPECT_EQ(provider.ask(request("rpc.unregister", R"(["eth_subscribe"])")),
            told_to_end(R"("0x1")") + "\n" + result_reply("1"));
  EXPECT_EQ(caller.received(), lost(id));
  EXPECT_EQ(caller.ask(unsubscribe(id)), error_reply(-32601, "Method not found", {}, "9"));
}

TEST_F(MethodSubscriptions, ThatNobodyWaitsForAnyMoreEndAtTheProvider) {
  provide(provider);
  EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  const std::string call = asked(provider);
  EXPECT_NE(caller.ask(request("rpc.cancel", "[1]", "2")).find("-32800"), std::string::npos);
  EXPECT_EQ(provider.received(), notification("$/cancelRequest", R"({"id":)" + call + "}"));
  provider.send(result_reply(R"("0x1")", call));
  EXPECT_EQ(provider.received(), told_to_end(R"("0x1")"));
  EXPECT_EQ(caller.received(), "");
  EXPECT_EQ(other.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  const std::string second = asked(provider);
  other.leave();
  static_cast<void>(provider.received());
  provider.send(result_reply(R"("0x2")", second));
  EXPECT_EQ(provider.received(), told_to_end(R"("0x2")"));
}

TEST_F(MethodSubscriptions, AreRefusedByTheirProvider) {
  provide(provider);
  EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  provider.send(error_reply(-32602, "no such kind", {}, asked(provider)));
  EXPECT_EQ(caller.received(), error_reply(-32602, "no such kind"));
  EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  provider.send(result_reply("null", asked(provider)));
  EXPECT_NE(caller.received().find("malformed"), std::string::npos) << "no id";
  subscribe(caller, provider, R"("0x1")");
  EXPECT_EQ(other.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  provider.send(result_reply(R"("0x1")", asked(provider)));
  EXPECT_NE(other.received().find("the provider has given the id of a subscription that is live"), std::string::npos);
  EXPECT_EQ(provider.received(), "") << "an unsubscribe would end the one that is live";
}

TEST_F(MethodSubscriptions, OfABatchSendTheirEventsBehindIt) {
  provide(provider);
  provider.provide("wait");
  EXPECT_EQ(caller.ask("[" + request("eth_subscribe", R"(["newHeads"])", "1") + "," + request("wait", "[]", "2") + "]"),
            "");
  const std::string both = provider.received();
  const std::string first = both.substr(0, both.find('\n'));
  const std::string second = both.substr(both.find('\n') + 1);
  const auto id_in = [](std::string_view text) {
    const std::size_t at = text.find(R"("id":)") + 5;
    return std::string{text.substr(at, text.size() - at - 1)};
  };
  provider.send(result_reply(R"("0x1")", id_in(first)));
  provider.send(event(R"("0x1")", "1"));
  EXPECT_EQ(caller.received(), "");
  provider.send(result_reply("5", id_in(second)));
  const std::string all = caller.received();
  const std::string id = id_of(std::string_view{all}.substr(1));
  EXPECT_EQ(all, "[" + result_reply(quoted(id), "1") + "," + result_reply("5", "2") + "]\n" + event(quoted(id), "1"));
}

TEST_F(MethodSubscriptions, OfASlowCallerLoseEventsAndSaySo) {
  provide(provider);
  const std::string id = subscribe(caller, provider, R"("0x1")");
  caller.outlet->overfull = true;
  provider.send(event(R"("0x1")", "1"));
  provider.send(event(R"("0x1")", "2"));
  EXPECT_EQ(caller.received(), "");
  caller.outlet->overfull = false;
  caller.dispatcher->room();
  EXPECT_EQ(caller.received(), notification("rpc.lagged", R"({"topic":"eth_subscription","dropped":2})"));
  provider.send(event(R"("0x1")", "3"));
  EXPECT_EQ(caller.received(), event(quoted(id), "3"));
}

TEST_F(MethodSubscriptions, AreOneLineWhateverTheProviderSends) {
  provide(provider);
  caller.outlet->lines = true;
  const std::string id = subscribe(caller, provider, R"("0x1")");
  provider.send(
      "{\"jsonrpc\":\"2.0\",\n\"method\":\"eth_subscription\",\"params\":{\n\"result\":[\n1],\n"
      "\"subscription\":\"\\u0030x1\"\n}}");
  EXPECT_EQ(caller.received(), R"({"jsonrpc":"2.0","method":"eth_subscription","params":{ "result":[ 1], )"
                               R"("subscription":)" +
                                   quoted(id) + " }}");
  provider.send(R"({"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","subscription":"y"}})");
  provider.send(R"({"jsonrpc":"2.0","method":"eth_subscription","params":["0x1",1]})");
  provider.send(R"({"jsonrpc":"2.0","method":"another","params":{"subscription":"0x1","result":1}})");
  EXPECT_EQ(caller.received(), "");
}

TEST_F(MethodSubscriptions, NeedAConnectionAndAnId) {
  provide(provider);
  caller.outlet->is_connected = false;
  EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")),
            error_reply(-32600, "Invalid Request", R"({"reason":"needs_connection"})"));
  EXPECT_EQ(other.ask(notification("eth_subscribe", R"(["newHeads"])")), "");
  EXPECT_EQ(other.ask(request("rpc.call_all", R"({"method":"eth_subscribe"})")),
            error_reply(-32602, "Invalid params",
                        R"({"reason":"a subscription has one provider: call its method by itself"})"));
  EXPECT_EQ(provider.received(), "");
}

TEST_F(MethodSubscriptions, AreBoundedInNumber) {
  World small{[] {
    Limits limits;
    limits.subscriptions = 1;
    return limits;
  }()};
  Client source{small};
  Client reader{small};
  provide(source);
  EXPECT_EQ(reader.ask(request("eth_subscribe", R"(["newHeads"])", "1")), "");
  const std::string first = asked(source);
  EXPECT_EQ(reader.ask(request("eth_subscribe", R"(["newHeads"])", "2")), "");
  const std::string second = asked(source);
  source.send(result_reply(R"("0x1")", first));
  static_cast<void>(id_of(reader.received()));
  source.send(result_reply(R"("0x2")", second));
  EXPECT_NE(reader.received().find(R"("limit":"subscriptions")"), std::string::npos);
  EXPECT_EQ(source.received(), told_to_end(R"("0x2")"));
  EXPECT_NE(reader.ask(request("eth_subscribe", R"(["newHeads"])", "3")).find(R"("limit":"subscriptions")"),
            std::string::npos);
  EXPECT_EQ(source.received(), "");
}

TEST_F(MethodSubscriptions, AreDeclaredAlikeByAll) {
  provide(provider);
  const auto registering = [&](std::string_view params) { return other.ask(request("rpc.register", params)); };
  EXPECT_NE(registering(R"({"method":"eth_subscribe"})").find("-32007"), std::string::npos);
  EXPECT_NE(registering(R"({"method":"eth_unsubscribe"})").find("-32007"), std::string::npos);
  EXPECT_NE(
      registering(R"({"method":"eth_subscribe","subscription":{"unsubscribe":"x","notification":"y"}})").find("-32007"),
      std::string::npos);
  EXPECT_NE(registering(R"({"method":"a","subscription":{"unsubscribe":"a","notification":"y"}})").find("-32602"),
            std::string::npos);
  EXPECT_NE(registering(R"({"method":"a.>","subscription":{"unsubscribe":"b","notification":"y"}})").find("-32602"),
            std::string::npos);
  EXPECT_NE(registering(R"({"method":"a","subscription":{"unsubscribe":"rpc.b","notification":"y"}})").find("-32602"),
            std::string::npos);
  EXPECT_NE(registering(R"({"method":"a","subscription":{"unsubscribe":"b"}})").find("-32602"), std::string::npos);
  EXPECT_NE(other.ask(request("rpc.discover"))
                .find(R"("x-subscription":{"unsubscribe":"eth_unsubscribe","notification":"eth_subscription"})"),
            std::string::npos);
}

}  // namespace
}  // namespace wirecall
