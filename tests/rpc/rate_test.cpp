// Limits::rate: how many messages a second one connection may send; and how many misspelt names are looked for.
#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::error_reply;
using test::notification;
using test::Peer;
using test::request;
using test::result_reply;

class Rate : public testing::Test {
 protected:
  Rate() {
    registry.method("count", [this] { return ++calls; });
  }
  // How many of so many calls in a row are served.
  static int served(Peer& peer, int count) {
    int good = 0;
    for (int i = 0; i < count; ++i) good += peer.ask(request("count")).find("\"result\"") != std::string::npos ? 1 : 0;
    return good;
  }
  static std::string refused(std::string_view milliseconds, std::string_view id = "1") {
    return error_reply(
        -32005, "Limit exceeded",
        R"({"reason":"too many messages of this connection","origin":"local","delivered":"no","limit":"rate","retry_after_ms":)" +
            std::string{milliseconds} + "}",
        id);
  }

  Registry registry;
  int calls = 0;
};

TEST_F(Rate, a_second_of_it_may_come_at_once_and_the_rest_in_its_time) {
  Peer peer{registry, Limits{.rate = 10}};
  EXPECT_EQ(served(peer, 25), 10);
  EXPECT_EQ(peer.ask(request("count")), refused("100"));
  peer.scheduler.advance(60ms);
  EXPECT_EQ(peer.ask(request("count")), refused("40"));
  peer.scheduler.advance(40ms);
  EXPECT_EQ(served(peer, 2), 1);
  peer.scheduler.advance(500ms);
  EXPECT_EQ(served(peer, 25), 5);
  peer.scheduler.advance(1h);
  EXPECT_EQ(served(peer, 25), 10) << "no more than a second's worth is saved";
  EXPECT_EQ(calls, 26);
}

TEST_F(Rate, a_near_name_is_looked_for_16_times_a_second) {
  Peer peer{registry};
  const auto told = [&](int count) {
    int suggestions = 0;
    for (int i = 0; i < count; ++i)
      suggestions += peer.ask(request("coumt")).find(R"("did_you_mean":"count")") != std::string::npos ? 1 : 0;
    return suggestions;
  };
  EXPECT_EQ(told(100), 16);
  EXPECT_EQ(peer.ask(request("coumt")), error_reply(-32601, "Method not found"));
  peer.scheduler.advance(250ms);
  EXPECT_EQ(told(100), 4);
  peer.scheduler.advance(1h);
  EXPECT_EQ(told(100), 16);
}

TEST_F(Rate, of_one_a_second_is_one) {
  Peer peer{registry, Limits{.rate = 1}};
  EXPECT_EQ(served(peer, 3), 1);
  peer.scheduler.advance(999ms);
  EXPECT_EQ(served(peer, 3), 0);
  peer.scheduler.advance(1ms);
  EXPECT_EQ(served(peer, 3), 1);
}

TEST_F(Rate, elements_of_batches_and_notifications_count_each) {
  Peer peer{registry, Limits{.rate = 2}};
  EXPECT_EQ(peer.ask("[" + request("count", {}, "1") + "," + request("count", {}, "2") + "," +
                     request("count", {}, "3") + "]"),
            "[" + result_reply("1", "1") + "," + result_reply("2", "2") + "," + refused("500", "3") + "]");
  EXPECT_EQ(peer.ask(notification("count")), "");
  EXPECT_EQ(calls, 2) << "dropped";
  peer.scheduler.advance(1s);
  EXPECT_EQ(peer.ask(notification("count")), "");
  EXPECT_EQ(calls, 3);
}

TEST_F(Rate, is_not_for_what_is_said_of_calls_in_progress) {
  int cancelled = 0;
  registry.method("wait", [&cancelled](Context context) -> Task<void> {
    try {
      co_await sleep_for(context, 1h);
    } catch (const Cancelled&) {
      ++cancelled;
      throw;
    }
  });
  Peer peer{registry, Limits{.rate = 3}};
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(peer.ask(request("wait", {}, std::to_string(i))), "");
  EXPECT_EQ(peer.ask(request("count", {}, "4")), refused("334", "4"));
  for (int i = 1; i <= 3; ++i) peer.send(notification("rpc.cancel", "[" + std::to_string(i) + "]"));
  EXPECT_EQ(cancelled, 3);
}

TEST_F(Rate, is_of_each_connection_for_itself_and_any_unless_said) {
  Peer one{registry, Limits{.rate = 1}};
  Peer other{registry, Limits{.rate = 1}};
  EXPECT_EQ(served(one, 2), 1);
  EXPECT_EQ(served(other, 2), 1);
  Peer free{registry};
  EXPECT_EQ(served(free, 1000), 1000);
}

}  // namespace
}  // namespace wirecall
