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

TEST(Endpoint, an_ipv6_address_stands_in_brackets) {
  const Endpoint endpoint{"tcp://[2001:db8::1]:0"};
  EXPECT_EQ(endpoint.host(), "2001:db8::1");
  EXPECT_EQ(endpoint.port(), 0);
  EXPECT_EQ(endpoint.uri(), "tcp://[2001:db8::1]:0");
  EXPECT_EQ(endpoint.with_port(9).uri(), "tcp://[2001:db8::1]:9");
}

TEST(Endpoint, what_names_no_place_is_refused_with_the_cause_and_the_cure) {
  for (const std::string_view uri : {"", "127.0.0.1:8545", "tcp:/127.0.0.1", "udp://127.0.0.1:1", "tcp://", "tcp://:80",
                                     "tcp://host:", "tcp://host:x", "tcp://host:65536", "tcp://host:-1",
                                     "tcp://host:80x", "tcp://::1:80", "tcp://[::1:80", "tcp://[::1]80",
                                     "tcp://host:80/path", "tcp://user@host:80", "tcp://[]:80", "tcp://ho st:80"}) {
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

TEST(Endpoint, a_uri_names_a_place_within_the_process) {
  const Endpoint endpoint{"inproc://calls.of-mine"};
  EXPECT_EQ(endpoint.kind(), EndpointKind::inproc);
  EXPECT_EQ(endpoint.path(), "calls.of-mine");
  EXPECT_EQ(endpoint.uri(), "inproc://calls.of-mine");
}

TEST(Endpoint, a_socket_file_has_a_path_that_the_system_s_address_holds) {
  const std::string longest = "/" + std::string(kSocketPathBytesMax - 1, 'x');
  EXPECT_EQ(Endpoint{"unix://" + longest}.path(), longest);
  EXPECT_NE(Endpoint::parse("unix://" + longest + "x").error().find("more than 107 bytes"), std::string::npos);
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
           Mistake{"inproc://"sv, "no name", "write inproc://name"},
           Mistake{"inproc://a/b"sv, "more than letters", "write inproc://name"},
           Mistake{"inproc://a b"sv, "more than letters", "write inproc://name"},
           Mistake{"http://localhost"sv, "unix://, stdio: and inproc://", "write tcp://host:port"},
           Mistake{"localhost"sv, "no scheme", "write tcp://host:port"},
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
