// Clients that call by HTTP over real sockets: a server of ours in each of the four ways, from many threads and over
// many connections, and a scripted peer.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <expected>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using Result = std::expected<int, Error>;

std::string http_of(const std::string& tcp, std::string_view path = "/rpc") {
  return "http" + tcp.substr(3) + std::string{path};
}

class ClientHttpServer : public testing::Test {
 protected:
  ClientHttpServer() {
    server_.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
    server_.method("echo", [](const std::string& text) { return text; });
    server_.method("fail", []() -> int { throw Error{-7, "no", R"({"why":[1,2]})"}; });
    server_.method("note", [this] { ++notes_; });
    server_.method("notes", [this] { return notes_; });
    server_.method("count", [](int n) -> Stream<int> {
      for (int i = 0; i < n; ++i) co_yield i;
    });
    server_.method("hold", [this] { return hold(); });
    server_.method("cancelled", [this] { return cancelled_.load(); });
    uri_ = http_of(server_.listen("tcp://127.0.0.1:0").uri());
    running_.emplace(server_);
  }
  // Ends when its caller has gone.
  Task<int> hold() {
    struct Gone {
      std::atomic<int>& count;
      ~Gone() { ++count; }
    };
    const Gone gone{cancelled_};
    Completion<int> never;
    co_return co_await never;
  }

  int notes_ = 0;
  std::atomic<int> cancelled_ = 0;
  Server server_;
  std::string uri_;
  std::optional<RunningServer> running_;
};

TEST_F(ClientHttpServer, is_called_in_each_of_the_four_ways) {
  Client client{uri_};
  client.connect();
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  EXPECT_EQ(client.call<int>("subtract", arg("subtrahend") = 23, arg("minuend") = 42), 19);
  EXPECT_EQ(client.request<int>("subtract", 42, 23).future().get(), 19);
  std::promise<Result> called_back;
  client.request<int>("subtract", 42, 23).then([&](Result result) { called_back.set_value(std::move(result)); });
  EXPECT_EQ(called_back.get_future().get(), 19);
  const auto awaited = [](Client& of) -> Task<int> { co_return co_await of.request<int>("subtract", 42, 23); };
  EXPECT_EQ(client.run(awaited(client)), 19);
}

TEST_F(ClientHttpServer, answers_with_errors_as_it_does_elsewhere) {
  Client client{uri_};
  const Result failed = client.try_call<int>("fail");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code(), -7);
  EXPECT_EQ(failed.error().data(), R"({"why":[1,2]})");
  EXPECT_EQ(client.try_call<int>("subtract", "x").error().code(), -32602);
  EXPECT_EQ(client.try_call<int>("nowhere").error().code(), -32601);
  EXPECT_EQ(client.try_call<int>("rpc.hello").error().code(), -32600);
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

