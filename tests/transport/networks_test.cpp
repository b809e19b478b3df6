// Which addresses are within a network.
#include "transport/networks.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace wirecall::transport {
namespace {

bool contains(const std::vector<std::string>& networks, const std::string& text) {
  const Networks all{networks, "proxy_from"};
  sockaddr_in as4{};
  if (::inet_pton(AF_INET, text.c_str(), &as4.sin_addr) == 1) {
    as4.sin_family = AF_INET;
    return all.contains(reinterpret_cast<const sockaddr*>(&as4));
  }
  sockaddr_in6 as6{};
  EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &as6.sin6_addr), 1) << text;
  as6.sin6_family = AF_INET6;
  return all.contains(reinterpret_cast<const sockaddr*>(&as6));
}

TEST(Networks, have_the_addresses_whose_first_bits_are_theirs) {
  EXPECT_TRUE(contains({"10.0.0.0/8"}, "10.255.1.2"));
  EXPECT_FALSE(contains({"10.0.0.0/8"}, "11.0.0.0"));
  EXPECT_TRUE(contains({"192.168.4.0/22"}, "192.168.7.255"));
  EXPECT_FALSE(contains({"192.168.4.0/22"}, "192.168.8.0"));
  EXPECT_FALSE(contains({"192.168.4.0/22"}, "192.168.3.255"));
  EXPECT_TRUE(contains({"10.0.0.7"}, "10.0.0.7"));
  EXPECT_FALSE(contains({"10.0.0.7"}, "10.0.0.6"));
  EXPECT_TRUE(contains({"0.0.0.0/0"}, "203.0.113.9"));
  EXPECT_TRUE(contains({"fd00::/8"}, "fdff::1"));
  EXPECT_FALSE(contains({"fd00::/8"}, "fe00::1"));
  EXPECT_TRUE(contains({"::1"}, "::1"));
  EXPECT_TRUE(contains({"10.0.0.7", "2001:db8::/33"}, "2001:db8:7fff::1"));
  EXPECT_FALSE(contains({"10.0.0.7", "2001:db8::/33"}, "2001:db8:8000::1"));
}

TEST(Networks, of_ipv4_are_the_same_within_ipv6) {
  EXPECT_TRUE(contains({"10.0.0.0/8"}, "::ffff:10.1.2.3"));
  EXPECT_TRUE(contains({"::ffff:10.0.0.0/104"}, "10.1.2.3"));
  EXPECT_FALSE(contains({"0.0.0.0/0"}, "::1"));
  EXPECT_FALSE(contains({"0.0.0.0/0"}, "::10.1.2.3"));
}

TEST(Networks, without_any_there_is_no_address) {
  EXPECT_TRUE(Networks{}.empty());
  EXPECT_FALSE(contains({}, "127.0.0.1"));
}

TEST(Networks, that_are_none_are_refused) {
  for (const char* const wrong : {"", "10.0.0.0/", "10.0.0.0/33", "10.0.0.1/8", "10.0.0/8", "localhost", "fd00::/129",
                                  "fd00::1/64", "10.0.0.0/8x", "10.0.0.0/+8", "10.0.0.0/-1", "/8", "::/0/0"}) {
    EXPECT_THROW(Networks({"10.0.0.7", wrong}, "proxy_from"), std::invalid_argument) << wrong;
  }
}

}  // namespace
}  // namespace wirecall::transport
