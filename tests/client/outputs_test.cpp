// Arguments that come back: std::ref, which is sent, and Out, which is not. When the variables are written, and that
// they are not where the answer is none.
#include <chrono>
#include <expected>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/client/world.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"
#include "wirecall/out.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

std::string answer(int id, std::string_view result) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{result} + R"(,"id":)" + std::to_string(id) + "}\n";
}

struct Divided {
  int quotient = -1;
  int remainder = -1;
  bool operator==(const Divided&) const = default;
};
constexpr Divided kUntouched{};

Task<std::expected<int, Error>> awaited(Client& client, Divided& divided) {
  try {
    co_return co_await client.request<int>("divide", 7, 2, std::ref(divided.quotient), Out{divided.remainder});
  } catch (const Error& error) {
    co_return std::unexpected{error};
  }
}

// A call whose arguments come back, made in each of the four ways.
class EachWayBack : public testing::TestWithParam<int> {
 protected:
  static std::expected<int, Error> divide(Client& client, Divided& divided) {
    const auto request = [&] {
      return client.request<int>("divide", 7, 2, std::ref(divided.quotient), Out{divided.remainder});
    };
    switch (GetParam()) {
      case 0: return request().try_call();
      case 1: {
        std::promise<std::expected<int, Error>> done;
        request().then([&](std::expected<int, Error> result) { done.set_value(std::move(result)); });
        return done.get_future().get();
      }
      case 2: try { return request().future().get();
        } catch (const Error& error) {
          return std::unexpected{error};
        }
      default: return client.run(awaited(client, divided));
    }
  }
  // What the server answers to the call of that id, and what is there then.
  static std::pair<std::expected<int, Error>, Divided> answered(std::string_view result) {
    const ScriptedServer server{[&](RawPeer peer) {
      EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"divide","params":[7,2,-1],"id":1})");
      peer.send(answer(1, result));
      peer.line();
    }};
    Client client{server.uri()};
    Divided divided;
    auto outcome = divide(client, divided);
    return {std::move(outcome), divided};
  }
};

INSTANTIATE_TEST_SUITE_P(Each, EachWayBack, testing::Range(0, 4));

TEST_P(EachWayBack, writes_the_variables_in_the_order_of_the_parameters_whatever_their_names) {
  for (const std::string_view result :
       {R"({"return":5,"out":{"quotient":3,"remainder":1}})", R"({"out":{"arg2":3,"arg3":1},"more":0,"return":5})"}) {
    const auto [outcome, divided] = answered(result);
    EXPECT_EQ(outcome.value(), 5);
    EXPECT_EQ(divided, (Divided{3, 1}));
  }
}

TEST_P(EachWayBack, writes_none_where_the_answer_does_not_fit) {
  for (const std::string_view result :
       {R"({"return":5,"out":{"quotient":3,"remainder":"1"}})", R"({"return":"5","out":{"quotient":3,"remainder":1}})",
        R"({"out":{"quotient":3,"remainder":1},"return":null})", R"({"return":5,"out":{"quotient":3}})",
        R"({"return":5,"out":{"quotient":3,"remainder":1,"more":2}})", R"({"return":5,"out":[3,1]})", R"({"return":5})",
        R"({"out":{"quotient":3,"remainder":1}})", "5", "null", R"({"return":5,"out":{"quotient":3,"quotient":1}})",
        R"({"return":5,"out":{"quotient":3,"quo\u0074ient":1}})", R"({"return":5,"return":5,"out":{"a":3,"b":1}})",
        R"({"return":5,"out":{"a":3,"b":1},"out":{"a":3,"b":1}})"}) {
    const auto [outcome, divided] = answered(result);
    ASSERT_FALSE(outcome) << result;
    EXPECT_EQ(outcome.error().code(), -32603) << result;
    EXPECT_EQ(divided, kUntouched) << result;
  }
}

TEST_P(EachWayBack, writes_none_where_the_call_fails) {
  const ScriptedServer server{[&](RawPeer peer) {
    peer.line();
    peer.send("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-50,\"message\":\"no\"},\"id\":1}\n");
    peer.line();
  }};
  Client client{server.uri()};
  Divided divided;
  EXPECT_EQ(divide(client, divided).error().code(), -50);
  EXPECT_EQ(divided, kUntouched);
}

TEST_P(EachWayBack, writes_none_after_the_timeout) {
  const ScriptedServer server{[&](RawPeer peer) {
    const std::string first = peer.line();
    EXPECT_NE(first.find("\"divide\""), first.npos);
    // The call is over when the next one comes: a late answer finds nobody.
    std::string line;
    while (line.find("\"ping\"") == line.npos) line = peer.line();
    peer.send(answer(1, R"({"return":5,"out":{"quotient":3,"remainder":1}})"));
    peer.send(answer(2, "true"));
    peer.line();
  }};
  ClientOptions options;
  options.call_timeout_ms = 20;
  Client client{server.uri(), options};
  Divided divided;
  EXPECT_EQ(divide(client, divided).error().code(), -32002);
  EXPECT_TRUE(client.request<bool>("ping").timeout(std::chrono::milliseconds{kWatchdog}).call());
  EXPECT_EQ(divided, kUntouched);
}

