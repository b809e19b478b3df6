// A server behind proxies, on each engine: who is believed, what is read, and where the client's address appears.
#include <algorithm>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "tests/server/folder.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;

const std::string kLine = "PROXY TCP4 203.0.113.9 192.0.2.1 56324 443\r\n";
// The same in version 2.
const std::string kBinary = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0C\xCB\0\x71\x09\xC0\0\x02\x01\xDC\x04\x01\xBB"s;
const std::string kPing = "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ping\",\"id\":1}\n";
const std::string kPong = R"({"jsonrpc":"2.0","result":"pong","id":1})";

struct Way {
  Engine engine;
  std::uint32_t threads;
};

class ProxyTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    skip_where_refused(GetParam().engine);
    options_ = threads(GetParam().threads);
    options_.engine = GetParam().engine;
    options_.proxy_protocol = true;
    options_.proxy_from = {"127.0.0.1"};
    options_.log = [this](const LogRecord& record) {
      const std::scoped_lock lock{mutex_};
      log_.emplace_back(format_log(LogFormat::human, record).substr(25));  // without its time
    };
  }
  Endpoint serve(const std::string& uri = "tcp://127.0.0.1:0") {
    broker_.emplace(options_);
    const Endpoint bound = broker_->listen(uri);
    running_.emplace(*broker_);
    return bound;
  }
  std::vector<std::string> log() {
    const std::scoped_lock lock{mutex_};
    return log_;
  }
  [[nodiscard]] std::uint64_t refused() const { return broker_->stats().proxy_headers_refused; }

  Options options_;
  std::mutex mutex_;
  std::vector<std::string> log_;
  std::optional<Broker> broker_;
  std::optional<RunningServer> running_;
};

TEST_P(ProxyTest, a_header_of_either_version_stands_before_every_protocol) {
  const Endpoint endpoint = serve();
  for (const std::string& header : {kLine, kBinary, "PROXY UNKNOWN\r\n"s}) {
    RawPeer text{endpoint};
    text.send(header + kPing);
    EXPECT_EQ(text.line(), kPong);
    RawPeer http{endpoint};
    http.send(header + "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(kPing.size()) +
              "\r\n\r\n" + kPing);
    EXPECT_EQ(http.line(), "HTTP/1.1 200 OK\r");
    RawPeer framed{endpoint};
    framed.send(header + "\0\0\0\x2C"s + kPing.substr(0, 44));
    EXPECT_EQ(framed.take(4 + kPong.size()), "\0\0\0\x28"s + kPong);
  }
}

TEST_P(ProxyTest, it_may_come_in_any_pieces) {
  const Endpoint endpoint = serve();
  for (const std::string& header : {kLine, kBinary}) {
    RawPeer peer{endpoint};
    for (const char byte : header + kPing) peer.send({&byte, 1});
    EXPECT_EQ(peer.line(), kPong);
  }
}

TEST_P(ProxyTest, the_client_is_named_to_those_who_look) {
  const Endpoint endpoint = serve();
  RawPeer client{endpoint};
  client.send(kLine + R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"ada"},"id":1})" + "\n");
  EXPECT_NE(client.line().find("ada"), std::string::npos);
  RawPeer of_ipv6{endpoint};
  of_ipv6.send("PROXY TCP6 2001:db8:1:2:3:4:5:6 ::1 1 2\r\n" +
               R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"bob"},"id":1})"s + "\n");
  EXPECT_NE(of_ipv6.line().find("bob"), std::string::npos);
  RawPeer unnamed{endpoint};
  unnamed.send("PROXY UNKNOWN\r\n" + R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"eve"},"id":1})"s +
               "\n");
  EXPECT_NE(unnamed.line().find("eve"), std::string::npos);
  client.send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.clients\",\"id\":2}\n");
  const std::string clients = client.line();
  const auto source_of = [&](const std::string& name) {
    const std::size_t at = clients.find(R"("source":)", clients.find("\"name\":\"" + name + '"'));
    return clients.substr(at, clients.find('}', at) - at);
  };
  EXPECT_EQ(source_of("ada"), R"("source":"203.0.113.9")");
  EXPECT_EQ(source_of("bob"), R"("source":"2001:db8:1:2::")") << "of IPv6 the 64 bits that one host has for itself";
  EXPECT_EQ(source_of("eve"), R"("source":"127.0.0.1")") << "the proxy itself, where it names nobody";
}

TEST_P(ProxyTest, each_client_has_limits_of_its_own) {
  options_.limits.principal_rate = 2;
  const Endpoint endpoint = serve();
  const auto ask = [&](const std::string& address) {
    RawPeer peer{endpoint};
    peer.send("PROXY TCP4 " + address + " 192.0.2.1 1 2\r\n" + kPing);
    return peer.line();
  };
  EXPECT_EQ(ask("203.0.113.1"), kPong);
  EXPECT_EQ(ask("203.0.113.1"), kPong);
  EXPECT_NE(ask("203.0.113.1").find("principal_rate"), std::string::npos);
  EXPECT_EQ(ask("203.0.113.2"), kPong) << "another client of the same proxy";
}

