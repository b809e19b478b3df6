// Batches: one array in the order of the requests, whoever finishes first, within the limits.
#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::error_reply;
using test::invalid_request;
using test::notification;
using test::parse_error;
using test::Peer;
using test::result_reply;

std::string call(std::string_view method, std::string_view params, int id) {
  return test::request(method, params, std::to_string(id));
}
std::string number_reply(int result, int id) { return result_reply(std::to_string(result), std::to_string(id)); }

std::string array_of(const std::vector<std::string>& elements) {
  std::string array = "[";
  for (const std::string& element : elements) array += (array.size() > 1 ? "," : "") + element;
  return array + "]";
}

class Batch : public testing::Test {
 protected:
  Batch() {
    registry.method("same", [](int n) { return n; });
    registry.method("count", [this] { ++calls; });
    registry.method("string", [](std::size_t size) { return std::string(size, 'x'); });
    registry.method("fail", [](std::size_t size) { throw Error{1, std::string(size, 'x')}; });
    // Finishes when the test says so, or at once.
    registry.method("later", [this](int n) -> Task<int> {
      if (n >= 0) co_await completions[n];
      if (n > 100) throw Error{n, "over a hundred"};
      co_return n;
    });
  }

  /// The elements walked again, and as the first pass kept them, must be answered alike.
  std::string handle(const std::string& text) {
    std::string reply = registry.handle(text);
    EXPECT_EQ(Peer{registry}.ask(text), reply);
    return reply;
  }

  Registry registry;
  std::map<int, Completion<>> completions;
  int calls = 0;
};

TEST_F(Batch, IsAnsweredInTheOrderOfItsRequests) {
  EXPECT_EQ(handle(array_of({call("same", "[1]", 10), call("same", "[2]", 5), call("same", "[3]", 7)})),
            array_of({number_reply(1, 10), number_reply(2, 5), number_reply(3, 7)}));
}

TEST_F(Batch, OfOneIsAnsweredAsAnArray) {
  EXPECT_EQ(handle(array_of({call("same", "[1]", 1)})), array_of({number_reply(1, 1)}));
}

TEST_F(Batch, MixesAllKinds) {
  EXPECT_EQ(handle(array_of({call("same", "[1]", 1), notification("count"), R"({"jsonrpc":"2.0","result":1,"id":1})",
                             R"({"error":1,"id":{}})", "1", "{}", call("unknown", "[]", 2), call("same", "[]", 3), "[]",
                             "[" + call("same", "[1]", 4) + "]", "null", R"({"id":9})",
                             R"({"jsonrpc":"2.0","method":"count","params":1})", notification("unknown"),
                             notification("same"), call("fail", "[1]", 5)})),
            array_of({number_reply(1, 1), invalid_request(), invalid_request(),
                      error_reply(-32601, "Method not found", {}, "2"),
                      test::invalid_params(R"({"loc":["arg0"],"expected":"integer","got":"nothing"})", "3"),
                      invalid_request(), invalid_request(), invalid_request(), invalid_request("9"), invalid_request(),
                      error_reply(1, "x", {}, "5")}));
  EXPECT_EQ(calls, 2) << "once each time";
}

TEST_F(Batch, OfNotificationsOrResponsesIsNotAnswered) {
  EXPECT_EQ(handle(array_of({notification("count"), notification("unknown"), notification("same")})), "");
  EXPECT_EQ(handle(array_of({notification("count")})), "");
  EXPECT_EQ(handle(array_of({R"({"result":1})", R"({"jsonrpc":"2.0","error":{},"id":1})"})), "");
  EXPECT_EQ(handle(array_of({R"({"result":1})", notification("count")})), "");
}

TEST_F(Batch, EmptyIsOneInvalidRequest) {
  EXPECT_EQ(handle("[]"), invalid_request());
  EXPECT_EQ(handle(" [ ] "), invalid_request());
}

TEST_F(Batch, NestedIsAnInvalidElement) {
  EXPECT_EQ(handle("[[]]"), array_of({invalid_request()}));
  EXPECT_EQ(handle("[[],[[]],[" + call("count", "[]", 1) + "]]"),
            array_of({invalid_request(), invalid_request(), invalid_request()}));
  EXPECT_EQ(calls, 0);
}