TEST_F(ClientHttpServer, takes_texts_of_any_size) {
  Client client{uri_};
  for (const std::size_t size : {0U, 1U, 61U, 62U, 963U, 100'000U, 3'000'000U}) {
    const std::string text(size, 'x');
    EXPECT_EQ(client.call<std::string>("echo", text), text) << size;
  }
}

TEST_F(ClientHttpServer, batches_notifications_and_streams_go_that_way) {
  Client client{uri_};
  client.notify("note");
  EXPECT_EQ(client.call<int>("notes"), 1);
  const auto [a, b] = client.batch().call<int>("subtract", 42, 23).notify("note").call<std::string>("echo", "x").send();
  EXPECT_EQ(a, 19);
  EXPECT_EQ(b, "x");
  EXPECT_NO_THROW(std::ignore = client.batch().notify("note").notify("note").send());
  EXPECT_EQ(client.call<int>("notes"), 4);
  std::vector<int> items;
  for (const int item : client.stream<int>("count", 5)) items.push_back(item);
  EXPECT_EQ(items, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_F(ClientHttpServer, whatever_status_it_gives_notifications_they_are_sent) {
  for (const std::uint16_t status : {200, 202, 204}) {
    Options options;
    options.http_notification_status = status;
    Server server{options};
    int notes = 0;
    server.method("note", [&] { ++notes; });
    server.method("notes", [&] { return notes; });
    Client client{http_of(server.listen("tcp://127.0.0.1:0").uri())};
    const RunningServer running{server};
    client.notify("note");
    EXPECT_EQ(client.call<int>("notes"), 1);
  }
}

TEST_F(ClientHttpServer, many_calls_at_once_share_the_connections_that_there_may_be) {
  for (const std::uint32_t connections : {1U, 4U, 16U}) {
    ClientOptions options;
    options.connections = connections;
    Client client{uri_, options};
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&client, &right, t] {
        for (int i = 0; i < 100; ++i) {
          const int value = t * 1000 + i;
          if (i % 2 == 0) {
            right += client.try_call<int>("subtract", value, 1) == value - 1;
          } else {
            right += client.request<int>("subtract", value, 1).future().get() == value - 1;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 800);

    const auto one = [](Client& of, int value) -> Task<void> {
      EXPECT_EQ(co_await of.request<int>("subtract", value, 1), value - 1);
    };
    std::vector<Task<void>> calls;
    for (int i = 0; i < 500; ++i) calls.push_back(one(client, i));
    client.run(when_all(std::move(calls)));
    EXPECT_EQ(client.responses_dropped(), 0U);
  }
}

TEST_F(ClientHttpServer, a_call_whose_time_is_up_is_stopped_there_and_the_client_goes_on) {
  Client client{uri_};
  const Result late = client.request<int>("hold").timeout(20ms).try_call();
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code(), -32002);
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  EXPECT_TRUE(comes_true([&] { return client.call<int>("cancelled") == 1; }));

  std::promise<Result> ended;
  const CallHandle handle =
      client.request<int>("hold").then([&](Result result) { ended.set_value(std::move(result)); });
  std::future<Result> future = ended.get_future();
  EXPECT_TRUE(handle.cancel());
  EXPECT_EQ(future.get().error().code(), -32800);
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

TEST_F(ClientHttpServer, that_goes_is_replaced_by_another_of_the_endpoints) {
  std::optional<Server> first{std::in_place};
  first->method("name", [] { return "first"; });
  Server second;
  second.method("name", [] { return "second"; });
  Client client{std::vector{Endpoint{http_of(first->listen("tcp://127.0.0.1:0").uri())},
                            Endpoint{http_of(second.listen("tcp://127.0.0.1:0").uri(), "/")}}};
  const RunningServer running{second};
  {
    const RunningServer for_now{*first};
    EXPECT_EQ(client.call<std::string>("name"), "first");
  }
  first.reset();
  EXPECT_EQ(client.call<std::string>("name"), "second");
}

TEST_F(ClientHttpServer, a_client_of_http_and_one_of_plain_json_get_the_same_answers) {
  Client plain{"tcp" + uri_.substr(4, uri_.rfind('/') - 4)};
  Client http{uri_};
  for (const auto& [method, params] : std::vector<std::pair<std::string, std::string>>{
           {"subtract", "[42,23]"}, {"subtract", "{}"}, {"echo", R"(["\u20ac"])"}, {"fail", ""}, {"subtrac", "[1]"}}) {
    const auto a = plain.call_for_response(method, params);
    const auto b = http.call_for_response(method, params);
    ASSERT_TRUE(a.has_value() && b.has_value());
    EXPECT_EQ(a->json, b->json);
  }
}

// Reads a POST and returns the response that a call in it expects.
std::string answer_to_post(RawPeer& peer) {
  std::size_t length = 0;
  for (std::string line = peer.line(); !line.empty() && line != "\r"; line = peer.line()) {
    constexpr std::string_view kName = "Content-Length: ";
    if (line.starts_with(kName)) length = std::stoul(line.substr(kName.size()));
  }
  const std::string body = peer.take(length);
  const std::size_t at = body.find("\"id\":") + 5;
  return R"({"jsonrpc":"2.0","result":19,"id":)" + body.substr(at);
}

TEST(ClientHttpPeer, a_server_that_closes_behind_each_response_is_connected_to_for_each_call) {
  const ScriptedServer server{3, [](RawPeer peer) {
                                peer.send("HTTP/1.0 200 OK\r\n\r\n" + answer_to_post(peer));
                                peer.finish();
                                peer.all();
                              }};
  Client client{http_of(server.uri())};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.try_call<int>("a"), 19);
}

TEST(ClientHttpPeer, a_connection_that_is_closed_between_calls_costs_none) {
  std::atomic<int> closed = 0;
  const ScriptedServer server{
      3, [&](RawPeer peer) {
        const std::string body = answer_to_post(peer);
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
        peer.close();
        ++closed;
      }};
  Client client{http_of(server.uri())};
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(client.try_call<int>("a"), 19);
    ASSERT_TRUE(comes_true([&] { return closed == i; }));
  }
}

}  // namespace
}  // namespace wirecall::net
