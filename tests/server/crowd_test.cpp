// Servers over real sockets beside a great many peers: a thousand that dribble or do not read, hundreds that come and
// go at once, and handlers that block. What everybody else gets meanwhile, and what is left of them afterwards.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <malloc.h>
#include <memory>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/sanitizers.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "transport/endpoint_socket.hpp"
#include "wirecall/context.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;

constexpr std::size_t kSlowPeers = 1000;
constexpr std::uint32_t kNever = 3'600'000;
constexpr std::size_t kBigAnswer = 1'000'000;  // more than a socket file holds for a peer that reads nothing

std::string call(std::string_view method, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","id":)" + std::to_string(id) + "}\n";
}
std::string result(std::string_view value, int id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::to_string(id) + "}";
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) ++count;
  return count;
}

// How a peer is slow: what it says at once, what it goes on with byte by byte for as long as it is let, and how what it
// is told begins when its time is up.
struct Slowness {
  std::string_view begin;
  std::string_view byte;
  std::string_view told;
};
constexpr std::array kSlowness{
    Slowness{.begin = "", .byte = "", .told = ""},
    Slowness{.begin = "POST /rpc HTTP/1.1\r\nHost: localhost\r\nX: ", .byte = "x", .told = "HTTP/1.1 408 "},
    Slowness{.begin = "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
             .byte = " ",
             .told = "HTTP/1.1 408 "},
    Slowness{.begin = R"({"jsonrpc":"2.0","method":")", .byte = "x", .told = ""},
    Slowness{.begin = R"({"jsonrpc":"2.0","method":"big","id":1})", .byte = "", .told = ""},  // which it does not read
};
constexpr std::size_t kReader = kSlowness.size() - 1;
// Far fewer than the 4096 in a second that keep a message going (docs/wire.md, Limits).
constexpr std::chrono::milliseconds kBetweenBytes{2};

