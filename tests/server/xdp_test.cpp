// A server of xdp:// on one end of a pair of virtual interfaces, its peers on the other, each in a network namespace of
// its own that goes with the test. Skipped with the reason where the system does not permit that.
#include "transport/xdp.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <optional>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "runtime/descriptor.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "tests/transport/udp_peer.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

using runtime::Descriptor;
using transport::UdpPeer;

Descriptor own_namespace() { return Descriptor{::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)}; }

bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

// This thread is in the server's namespace; `peer` opens its socket in the other one.
class Network {
 public:
  Network() : before_(own_namespace()) { missing = set_up(); }
  Network(Network&&) = delete;
  ~Network() { enter(before_); }

  // What the system does not permit; empty for nothing.
  std::string missing;

  [[nodiscard]] UdpPeer peer(const Endpoint& endpoint) const {
    enter(outside_);
    UdpPeer made{Endpoint{"udp://10.9.0.1"}.with_port(endpoint.port())};
    enter(inside_);
    return made;
  }
  // That the kernel's own stack has handed to sockets of the server's namespace.
  [[nodiscard]] static std::size_t datagrams_of_the_stack() {
    std::ifstream file{"/proc/thread-self/net/snmp"};
    std::string line;
    std::vector<std::string> lines;
    while (std::getline(file, line)) {
      if (line.starts_with("Udp: ")) lines.push_back(line.substr(5));
    }
    return lines.size() == 2 ? std::stoul(lines[1]) : ~std::size_t{0};  // InDatagrams is the first
  }

 private:
  static void enter(const Descriptor& space) { ASSERT_EQ(::setns(space.get(), CLONE_NEWNET), 0); }
  std::string set_up() {
    const Descriptor socket{::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)};
    if (socket.get() < 0) return std::string{"socket(AF_XDP): "} + std::strerror(errno);
    bpf_attr map{};
    map.map_type = BPF_MAP_TYPE_XSKMAP;
    map.key_size = map.value_size = sizeof(std::uint32_t);
    map.max_entries = 1;
    const Descriptor made{static_cast<int>(::syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map))};
    if (made.get() < 0) return std::string{"bpf(BPF_MAP_CREATE): "} + std::strerror(errno);
    if (!run("ip -V")) return "there is no `ip`";
    if (::unshare(CLONE_NEWNET) != 0) return std::string{"unshare(CLONE_NEWNET): "} + std::strerror(errno);
    outside_ = own_namespace();
    if (::unshare(CLONE_NEWNET) != 0) return std::string{"unshare(CLONE_NEWNET): "} + std::strerror(errno);
    inside_ = own_namespace();
    const std::string other = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(outside_.get());
    if (!run("ip link add wc0 type veth peer name wc1 netns " + other)) return "`ip link add … type veth` fails";
    const bool ours = run("ip addr add 10.9.0.1/24 dev wc0") && run("ip link set wc0 up");
    enter(outside_);
    const bool theirs = run("ip addr add 10.9.0.2/24 dev wc1") && run("ip link set wc1 up");
    enter(inside_);
    return ours && theirs ? "" : "`ip addr add` fails";
  }

  Descriptor before_;
  Descriptor inside_;
  Descriptor outside_;
};

std::string call(std::string_view method, std::string_view params, std::string_view id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::string{id} + "}";
}
std::string result(std::string_view value, std::string_view id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::string{id} + "}";
}

class XdpServerTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    network.emplace();
    if (!network->missing.empty()) GTEST_SKIP() << network->missing;
  }

  Endpoint listen(Options given) {
    server.emplace(std::move(given));
    server->method("subtract", [](int a, int b) { return a - b; });
    server->method("big", [](std::size_t bytes) { return std::string(bytes, 'x'); });
    return server->listen("xdp://wc0:0");
  }

  std::optional<Network> network;
  std::optional<Server> server;
};

