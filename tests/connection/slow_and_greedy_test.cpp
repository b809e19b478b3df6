// Slow and greedy peers, what drains, and who waits for responses, over the simulated backend.
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "connection/message_connection.hpp"
#include "tests/connection/message_harness.hpp"

namespace wirecall::net {
namespace {

using runtime::SimulatedPeer;
using std::chrono::milliseconds;

Limits small_marks() {
  Limits limits;
  limits.soft_output = 10'000;
  limits.hard_output = 100'000;
  return limits;
}

class SlowPeerTest : public testing::TestWithParam<unsigned> {
 protected:
  Harness harness_{GetParam(), small_marks()};
};

TEST_P(SlowPeerTest, is_not_read_until_it_reads) {
  const auto peer = harness_.open();
  peer->window = 100;
  for (int i = 0; i < 1000; ++i) peer->send(call("big", i, "[1000]"));
  harness_.turns(200);
  // One message may carry the output over the mark; no more are looked at.
  EXPECT_LE(harness_.connection->output_bytes(), 12'000U);
  std::size_t got = 0;
  for (int i = 0; i < 40'000 && got < 1'000'000; ++i) {
    got += peer->take().size();
    peer->window = 5000;
    harness_.turn();
    if (harness_.end) break;
    ASSERT_LE(harness_.connection->output_bytes(), 12'000U);
  }
  EXPECT_GE(got, 1'000'000U);
  EXPECT_FALSE(harness_.end.has_value());
}

TEST_P(SlowPeerTest, is_answered_in_full_when_it_has_ended_what_it_sends) {
  const auto peer = harness_.open();
  peer->window = 100;
  for (int i = 0; i < 200; ++i) peer->send(call("big", i, "[1000]"));
  peer->finish();
  std::string got;
  for (int i = 0; i < 10'000 && !harness_.end; ++i) {
    got += peer->take();
    peer->window = 3000;
    harness_.turn();
  }
  got += peer->take();
  EXPECT_EQ(std::ranges::count(got, '\n'), 200);
  EXPECT_EQ(harness_.end, CloseReason::finished);
}

TEST_P(SlowPeerTest, is_cut_above_the_hard_mark) {
  const auto peer = harness_.open();
  peer->window = 0;
  for (int i = 0; i < 8; ++i) peer->send(call("wait", i));
  harness_.turns();
  ASSERT_EQ(harness_.waiting.calls.size(), 8U);
  for (Completion<std::string>& call : std::exchange(harness_.waiting.calls, {})) {
    call.set(std::string(30'000, 'x'));
    harness_.turn();
  }
  EXPECT_EQ(harness_.end, CloseReason::slow);
  EXPECT_EQ(harness_.loop_context.stats.slow_peers_closed, 1U);
  EXPECT_TRUE(peer->closed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SlowPeerTest, testing::Range(1U, 9U));

TEST(GreedyPeer, has_so_many_messages_a_turn_and_the_rest_in_the_next) {
  Harness harness{1};
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  std::string input;
  std::string expected;
  for (int i = 0; i < 10'000; ++i) {
    input += request(i);
    expected += answer(i);
  }
  stream.receive(input);
  harness.loop.turn(milliseconds{1});
  EXPECT_TRUE(stream.paused);
  const std::size_t first = out.size();
  EXPECT_GT(first, 0U);
  EXPECT_LT(first, expected.size() / 2);
  for (int i = 0; i < 20; ++i) {
    stream.complete_send();
    harness.loop.turn(milliseconds{1});
  }
  EXPECT_EQ(out, expected);
  EXPECT_FALSE(stream.paused);
}

TEST(GreedyPeer, has_its_share_of_a_turn_however_often_it_is_received_from) {
  Harness harness{1};
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  std::string expected;
  for (int i = 0; i < 10'000; ++i) {
    stream.receive(request(i));
    expected += answer(i);
  }
  harness.loop.turn(milliseconds{1});
  EXPECT_GT(out.size(), 0U);
  EXPECT_LT(out.size(), expected.size() / 2);
  for (int i = 0; i < 20; ++i) {
    stream.complete_send();
    harness.loop.turn(milliseconds{1});
  }
  EXPECT_EQ(out, expected);
}

TEST(GreedyPeer, whose_calls_take_long_has_fewer_of_them_a_turn) {
  Harness harness{1};
  int served = 0;
  harness.registry.method("slow", [&] {
    harness.backend->take_time(std::chrono::microseconds{100});
    ++served;
  });
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  stream.receive(repeated(R"({"jsonrpc":"2.0","method":"slow"})", 1000));
  for (int turns = 0; served < 1000; ++turns) {
    ASSERT_LT(turns, 100);
    const int before = served;
    harness.loop.turn(milliseconds{0});
    EXPECT_LE(served - before, 2 * 64);  // 64 before the clock is looked at for the first time
  }
}

TEST(MessageConnection, counts_the_time_that_a_call_waits_for_one_that_came_together_with_it) {
  Harness harness{1};
  harness.registry.method("slow", [&] { harness.backend->take_time(milliseconds{10}); });
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  const auto timed = [](std::string_view method, std::string_view params, int id, int timeout_ms) {
    std::string text = call(method, id, params);
    return text.insert(text.size() - 1, R"(,"timeout_ms":)" + std::to_string(timeout_ms));
  };
  stream.receive(timed("slow", "[]", 1, 100) + timed("subtract", "[42,23]", 2, 10) +
                 timed("subtract", "[42,23]", 3, 11) + request(4));
  harness.turns(2);
  stream.complete_send();
  EXPECT_TRUE(out.starts_with("{\"jsonrpc\":\"2.0\",\"result\":null,\"id\":1}\n")) << out;
  EXPECT_NE(
      out.find(
          R"("data":{"reason":"the time was up before the call began","origin":"local","delivered":"no"}},"id":2})"),
      std::string::npos)
      << out;
  EXPECT_NE(out.find(answer(3) + answer(4)), std::string::npos) << out;
}

TEST(ConnectionDrain, is_busy_until_nothing_more_has_arrived_for_once) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    Harness harness{seed};
    const auto peer = harness.open();
    harness.turns();
    EXPECT_FALSE(harness.connection->busy());
    peer->send(request(1));
    harness.connection->drain();
    peer->send(request(2) + repeated(" ", 5000) + request(3));
    int turns = 0;
    while (harness.connection->busy() && ++turns < 1000) harness.turn();
    harness.connection->finish();
    harness.turns();
    const std::string answers = peer->take();
    for (const std::string id : {"1", "2", "3"}) {
      EXPECT_NE(answers.find(R"("delivered":"no"}},"id":)" + id + "}\n"), std::string::npos) << answers;
    }
  }
}

// ---- our own calls ----

class RecordingCaller final : public ResponseHandler {
 public:
  bool response(const Received& message) override {
    ids.emplace_back(message.id());
    return message.fault == Fault::none;
  }
  [[nodiscard]] bool waiting() const override { return is_waiting; }

  std::vector<std::string> ids;
  bool is_waiting = true;
};

TEST(ConnectionCaller, is_given_responses_also_those_within_a_batch) {
  Harness harness{2};
  RecordingCaller caller;
  harness.caller = &caller;
  const auto peer = harness.open();
  peer->send(R"({"jsonrpc":"2.0","result":1,"id":1}[{"jsonrpc":"2.0","result":1,"id":2},)" + request(5) +
             R"(,{"jsonrpc":"2.0","error":{"code":1,"message":""},"id":"3"}])");
  harness.turns();
  EXPECT_EQ(caller.ids, (std::vector<std::string>{"1", "2", "\"3\""}));
  EXPECT_EQ(peer->take(), "[{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":5}]\n");
  EXPECT_EQ(harness.loop_context.stats.responses_dropped, 0U);
}

TEST(ConnectionCaller, ends_the_connection_that_it_can_make_no_sense_of) {
  Harness harness{2};
  RecordingCaller caller;
  harness.caller = &caller;
  const auto peer = harness.open();
  peer->send(R"({"jsonrpc":"2.0","result":1,"error":2,"id":1})");
  harness.turns();
  EXPECT_EQ(harness.end, CloseReason::unreadable);
}

TEST(ConnectionCaller, that_ends_the_connection_within_a_batch_ends_it_once_and_nothing_more_is_served) {
  Harness harness{2};
  RecordingCaller caller;
  harness.caller = &caller;
  int served = 0;
  harness.registry.method("serve", [&served] { ++served; });
  const auto peer = harness.open();
  const std::string malformed = R"({"jsonrpc":"2.0","result":1,"error":2,"id":1})";
  peer->send("[" + malformed + "," + call("serve", 5) + "," + malformed + "]");
  harness.turns();
  EXPECT_EQ(harness.end, CloseReason::unreadable);
  EXPECT_EQ(caller.ids.size(), 1U);
  EXPECT_EQ(served, 0);
}

TEST(ConnectionCaller, does_not_wait_for_a_response_in_a_stream_that_cannot_be_read) {
  Harness harness{2};
  RecordingCaller caller;
  harness.caller = &caller;
  const auto peer = harness.open();
  peer->send("[]\n}");
  harness.turns();
  EXPECT_EQ(harness.end, CloseReason::unreadable);
}

TEST(ConnectionCaller, that_waits_for_nothing_lets_a_syntax_error_pass) {
  Harness harness{2};
  RecordingCaller caller;
  caller.is_waiting = false;
  harness.caller = &caller;
  const auto peer = harness.open();
  peer->send("[]\n}\n" + request(1));
  harness.turns();
  EXPECT_FALSE(harness.end.has_value());
  EXPECT_EQ(peer->take(), std::string{kInvalidRequest} + std::string{kParseError} + answer(1));
}

TEST(MessageConnection, that_nothing_is_happening_on_is_small) {
  // With its stream and framing; the allocator's own bytes are not counted.
  EXPECT_LE(sizeof(MessageConnection) + sizeof(transport::SocketStream) + sizeof(framing::JsonText), 512U);
}

}  // namespace
}  // namespace wirecall::net