class SlowPeer {
 public:
  SlowPeer(const Endpoint& endpoint, std::size_t kind)
      : how_(&kSlowness[kind]),
        reads_(kind != kReader),
        fd_(transport::connect_to(endpoint, std::chrono::milliseconds{20'000}).release_socket()) {
    ::send(fd_, how_->begin.data(), how_->begin.size(), MSG_NOSIGNAL);
  }
  SlowPeer(SlowPeer&& other) noexcept
      : how_(other.how_),
        reads_(other.reads_),
        fd_(std::exchange(other.fd_, -1)),
        next_byte_(other.next_byte_),
        told_(std::move(other.told_)) {}
  ~SlowPeer() { close(); }

  // One byte, if it is one that says something and not too soon after the last, and a look at what has come.
  void act() {
    if (fd_ < 0) return;
    if (const auto now = std::chrono::steady_clock::now(); now >= next_byte_) {
      ::send(fd_, how_->byte.data(), how_->byte.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      next_byte_ = now + kBetweenBytes;
    }
    if (reads_) read();
  }
  void read() {
    if (fd_ < 0) return;
    char block[4096];
    ssize_t got = 1;
    while (got > 0) {
      got = ::recv(fd_, block, sizeof block, MSG_DONTWAIT);
      if (got > 0) told_.append(block, static_cast<std::size_t>(got));
    }
    if (got == 0 || errno == ECONNRESET) close();
  }
  [[nodiscard]] bool ended() const { return fd_ < 0; }
  [[nodiscard]] std::string_view told() const { return told_; }
  [[nodiscard]] bool was_told_no_more_than_is_due() const {
    return told_.empty() ||
           (reads_ ? !how_->told.empty() && told().starts_with(how_->told) : told_.size() < kBigAnswer);
  }

 private:
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  const Slowness* how_;
  bool reads_;
  int fd_;
  std::chrono::steady_clock::time_point next_byte_{};
  std::string told_;
};

class CrowdTest : public EngineTest {
 protected:
  CrowdTest() {
    char name[] = "/tmp/wirecall-test-XXXXXX";
    folder_ = ::mkdtemp(name);
    ::getrlimit(RLIMIT_NOFILE, &descriptors_);
    rlimit all = descriptors_;
    all.rlim_cur = all.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &all);
  }
  ~CrowdTest() override {
    ::setrlimit(RLIMIT_NOFILE, &descriptors_);
    std::filesystem::remove_all(folder_);
  }
  void SetUp() override {
    EngineTest::SetUp();
    if (descriptors_.rlim_max < 4 * kSlowPeers) GTEST_SKIP() << "this process may not have enough descriptors";
  }
  // A server of one loop, at a port and at a socket file.
  void serve(Options options) {
    server_ = std::make_unique<Server>(std::move(options));
    server_->method("quick", [] { return 19; });
    server_->method("held", [](Context context) -> Task<int> {
      co_await sleep_for(context, std::chrono::hours{1});
      co_return 0;
    });
    server_->method("big", [] { return std::string(kBigAnswer, 'x'); });
    server_->method("block", [this] {
      gate_.wait();
      return 7;
    });
    endpoints_ = {server_->listen("tcp://127.0.0.1:0"), server_->listen("unix://" + folder_ + "/calls.sock")};
  }
  // Peers of each kind at each endpoint, but for those that do not read: for these the system takes far more from a
  // port.
  std::vector<SlowPeer> slow_peers() {
    std::vector<SlowPeer> peers;
    peers.reserve(kSlowPeers);
    for (std::size_t i = 0; i < kSlowPeers; ++i) {
      const std::size_t kind = i % kSlowness.size();
      peers.emplace_back(endpoints_[kind == kReader ? 1 : i / kSlowness.size() % endpoints_.size()], kind);
    }
    return peers;
  }
  // A call of somebody who is not slow.
  static bool is_served(RawPeer& peer, int id) {
    peer.send(call("quick", id));
    return peer.line() == result("19", id);
  }

  std::string folder_;
  rlimit descriptors_{};
  Gate gate_;
  std::unique_ptr<Server> server_;
  std::vector<Endpoint> endpoints_;
};

TEST_P(CrowdTest, beside_a_thousand_slow_peers_every_call_is_answered) {
  Options given = options(1);
  given.limits.header_timeout_ms = given.limits.keepalive_timeout_ms = kNever;
  given.limits.soft_output = 100'000;
  serve(std::move(given));
  const RunningServer running{*server_};
  std::vector<SlowPeer> slow = slow_peers();
  std::vector<RawPeer> quick;
  for (const Endpoint& endpoint : endpoints_) quick.emplace_back(endpoint);
  for (int id = 0; id < 200; ++id) {
    for (SlowPeer& peer : slow) peer.act();
    for (RawPeer& peer : quick) ASSERT_TRUE(is_served(peer, id)) << id;
  }
  EXPECT_EQ(server_->stats().connections_open, slow.size() + quick.size());
  EXPECT_EQ(std::ranges::count_if(slow, &SlowPeer::ended), 0);
}

// Who is not slow has a call that does not end: no pause of this process makes it idle. A peer whose first bytes such a
// pause has held back is one that says nothing.
TEST_P(CrowdTest, a_thousand_slow_peers_are_closed_when_their_time_is_up_and_nobody_else_is) {
  Options given = options(1);
  given.limits.header_timeout_ms = given.limits.keepalive_timeout_ms = given.limits.call_timeout_ms = kNever;
  given.limits.soft_output = 100'000;
  Limits in_time = given.limits;
  in_time.header_timeout_ms = in_time.keepalive_timeout_ms = 500;
  serve(std::move(given));
  const std::size_t descriptors = open_descriptors();
  const RunningServer running{*server_};
  {
    RawPeer quick{endpoints_[0]};
    quick.send(call("held", 0));
    ASSERT_TRUE(is_served(quick, 1));
    std::atomic<bool> in_force{false};
    server_->set_limits(in_time, [&] { in_force = true; });
    ASSERT_TRUE(comes_true([&] { return in_force.load(); }));
    std::vector<SlowPeer> slow = slow_peers();
    int id = 1;
    ASSERT_TRUE(comes_true([&] {
      for (std::size_t i = 0; i < slow.size(); ++i) {
        slow[i].act();
        if (i % 32 == 0) {
          EXPECT_TRUE(is_served(quick, ++id));
        }
      }
      return HasFailure() || server_->stats().connections_open == 1;
    }));
    EXPECT_TRUE(is_served(quick, ++id));
    std::array<std::size_t, kSlowness.size()> told{};
    for (std::size_t i = 0; i < slow.size(); ++i) {
      // A connection is not counted any more a little before it is closed.
      EXPECT_TRUE(comes_true([&] {
        slow[i].read();
        return slow[i].ended();
      })) << slow[i].told();
      EXPECT_TRUE(slow[i].was_told_no_more_than_is_due()) << slow[i].told();
      if (!slow[i].told().empty()) ++told[i % told.size()];
    }
    for (std::size_t kind = 0; kind < told.size(); ++kind) {
      EXPECT_TRUE(told[kind] != 0 || kSlowness[kind].told.empty()) << "kind " << kind;
    }
    const Stats stats = server_->stats();
    EXPECT_EQ(stats.slow_peers_closed + stats.connections_timed_out, kSlowPeers);
    EXPECT_LE(stats.slow_peers_closed, kSlowPeers / kSlowness.size());
    EXPECT_GE(stats.slow_peers_closed, 1U);
    quick.reset();  // an end in order would wait for the call
  }
  EXPECT_TRUE(comes_true([&] { return open_descriptors() <= descriptors; }));
}

std::size_t heap_bytes() {
  const auto heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

TEST_P(CrowdTest, a_thousand_messages_that_are_announced_take_no_memory_before_they_come) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "memory is the sanitizer's";
  constexpr std::size_t kBytesOfOne = 8192;
  const std::array announced{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n{"s,
                             "Content-Length: 16000000\r\n\r\n{"s, "\x00\xF4\x24\x00{"s};
  serve(options(1));
  const RunningServer running{*server_};
  RawPeer quick{endpoints_[0]};
  ASSERT_TRUE(is_served(quick, 0));
  const std::uint64_t received = server_->stats().bytes_in;
  const std::size_t heap = heap_bytes();
  std::vector<RawPeer> peers;
  std::size_t sent = 0;
  for (std::size_t i = 0; i < kSlowPeers; ++i) {
    peers.emplace_back(endpoints_[i % endpoints_.size()]);
    peers.back().send(announced[i % announced.size()]);
    sent += announced[i % announced.size()].size();
  }
  ASSERT_TRUE(comes_true([&] { return server_->stats().bytes_in == received + sent; }));
  EXPECT_LT(heap_bytes(), heap + kSlowPeers * kBytesOfOne);
  EXPECT_TRUE(is_served(quick, 1));
  EXPECT_EQ(server_->stats().connections_open, kSlowPeers + 1);
}

// The loop is kept in a handler meanwhile, so that it finds all of them at once.
TEST_P(CrowdTest, hundreds_that_come_at_once_and_go_at_once_are_served_and_leave_nothing_behind) {
  constexpr int kRounds = 10;
  constexpr int kPeers = 500;
  serve(options(1));
  const RunningServer running{*server_};
  RawPeer steady{endpoints_[0]};
  ASSERT_TRUE(is_served(steady, 0));
  const std::size_t descriptors = open_descriptors();
  const auto at_once = [&](const auto& happens) {
    gate_.close();
    steady.send(call("block", 1));
    gate_.await_inside(1);
    happens();
    gate_.open();
    EXPECT_EQ(steady.line(), result("7", 1));
  };
  for (int round = 0; round < kRounds; ++round) {
    std::vector<RawPeer> peers;
    at_once([&] {
      for (int i = 0; i < kPeers; ++i) {
        const Endpoint& endpoint = endpoints_[static_cast<std::size_t>(i) % endpoints_.size()];
        peers.emplace_back(endpoint);
        peers.back().send(call("quick", i));
        if (i % 10 != 0) continue;
        RawPeer gone{endpoint};  // before it is accepted
        gone.send(call("quick", i));
        gone.reset();
      }
    });
    for (int i = 0; i < kPeers; ++i) ASSERT_EQ(peers[static_cast<std::size_t>(i)].line(), result("19", i));
    EXPECT_TRUE(comes_true([&] { return server_->stats().connections_open == peers.size() + 1; }));
    at_once([&] {
      for (std::size_t i = 0; i < peers.size(); ++i) {
        if (i % 3 == 0) peers[i].reset();
        if (i % 3 == 1) peers[i].send(call("quick", 1));  // and does not wait for the answer
      }
      peers.clear();
    });
    ASSERT_TRUE(comes_true([&] { return server_->stats().connections_open == 1; }));
  }
  const Stats stats = server_->stats();
  EXPECT_GE(stats.connections_accepted, std::uint64_t{kRounds} * kPeers + 1);
  EXPECT_EQ(stats.connections_refused, 0U);
  EXPECT_TRUE(comes_true([&] { return open_descriptors() <= descriptors; }));
}

TEST_P(CrowdTest, beside_four_handlers_that_block_every_quick_call_of_their_loop_is_answered) {
  constexpr int kBlocking = 4;
  Options given = options(1);
  given.takeover_ms = Options{}.takeover_ms;
  serve(std::move(given));
  const RunningServer running{*server_};
  std::vector<RawPeer> slow;
  for (int i = 0; i < kBlocking; ++i) {
    slow.emplace_back(endpoints_[0]);
    slow.back().send(call("block", i));
  }
  gate_.await_inside(kBlocking);
  RawPeer quick{endpoints_[0]};
  for (int id = 0; id < 1000; ++id) ASSERT_TRUE(is_served(quick, id));
  EXPECT_GE(server_->stats().takeovers, static_cast<std::uint64_t>(kBlocking));
  gate_.open();
  for (int i = 0; i < kBlocking; ++i) EXPECT_EQ(slow[static_cast<std::size_t>(i)].line(), result("7", i));
}

INSTANTIATE_TEST_SUITE_P(Engines, CrowdTest, kEachEngine, engine_name);

}  // namespace
}  // namespace wirecall::net
