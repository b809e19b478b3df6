// Client::close and Client::on_wait: what ends a call that a thread is blocked in.
#include <atomic>
#include <gtest/gtest.h>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"
#include "wirecall/error.hpp"

namespace wirecall::net {
namespace {

// Takes calls, and answers none.
void answer_nothing(RawPeer peer) {
  while (!peer.line().empty()) {
  }
}

TEST(ClientClose, ends_the_calls_that_other_threads_are_blocked_in) {
  for (int round = 0; round < 20; ++round) {
    ScriptedServer server{answer_nothing};
    Client client{server.uri()};
    client.connect();
    std::atomic<int> lost{0};
    std::latch begun{3};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        begun.count_down();
        try {
          client.call<int>("wait");
        } catch (const ConnectionError&) {
          ++lost;
        }
      });
    }
    begun.wait();
    client.close();
    client.close();
    threads.clear();
    EXPECT_EQ(lost, 3);
    EXPECT_THROW(client.call<int>("wait"), ConnectionError);
  }
}

TEST(ClientOnWait, ends_a_blocked_call_and_tells_the_server) {
  std::atomic<bool> told{false};
  ScriptedServer server{[&](RawPeer peer) {
    for (std::string line = peer.line(); !line.empty(); line = peer.line()) {
      if (line.find("$/cancelRequest") != std::string::npos) told = true;
    }
  }};
  {
    Client client{server.uri()};
    int asked = 0;
    client.on_wait([&asked] { return ++asked == 3; });
    try {
      client.call<int>("wait");
      ADD_FAILURE() << "it was not ended";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), static_cast<int>(ErrorCode::cancelled));
    }
    EXPECT_EQ(asked, 3);
  }
  server.join();
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace wirecall::net
