// Methods declared by Registry::subscription: what subscribing answers, what follows it, and in which ways it ends.
#include <chrono>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::error_reply;
using test::notification;
using test::request;
using test::result_reply;

struct Tick {
  int number;
};

class Subscriptions : public testing::Test {
 protected:
  Subscriptions() {
    registry.subscription(
        {.subscribe = "eth_subscribe", .unsubscribe = "eth_unsubscribe", .notification = "eth_subscription"},
        [this](Context context, std::string kind) { return events(std::move(context), kind); }, {"kind"});
    registry.subscription({.subscribe = "ticks", .unsubscribe = "no_ticks", .notification = "tick"},
                          [](Context context) -> Stream<Tick> {
                            for (int i = 0;; ++i) {
                              co_await sleep_for(context, 1ms);
                              co_yield Tick{i};
                            }
                          });
  }
  Stream<int> events(Context context, std::string kind) {
    ++running;
    const struct End {
      int& count;
      ~End() { --count; }
    } end{running};
    if (kind == "unknown") throw Error{-32602, "no such kind"};
    if (kind == "none") co_return;
    if (kind == "first") co_yield 0;
    for (int i = 1;; ++i) {
      co_await sleep_for(context, 1ms);
      if (kind == "fails") throw Error{7, "lost it", R"({ "at": 1 })"};
      if (kind == "flood") {
        for (int j = 0; j < 10; ++j) co_yield j;
      }
      co_yield i;
    }
  }
  // The id in an answer.
  static std::string id_of(std::string_view answer) {
    const std::string_view head = R"({"jsonrpc":"2.0","result":"0x)";
    EXPECT_EQ(answer.substr(0, head.size()), head) << answer;
    return std::string{answer.substr(head.size() - 2, 34)};
  }
  static std::string event(std::string_view id, std::string_view value) {
    return R"({"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":")" + std::string{id} +
           R"(","result":)" + std::string{value} + "}}";
  }
  static std::string subscribe(std::string_view kind, std::string_view id = "1") {
    return request("eth_subscribe", R"([")" + std::string{kind} + R"("])", id);
  }
  static std::string unsubscribe(std::string_view id, std::string_view request_id = "9") {
    return request("eth_unsubscribe", R"([")" + std::string{id} + R"("])", request_id);
  }

  int running = 0;
  Registry registry;
};

TEST_F(Subscriptions, AreAnsweredWithAnIdBeforeTheirFirstEvent) {
  test::Peer peer{registry};
  const std::string all = peer.ask(subscribe("first"));
  const std::string id = id_of(all);
  EXPECT_EQ(all, result_reply('"' + id + '"') + "\n" + event(id, "0"));
  peer.advance(2ms);
  EXPECT_EQ(peer.received(), event(id, "1") + "\n" + event(id, "2"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U) << "a subscription is no call that waits";
  EXPECT_TRUE(peer.dispatcher.idle_exempt());
}

TEST_F(Subscriptions, EndByUnsubscribing) {
  test::Peer peer{registry};
  const std::string id = id_of(peer.ask(subscribe("blocks")));
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), event(id, "1"));
  EXPECT_EQ(peer.ask(unsubscribe(id)), result_reply("true", "9"));
  EXPECT_EQ(running, 0);
  EXPECT_FALSE(peer.dispatcher.idle_exempt());
  peer.advance(1s);
  EXPECT_EQ(peer.received(), "");
  EXPECT_EQ(peer.ask(unsubscribe(id)), result_reply("false", "9")) << "once only";
  EXPECT_EQ(peer.scheduler.running(), 0U);
}

