// Connections over the simulated backend and over a stream in memory: what a peer sees for what it sends, however that
// is cut; limits; half-close; resets; and a second framing through the same connection.
#include "connection/message_connection.hpp"

#include <cerrno>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framing/length_prefix.hpp"
#include "tests/connection/message_harness.hpp"

namespace wirecall::net {
namespace {

using runtime::SimulatedPeer;
using std::chrono::milliseconds;

// What a peer sees that sends `pieces`, each in one read, and then ends.
std::string seen(const std::vector<std::string_view>& pieces, Limits limits = {}) {
  Harness harness{1, limits};
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  const auto turn = [&] {
    harness.loop.turn(milliseconds{0});
    if (!harness.end) stream.complete_send();
  };
  for (const std::string_view piece : pieces) {
    if (harness.end) break;
    if (!piece.empty()) stream.receive(piece);
    turn();
    turn();
  }
  if (!harness.end) stream.finish();
  for (int i = 0; i < 5 && !harness.end; ++i) turn();
  EXPECT_TRUE(harness.end.has_value());
  return out;
}

// The same for the whole text in one read, for every cut in two, and byte by byte.
void expect_seen(std::string_view input, std::string_view expected, Limits limits = {}) {
  const std::string whole = seen({input}, limits);
  EXPECT_EQ(whole, expected) << input.substr(0, 300);
  const std::size_t step = 1 + input.size() / 300;
  for (std::size_t cut = 1; cut < input.size(); cut += step) {
    EXPECT_EQ(seen({input.substr(0, cut), input.substr(cut)}, limits), expected) << "cut at " << cut;
  }
  std::vector<std::string_view> bytes;
  for (std::size_t at = 0; at < input.size(); ++at) bytes.push_back(input.substr(at, 1));
  EXPECT_EQ(seen(bytes, limits), expected) << "byte by byte";
}

TEST(ConnectionInput, pipelined_requests_are_all_answered_with_and_without_newlines) {
  expect_seen(request(1) + "\n" + request(2) + request(3) + "\r\n \t" + request(4),
              answer(1) + answer(2) + answer(3) + answer(4));
}

// A stream that has something to send of its own sends it with that.
TEST(ConnectionInput, whoever_answers_in_this_turn_says_so_to_its_stream) {
  Harness harness{1};
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  harness.loop.turn(milliseconds{0});  // before which nothing is read
  EXPECT_FALSE(stream.user().sends_in_turn());
  stream.receive(call("wait", 1) + "\n");
  EXPECT_FALSE(stream.user().sends_in_turn()) << "the answer comes later";
  stream.receive(request(2) + "\n");
  EXPECT_TRUE(stream.user().sends_in_turn());
  harness.loop.turn(milliseconds{0});
  EXPECT_EQ(out, answer(2));
  EXPECT_FALSE(stream.user().sends_in_turn());
  stream.receive(request(3) + "\n");
  EXPECT_FALSE(stream.user().sends_in_turn()) << "not before the first send has gone";
  stream.complete_send();
  harness.loop.turn(milliseconds{0});
  EXPECT_EQ(out, answer(2) + answer(3));
  stream.complete_send();
}

TEST(ConnectionInput, notifications_and_responses_are_not_answered) {
  expect_seen(R"({"jsonrpc":"2.0","method":"subtract","params":[1,2]}{"jsonrpc":"2.0","result":1,"id":1})"
              R"({"jsonrpc":"1.0","error":{}})" +
                  request(1),
              answer(1));
}

TEST(ConnectionInput, bad_json_after_a_valid_call_costs_its_line_only) {
  expect_seen(request(1) + "\n{\"jsonrpc\":\"2.0\",\"method\" oops " + request(9) + "\n" + request(2),
              answer(1) + std::string{kParseError} + answer(2));
}

TEST(ConnectionInput, an_error_on_a_later_line_of_its_message_is_answered_and_closes) {
  expect_seen(request(1) + "\n{\"jsonrpc\":\"2.0\",\n\"method\" oops}\n" + request(2),
              answer(1) + std::string{kParseError} + "<end>");
}

TEST(ConnectionInput, sixteen_errors_in_a_row_close) {
  expect_seen(
      "[]" + repeated("x\n", 15) + request(1) + repeated("}\n", 20) + request(2),
      std::string{kInvalidRequest} + repeated(kParseError, 15) + answer(1) + repeated(kParseError, 16) + "<end>");
}

TEST(ConnectionInput, every_value_that_is_no_message_is_an_invalid_request) {
  expect_seen("[] 1 \"a\"\nnull {}", repeated(kInvalidRequest, 5));
}

TEST(ConnectionInput, lone_surrogates_and_broken_utf8_are_syntax_errors) {
  expect_seen("[\"\\udc00\"]\n[\"\\ud800\"]\n[\"\xC0\xAF\"]\n[\"\xFF\"]\n" + request(1),
              repeated(kParseError, 4) + answer(1));
}

TEST(ConnectionInput, nesting_too_deep_is_a_syntax_error_that_names_the_limit) {
  Limits limits;
  limits.depth = 4;
  expect_seen("[[[[1]]]]\n[[[[[1]]]]]\n" + request(1),
              std::string{"["} + std::string{kInvalidRequest.substr(0, kInvalidRequest.size() - 1)} + "]\n" +
                  std::string{kTooDeep} + answer(1),
              limits);
}

TEST(ConnectionInput, what_is_unfinished_at_the_end_is_a_syntax_error) {
  expect_seen(request(1) + R"({"jsonrpc":"2.0","meth)", answer(1) + std::string{kParseError});
  expect_seen(request(1) + " 12", answer(1) + std::string{kInvalidRequest});
}

TEST(ConnectionInput, a_message_may_be_as_large_as_the_limit_and_no_larger) {
  Limits limits;
  limits.max_message_size = 300;
  const std::string head = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1,"x":")";
  const std::string largest = head + std::string(298 - head.size(), 'x') + "\"}";
  const std::string larger = head + std::string(299 - head.size(), 'x') + "\"}";
  ASSERT_EQ(largest.size(), 300U);
  const std::string too_large =
      R"({"jsonrpc":"2.0","error":{"code":-32006,"message":"Too large","data":{"reason":"the message is larger than )"
      R"(allowed","origin":"local","delivered":"no","limit":"max_message_size"}},"id":null})"
      "\n<end>";
  expect_seen(largest + largest, answer(1) + answer(1), limits);
  expect_seen(largest + larger + request(2), answer(1) + too_large, limits);
  expect_seen(largest + head + std::string(900, 'x'), answer(1) + too_large, limits);
  // An error behind the limit is not looked for; one before it is.
  expect_seen(largest + "[" + std::string(300, ' ') + "x", answer(1) + too_large, limits);
  expect_seen(largest + "[" + std::string(299, ' ') + "x\n" + request(2),
              answer(1) + std::string{kParseError} + answer(2), limits);
}

