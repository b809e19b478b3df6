// Connections that a server has accepted, over the simulated backend: what they become by their first bytes, however
// these are cut, and what becomes of those that never say.
#include "connection/protocol_detector.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/server/accepting.hpp"
#include "transport/socket.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;
using runtime::SimulatedBackend;
using runtime::SimulatedPeer;
using std::chrono::milliseconds;

const std::string kRequest = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})";
const std::string kAnswer = R"({"jsonrpc":"2.0","result":19,"id":1})";
const std::string kParseError =
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse error\"},\"id\":null}\n";
const std::string kInvalidRequest =
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"Invalid Request\"},\"id\":null}\n";

// Cut in two at every byte; the peer ends behind it.
void expect_answer(std::string_view input, std::string_view answer) {
  for (std::size_t cut = 0; cut < input.size(); ++cut) {
    Accepting server{static_cast<unsigned>(cut) + 1};
    server.peer->send(input.substr(0, cut));
    server.turns(cut == 0 ? 0 : 20);
    server.peer->send(input.substr(cut));
    server.turns(20);
    server.peer->finish();
    server.turns(20);
    EXPECT_EQ(server.peer->take(), answer) << input << "\ncut at " << cut;
    EXPECT_TRUE(server.peer->closed) << input << "\ncut at " << cut;
  }
}

TEST(ProtocolDetector, becomes_what_the_first_bytes_say) {
  const std::string head = "Content-Length: 36\r\n\r\n";
  expect_answer(kRequest, kAnswer + "\n");
  expect_answer(" \r\n\t" + kRequest + "\n" + kRequest, kAnswer + "\n" + kAnswer + "\n");
  expect_answer("Content-Length: 61\r\n\r\n" + kRequest, head + kAnswer);
  expect_answer(
      "\n\ncontent-type: x\r\nCONTENT-LENGTH: 61\r\n\r\n" + kRequest + "Content-Length: 61\r\n\r\n" + kRequest,
      head + kAnswer + head + kAnswer);
  expect_answer("\0\0\0\x3D"s + kRequest, "\0\0\0\x24"s + kAnswer);
}

TEST(ProtocolDetector, refuses_anything_else_in_one_line_and_closes) {
  for (const std::string_view input :
       {"x\n", "get / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02", "\xEF\xBB\xBFGET / HTTP/1.1\r\n"}) {
    expect_answer(input, kParseError);
  }
  expect_answer(std::string(65, ' ') + kRequest, kParseError);
  expect_answer(std::string(64, '\n') + kRequest, kAnswer + "\n");
}

TEST(ProtocolDetector, answers_a_value_that_is_no_message_and_reads_on) {
  for (const std::string_view value : {"1", "-2.5e3", "\"a\"", "true", "false", "null"}) {
    expect_answer(std::string{value} + "\n" + kRequest, kInvalidRequest + kAnswer + "\n");
    expect_answer(value, kInvalidRequest);
  }
  expect_answer("nonsense\n" + kRequest, kParseError + kAnswer + "\n");
}

TEST(ProtocolDetector, skips_one_byte_order_mark) {
  const std::string mark = "\xEF\xBB\xBF";
  expect_answer(mark + kRequest + "\n" + kRequest, kAnswer + "\n" + kAnswer + "\n");
  expect_answer(mark + "\r\n" + kRequest, kAnswer + "\n");
  expect_answer(mark + "7\n" + kRequest, kInvalidRequest + kAnswer + "\n");
  expect_answer(mark, "");
  expect_answer(mark + mark + kRequest, kParseError);
  expect_answer(kRequest + mark + kRequest + "\n" + kRequest, kAnswer + "\n" + kParseError + kAnswer + "\n");
  // Where a message's length is known, each is a text of its own.
  const std::string head = "Content-Length: 36\r\n\r\n";
  const std::string marked = "Content-Length: 64\r\n\r\n" + mark + kRequest;
  expect_answer(marked + marked, head + kAnswer + head + kAnswer);
  expect_answer("\0\0\0\x40"s + mark + kRequest, "\0\0\0\x24"s + kAnswer);
}

TEST(ProtocolDetector, refuses_a_beginning_that_goes_no_further) {
  expect_answer("POS", kParseError);
  expect_answer("Content", kParseError);
}

