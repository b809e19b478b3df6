// The methods of wirecall's own: cancelling, ping and hello, and that nobody but them is found under their names.
#include "rpc/reserved.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/rpc/instruction_count.hpp"
#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using test::cancelled;
using test::error_reply;
using test::invalid_params;
using test::notification;
using test::Peer;
using test::request;
using test::result_reply;

class Reserved : public testing::Test {
 protected:
  Reserved() {
    registry.method("wait", [](Context context) -> Task<void> { co_await sleep_for(context, std::chrono::hours{1}); });
    registry.method("await", [this]() -> Task<int> { co_return co_await completion; });
    registry.method("keep", [] {});
    registry.use([this](Call& call, const Next& next) {
      if (call.method().name() != "keep") return next(call);
      kept.push_back(call.detach());
    });
  }

  Registry registry;
  Completion<int> completion;
  std::vector<ReplySink> kept;
};

TEST_F(Reserved, CancelAnswersTheCallAndThenSaysHowMany) {
  for (const std::string_view cancel : {R"({"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":1},"id":2})",
                                        R"({"jsonrpc":"2.0","method":"rpc.cancel","params":[1],"id":2})",
                                        R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1},"id":2})",
                                        R"({"jsonrpc":"2.0","method":"rpc.c\u0061ncel","params":[7,1,"x"],"id":2})"}) {
    Peer peer{registry};
    peer.send(request("keep"));
    EXPECT_EQ(peer.ask(cancel), cancelled() + '\n' + result_reply("1", "2"));
    EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
    EXPECT_EQ(peer.scheduler.running(), 0U);
  }
}

