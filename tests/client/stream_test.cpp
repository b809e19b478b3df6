// Streams of results at the client's end, against scripted servers that say exactly what comes when.
#include <chrono>
#include <expected>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/world.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"
#include "wirecall/result_stream.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

std::string item(int id, int seq, std::string_view value) {
  return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + std::to_string(id) + R"(,"seq":)" +
         std::to_string(seq) + R"(,"value":)" + std::string{value} + "}}\n";
}
std::string result(int id, std::string_view value = "null") {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::to_string(id) + "}\n";
}
std::string credit(int id, int items) {
  return R"({"jsonrpc":"2.0","method":"rpc.credit","params":{"id":)" + std::to_string(id) + R"(,"n":)" +
         std::to_string(items) + "}}";
}

Task<std::vector<int>> collect(Stream<int> items) {
  std::vector<int> all;
  while (const std::optional<int> value = co_await items.next()) all.push_back(*value);
  co_return all;
}

// Both ways to take items: blocking, and awaited.
class ClientStreams : public testing::TestWithParam<bool> {
 protected:
  static std::vector<int> all(Client& client, ResultStream<int> stream) {
    if (GetParam()) return client.run(collect(std::move(stream).awaited()));
    std::vector<int> values;
    for (const int value : stream) values.push_back(value);
    return values;
  }
};

INSTANTIATE_TEST_SUITE_P(Each, ClientStreams, testing::Bool());

TEST_P(ClientStreams, of_a_method_that_has_one_result_give_that) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(result(1, "5"));
    peer.line();
    peer.send(result(2, R"("five")"));
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(all(client, client.stream<int>("subtract", 8, 3)), std::vector{5});
  EXPECT_THROW(static_cast<void>(all(client, client.stream<int>("name", 5))), Error);
}

TEST_P(ClientStreams, give_the_items_in_their_order_and_then_end) {
  const ScriptedServer server{[](RawPeer peer) {
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"count","params":[3],"id":1,"stream":64})");
    peer.send(item(1, 0, "10") + item(1, 1, "11"));
    peer.send(item(1, 2, "12") + result(1));
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"count","id":2,"stream":64})");
    peer.send(result(2));
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(all(client, client.stream<int>("count", 3)), (std::vector{10, 11, 12}));
  EXPECT_EQ(all(client, client.stream<int>("count")), std::vector<int>{});
}

TEST_P(ClientStreams, give_credit_as_items_are_taken) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    int sent = 0;
    const auto send = [&](int items) {
      for (int i = 0; i < items; ++i, ++sent) peer.send(item(1, sent, std::to_string(sent)));
    };
    send(static_cast<int>(kStreamCredit));
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(peer.line(), credit(1, kStreamCredit / 2));
      send(static_cast<int>(kStreamCredit / 2));
    }
    peer.send(result(1));
    peer.all();
  }};
  Client client{server.uri()};
  const std::vector<int> values = all(client, client.stream<int>("count"));
  ASSERT_EQ(values.size(), 3 * kStreamCredit);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<int>(i));
}

TEST_P(ClientStreams, end_early_with_an_error) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(item(1, 0, "1") + R"({"jsonrpc":"2.0","error":{"code":7,"message":"no more"},"id":1})" + "\n");
    peer.line();
    peer.send(item(2, 0, "\"text\""));
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}})");
    peer.line();
  }};
  Client client{server.uri()};
  try {
    static_cast<void>(all(client, client.stream<int>("count")));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), 7);
  }
  try {
    static_cast<void>(all(client, client.stream<int>("count")));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32603);
  }
}

TEST_P(ClientStreams, of_a_server_that_gathers_give_the_same_items) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(result(1, "[1, 2,3]"));
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(all(client, client.stream<int>("count")), (std::vector{1, 2, 3}));
}

TEST_P(ClientStreams, that_get_more_than_they_gave_credit_for_or_less_than_was_sent_fail) {
  for (const bool flood : {true, false}) {
    // A coroutine takes each item as it comes, and so gives credit for all of them.
    if (flood && GetParam()) continue;
    const ScriptedServer server{[flood](RawPeer peer) {
      peer.line();
      const int items = flood ? 3 * static_cast<int>(kStreamCredit) : 2;
      std::string text;
      for (int seq = 0; seq < items; ++seq) text += item(1, flood ? seq : 2 * seq, "1");
      peer.send(text);
      peer.all();
    }};
    Client client{server.uri()};
    try {
      static_cast<void>(all(client, client.stream<int>("count")));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), -32600) << error.message();
    }
  }
}