TEST_F(Batch, ThatIsNotJsonIsOneParseErrorAndNothingOfItIsDone) {
  EXPECT_EQ(handle("[" + call("count", "[]", 1) + "," + call("count", "[01]", 2) + "]"), parse_error());
  EXPECT_EQ(handle("[" + call("count", "[]", 1) + ",]"), parse_error());
  EXPECT_EQ(handle("[" + call("count", "[]", 1)), parse_error());
  EXPECT_EQ(handle("[" + call("count", "[]", 1) + "]]"), parse_error());
  EXPECT_EQ(calls, 0);
}

std::string over_limit(std::string_view id) {
  return error_reply(-32600, "Invalid Request", R"({"limit":"batch"})", id);
}

TEST_F(Batch, OverTheLimitIsAnErrorForEachIdAndNothingOfItIsDone) {
  const std::vector<std::string> thousand(1000, call("count", "[]", 1));
  std::vector<std::string> replies(1000, result_reply("null"));
  EXPECT_EQ(registry.handle(array_of(thousand)), array_of(replies));
  EXPECT_EQ(calls, 1000);
  std::vector<std::string> more = thousand;
  more.push_back(notification("count"));
  EXPECT_EQ(handle(array_of(more)), array_of(std::vector<std::string>(1000, over_limit("1"))));
  EXPECT_EQ(calls, 1000);
  EXPECT_EQ(handle(array_of(std::vector<std::string>(1001, notification("count")))), over_limit("null"));
  EXPECT_EQ(calls, 1000);
}

TEST_F(Batch, OverTheLimitTellsAllWhoMayWaitByAnIdAndNobodyElse) {
  Limits small;
  small.batch = 2;
  const Registry empty;
  Peer peer{empty, small};
  const std::string response = R"({"jsonrpc":"2.0","result":1,"id":9})";
  EXPECT_EQ(peer.ask(R"([{"jsonrpc":"2.0","method":"a","id":"x\"y"} , 1, [], {"jsonrpc":"2.0","method":"a"},
                         {"method":"a","id":7}, {"jsonrpc":"2.0","method":"a","id":[1]}, )" +
                     response + R"(, {"jsonrpc":"2.0","method":"a","id":null}])"),
            array_of({over_limit(R"("x\"y")"), over_limit("7"), over_limit("null")}));
  EXPECT_EQ(peer.ask(array_of({response, response, response})), "") << "a response is never answered";
  EXPECT_EQ(peer.ask(array_of({response, response, notification("a")})), over_limit("null"));
  EXPECT_EQ(peer.sink.closes, 0);
}

TEST_F(Batch, OverTheLimitIsOneErrorAndTheEndWhereTheErrorsAreMoreThanAPeerIsSent) {
  const Registry empty;
  const auto ask = [&](std::size_t elements, std::size_t soft_output, std::size_t message_bytes, int closes) {
    Limits small;
    small.batch = 2;
    small.soft_output = soft_output;
    small.max_message_size = message_bytes;
    Peer peer{empty, small};
    const std::string reply = peer.ask(array_of(std::vector<std::string>(elements, test::request("a"))));
    EXPECT_EQ(peer.sink.closes, closes);
    EXPECT_LE(reply.size(), std::min(soft_output, message_bytes));
    return reply;
  };
  const std::size_t one = over_limit("1").size();
  const std::size_t ten = 10 * (one + 1) + 1;  // with its commas and brackets
  const std::string array = array_of(std::vector<std::string>(10, over_limit("1")));
  EXPECT_EQ(array.size(), ten);
  EXPECT_EQ(ask(10, ten, 1 << 20U, 0), array);
  EXPECT_EQ(ask(10, ten - 1, 1 << 20U, 1), over_limit("null"));
  EXPECT_EQ(ask(10, 1 << 20U, ten, 0), array);
  EXPECT_EQ(ask(10, 1 << 20U, ten - 1, 1), over_limit("null"));
}

TEST_F(Batch, OfAnySizeIsAnsweredInOrder) {
  for (const int size : {2, 15, 16, 17, 18, 33, 100}) {
    std::vector<std::string> requests, replies;
    for (int i = 0; i < size; ++i) {
      requests.push_back(i % 5 == 4 ? notification("count") : call("same", '[' + std::to_string(i) + ']', i));
      if (i % 5 != 4) replies.push_back(number_reply(i, i));
    }
    EXPECT_EQ(handle(array_of(requests)), array_of(replies));
  }
}

TEST_F(Batch, ElementKeepsTheRulesOfAMessage) {
  EXPECT_EQ(handle(array_of({R"({"jsonrpc":"2.0","method":"count","id":")" + std::string(65535, 'x') + "\"}",
                             R"({"jsonrpc":"2.0","method":"count","id":1,"i\u0064":1})",
                             R"({"jsonrpc":"2.0","method":"count","timeout_ms":"1"})",
                             R"({"jsonrpc":"2.0","method":"s\u0061me","params":[3],"id":"\u0061"})"})),
            array_of({error_reply(-32600, "Invalid Request", R"({"limit":"id"})", "null"), invalid_request(),
                      invalid_request(), result_reply("3", R"("\u0061")")}));
  EXPECT_EQ(calls, 0);
}

