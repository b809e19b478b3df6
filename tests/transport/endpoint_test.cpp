#include "wirecall/endpoint.hpp"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <string_view>

namespace wirecall {
namespace {

TEST(Endpoint, a_uri_names_host_and_port) {
  const Endpoint endpoint{"tcp://127.0.0.1:8545"};
  EXPECT_EQ(endpoint.host(), "127.0.0.1");
  EXPECT_EQ(endpoint.port(), 8545);
  EXPECT_EQ(endpoint.uri(), "tcp://127.0.0.1:8545");
}

TEST(Endpoint, the_port_is_8545_where_none_is_said) {
  EXPECT_EQ(Endpoint{"tcp://localhost"}.port(), 8545);
  EXPECT_EQ(Endpoint{"tcp://localhost/"}.port(), 8545);
  EXPECT_EQ(Endpoint{"tcp://[::1]"}.port(), 8545);
}

TEST(Endpoint, host_and_port_without_a_scheme_are_tcp) {
  EXPECT_EQ(Endpoint{"localhost:8545"}.uri(), "tcp://localhost:8545");
  EXPECT_EQ(Endpoint{"127.0.0.1:0"}.uri(), "tcp://127.0.0.1:0");
  EXPECT_EQ(Endpoint{"[::1]:8545"}.uri(), "tcp://[::1]:8545");
  EXPECT_EQ(Endpoint{"stdio:"}.kind(), EndpointKind::stdio);
  for (const std::string_view none : {"localhost", "::1", "::1:8545", ":8545", "/run/x:1", "localhost:8545/rpc", "8545",
                                      "unix:calls", "tcp:localhost"}) {
    const auto parsed = Endpoint::parse(none);
    ASSERT_FALSE(parsed.has_value()) << none;
    EXPECT_NE(parsed.error().find("it has no scheme"), std::string::npos) << parsed.error();
  }
  for (const std::string_view none : {"localhost:65536", "localhost:abc", "localhost:", "[::1]:x", "127.0.0.1:-1"}) {
    const auto parsed = Endpoint::parse(none);
    ASSERT_FALSE(parsed.has_value()) << none;
    EXPECT_NE(parsed.error().find("the port is no number from 0 to 65535"), std::string::npos) << parsed.error();
  }
  EXPECT_NE(Endpoint::parse("user@host:80").error().find("host and port are all"), std::string::npos);
  EXPECT_NE(Endpoint::parse("/run/calls.sock").error().find("write unix:///path"), std::string::npos);
}

TEST(Endpoint, an_ipv6_address_stands_in_brackets) {
  const Endpoint endpoint{"tcp://[2001:db8::1]:0"};
  EXPECT_EQ(endpoint.host(), "2001:db8::1");
  EXPECT_EQ(endpoint.port(), 0);
  EXPECT_EQ(endpoint.uri(), "tcp://[2001:db8::1]:0");
  EXPECT_EQ(endpoint.with_port(9).uri(), "tcp://[2001:db8::1]:9");
}

TEST(Endpoint, of_datagrams_is_host_and_port) {
  const Endpoint endpoint{"udp://127.0.0.1:9000"};
  EXPECT_EQ(endpoint.kind(), EndpointKind::udp);
  EXPECT_EQ(endpoint.host(), "127.0.0.1");
  EXPECT_EQ(endpoint.port(), 9000);
  EXPECT_EQ(endpoint.uri(), "udp://127.0.0.1:9000");
  EXPECT_EQ(Endpoint{"udp://[::1]"}.uri(), "udp://[::1]:8545");
  EXPECT_EQ(endpoint.with_port(1).uri(), "udp://127.0.0.1:1");
  for (const std::string_view none : {"udp://", "udp://:80", "udp://host:x", "udp://host:80/path"}) {
    const auto parsed = Endpoint::parse(none);
    ASSERT_FALSE(parsed.has_value()) << none;
    EXPECT_NE(parsed.error().find("write udp://host:port"), std::string::npos) << parsed.error();
  }
}

TEST(Endpoint, xdp_names_an_interface_and_a_port) {
  const Endpoint endpoint{"xdp://eth0:9000"};
  EXPECT_EQ(endpoint.kind(), EndpointKind::xdp);
  EXPECT_EQ(endpoint.host(), "eth0");
  EXPECT_EQ(endpoint.port(), 9000);
  EXPECT_EQ(endpoint.uri(), "xdp://eth0:9000");
  EXPECT_EQ(Endpoint{"xdp://eth0"}.port(), kDefaultPort);
  EXPECT_FALSE(Endpoint::parse("xdp://:80"));
}

TEST(Endpoint, what_names_no_endpoint_is_refused_with_the_cause_and_the_cure) {
  for (const std::string_view uri :
       {"sctp://127.0.0.1:1", "tcp://", "tcp://:80", "tcp://host:", "tcp://host:x", "tcp://host:65536", "tcp://host:-1",
        "tcp://host:80x", "tcp://::1:80", "tcp://[::1:80", "tcp://[::1]80", "tcp://host:80/path", "tcp://user@host:80",
        "tcp://[]:80", "tcp://ho st:80"}) {
    const auto parsed = Endpoint::parse(uri);
    ASSERT_FALSE(parsed.has_value()) << uri;
    EXPECT_NE(parsed.error().find("write tcp://host:port"), std::string::npos) << parsed.error();
    EXPECT_THROW(Endpoint{uri}, std::invalid_argument) << uri;
  }
}

TEST(Endpoint, a_uri_names_a_socket_file) {
  const Endpoint endpoint{"unix:///run/calls%20here.sock"};
  EXPECT_EQ(endpoint.kind(), EndpointKind::unix_socket);
  EXPECT_EQ(endpoint.path(), "/run/calls%20here.sock");
  EXPECT_EQ(endpoint.host(), "");
  EXPECT_EQ(endpoint.uri(), "unix:///run/calls%20here.sock");
}

TEST(Endpoint, a_uri_names_standard_input_and_output) {
  EXPECT_EQ(Endpoint{"stdio:"}.kind(), EndpointKind::stdio);
  EXPECT_EQ(Endpoint{"stdio:"}.uri(), "stdio:");
}

TEST(Endpoint, a_uri_names_an_endpoint_within_the_process) {
  const Endpoint endpoint{"inproc://calls.of-mine"};
  EXPECT_EQ(endpoint.kind(), EndpointKind::inproc);
  EXPECT_EQ(endpoint.path(), "calls.of-mine");
  EXPECT_EQ(endpoint.uri(), "inproc://calls.of-mine");
}

TEST(Endpoint, an_http_uri_names_host_port_and_path) {
  const Endpoint endpoint{"http://example.com:8545/v1/rpc?key=a%20b"};
  EXPECT_EQ(endpoint.kind(), EndpointKind::http);
  EXPECT_EQ(endpoint.host(), "example.com");
  EXPECT_EQ(endpoint.port(), 8545);
  EXPECT_EQ(endpoint.path(), "/v1/rpc?key=a%20b");
  EXPECT_EQ(endpoint.authority(), "example.com:8545");
  EXPECT_EQ(endpoint.uri(), "http://example.com:8545/v1/rpc?key=a%20b");
}

TEST(Endpoint, a_ws_uri_names_the_same_and_the_path_is_the_root_where_none_is_said) {
  const Endpoint endpoint{"ws://example.com:8545/ws?x=1"};
  EXPECT_EQ(endpoint.kind(), EndpointKind::ws);
  EXPECT_EQ(endpoint.host(), "example.com");
  EXPECT_EQ(endpoint.port(), 8545);
  EXPECT_EQ(endpoint.path(), "/ws?x=1");
  EXPECT_EQ(endpoint.authority(), "example.com:8545");
  EXPECT_EQ(endpoint.uri(), "ws://example.com:8545/ws?x=1");
  EXPECT_EQ(Endpoint{"ws://[::1]"}.uri(), "ws://[::1]/");
  EXPECT_EQ(Endpoint{"ws://host"}.port(), 80);
  EXPECT_EQ(Endpoint{"ws://host:8545?a"}.path(), "/?a");
  for (const char* bad : {"ws://", "ws://host:0/", "ws://user@host/", "ws://host/a b", "ws://host/#x"})
    EXPECT_THROW(Endpoint{bad}, std::invalid_argument) << bad;
}

TEST(Endpoint, an_http_uri_has_the_port_80_and_the_path_rpc_where_none_is_said) {
  const Endpoint endpoint{"http://[::1]"};
  EXPECT_EQ(endpoint.port(), 80);
  EXPECT_EQ(endpoint.path(), "/rpc");
  EXPECT_EQ(endpoint.authority(), "[::1]");
  EXPECT_EQ(endpoint.uri(), "http://[::1]/rpc");
  EXPECT_EQ(Endpoint{"http://host:8545"}.path(), "/rpc");
  EXPECT_EQ(Endpoint{"http://host?key=1"}.path(), "/rpc?key=1");
  EXPECT_EQ(Endpoint{"http://host/"}.path(), "/");
}

TEST(Endpoint, a_socket_file_has_a_path_that_the_system_s_address_holds) {
  const std::string longest = "/" + std::string(kSocketPathBytesMax - 1, 'x');
  EXPECT_EQ(Endpoint{"unix://" + longest}.path(), longest);
  EXPECT_NE(Endpoint::parse("unix://" + longest + "x").error().find("more than 107 bytes"), std::string::npos);
}

TEST(Endpoint, may_be_encrypted) {
  const Endpoint tls{"tls://example.com"};
  EXPECT_EQ(tls.kind(), EndpointKind::tls);
  EXPECT_EQ(tls.port(), kDefaultPort);
  EXPECT_EQ(tls.path(), "");
  EXPECT_EQ(tls.uri(), "tls://example.com:8545");
  const Endpoint https{"https://example.com"};
  EXPECT_EQ(https.kind(), EndpointKind::https);
  EXPECT_EQ(https.port(), 443);
  EXPECT_EQ(https.path(), "/rpc");
  EXPECT_EQ(https.authority(), "example.com");
  EXPECT_EQ(https.uri(), "https://example.com/rpc");
  EXPECT_EQ(Endpoint{"https://example.com:80/"}.authority(), "example.com:80");
  const Endpoint wss{"wss://[::1]:8545/ws?x=1"};
  EXPECT_EQ(wss.kind(), EndpointKind::wss);
  EXPECT_EQ(wss.host(), "::1");
  EXPECT_EQ(wss.path(), "/ws?x=1");
  EXPECT_EQ(wss.uri(), "wss://[::1]:8545/ws?x=1");
  EXPECT_EQ(Endpoint{"wss://host"}.path(), "/");
  for (const char* const uri : {"tls://a", "https://a", "wss://a"}) EXPECT_TRUE(Endpoint{uri}.encrypted()) << uri;
  for (const char* const uri : {"tcp://a", "http://a", "ws://a", "udp://a", "inproc://a", "shm://a", "stdio:"})
    EXPECT_FALSE(Endpoint{uri}.encrypted()) << uri;
}

TEST(Endpoint, each_kind_s_mistakes_are_told_with_its_own_cure) {
  using namespace std::string_view_literals;
  struct Mistake {
    std::string_view uri;
    std::string_view cause;
    std::string_view cure;
  };
  for (const Mistake& mistake : {
           Mistake{"unix://run/x.sock"sv, "does not begin at the root", "write unix:///path"},
           Mistake{"unix://"sv, "does not begin at the root", "write unix:///path"},
           Mistake{"unix:///run/"sv, "names a folder", "write unix:///path"},
           Mistake{"unix:///run\0x"sv, "a byte of zero", "write unix:///path"},
           Mistake{"stdio://"sv, "only one standard input", "write stdio: and nothing"},
           Mistake{"shm://"sv, "no name", "write shm://name"},
           Mistake{"shm://a/b"sv, "more than letters", "write shm://name"},
           Mistake{"inproc://"sv, "no name", "write inproc://name"},
           Mistake{"inproc://a/b"sv, "more than letters", "write inproc://name"},
           Mistake{"inproc://a b"sv, "more than letters", "write inproc://name"},
           Mistake{"ftp://localhost"sv,
                   "tls://, http://, https://, ws://, wss://, unix://, shm://, udp://, stdio: and inproc://",
                   "write tcp://host:port"},
           Mistake{"http://"sv, "no host", "write http://host:port/path"},
           Mistake{"http:///rpc"sv, "no host", "write http://host:port/path"},
           Mistake{"http://user:word@host/rpc"sv, "names a user", "write http://host:port/path"},
           Mistake{"http://host:x/rpc"sv, "no number from 0", "write http://host:port/path"},
           Mistake{"http://host:0/rpc"sv, "nobody listens on port 0", "write http://host:port/path"},
           Mistake{"http://::1/rpc"sv, "stands in brackets", "write http://host:port/path"},
           Mistake{"http://host/rpc#here"sv, "a fragment", "write http://host:port/path"},
           Mistake{"http://host/r pc"sv, "written as %XX", "write http://host:port/path"},
           Mistake{"http://host/rpc\r\nX: y"sv, "written as %XX", "write http://host:port/path"},
           Mistake{"http://h\0st/rpc"sv, "written as %XX", "write http://host:port/path"},
           Mistake{"http://host/r\u00e9"sv, "written as %XX", "write http://host:port/path"},
           Mistake{"tls://"sv, "no host", "write tls://host:port"},
           Mistake{"tls://::1"sv, "stands in brackets", "write tls://host:port"},
           Mistake{"https://user@host/"sv, "names a user", "write https://host:port/path"},
           Mistake{"wss://host/#x"sv, "a fragment", "write wss://host:port/path"},
           Mistake{"localhost"sv, "no scheme", "write host:port"},
           Mistake{""sv, "no scheme", "write host:port"},
           Mistake{"tcp:/127.0.0.1"sv, "no scheme", "write host:port"},
       }) {
    const auto parsed = Endpoint::parse(mistake.uri);
    ASSERT_FALSE(parsed.has_value()) << mistake.uri;
    EXPECT_NE(parsed.error().find(mistake.cause), std::string::npos) << parsed.error();
    EXPECT_NE(parsed.error().find(mistake.cure), std::string::npos) << parsed.error();
  }
  EXPECT_NE(Endpoint::parse("inproc://" + std::string(256, 'n')).error().find("255 bytes"), std::string::npos);
}

}  // namespace
}  // namespace wirecall
