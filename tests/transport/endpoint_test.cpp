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

}  // namespace
}  // namespace wirecall
