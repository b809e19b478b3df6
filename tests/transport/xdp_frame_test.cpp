// Frames by hand: the bytes of the first are a capture of Linux's own sender (its UDP checksum added on paper), and
// what is written is read by a checker that adds up words one by one, as RFC 1071 shows it.
#include "transport/xdp_frame.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace wirecall::transport {
namespace {

using namespace std::string_literals;

// From 10.9.0.2:43195 to 10.9.0.1:8545, {"a":1}. 1435 is the sum of the pseudo-header alone.
const std::string kFrame =
    "\x92\x0a\x4b\xd6\xda\xdc\x92\x34\xf8\x06\xc0\xb2\x08\x00"
    "\x45\x00\x00\x23\x1b\xb7\x40\x00\x40\x11\x0a\xff\x0a\x09\x00\x02\x0a\x09\x00\x01"
    "\xa8\xbb\x21\x61\x00\x0f\x14\x35"
    "{\"a\":1}"s;

unsigned word(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U; };
  return byte(at) << 8 | byte(at + 1);
}
unsigned plain_sum(std::string_view bytes, unsigned sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += word(bytes, i);
    if (sum > 0xFFFF) sum -= 0xFFFF;
  }
  return sum;
}
// Of a frame whose datagram reaches to its end: with its checksum in it, 0xFFFF.
unsigned udp_sum(std::string_view frame) {
  return plain_sum(frame.substr(34), plain_sum(frame.substr(26, 8), 17 + word(frame, 38)));
}
void set(std::string& bytes, std::size_t at, unsigned value) {
  bytes[at] = static_cast<char>(value >> 8);
  bytes[at + 1] = static_cast<char>(value);
}
// Changed bytes need a new sum of the head, or that alone would be why it is refused.
std::string with_ip_sum(std::string frame) {
  set(frame, 24, 0);
  set(frame, 24, ~plain_sum(std::string_view{frame}.substr(14, 20)) & 0xFFFF);
  return frame;
}

// Of exactly its size, so that a read behind it is found.
std::optional<std::string> read(const std::string& frame) {
  const auto exact = std::make_unique_for_overwrite<char[]>(frame.size());
  frame.copy(exact.get(), frame.size());
  const auto datagram = read_xdp_frame({exact.get(), frame.size()});
  return datagram ? std::optional{std::string{datagram->bytes}} : std::nullopt;
}

TEST(XdpFrame, a_datagram_is_read_with_both_its_ends) {
  const auto datagram = read_xdp_frame(kFrame);
  ASSERT_TRUE(datagram);
  EXPECT_EQ(datagram->bytes, R"({"a":1})");
  EXPECT_EQ(datagram->ends.peer_address, (std::array<std::uint8_t, 4>{10, 9, 0, 2}));
  EXPECT_EQ(datagram->ends.own_address, (std::array<std::uint8_t, 4>{10, 9, 0, 1}));
  EXPECT_EQ(datagram->ends.peer_port, htons(43195));
  EXPECT_EQ(datagram->ends.own_port, htons(8545));
  EXPECT_EQ(datagram->ends.peer_hardware, (std::array<std::uint8_t, 6>{0x92, 0x34, 0xf8, 0x06, 0xc0, 0xb2}));
}

TEST(XdpFrame, its_checksum_is_right_or_missing_or_begun) {
  EXPECT_TRUE(read(kFrame)) << "begun";
  std::string frame = kFrame;
  set(frame, 40, 0);
  EXPECT_TRUE(read(frame)) << "missing";
  set(frame, 40, ~udp_sum(frame) & 0xFFFF);
  EXPECT_EQ(udp_sum(frame), 0xFFFFU);
  EXPECT_TRUE(read(frame)) << "right";
  for (std::size_t i = 34; i < frame.size(); ++i) {
    if (i == 38 || i == 39) continue;
    std::string other = frame;
    other[i] = static_cast<char>(other[i] ^ 4);
    EXPECT_FALSE(read(other)) << "a byte has changed: " << i;
  }
}

TEST(XdpFrame, no_part_of_one_is_read) {
  for (std::size_t bytes = 0; bytes < kFrame.size(); ++bytes) EXPECT_FALSE(read(kFrame.substr(0, bytes))) << bytes;
  EXPECT_EQ(read(kFrame + std::string(20, 'x')), R"({"a":1})") << "frames are filled up";
}

TEST(XdpFrame, what_is_no_such_datagram_is_none) {
  struct Change {
    const char* what;
    std::size_t at;
    unsigned value;
  };
  for (const Change& change : std::vector<Change>{{"IPv6", 12, 0x86DD},
                                                  {"options", 14, 0x4600},
                                                  {"more bytes than the frame", 16, 0x24},
                                                  {"fewer bytes than a head", 16, 0x1B},
                                                  {"no bytes", 16, 0},
                                                  {"more parts follow", 20, 0x2000},
                                                  {"a later part", 20, 0x0001},
                                                  {"TCP", 22, 0x4006},
                                                  {"from many", 26, 0xE009},
                                                  {"from nowhere", 26, 0x0009},
                                                  {"from this machine", 26, 0x7F09},
                                                  {"to many", 30, 0xE009},
                                                  {"from hardware of many", 6, 0x9334},
                                                  {"to hardware of many", 0, 0x930A},
                                                  {"from port 0", 34, 0},
                                                  {"more bytes than IPv4 says", 38, 0x10},
                                                  {"fewer bytes than a head of UDP", 38, 7}}) {
    std::string frame = kFrame;
    set(frame, 40, 0);
    set(frame, change.at, change.value);
    EXPECT_FALSE(read(with_ip_sum(frame))) << change.what;
  }
  std::string frame = kFrame;
  frame[22] = 1;  // fewer hops, and the old sum
  EXPECT_FALSE(read(frame)) << "a wrong sum of the head";
  EXPECT_TRUE(read(with_ip_sum(frame)));
}

TEST(XdpFrame, a_reply_goes_back_with_right_sums) {
  const auto request = read_xdp_frame(kFrame);
  ASSERT_TRUE(request);
  for (std::size_t bytes = 0; bytes < 1472; ++bytes) {
    std::string frame(kXdpHeadBytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) frame.push_back(static_cast<char>(i * 7 + bytes));
    write_xdp_head(frame.data(), bytes, request->ends);
    ASSERT_EQ(plain_sum(std::string_view{frame}.substr(14, 20)), 0xFFFFU);
    ASSERT_EQ(udp_sum(frame), 0xFFFFU) << bytes;
    const auto read = read_xdp_frame(frame);
    ASSERT_TRUE(read) << bytes;
    ASSERT_EQ(read->bytes, std::string_view{frame}.substr(kXdpHeadBytes));
    EXPECT_EQ(read->ends.peer_address, request->ends.own_address);
    EXPECT_EQ(read->ends.own_address, request->ends.peer_address);
    EXPECT_EQ(read->ends.peer_port, request->ends.own_port);
    EXPECT_EQ(read->ends.own_port, request->ends.peer_port);
    EXPECT_EQ(read->ends.peer_hardware, request->ends.own_hardware);
    EXPECT_EQ(read->ends.own_hardware, request->ends.peer_hardware);
  }
}

}  // namespace
}  // namespace wirecall::transport