TEST(ConnectionInput, a_line_without_end_is_answered_once_and_closed) {
  Limits limits;
  limits.max_message_size = 1000;
  expect_seen("[]\nx" + std::string(2000, 'y'), std::string{kInvalidRequest} + std::string{kParseError} + "<end>",
              limits);
}

TEST(ConnectionInput, a_large_message_in_small_pieces_costs_linear_time) {
  // Were each piece a new look at all before it, this would take hours.
  Harness harness{1};
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  std::string message = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1,"x":[)";
  while (message.size() < 8'000'000) message += R"("some text",12.5,{"a":null},)";
  message += "0]}";
  for (std::size_t at = 0; at < message.size(); at += 16) stream.receive(std::string_view{message}.substr(at, 16));
  harness.loop.turn(milliseconds{0});
  EXPECT_EQ(out, answer(1));
}

// ---- over the simulated backend ----

class MessageConnectionTest : public testing::TestWithParam<unsigned> {
 protected:
  Harness harness_{GetParam()};
};

TEST_P(MessageConnectionTest, everything_before_the_end_is_answered_and_then_it_is_closed) {
  const auto peer = harness_.open();
  std::string expected;
  for (int i = 0; i < 500; ++i) {
    peer->send(request(i) + (i % 3 == 0 ? "\n" : ""));
    expected += answer(i);
  }
  peer->finish();
  harness_.turns(200);
  EXPECT_EQ(peer->take(), expected);
  EXPECT_EQ(harness_.end, CloseReason::finished);
  EXPECT_TRUE(peer->closed);
}

TEST(ConnectionEnd, is_in_order_though_the_peer_does_not_take_the_farewell_of_its_stream) {
  for (const bool answered : {true, false}) {
    Harness harness{1};
    std::string out;
    MemoryStream& stream = open_in_memory(harness, out);
    stream.farewell = true;
    stream.receive(answered ? request(1) : call("wait", 1));
    harness.turns(2);
    if (answered) stream.complete_send();
    stream.finish();
    harness.turns(2);
    ASSERT_FALSE(harness.end.has_value());
    stream.fail(EPIPE);
    EXPECT_EQ(harness.end, answered ? CloseReason::finished : CloseReason::lost);
  }
}

TEST_P(MessageConnectionTest, calls_still_running_at_the_end_are_answered) {
  const auto peer = harness_.open();
  peer->send(call("wait", 1) + call("wait", 2) + R"({"jsonrpc":"2.0","method":"wait"})");
  peer->finish();
  harness_.turns();
  EXPECT_EQ(peer->take(), "");
  EXPECT_FALSE(harness_.end.has_value());
  ASSERT_EQ(harness_.waiting.calls.size(), 3U);
  harness_.waiting.answer_all("7");
  harness_.turns();
  EXPECT_EQ(peer->take(),
            "{\"jsonrpc\":\"2.0\",\"result\":\"7\",\"id\":1}\n{\"jsonrpc\":\"2.0\",\"result\":\"7\",\"id\":2}\n");
  EXPECT_EQ(harness_.end, CloseReason::finished);
}

