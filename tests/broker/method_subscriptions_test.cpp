// Subscriptions to methods that clients provide: ids are mapped both ways, events reach their caller alone and behind
// its answer, and whoever goes ends what the other side has.
#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/broker/world.hpp"
#include "tests/codec/msgpack.hpp"
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

TEST_F(MethodSubscriptions, HaveEventsThatNobodyElseHearsOfAsTopicsOrMethods) {
  provide(provider);
  EXPECT_EQ(other.ask(request("rpc.subscribe", R"({"topic":"*"})")), result_reply("true"));
  EXPECT_EQ(other.ask(request("rpc.subscribe", R"({"topic":"eth_subscription"})")), result_reply("true"));
  other.provide("eth_subscription");
  const std::string id = subscribe(caller, provider, R"("0x1")");
  static_cast<void>(other.received());
  provider.send(event(R"("0x1")", "1"));
  EXPECT_EQ(caller.received(), event(quoted(id), "1"));
  provider.send("[" + event(R"("0x1")", "2") + "]");
  EXPECT_EQ(caller.received(), event(quoted(id), "2"));
  EXPECT_EQ(caller.ask(unsubscribe(id)), result_reply("true", "9"));
  provider.send(event(R"("0x1")", "3"));
  provider.send(event(R"("0x9")", "4"));
  provider.send(notification("eth_subscription"));
  static_cast<void>(provider.received());
  subscribe(caller, provider, R"("0x2")");
  caller.leave();
  provider.send(event(R"("0x2")", "5"));
  static_cast<void>(provider.ask(request("rpc.unregister", R"(["eth_subscribe"])")));
  provider.send(event(R"("0x2")", "6"));
  EXPECT_EQ(other.received(), "");
  caller.connect();
  caller.send(event(R"("0x1")", "7"));
  EXPECT_NE(other.received(), "") << "of a connection that has declared nothing it is an event as any";
}

TEST_F(MethodSubscriptions, HaveEventsThatCameBeforeTheirAnswerBehindIt) {
  provide(provider);
  EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  const std::string call = asked(provider);
  provider.send(event(R"("0x1")", "1"));
  provider.send(event(R"("0x2")", quoted("of another")));
  provider.send(event(R"("0x1")", "2"));
  EXPECT_EQ(caller.received(), "");
  provider.send(result_reply(R"("0x1")", call));
  const std::string told = caller.received();
  const std::string id = id_of(told);
  EXPECT_EQ(told, result_reply(quoted(id)) + "\n" + event(quoted(id), "1") + "\n" + event(quoted(id), "2"));
  EXPECT_EQ(other.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  provider.send(result_reply(R"("0x2")", asked(provider)));
  EXPECT_EQ(other.received().find("another"), std::string::npos) << "nobody was waiting for that one any more";
}

TEST_F(MethodSubscriptions, AreEndedByWhoNamesTheirProviderAndNoOther) {
  EXPECT_NE(provider.ask(request("rpc.hello", R"({"name":"node"})")).find("result"), std::string::npos);
  provide(provider);
  const std::string id = subscribe(caller, provider, "1");
  const auto addressed = [&](std::string_view name) {
    std::string text = unsubscribe(id);
    text.pop_back();
    return text + R"(,"to":")" + std::string{name} + "\"}";
  };
  EXPECT_NE(caller.ask(addressed("nobody")).find("\"code\":-32001"), std::string::npos);
  EXPECT_EQ(provider.received(), "");
  EXPECT_EQ(caller.ask(addressed("node")), result_reply("true", "9"));
  EXPECT_EQ(provider.received(), told_to_end("1"));
}

TEST_F(MethodSubscriptions, DropEventsThatCameBeforeAnError) {
  provide(provider);
  EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  const std::string call = asked(provider);
  provider.send(event(R"("0x1")", "1"));
  provider.send(error_reply(-32602, "no such kind", {}, call));
  EXPECT_EQ(caller.received(), error_reply(-32602, "no such kind"));
  const std::string id = subscribe(caller, provider, R"("0x1")");
  EXPECT_EQ(caller.received(), "");
  provider.send(event(R"("0x1")", "2"));
  EXPECT_EQ(caller.received(), event(quoted(id), "2"));
}

