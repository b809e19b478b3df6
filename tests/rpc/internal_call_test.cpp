// Methods that are called from inside the process: what a caller of ours may call, and in which ways such a call ends.
#include "rpc/internal_call.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "rpc/access.hpp"
#include "tests/base/virtual_scheduler.hpp"
#include "tests/rpc/peer.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/value.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class InternalCalls : public testing::Test {
 protected:
  InternalCalls() {
    registry.method("add", [](int a, int b) { return a + b; }, {"a", "b"});
    registry.method("erase", [this] { return ++erased; });
    registry.method("wait", [this](Context context) -> Task<int> {
      try {
        co_await sleep_for(context, 1h);
      } catch (const Cancelled&) {
        ++stopped;
        throw;
      }
      co_return 1;
    });
    registry.method("count", [](int to) -> Stream<int> {
      for (int i = 1; i <= to; ++i) co_yield i;
    });
  }

  void reload(std::vector<std::string> grants) {
    std::vector<Principal> principals(1);
    principals[0].name = "tool";
    principals[0].tokens = {"secret"};
    principals[0].call = std::move(grants);
    loop.services.authority = std::make_shared<rpc::Authority>(std::move(principals));
  }
  void call_as_tool() { caller.identify(loop.services.authority->find("secret"), {}); }
  [[nodiscard]] std::string ask(const rpc::InternalCall& call, std::string_view params = {}) {
    rpc::invoke(caller, call, params);
    return sink.take();
  }

  Registry registry;
  Limits limits;
  VirtualScheduler scheduler;
  RecordingSink sink;
  rpc::LoopContext loop{json_codec(), &scheduler};
  rpc::Dispatcher caller{registry, sink, limits, loop};
  int erased = 0;
  int stopped = 0;
};

TEST_F(InternalCalls, AreAnsweredIntoTheSinkUnderTheirId) {
  EXPECT_EQ(ask({.method = "add"}, "[1,2]"), result_reply("3"));
  EXPECT_EQ(ask({.method = "add", .id = R"("a")"}, R"({"a":1,"b":2})"), result_reply("3", R"("a")"));
  EXPECT_EQ(ask({.method = "add"}, to_json(Value::parse("[4,5]").value())), result_reply("9"));
  EXPECT_EQ(loop.stats.calls, 3U);
}

TEST_F(InternalCalls, MayNotCallWhatTheirPrincipalMayNot) {
  reload({"add"});
  call_as_tool();
  EXPECT_EQ(ask({.method = "add"}, "[1,2]"), result_reply("3"));
  EXPECT_EQ(ask({.method = "erase"}), error_reply(-32601, "Method not found"));
  EXPECT_EQ(erased, 0);
}

TEST_F(InternalCalls, OfNobodyAreRefusedWhereOneHasToSayWhoHeIs) {
  reload({"add"});
  EXPECT_NE(ask({.method = "add"}, "[1,2]").find("-32004"), std::string::npos);
}

TEST_F(InternalCalls, GoOnAfterAReloadAsThePrincipalOfThatName) {
  reload({"add"});
  call_as_tool();
  reload({"add"});
  EXPECT_EQ(ask({.method = "add"}, "[1,2]"), result_reply("3"));
  reload({"erase"});
  EXPECT_NE(ask({.method = "add"}, "[1,2]").find("-32004"), std::string::npos);
}

TEST_F(InternalCalls, PassMiddleware) {
  registry.use([](Call& call, Next) { call.error(Error{7, "not now"}); });
  EXPECT_EQ(ask({.method = "add"}, "[1,2]"), error_reply(7, "not now"));
}

TEST_F(InternalCalls, KeepTheLimits) {
  limits.in_flight = 1;
  limits.rate = 2;
  EXPECT_EQ(ask({.method = "wait"}), "");
  EXPECT_NE(ask({.method = "wait", .id = "2"}).find(R"("limit":"in_flight")"), std::string::npos);
  EXPECT_NE(ask({.method = "add", .id = "3"}, "[1,2]").find(R"("limit":"rate")"), std::string::npos);
  limits.max_message_size = 64;
  EXPECT_NE(ask({.method = "add"}, "[" + std::string(64, ' ') + "]").find("max_message_size"), std::string::npos);
}

TEST_F(InternalCalls, OfAStreamAreGatheredOrBringItemsForTheirCredit) {
  EXPECT_EQ(ask({.method = "count"}, "[3]"), result_reply("[1,2,3]"));
  EXPECT_EQ(ask({.method = "count", .credit = 9}, "[2]"),
            R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":1,"seq":0,"value":1}})"
            "\n"
            R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":1,"seq":1,"value":2}})"
            "\n" +
                result_reply("null"));
}

TEST_F(InternalCalls, EndWhenTheirTimeIsUp) {
  EXPECT_EQ(ask({.method = "wait", .timeout_ms = 20}), "");
  scheduler.advance(19ms);
  EXPECT_EQ(sink.take(), "");
  scheduler.advance(1ms);
  EXPECT_EQ(sink.take(), timed_out());
  EXPECT_EQ(stopped, 1);
}

TEST_F(InternalCalls, CanBeCancelled) {
  EXPECT_EQ(ask({.method = "wait"}), "");
  EXPECT_EQ(ask({.method = "wait", .id = "2"}), "");
  rpc::cancel(caller, "2");
  EXPECT_EQ(sink.take(), cancelled("2"));
  EXPECT_EQ(caller.in_flight(), 1U);
  caller.abandon();
  EXPECT_EQ(stopped, 2);
  EXPECT_EQ(sink.take(), "");
}

TEST_F(InternalCalls, TakeNothingButParamsFromTheParams) {
  for (const char* params : {"[1,2", "[1,2]}", R"([1,2],"to":"other")", R"([1,2],"timeout_ms":0)"})
    EXPECT_NE(ask({.method = "add"}, params).find("-32700"), std::string::npos) << params;
  EXPECT_NE(ask({.method = "add"}, R"([1,2],"id":2)").find("-32600"), std::string::npos);
}

}  // namespace
}  // namespace wirecall::test
