// PROXY headers of both versions, whole and cut at every byte. What they look like is haproxy's
// doc/proxy-protocol.txt, sections 2.1 and 2.2.
#include "framing/proxy_protocol.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

namespace wirecall::framing {
namespace {

using namespace std::string_literals;
using State = ProxyHeader::State;
using Family = ProxiedClient::Family;

struct Read {
  State state = State::incomplete;
  std::size_t taken = 0;
  ProxiedClient client;
  std::string cause;

  friend bool operator==(const Read&, const Read&) = default;
};

// The pieces each come in a heap block of its exact size.
Read read(std::string_view bytes, std::size_t cut, std::size_t piece) {
  ProxyHeader header;
  Read result;
  for (std::size_t at = 0; at != bytes.size() && result.state == State::incomplete;) {
    const std::size_t size = std::min(at < cut ? cut - at : piece, bytes.size() - at);
    const std::unique_ptr<char[]> block{new char[size]};
    std::memcpy(block.get(), bytes.data() + at, size);
    std::size_t taken = 0;
    result.state = header.feed({block.get(), size}, taken);
    result.taken += taken;
    at += size;
  }
  result.client = header.client();
  result.cause = header.cause();
  return result;
}

// The same however the bytes are cut.
Read read(std::string_view bytes) {
  const Read whole = read(bytes, bytes.size(), bytes.size());
  for (std::size_t cut = 1; cut < bytes.size(); ++cut)
    EXPECT_EQ(read(bytes, cut, bytes.size()), whole) << bytes << " cut at " << cut;
  EXPECT_EQ(read(bytes, 1, 1), whole) << bytes << " byte by byte";
  return whole;
}

void expect_client(const std::string& header, const ProxiedClient& client) {
  for (const std::string_view behind : {"", "x", "GET / HTTP/1.1\r\n", "\r\n"}) {
    const Read result = read(header + std::string{behind});
    EXPECT_EQ(result.state, State::complete) << header << ": " << result.cause;
    EXPECT_EQ(result.taken, header.size()) << header;
    EXPECT_EQ(result.client, client) << header;
  }
  for (std::size_t size = 0; size != header.size(); ++size)
    EXPECT_EQ(read(header.substr(0, size)).state, State::incomplete) << header << ", " << size << " bytes";
}

void expect_malformed(const std::string& header, std::string_view cause) {
  const Read result = read(header);
  EXPECT_EQ(result.state, State::malformed) << header;
  EXPECT_EQ(result.cause, cause) << header;
}

ProxiedClient ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d, std::uint16_t port) {
  return {.family = Family::ipv4, .address = {a, b, c, d}, .port = port};
}

const std::string kSignature{"\r\n\r\n\0\r\nQUIT\n", 12};

std::string version_2(unsigned char command, unsigned char family, const std::string& rest) {
  return kSignature + static_cast<char>(command) + static_cast<char>(family) + static_cast<char>(rest.size() >> 8) +
         static_cast<char>(rest.size()) + rest;
}

TEST(ProxyProtocol, a_line_names_a_client_of_ipv4) {
  expect_client("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", ipv4(192, 168, 0, 1, 56324));
  expect_client("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", ipv4(255, 255, 255, 255, 65535));
  expect_client("PROXY TCP4 0.0.0.0 127.0.0.1 0 1\r\n", ipv4(0, 0, 0, 0, 0));
}

TEST(ProxyProtocol, a_line_names_a_client_of_ipv6) {
  expect_client("PROXY TCP6 2001:db8::17 ::1 4000 443\r\n",
                {.family = Family::ipv6,
                 .address = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x17},
                 .port = 4000});
  expect_client(
      "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
      {.family = Family::ipv6,
       .address = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
       .port = 65535});
}

TEST(ProxyProtocol, of_an_unknown_client_nothing_is_read) {
  expect_client("PROXY UNKNOWN\r\n", {});
  expect_client("PROXY UNKNOWN what \0 follows\r means nothing\r\n"s, {});
  const std::string longest =
      "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
  ASSERT_EQ(longest.size(), 107U);
  expect_client(longest, {});
}

TEST(ProxyProtocol, a_line_that_is_written_otherwise_is_refused) {
  for (const std::string_view begin :
       {"PROXY\r\n", "PROXX ", "PROXY\tTCP4", "PRI * HTTP/2.0\r\n", "POST / HTTP/1.1\r\n"})
    expect_malformed(std::string{begin}, "it does not begin with PROXY and a space");
  for (const std::string& begin :
       {"proxy TCP4 1.1.1.1 2.2.2.2 1 2\r\n"s, "{\"jsonrpc\""s, " PROXY TCP4"s, "\0\0\0\x05"s, "\x16\x03\x01"s, "\n"s})
    expect_malformed(begin, "it begins with neither PROXY nor the signature of version 2");
  for (const std::string_view line :
       {"PROXY \r\n", "PROXY TCP\r\n", "PROXY TCP5 1.1.1.1 2.2.2.2 1 2\r\n", "PROXY UDP4 1.1.1.1 2.2.2.2 1 2\r\n",
        "PROXY  TCP4 1.1.1.1 2.2.2.2 1 2\r\n", "PROXY UNKNOWN_\r\n", "PROXY tcp4 1.1.1.1 2.2.2.2 1 2\r\n"})
    expect_malformed(std::string{line}, "it names neither TCP4, TCP6 nor UNKNOWN");
  for (const std::string_view addresses :
       {"TCP4", "TCP4 1.1.1.1", "TCP4  1.1.1.1 2.2.2.2 1 2", "TCP4 1.1.1 2.2.2.2 1 2", "TCP4 1.1.1.256 2.2.2.2 1 2",
        "TCP4 1.1.1.01 2.2.2.2 1 2", "TCP4 1.1.1.1 localhost 1 2", "TCP4 ::1 ::2 1 2", "TCP6 1.1.1.1 2.2.2.2 1 2",
        "TCP6 1::2::3 ::1 1 2", "TCP6 fe80::1%eth0 ::1 1 2", "TCP6 [::1] ::1 1 2", "TCP4 0x7f.0.0.1 2.2.2.2 1 2",
        "TCP4 1.1.1.1\t2.2.2.2 1 2"})
    expect_malformed("PROXY " + std::string{addresses} + "\r\n", "an address is none of its family");
  for (const std::string_view ports : {"", " 1", " 1 ", "  1 2", " 1  2", " -1 2", " 65536 2", " 1 65536", " 01 2",
                                       " 1 00", " a 2", " 1 2a", " +1 2", " 1 2\r", " 1 2 "})
    expect_malformed("PROXY TCP4 1.1.1.1 2.2.2.2" + std::string{ports} + "\r\n", "a port is no number from 0 to 65535");
  expect_malformed("PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3\r\n", "its line has more than two addresses and two ports");
}

