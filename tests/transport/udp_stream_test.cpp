// A client's end of udp:// over real sockets and both engines: what it is told, and what it is told in one turn.
#include "transport/udp_stream.hpp"

#include <arpa/inet.h>
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <span>
#include <string>
#include <sys/socket.h>

#include "runtime/descriptor.hpp"
#include "tests/server/engines.hpp"

namespace wirecall::transport {
namespace {

using std::chrono::milliseconds;

class UdpStreamTest : public testing::TestWithParam<Engine>, protected StreamUser {
 protected:
  void SetUp() override {
    net::skip_where_refused(GetParam());
    if (IsSkipped()) return;
    loop.emplace(runtime::make_backend(GetParam(), {}));
    runtime::Descriptor ours = bound();
    server = bound();
    connect(ours, server);
    connect(server, ours);
    stream = std::make_unique<UdpStream>(*loop, std::move(ours));
    stream->start(*this);
  }
  void TearDown() override {
    stream.reset();
    if (loop) loop->turn(milliseconds{0});
  }
  static runtime::Descriptor bound() {
    runtime::Descriptor socket{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static void connect(const runtime::Descriptor& one, const runtime::Descriptor& other) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(other.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(::connect(one.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  void say(std::string_view datagram) const {
    EXPECT_EQ(::send(server.get(), datagram.data(), datagram.size(), 0), static_cast<ssize_t>(datagram.size()));
  }

  void received(std::span<char> bytes) override {
    EXPECT_EQ(bytes.data()[bytes.size()], '\0');
    told.append(bytes.data(), bytes.size());
    if (ends) stream.reset();
  }
  void ended() override { ADD_FAILURE() << "nobody can say so"; }
  void sent(Buffer) override {}
  void failed(int error) override { ADD_FAILURE() << std::strerror(error); }

  std::optional<Loop> loop;
  runtime::Descriptor server;
  std::unique_ptr<UdpStream> stream;
  std::string told;
  bool ends = false;
};

TEST_P(UdpStreamTest, datagrams_are_messages_behind_their_lengths) {
  say("one");
  say("");
  say("three");
  for (int turns = 0; told.size() < 16 && turns < 1000; ++turns) loop->turn(milliseconds{100});
  EXPECT_EQ(told, (std::string{"\0\0\0\3one\0\0\0\5three", 16}));
}

TEST_P(UdpStreamTest, empty_datagrams_take_a_part_of_a_turn) {
  for (int i = 0; i < 160; ++i) say("");
  say("behind them");
  int turns = 0;
  for (; told.empty() && turns < 1000; ++turns) loop->turn(milliseconds{100});
  EXPECT_EQ(told, (std::string{"\0\0\0\13behind them", 15}));
  EXPECT_GE(turns, 10) << "others have their turn";
}

TEST_P(UdpStreamTest, may_go_while_it_tells) {
  ends = true;
  for (int i = 0; i < 40; ++i) say("last");
  for (int turns = 0; told.empty() && turns < 1000; ++turns) loop->turn(milliseconds{100});
  EXPECT_EQ(stream, nullptr);
  for (int turns = 0; turns < 3; ++turns) loop->turn(milliseconds{0});
}

INSTANTIATE_TEST_SUITE_P(Engines, UdpStreamTest, net::kEachEngine,
                         [](const auto& tested) { return net::engine_name(tested); });

}  // namespace
}  // namespace wirecall::transport
