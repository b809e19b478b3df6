// Frames of WebSocket: the examples of RFC 6455, what breaks its rules, and what is sent.
#include "framing/websocket.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/framing/read_frames.hpp"
#include "tests/framing/websocket_frames.hpp"

namespace wirecall::framing {
namespace {

using namespace std::string_literals;
using Role = WebSocket::Role;

// What comes of bytes: "text …" and "binary …" for messages, "sends " and the bytes of a frame that is due, and at the
// end "closes" and the frame of the farewell.
Log read(std::span<const std::string_view> pieces, Role role = Role::server, const Limits& limits = {}) {
  WebSocket framing{role, limits};
  Log log;
  std::string kept;
  for (const std::string_view piece : pieces) {
    const std::unique_ptr<char[]> block{new char[piece.size()]};
    if (!piece.empty()) std::memcpy(block.get(), piece.data(), piece.size());
    std::span<char> rest{block.get(), piece.size()};
    while (!rest.empty()) {
      const Found found = framing.next(rest);
      EXPECT_LE(found.skip + found.size, rest.size());
      const std::string part{rest.data() + found.skip, found.size};
      rest = rest.subspan(found.skip + found.size);
      switch (found.find) {
        case Find::nothing: EXPECT_NE(found.skip, 0U); break;
        case Find::part: kept += part; break;
        case Find::text: log.push_back("text " + std::exchange(kept, "") + part); break;
        case Find::message: log.push_back("binary " + std::exchange(kept, "") + part); break;
        case Find::due: log.push_back("sends " + std::string{framing.take_due()}); break;
        case Find::over:
        case Find::lost:
        case Find::too_large:
          log.push_back(found.find == Find::over ? "over" : "broken");
          log.push_back("closes " + std::string{framing.farewell(Ending::unreadable)});
          return log;
        default: ADD_FAILURE() << "not an answer of this framing";
      }
    }
  }
  return log;
}

// Whole, cut at every byte, and byte by byte.
void expect_read(std::string_view input, const Log& expected, Role role = Role::server, const Limits& limits = {}) {
  for (std::size_t cut = 0; cut <= input.size(); ++cut) {
    const std::string_view pieces[] = {input.substr(0, cut), input.substr(cut)};
    ASSERT_EQ(read(pieces, role, limits), expected) << "cut at " << cut;
  }
  std::vector<std::string_view> bytes;
  for (std::size_t at = 0; at < input.size(); ++at) bytes.push_back(input.substr(at, 1));
  ASSERT_EQ(read(bytes, role, limits), expected) << "byte by byte";
}

std::string closes(int number, std::string_view reason) {
  return "closes " + server_frame(kCloseFrame, code(number) + std::string{reason});
}
void expect_broken(std::string_view input, int number, std::string_view reason, const Log& before = {}) {
  Log expected = before;
  expected.insert(expected.end(), {"broken", closes(number, reason)});
  expect_read(input, expected);
}

// ---- RFC 6455 section 5.7 ----

TEST(WebSocket, reads_the_examples_of_the_rfc) {
  expect_read("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"s, {"text Hello"});
  expect_read("\x81\x05\x48\x65\x6c\x6c\x6f"s, {"text Hello"}, Role::client);
  expect_read("\x01\x03\x48\x65\x6c\x80\x02\x6c\x6f"s, {"text Hello"}, Role::client);
  expect_read("\x89\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"s, {"sends \x8a\x05Hello"s});
  expect_read("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"s, {});
  const std::string binary256(256, '\x80');
  expect_read("\x82\x7E\x01\x00"s + binary256, {"binary " + binary256}, Role::client);
}

TEST(WebSocket, reads_a_message_of_64_kib) {
  const std::string binary(65536, 'b');
  const std::string whole = "\x82\x7F\0\0\0\0\0\1\0\0"s + binary;
  const std::string_view pieces[] = {whole};
  EXPECT_EQ(read(pieces, Role::client), Log{"binary " + binary});
}

TEST(WebSocket, lengths_take_their_shortest_form_and_no_other) {
  for (const std::size_t bytes : {0, 1, 125, 126, 127, 300}) {
    expect_read(client_frame(kTextFrame, std::string(bytes, 'x')), {"text " + std::string(bytes, 'x')});
  }
  for (const std::size_t bytes : {65535, 65536, 100'000}) {
    const std::string frame = client_frame(kTextFrame, std::string(bytes, 'x'));
    for (const std::size_t cut : {1, 2, 3, 5, 8, 9, 10, 13, 14, 15, 4096, 65535}) {
      const std::string_view pieces[] = {std::string_view{frame}.substr(0, cut), std::string_view{frame}.substr(cut)};
      EXPECT_EQ(read(pieces), Log{"text " + std::string(bytes, 'x')});
    }
  }
  constexpr std::string_view kReason = "a length that is not in its shortest form";
  expect_broken("\x81\xFE\0\x7D"s + std::string{kMask} + std::string(125, 'x'), 1002, kReason);
  expect_broken("\x81\xFF\0\0\0\0\0\0\xFF\xFF"s + std::string{kMask}, 1002, kReason);
}

// The first bit has to be 0 (RFC 6455 section 5.2): that breaks the protocol, whatever the limit is.
TEST(WebSocket, lengths_of_2_to_63_and_more_are_none) {
  for (const std::string& length : {"\x80\0\0\0\0\0\0\0"s, "\x80\0\0\0\0\0\0\1"s, std::string(8, '\xFF')}) {
    expect_broken("\x81\xFF"s + length + std::string{kMask}, 1002, "a length of 2^63 or more");
    expect_broken("\x01\xFF"s + length + std::string{kMask}, 1002, "a length of 2^63 or more");
  }
  expect_broken("\x81\xFF\x7F"s + std::string(7, '\xFF') + std::string{kMask}, 1009,
                "the message is larger than allowed");
}

// ---- fragments ----

TEST(WebSocket, control_frames_stand_between_fragments) {
  expect_read(client_frame(0x01, "one ") + client_frame(kPingFrame, "p") + client_frame(0x00, "") +
                  client_frame(kPongFrame, "unasked") + client_frame(0x80, "message") + client_frame(kBinaryFrame, "2"),
              {"sends \x8a\x01p"s, "text one message", "binary 2"});
  expect_read(client_frame(0x02, "") + client_frame(0x00, "") + client_frame(0x80, ""), {"binary "});
}

TEST(WebSocket, fragments_are_checked_together) {
  expect_read(client_frame(0x01, "\xce") + client_frame(0x00, "\xba\xe1") + client_frame(0x00, "\xbd") +
                  client_frame(0x80, "\xb9"),
              {"text \xce\xba\xe1\xbd\xb9"});
}

// ---- what breaks the rules: 1002 ----

TEST(WebSocket, protocol_errors_are_1002) {
  expect_broken(server_frame(kTextFrame, "x"), 1002, "a frame of a client without a mask");
  for (const int bit : {0x10, 0x20, 0x40})
    expect_broken(client_frame(kTextFrame | bit, "x"), 1002,
                  "a reserved bit is set, for an extension that was not agreed on");
  for (const int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15})
    expect_broken(client_frame(0x80 | opcode, "x"), 1002, "an opcode that is none");
  for (const int opcode : {8, 9, 10}) {
    expect_broken(client_frame(opcode, ""), 1002, "a control frame in fragments");
    expect_broken(client_frame(0x80 | opcode, std::string(126, 'x')), 1002, "a control frame of more than 125 bytes");
  }
  expect_broken(client_frame(0x80, "x"), 1002, "a continuation without a message");
  expect_broken(client_frame(0x00, "x"), 1002, "a continuation without a message");
  expect_broken(client_frame(0x01, "x") + client_frame(kTextFrame, "y"), 1002, "a message begins within another");
  expect_broken(client_frame(0x01, "x") + client_frame(0x80, "y") + client_frame(0x80, "z"), 1002,
                "a continuation without a message", {"text xy"});
}

TEST(WebSocket, a_server_does_not_mask) {
  const Log got = [] {
    const std::string frame = client_frame(kTextFrame, "x");
    const std::string_view pieces[] = {frame};
    return read(pieces, Role::client);
  }();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0], "broken");
}