TEST_P(ClientStreams, end_with_their_connection) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(item(1, 0, "1"));
  }};
  Client client{server.uri()};
  EXPECT_THROW(static_cast<void>(all(client, client.stream<int>("count"))), ConnectionError);
}

TEST(ClientStream, that_nothing_comes_on_times_out_and_is_given_up) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(item(1, 0, "1"));
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})");
    peer.line();
  }};
  ClientOptions options;
  options.call_timeout_ms = 400;
  Client client{server.uri(), options};
  ResultStream<int> stream = client.stream<int>("count");
  EXPECT_EQ(stream.next(), 1);
  try {
    static_cast<void>(stream.next());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32002);
  }
}

TEST(ClientStream, that_is_dropped_ends_the_call) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(item(1, 0, "1"));
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})");
    peer.send(item(1, 1, "2"));
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"next","id":2})");
    peer.send(result(2, "19"));
    peer.line();
  }};
  Client client{server.uri()};
  {
    ResultStream<int> stream = client.stream<int>("count");
    EXPECT_EQ(stream.next(), 1);
  }
  EXPECT_EQ(client.call<int>("next"), 19);
  EXPECT_EQ(client.responses_dropped(), 1U);
}

TEST(ClientStream, of_which_the_first_item_was_blocked_for_may_be_awaited) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(item(1, 0, "1"));
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"next","id":2})");
    peer.send(item(1, 1, "2") + result(2, "19") + result(1));
    peer.line();
  }};
  Client client{server.uri()};
  ResultStream<int> stream = client.stream<int>("count");
  EXPECT_EQ(stream.next(), 1);
  const auto call = [](Client& to) -> Task<int> { co_return co_await to.request<int>("next"); };
  const auto rest = [&](Task<std::vector<int>> all, Task<int> next) -> Task<std::vector<int>> {
    auto [items, number] = co_await when_all(std::move(all), std::move(next));
    EXPECT_EQ(number, 19);
    co_return std::move(items);
  };
  EXPECT_EQ(client.run(rest(collect(std::move(stream).awaited()), call(client))), std::vector{2});
}

// Inside a callback nothing can be waited for; what has come already need not be.
TEST(ClientStream, gives_a_callback_what_has_come_and_then_its_end_or_the_refusal) {
  for (const bool ends : {true, false}) {
    World world{1};
    world.serve = [&] {
      for (std::string line = world.line(); !line.empty(); line = world.line()) {
        if (line.find("count") != std::string::npos) {
          world.peers.back()->send(item(1, 0, "1"));
        } else if (line.find("next") != std::string::npos) {
          world.peers.back()->send(item(1, 1, "2") + item(1, 2, "3") + (ends ? result(1) : "") + result(2, "19"));
        }
      }
    };
    Client& client = *world.client;
    ResultStream<int> stream = client.stream<int>("count");
    EXPECT_EQ(stream.next(), 1);
    std::vector<int> taken;
    std::string refusal;
    bool called_back = false;
    const auto read_in_callback = [&]() -> Task<void> {
      client.request<int>("next").then([&](const std::expected<int, Error>& next) {
        EXPECT_EQ(next, 19);
        try {
          while (const std::optional<int> value = stream.next()) taken.push_back(*value);
        } catch (const LocalError& error) {
          refusal = error.message();
        }
        called_back = true;
      });
      while (!called_back) co_await sleep_for(client.scheduler(), std::chrono::milliseconds{1});
    };
    client.run(read_in_callback());
    EXPECT_EQ(taken, (std::vector{2, 3}));
    EXPECT_EQ(refusal.find("await it") == std::string::npos, ends) << refusal;
  }
}

TEST(ClientStream, never_begun_makes_no_call) {
  const ScriptedServer server{[](RawPeer peer) {
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"next","id":1})");
    peer.send(result(1, "19"));
    peer.line();
  }};
  Client client{server.uri()};
  static_cast<void>(client.stream<int>("count"));
  EXPECT_EQ(client.call<int>("next"), 19);
}

TEST(ClientStream, of_a_coroutine_that_is_dropped_ends_the_call) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(item(1, 0, "1"));
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"next","id":2})");
    peer.send(result(2, "19"));
    peer.line();
  }};
  Client client{server.uri()};
  const auto first = [](Client& from) -> Task<int> {
    {
      Stream<int> items = from.stream<int>("count").awaited();
      EXPECT_EQ(co_await items.next(), 1);
    }
    co_return co_await from.request<int>("next");
  };
  EXPECT_EQ(client.run(first(client)), 19);
}

}  // namespace
}  // namespace wirecall::net
