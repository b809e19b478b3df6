// A stream through a broker over real sockets, on each engine: a caller that does not read stops its own.
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <thread>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using BrokerStreams = EngineTest;

constexpr int kItemBytes = 16 * 1024;

std::string item(std::int64_t id, int seq) {
  return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + std::to_string(id) + R"(,"seq":)" +
         std::to_string(seq) + R"(,"value":")" + std::string(kItemBytes, 'x') + "\"}}\n";
}
std::string streaming(int id) {
  return R"({"jsonrpc":"2.0","method":"count","stream":1000000,"id":)" + std::to_string(id) + "}\n";
}

// Sends each stream what it has credit for, the first of them no more than would get its caller cut, and ends the
// second after `items`.
void provide(RawPeer& provider, int items) {
  constexpr int kTooMany = 4000;
  std::map<std::int64_t, std::uint64_t> credit;
  std::map<std::int64_t, int> sent;
  while (sent[1] < items) {
    const Value message = from_json<Value>(provider.line()).value();
    if (const Value* const first = message.find("stream")) {
      credit[message.at("id").as_int()] = first->as_uint();
    } else if (message.at("method").as_string() == "rpc.credit") {
      const Value& params = message.at("params");
      credit[params.at("id").as_int()] += params.at("n").as_uint();
    } else {
      return;
    }
    for (auto& [id, left] : credit) {
      for (const int most = id == 1 ? items : kTooMany; left != 0 && sent[id] < most; --left)
        provider.send(item(id, sent[id]++));
    }
  }
  provider.send("{\"jsonrpc\":\"2.0\",\"result\":null,\"id\":1}\n");
}

TEST_P(BrokerStreams, a_caller_that_does_not_read_is_not_cut_and_another_ones_stream_ends) {
  constexpr int kItems = 500;
  Options small = options(1);
  small.limits.soft_output = 256 * 1024;
  small.limits.hard_output = 2 * 1024 * 1024;
  Broker broker{small};
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  RawPeer provider{endpoint};
  provider.send(R"({"jsonrpc":"2.0","method":"rpc.register","params":["count"],"id":1})"
                "\n");
  EXPECT_NE(provider.line().find("result"), std::string::npos);
  RawPeer idle{endpoint};
  idle.send(streaming(5) + "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ping\",\"id\":1}\n");
  EXPECT_NE(idle.line().find("pong"), std::string::npos) << "so its stream is the provider's first";
  RawPeer caller{endpoint};
  std::thread providing{[&] { provide(provider, kItems); }};
  caller.send(streaming(6));
  for (int seq = 0; seq < kItems; ++seq) {
    const std::string line = caller.line();
    ASSERT_TRUE(
        line.starts_with(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":6,"seq":)" + std::to_string(seq) + ","))
        << line.substr(0, 80);
  }
  EXPECT_EQ(caller.line(), R"({"jsonrpc":"2.0","result":null,"id":6})");
  providing.join();
  // The one that did not read is sent what waits for it, and hears of its provider's end.
  provider.close();
  std::string line = idle.line();
  for (int seq = 0; line.find("rpc.item") != std::string::npos; line = idle.line(), ++seq) {
    ASSERT_TRUE(
        line.starts_with(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":5,"seq":)" + std::to_string(seq) + ","))
        << line.substr(0, 80);
  }
  EXPECT_NE(line.find("-32001"), std::string::npos) << line.substr(0, 80);
}

TEST_P(BrokerStreams, what_stands_before_a_response_in_a_batch_comes_before_it) {
  Broker broker{options(1)};
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  RawPeer provider{endpoint};
  provider.send(R"({"jsonrpc":"2.0","method":"rpc.register","params":["count"],"id":1})"
                "\n");
  EXPECT_NE(provider.line().find("result"), std::string::npos);
  RawPeer caller{endpoint};
  caller.send(streaming(6));
  const std::int64_t id = from_json<Value>(provider.line()).value().at("id").as_int();
  const auto value = [](std::int64_t of, int seq) {
    return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + std::to_string(of) + R"(,"seq":)" +
           std::to_string(seq) + R"(,"value":1}})";
  };
  const auto end = [](std::int64_t of) { return R"({"jsonrpc":"2.0","result":2,"id":)" + std::to_string(of) + "}"; };
  provider.send("[" + value(id, 0) + "," + value(id, 1) + "," + end(id) + "]\n");
  EXPECT_EQ(caller.line(), value(6, 0));
  EXPECT_EQ(caller.line(), value(6, 1));
  EXPECT_EQ(caller.line(), end(6));
}

INSTANTIATE_TEST_SUITE_P(Each, BrokerStreams, kEachEngine, engine_name);

}  // namespace
}  // namespace wirecall::net