TEST_F(MethodSubscriptions, KeepNoEventOfOneThatHasEndedForTheNextOfItsId) {
  provide(provider);
  const std::string first = subscribe(caller, provider, "3");
  EXPECT_EQ(other.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  const std::string call = asked(provider);
  EXPECT_NE(caller.ask(unsubscribe(first)).find(R"("result":true)"), std::string::npos);
  provider.send(event("3", "1"));
  provider.send(result_reply("true", R"("rpc.unsubscribe")"));
  provider.send(event("3", "2"));
  provider.send(result_reply("3", call));
  const std::string told = other.received();
  const std::string id = id_of(told);
  EXPECT_EQ(told, result_reply(quoted(id)) + "\n" + event(quoted(id), "2"));
}

TEST_F(MethodSubscriptions, KeepABoundedPartOfWhatComesBeforeTheirAnswer) {
  provide(provider);
  EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  const std::string call = asked(provider);
  const std::string value = quoted(std::string(30'000, 'x'));
  for (int i = 0; i < 5; ++i) provider.send(event(R"("0x1")", value));
  EXPECT_EQ(world.loop_context.stats.events_dropped, 3U);
  provider.send(result_reply(R"("0x1")", call));
  const std::string told = caller.received();
  EXPECT_GT(told.size(), 2 * value.size());
  EXPECT_LT(told.size(), 3 * value.size());
}

TEST_F(MethodSubscriptions, TellHowMuchTheyHaveLostBeforeTheirAnswer) {
  provide(provider);
  const auto lagged = [](int dropped) {
    return notification("rpc.lagged", R"({"topic":"eth_subscription","dropped":)" + std::to_string(dropped) + "}");
  };
  const auto last_line = [](const std::string& text) { return text.substr(text.rfind('\n') + 1); };
  EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  const std::string first = asked(provider);
  EXPECT_EQ(other.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  const std::string second = asked(provider);
  const std::string value = quoted(std::string(30'000, 'x'));
  for (int i = 0; i < 5; ++i) provider.send(event(R"("0x1")", value));
  for (int i = 0; i < 2; ++i) provider.send(event(R"("0x2")", value));
  provider.send(result_reply(R"("0x2")", second));
  const std::string told = other.received();
  EXPECT_EQ(told, result_reply(quoted(id_of(told))) + "\n" + lagged(2)) << "its own, and no other's";
  provider.send(result_reply(R"("0x1")", first));
  EXPECT_EQ(last_line(caller.received()), lagged(3));
  provider.send(event(R"("0x1")", "1"));
  EXPECT_EQ(caller.received().find("lagged"), std::string::npos) << "once";
}

TEST_F(MethodSubscriptions, ForgetWhatOthersOfTheirIdHaveLost) {
  provide(provider);
  EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  const std::string call = asked(provider);
  for (int i = 0; i < 3; ++i) provider.send(event(R"("0x1")", quoted(std::string(40'000, 'x'))));
  provider.send(error_reply(-32602, "no such kind", {}, call));
  static_cast<void>(caller.received());
  subscribe(caller, provider, R"("0x1")");
  EXPECT_EQ(caller.received(), "");
}

TEST_F(MethodSubscriptions, CountALossInBoundedMemory) {
  provide(provider);
  EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
  const std::string call = asked(provider);
  const std::string value = quoted(std::string(70'000, 'x'));
  for (int i = 0; i < 5000; ++i) provider.send(event(std::to_string(i), value));
  EXPECT_EQ(world.loop_context.stats.events_dropped, 5000U);
  provider.send(result_reply("4999", call));
  EXPECT_EQ(caller.received().find("lagged"), std::string::npos) << "beyond what is kept of them";
}

TEST_F(MethodSubscriptions, TakeNoOtherValueOfMessagePackForAnId) {
  provide(provider);
  const auto answer = [&](std::string_view result_hex) {
    EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
    provider.send_msgpack(packing::with(R"({"jsonrpc":"2.0","id":)" + asked(provider) + "}", "result", result_hex));
    return caller.received();
  };
  for (const bool is_tapped : {false, true}) {
    if (is_tapped) {
      EXPECT_EQ(other.ask(request("rpc.tap", R"(["nothing"])")), result_reply("true"));
    }
    EXPECT_NE(answer("d6 ff 00 00 00 01").find("malformed"), std::string::npos) << "a time";
    EXPECT_NE(answer("c4 01 61").find("malformed"), std::string::npos) << "bytes";
    EXPECT_NE(answer("c0").find("malformed"), std::string::npos);
    const std::string id = id_of(answer(is_tapped ? "07" : "a1 61"));
    const std::string own = is_tapped ? "7" : R"("a")";
    provider.send_msgpack(packing::msgpack_of(event(own, "1")));
    EXPECT_EQ(caller.received(), event(quoted(id), "1"));
    EXPECT_EQ(caller.ask(unsubscribe(id)), result_reply("true", "9"));
    EXPECT_EQ(provider.received(), told_to_end(own));
  }
}

TEST_F(MethodSubscriptions, OfMessagePackAreShownToWhoLooksOn) {
  provide(provider);
  EXPECT_EQ(other.ask(request("rpc.tap", R"(["eth_subscribe"])")), result_reply("true"));
  const auto shown = [&](std::string_view result_hex) {
    EXPECT_EQ(caller.ask(request("eth_subscribe", R"(["newHeads"])")), "");
    static_cast<void>(other.received());
    provider.send_msgpack(packing::with(R"({"jsonrpc":"2.0","id":)" + asked(provider) + "}", "result", result_hex));
    static_cast<void>(caller.received());
    return other.received();
  };
  EXPECT_NE(shown("a3 30 78 31").find(R"("result":"0x1")"), std::string::npos);
  EXPECT_NE(shown("c4 01 ff").find(R"("result":{"$bytes":"/w=="})"), std::string::npos);
  EXPECT_NE(shown("91 cb 7f f8 00 00 00 00 00 00").find(R"("bytes":10)"), std::string::npos);
}

TEST_F(MethodSubscriptions, AreEndedInSharesOfATurn) {
  constexpr int kMany = 2000;
  provide(provider);
  const auto subscribe_all = [&](std::string_view prefix) {
    for (int i = 0; i < kMany; ++i)
      subscribe(i % 2 == 0 ? caller : other, provider, quoted(std::string{prefix} + std::to_string(i)));
  };
  const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n') + (text.empty() ? 0 : 1); };
  const auto expect_shares = [&](Client& told) {
    const auto at_once = lines(told.received());
    EXPECT_LT(at_once, 256);
    std::ptrdiff_t all = at_once;
    for (int turn = 0; turn < kMany; ++turn) {
      world.scheduler.expire_one();
      const auto now = lines(told.received());
      EXPECT_LE(now, 256);
      all += now;
    }
    return all;
  };
  subscribe_all("a");
  provider.send(notification("rpc.unregister", R"({"methods":["eth_subscribe"]})"));
  provider.send(event(R"("a1999")", "1"));
  const std::string at_once = other.received();
  EXPECT_EQ(at_once.find(R"("result":1)"), std::string::npos)
      << "of a method that is gone, whether its turn has come or not";
  EXPECT_EQ(expect_shares(provider), kMany);
  EXPECT_EQ(lines(caller.received()) + lines(at_once) + lines(other.received()), kMany);
  provide(provider);
  subscribe_all("b");
  provider.leave();
  EXPECT_EQ(expect_shares(caller), kMany / 2);
  EXPECT_EQ(lines(other.received()), kMany / 2);
  provider.connect();
  provide(provider);
  subscribe_all("c");
  caller.leave();
  EXPECT_EQ(expect_shares(provider), kMany / 2);
  const std::string again = subscribe(other, provider, quoted("c0"));
  provider.send(event(R"("c0")", "1"));
  EXPECT_EQ(other.received(), event(quoted(again), "1"));
}

TEST_F(MethodSubscriptions, ThatAreBeingEndedMakeWayForOthersOfTheirIds) {
  constexpr int kMany = 300;
  provide(provider);
  for (int i = 0; i < kMany; ++i) subscribe(caller, provider, std::to_string(i));
  provider.send(notification("rpc.unregister", R"(["eth_subscribe"])"));
  static_cast<void>(provider.received());
  provide(provider);
  std::vector<std::string> ids;
  for (int i = 0; i < kMany; ++i) {
    ids.push_back(subscribe(other, provider, std::to_string(i)));
    EXPECT_EQ(provider.received(), "") << "an unsubscribe would end the one that has the id now";
  }
  while (world.scheduler.expire_one()) continue;
  for (int i = 0; i < kMany; ++i) {
    provider.send(event(std::to_string(i), "1"));
    EXPECT_EQ(other.received(), event(quoted(ids[static_cast<std::size_t>(i)]), "1"));
  }
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
  caller.sink->overfull = true;
  provider.send(event(R"("0x1")", "1"));
  provider.send(event(R"("0x1")", "2"));
  EXPECT_EQ(caller.received(), "");
  caller.sink->overfull = false;
  caller.dispatcher->on_writable();
  EXPECT_EQ(caller.received(), notification("rpc.lagged", R"({"topic":"eth_subscription","dropped":2})"));
  provider.send(event(R"("0x1")", "3"));
  EXPECT_EQ(caller.received(), event(quoted(id), "3"));
}

TEST_F(MethodSubscriptions, AreOneLineWhateverTheProviderSends) {
  provide(provider);
  caller.sink->lines = true;
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
  caller.sink->can = {};
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
