// Compressed messages of WebSockets: RFC 7692's examples, its negotiation, and what must not become too large.
#include "http/zlib_deflate.hpp"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/websocket.hpp"
#include "rpc/access.hpp"
#include "tests/framing/websocket_frames.hpp"
#include "tests/http/served.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;
using framing::client_frame;
using Outcome = framing::MessageDeflate::Outcome;

// RFC 7692 section 7.2.3: "Hello", in the ways in which it may be packed.
const std::string kHello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s;
const std::string kHelloStored = "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"s;
const std::string kHelloLastBlock = "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s;
const std::string kHelloTwoBlocks = "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"s;

struct Unpacked {
  Outcome outcome;
  std::string text;
};
Unpacked unpack(std::string_view packed, std::size_t bytes_max = 1000) {
  ZlibDeflate deflate;
  Buffer out;
  const Outcome outcome = deflate.inflate(packed, bytes_max, out);
  return {outcome, std::string{out.view()}};
}
std::string pack(std::string_view text, int window_bits = 15) {
  ZlibDeflate deflate;
  Buffer out;
  deflate.deflate(text, window_bits, out);
  return std::string{out.view()};
}

TEST(ZlibDeflate, unpacks_the_examples_of_the_rfc) {
  for (const std::string& packed : {kHello, kHelloStored, kHelloLastBlock, kHelloTwoBlocks}) {
    const Unpacked got = unpack(packed);
    EXPECT_EQ(got.outcome, Outcome::done);
    EXPECT_EQ(got.text, "Hello");
  }
  EXPECT_EQ(unpack("\0"s).text, "");
  EXPECT_EQ(unpack("\0"s).outcome, Outcome::done);
}

