// What a long stream costs the process that serves it, on each engine: the demo server as a user starts it, its
// resident memory as the system counts it, and its items as it counts them itself (/metrics).
// tests/connection/streaming_test.cpp has what the items are.
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "base/sanitizers.hpp"
#include "tests/cli/metrics.hpp"
#include "tests/cli/process.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::cli {
namespace {

using net::comes_true;
using net::RawPeer;

constexpr bool kMemoryIsOurs = !kAddressSanitizer && !kThreadSanitizer;
constexpr std::size_t kMiB = 1024 * 1024;

class StreamMemory : public testing::TestWithParam<std::string> {
 protected:
  /// Items of all streams that the server has sent, or has in its buffers.
  long items() { return metric(other_, "wirecall_stream_items_total"); }
  /// The same when there are no more for now: each look at them takes the server a turn at least, and a stream that has
  /// none in many turns rests.
  long items_at_rest() {
    long before = -1;
    int same = 0;
    EXPECT_TRUE(comes_true([&] {
      const long now = items();
      same = now == before ? same + 1 : 0;
      before = now;
      return same == 100;
    }));
    return before;
  }
  [[nodiscard]] std::size_t resident_bytes() const { return server_.resident_bytes(); }
  /// Has a stream served to its end: whatever is made once is there then.
  void warm_up() {
    RawPeer peer{endpoint_};
    peer.send(R"({"jsonrpc":"2.0","method":"count","params":[1000],"stream":1000,"id":0})");
    for (int line = 0; line < 1000; ++line) peer.line();
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":null,"id":0})");
    items_at_rest();
  }

 private:
  Process server_{{"serve", "--demo", "--port", "0", "--engine", GetParam()}};

 protected:
  const Endpoint endpoint_{"tcp://127.0.0.1:" + std::to_string(port_of(server_))};

 private:
  RawPeer other_{endpoint_};
};

TEST_P(StreamMemory, with_credit_a_client_that_stops_reading_costs_less_than_a_mebibyte) {
  warm_up();
  const long items_before = items();
  const std::size_t before = resident_bytes();
  RawPeer peer{endpoint_};
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":[1000000000],"stream":1000,"id":1})");
  for (int line = 0; line < 600; ++line) ASSERT_NE(peer.line(), "");
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.credit","params":{"id":1,"n":600}})");
  EXPECT_EQ(items_at_rest() - items_before, 1600);
  if (!kMemoryIsOurs) GTEST_SKIP() << "resident memory is the sanitizer's";
  EXPECT_LT(resident_bytes(), before + kMiB);
}

TEST_P(StreamMemory, by_progress_a_client_that_stops_reading_costs_less_than_the_soft_mark_and_a_mebibyte) {
  warm_up();
  const std::size_t before = resident_bytes();
  RawPeer peer{endpoint_};
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":{"n":1000000000,"partialResultToken":"t"},"id":1})");
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":"t","value":0}})");
  EXPECT_LT(items_at_rest(), 1'000'000);
  if (!kMemoryIsOurs) GTEST_SKIP() << "resident memory is the sanitizer's";
  EXPECT_LT(resident_bytes(), before + Limits{}.soft_output + kMiB);
}

TEST_P(StreamMemory, a_cancel_stops_it_within_the_turn_that_reads_it) {
  RawPeer peer{endpoint_};
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":{"n":1000000000,"partialResultToken":"t"},"id":1})");
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":"t","value":0}})");
  // The second is read in the same turn as the first, and answered behind whatever was made until then.
  peer.send(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})"
            R"({"jsonrpc":"2.0","method":"rpc.ping","id":2})");
  long received = 1;
  std::string line = peer.line();
  for (; line.find("$/progress") != line.npos; line = peer.line()) ++received;
  EXPECT_TRUE(line.starts_with(R"({"jsonrpc":"2.0","error":{"code":-32800)")) << line;
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":"pong","id":2})");
  EXPECT_EQ(items_at_rest(), received) << "some were made and not sent, or came behind";
}

INSTANTIATE_TEST_SUITE_P(Engines, StreamMemory, testing::Values("epoll", "uring"),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace wirecall::cli
