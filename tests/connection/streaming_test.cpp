// Streams and cancelling from end to end: items that come as they are made, a client that stops reading, and what that
// costs the server and everybody else.
#include <atomic>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "base/sanitizers.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

constexpr bool kMemoryIsOurs = !kAddressSanitizer && !kThreadSanitizer;

constexpr std::size_t kMiB = 1024 * 1024;

std::size_t resident_bytes() {
  std::size_t pages = 0;
  std::size_t resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu %zu", &pages, &resident) != 2) ADD_FAILURE();
  if (file != nullptr) std::fclose(file);
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

class Streaming : public testing::Test {
 protected:
  Streaming() {
    server.method("count",
                  [this](long n) -> Stream<long> {
                    struct Ending {
                      std::atomic<int>& ended;
                      ~Ending() { ++ended; }
                    } ending{ended};
                    for (long i = 0; i < n; ++i) {
                      made = i + 1;
                      co_yield i;
                    }
                  },
                  {"n"});
    server.method("made", [this] { return made.load(); });
    server.method("ended", [this] { return ended.load(); });
  }

  static long ask(RawPeer& peer, std::string_view method) {
    peer.send(R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","id":0})");
    const std::string line = peer.line();
    const std::string head = R"({"jsonrpc":"2.0","result":)";
    EXPECT_TRUE(line.starts_with(head)) << line;
    return std::stol("0" + line.substr(head.size()));
  }
  // Each question takes the server a turn at least: a stream that makes nothing in many of them rests.
  static long made_at_rest(RawPeer& peer) {
    long before = -1;
    for (int same = 0; same < 100;) {
      const long now = ask(peer, "made");
      same = now == before ? same + 1 : 0;
      before = now;
    }
    return before;
  }

  Server server;
  Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::atomic<long> made{0};
  std::atomic<int> ended{0};
};

TEST_F(Streaming, items_come_with_credit_and_the_response_behind_them) {
  const RunningServer running{server};
  RawPeer peer{endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":[3],"stream":2,"id":"s"})");
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":"s","seq":0,"value":0}})");
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":"s","seq":1,"value":1}})");
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":"pong","id":1})") << "there is no credit";
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.credit","params":{"id":"s","n":1}})");
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":"s","seq":2,"value":2}})");
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":null,"id":"s"})");
}

TEST_F(Streaming, a_stream_whose_client_stops_reading_rests_and_costs_little) {
  const RunningServer running{server};
  RawPeer other{endpoint};
  static_cast<void>(made_at_rest(other));
  const std::size_t before = resident_bytes();
  RawPeer peer{endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":{"n":1000000000,"partialResultToken":"t"},"id":1})");
  const long rested = made_at_rest(other);
  EXPECT_GT(rested, 1000);
  EXPECT_LT(rested, 1'000'000);
  if (kMemoryIsOurs) {
    EXPECT_LT(resident_bytes(), before + Limits{}.soft_output + kMiB);
  }

  // It goes on when it is read again, without a gap.
  for (long i = 0; i < rested + 1000; ++i) {
    ASSERT_EQ(peer.line(),
              R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":"t","value":)" + std::to_string(i) + "}}");
  }
  EXPECT_EQ(ask(other, "ended"), 0);
  // And a cancel is read although nothing that is sent is.
  static_cast<void>(made_at_rest(other));
  peer.send(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})");
  while (ask(other, "ended") == 0) {
  }
  std::string line;
  do {
    line = peer.line();
  } while (line.find("$/progress") != line.npos);
  EXPECT_EQ(line, R"({"jsonrpc":"2.0","error":{"code":-32800,"message":"Cancelled","data":{"reason":)"
                  R"("the call was stopped","origin":"local","delivered":"maybe"}},"id":1})");
}

TEST_F(Streaming, credit_bounds_what_a_client_that_stops_reading_costs) {
  const RunningServer running{server};
  RawPeer other{endpoint};
  static_cast<void>(made_at_rest(other));
  const std::size_t before = resident_bytes();
  RawPeer peer{endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":[1000000000],"stream":1000,"id":1})");
  EXPECT_EQ(made_at_rest(other), 1001);
  if (kMemoryIsOurs) {
    EXPECT_LT(resident_bytes(), before + kMiB);
  }
}

TEST_F(Streaming, a_client_that_goes_ends_its_streams) {
  const RunningServer running{server};
  RawPeer other{endpoint};
  {
    RawPeer peer{endpoint};
    peer.send(R"({"jsonrpc":"2.0","method":"count","params":[1000000000],"stream":1,"id":1})");
    peer.line();
    peer.reset();
  }
  while (ask(other, "ended") == 0) {
  }
}

// Who has ended what it sends gives no more credit: what it was given goes out, and then the connection ends.
TEST_F(Streaming, a_client_that_ends_its_side_gets_what_it_gave_credit_for) {
  const RunningServer running{server};
  RawPeer peer{endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":[5],"stream":2,"id":1})"
            R"({"jsonrpc":"2.0","method":"count","params":[2],"stream":2,"id":2})");
  peer.finish();
  const std::string all = peer.all();
  EXPECT_NE(all.find(R"("id":1,"seq":1,"value":1)"), all.npos) << all;
  EXPECT_EQ(all.find(R"("id":1,"seq":2)"), all.npos) << all;
  EXPECT_NE(all.find(R"("error":{"code":-32800)"), all.npos) << all;
  EXPECT_NE(all.find(R"({"jsonrpc":"2.0","result":null,"id":2})"), all.npos) << all;
  EXPECT_EQ(ended, 2);
}

TEST_F(Streaming, a_thousand_streams_of_one_client_share_its_room) {
  const RunningServer running{server};
  RawPeer peer{endpoint};
  for (int id = 0; id < 1000; ++id) {
    peer.send(R"({"jsonrpc":"2.0","method":"count","params":[300],"stream":300,"id":)" + std::to_string(id) + "}");
  }
  int responses = 0;
  int items = 0;
  while (responses < 1000) {
    const std::string line = peer.line();
    ASSERT_FALSE(line.empty());
    ++(line.find("rpc.item") != line.npos ? items : responses);
  }
  EXPECT_EQ(items, 300'000);
}

}  // namespace
}  // namespace wirecall::net
