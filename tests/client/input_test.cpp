// Streams that a client sends towards the handlers of its calls: as the server has room for them, from ranges and
// functions, ended by every way in which a call ends.
#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <ranges>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/client/world.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"
#include "wirecall/input_stream.hpp"
#include "wirecall/result_stream.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace input_test {

wirecall::Task<int> weighted(int factor, wirecall::InputStream<int> in, int& last) {
  int sum = 0;
  while (const std::optional<int> value = co_await in.next()) sum += factor * (last = *value);
  co_return sum;
}

}  // namespace input_test

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

std::string credit(int more, std::string_view id = R"("i1")") {
  return R"({"jsonrpc":"2.0","method":"rpc.credit","params":{"id":)" + std::string{id} + R"(,"n":)" +
         std::to_string(more) + "}}\n";
}
std::string sent(int sequence, std::string_view value) {
  return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":"i1","seq":)" + std::to_string(sequence) +
         R"(,"value":)" + std::string{value} + "}}";
}
std::string ended(int sequence) {
  return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":"i1","seq":)" + std::to_string(sequence) +
         R"(,"end":true}})";
}
std::string result(std::string_view value) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":"i1"})" + "\n";
}

TEST(ClientInputs, go_out_as_the_server_gives_credit) {
  const ScriptedServer server{[](RawPeer peer) {
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"sum","id":"i1","input":true})");
    peer.send(credit(2));
    EXPECT_EQ(peer.line(), sent(0, "1"));
    EXPECT_EQ(peer.line(), sent(1, "2"));
    peer.send(credit(1));
    EXPECT_EQ(peer.line(), sent(2, "3"));
    peer.send(credit(1));
    EXPECT_EQ(peer.line(), ended(3));
    peer.send(result("6"));
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(client.request<int>("sum").input(std::vector{1, 2, 3}).call(), 6);
}

TEST(ClientInputs, are_asked_for_no_more_than_the_server_takes) {
  int asked = 0;
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(credit(3));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(peer.line(), sent(i, "5"));
    peer.send(result("null"));
    peer.line();
  }};
  Client client{server.uri()};
  client.request("first")
      .input([&]() -> std::optional<int> {
        ++asked;
        return 5;
      })
      .call();
  EXPECT_EQ(asked, 3) << "the answer ends it";
}

TEST(ClientInputs, that_fail_end_the_call_and_the_server_is_told) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(credit(3));
    EXPECT_NE(peer.line().find(R"("method":"$/cancelRequest","params":{"id":"i1"})"), std::string::npos);
  }};
  Client client{server.uri()};
  const auto outcome =
      client.request("sum").input([]() -> std::optional<int> { throw std::runtime_error("torn"); }).try_call();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), static_cast<int>(ErrorCode::internal_error));
  EXPECT_EQ(outcome.error().message(), "the input of the call failed: torn");
}

TEST(ClientInputs, whose_items_cannot_be_encoded_end_the_call) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(credit(3));
    peer.line();
  }};
  Client client{server.uri()};
  const auto outcome = client.request("sum").input(std::vector<std::string>{"\xFF"}).try_call();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), static_cast<int>(ErrorCode::invalid_params));
}

TEST(ClientInputs, end_with_the_time_of_their_call) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(credit(1));
    EXPECT_EQ(peer.line(), sent(0, "1"));
    EXPECT_NE(peer.line().find("$/cancelRequest"), std::string::npos);
  }};
  Client client{server.uri()};
  const auto outcome = client.request("sum").timeout(20ms).input(std::vector{1, 2}).try_call();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), static_cast<int>(ErrorCode::timeout));
}

TEST(ClientInputs, are_lost_with_their_connection) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(credit(1));
    EXPECT_EQ(peer.line(), sent(0, "1"));
  }};
  Client client{server.uri()};
  EXPECT_THROW(client.request("sum").input(std::vector{1, 2}).call(), ConnectionError);
}

