// A broker over real sockets, on each engine, with one thread and with several: who provides, who calls, over which
// protocols, and what happens when one of them leaves or the broker ends.
#include "wirecall/broker.hpp"

#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"

namespace wirecall::net {
namespace {

std::string line_of(std::string_view method, std::string_view params, std::string_view id) {
  std::string text = R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params};
  if (!id.empty()) text += R"(,"id":)" + std::string{id};
  return text + "}\n";
}
std::string result_of(std::string_view result, std::string_view id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{result} + R"(,"id":)" + std::string{id} + "}";
}
std::string id_of(const std::string& request) {
  const std::size_t at = request.rfind(":") + 1;
  return request.substr(at, request.rfind('}') - at);
}

struct Way {
  Engine engine;
  std::uint32_t threads;
};

class BrokerTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    skip_where_refused(GetParam().engine);
    if (IsSkipped()) return;
    broker_.emplace(options());
    broker_->method("own", [] { return 1; });
    endpoint_.emplace(broker_->listen("tcp://127.0.0.1:0"));
    running_.emplace(*broker_);
  }

  static Options options() {
    Options given = threads(GetParam().threads);
    given.engine = GetParam().engine;
    return given;
  }
  RawPeer connect() { return RawPeer{*endpoint_}; }
  RawPeer provide(std::string_view method, std::string_view terms = {}) {
    RawPeer provider = connect();
    provider.send(
        line_of("rpc.register", R"({"method":")" + std::string{method} + '"' + std::string{terms} + "}", "1"));
    EXPECT_EQ(provider.line(), result_of("1", "1"));
    return provider;
  }
  // The provider answers its next request.
  static void answer(RawPeer& provider, std::string_view result) {
    const std::string request = provider.line();
    provider.send(result_of(result, id_of(request)) + "\n");
  }
  void stop() { running_->stop(); }

  std::optional<Broker> broker_;
  std::optional<Endpoint> endpoint_;
  std::optional<RunningServer> running_;
};

TEST_P(BrokerTest, counts_what_each_connection_has_brought_and_been_sent) {
  const auto begun = std::chrono::steady_clock::now();
  RawPeer provider = provide("add");
  RawPeer caller = connect();
  const std::string call = line_of("add", "[1]", "1");
  caller.send(call);
  answer(provider, "2");
  EXPECT_EQ(caller.line(), result_of("2", "1"));
  caller.send(line_of("rpc.clients", "[]", "2"));
  const std::string clients = caller.line();
  const auto number = [&](const std::string& name) {
    const std::string key = '"' + name + "\":";
    return std::stoul(clients.substr(clients.find(key) + key.size()));
  };
  EXPECT_EQ(number("bytes_in"),
            line_of("rpc.register", R"({"method":"add"})", "1").size() + result_of("2", "0").size() + 1);
  EXPECT_GT(number("bytes_out"), call.size());
  const auto passed = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  EXPECT_LE(number("silent_ms"), static_cast<std::size_t>(passed.count()));
  EXPECT_EQ(clients.find("\"name\""), clients.rfind("\"name\"")) << "one that only calls is not listed";
}

TEST_P(BrokerTest, a_call_goes_to_its_provider_and_back) {
  RawPeer provider = provide("greet");
  RawPeer caller = connect();
  caller.send(line_of("greet", R"({"name":"Ada"})", R"("x")"));
  answer(provider, R"("Hello")");
  EXPECT_EQ(caller.line(), result_of(R"("Hello")", R"("x")"));
  caller.send(line_of("own", "[]", "2"));
  EXPECT_EQ(caller.line(), result_of("1", "2"));
}

TEST_P(BrokerTest, many_calls_on_their_way_at_once_each_come_back_to_their_own_caller) {
  RawPeer provider = provide("twice");
  constexpr int kCallers = 8;
  constexpr int kCalls = 200;
  std::vector<RawPeer> callers;
  for (int i = 0; i < kCallers; ++i) callers.push_back(connect());
  for (int i = 0; i < kCallers; ++i) {
    std::string text;
    for (int k = 0; k < kCalls; ++k)
      text += line_of("twice", "[" + std::to_string(i * kCalls + k) + "]", std::to_string(k));
    callers[static_cast<std::size_t>(i)].send(text);
  }
  std::string answers;
  for (int i = 0; i < kCallers * kCalls; ++i) {
    const std::string request = provider.line();
    const std::size_t at = request.find('[') + 1;
    answers += result_of(request.substr(at, request.find(']') - at), id_of(request)) + "\n";
  }
  provider.send(answers);
  for (int i = 0; i < kCallers; ++i) {
    for (int k = 0; k < kCalls; ++k)
      ASSERT_EQ(callers[static_cast<std::size_t>(i)].line(),
                result_of(std::to_string(i * kCalls + k), std::to_string(k)));
  }
}

