// Clients whose connections an HTTP proxy makes: which proxy, by option and by the environment, and what a proxy
// answers.
#include <chrono>
#include <cstdlib>
#include <expected>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/client/served.hpp"
#include "transport/http_proxy.hpp"

namespace wirecall::net {
namespace {

using transport::proxy_for;

// The environment's variables for as long as it lives; those that are not named are not there.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<const char*, const char*>>& set) {
    for (const char* const name : kNames) {
      const char* const value = std::getenv(name);
      before_.emplace_back(name, value != nullptr ? std::optional<std::string>{value} : std::nullopt);
      ::unsetenv(name);
    }
    for (const auto& [name, value] : set) ::setenv(name, value, 1);
  }
  Environment(Environment&&) = delete;
  ~Environment() {
    for (const auto& [name, value] : before_) {
      if (value) {
        ::setenv(name, value->c_str(), 1);
      } else {
        ::unsetenv(name);
      }
    }
  }

 private:
  static constexpr const char* kNames[]{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY",
                                        "all_proxy",  "ALL_PROXY",  "no_proxy",    "NO_PROXY"};
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

// "host:port", "user:password@host:port", or "none".
std::string proxy_of(std::string_view uri, std::string_view option = {}) {
  const auto proxy = proxy_for(Endpoint{uri}, option);
  if (!proxy) return "none";
  return (proxy->credentials.empty() ? "" : proxy->credentials + '@') + proxy->host + ':' + std::to_string(proxy->port);
}

TEST(ProxyFor, an_option_is_for_all_of_the_network_but_datagrams) {
  const Environment environment{{{"https_proxy", "http://other:1"}}};
  for (const std::string_view uri :
       {"tcp://h", "tls://h", "http://h", "https://h", "ws://h", "wss://h", "tls://127.0.0.1"})
    EXPECT_EQ(proxy_of(uri, "http://proxy:3128"), "proxy:3128") << uri;
  for (const std::string_view uri : {"udp://h", "unix:///h", "inproc://h"})
    EXPECT_EQ(proxy_of(uri, "http://proxy:3128"), "none") << uri;
  EXPECT_EQ(proxy_of("https://h", "none"), "none");
  EXPECT_EQ(proxy_of("https://h", "proxy"), "proxy:1080");
  EXPECT_EQ(proxy_of("https://h", "http://[::1]:8080/"), "::1:8080");
  EXPECT_EQ(proxy_of("https://h", "http://[::1]"), "::1:1080");
  EXPECT_EQ(proxy_of("https://h", "http://ada:p%40ss@proxy:80"), "ada:p@ss@proxy:80");
}

TEST(ProxyFor, what_is_none_is_refused_with_the_name_of_who_said_it) {
  for (const std::string_view wrong : {"socks5://h:1", "https://h:1", "http://", "http://h:0", "http://h:70000",
                                       "http://h:x", "http://h/path", "http:// h"}) {
    try {
      static_cast<void>(proxy_of("https://h", wrong));
      FAIL() << wrong;
    } catch (const std::invalid_argument& error) {
      EXPECT_TRUE(std::string_view{error.what()}.starts_with("proxy is no HTTP proxy: ")) << error.what();
    }
  }
  const Environment environment{{{"all_proxy", "socks5://h:1"}}};
  EXPECT_THROW(static_cast<void>(proxy_of("https://h")), std::invalid_argument);
  EXPECT_THROW((Client{"wss://h", ClientOptions{}}), std::invalid_argument);
}

TEST(ProxyFor, the_environment_says_it_as_to_curl) {
  {
    const Environment environment{{{"http_proxy", "http://plain:1"}, {"HTTPS_PROXY", "http://tls:2"}}};
    EXPECT_EQ(proxy_of("http://h"), "plain:1");
    EXPECT_EQ(proxy_of("ws://h"), "plain:1");
    for (const std::string_view uri : {"https://h", "wss://h", "tls://h"}) EXPECT_EQ(proxy_of(uri), "tls:2") << uri;
    EXPECT_EQ(proxy_of("tcp://h"), "none");
    for (const std::string_view uri : {"https://localhost", "https://127.0.0.1", "https://[::1]"})
      EXPECT_EQ(proxy_of(uri), "none") << uri;
  }
  {
    const Environment environment{{{"HTTP_PROXY", "http://header:1"}, {"ALL_PROXY", "http://all:3"}}};
    EXPECT_EQ(proxy_of("http://h"), "all:3") << "HTTP_PROXY may be a header";
    EXPECT_EQ(proxy_of("tls://h"), "all:3");
    EXPECT_EQ(proxy_of("tcp://h"), "none");
  }
  const Environment environment{{{"all_proxy", "http://all:3"}, {"no_proxy", "a.example, .b.example,10.0.0.7"}}};
  for (const std::string_view uri :
       {"https://a.example", "https://x.A.example", "https://b.example", "https://10.0.0.7"})
    EXPECT_EQ(proxy_of(uri), "none") << uri;
  for (const std::string_view uri : {"https://aa.example", "https://example", "https://10.0.0.70"})
    EXPECT_EQ(proxy_of(uri), "all:3") << uri;
  ::setenv("no_proxy", "*", 1);
  EXPECT_EQ(proxy_of("https://aa.example"), "none");
}

// A proxy that takes one connection: it answers so, and where that is 200, leads on to `target`.
class Proxy {
 public:
  explicit Proxy(std::string answer, std::optional<Endpoint> target = {})
      : server_([this, answer = std::move(answer), target = std::move(target)](RawPeer peer) {
          for (std::string line = peer.line(); line != "\r" && !line.empty(); line = peer.line()) asked += line + '\n';
          peer.send(answer);
          if (!target) return;
          RawPeer server{*target};
          // A line each way, which is all that the test has to say.
          server.send(peer.line() + '\n');
          peer.send(server.line() + '\n');
          peer.all();
        }) {}