TEST_P(ProxyTest, nobody_becomes_local_by_a_header) {
  options_.proxy_from = {"127.0.0.1"};
  const Endpoint endpoint = serve();
  RawPeer peer{endpoint};
  // An address of this machine, and by HTTP a Host that only who is local need not have.
  peer.send("PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nPOST /rpc HTTP/1.1\r\nHost: example.com\r\nContent-Length: " +
            std::to_string(kPing.size()) + "\r\n\r\n" + kPing);
  EXPECT_EQ(peer.line(), "HTTP/1.1 403 Forbidden\r");
  // The user of a unix socket, which version 2 can name.
  RawPeer of_unix{endpoint};
  of_unix.send("\r\n\r\n\0\r\nQUIT\n\x21\x31\0\xD8"s + std::string(216, '/') +
               "POST /rpc HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
  EXPECT_NE(of_unix.all().find("400 Bad Request"), std::string::npos) << "without a Host";
}

TEST_P(ProxyTest, who_is_no_proxy_is_closed_at_once) {
  options_.proxy_from = {"192.0.2.0/24", "fd00::/8"};
  const Endpoint endpoint = serve();
  RawPeer peer{endpoint};
  EXPECT_EQ(peer.all(), "");
  RawPeer claims{endpoint};
  claims.send("PROXY TCP4 192.0.2.1 192.0.2.1 1 2\r\n" + kPing);
  EXPECT_EQ(claims.all(), "");
  EXPECT_TRUE(comes_true([&] { return refused() == 2; }));
  EXPECT_TRUE(comes_true([&] { return broker_->stats().connections_refused == 2; }));
  EXPECT_TRUE(comes_true([&] {
    const std::vector<std::string> lines = log();
    return std::ranges::find(lines,
                             "warning a connection is refused: it has to begin with the PROXY header of a proxy "
                             "cause=\"it is none of proxy_from\" source=127.0.0.1 refused=1") != lines.end();
  })) << (log().empty() ? "" : log().back());
}

TEST_P(ProxyTest, what_is_no_header_is_closed) {
  const Endpoint endpoint = serve();
  std::uint64_t expected = 0;
  for (const std::string& first :
       {kPing, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"s, "\0\0\0\x02{}"s, "PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n"s,
        "\r\n\r\n\0\r\nQUIT\n\x11\x11\0\0"s, " "s + kLine, "PROXY UNKNOWN "s + std::string(100, 'x')}) {
    RawPeer peer{endpoint};
    peer.send(first);
    EXPECT_EQ(peer.all(), "") << first;
    EXPECT_TRUE(comes_true([&] { return refused() == expected + 1; }));
    ++expected;
  }
  // Nor is it looked for twice.
  RawPeer twice{endpoint};
  twice.send(kLine + kLine);
  EXPECT_EQ(twice.line(), "HTTP/1.1 501 Not Implemented\r");
}

TEST_P(ProxyTest, a_header_that_does_not_come_in_time_is_not_waited_for) {
  options_.limits.header_timeout_ms = 50;
  const Endpoint endpoint = serve();
  RawPeer silent{endpoint};
  EXPECT_EQ(silent.all(), "");
  RawPeer slow{endpoint};
  slow.send(kBinary.substr(0, kBinary.size() - 1));
  EXPECT_EQ(slow.all(), "");
  EXPECT_EQ(broker_->stats().connections_timed_out, 2U);
}

TEST_P(ProxyTest, a_peer_that_ends_within_its_header_is_forgotten) {
  const Endpoint endpoint = serve();
  RawPeer peer{endpoint};
  peer.send(kLine.substr(0, 20));
  peer.finish();
  EXPECT_EQ(peer.all(), "");
  EXPECT_TRUE(comes_true([&] { return broker_->stats().connections_open == 0; }));
}

TEST_P(ProxyTest, unix_sockets_have_no_header) {
  const Folder folder;
  const Endpoint endpoint = serve(folder.socket());
  RawPeer peer{endpoint};
  peer.send(kPing);
  EXPECT_EQ(peer.line(), kPong);
}

INSTANTIATE_TEST_SUITE_P(Ways, ProxyTest,
                         testing::Values(Way{Engine::epoll, 1}, Way{Engine::uring, 1}, Way{Engine::epoll, 3}),
                         [](const auto& tested) {
                           return engine_name({tested.param.engine, 0}) + std::to_string(tested.param.threads);
                         });

TEST(ProxyOptions, whose_headers_are_believed_has_to_be_said) {
  Options options;
  options.proxy_protocol = true;
  try {
    const Server server{options};
    ADD_FAILURE() << "it starts";
  } catch (const std::invalid_argument& refusal) {
    EXPECT_EQ(refusal.what(),
              "proxy_protocol is true, and proxy_from is empty: name the proxies that are believed, as 10.0.0.7 or "
              "10.0.0.0/8"s);
  }
  options.proxy_from = {"10.0.0.0/8", "everybody"};
  EXPECT_THROW(const Server server{options}, std::invalid_argument);
  options.proxy_from = {"10.0.0.0/8"};
  EXPECT_NO_THROW(const Server server{options});
}

TEST(ProxyOptions, proxies_are_not_named_in_vain) {
  Options options;
  options.proxy_from = {"10.0.0.0/8"};
  try {
    const Server server{options};
    ADD_FAILURE() << "it starts";
  } catch (const std::invalid_argument& refusal) {
    EXPECT_EQ(refusal.what(),
              "proxy_from names proxies, and proxy_protocol is false: set it to true, or nobody is believed"s);
  }
}

}  // namespace
}  // namespace wirecall::net
