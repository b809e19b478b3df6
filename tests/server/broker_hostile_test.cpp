// Peers of a broker that do harm, over real sockets and on each engine: what they do is theirs alone.
#include <gtest/gtest.h>
#include <string>
#include <thread>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "wirecall/broker.hpp"

namespace wirecall::net {
namespace {

std::string call_of(std::string_view method, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","id":)" + std::to_string(id) + "}\n";
}
std::string id_of(const std::string& request) {
  const std::size_t at = request.rfind(':') + 1;
  return request.substr(at, request.rfind('}') - at);
}
std::string answer_to(const std::string& request, std::string_view result) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{result} + R"(,"id":)" + id_of(request) + "}\n";
}

class HostileAtBroker : public EngineTest {
 protected:
  static RawPeer provide(const Endpoint& endpoint) {
    RawPeer provider{endpoint};
    provider.send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.register\",\"params\":[\"greet\"],\"id\":1}\n");
    EXPECT_EQ(provider.line(), R"({"jsonrpc":"2.0","result":1,"id":1})");
    return provider;
  }
};

TEST_P(HostileAtBroker, what_cannot_be_read_is_answered_with_nothing_of_anybody_elses) {
  Broker broker{options(1)};
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  RawPeer provider = provide(endpoint);
  RawPeer caller{endpoint};
  RawPeer hostile{endpoint};
  constexpr std::string_view kParseError =
      R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})";
  const std::string bad[] = {R"({"jsonrpc":"2.0","method":"greet","id":99,})", R"({"id":99 "jsonrpc")",
                             "{\"jsonrpc\":\"2.0\",\"method\":\"greet\",\"params\":[\"\xff\"],\"id\":99}",
                             R"({"jsonrpc":"2.0","method":"greet","params":["\ud800"],"id":99})"};
  int id = 100;
  for (const std::string& text : bad) {
    caller.send(call_of("greet", ++id));
    const std::string request = provider.line();  // the call is on its way
    hostile.send(text + "\n" + call_of("rpc.ping", 7));
    EXPECT_EQ(hostile.line(), kParseError) << text;
    EXPECT_EQ(hostile.line(), R"({"jsonrpc":"2.0","result":"pong","id":7})") << "and nothing else";
    provider.send(answer_to(request, "\"hello\""));
    EXPECT_EQ(caller.line(), R"({"jsonrpc":"2.0","result":"hello","id":)" + std::to_string(id) + "}");
  }
  // The same of a provider: its caller is told, and it alone.
  caller.send(call_of("greet", 1));
  const std::string request = provider.line();
  provider.send("{\"jsonrpc\":\"2.0\",\"result\":[1,,],\"id\":" + id_of(request) + "}\n");
  EXPECT_EQ(provider.line(), kParseError);
  provider.send(answer_to(request, "2"));
  EXPECT_EQ(caller.line(), R"({"jsonrpc":"2.0","result":2,"id":1})");
  hostile.send(call_of("rpc.ping", 8));
  EXPECT_EQ(hostile.line(), R"({"jsonrpc":"2.0","result":"pong","id":8})");
}

TEST_P(HostileAtBroker, one_that_reads_no_answers_is_cut_and_its_calls_are_given_up) {
  constexpr int kCalls = 2000;
  Options small = options(1);
  small.limits.soft_output = 64 * 1024;
  small.limits.hard_output = 1024 * 1024;
  Broker broker{small};
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  RawPeer provider = provide(endpoint);
  RawPeer hostile{endpoint};
  std::string calls;
  for (int id = 0; id < kCalls; ++id) calls += call_of("greet", id);
  hostile.send(calls);
  const std::string large = '"' + std::string(64 * 1024, 'x') + '"';
  int answered = 0;
  std::string line = provider.line();
  for (; line.find("$/cancelRequest") == std::string::npos; line = provider.line(), ++answered) {
    ASSERT_LT(answered, kCalls) << "far more than what waits for it and the kernel hold";
    ASSERT_TRUE(provider.send(answer_to(line, large)));
  }
  EXPECT_EQ(broker.stats().slow_peers_closed, 1U);
  RawPeer other{endpoint};
  other.send(call_of("greet", 5));
  // Those calls that the provider has been asked and has not looked at come first; an answer to one is dropped.
  std::thread answering{[&] {
    for (std::string next = provider.line(); !next.empty(); next = provider.line()) {
      if (next.find("\"greet\"") != std::string::npos) provider.send(answer_to(next, "5"));
    }
  }};
  EXPECT_EQ(other.line(), R"({"jsonrpc":"2.0","result":5,"id":5})");
  EXPECT_LT(hostile.all().size(), large.size() * static_cast<std::size_t>(kCalls));
  provider.finish();
  answering.join();
}

INSTANTIATE_TEST_SUITE_P(Each, HostileAtBroker, kEachEngine, engine_name);

}  // namespace
}  // namespace wirecall::net
