// Streams towards a handler: items in order and within the credit that it has given, ended by every way in which a call
// ends, and refused where there can be none.
#include <chrono>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/input_stream.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancelled;
using test::invalid_params;
using test::invalid_request;
using test::notification;
using test::Peer;
using test::request;
using test::result_reply;
using test::timed_out;

constexpr std::string_view kNeedsConnection = R"({"reason":"needs_connection"})";

std::string input_request(std::string_view method, std::string_view params = "[]", std::string_view id = "1",
                          std::string_view more = {}) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} +
         R"(,"input":true)" + std::string{more} + (id.empty() ? std::string{} : ",\"id\":" + std::string{id}) + "}";
}
std::string sent(int sequence, std::string_view value, std::string_view id = "1") {
  return notification("rpc.item", R"({"id":)" + std::string{id} + R"(,"seq":)" + std::to_string(sequence) +
                                      R"(,"value":)" + std::string{value} + "}");
}
std::string ended(int sequence, std::string_view id = "1") {
  return notification("rpc.item",
                      R"({"id":)" + std::string{id} + R"(,"seq":)" + std::to_string(sequence) + R"(,"end":true})");
}
std::string credit(int more, std::string_view id = "1") {
  return notification("rpc.credit", R"({"id":)" + std::string{id} + R"(,"n":)" + std::to_string(more) + "}");
}
std::string yielded(int sequence, std::string_view value) { return sent(sequence, value); }

class Input : public testing::Test {
 protected:
  Input() {
    registry.method("sum_all", [this](InputStream<int> in) -> Task<int> {
      struct Guard {
        int& left;
        ~Guard() { ++left; }
      } guard{left};
      int sum = 0;
      while (const std::optional<int> value = co_await in.next()) sum += *value;
      co_return sum;
    });
    registry.method("scaled",
                    [](Context, int factor, InputStream<double> in, int offset) -> Task<double> {
                      double sum = offset;
                      while (const auto value = co_await in.next()) sum += *value * factor;
                      co_return sum;
                    },
                    {"factor", "offset"});
    registry.method("running_sum", [](InputStream<int> in) -> Stream<int> {
      int sum = 0;
      while (const std::optional<int> value = co_await in.next()) co_yield sum += *value;
    });
    registry.method("first", [](InputStream<int> in) -> Task<std::optional<int>> { co_return co_await in.next(); });
    registry.method("join", [](InputStream<std::string_view> in) -> Task<std::string> {
      std::string all;
      while (const auto text = co_await in.next()) all += *text;
      co_return all;
    });
    registry.method("plain", [](int n) { return n; }, {"n"});
  }

  Registry registry;
  int left = 0;  // handlers of sum_all
};

TEST_F(Input, IsReadUntilItsEnd) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(input_request("sum_all")), credit(4));
  EXPECT_EQ(peer.ask(sent(0, "1")), credit(61)) << "now it is known how large the items are";
  EXPECT_EQ(peer.ask(sent(1, "41")), "");
  EXPECT_EQ(peer.ask(ended(2)), result_reply("42"));
  EXPECT_EQ(left, 1);
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  EXPECT_EQ(peer.dispatcher.held_bytes(), 0U);
  EXPECT_EQ(peer.scheduler.running(), 0U);
}

TEST_F(Input, StandsAnywhereAmongTheParametersAndIsNoParam) {
  Peer peer{registry};
  for (const std::string_view params : {"[2,10]", R"({"factor":2,"offset":10})"}) {
    peer.send(input_request("scaled", params));
    peer.send(sent(0, "1.5"));
    static_cast<void>(peer.received());
    EXPECT_EQ(peer.ask(ended(1)), result_reply("13")) << params;
  }
  EXPECT_EQ(peer.ask(input_request("scaled", "[1]")),
            invalid_params(R"({"loc":["offset"],"expected":"integer","got":"nothing"})"));
  EXPECT_EQ(registry.find("scaled")->params().size(), 2U);
}

TEST_F(Input, IsEmptyWithoutOne) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("sum_all")), result_reply("0"));
  EXPECT_EQ(peer.ask(R"({"jsonrpc":"2.0","method":"sum_all","input":false,"id":1})"), result_reply("0"));
  EXPECT_EQ(peer.ask(input_request("sum_all", "[]", {})), "") << "a notification has no id by which items name it";
  EXPECT_EQ(left, 3);
  EXPECT_EQ(registry.handle(request("sum_all")), result_reply("0"));
}

TEST_F(Input, IsIgnoredByWhatTakesNone) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(input_request("plain", "[5]")), result_reply("5"));
  EXPECT_EQ(peer.ask(sent(0, "1")), "");
}

TEST_F(Input, NeedsAConnectionAndAnAnswerOfItsOwn) {
  Peer peer{registry};
  const std::string refused = test::error_reply(-32600, "Invalid Request", kNeedsConnection);
  EXPECT_EQ(peer.ask("[" + input_request("sum_all") + "]"), "[" + refused + "]");
  EXPECT_EQ(registry.handle(input_request("sum_all")), refused);
  peer.sink.can = {};
  EXPECT_EQ(peer.ask(input_request("sum_all")), refused);
  EXPECT_EQ(left, 0);
}

