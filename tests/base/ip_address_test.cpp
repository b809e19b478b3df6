// Addresses as text, against inet_pton of the C library.
#include "base/ip_address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <random>
#include <string>

namespace wirecall {
namespace {

void expect_as_inet_pton(const std::string& text) {
  std::array<std::uint8_t, 4> v4{};
  std::array<std::uint8_t, 4> known4{};
  const bool is4 = ::inet_pton(AF_INET, text.c_str(), known4.data()) == 1;
  EXPECT_EQ(read_ipv4(text, v4.data()), is4) << text;
  if (is4) {
    EXPECT_EQ(v4, known4) << text;
  }
  std::array<std::uint8_t, 16> v6{};
  std::array<std::uint8_t, 16> known6{};
  const bool is6 = ::inet_pton(AF_INET6, text.c_str(), known6.data()) == 1;
  EXPECT_EQ(read_ipv6(text, v6), is6) << text;
  if (is6) {
    EXPECT_EQ(v6, known6) << text;
  }
}

TEST(IpAddress, is_read_as_the_c_library_does) {
  std::mt19937 random{1};
  constexpr std::string_view kLetters = "0123456789abcdefABCDEF::::..g ";
  const auto letter = [&] { return kLetters[random() % kLetters.size()]; };
  for (const char* const seed :
       {"", "::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::8", "::ffff:1.2.3.4",
        "1:2:3:4:5:6:1.2.3.4", "fe80::1", "2001:db8::ff00:42:8329", "1.2.3.4", "255.255.255.255", "0.0.0.0"}) {
    expect_as_inet_pton(seed);
    for (int i = 0; i < 5000; ++i) {
      std::string text{seed};
      for (std::size_t changes = random() % 3; changes != 0; --changes) {
        const std::size_t at = random() % (text.size() + 1);
        const std::size_t how = random() % 3;
        if (how == 0) text.insert(at, 1, letter());
        if (how == 1 && at < text.size()) text[at] = letter();
        if (how == 2 && at < text.size()) text.erase(at, 1);
      }
      expect_as_inet_pton(text);
    }
  }
}

TEST(IpAddress, ends_with_its_text) {
  std::array<std::uint8_t, 16> bytes{};
  EXPECT_FALSE(read_ipv6(std::string_view{"::1\0", 4}, bytes));
  EXPECT_FALSE(read_ipv4(std::string_view{"1.2.3.4\0", 8}, bytes.data()));
}

}  // namespace
}  // namespace wirecall
