// Each capability of a sink, alone and left out: every use asks for the one that it means.
#include <gtest/gtest.h>
#include <string>

#include "tests/rpc/peer.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/stream.hpp"

namespace wirecall::test {
namespace {

using rpc::PeerCapabilities;

Stream<int> two() {
  co_yield 1;
  co_yield 2;
}

Task<int> ask_back(Context context) { co_return co_await Caller{context}.call<int>("mine"); }

Registry methods() {
  Registry registry;
  registry.method("two", two);
  registry.method("ask_back", ask_back);
  registry.subscription({.subscribe = "begin", .unsubscribe = "end", .notification = "news"}, two);
  return registry;
}

class Capabilities : public testing::Test {
 protected:
  void only(PeerCapabilities can) { peer.sink.can = can; }

  [[nodiscard]] bool sends_items() {
    const std::string reply = peer.ask(R"({"jsonrpc":"2.0","method":"two","stream":9,"id":1})");
    const bool sent = reply.find("rpc.item") != reply.npos;
    EXPECT_NE(sent, reply == result_reply("[1,2]")) << reply;
    return sent;
  }
  [[nodiscard]] bool registers() {
    const std::string reply = peer.ask(request("rpc.hello"));
    const bool refused = reply == error_reply(-32600, "Invalid Request", R"({"reason":"needs_connection"})");
    EXPECT_NE(refused, reply.find(R"("server":"wirecall")") != reply.npos) << reply;
    return !refused;
  }
  [[nodiscard]] bool subscribes() {
    const std::string reply = peer.ask(request("begin"));
    const bool refused = reply == error_reply(-32600, "Invalid Request", R"({"reason":"needs_connection"})");
    EXPECT_NE(refused, reply.find(R"("result":"0x)") != reply.npos) << reply;
    return !refused;
  }
  [[nodiscard]] bool is_called_back() {
    const std::string reply = peer.ask(request("ask_back"));
    const bool called = reply.find(R"("method":"mine")") != reply.npos;
    EXPECT_NE(called, reply.find("the caller cannot be called") != reply.npos) << reply;
    return called;
  }

  const Registry registry = methods();
  Peer peer{registry};
};

TEST_F(Capabilities, NoneIsAnAnswerToEachMessageAndNoMore) {
  only({});
  EXPECT_FALSE(sends_items() || registers() || subscribes() || is_called_back());
}

TEST_F(Capabilities, AllIsAConnection) {
  EXPECT_TRUE(sends_items() && registers() && subscribes() && is_called_back());
}

TEST_F(Capabilities, ItemsNeedNoConnection) {
  only({.items = true});
  EXPECT_TRUE(sends_items());
  EXPECT_FALSE(registers() || subscribes() || is_called_back());
}

TEST_F(Capabilities, EventsBehindAnAnswerNeedNoRegistration) {
  only({.events = true});
  EXPECT_TRUE(subscribes());
  EXPECT_FALSE(sends_items() || registers() || is_called_back());
}

TEST_F(Capabilities, WhoAnswersRequestsNeedNotReadEvents) {
  only({.calls_back = true});
  EXPECT_TRUE(is_called_back());
  EXPECT_FALSE(sends_items() || registers() || subscribes());
}

TEST_F(Capabilities, WhoRegistersAloneIsNotCalled) {
  only({.registration = true});
  EXPECT_TRUE(registers());
  EXPECT_FALSE(sends_items() || subscribes() || is_called_back());
}

TEST_F(Capabilities, WhoMayRegisterLearnsWhatWasUndelivered) {
  only({.registration = true});
  static_cast<void>(peer.ask(request("nobody")));
  EXPECT_EQ(peer.ask(request("rpc.undelivered")), result_reply("1"));
  only({.items = true, .events = true, .calls_back = true, .direct_reply = true});
  static_cast<void>(peer.ask(request("nobody")));
  only({.registration = true});
  EXPECT_EQ(peer.ask(request("rpc.undelivered")), result_reply("0"));
}

}  // namespace
}  // namespace wirecall::test
