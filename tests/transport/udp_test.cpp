// Datagrams over real sockets and both engines: what arrives, where replies come from, what is joined on the way, and
// what becomes of what there is no room for.
#include "transport/udp.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <linux/udp.h>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/descriptor.hpp"
#include "tests/server/engines.hpp"
#include "tests/transport/udp_peer.hpp"

namespace wirecall::transport {
namespace {

using std::chrono::milliseconds;

// Answers each datagram with what is made of it, in the same call.
class UdpTest : public testing::TestWithParam<Engine>, protected DatagramUser {
 protected:
  void SetUp() override {
    net::skip_where_refused(GetParam());
    if (!IsSkipped()) loop.emplace(runtime::make_backend(GetParam(), {}));
  }
  void TearDown() override {
    socket.reset();
    if (loop) loop->turn(milliseconds{0});
  }
  Endpoint open(const std::string& uri = "udp://127.0.0.1:0") {
    std::vector<BoundUdpSocket> bound = listen_on_udp(Endpoint{uri}, 1);
    socket = std::make_unique<UdpSocket>(*loop, std::move(bound.front().descriptor), stats);
    socket->start(*this);
    return bound.front().endpoint;
  }
  void received(std::string_view datagram, const DatagramAddress& source) override {
    EXPECT_EQ(datagram.data()[datagram.size()], '\0') << "where the next datagram may begin";
    got.emplace_back(datagram);
    sources.push_back(socket->peer_source(source));
    if (answer) answer(datagram, source);
  }
  void turn_until(std::size_t datagrams) {
    for (int turns = 0; got.size() < datagrams && turns < 10'000; ++turns) loop->turn(milliseconds{100});
    ASSERT_EQ(got.size(), datagrams);
  }
  void echo() {
    answer = [this](std::string_view datagram, const DatagramAddress& source) { socket->send(datagram, source); };
  }

  Stats stats;
  std::optional<Loop> loop;
  std::unique_ptr<UdpSocket> socket;
  std::vector<std::string> got;
  std::vector<std::string> sources;
  std::function<void(std::string_view, const DatagramAddress&)> answer;
};

TEST_P(UdpTest, datagrams_come_whole_and_in_order) {
  echo();
  const UdpPeer peer{open()};
  const std::vector<std::string> sent{"a", "", std::string(1500, 'x'), std::string(kUdpBytesMax, 'y'), "b"};
  for (const std::string& one : sent) peer.send(one);
  turn_until(sent.size());
  EXPECT_TRUE(got == sent);
  EXPECT_EQ(sources, std::vector<std::string>(sent.size(), "127.0.0.1"));
  for (const std::string& one : sent) EXPECT_TRUE(peer.receive() == one) << one.size();
  EXPECT_EQ(stats.datagrams_out, sent.size());
  EXPECT_EQ(stats.bytes_out, 2U + 1500U + kUdpBytesMax);
  EXPECT_EQ(stats.datagrams_dropped, 0U);
}

TEST_P(UdpTest, a_reply_comes_from_the_address_that_was_asked) {
  echo();
  const Endpoint everywhere = open("udp://0.0.0.0:0");
  for (const char* const address : {"127.0.0.1", "127.0.0.2", "127.1.2.3"}) {
    const UdpPeer peer{Endpoint{"udp://" + std::string{address}}.with_port(everywhere.port())};
    peer.send(address);
    turn_until(got.size() + 1);
    EXPECT_EQ(peer.receive(), address) << "a connected socket takes nothing from another address";
  }
}

TEST_P(UdpTest, one_socket_serves_both_versions_of_ip) {
  echo();
  std::optional<Endpoint> everywhere;
  try {
    everywhere.emplace(open("udp://[::]:0"));
  } catch (const std::runtime_error& refusal) {
    GTEST_SKIP() << refusal.what();
  }
  for (const char* const host : {"[::1]", "127.0.0.1", "127.0.0.2"}) {
    const UdpPeer peer{Endpoint{"udp://" + std::string{host}}.with_port(everywhere->port())};
    peer.send(host);
    turn_until(got.size() + 1);
    EXPECT_EQ(peer.receive(), host);
  }
  EXPECT_EQ(sources, (std::vector<std::string>{"::", "::ffff:127.0.0.1", "::ffff:127.0.0.1"}))
      << "of IPv6 the first 64 bits";
}

TEST_P(UdpTest, one_socket_serves_both_versions_of_ip_after_datagrams_have_been_dropped) {
  std::optional<Endpoint> everywhere;
  try {
    everywhere.emplace(open("udp://[::]:0"));
  } catch (const std::runtime_error& refusal) {
    GTEST_SKIP() << refusal.what();
  }
  const UdpPeer peer{Endpoint{"udp://127.0.0.2"}.with_port(everywhere->port())};
  const UdpPeer other{Endpoint{"udp://[::1]"}.with_port(everywhere->port())};
  // From now on the kernel tells with each datagram how many it had no room for.
  const std::string large(60'000, 'x');
  for (int i = 0; i < 1000; ++i) peer.send(large);
  for (int turns = 0; turns < 1000 && stats.datagrams_dropped == 0; ++turns) {
    other.send("later");
    loop->turn(milliseconds{10});
  }
  other.send("last");
  for (int turns = 0; turns < 1000 && got.back() != "last"; ++turns) loop->turn(milliseconds{10});
  EXPECT_GT(stats.datagrams_dropped, 0U);
  got.clear();
  echo();
  other.send("::1");
  peer.send("127.0.0.2");
  turn_until(2);
  EXPECT_EQ(other.receive(), "::1");
  EXPECT_EQ(peer.receive(), "127.0.0.2");
  const int segment = 2;
  ASSERT_EQ(::setsockopt(peer.descriptor(), IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
  peer.send("ababc");
  turn_until(5);
  EXPECT_EQ(got, (std::vector<std::string>{"::1", "127.0.0.2", "ab", "ab", "c"}));
}

// Whoever sends so would be answered by many.
TEST_P(UdpTest, what_comes_to_many_at_once_is_dropped_and_counted) {
  const int on = 1;
  const int hops = 0;  // not beyond this host
  std::size_t dropped = 0;
  for (const char* const uri : {"udp://0.0.0.0:0", "udp://[::]:0"}) {
    std::optional<Endpoint> everywhere;
    try {
      everywhere.emplace(open(uri));
    } catch (const std::runtime_error&) {
      continue;
    }
    const UdpPeer peer{Endpoint{"udp://127.0.0.1"}.with_port(everywhere->port())};
    ASSERT_EQ(::setsockopt(peer.descriptor(), SOL_SOCKET, SO_BROADCAST, &on, sizeof on), 0);
    sockaddr_in broadcast{};
    broadcast.sin_family = AF_INET;
    broadcast.sin_port = htons(everywhere->port());
    broadcast.sin_addr.s_addr = htonl(0x7FFFFFFF);
    const int segment = 4;
    ASSERT_EQ(::setsockopt(peer.descriptor(), IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
    ASSERT_EQ(
        ::sendto(peer.descriptor(), "manymany", 8, 0, reinterpret_cast<const sockaddr*>(&broadcast), sizeof broadcast),
        8);
    dropped += 2;
    if (std::string_view{uri}.ends_with("[::]:0")) {
      sockaddr_in6 all{};
      all.sin6_family = AF_INET6;
      all.sin6_port = broadcast.sin_port;
      all.sin6_addr = {{{0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}};
      const runtime::Descriptor sender{::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
      ASSERT_EQ(::setsockopt(sender.get(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof hops), 0);
      for (all.sin6_scope_id = 1; all.sin6_scope_id < 16; ++all.sin6_scope_id) {
        const ssize_t sent = ::sendto(sender.get(), "many", 4, 0, reinterpret_cast<const sockaddr*>(&all), sizeof all);
        if (sent == 4) ++dropped;  // the interface has such addresses
      }
    }
    peer.send("one.");
    turn_until(got.size() + 1);
    EXPECT_EQ(got.back(), "one.");
    EXPECT_EQ(stats.datagrams_dropped, dropped);
  }
}

TEST_P(UdpTest, what_comes_from_port_0_is_dropped_and_counted) {
  const Endpoint endpoint = open();
  const runtime::Descriptor raw{::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP)};
  if (raw.get() < 0) GTEST_SKIP() << "only an administrator may send from there";
  const std::string bytes = "from nowhere";
  const std::array<std::uint16_t, 4> head{0, htons(endpoint.port()),
                                          htons(static_cast<std::uint16_t>(8 + bytes.size())), 0};
  std::string packet(reinterpret_cast<const char*>(head.data()), sizeof head);
  packet += bytes;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(::sendto(raw.get(), packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(packet.size()));
  }
  UdpPeer{endpoint}.send("from somewhere");
  turn_until(1);
  EXPECT_EQ(got, std::vector<std::string>{"from somewhere"});
  EXPECT_EQ(stats.datagrams_dropped, 3U);
}

TEST_P(UdpTest, what_was_joined_on_the_way_is_told_one_by_one) {
  echo();
  const UdpPeer peer{open()};
  const int segment = 10;
  ASSERT_EQ(::setsockopt(peer.descriptor(), IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
  peer.send("0123456789abcdefghij0123456789xyz");
  turn_until(4);
  EXPECT_EQ(got, (std::vector<std::string>{"0123456789", "abcdefghij", "0123456789", "xyz"}));
  for (const std::string& one : got) EXPECT_EQ(peer.receive(), one);
}

TEST_P(UdpTest, what_is_lent_stays_where_another_thread_has_taken_the_loop) {
  std::string_view first;
  answer = [&](std::string_view datagram, const DatagramAddress&) {
    if (got.size() != 1) return;
    first = datagram;
    loop->finish_turn();  // as LoopTakeover has it, by a thread of its own
    turn_until(63);
    EXPECT_EQ(first, "joined  0");
  };
  const UdpPeer peer{open()};
  const int segment = 9;
  ASSERT_EQ(::setsockopt(peer.descriptor(), IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
  peer.send("joined  0joined  1joined  2");
  for (int i = 0; i < 60; ++i) peer.send("apart " + std::to_string(100 + i));  // as many as take each room thrice
  turn_until(63);
  EXPECT_EQ(got[1], "joined  1");
  EXPECT_EQ(got[2], "joined  2");
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(got[3 + i], "apart " + std::to_string(100 + i));
}

TEST_P(UdpTest, many_replies_of_one_turn_go_to_whom_they_are_for) {
  answer = [this](std::string_view datagram, const DatagramAddress& source) {
    // As many as one says, of different sizes, so that some are joined and some are not.
    for (int i = std::stoi(std::string{datagram}); i > 0; --i)
      socket->send(std::string(static_cast<std::size_t>(100 - i % 3), static_cast<char>('a' + i % 26)), source);
  };
  const Endpoint endpoint = open();
  std::vector<UdpPeer> peers;
  for (int i = 0; i < 5; ++i) peers.emplace_back(endpoint);
  const std::vector<int> counts{200, 1, 70, 3, 130};
  for (std::size_t i = 0; i < peers.size(); ++i) peers[i].send(std::to_string(counts[i]));
  turn_until(peers.size());
  for (std::size_t at = 0; at < peers.size(); ++at) {
    for (int i = counts[at]; i > 0; --i)
      ASSERT_EQ(peers[at].receive(),
                std::string(static_cast<std::size_t>(100 - i % 3), static_cast<char>('a' + i % 26)));
    EXPECT_TRUE(peers[at].is_silent());
  }
  EXPECT_EQ(stats.datagrams_out, 404U);
  EXPECT_EQ(stats.datagrams_dropped, 0U);
}

TEST_P(UdpTest, as_many_replies_as_one_send_joins_go_at_once) {
  std::optional<UdpPeer> peer;
  answer = [&](std::string_view datagram, const DatagramAddress& source) {
    for (int i = 0; i < 127; ++i) socket->send(datagram, source);
    EXPECT_TRUE(peer->is_silent());
    socket->send(datagram, source);
    EXPECT_FALSE(peer->is_silent()) << "the turn goes on, and may take long";
    socket->send("more", source);
  };
  peer.emplace(open());
  peer->send("one");
  turn_until(1);
  for (int i = 0; i < 128; ++i) ASSERT_EQ(peer->receive(), "one");
  EXPECT_EQ(peer->receive(), "more");
}

TEST_P(UdpTest, what_the_system_has_no_room_for_is_counted) {
  const UdpPeer peer{open()};
  const int little = 1;  // the least that there is
  ASSERT_EQ(::setsockopt(peer.descriptor(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
  // As much as comes until the loop looks: the kernel drops the rest, and says so with what comes later.
  const std::string large(60'000, 'x');
  for (int i = 0; i < 1000; ++i) peer.send(large);
  for (int turns = 0; turns < 1000 && stats.datagrams_dropped == 0; ++turns) {
    peer.send("later");
    loop->turn(milliseconds{10});
  }
  const std::size_t large_ones = static_cast<std::size_t>(std::ranges::count(got, large));
  EXPECT_LT(large_ones, 1000U);
  EXPECT_EQ(stats.datagrams_dropped, 1000U - large_ones);
}

// Three of one size are one datagram to a peer that takes them so, unless they have been sent apart.
class JoinedReplies : public UdpTest {
 protected:
  JoinedReplies() {
    answer = [this](std::string_view datagram, const DatagramAddress& source) {
      if (before) before();
      for (int i = 0; i < 3; ++i) socket->send(datagram, source);
    };
  }
  static void take_joined(const UdpPeer& peer) {
    const int on = 1;
    ASSERT_EQ(::setsockopt(peer.descriptor(), IPPROTO_UDP, UDP_GRO, &on, sizeof on), 0);
  }
  // By how many receives the replies to one datagram come.
  std::size_t receives(const UdpPeer& peer, std::size_t size) {
    const std::string datagram(size, 'x');
    peer.send(datagram);
    turn_until(got.size() + 1);
    std::size_t count = 0;
    for (std::size_t bytes = 0; bytes < 3 * size; ++count) {
      const std::string joined = peer.receive();
      if (joined.empty()) break;
      bytes += joined.size();
    }
    return count;
  }

  std::function<void()> before;
};

TEST_P(JoinedReplies, an_address_that_cannot_be_sent_to_takes_nothing_from_others) {
  const Endpoint endpoint = open();
  const UdpPeer peer{endpoint};
  take_joined(peer);
  EXPECT_EQ(receives(peer, 100), 1U);
  // What nobody has, EINVAL; and what may be sent to with an option alone (SO_BROADCAST), EACCES.
  struct Refused {
    std::uint32_t address;
    std::uint16_t port;
  };
  for (const Refused& refused : {Refused{INADDR_LOOPBACK, 0}, Refused{0x7FFFFFFF, 9}}) {
    const std::uint64_t dropped = stats.datagrams_dropped;
    before = [&] {
      DatagramAddress to{.size = sizeof(sockaddr_in6)};
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(refused.port);
      address.sin_addr.s_addr = htonl(refused.address);
      std::memcpy(to.bytes.data(), &address, sizeof address);
      for (int i = 0; i < 100; ++i) socket->send("nobody", to);
    };
    EXPECT_EQ(receives(peer, 100), 1U);
    before = nullptr;
    EXPECT_EQ(receives(peer, 100), 1U) << "nor do they lose it later";
    EXPECT_EQ(stats.datagrams_dropped, dropped + 100);
  }
}

TEST_P(JoinedReplies, are_tried_again_some_time_after_they_have_been_refused) {
  std::vector<BoundUdpSocket> bound = listen_on_udp(Endpoint{"udp://127.0.0.1:0"}, 1);
  const int descriptor = bound.front().descriptor.get();
  const auto sums = [&](int off) { ASSERT_EQ(::setsockopt(descriptor, SOL_SOCKET, SO_NO_CHECK, &off, sizeof off), 0); };
  socket = std::make_unique<UdpSocket>(*loop, std::move(bound.front().descriptor), stats);
  socket->start(*this);
  const UdpPeer peer{bound.front().endpoint};
  take_joined(peer);
  sums(1);  // without a checksum the kernel sends only single datagrams
  EXPECT_EQ(receives(peer, 100), 3U);
  sums(0);
  EXPECT_EQ(receives(peer, 100), 3U);
  std::size_t turns = 2;
  while (turns < 5000 && receives(peer, 100) == 3) ++turns;
  EXPECT_EQ(turns, 1024U);
}

TEST_P(UdpTest, where_the_system_refuses_to_join_each_is_sent_alone) {
  echo();
  // Without a checksum the kernel sends only single datagrams.
  std::vector<BoundUdpSocket> bound = listen_on_udp(Endpoint{"udp://127.0.0.1:0"}, 1);
  const int on = 1;
  ASSERT_EQ(::setsockopt(bound.front().descriptor.get(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
  socket = std::make_unique<UdpSocket>(*loop, std::move(bound.front().descriptor), stats);
  socket->start(*this);
  const UdpPeer peer{bound.front().endpoint};
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 10; ++i) peer.send("same size " + std::to_string(i));
    turn_until(got.size() + 10);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(peer.receive(), "same size " + std::to_string(i));
  }
  EXPECT_EQ(stats.datagrams_out, 20U);
  EXPECT_EQ(stats.datagrams_dropped, 0U);
}

TEST_P(UdpTest, who_cannot_be_answered_is_no_harm_to_others) {
  DatagramAddress nowhere{.size = sizeof(sockaddr_in6)};
  reinterpret_cast<sockaddr_in*>(nowhere.bytes.data())->sin_family = AF_INET;  // port 0
  answer = [&](std::string_view datagram, const DatagramAddress& source) {
    socket->send(datagram, source);
    for (int i = 0; i < 3; ++i) socket->send("nobody", nowhere);
    socket->send(datagram, source);
  };
  const UdpPeer peer{open()};
  peer.send("here");
  turn_until(1);
  EXPECT_EQ(peer.receive(), "here");
  EXPECT_EQ(peer.receive(), "here");
  EXPECT_EQ(stats.datagrams_out, 2U);
  EXPECT_EQ(stats.datagrams_dropped, 3U);
}

TEST_P(UdpTest, may_go_while_it_tells) {
  answer = [this](std::string_view datagram, const DatagramAddress& source) {
    socket->send(datagram, source);
    socket.reset();
  };
  const UdpPeer peer{open()};
  for (int i = 0; i < 5; ++i) peer.send("last words");
  turn_until(1);
  EXPECT_EQ(peer.receive(), "last words") << "what was said before is sent";
  for (int i = 0; i < 3; ++i) loop->turn(milliseconds{0});
  EXPECT_EQ(got.size(), 1U);
}

TEST_P(UdpTest, a_turn_takes_a_part_of_a_flood) {
  const UdpPeer peer{open()};
  const int room = 8 * 1024 * 1024;
  ::setsockopt(peer.descriptor(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  std::size_t sent = 0;
  for (; sent < 300; ++sent) peer.send("x");
  std::vector<std::size_t> after_turn;
  while (got.size() < sent && after_turn.size() < 1000) {
    loop->turn(milliseconds{100});
    after_turn.push_back(got.size());
  }
  ASSERT_EQ(got.size(), sent);
  EXPECT_LE(after_turn.front(), 256U + 15U) << "others have their turn";
}

TEST(UdpListening, several_sockets_share_a_port_of_their_own) {
  std::vector<BoundUdpSocket> all = listen_on_udp(Endpoint{"udp://127.0.0.1:0"}, 3);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].endpoint, all[0].endpoint);
  EXPECT_NE(all[0].endpoint.port(), 0);
  for (const std::size_t count : {1U, 2U}) {
    try {
      static_cast<void>(listen_on_udp(all[0].endpoint, count));
      ADD_FAILURE() << "two programs listen there";
    } catch (const std::runtime_error& refusal) {
      EXPECT_EQ(std::string{refusal.what()}, "cannot listen on " + all[0].endpoint.uri() +
                                                 ": Address already in use; another program listens there: stop it, "
                                                 "or listen on another port");
    }
  }
}

TEST(UdpListening, where_it_cannot_be_says_why) {
  EXPECT_THROW(static_cast<void>(listen_on_udp(Endpoint{"udp://192.0.2.1:0"}, 1)), std::runtime_error);
  EXPECT_THROW(static_cast<void>(listen_on_udp(Endpoint{"udp://no.such.host.invalid:1"}, 1)), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Engines, UdpTest, net::kEachEngine,
                         [](const auto& tested) { return net::engine_name(tested); });
INSTANTIATE_TEST_SUITE_P(Engines, JoinedReplies, net::kEachEngine,
                         [](const auto& tested) { return net::engine_name(tested); });

}  // namespace
}  // namespace wirecall::transport