TEST_F(Input, IsTrueOrFalse) {
  Peer peer{registry};
  for (const std::string_view wrong : {"1", "0", "null", "\"true\"", "[]", "{}"}) {
    EXPECT_EQ(peer.ask(R"({"jsonrpc":"2.0","method":"sum_all","input":)" + std::string{wrong} + R"(,"id":1})"),
              invalid_request("1"))
        << wrong;
  }
}

TEST_F(Input, CreditFollowsWhatIsReadHalfAWindowAtATime) {
  Peer peer{registry};
  peer.send(input_request("sum_all"));
  peer.send(sent(0, "0"));
  static_cast<void>(peer.received());
  std::string grants;
  for (int i = 1; i < 200; ++i) grants += peer.ask(sent(i, "1"));
  std::string expected;
  for (int i = 0; i < 6; ++i) expected += credit(32);
  EXPECT_EQ(grants, expected);
  EXPECT_EQ(peer.ask(ended(200)), result_reply("199"));
}

TEST_F(Input, LargeItemsGetLessCredit) {
  registry.method("lengths", [](InputStream<std::string> in) -> Task<int> {
    int bytes = 0;
    while (const auto text = co_await in.next()) bytes += static_cast<int>(text->size());
    co_return bytes;
  });
  Limits limits;
  limits.soft_output = 4096;
  Peer peer{registry, limits};
  EXPECT_EQ(peer.ask(input_request("lengths")), credit(4));
  EXPECT_EQ(peer.ask(sent(0, '"' + std::string(1000, 'x') + '"')), "") << "three of these may come as it is";
  EXPECT_EQ(peer.ask(sent(1, "\"\"")), credit(2));
}

TEST_F(Input, BeyondCreditEndsTheCall) {
  Completion<> wake;
  registry.method("stalls", [&wake](InputStream<int> in) -> Task<int> {
    static_cast<void>(co_await in.next());
    co_await wake;
    co_return 1;
  });
  Peer peer{registry};
  EXPECT_EQ(peer.ask(input_request("stalls")), credit(4));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(peer.ask(sent(i, "1")), "") << i;
  EXPECT_EQ(peer.ask(sent(4, "1")), invalid_request("1"));
  EXPECT_EQ(peer.ask(sent(5, "1")), "") << "of a call that has ended nothing is said";
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  EXPECT_EQ(peer.dispatcher.held_bytes(), 0U);
}

TEST_F(Input, BeforeAnyCreditEndsTheCall) {
  Completion<> wake;
  registry.method("waits", [&wake](InputStream<int> in) -> Task<int> {
    co_await wake;
    co_return *co_await in.next();
  });
  Peer peer{registry};
  EXPECT_EQ(peer.ask(input_request("waits")), "");
  EXPECT_EQ(peer.ask(sent(0, "1")), invalid_request("1"));
}

TEST_F(Input, OutOfOrderEndsTheCall) {
  for (const int sequence : {1, 7}) {
    Peer peer{registry};
    peer.send(input_request("sum_all"));
    static_cast<void>(peer.received());
    EXPECT_EQ(peer.ask(sent(sequence, "1")), invalid_request("1"));
  }
  Peer peer{registry};
  peer.send(input_request("sum_all"));
  peer.send(sent(0, "1"));
  static_cast<void>(peer.received());
  EXPECT_EQ(peer.ask(sent(0, "1")), invalid_request("1")) << "twice";
  peer.send(input_request("sum_all"));
  static_cast<void>(peer.received());
  EXPECT_EQ(peer.ask(ended(1)), invalid_request("1"));
  EXPECT_EQ(left, 4);
}

TEST_F(Input, AfterItsEndEndsTheCall) {
  Completion<> wake;
  registry.method("waits", [&wake](InputStream<int> in) -> Task<int> {
    while (co_await in.next()) {
    }
    co_await wake;
    co_return 1;
  });
  for (const std::string& more : {ended(1), sent(1, "1"), ended(0)}) {
    Peer peer{registry};
    peer.send(input_request("waits"));
    peer.send(ended(0));
    static_cast<void>(peer.received());
    EXPECT_EQ(peer.ask(more), invalid_request("1")) << more;
  }
}

TEST_F(Input, ThatIsNoItemEndsTheCall) {
  for (const std::string_view wrong :
       {R"({"id":1})", R"({"id":1,"seq":0})", R"({"id":1,"seq":0,"value":1,"end":true})", R"({"id":1,"value":1})",
        R"({"id":1,"seq":-1,"value":1})", R"({"id":1,"seq":"0","value":1})", R"({"id":1,"seq":0,"end":1})"}) {
    Peer peer{registry};
    peer.send(input_request("sum_all"));
    static_cast<void>(peer.received());
    EXPECT_EQ(peer.ask(notification("rpc.item", wrong)), invalid_request("1")) << wrong;
  }
  Peer peer{registry};
  for (const std::string_view nobody : {"{}", R"({"seq":0,"value":1})", R"({"id":{},"seq":0})", "[]", "[[1],2]"})
    EXPECT_EQ(peer.ask(notification("rpc.item", nobody)), "") << nobody;
}