TEST_P(XdpServerTest, a_datagram_is_answered_past_the_kernels_stack) {
  const Endpoint endpoint = listen(options(1));
  EXPECT_EQ(endpoint.kind(), EndpointKind::xdp);
  EXPECT_NE(endpoint.port(), 0);
  const RunningServer running{*server};
  const UdpPeer one = network->peer(endpoint);
  const UdpPeer other = network->peer(endpoint);
  EXPECT_EQ(one.ask(call("subtract", "[42,23]", "1")), result("19", "1"));
  EXPECT_EQ(other.ask(call("subtract", "[23,42]", "\"two\"")), result("-19", "\"two\""));
  EXPECT_EQ(network->datagrams_of_the_stack(), 0U);
  // More than there are frames: each is used again.
  for (int i = 0; i < 5000; ++i) {
    const std::string id = std::to_string(i);
    ASSERT_EQ(one.ask(call("subtract", "[2,1]", id)), result("1", id));
  }
  EXPECT_EQ(network->datagrams_of_the_stack(), 0U);
  const Stats stats = server->stats();
  EXPECT_EQ(stats.datagrams_in, 5002U);
  EXPECT_EQ(stats.datagrams_out, 5002U);
  EXPECT_EQ(stats.datagrams_dropped, 0U);
}

TEST_P(XdpServerTest, what_comes_in_parts_is_for_an_ordinary_socket) {
  const Endpoint endpoint = listen(options(2));
  const RunningServer running{*server};
  const UdpPeer one = network->peer(endpoint);
  const std::string request = call("subtract", "[42," + std::string(3000, ' ') + "23]", "1");
  EXPECT_EQ(one.ask(request), result("19", "1"));
  EXPECT_EQ(network->datagrams_of_the_stack(), 1U);
}

TEST_P(XdpServerTest, a_reply_is_no_larger_than_a_packet) {
  Options given = options(1);
  given.limits.datagram_reply_bytes = 60'000;
  const Endpoint endpoint = listen(given);
  const RunningServer running{*server};
  const UdpPeer one = network->peer(endpoint);
  const std::size_t around = result("\"\"", "1").size();
  const auto big = [&](std::size_t bytes) {
    return one.ask(call("big", "[" + std::string(600, ' ') + std::to_string(bytes - around) + "]", "1"));
  };
  EXPECT_EQ(big(1472).size(), 1472U);
  EXPECT_NE(big(1473).find(R"("code":-32006,"message":"Too large")"), std::string::npos);
}

TEST_P(XdpServerTest, a_handler_that_does_not_return_holds_up_nobody) {
  Options given = options(1);
  given.takeover_ms = 1;
  const Endpoint endpoint = listen(given);
  Gate gate;
  server->method("block", [&](std::string_view text) {
    gate.wait();
    return std::string{text};
  });
  const RunningServer running{*server};
  const UdpPeer blocked = network->peer(endpoint);
  const UdpPeer other = network->peer(endpoint);
  blocked.send(call("block", R"(["what it reads stays"])", "1"));
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(other.ask(call("subtract", "[2,1]", "1")), result("1", "1"));
  EXPECT_TRUE(blocked.is_silent());
  gate.open();
  EXPECT_EQ(blocked.receive(), result(R"("what it reads stays")", "1"));
  EXPECT_EQ(network->datagrams_of_the_stack(), 0U);
}

TEST_P(XdpServerTest, an_interface_has_one_and_is_free_when_that_has_gone) {
  const Endpoint endpoint = listen(options(1));
  {
    Server second{options(1)};
    EXPECT_THROW(second.listen("xdp://wc0:0"), std::runtime_error);
    EXPECT_THROW(second.listen("xdp://none:0"), std::runtime_error);
    EXPECT_THROW(second.listen("xdp://lo:0"), std::runtime_error) << "it has no address";
  }
  server.reset();
  const Endpoint again = listen(options(1));
  const RunningServer running{*server};
  EXPECT_EQ(network->peer(again).ask(call("subtract", "[2,1]", "1")), result("1", "1"));
}

INSTANTIATE_TEST_SUITE_P(Engines, XdpServerTest, kEachEngine, engine_name);

}  // namespace
}  // namespace wirecall::net