// Against a server of ours, in both encodings.
class ClientInputsServed : public testing::TestWithParam<Encoding> {
 protected:
  ClientInputsServed() {
    server.method("sum_all", [](InputStream<int> in) -> Task<int> {
      int sum = 0;
      while (const std::optional<int> value = co_await in.next()) sum += *value;
      co_return sum;
    });
    server.method("running_sum", [](InputStream<int> in) -> Stream<int> {
      int sum = 0;
      while (const std::optional<int> value = co_await in.next()) co_yield sum += *value;
    });
    server.method("join", [](std::string between, InputStream<std::string> in) -> Task<std::string> {
      std::string all;
      while (const auto text = co_await in.next()) all += (all.empty() ? "" : between) + *text;
      co_return all;
    });
    server.method("hear", [this](InputStream<std::string> in) -> Task<std::size_t> {
      std::size_t bytes = 0;
      while (const auto text = co_await in.next()) {
        bytes += text->size();
        heard.release();
      }
      co_return bytes;
    });
    server.method("first", [](InputStream<int> in) -> Task<int> { co_return (co_await in.next()).value_or(-1); });
    server.method<input_test::weighted>({"factor", "last"});
    uri_ = server.listen("tcp://127.0.0.1:0").uri();
    running_.emplace(server);
  }
  [[nodiscard]] Client connected() const {
    ClientOptions options;
    options.encoding = GetParam();
    return Client{uri_, options};
  }

  // Makes the items of `text`, each once the server's handler has taken the one before.
  [[nodiscard]] auto one_by_one(std::string text) {
    return [this, text](int number) {
      EXPECT_TRUE(number == 0 || heard.try_acquire_for(10s)) << "the item before " << number << " has not left";
      return text;
    };
  }

  Server server;
  std::counting_semaphore<> heard{0};

 private:
  std::string uri_;
  std::optional<RunningServer> running_;
};

INSTANTIATE_TEST_SUITE_P(Each, ClientInputsServed,
                         testing::Values(Encoding::json, Encoding::msgpack, Encoding::cbor, Encoding::protobuf));