TEST_F(Input, OfUnknownIdsIsDropped) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(sent(0, "1", "9")), "") << "nothing is in flight";
  peer.send(input_request("sum_all"));
  static_cast<void>(peer.received());
  EXPECT_EQ(peer.ask(sent(0, "1", "\"1\"")), "");
  EXPECT_EQ(peer.ask(request("rpc.item", R"({"id":2,"seq":0,"value":1})", "3")), result_reply("0", "3"));
  EXPECT_EQ(peer.ask(request("rpc.item", R"({"id":1,"seq":0,"value":1})", "3")),
            credit(61) + "\n" + result_reply("1", "3"));
}

TEST_F(Input, ThatIsNoValueOfTheTypeEndsTheCallAndIsNamed) {
  Peer peer{registry};
  peer.send(input_request("sum_all"));
  peer.send(sent(0, "1"));
  static_cast<void>(peer.received());
  EXPECT_EQ(peer.ask(sent(1, "\"x\"")), invalid_params(R"({"loc":["input",1],"expected":"integer","got":"\"x\""})"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

TEST_F(Input, MayBorrowUntilTheNextItem) {
  Peer peer{registry};
  peer.send(input_request("join"));
  peer.send(sent(0, R"("a\u0062")"));
  peer.send(sent(1, R"("c")"));
  static_cast<void>(peer.received());
  EXPECT_EQ(peer.ask(ended(2)), result_reply(R"("abc")"));
}

TEST_F(Input, MayBeAnsweredBeforeItsEnd) {
  Peer peer{registry};
  peer.send(input_request("first"));
  static_cast<void>(peer.received());
  EXPECT_EQ(peer.ask(sent(0, "7")), result_reply("7"));
  EXPECT_EQ(peer.ask(sent(1, "8")), "");
  EXPECT_EQ(peer.ask(ended(2)), "");
  EXPECT_EQ(peer.scheduler.running(), 0U);
}

TEST_F(Input, RunsBesideAStreamOfResults) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(input_request("running_sum", "[]", "1", R"(,"stream":2)")), credit(4));
  EXPECT_EQ(peer.ask(sent(0, "1")), yielded(0, "1") + "\n" + credit(61));
  EXPECT_EQ(peer.ask(sent(1, "2")), yielded(1, "3"));
  EXPECT_EQ(peer.ask(sent(2, "3")), "") << "the caller takes two results";
  EXPECT_EQ(peer.ask(credit(5)), yielded(2, "6"));
  EXPECT_EQ(peer.ask(ended(3)), result_reply("null"));
}

TEST_F(Input, IsStoppedByCancelAndTimeout) {
  Limits limits;
  limits.call_timeout_ms = 30;
  Peer peer{registry, limits};
  peer.send(input_request("sum_all"));
  static_cast<void>(peer.received());
  EXPECT_EQ(peer.ask(notification("rpc.cancel", "[1]")), cancelled());
  EXPECT_EQ(left, 1);

  peer.send(input_request("sum_all"));
  for (int i = 0; i < 5; ++i) {
    peer.advance(29ms);
    peer.send(sent(i, "1"));
  }
  static_cast<void>(peer.received());
  peer.advance(30ms);
  EXPECT_EQ(peer.received(), timed_out()) << "the time is for the gap between items";
  EXPECT_EQ(left, 2);

  peer.send(input_request("sum_all", "[]", "1", R"(,"timeout_ms":50)"));
  peer.advance(29ms);
  peer.send(sent(0, "1"));
  static_cast<void>(peer.received());
  peer.advance(21ms);
  EXPECT_EQ(peer.received(), timed_out()) << "and what the request asks for is for the whole";
  EXPECT_EQ(left, 3);
}

TEST_F(Input, OfACallerThatLeavesEnds) {
  {
    Peer peer{registry};
    peer.send(input_request("sum_all"));
    peer.send(sent(0, "1"));
    peer.dispatcher.abandon();
    EXPECT_EQ(left, 1);
    EXPECT_EQ(peer.scheduler.running(), 0U);
  }
  Peer peer{registry};
  peer.send(input_request("sum_all", "[]", "1"));
  peer.send(input_request("sum_all", "[]", "2"));
  peer.send(ended(0, "2"));
  static_cast<void>(peer.received());
  peer.dispatcher.peer_ended();
  EXPECT_EQ(peer.received(),
            test::error_reply(-32800, "Cancelled",
                              R"({"reason":"the caller has ended the connection before the end of its stream",)"
                              R"("origin":"local","delivered":"maybe"})"));
}

TEST_F(Input, OutlivesItsCall) {
  InputStream<int> kept;
  Completion<> wake;
  registry.method("keeps", [&](InputStream<int> in) -> Task<int> {
    kept = std::move(in);
    co_await wake;
    co_return 1;
  });
  {
    Peer peer{registry};
    peer.send(input_request("keeps"));
    peer.dispatcher.abandon();
  }
  kept = {};
}

}  // namespace
}  // namespace wirecall