TEST(ZlibDeflate, packs_what_unpacks_again) {
  EXPECT_EQ(pack("Hello"), kHello);
  for (const int bits : {9, 10, 15}) {
    for (const std::size_t bytes : {0, 1, 1000, 100'000, 1'000'000}) {
      std::string text;
      while (text.size() < bytes) text += "sum " + std::to_string(text.size() * 7919 % 1009) + ", ";
      const Unpacked got = unpack(pack(text, bits), text.size());
      EXPECT_EQ(got.outcome, Outcome::done);
      EXPECT_EQ(got.text, text);
    }
  }
}

TEST(ZlibDeflate, makes_no_more_than_may_be) {
  const std::string bomb = pack(std::string(50'000'000, ' '));
  EXPECT_LT(bomb.size(), 300'000U);
  const Unpacked got = unpack(bomb, 100'000);
  EXPECT_EQ(got.outcome, Outcome::too_large);
  EXPECT_LE(got.text.size(), 100'001U);
  const std::string just = pack(std::string(100'000, ' '));
  EXPECT_EQ(unpack(just, 100'000).outcome, Outcome::done);
  EXPECT_EQ(unpack(just, 99'999).outcome, Outcome::too_large);
}

TEST(ZlibDeflate, refuses_what_is_no_deflate) {
  EXPECT_EQ(unpack("\xff\xff\xff").outcome, Outcome::malformed);
  EXPECT_EQ(unpack(kHello.substr(0, 3)).outcome, Outcome::malformed);
  EXPECT_EQ(unpack(kHelloStored.substr(0, 7)).outcome, Outcome::malformed);
}

// ---- a connection ----

const std::string kAsks =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n";
constexpr int kPackedText = 0xC1;

/// Notes how much of one message has been unpacked at most.
class NotingDeflate final : public framing::MessageDeflate {
 public:
  [[nodiscard]] std::unique_ptr<MessageDeflate> make_another() const override { return zlib_.make_another(); }
  [[nodiscard]] Outcome inflate(std::string_view packed, std::size_t bytes_max, Buffer& out) override {
    const Outcome outcome = zlib_.inflate(packed, bytes_max, out);
    unpacked = std::max(unpacked, out.size());
    return outcome;
  }
  void deflate(std::string_view text, int window_bits, Buffer& out) override { zlib_.deflate(text, window_bits, out); }

  std::size_t unpacked = 0;

 private:
  ZlibDeflate zlib_;
};

class Packed : public Http {
 public:
  explicit Packed(Limits given = {}, std::shared_ptr<const rpc::Authority> authority = {}) : Http(1, given) {
    host.deflate = &deflate_;
    loop_context.services.authority = std::move(authority);
    const std::string answer = ask(get("/ws", kAsks));
    EXPECT_NE(answer.find("Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; "
                          "client_no_context_takeover\r\n"),
              std::string::npos);
  }
  [[nodiscard]] std::size_t unpacked() const { return deflate_.unpacked; }

 private:
  NotingDeflate deflate_;
};
std::string closes(int number, std::string_view reason) {
  return framing::server_frame(framing::kCloseFrame, framing::code(number) + std::string{reason});
}

TEST(PackedWebSocket, takes_packed_messages_and_others) {
  Packed server;
  const std::string packed = pack(request(1));
  const std::string said = framing::server_frame(framing::kTextFrame, result("19", 1));
  EXPECT_EQ(server.ask(client_frame(kPackedText, packed)), said);
  EXPECT_EQ(server.ask(client_frame(framing::kTextFrame, request(1))), said);
  EXPECT_EQ(server.ask(client_frame(0x41, packed.substr(0, 5)) + client_frame(framing::kPingFrame, "") +
                       client_frame(0x80, packed.substr(5))),
            framing::server_frame(framing::kPongFrame, "") + said);
}

TEST(PackedWebSocket, packs_what_gets_smaller) {
  Packed server;
  const std::string answer = server.ask(client_frame(framing::kTextFrame, call("big", 1, "[1000]")));
  EXPECT_EQ(answer, framing::server_frame(kPackedText, pack(result("\"" + std::string(1000, 'x') + "\"", 1))));
  EXPECT_LT(answer.size(), 200U);
}

TEST(PackedWebSocket, refuses_bombs_and_what_is_none) {
  Limits limits;
  limits.max_message_size = 1000;
  EXPECT_EQ(Packed{limits}.ask(client_frame(kPackedText, pack(std::string(100'000, ' ')))),
            closes(1009, "the message is larger than allowed"));
  EXPECT_EQ(Packed{}.ask(client_frame(kPackedText, "\xff\xff\xff")), closes(1007, "a message that cannot be unpacked"));
  EXPECT_EQ(Packed{}.ask(client_frame(kPackedText, pack("{\"\xff\":1}"))), closes(1007, "text that is not UTF-8"));
  constexpr std::string_view kReserved = "a reserved bit is set, for an extension that was not agreed on";
  EXPECT_EQ(Packed{}.ask(client_frame(0xC9, "")), closes(1002, kReserved));
  EXPECT_EQ(Packed{}.ask(client_frame(0x01, "[") + client_frame(0xC0, "]")), closes(1002, kReserved));
}

TEST(PackedWebSocket, has_64_kib_at_most_before_its_peer_has_authenticated) {
  const auto authority = std::make_shared<const rpc::Authority>(std::vector{Principal{
      .name = "robot", .tokens = {"robot-token"}, .call = {">"}, .provide = {}, .publish = {}, .subscribe = {}}});
  const auto hello = [](std::size_t bytes) {
    std::string text = R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"robot-token"},"id":1})";
    text.insert(1, std::string(bytes - text.size(), ' '));
    return client_frame(kPackedText, pack(text));
  };
  Packed server{Limits{}, authority};
  ASSERT_LT(hello(64 * 1024 + 1).size(), 500U);
  for (const std::size_t bytes : {64 * 1024 + 1, 5'000'000}) {
    Packed stranger{Limits{}, authority};
    EXPECT_EQ(stranger.ask(hello(bytes)), closes(1009, "the message is larger than allowed"));
    EXPECT_LE(stranger.unpacked(), 64U * 1024 + 1);
  }
  EXPECT_EQ(static_cast<unsigned char>(server.ask(hello(64 * 1024)).at(0)), kPackedText);
  EXPECT_FALSE(server.end) << "and from then on its messages may be larger";
  std::string more = request(2);
  more.insert(1, std::string(100'000, ' '));
  EXPECT_EQ(server.ask(client_frame(kPackedText, pack(more))),
            framing::server_frame(framing::kTextFrame, result("19", 2)));
}

TEST(PackedWebSocket, does_not_pack_what_would_hold_up_others) {
  Packed server;
  constexpr std::size_t kMebibyte = 1'048'576;
  const auto first_byte = [&](std::size_t bytes) {
    return static_cast<unsigned char>(
        server.ask(client_frame(framing::kTextFrame, call("big", 1, '[' + std::to_string(bytes) + ']'))).at(0));
  };
  EXPECT_EQ(first_byte(kMebibyte - 100), kPackedText);
  EXPECT_EQ(first_byte(kMebibyte), framing::kTextFrame);
}

TEST(PackedWebSocket, is_none_where_it_is_not_switched_on) {
  EXPECT_EQ(answer({get("/ws", kAsks)}).find("Sec-WebSocket-Extensions"), std::string::npos);
}

}  // namespace
}  // namespace wirecall::net
