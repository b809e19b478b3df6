// SIGTERM to a broker that has much to do: each call that it has taken is answered once, with its own result or an
// error, and the process ends in order.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/broker_tool.hpp"
#include "tests/connection/peer.hpp"

namespace wirecall::cli {
namespace {

using net::RawPeer;

std::string id_of(const std::string& message) {
  const std::size_t at = message.rfind(':') + 1;
  return message.substr(at, message.rfind('}') - at);
}

constexpr int kCallers = 8;
constexpr int kCallsAtOnce = 40;

// Calls until the broker is about to end: so many in one packet, and then their answers. Returns what went wrong.
std::string call_until_the_end(RawPeer& caller, int who, std::atomic<int>& rounds) {
  for (int round = 0;; ++round) {
    std::string calls;
    std::set<std::string> awaited;
    for (int i = 0; i < kCallsAtOnce; ++i) {
      const std::string id = std::to_string((who * 1'000'000 + round) * kCallsAtOnce + i);
      calls += R"({"jsonrpc":"2.0","method":"twice","params":[)" + id + R"(],"id":)" + id + "}\n";
      awaited.insert(id);
    }
    if (!caller.send(calls)) return {};
    bool ends = false;
    while (!awaited.empty()) {
      const std::string line = caller.line();
      // What nothing has been answered of came behind the last answer, and was not looked at.
      if (line.empty()) return awaited.size() == kCallsAtOnce ? "" : "an answer is missing";
      const std::string id = id_of(line);
      if (awaited.erase(id) != 1) return "not awaited: " + line;
      const bool refused = line.find("\"code\":-32009") != std::string::npos;
      if (!refused && line != R"({"jsonrpc":"2.0","result":)" + id + R"(,"id":)" + id + "}") return line;
      ends = ends || refused;
    }
    ++rounds;
    if (ends) return {};
  }
}

class BrokerSignal : public BrokerTool {};

TEST_F(BrokerSignal, SigtermUnderLoadLeavesNoCallWithoutAnAnswer) {
  const Endpoint endpoint{url_};
  RawPeer provider{endpoint};
  provider.send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.register\",\"params\":[\"twice\"],\"id\":1}\n");
  EXPECT_NE(provider.line().find("\"result\":1"), std::string::npos);
  std::thread providing{[&] {
    for (std::string request = provider.line(); !request.empty(); request = provider.line()) {
      const std::size_t at = request.find('[') + 1;
      if (at == 0) continue;
      provider.send(R"({"jsonrpc":"2.0","result":)" + request.substr(at, request.find(']') - at) + R"(,"id":)" +
                    id_of(request) + "}\n");
    }
    provider.close();
  }};
  std::atomic<int> rounds = 0;
  std::vector<std::string> faults(kCallers);
  std::vector<std::thread> calling;
  for (int who = 0; who < kCallers; ++who) {
    calling.emplace_back([&, who] {
      RawPeer caller{endpoint};
      faults[static_cast<std::size_t>(who)] = call_until_the_end(caller, who, rounds);
    });
  }
  EXPECT_TRUE(net::comes_true([&] { return rounds > 3 * kCallers; }));
  server_.signal(SIGTERM);
  for (std::thread& one : calling) one.join();
  EXPECT_EQ(server_.wait(), 0);
  providing.join();
  for (const std::string& fault : faults) EXPECT_EQ(fault, "");
}

// What io_uring waited for is given back a moment after the process: whoever starts at once waits for that.
TEST(BrokerKilled, ABrokerStartsAtOnceWhereOneWasKilled) {
  for (const char* const engine : {"auto", "epoll"}) {
    std::string port = "0";
    for (int round = 0; round < 8; ++round) {
      Process broker{{"serve", "--port", port, "--engine", engine, "--threads", round % 2 == 0 ? "1" : "4"}};
      port = std::to_string(port_of(broker));
      ASSERT_NE(port, "0") << engine << ", round " << round;
      RawPeer caller{Endpoint{"tcp://127.0.0.1:" + port}};
      caller.send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ping\",\"id\":1}\n");
      EXPECT_EQ(caller.line(), R"({"jsonrpc":"2.0","result":"pong","id":1})");
      broker.signal(SIGKILL);
      EXPECT_EQ(broker.wait(), -SIGKILL);
    }
  }
}

}  // namespace
}  // namespace wirecall::cli