TEST_P(MessageConnectionTest, a_notification_that_ends_silently_does_not_hold_the_connection) {
  const auto peer = harness_.open();
  peer->send(R"({"jsonrpc":"2.0","method":"wait"})");
  peer->finish();
  harness_.turns();
  EXPECT_FALSE(harness_.end.has_value());
  harness_.waiting.answer_all("7");
  harness_.turns();
  EXPECT_EQ(harness_.end, CloseReason::finished);
}

TEST_P(MessageConnectionTest, a_reset_abandons_the_calls) {
  const auto peer = harness_.open();
  peer->send(call("wait", 1));
  harness_.turns();
  ASSERT_EQ(harness_.waiting.calls.size(), 1U);
  peer->reset();
  harness_.turns();
  EXPECT_EQ(harness_.end, CloseReason::lost);
  EXPECT_EQ(harness_.error, ECONNRESET);
  EXPECT_EQ(harness_.waiting.cancelled, 1);
  harness_.waiting.answer_all("7");
  harness_.turns();
}

TEST_P(MessageConnectionTest, replies_of_one_turn_leave_in_one_send) {
  std::string out;
  MemoryStream& stream = open_in_memory(harness_, out);
  stream.receive(request(1) + request(2));
  stream.receive(request(3));
  EXPECT_EQ(out, "");
  harness_.loop.turn(milliseconds{0});
  EXPECT_EQ(out, answer(1) + answer(2) + answer(3));
}

TEST_P(MessageConnectionTest, a_refused_peer_that_goes_on_sending_reads_its_answer_and_is_closed_in_the_end) {
  const auto peer = harness_.open();
  peer->send("[\n}");
  for (int i = 0; i < 5000 && !peer->closed; ++i) {
    if (i % 4 == 0) peer->send("more and more");  // time passes in between
    harness_.turn();
  }
  EXPECT_EQ(peer->take(), kParseError);
  EXPECT_TRUE(peer->shut_down);
  EXPECT_TRUE(peer->closed);
  EXPECT_EQ(harness_.end, CloseReason::unreadable);
}

TEST_P(MessageConnectionTest, a_refused_peer_that_ends_too_is_closed_at_once) {
  const auto peer = harness_.open();
  peer->send("[\n}");
  peer->finish();
  harness_.turns();
  EXPECT_EQ(peer->take(), kParseError);
  EXPECT_TRUE(peer->closed);
}

TEST_P(MessageConnectionTest, a_draining_connection_refuses_new_calls_and_answers_the_old) {
  const auto peer = harness_.open();
  peer->send(call("wait", 1));
  harness_.turns();
  harness_.connection->drain();
  peer->send(request(2));
  harness_.turns();
  EXPECT_NE(peer->take().find("-32009"), std::string::npos);
  EXPECT_TRUE(harness_.connection->busy());
  harness_.waiting.answer_all("7");
  harness_.turns();
  EXPECT_EQ(peer->take(), "{\"jsonrpc\":\"2.0\",\"result\":\"7\",\"id\":1}\n");
  EXPECT_FALSE(harness_.connection->busy());
}

TEST_P(MessageConnectionTest, a_draining_connection_tells_a_peer_that_has_said_hello) {
  const auto peer = harness_.open();
  peer->send(call("rpc.hello", 1));
  harness_.turns();
  EXPECT_NE(peer->take().find(R"("server":"wirecall")"), std::string::npos);
  harness_.connection->drain();
  harness_.turns();
  EXPECT_EQ(peer->take(), "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.draining\"}\n");
}

TEST_P(MessageConnectionTest, a_second_framing_goes_through_the_same_connection) {
  const auto peer = harness_.open(std::make_unique<framing::LengthPrefix>(harness_.limits));
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    peer->send(framed(request(i)));
    const std::string reply = answer(i);
    expected += framed(std::string_view{reply}.substr(0, reply.size() - 1));
  }
  // What is wrong inside a frame costs that frame; there is no limit on how many in a row.
  for (int i = 0; i < 20; ++i) {
    peer->send(framed("{\"a\":\n oops"));
    expected += framed(kParseError.substr(0, kParseError.size() - 1));
  }
  peer->send(framed(request(7)));
  expected += framed(std::string_view{answer(7)}.substr(0, answer(7).size() - 1));
  peer->finish();
  harness_.turns(300);
  EXPECT_EQ(peer->take(), expected);
  EXPECT_EQ(harness_.end, CloseReason::finished);
}

TEST_P(MessageConnectionTest, a_length_over_the_limit_is_refused_before_it_comes) {
  harness_.limits.max_message_size = 1000;
  const auto peer = harness_.open(std::make_unique<framing::LengthPrefix>(harness_.limits));
  peer->send(std::string{"\x7F\x00\x00\x00", 4});
  peer->finish();
  harness_.turns();
  EXPECT_NE(peer->take().find("-32006"), std::string::npos);
  EXPECT_TRUE(peer->closed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MessageConnectionTest, testing::Range(1U, 13U));

}  // namespace
}  // namespace wirecall::net