TEST(ProtocolDetector, that_says_nothing_and_ends_is_closed_without_a_word) {
  Accepting server{1};
  server.peer->send(" \n");
  server.peer->finish();
  server.turns();
  EXPECT_EQ(server.peer->take(), "");
  EXPECT_EQ(server.end, CloseReason::finished);
}

TEST(ProtocolDetector, ends_at_the_header_timeout_and_not_before) {
  for (const std::string_view input : {"", "   ", "GET", "content"}) {
    Accepting server{2};
    server.peer->send(input);
    server.pass(milliseconds{9999});
    EXPECT_FALSE(server.end.has_value()) << input;
    server.pass(milliseconds{2});
    EXPECT_EQ(server.end, CloseReason::silent) << input;
    EXPECT_EQ(server.peer->take(), "");
  }
}

TEST(ProtocolDetector, that_became_something_has_no_timeout_any_more) {
  Accepting server{3};
  server.peer->send(kRequest);
  server.pass(milliseconds{60'000});
  EXPECT_FALSE(server.end.has_value());
  EXPECT_EQ(server.peer->take(), kAnswer + "\n");
}

// What stands before a message has to be complete in time, whenever it begins, and however often a byte of it comes.
TEST(ProtocolDetector, that_became_one_with_heads_ends_when_a_head_does_not_come_in_time) {
  const std::string message = "Content-Length: 61\r\n\r\n" + kRequest;
  const std::string prefixed = "\0\0\0\x3D"s + kRequest;
  for (const auto& [before, slow] : {std::pair{""s, "Content-Length: 61\r\nX: "s}, std::pair{message, "Content-"s},
                                     std::pair{message, "C"s}, std::pair{prefixed, "\0\0"s}}) {
    Accepting server{8};
    server.peer->send(before);
    if (!before.empty()) server.pass(milliseconds{30'000});
    const std::size_t first = before.empty() ? 10 : 1;  // what says that there are heads
    server.peer->send(slow.substr(0, first));
    server.pass(milliseconds{5'000});
    server.peer->send(slow.substr(first));
    server.pass(milliseconds{4'999});
    EXPECT_FALSE(server.end.has_value()) << before;
    server.pass(milliseconds{2});
    EXPECT_EQ(server.loop_context.stats.connections_timed_out, 1U) << before;
    server.peer->finish();
    server.turns();
    EXPECT_EQ(server.end, CloseReason::silent) << before;
  }
}

TEST(ProtocolDetector, that_became_one_with_heads_may_take_its_time_between_and_within_messages) {
  Accepting server{9};
  const std::string message = "Content-Length: 61\r\n\r\n" + kRequest;
  for (int i = 0; i < 3; ++i) {
    server.peer->send(message.substr(0, 10));
    server.pass(milliseconds{9'000});
    server.peer->send(message.substr(10, 30));
    server.pass(milliseconds{30'000});
    server.peer->send(message.substr(40));
    server.pass(milliseconds{30'000});
  }
  EXPECT_FALSE(server.end.has_value());
  const std::string answer = "Content-Length: 36\r\n\r\n" + kAnswer;
  EXPECT_EQ(server.peer->take(), answer + answer + answer);
}

TEST(ProtocolDetector, that_is_reset_is_lost) {
  Accepting server{4};
  server.peer->send("GE");
  server.turns();
  server.peer->reset();
  server.turns();
  EXPECT_EQ(server.end, CloseReason::lost);
  EXPECT_EQ(server.error, ECONNRESET);
}

TEST(ProtocolDetector, that_drains_looks_at_what_has_arrived_and_answers_that_it_is_draining) {
  Accepting server{5};
  server.turn();
  server.peer->send(kRequest);
  server.connection->drain();
  EXPECT_TRUE(server.connection->busy());
  server.turns();
  EXPECT_FALSE(server.connection->busy());
  EXPECT_NE(server.peer->take().find("-32009"), std::string::npos);
}

TEST(ProtocolDetector, is_finished_at_once_when_its_owner_says_so) {
  Accepting server{6};
  server.connection->drain();
  EXPECT_FALSE(server.connection->busy());
  server.connection->finish();
  EXPECT_FALSE(server.end.has_value());
  server.turns(2);
  EXPECT_EQ(server.end, CloseReason::silent);
}

TEST(ProtocolDetector, is_small) {
  // With its stream; the allocator's own bytes are not counted.
  EXPECT_LE(sizeof(ProtocolDetector) + sizeof(transport::SocketStream), 200U);
}

}  // namespace
}  // namespace wirecall::net
