// Notifications that others than a call's handler send: they follow the call's answer, or go with its error; and what
// is bounded and refused of them.
#include <chrono>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::internal_error;
using test::notification;
using test::request;
using test::result_reply;

std::string event(std::string_view params = "[1]") {
  return R"({"jsonrpc":"2.0","method":"event","params":)" + std::string{params} + R"(,"hops":1})";
}

Task<void> tell(Context context, int n) {
  Caller{context}.notify("event", n);
  co_return;
}

Task<void> tell_later(Context context, std::chrono::nanoseconds after) {
  co_await sleep_for(context, after);
  Caller{context}.notify("event", 1);
}

class HeldNotifications : public testing::Test {
 protected:
  HeldNotifications() {
    registry.method("subscribe", [this](Context context, bool fails) -> Task<std::string> {
      tasks.start(tell(context, 1), {}, [](const TaskResult<void>&) {});
      co_await sleep_for(context, 1ms);
      if (fails) throw Error{1, "no"};
      co_return "0x1";
    });
    registry.method("at_once", [this](Context context) -> Task<int> {
      tasks.start(tell(context, 1), {}, [](const TaskResult<void>&) {});
      co_return 7;
    });
  }

  Registry registry;
  TaskScope tasks;
};

TEST_F(HeldNotifications, FollowTheAnswer) {
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(request("at_once")), result_reply("7") + "\n" + event());
  EXPECT_EQ(peer.ask(request("subscribe", "[false]")), "");
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), result_reply("\"0x1\"") + "\n" + event());
}

TEST_F(HeldNotifications, GoWithAnError) {
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(request("subscribe", "[true]")), "");
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), test::error_reply(1, "no"));
}

TEST_F(HeldNotifications, GoWithACancelledCall) {
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(request("subscribe", "[false]")), "");
  EXPECT_EQ(peer.ask(notification("$/cancelRequest", "[1]")), test::cancelled());
  peer.advance(1s);
  EXPECT_EQ(peer.received(), "");
}

TEST_F(HeldNotifications, OfABatchFollowTheWholeOfIt) {
  test::Peer peer{registry};
  const std::string batch = "[" + request("at_once", {}, "1") + "," + request("subscribe", "[true]", "2") + "," +
                            request("subscribe", "[false]", "3") + "]";
  EXPECT_EQ(peer.ask(batch), "");
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), "[" + result_reply("7", "1") + "," + test::error_reply(1, "no", {}, "2") + "," +
                                 result_reply("\"0x1\"", "3") + "]\n" + event() + "\n" + event());
  EXPECT_EQ(peer.ask("[" + request("at_once") + "]"), "[" + result_reply("7") + "]\n" + event());
}

TEST_F(HeldNotifications, OfANotificationFollowItsHandlersEnd) {
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(notification("subscribe", "[false]")), "");
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), event());
}

TEST_F(HeldNotifications, AreNotThoseOfTheHandlerNorOfWhatItAwaits) {
  registry.method("awaits", [](Context context) -> Task<void> {
    co_await tell(context, 1);
    co_await when_all(tell(context, 2), tell_later(context, 1ms));
    Caller{context}.notify("event", 3);
  });
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(request("awaits")), event() + "\n" + event("[2]"));
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), event() + "\n" + event("[3]") + "\n" + result_reply("null"));
}

TEST_F(HeldNotifications, AreThoseFromOutsideAnyTask) {
  std::optional<Context> seen;
  registry.method("waits", [&](Context context) -> Task<void> {
    seen = context;
    co_await sleep_for(context, 1ms);
  });
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(request("waits")), "");
  Caller{*seen}.notify("event", 1);
  EXPECT_EQ(peer.received(), "");
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), result_reply("null") + "\n" + event());
  Caller{*seen}.notify("event", 1);
  EXPECT_EQ(peer.received(), event()) << "answered";
}

TEST_F(HeldNotifications, AreBoundedInBytesOfACallAndOfAConnection) {
  std::vector<Context> seen;
  registry.method("waits", [&](Context context) -> Task<void> {
    seen.push_back(context);
    co_await sleep_for(context, 1ms);
  });
  Limits limits;
  limits.soft_output = 4096;
  limits.hard_output = 6144;
  test::Peer peer{registry, limits};
  EXPECT_EQ(peer.ask(request("waits", {}, "1")) + peer.ask(request("waits", {}, "2")), "");
  const auto fill = [](const Context& context) {
    int held = 0;
    try {
      for (; held < 1000; ++held) Caller{context}.notify("event", std::string(1000, 'x'));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), static_cast<int>(ErrorCode::limit_exceeded));
      return std::to_string(held) + " " + error.data();
    }
    return std::string{};
  };
  const std::string because =
      R"({"reason":"too many notifications wait for the call to be answered","origin":"local","delivered":"no",)";
  EXPECT_EQ(fill(seen[0]), "3 " + because + R"("limit":"soft_output"})");
  EXPECT_EQ(fill(seen[1]), "2 " + because + R"("limit":"hard_output"})");
  peer.advance(1ms);
  EXPECT_EQ(peer.sink.messages.size(), 7U) << "two answers, and what was held";
  static_cast<void>(peer.received());
  EXPECT_EQ(peer.ask(request("waits", {}, "3")), "");
  EXPECT_EQ(fill(seen[2]), "3 " + because + R"("limit":"soft_output"})") << "nothing is held any more";
}

TEST_F(HeldNotifications, AreRefusedWhereNobodyCanBeTold) {
  std::vector<Context> seen;
  const auto waits = [&](Context context) -> Task<void> {
    seen.push_back(context);
    co_await sleep_for(context, 1ms);
    throw Error{1, "no"};
  };
  registry.method("waits", waits);
  const auto why = [](const Context& context) {
    EXPECT_FALSE(Caller{context}.can_notify());
    try {
      Caller{context}.notify("event", 1);
    } catch (const Error& error) {
      return error.code();
    }
    return 0;
  };
  {
    test::Peer peer{registry};
    EXPECT_EQ(peer.ask(request("waits")), "");
    EXPECT_TRUE(Caller{seen[0]}.can_notify());
    peer.advance(1ms);
    EXPECT_EQ(peer.received(), test::error_reply(1, "no"));
    EXPECT_EQ(why(seen[0]), -32001) << "after an error";
    EXPECT_EQ(peer.ask(request("waits")), "");
    EXPECT_TRUE(Caller{seen[1]}.can_notify());
    peer.dispatcher.abandon();
    EXPECT_EQ(why(seen[1]), -32001) << "the connection has gone";
  }
  test::Peer by_http{registry};
  by_http.sink.can = {};
  EXPECT_EQ(by_http.ask(request("waits")), "");
  EXPECT_EQ(why(seen[2]), -32001) << "no connection";
  by_http.dispatcher.abandon();
}

}  // namespace
}  // namespace wirecall