  [[nodiscard]] std::string uri() const { return "http://" + server_.uri().substr(6); }
  void join() { server_.join(); }

  std::string asked;

 private:
  ScriptedServer server_;
};

std::string refusal_by(const std::string& answer, const std::string& credentials = {}) {
  Proxy proxy{answer};
  ClientOptions options;
  options.connect_attempts = 1;
  options.proxy = proxy.uri();
  if (!credentials.empty()) options.proxy.insert(7, credentials + '@');
  Client client{"tcp://server.example:8545", options};
  try {
    client.connect();
  } catch (const ConnectionError& error) {
    return std::string{error.message()};
  }
  return {};
}

TEST(ClientProxy, leads_to_the_server_by_name) {
  Broker broker;
  broker.method("seven", [] { return 7; });
  const Endpoint target = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  Proxy proxy{"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n", target};
  ClientOptions options;
  options.proxy = "http://ada:secret@" + proxy.uri().substr(7);
  {
    Client client{"tcp://server.example:1234", options};
    EXPECT_EQ(client.call<int>("seven"), 7);
  }
  proxy.join();
  EXPECT_TRUE(proxy.asked.starts_with("CONNECT server.example:1234 HTTP/1.1\r\nHost: server.example:1234\r\n"))
      << proxy.asked;
  EXPECT_TRUE(proxy.asked.contains("\r\nProxy-Authorization: Basic YWRhOnNlY3JldA==\r")) << proxy.asked;
}

// A proxy that takes one connection, and hands on every byte, both ways.
class Tunnel {
 public:
  explicit Tunnel(const std::string& target)
      : server_([target = Endpoint{target}](RawPeer client) {
          for (std::string line = client.line(); line != "\r" && !line.empty(); line = client.line()) {
          }
          client.send("HTTP/1.1 200 Connection established\r\n\r\n");
          RawPeer server{target};
          std::thread back{[&] { hand_on(server, client); }};
          hand_on(client, server);
          back.join();
        }) {}
  [[nodiscard]] std::string uri() const { return "http://" + server_.uri().substr(6); }

 private:
  static void hand_on(RawPeer& from, RawPeer& to) {
    for (std::string byte = from.bytes(1); !byte.empty(); byte = from.bytes(1)) to.send(byte);
    to.finish();
  }

  ScriptedServer server_;
};

TEST(ClientProxy, leads_to_the_server_whatever_is_spoken_then) {
  const Served served;
  for (const std::string scheme : {"tcp", "ws", "http", "tls", "wss", "https"}) {
    const Tunnel proxy{served.tcp};
    ClientOptions options = trusting();
    options.proxy = proxy.uri();
    Client client{by(scheme, served.tcp, "localhost"), options};
    EXPECT_EQ(client.call<int>("subtract", 42, 23), 19) << scheme;
  }
}

TEST(ClientProxy, is_not_trusted_to_lead_to_the_server_that_was_meant) {
  const Served served;
  for (const std::string scheme : {"tls", "wss", "https"}) {
    const Tunnel proxy{served.tcp};
    ClientOptions options = trusting();
    options.proxy = proxy.uri();
    Client client{by(scheme, served.tcp, "server.example"), options};
    try {
      client.connect();
      ADD_FAILURE() << scheme;
    } catch (const ConnectionError& error) {
      EXPECT_TRUE(std::string_view{error.message()}.contains("hostname mismatch")) << error.message();
    }
  }
}

TEST(ClientProxy, that_refuses_is_named_and_its_credentials_are_not) {
  const std::string before = "cannot connect to tcp://server.example:8545: ";
  const std::string no = refusal_by("HTTP/1.1 403 Forbidden\r\n\r\n", "ada:secret");
  EXPECT_TRUE(no.starts_with(before + "it is refused by the proxy 127.0.0.1:")) << no;
  EXPECT_TRUE(no.contains("HTTP status 403; check that the proxy may connect there")) << no;
  EXPECT_FALSE(no.contains("secret")) << no;
  EXPECT_TRUE(refusal_by("HTTP/1.1 407 Authenticate\r\n\r\n").contains("give a user and a password in proxy"));
  EXPECT_TRUE(refusal_by("SSH-2.0-x\r\n\r\n").contains(" is no HTTP proxy; check the option proxy"));
  EXPECT_TRUE(refusal_by("HTTP/1.1 200").contains("the proxy has closed the connection"));
  EXPECT_TRUE(refusal_by("HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x')).contains("more than 16 KiB"));
}

TEST(ClientProxy, that_is_silent_is_named) {
  const ScriptedServer silent{[](RawPeer peer) { peer.all(); }};
  const Endpoint endpoint{"tcp://server.example:8545"};
  const auto proxy = proxy_for(endpoint, "http://" + silent.uri().substr(6));
  try {
    ::close(transport::connect_through(*proxy, endpoint, std::chrono::milliseconds{50}));
    ADD_FAILURE() << "it connects";
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(
        std::string_view{error.what()}.starts_with("cannot connect to tcp://server.example:8545: its HTTP proxy has "
                                                   "accepted the connection, and did not answer in "
                                                   "time; "))
        << error.what();
  }
}

}  // namespace
}  // namespace wirecall::net