// ---- text: 1007 ----

TEST(WebSocket, text_that_is_not_utf8_is_1007_at_its_first_such_byte) {
  // Markus Kuhn's classes: overlong, surrogates, beyond U+10FFFF, lone continuations, cut characters.
  for (const std::string_view bad :
       {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xff", "\xf0\x80\x80\x80", "\xc3("}) {
    for (const std::size_t before : {0, 1, 7, 8, 31, 40}) {
      const std::string payload = std::string(before, 'a') + std::string{bad} + "tail";
      expect_broken(client_frame(kTextFrame, payload), 1007, "text that is not UTF-8");
    }
  }
  for (const std::string_view cut : {"\xc3", "\xe2\x82", "\xf0\x9f\x98"})
    expect_broken(client_frame(kTextFrame, "abc" + std::string{cut}), 1007, "text that ends within a character");
  // Before the fragment, and the message, have come.
  const std::string begun = client_frame(0x01, "\xf4\x90" + std::string(100, 'x')).substr(0, 8);
  const std::string_view pieces[] = {begun};
  EXPECT_EQ(read(pieces), (Log{"broken", closes(1007, "text that is not UTF-8")}));
}

TEST(WebSocket, binary_may_be_any_bytes) { expect_read(client_frame(kBinaryFrame, "\xff\xfe"), {"binary \xff\xfe"}); }

// ---- size: 1009 ----

TEST(WebSocket, a_message_over_the_limit_is_1009_by_its_length_alone) {
  Limits limits;
  limits.max_message_size = 10;
  constexpr std::string_view kReason = "the message is larger than allowed";
  expect_read(client_frame(kTextFrame, "0123456789"), {"text 0123456789"}, Role::server, limits);
  expect_read(client_frame(kTextFrame, "01234567890").substr(0, 6), {"broken", closes(1009, kReason)}, Role::server,
              limits);
  expect_read(client_frame(0x01, "0123456789") + client_frame(0x80, "x"), {"broken", closes(1009, kReason)},
              Role::server, limits);
  expect_read("\x82\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s + std::string{kMask}, {"broken", closes(1009, kReason)},
              Role::server, limits);
  expect_read(client_frame(0x01, "01234") + "\x80\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s + std::string{kMask},
              {"broken", closes(1009, kReason)}, Role::server, limits);
}

// ---- closing ----

TEST(WebSocket, a_close_is_answered_with_its_code) {
  expect_read(client_frame(kCloseFrame, ""), {"over", "closes \x88\0"s});
  for (const int number : {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 4999}) {
    const std::string answer = "closes " + server_frame(kCloseFrame, code(number));
    expect_read(client_frame(kCloseFrame, code(number)), {"over", answer});
    expect_read(client_frame(kCloseFrame, code(number) + "\xce\xba" + std::string(121, 'r')) + "what follows",
                {"over", answer});
  }
}

TEST(WebSocket, a_close_that_is_none_is_refused) {
  expect_broken(client_frame(kCloseFrame, "\x03"), 1002, "half of a close code");
  for (const int number : {0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535})
    expect_broken(client_frame(kCloseFrame, code(number)), 1002, "a close code that may not be sent");
  expect_broken(client_frame(kCloseFrame, code(1000) + "\xce"), 1007, "a close reason that is not UTF-8");
}

// ---- what is sent ----

std::string sealed(WebSocket& framing, std::string_view message, bool json) {
  Buffer out{"before"};
  static_cast<void>(out.reserve(framing.head_bytes()));
  out.grow(framing.head_bytes());
  out.append(message);
  framing.seal(out, 6, json);
  return std::string{out.view()};
}

TEST(WebSocket, a_server_sends_the_shortest_head) {
  const Limits limits;
  WebSocket framing{Role::server, limits};
  EXPECT_EQ(sealed(framing, "Hello", true), "before\x81\x05Hello"s);
  EXPECT_EQ(sealed(framing, "", false), "before\x82\0"s);
  for (const std::size_t bytes : {125, 126, 127, 65535, 65536, 70000}) {
    const std::string message(bytes, 'x');
    EXPECT_EQ(sealed(framing, message, false), "before" + server_frame(kBinaryFrame, message));
  }
}

TEST(WebSocket, a_client_masks_each_frame_anew) {
  const Limits limits;
  WebSocket framing{Role::client, limits};
  std::vector<std::string> masks;
  for (const std::size_t bytes : {0, 5, 125, 126, 65535, 65536}) {
    const std::string message(bytes, 'x');
    const std::string frame = sealed(framing, message, true).substr(6);
    ASSERT_GE(frame.size(), 6 + bytes);
    const std::string mask = frame.substr(frame.size() - bytes - 4, 4);
    EXPECT_EQ(frame, client_frame(kTextFrame, message, mask));
    masks.push_back(mask);
  }
  std::ranges::sort(masks);
  EXPECT_EQ(std::ranges::unique(masks).begin(), masks.end());
}

TEST(WebSocket, nothing_is_sent_after_the_farewell) {
  const Limits limits;
  WebSocket framing{Role::server, limits};
  EXPECT_EQ(framing.keepalive(), "\x89\0"s);
  EXPECT_EQ(framing.farewell(Ending::going_away), server_frame(kCloseFrame, code(1001)));
  EXPECT_EQ(framing.farewell(Ending::done), "");
  EXPECT_EQ(sealed(framing, "Hello", true), "before");
  EXPECT_EQ(framing.keepalive(), "");
  EXPECT_EQ(framing.take_due(), "");
}

TEST(WebSocket, says_why_it_ends) {
  const Limits limits;
  const auto said = [&limits](Ending why) { return std::string{WebSocket{Role::server, limits}.farewell(why)}; };
  EXPECT_EQ(said(Ending::done), server_frame(kCloseFrame, code(1000)));
  EXPECT_EQ(said(Ending::refused), server_frame(kCloseFrame, code(1008)));
  EXPECT_EQ(said(Ending::too_large), server_frame(kCloseFrame, code(1009)));
  EXPECT_EQ(said(Ending::failed), server_frame(kCloseFrame, code(1011)));
}

TEST(WebSocket, what_has_begun_is_known) {
  const Limits limits;
  WebSocket framing{Role::server, limits};
  EXPECT_FALSE(framing.begun());
  std::string head = client_frame(0x01, "xy");
  framing.next({head.data(), 3});
  EXPECT_TRUE(framing.in_head());
  framing.next({head.data() + 3, head.size() - 3});
  EXPECT_FALSE(framing.in_head());
  EXPECT_TRUE(framing.begun());
}

}  // namespace
}  // namespace wirecall::framing
