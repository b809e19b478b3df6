// What all streams keep to: within each call of its user, that user may destroy the stream.
#include "transport/byte_stream.hpp"

#include <cerrno>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "tests/runtime/simulated_backend.hpp"
#include "tests/transport/leaving_user.hpp"
#include "tests/transport/memory_stream.hpp"
#include "transport/io_thread.hpp"
#include "transport/setup.hpp"
#include "transport/socket.hpp"

namespace wirecall::transport {
namespace {

using runtime::SimulatedBackend;
using std::chrono::milliseconds;

constexpr std::string_view kCalls = "resf";

// Has each of the four calls be made.
void cause(char what, ByteStream& stream, runtime::SimulatedPeer& peer) {
  switch (what) {
    case 'r':
      peer.send("one");
      peer.send("two");
      peer.finish();
      return;
    case 'e': return peer.finish();
    case 's': return stream.send(Buffer{"answer"}, true);
    default: return peer.reset();
  }
}

TEST(ByteStream, of_a_socket_may_be_destroyed_by_its_user_within_each_call) {
  for (const char within : kCalls) {
    for (unsigned seed = 1; seed < 9; ++seed) {
      auto* backend = new SimulatedBackend{seed};
      Loop loop{std::unique_ptr<runtime::Backend>{backend}};
      auto [descriptor, peer] = backend->pair();
      LeavingUser user{within};
      user.stream = std::make_unique<SocketStream>(loop, descriptor);
      user.stream->start(user);
      loop.turn(milliseconds{1});
      cause(within, *user.stream, *peer);
      for (int i = 0; i < 40; ++i) loop.turn(milliseconds{1});
      EXPECT_TRUE(user.left) << within << seed;
    }
  }
}

TEST(ByteStream, of_another_threads_socket_may_be_destroyed_by_its_user_within_each_call) {
  for (const char within : kCalls) {
    for (unsigned seed = 1; seed < 9; ++seed) {
      auto* sockets = new SimulatedBackend{seed};
      Loop owner{std::make_unique<SimulatedBackend>(seed)};
      IoThread io{owner, std::unique_ptr<runtime::Backend>{sockets}};
      auto [descriptor, peer] = sockets->pair();
      LeavingUser user{within};
      user.stream = io.open(PendingConnection{descriptor});
      user.stream->start(user);
      const auto turns = [&](int count) {
        for (int i = 0; i < count; ++i) {
          owner.turn(milliseconds{1});
          io.loop().turn(milliseconds{1});
        }
      };
      turns(3);
      cause(within, *user.stream, *peer);
      turns(40);
      EXPECT_TRUE(user.left) << within << seed;
    }
  }
}

// What has crossed while it was paused is given to the user from elsewhere.
TEST(ByteStream, of_another_threads_socket_may_be_destroyed_within_what_it_receives_late) {
  for (unsigned seed = 1; seed < 9; ++seed) {
    auto* sockets = new SimulatedBackend{seed};
    Loop owner{std::make_unique<SimulatedBackend>(seed)};
    IoThread io{owner, std::unique_ptr<runtime::Backend>{sockets}};
    auto [descriptor, peer] = sockets->pair();
    LeavingUser user{'r'};
    user.stream = io.open(PendingConnection{descriptor});
    user.stream->start(user);
    owner.turn(milliseconds{1});
    peer->send("early");
    for (int i = 0; i < 20; ++i) io.loop().turn(milliseconds{1});
    user.stream->pause();
    owner.turn(milliseconds{1});
    peer->finish();
    ASSERT_NE(user.stream, nullptr);
    user.stream->resume();
    for (int i = 0; i < 40; ++i) {
      owner.turn(milliseconds{1});
      io.loop().turn(milliseconds{1});
    }
    EXPECT_TRUE(user.left) << seed;
  }
}

TEST(ByteStream, of_another_kind_may_be_destroyed_by_its_user_within_each_call) {
  for (const char within : kCalls) {
    Loop loop;
    auto [ours, theirs] = memory_pair();
    std::unique_ptr<ByteStream> peer = theirs.attach(loop);
    LeavingUser nobody{'-'};
    peer->start(nobody);
    LeavingUser user{within};
    user.stream = ours.attach(loop);
    user.stream->start(user);
    switch (within) {
      case 'r': peer->send(Buffer{"one"}, true); break;
      case 'e': peer->shut_down(); break;
      case 's': user.stream->send(Buffer{"answer"}, true); break;
      default: peer.reset();
    }
    for (int i = 0; i < 10; ++i) loop.turn(milliseconds{1});
    EXPECT_TRUE(user.left) << within;
  }
}

TEST(ByteStream, of_datagrams_may_be_destroyed_by_its_user_within_each_call) {
  for (const char within : std::string_view{"rsf"}) {
    const int server = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(server, reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size), 0);
    Loop loop;
    LeavingUser user{within};
    user.stream = connect_to_udp(Endpoint{"udp://127.0.0.1:" + std::to_string(ntohs(address.sin_port))}).attach(loop);
    user.stream->start(user);
    // Who asks a port at which nobody listens any more is told so by the next call.
    if (within == 'f') ::close(server);
    user.stream->send(Buffer{std::string{"\0\0\0\3one", 7}}, true);
    if (within == 'r') {
      char datagram[8];
      sockaddr_in from{};
      socklen_t from_size = sizeof from;
      ASSERT_EQ(::recvfrom(server, datagram, sizeof datagram, 0, reinterpret_cast<sockaddr*>(&from), &from_size), 3);
      ASSERT_EQ(::sendto(server, "two", 3, 0, reinterpret_cast<const sockaddr*>(&from), from_size), 3);
    }
    for (int i = 0; i < 100 && !user.left; ++i) loop.turn(milliseconds{10});
    EXPECT_TRUE(user.left) << within;
    if (within != 'f') ::close(server);
  }
}

}  // namespace
}  // namespace wirecall::transport