TEST_P(ClientInputsServed, reach_their_handlers) {
  Client client = connected();
  EXPECT_EQ(client.request<int>("sum_all").input(std::vector{1, 2, 39}).call(), 42);
  EXPECT_EQ(client.request<int>("sum_all").input(std::views::iota(1, 10'001)).call(), 50'005'000);
  EXPECT_EQ(client.request<int>("sum_all").input(std::vector<int>{}).call(), 0);
  EXPECT_EQ(client.request<std::string>("join", "+").input(std::vector<std::string>{"a", "b"}).call(), "a+b");
  EXPECT_EQ(client.request<int>("first").input(std::views::iota(7)).call(), 7) << "a range without end";
}

TEST_P(ClientInputsServed, run_beside_results) {
  Client client = connected();
  int sum = 0;
  int count = 0;
  for (const int value : client.stream<int>("running_sum").input(std::views::iota(1, 1001))) {
    sum += ++count;
    ASSERT_EQ(value, sum);
  }
  EXPECT_EQ(count, 1000);
}

TEST_P(ClientInputsServed, are_awaited_called_back_and_future) {
  Client client = connected();
  const auto both = [&client]() -> Task<int> {
    const int one = co_await client.request<int>("sum_all").input(std::views::iota(0, 200));
    Stream<int> sums = client.stream<int>("running_sum").input(std::views::iota(0, 200)).awaited();
    int last = 0;
    while (const std::optional<int> sum = co_await sums.next()) last = *sum;
    co_return one + last;
  };
  EXPECT_EQ(client.run(both()), 2 * 19'900);
  EXPECT_EQ(client.request<int>("sum_all").input(std::vector{1, 2}).future().get(), 3);
}

TEST_P(ClientInputsServed, that_block_leave_item_by_item) {
  Client client = connected();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{900'000}}) {
    const auto make = one_by_one(std::string(bytes, 'x'));
    const auto function = [make, number = 0]() mutable {
      return number == 8 ? std::nullopt : std::optional<std::string>{make(number++)};
    };
    EXPECT_EQ(client.request<std::size_t>("hear").input(function).call(), 8 * bytes);
    heard.acquire();
    const auto range = std::views::iota(0, 8) | std::views::transform(make);
    EXPECT_EQ(client.request<std::size_t>("hear").input(range).call(), 8 * bytes);
    heard.acquire();
    EXPECT_EQ(client.request<std::size_t>("hear").input(range).future().get(), 8 * bytes);
    heard.acquire();
  }
}

TEST(ClientInputs, that_never_block_are_known) {
  static_assert(detail::kNeverBlocks<std::vector<int>> && detail::kNeverBlocks<std::map<int, int>>);
  static_assert(detail::kNeverBlocks<std::span<const int>> && detail::kNeverBlocks<std::ranges::iota_view<int, int>>);
  static_assert(!detail::kNeverBlocks<std::ranges::istream_view<int>>);
  static_assert(!detail::kNeverBlocks<decltype(std::views::filter(std::vector<int>{}, [](int) { return true; }))>);
}

TEST_P(ClientInputsServed, are_no_arguments_of_a_shared_function) {
  Client client = connected();
  int last = 0;
  EXPECT_EQ(client.request<input_test::weighted>(2, last).input(std::vector{1, 2, 3}).call(), 12);
  EXPECT_EQ(last, 3) << "beside a parameter that comes back";
}

TEST_P(ClientInputsServed, come_from_streams_that_wait) {
  Client client = connected();
  const auto slow = [](Scheduler& scheduler, int count) -> Stream<int> {
    for (int i = 1; i <= count; ++i) {
      if (i % 3 == 0) co_await sleep_for(scheduler, 0ns);
      co_yield i;
    }
  };
  EXPECT_EQ(client.request<int>("sum_all").input(slow(client.scheduler(), 1000)).call(), 500'500);
  EXPECT_EQ(client.request<int>("first").input(slow(client.scheduler(), 1000)).call(), 1);
  const auto fails = [](Scheduler& scheduler) -> Stream<int> {
    co_yield 1;
    co_await sleep_for(scheduler, 0ns);
    throw Error{7, "torn"};
  };
  const auto outcome = client.request<int>("sum_all").input(fails(client.scheduler())).try_call();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), 7);
}

TEST_P(ClientInputsServed, from_streams_that_wait_for_ever_end_with_their_call) {
  Client client = connected();
  int left = 0;
  const auto stuck = [&left](Scheduler& scheduler) -> Stream<int> {
    struct Guard {
      int& left;
      ~Guard() { ++left; }
    } guard{left};
    co_yield 1;
    co_await sleep_for(scheduler, 1h);
  };
  EXPECT_FALSE(client.request<int>("sum_all").timeout(20ms).input(stuck(client.scheduler())).try_call());
  EXPECT_EQ(client.request<int>("first").input(stuck(client.scheduler())).call(), 1);
  client.close();
  EXPECT_EQ(left, 2);
}

TEST_P(ClientInputsServed, of_a_consumer_that_leaves_end) {
  Client client = connected();
  {
    auto sums = client.stream<int>("running_sum").input(std::views::iota(1));
    EXPECT_EQ(sums.next(), 1);
    EXPECT_EQ(sums.next(), 3);
  }
  EXPECT_EQ(client.request<int>("sum_all").input(std::vector{1}).call(), 1);
}

TEST_P(ClientInputsServed, that_are_not_what_the_handler_takes_are_named) {
  Client client = connected();
  const auto outcome = client.request<int>("sum_all").input(std::vector<std::string>{"x"}).try_call();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), static_cast<int>(ErrorCode::invalid_params));
  EXPECT_NE(outcome.error().data().find(R"("loc":["input",0])"), std::string::npos) << outcome.error().data();
}

}  // namespace
}  // namespace wirecall::net