TEST_F(Reserved, UndeliveredCountsUnknownMethodsAndNotWhatHandlersAnswer) {
  registry.method("proxy", []() -> int { throw Error{ErrorCode::method_not_found}; });
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("rpc.undelivered")), result_reply("0"));
  EXPECT_EQ(peer.ask(request("proxy")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(peer.ask(request("nothing")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(peer.ask(notification("nothing")), "");
  EXPECT_EQ(peer.ask(request("rpc.nothing")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(peer.ask(request("rpc.undelivered")), result_reply("2"));
  EXPECT_EQ(peer.ask(request("rpc.undelivered")), result_reply("0"));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(peer.ask(request("nothing")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(peer.ask(request("rpc.undelivered")), result_reply("255"));
}

TEST_F(Reserved, CancelAsANotificationIsSilent) {
  Peer peer{registry};
  peer.send(request("wait"));
  EXPECT_EQ(peer.ask(notification("$/cancelRequest", R"({"id":1})")), cancelled());
  EXPECT_EQ(peer.ask(notification("$/cancelRequest", R"({"id":1})")), "");
  EXPECT_EQ(peer.ask(notification("rpc.cancel", R"({"id":{}})")), "");
  EXPECT_EQ(peer.ask(notification("rpc.cancel")), "");
}

TEST_F(Reserved, CancelFindsIdsByTheirBytes) {
  Peer peer{registry};
  for (const std::string_view id : {"1", "1.0", "\"1\"", "\"\\u0061\"", "null", "18446744073709551616"})
    peer.send(request("wait", {}, id));
  for (const std::string_view id : {"1e0", "\"a\"", "18446744073709551615", "\"\""}) {
    EXPECT_EQ(peer.ask(request("rpc.cancel", "[" + std::string{id} + "]", "0")), result_reply("0", "0")) << id;
  }
  for (const std::string_view id : {"18446744073709551616", "null", "\"\\u0061\"", "\"1\"", "1.0", "1"})
    EXPECT_EQ(peer.ask(notification("rpc.cancel", "[" + std::string{id} + "]")), cancelled(id));
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

TEST_F(Reserved, CancelEndsEveryCallOfThatId) {
  Peer peer{registry};
  peer.send(request("wait"));
  peer.send(request("keep"));
  peer.send(request("wait", {}, "2"));
  peer.send(notification("wait"));
  EXPECT_EQ(peer.ask(request("rpc.cancel", "[1,1]", "3")),
            cancelled() + '\n' + cancelled() + '\n' + result_reply("2", "3"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 2U);
}

TEST_F(Reserved, CancelComesBeforeTheNextMessageAndTooLateForAnAnsweredOne) {
  Peer peer{registry};
  peer.send(request("await"));
  completion.set(5);
  EXPECT_EQ(peer.received(), result_reply("5"));
  EXPECT_EQ(peer.ask(request("rpc.cancel", "[1]", "2")), result_reply("0", "2"));
}

TEST_F(Reserved, LateResultOfACancelledCallIsDropped) {
  Peer peer{registry};
  peer.send(request("keep"));
  EXPECT_EQ(peer.ask(notification("rpc.cancel", "[1]")), cancelled());
  EXPECT_FALSE(kept.at(0).wanted());
  EXPECT_EQ(kept.at(0).begin_result(), nullptr);
  kept.at(0).end_result();
  kept.at(0).error(Error{"late"});
  kept.clear();
  EXPECT_EQ(peer.received(), "");
}

TEST_F(Reserved, HandlerThatIsCancelledIsAskedToStopOnceItsCallIsAnswered) {
  std::string seen;
  Peer* at = nullptr;
  registry.method("stubborn", [&](Context context) -> Task<int> {
    try {
      co_await completion;
    } catch (const Cancelled&) {
      EXPECT_TRUE(context.cancelled());
      seen = at->received();
    }
    co_return 6;
  });
  Peer peer{registry};
  at = &peer;
  peer.send(request("stubborn"));
  EXPECT_EQ(peer.ask(notification("rpc.cancel", "[1]")), "") << "and what it still says is dropped";
  EXPECT_EQ(seen, cancelled());
}

TEST_F(Reserved, CancelAnswersElementsOfBatchesInTheirPlaces) {
  Peer peer{registry};
  peer.send("[" + request("wait", {}, "1") + "," + request("keep", {}, "2") + "]");
  EXPECT_EQ(peer.ask(notification("rpc.cancel", "[2]")), "");
  EXPECT_EQ(peer.ask(notification("rpc.cancel", "[1]")), "[" + cancelled("1") + "," + cancelled("2") + "]");
  // Within one batch as well.
  EXPECT_EQ(peer.ask("[" + request("wait", {}, "1") + "," + request("rpc.cancel", "[1]", "2") + "]"),
            "[" + cancelled("1") + "," + result_reply("1", "2") + "]");
  EXPECT_EQ(peer.ask("[" + request("wait", {}, "1") + "," + notification("rpc.cancel", "[1]") + "]"),
            "[" + cancelled("1") + "]");
}

TEST_F(Reserved, CancelKnowsOnlyItsOwnConnection) {
  Peer one{registry};
  Peer other{registry};
  one.send(request("wait"));
  EXPECT_EQ(other.ask(request("rpc.cancel", "[1]", "2")), result_reply("0", "2"));
  EXPECT_EQ(one.dispatcher.in_flight(), 1U);
}

TEST_F(Reserved, CancelOfWhatIsNoIdIsRefused) {
  Peer peer{registry};
  peer.send(request("wait"));
  EXPECT_EQ(peer.ask(request("rpc.cancel")),
            invalid_params(R"({"loc":["id"],"expected":"string, number or null","got":"nothing"})"));
  EXPECT_EQ(peer.ask(request("rpc.cancel", R"({"ID":1})")),
            invalid_params(R"({"loc":["id"],"expected":"string, number or null","got":"nothing"})"));
  EXPECT_EQ(peer.ask(request("rpc.cancel", R"([1,[1]])")),
            invalid_params(R"({"loc":["id"],"expected":"string, number or null","got":"[1]"})"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 1U) << "all or nothing";
}

TEST_F(Reserved, CancelOfMoreIdsThanMayBeInFlightIsRefused) {
  Limits limits;
  limits.in_flight = 3;
  Peer peer{registry, limits};
  peer.send(request("wait"));
  EXPECT_EQ(peer.ask(request("rpc.cancel", "[2,3,4,1]", "9")),
            invalid_params(R"({"reason":"more ids than a connection may have calls in flight","limit":"in_flight",)"
                           R"("most":3})",
                           "9"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 1U);
  EXPECT_EQ(peer.ask(request("rpc.cancel", "[2,3,1]", "9")), cancelled() + "\n" + result_reply("1", "9"));
}

TEST_F(Reserved, ANameTwiceAndAPositionTooManyAreRefusedAsOfAnyMethod) {
  Peer peer{registry};
  peer.send(request("wait"));
  EXPECT_EQ(peer.ask(request("rpc.cancel", R"({"id":1,"id":2})")),
            invalid_params(R"({"loc":["id"],"expected":"one value","got":"2"})"));
  EXPECT_EQ(peer.ask(request("$/cancelRequest", R"({"id":2,"i\u0064":1})")),
            invalid_params(R"({"loc":["id"],"expected":"one value","got":"1"})"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 1U);
  EXPECT_EQ(peer.ask(request("rpc.credit", "[1,2,3]")),
            invalid_params(R"({"loc":[2],"expected":"nothing","got":"3"})"));
  EXPECT_EQ(peer.ask(request("rpc.hello", R"(["n","t",null,[]])")),
            invalid_params(R"({"loc":[3],"expected":"nothing"})"));
  for (const std::string_view ping : {"rpc.ping", "keepAlive"}) {
    EXPECT_EQ(peer.ask(request(ping, "[1,2]")), invalid_params(R"({"loc":[0],"expected":"nothing","got":"1"})"));
    for (const std::string_view none : {"[]", "{}", "null", R"({"newer":1})"})
      EXPECT_EQ(peer.ask(request(ping, none)), result_reply("\"pong\""));
  }
}

TEST_F(Reserved, CallsThatAreCancelledCountUntilTheirHandlersHaveEnded) {
  Limits limits;
  limits.in_flight = 2;
  Peer peer{registry, limits};
  for (const char* id : {"1", "2"}) {
    peer.send(request("keep", {}, id));
    EXPECT_EQ(peer.ask(notification("rpc.cancel", "[" + std::string{id} + "]")), cancelled(id));
  }
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  EXPECT_NE(peer.ask(request("keep", {}, "3")).find("-32005"), std::string::npos);
  kept.pop_back();
  EXPECT_EQ(peer.ask(request("keep", {}, "4")), "");
  EXPECT_EQ(peer.dispatcher.in_flight(), 1U);
}

// A scan over all calls would cost 64 times as much.
TEST_F(Reserved, CancelAmongManyCallsCostsLittleMoreThanAmongFew) {
  if (!test::kCountsInstructions) GTEST_SKIP() << "instructions cannot be counted here";
  const auto instructions = [this](int calls) {
    Peer peer{registry};
    for (int id = 0; id < calls; ++id) peer.send(request("keep", {}, std::to_string(1'000'000 + id)));
    peer.send(notification("rpc.cancel", "[1000001]"));
    const std::string cancel = notification("rpc.cancel", "[" + std::to_string(1'000'000 + calls / 2) + "]");
    const std::uint64_t count = test::count_instructions([&] { peer.send(cancel); });
    EXPECT_EQ(peer.received(), cancelled("1000001") + '\n' + cancelled(std::to_string(1'000'000 + calls / 2)));
    kept.clear();
    return count;
  };
  const std::uint64_t few = instructions(64);
  const std::uint64_t many = instructions(4096);
  EXPECT_LT(many, 2 * few);
}

TEST_F(Reserved, PingIsAnsweredPong) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("rpc.ping")), result_reply("\"pong\""));
  EXPECT_EQ(peer.ask(notification("rpc.ping")), "");
  EXPECT_EQ(peer.ask(notification("keepAlive")), "");
  peer.dispatcher.drain();
  EXPECT_EQ(peer.ask(request("rpc.ping")), result_reply("\"pong\""));
  EXPECT_EQ(registry.handle("[" + request("rpc.ping") + "," + notification("keepAlive") + "]"),
            "[" + result_reply("\"pong\"") + "]");
}

TEST_F(Reserved, KeepAliveMayBeAMethodOfTheUsers) {
  registry.method("keepAlive", [] { return 5; });
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("keepAlive")), result_reply("5"));
}

TEST_F(Reserved, HelloSaysWhatTheServerIs) {
  Limits limits;
  limits.batch = 7;
  limits.keepalive_timeout_ms = 1234;
  Peer peer{registry, limits};
  const std::string reply = peer.ask(request("rpc.hello", R"({"name":"a\"b","token":"x","newer":[1]})"));
  EXPECT_TRUE(reply.starts_with(R"({"jsonrpc":"2.0","result":{"server":"wirecall","version":")")) << reply;
  EXPECT_NE(reply.find(R"(,"name":"a\"b","limits":{"max_message_size":16777216,"batch":7,"depth":256,)"
                       R"("in_flight":4096,"hops":16,"call_timeout_ms":30000},"keepalive":1234,"features":[)"),
            std::string::npos)
      << reply;
  EXPECT_TRUE(reply.ends_with(R"("features":["cancel","timeout_ms","hops","stream","input","progress"]},"id":1})"))
      << reply;
  EXPECT_EQ(peer.ask(request("rpc.hello")).find("\"name\""), std::string::npos);
  EXPECT_EQ(peer.ask(request("rpc.hello", R"(["n"])")).find("error"), std::string::npos);
}

TEST_F(Reserved, WhoHasSaidHelloIsToldOnceWhenTheServerDrains) {
  const std::string draining = R"({"jsonrpc":"2.0","method":"rpc.draining"})";
  for (const std::string& hello : {request("rpc.hello"), notification("rpc.hello"), "[" + request("rpc.hello") + "]"}) {
    Peer peer{registry};
    peer.send(request("wait"));
    static_cast<void>(peer.ask(hello));
    peer.dispatcher.drain();
    EXPECT_EQ(peer.received(), draining);
    peer.dispatcher.drain();
    EXPECT_EQ(peer.received(), "");
  }
  for (const std::string& other : {request("rpc.ping"), request("rpc.hello", R"({"resume":"s"})"), std::string{"{"}}) {
    Peer peer{registry};
    static_cast<void>(peer.ask(other));
    peer.dispatcher.drain();
    EXPECT_EQ(peer.received(), "");
  }
}

TEST_F(Reserved, HelloKnowsNoSessionToResume) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("rpc.hello", R"({"resume":"s"})")),
            error_reply(-32004, "Unauthenticated",
                        R"({"reason":"there is no such session","origin":"local","delivered":"no"})"));
  EXPECT_EQ(peer.ask(request("rpc.hello", R"({"name":1})")), invalid_params(R"({"loc":["name"],"expected":"string"})"));
}

TEST_F(Reserved, HelloNeedsAConnection) {
  const std::string refused = error_reply(-32600, "Invalid Request", R"({"reason":"needs_connection"})");
  EXPECT_EQ(registry.handle(request("rpc.hello")), refused);
  Peer peer{registry};
  peer.sink.can = {};
  EXPECT_EQ(peer.ask(request("rpc.hello")), refused);
}

TEST_F(Reserved, RegisteringAndSubscribingNeedAConnectionAndAreUnknownOnOne) {
  Peer peer{registry};
  for (const std::string_view name : {"rpc.register", "rpc.unregister", "rpc.subscribe", "rpc.unsubscribe"}) {
    peer.sink.can = {};
    EXPECT_EQ(peer.ask(request(name, R"({"method":"m","topic":"t"})")),
              error_reply(-32600, "Invalid Request", R"({"reason":"needs_connection"})"));
    EXPECT_EQ(peer.ask(notification(name)), "");
    peer.sink.can = rpc::PeerCapabilities::all();
    EXPECT_EQ(peer.ask(request(name)), error_reply(-32601, "Method not found"));
    EXPECT_EQ(peer.ask(notification(name)), "");
  }
}

TEST_F(Reserved, OtherNamesOfOursAreUnknownMethods) {
  Peer peer{registry};
  for (const std::string_view name : {"rpc.nothing", "rpc.", "$/progress", "rpc.Ping", "rpc.pin"})
    EXPECT_EQ(peer.ask(request(name)), error_reply(-32601, "Method not found")) << name;
}

}  // namespace
}  // namespace wirecall