TEST_F(Subscriptions, EndByTheirOwnMethodAndConnectionAlone) {
  test::Peer peer{registry};
  test::Peer other{registry};
  const std::string id = id_of(peer.ask(subscribe("blocks")));
  EXPECT_EQ(other.ask(unsubscribe(id)), result_reply("false", "9"));
  EXPECT_EQ(peer.ask(request("no_ticks", R"([")" + id + R"("])")), result_reply("false"));
  EXPECT_EQ(running, 1);
  EXPECT_EQ(peer.ask(request("eth_unsubscribe", R"({"subscription":")" + id + R"("})")), result_reply("true"));
  EXPECT_EQ(peer.ask(request("eth_unsubscribe", "[1]")),
            test::invalid_params(R"({"loc":["subscription"],"expected":"string","got":"1"})"));
}

TEST_F(Subscriptions, AreRefusedByWhatTheStreamThrowsFirst) {
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(subscribe("unknown")), error_reply(-32602, "no such kind"));
  EXPECT_EQ(peer.ask(request("eth_subscribe", "[1]")),
            test::invalid_params(R"({"loc":["kind"],"expected":"string","got":"1"})"));
  EXPECT_FALSE(peer.dispatcher.idle_exempt());
  EXPECT_EQ(running, 0);
}

TEST_F(Subscriptions, TellWhatTheStreamThrowsLater) {
  test::Peer peer{registry};
  const std::string id = id_of(peer.ask(subscribe("fails")));
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), R"({"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":")" + id +
                                 R"(","error":{"code":7,"message":"lost it","data":{"at":1}}}})");
  EXPECT_FALSE(peer.dispatcher.idle_exempt());
  EXPECT_EQ(peer.ask(unsubscribe(id)), result_reply("false", "9"));
}

TEST_F(Subscriptions, MayEndByThemselves) {
  test::Peer peer{registry};
  const std::string id = id_of(peer.ask(subscribe("none")));
  EXPECT_FALSE(peer.dispatcher.idle_exempt());
  EXPECT_EQ(peer.ask(unsubscribe(id)), result_reply("false", "9"));
}

TEST_F(Subscriptions, EndWithTheirConnection) {
  {
    test::Peer peer{registry};
    static_cast<void>(peer.ask(subscribe("blocks")));
    static_cast<void>(peer.ask(subscribe("first")));
    EXPECT_EQ(running, 2);
    peer.dispatcher.abandon();
    EXPECT_EQ(running, 0);
    EXPECT_EQ(peer.scheduler.running(), 0U);
  }
  test::Peer peer{registry};
  static_cast<void>(peer.ask(subscribe("blocks")));
  peer.dispatcher.peer_ended();
  EXPECT_EQ(running, 0) << "and with its half";
}

TEST_F(Subscriptions, OfABatchBeginWhenItHasBeenAnswered) {
  registry.method("wait", [](Context context) -> Task<int> {
    co_await sleep_for(context, 5ms);
    co_return 5;
  });
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask("[" + subscribe("first", "1") + "," + request("wait", {}, "2") + "]"), "");
  peer.advance(4ms);
  EXPECT_EQ(peer.received(), "");
  EXPECT_EQ(running, 1) << "it waits for its answer to be sent";
  peer.advance(1ms);
  const std::string all = peer.received();
  const std::string id = id_of(std::string_view{all}.substr(1));
  EXPECT_EQ(all, "[" + result_reply('"' + id + '"', "1") + "," + result_reply("5", "2") + "]\n" + event(id, "0"));
}

TEST_F(Subscriptions, WaitForRoom) {
  test::Peer peer{registry};
  const std::string id = id_of(peer.ask(subscribe("flood")));
  peer.sink.messages_max = 3;
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), event(id, "0") + "\n" + event(id, "1") + "\n" + event(id, "2"));
  peer.advance(1s);
  EXPECT_EQ(peer.received(), "") << "its stream stands still";
  peer.dispatcher.on_writable();
  EXPECT_EQ(peer.received(), event(id, "3") + "\n" + event(id, "4") + "\n" + event(id, "5"));
  EXPECT_EQ(peer.ask(unsubscribe(id)), result_reply("true", "9")) << "also while it waits";
  EXPECT_EQ(running, 0);
  peer.dispatcher.on_writable();
  EXPECT_EQ(peer.received(), "");
}

