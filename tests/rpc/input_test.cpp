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
    registry.method(
        "scaled",
        [](int factor, InputStream<double> in, Context, int offset) -> Task<double> {
          double sum = offset;
          while (const auto value = co_await in.next()) sum += *value * factor;
          co_return sum;
        },
        {"factor", "context", "offset"});
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
  EXPECT_EQ(peer.ask(sent(0, "1")), credit(64)) << "now it is known how large the items are";
  EXPECT_EQ(peer.ask(sent(1, "41")), "");
  EXPECT_EQ(peer.ask(ended(2)), result_reply("42"));
  EXPECT_EQ(left, 1);
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  EXPECT_EQ(peer.dispatcher.held_bytes(), 0U);
  EXPECT_EQ(peer.scheduler.running(), 0U);
}

}  // namespace
}  // namespace wirecall