TEST_F(Batch, SameIdTwiceIsAnsweredTwice) {
  EXPECT_EQ(handle(array_of({call("same", "[1]", 1), call("same", "[2]", 1)})),
            array_of({number_reply(1, 1), number_reply(2, 1)}));
}

// ---- elements that wait ----

TEST_F(Batch, ElementsMayFinishInAnyOrder) {
  const std::string text =
      array_of({call("later", "[0]", 0), call("same", "[7]", 10), call("later", "[1]", 1), call("later", "[-5]", 11),
                notification("later", "[3]"), call("later", "[102]", 2), "5"});
  const std::string expected =
      array_of({number_reply(0, 0), number_reply(7, 10), number_reply(1, 1), number_reply(-5, 11),
                error_reply(102, "over a hundred", {}, "2"), invalid_request()});
  std::vector<int> order{0, 1, 102};
  do {
    completions.clear();
    Peer peer{registry};
    peer.send(text);
    EXPECT_EQ(peer.dispatcher.in_flight(), 4U) << "the notification among them";
    for (const int n : order) {
      EXPECT_EQ(peer.received(), "");
      completions[n].set();
    }
    EXPECT_EQ(peer.received(), expected);
    EXPECT_EQ(peer.dispatcher.in_flight(), 1U) << "the batch does not wait for a notification";
    completions[3].set();
    EXPECT_EQ(peer.received(), "");
    EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(Batch, ElementThatIsStoppedIsAnsweredInItsPlace) {
  Peer peer{registry};
  peer.send(array_of({call("later", "[0]", 0), call("same", "[7]", 1), call("later", "[1]", 2)}));
  completions[1].set();
  peer.dispatcher.ask_to_stop();
  EXPECT_EQ(peer.received(),
            array_of({error_reply(-32800, "Cancelled",
                                  R"({"reason":"the call was stopped","origin":"local","delivered":"maybe"})", "0"),
                      number_reply(7, 1), number_reply(1, 2)}));
}

TEST_F(Batch, WhosePeerHasGoneIsNotAnswered) {
  Peer peer{registry};
  peer.send(array_of({call("later", "[0]", 0), call("same", "[7]", 1), call("later", "[1]", 2)}));
  completions[0].set();
  peer.dispatcher.abandon();
  completions[1].set();
  EXPECT_EQ(peer.received(), "");
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

TEST_F(Batch, SeveralMayWaitAtOnce) {
  Peer peer{registry};
  peer.send(array_of({call("later", "[0]", 0), call("same", "[7]", 1)}));
  peer.send(array_of({call("same", "[8]", 2), call("later", "[1]", 3)}));
  EXPECT_EQ(peer.ask(array_of({call("same", "[9]", 4)})), array_of({number_reply(9, 4)}));
  completions[1].set();
  EXPECT_EQ(peer.received(), array_of({number_reply(8, 2), number_reply(1, 3)}));
  completions[0].set();
  EXPECT_EQ(peer.received(), array_of({number_reply(0, 0), number_reply(7, 1)}));
}

TEST_F(Batch, InFlightLimitCountsItsElements) {
  Limits limits;
  limits.in_flight = 2;
  Peer peer{registry, limits};
  peer.send(array_of({call("later", "[0]", 0), call("later", "[1]", 1), call("later", "[2]", 2)}));
  completions[0].set();
  completions[1].set();
  EXPECT_EQ(peer.received(),
            array_of({number_reply(0, 0), number_reply(1, 1),
                      error_reply(-32005, "Limit exceeded",
                                  R"({"reason":"too many calls of this connection are in flight","origin":"local",)"
                                  R"("delivered":"no","limit":"in_flight"})",
                                  "2")}));
}

// ---- the size of the array ----

std::string too_large(int id) { return test::too_large("the reply is", std::to_string(id)); }

TEST_F(Batch, ElementsPastTheSizeLimitAreTooLarge) {
  Limits limits;
  limits.max_message_size = 2000;
  registry.set_limits(limits);
  const std::string envelope = result_reply("\"\"");
  // Three elements of n bytes each fill the array exactly: two brackets, two commas.
  const std::size_t n = (2000 - 4) / 3;
  const std::string x = std::to_string(n - envelope.size());
  const std::string full = result_reply('"' + std::string(n - envelope.size(), 'x') + '"');
  const std::string request = call("string", '[' + x + ']', 1);
  const std::string fits = registry.handle(array_of({request, request, request}));
  EXPECT_EQ(fits, array_of({full, full, full}));
  EXPECT_LE(fits.size(), 2000U);
  EXPECT_EQ(registry.handle(array_of({request, request, request, request})),
            array_of({full, full, full, too_large(1)}));
}

TEST_F(Batch, FillsTheSizeLimitToTheLastByte) {
  for (const std::size_t more : {0U, 1U}) {
    Limits limits;
    limits.max_message_size = 1000;
    registry.set_limits(limits);
    const std::size_t size = 1000 - 2 - result_reply("\"\"").size() + more;
    const std::string reply = registry.handle(array_of({call("string", '[' + std::to_string(size) + ']', 1)}));
    EXPECT_EQ(reply,
              more == 0 ? array_of({result_reply('"' + std::string(size, 'x') + '"')}) : array_of({too_large(1)}));
  }
}

TEST_F(Batch, IntegersFillTheSizeLimitToTheLastByte) {
  registry.method("least", [] { return std::numeric_limits<std::int64_t>::min(); });
  const std::string element = R"({"jsonrpc":"2.0","method":"least","id":1})";
  const std::string reply = result_reply("-9223372036854775808");
  const std::string both = array_of({reply, reply});
  Limits limits;
  limits.max_message_size = both.size();
  registry.set_limits(limits);
  EXPECT_EQ(registry.handle(array_of({element, element})), both);
  limits.max_message_size = both.size() - 1;
  registry.set_limits(limits);
  EXPECT_EQ(registry.handle(array_of({element, element})), array_of({reply, too_large(1)}));
}

TEST_F(Batch, SmallElementBehindOneThatIsTooLargeIsStillAnswered) {
  Limits limits;
  limits.max_message_size = 1000;
  registry.set_limits(limits);
  EXPECT_EQ(registry.handle(array_of({call("string", "[5000]", 1), call("same", "[2]", 2)})),
            array_of({too_large(1), number_reply(2, 2)}));
}

TEST_F(Batch, ErrorsPastTheSizeLimitAreTooLarge) {
  Limits limits;
  limits.max_message_size = 1000;
  registry.set_limits(limits);
  const std::string fits = error_reply(1, std::string(400, 'x'));
  EXPECT_EQ(registry.handle(array_of({call("fail", "[400]", 1), call("fail", "[400]", 1), call("fail", "[400]", 3)})),
            array_of({fits, fits, too_large(3)}));
}

TEST_F(Batch, WhatHasNotFittedInPlaceOfAnElementThatWaitedLeavesNoMemoryBehind) {
  rpc::LoopContext loop{json_codec(), nullptr};
  rpc::BatchReply batch;
  Buffer gap;
  rpc::Reply reply{gap, batch, &loop, 1000};
  reply.begin().append(std::string(1'000'000, '1'));
  EXPECT_FALSE(reply.end("1"));
  EXPECT_LE(gap.capacity(), rpc::kBytesUnweighed);
}

TEST_F(Batch, SizeLimitHoldsForElementsThatWait) {
  registry.method("later_string", [this](int n, std::size_t size) -> Task<std::string> {
    co_await completions[n];
    co_return std::string(size, 'x');
  });
  Limits limits;
  limits.max_message_size = 1000;
  Peer peer{registry, limits};
  peer.send(
      array_of({call("later_string", "[0,600]", 0), call("later_string", "[1,600]", 1), call("string", "[100]", 2)}));
  completions[1].set();  // the first to come is the one that has room
  completions[0].set();
  EXPECT_EQ(peer.received(), array_of({too_large(0), result_reply('"' + std::string(600, 'x') + '"', "1"),
                                       result_reply('"' + std::string(100, 'x') + '"', "2")}));
}

}  // namespace
}  // namespace wirecall