TEST(ProxyProtocol, a_line_has_107_bytes_at_most) {
  expect_malformed("PROXY UNKNOWN " + std::string(92, 'x') + "\r\n", "its line has more than 107 bytes");
  expect_malformed("PROXY TCP4 1.1.1.1 2.2.2.2 1 2\n" + std::string(100, 'x'), "its line has more than 107 bytes");
}

TEST(ProxyProtocol, version_2_names_a_client) {
  const std::string addresses = "\xC0\x00\x02\x01\x7F\x00\x00\x01\xDC\x04\x01\xBB"s;
  expect_client(version_2(0x21, 0x11, addresses), ipv4(192, 0, 2, 1, 56324));
  expect_client(version_2(0x21, 0x12, addresses), ipv4(192, 0, 2, 1, 56324));
  std::string of_ipv6(36, '\0');
  of_ipv6[0] = '\x20';
  of_ipv6[15] = '\x17';
  of_ipv6[32] = '\x0F';
  of_ipv6[33] = '\xA0';
  expect_client(
      version_2(0x21, 0x21, of_ipv6),
      {.family = Family::ipv6, .address = {0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x17}, .port = 4000});
}

TEST(ProxyProtocol, what_follows_the_addresses_is_skipped) {
  const std::string addresses = "\xC0\x00\x02\x01\x7F\x00\x00\x01\xDC\x04\x01\xBB"s;
  expect_client(version_2(0x21, 0x11, addresses + "\x04\x00\x01x"s), ipv4(192, 0, 2, 1, 56324));
  expect_client(version_2(0x21, 0x11, addresses + std::string(300, '\n')), ipv4(192, 0, 2, 1, 56324));
  const std::string largest = version_2(0x21, 0x11, addresses + std::string(65'535 - 12, 'x')) + "{";
  ProxyHeader header;
  std::size_t taken = 0;
  EXPECT_EQ(header.feed(largest, taken), State::complete);
  EXPECT_EQ(taken, largest.size() - 1);
}

TEST(ProxyProtocol, a_check_by_the_proxy_itself_names_nobody) {
  expect_client(version_2(0x20, 0x00, ""), {});
  expect_client(version_2(0x20, 0x11, std::string(12, '\x7F')), {});
  expect_client(version_2(0x20, 0xFF, "anything"), {});  // its family is ignored
}

TEST(ProxyProtocol, of_other_families_nobody_is_named) {
  expect_client(version_2(0x21, 0x00, ""), {});
  expect_client(version_2(0x21, 0x00, "12345"), {});
  expect_client(version_2(0x21, 0x31, std::string(216, '/')), {});
  expect_client(version_2(0x21, 0x10, std::string(12, '\x01')), {});
}

TEST(ProxyProtocol, version_2_that_is_written_otherwise_is_refused) {
  for (std::size_t at = 1; at != kSignature.size(); ++at) {
    std::string wrong = version_2(0x21, 0x11, std::string(12, '\0'));
    wrong[at] = static_cast<char>(wrong[at] ^ 1);
    expect_malformed(wrong, "its signature is not that of version 2");
  }
  for (const int command : {0x11, 0x31, 0x01, 0xF1, 0x12})
    expect_malformed(version_2(static_cast<unsigned char>(command), 0x11, std::string(12, '\0')),
                     "its version is not 2");
  for (const int command : {0x22, 0x23, 0x2F})
    expect_malformed(version_2(static_cast<unsigned char>(command), 0x11, std::string(12, '\0')),
                     "its command is neither LOCAL nor PROXY");
  for (const int family : {0x41, 0xF1, 0x13, 0x1F, 0xFF})
    expect_malformed(version_2(0x21, static_cast<unsigned char>(family), std::string(300, '\0')),
                     "its family or protocol is none that is known");
  expect_malformed(version_2(0x21, 0x11, std::string(11, '\0')), "it is too short for its addresses");
  expect_malformed(version_2(0x21, 0x21, std::string(35, '\0')), "it is too short for its addresses");
  expect_malformed(version_2(0x21, 0x31, std::string(215, '\0')), "it is too short for its addresses");
}

}  // namespace
}  // namespace wirecall::framing
