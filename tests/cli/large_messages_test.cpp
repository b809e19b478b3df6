// What is left of large messages in the process that has served them, on each engine: the demo server as a user starts
// it, and its resident memory as the system counts it. The C library keeps what it was given back once it has seen
// messages of such a size, unless it is told otherwise, as the command does.
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/sanitizers.hpp"
#include "tests/cli/process.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::cli {
namespace {

using net::comes_true;
using net::RawPeer;

constexpr std::size_t kMiB = 1024 * 1024;
constexpr std::string_view kAnswer = R"({"jsonrpc":"2.0","result":"","id":1})";

class LargeMessages : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "resident memory is the sanitizer's";
  }
  // Calls that are answered with as much as they send; each is as large as a message may be, where nothing else is
  // said.
  void expect_echoed(std::vector<RawPeer>& peers, std::size_t bytes = Limits{}.max_message_size) {
    const std::string head = R"({"jsonrpc":"2.0","method":"echo","params":[")";
    const std::string tail = R"("],"id":1})";
    const std::string text(bytes - head.size() - tail.size(), 'x');
    for (RawPeer& peer : peers) ASSERT_TRUE(peer.send(head + text + tail));
    for (RawPeer& peer : peers) ASSERT_EQ(peer.line().size(), text.size() + kAnswer.size());
  }

  Process server_{{"serve", "--demo", "--port", "0", "--engine", GetParam()}};
  const Endpoint endpoint_{"tcp://127.0.0.1:" + std::to_string(port_of(server_))};
};

TEST_P(LargeMessages, leave_nothing_behind) {
  std::vector<RawPeer> peers;
  for (int i = 0; i < 2; ++i) peers.emplace_back(endpoint_);
  // What is made once, and kept for the messages that are usual, is there then.
  for (int i = 0; i < 3; ++i) expect_echoed(peers, kMiB / 8);
  const std::size_t before = server_.resident_bytes();
  // From the second on the C library would know the size.
  for (int i = 0; i < 3; ++i) {
    expect_echoed(peers);
    // The last of an answer may be with us a moment before its memory is given back.
    EXPECT_TRUE(comes_true([&] { return server_.resident_bytes() < before + 4 * kMiB; }))
        << (server_.resident_bytes() - before) / kMiB << " MiB more";
  }
}

TEST_P(LargeMessages, of_many_at_a_time_leave_little_behind) {
  constexpr std::size_t kPeers = 400;
  constexpr std::size_t kBytes = kMiB / 4;
  const std::string most = R"({"jsonrpc":"2.0","method":"echo","params":[")" + std::string(kBytes, 'x');
  const std::size_t before = server_.resident_bytes();
  {
    std::vector<RawPeer> peers;
    for (std::size_t i = 0; i < kPeers; ++i) {
      peers.emplace_back(endpoint_);
      ASSERT_TRUE(peers.back().send(most));
    }
    // All of it is there, or the test would show nothing.
    EXPECT_TRUE(comes_true([&] { return server_.resident_bytes() > before + kPeers * kBytes * 3 / 4; }));
    for (RawPeer& peer : peers) ASSERT_TRUE(peer.send(R"("],"id":1})"));
    for (RawPeer& peer : peers) ASSERT_EQ(peer.line().size(), kBytes + kAnswer.size());
  }
  EXPECT_TRUE(comes_true([&] { return server_.resident_bytes() < before + kPeers * kBytes / 3; }))
      << (server_.resident_bytes() - before) / kMiB << " MiB more";
}

INSTANTIATE_TEST_SUITE_P(Engines, LargeMessages, testing::Values("epoll", "uring"),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace wirecall::cli
