#include "transport/loopback.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace wirecall::transport {
namespace {

TEST(Loopback, is_what_names_this_machine_by_definition) {
  for (const auto* host :
       {"localhost", "LocalHost", "127.0.0.1", "127.255.1.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
}

TEST(Loopback, is_no_name_for_a_resolver_and_no_address_that_others_reach) {
  for (const auto* host :
       {"", "0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "127.example.com", "localhost.example.com", "127.0.0.1.", "127.1",
        "127.0.0.256", "1127.0.0.1", "::2", "::ffff:10.0.0.1", "localhos", "[::1]"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
  EXPECT_FALSE(is_loopback(std::string(5000, '1')));
  EXPECT_FALSE(is_loopback(std::string_view{"127.0.0.1\0.example", 18}));
}

TEST(Loopback, listeners_that_only_this_machine_reaches_are_local) {
  for (const auto* uri : {"tcp://127.0.0.1:1", "tcp://localhost:1", "tcp://[::1]:1", "unix:///run/calls.sock",
                          "stdio:", "inproc://calls"}) {
    EXPECT_TRUE(is_local(Endpoint{uri})) << uri;
  }
  for (const auto* uri : {"tcp://0.0.0.0:1", "tcp://[::]:1", "tcp://example.com:1"}) {
    EXPECT_FALSE(is_local(Endpoint{uri})) << uri;
  }
}

}  // namespace
}  // namespace wirecall::transport