TEST_F(Subscriptions, AreBoundedInNumber) {
  Limits limits;
  limits.subscriptions = 2;
  test::Peer peer{registry, limits};
  const std::string id = id_of(peer.ask(subscribe("blocks")));
  static_cast<void>(peer.ask(request("ticks")));
  EXPECT_EQ(peer.ask(subscribe("blocks")),
            error_reply(-32005, "Limit exceeded",
                        R"({"reason":"too many subscriptions of this connection","origin":"local","delivered":"no",)"
                        R"("limit":"subscriptions"})"));
  EXPECT_EQ(peer.ask(unsubscribe(id)), result_reply("true", "9"));
  static_cast<void>(id_of(peer.ask(subscribe("blocks"))));
}

TEST_F(Subscriptions, NeedAConnectionAndAnId) {
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(notification("eth_subscribe", R"(["blocks"])")), "");
  EXPECT_EQ(running, 0);
  peer.sink.can = {};
  EXPECT_EQ(peer.ask(subscribe("blocks")), error_reply(-32600, "Invalid Request", R"({"reason":"needs_connection"})"));
  EXPECT_EQ(running, 0);
}

TEST_F(Subscriptions, HaveIdsOfTheirOwn) {
  test::Peer peer{registry};
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.insert(id_of(peer.ask(subscribe("blocks"))));
  EXPECT_EQ(ids.size(), 100U);
}

TEST_F(Subscriptions, KeepWhatTheirHandlerSaysItselfInItsPlace) {
  registry.subscription({.subscribe = "s", .unsubscribe = "u", .notification = "n"},
                        [](Context context) -> Stream<int> {
                          Caller{context}.notify("hello");
                          co_yield 1;
                        });
  test::Peer peer{registry};
  const std::string all = peer.ask(request("s"));
  EXPECT_EQ(all.substr(0, all.find('\n')), R"({"jsonrpc":"2.0","method":"hello","hops":1})");
}

TEST_F(Subscriptions, AreDescribed) {
  test::Peer peer{registry};
  const std::string document = peer.ask(request("rpc.discover"));
  EXPECT_NE(
      document.find(R"({"name":"eth_subscribe","params":[{"name":"kind","schema":{"type":"string"},"required":true}],)"
                    R"("result":{"name":"result","schema":{"type":"string"}},)"
                    R"("x-subscription":{"unsubscribe":"eth_unsubscribe","notification":"eth_subscription",)"
                    R"("schema":{"type":"integer")"),
      std::string::npos)
      << document;
}

TEST(SubscriptionNames, AreChecked) {
  Registry registry;
  const auto stream = []() -> Stream<int> { co_yield 1; };
  EXPECT_THROW(registry.subscription({.subscribe = "a", .unsubscribe = "a", .notification = "n"}, stream),
               std::invalid_argument);
  EXPECT_THROW(registry.subscription({.subscribe = "a", .unsubscribe = "b", .notification = "rpc.n"}, stream),
               std::invalid_argument);
  EXPECT_THROW(registry.subscription({.subscribe = "a", .unsubscribe = "rpc.b", .notification = "n"}, stream),
               std::invalid_argument);
  EXPECT_EQ(registry.find("a"), nullptr);
  registry.method("taken", [] { return 1; });
  EXPECT_THROW(registry.subscription({.subscribe = "a", .unsubscribe = "taken", .notification = "n"}, stream), Error);
  EXPECT_THROW(registry.subscription({.subscribe = "taken", .unsubscribe = "b", .notification = "n"}, stream), Error);
  registry.subscription({.subscribe = "a", .unsubscribe = "end", .notification = "n"}, stream);
  registry.subscription({.subscribe = "b", .unsubscribe = "end", .notification = "n"}, stream);
  EXPECT_NE(registry.find("end"), nullptr);
}

}  // namespace
}  // namespace wirecall