TEST_P(BrokerTest, callers_by_http_and_behind_headers_reach_a_provider_that_speaks_lines) {
  RawPeer provider = provide("greet");
  RawPeer http = connect();
  const std::string body = R"({"jsonrpc":"2.0","method":"greet","id":7})";
  http.send("POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
            body);
  answer(provider, "3");
  const std::string expected = result_of("3", "7");
  EXPECT_EQ(http.take(17), "HTTP/1.1 200 OK\r\n");
  std::string head;
  while (!head.ends_with("\r\n\r\n")) head += http.take(1);
  EXPECT_EQ(http.take(expected.size()), expected);

  RawPeer framed = connect();
  framed.send("Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  answer(provider, "4");
  const std::string reply = result_of("4", "7");
  EXPECT_EQ(framed.take(reply.size() + 22), "Content-Length: " + std::to_string(reply.size()) + "\r\n\r\n" + reply);
}

TEST_P(BrokerTest, events_come_by_http_until_the_broker_ends) {
  RawPeer http = connect();
  http.send("GET /events?topic=a.* HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::string head;
  while (!head.ends_with("\r\n\r\n")) head += http.take(1);
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
  EXPECT_EQ(http.line(), "retry: 3000");
  EXPECT_TRUE(http.line().ends_with("-0"));
  EXPECT_EQ(http.line(), "");
  RawPeer publisher = connect();
  publisher.send(line_of("rpc.publish", R"({"topic":"a.b","params":[7]})", "1"));
  EXPECT_EQ(publisher.line(), result_of("1", "1"));
  EXPECT_EQ(http.line(), "event: a.b");
  EXPECT_EQ(http.line(), R"(data: {"jsonrpc":"2.0","method":"a.b","params":[7]})");
  EXPECT_EQ(http.line(), "");
  publisher.close();
  std::thread stopping{[&] { stop(); }};
  EXPECT_EQ(http.all(), "");
  http.close();
  stopping.join();
}

TEST_P(BrokerTest, a_request_of_megabytes_passes_as_it_is) {
  RawPeer provider = provide("echo");
  RawPeer caller = connect();
  const std::string text = '"' + std::string(3'000'000, 'x') + '"';
  std::thread sender{[&] { caller.send(line_of("echo", "[" + text + "]", "1")); }};
  const std::string request = provider.line();
  EXPECT_EQ(request, line_of("echo", "[" + text + "]", id_of(request)).substr(0, request.size()));
  sender.join();
  std::thread answering{[&] { provider.send(result_of(text, id_of(request)) + "\n"); }};
  EXPECT_EQ(caller.line(), result_of(text, "1"));
  answering.join();
}

TEST_P(BrokerTest, a_provider_that_is_lost_ends_its_calls_at_once) {
  RawPeer provider = provide("greet");
  RawPeer caller = connect();
  caller.send(line_of("greet", "[]", "1") + line_of("greet", "[]", "2"));
  static_cast<void>(provider.line());
  provider.reset();
  EXPECT_NE(caller.line().find(R"("code":-32001)"), std::string::npos);
  EXPECT_NE(caller.line().find(R"("code":-32001)"), std::string::npos);
  caller.send(line_of("greet", "[]", "3"));
  EXPECT_NE(caller.line().find(R"("code":-32601)"), std::string::npos);
}

TEST_P(BrokerTest, a_caller_that_is_lost_has_its_calls_given_up) {
  RawPeer provider = provide("greet");
  RawPeer caller = connect();
  caller.send(line_of("greet", "[]", "1"));
  const std::string request = provider.line();
  caller.reset();
  EXPECT_EQ(provider.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)" + id_of(request) + "}}");
}

TEST_P(BrokerTest, a_caller_that_says_nothing_more_is_answered_all_the_same) {
  RawPeer provider = provide("greet");
  RawPeer caller = connect();
  caller.send(line_of("greet", "[]", "1"));
  caller.finish();
  answer(provider, "5");
  EXPECT_EQ(caller.all(), result_of("5", "1") + "\n");
}

TEST_P(BrokerTest, what_is_on_its_way_is_answered_when_the_broker_ends) {
  RawPeer provider = provide("greet");
  RawPeer caller = connect();
  caller.send(line_of("greet", "[]", "1"));
  const std::string request = provider.line();
  broker_->stop();
  // New calls are refused from some moment on, and the one before is waited for.
  std::string refusal;
  for (int id = 2; refusal.empty() || refusal.find("-32009") == std::string::npos; ++id) {
    caller.send(line_of("own", "[]", std::to_string(id)));
    refusal = caller.line();
  }
  provider.send(result_of("5", id_of(request)) + "\n");
  EXPECT_NE(caller.all().find(result_of("5", "1")), std::string::npos);
  running_->join();
}

TEST_P(BrokerTest, a_provider_does_not_count_as_idle) {
  Options quick = options();
  quick.limits.keepalive_timeout_ms = 20;
  Broker broker{quick};
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  RawPeer provider{endpoint};
  provider.send(line_of("rpc.register", R"(["greet"])", "1"));
  EXPECT_EQ(provider.line(), result_of("1", "1"));
  // Three others one after the other are closed for being idle, and the provider is still there.
  for (int i = 0; i < 3; ++i) {
    RawPeer idle{endpoint};
    idle.send(line_of("rpc.ping", "[]", ""));
    EXPECT_EQ(idle.all(), "");
  }
  RawPeer caller{endpoint};
  caller.send(line_of("greet", "[]", "1"));
  answer(provider, "5");
  EXPECT_EQ(caller.line(), result_of("5", "1"));
}

INSTANTIATE_TEST_SUITE_P(Each, BrokerTest,
                         testing::Values(Way{Engine::epoll, 1}, Way{Engine::uring, 1}, Way{Engine::epoll, 3},
                                         Way{Engine::uring, 3}),
                         [](const auto& info) {
                           return std::string{info.param.engine == Engine::epoll ? "epoll" : "uring"} +
                                  std::to_string(info.param.threads);
                         });

}  // namespace
}  // namespace wirecall::net