TEST(Outputs, of_a_future_are_written_by_its_get) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(answer(1, R"({"return":null,"out":{"value":2}})"));
    peer.line();
    peer.send(answer(2, "true"));
    peer.line();
  }};
  Client client{server.uri()};
  int value = 1;
  std::future<void> future = client.request<>("next", std::ref(value)).future();
  EXPECT_TRUE(client.call<bool>("ping"));  // its answer comes after the other's
  EXPECT_EQ(value, 1);
  EXPECT_EQ(future.wait_for(0s), std::future_status::deferred);
  future.get();
  EXPECT_EQ(value, 2);
}

TEST(Outputs, of_a_call_without_a_result_need_none) {
  const ScriptedServer server{[](RawPeer peer) {
    int id = 0;
    for (const std::string_view result :
         {R"({"return":null,"out":{"value":2}})", R"({"out":{"value":3}})", R"({"return":7,"out":{"value":4}})"}) {
      peer.line();
      peer.send(answer(++id, result));
    }
    peer.line();
  }};
  Client client{server.uri()};
  for (const int expected : {2, 3, 4}) {
    int value = 1;
    client.call("next", Out{value});
    EXPECT_EQ(value, expected);
  }
}

TEST(Outputs, are_an_object_to_who_asks_for_a_value) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(answer(1, R"({"return":null,"out":{"quotient":3,"remainder":1}})"));
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(to_json(client.call<Value>("divide", 7, 2)), R"({"return":null,"out":{"quotient":3,"remainder":1}})");
}

TEST(Outputs, of_a_batch_are_written_where_its_results_are_taken) {
  const ScriptedServer server{[](RawPeer peer) {
    for (int id = 1; id < 7; id += 2) {
      peer.line();
      const std::string first = answer(id, R"({"return":5,"out":{"value":2}})");
      const std::string second = answer(id + 1, R"({"return":null,"out":{"text":7}})");
      peer.send("[" + first.substr(0, first.size() - 1) + "," + second.substr(0, second.size() - 1) + "]\n");
    }
    peer.line();
  }};
  Client client{server.uri()};
  int value = 1;
  std::string text = "kept";
  const auto batch = [&] {
    value = 1;
    return client.batch().call<int>("a", std::ref(value)).call<>("b", Out{text});
  };
  const auto check = [&](auto results) {
    EXPECT_EQ(std::get<0>(results).value(), 5);
    EXPECT_EQ(value, 2);
    EXPECT_EQ(std::get<1>(results).error().code(), -32603);  // 7 is no text
    EXPECT_EQ(text, "kept");
  };
  check(batch().send());
  check(batch().future().get());
  std::promise<void> done;
  batch().then([&](auto results) {
    check(std::move(results));
    done.set_value();
  });
  done.get_future().get();
}

Task<std::vector<int>> collect(Stream<int> items) {
  std::vector<int> all;
  while (const std::optional<int> value = co_await items.next()) all.push_back(*value);
  co_return all;
}

// Taken one by one or awaited; sent as items, or all at once.
class StreamsBack : public testing::TestWithParam<std::pair<bool, bool>> {};

INSTANTIATE_TEST_SUITE_P(Each, StreamsBack,
                         testing::Values(std::pair{false, false}, std::pair{false, true}, std::pair{true, false},
                                         std::pair{true, true}));

TEST_P(StreamsBack, write_the_variables_at_their_end) {
  const auto [awaits, at_once] = GetParam();
  const ScriptedServer server{[at_once = at_once](RawPeer peer) {
    peer.line();
    if (at_once) {
      peer.send(answer(1, R"({"out":{"total":3},"return":[1,2]})"));
    } else {
      for (int i = 0; i < 2; ++i) {
        peer.send(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":1,"seq":)" + std::to_string(i) +
                  R"(,"value":)" + std::to_string(i + 1) + "}}\n");
      }
      peer.send(answer(1, R"({"return":null,"out":{"total":3}})"));
    }
    peer.line();
  }};
  Client client{server.uri()};
  int total = 0;
  ResultStream<int> stream = client.stream<int>("count", 2, Out{total});
  std::vector<int> items;
  if (awaits) {
    items = client.run(collect(std::move(stream).awaited()));
  } else {
    while (const std::optional<int> item = stream.next()) {
      items.push_back(*item);
      EXPECT_EQ(total, 0);
    }
    EXPECT_EQ(stream.next(), std::nullopt);
  }
  EXPECT_EQ(items, (std::vector{1, 2}));
  EXPECT_EQ(total, 3);
}

TEST_P(StreamsBack, write_none_where_the_end_does_not_fit) {
  const auto [awaits, at_once] = GetParam();
  const ScriptedServer server{[at_once = at_once](RawPeer peer) {
    peer.line();
    peer.send(answer(1, at_once ? R"({"return":[],"out":{"total":"x"}})" : "null"));
    peer.line();
  }};
  Client client{server.uri()};
  int total = 7;
  ResultStream<int> stream = client.stream<int>("count", 2, Out{total});
  if (awaits) {
    EXPECT_THROW(client.run(collect(std::move(stream).awaited())), Error);
  } else {
    EXPECT_THROW(static_cast<void>(stream.next()), Error);
  }
  EXPECT_EQ(total, 7);
}

}  // namespace
}  // namespace wirecall::net
