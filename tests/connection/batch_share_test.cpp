// Elements of a batch are served in shares, as messages are: a turn serves a part of a long one, what is behind it
// waits until all of it has been dispatched, and nobody sees from the answer that it was interrupted.
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connection/channel.hpp"
#include "message/binary_transcoder.hpp"
#include "tests/server/accepting.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

constexpr int kElements = 9000;    // some shares
constexpr int kShareSteps = 2048;  // docs/architecture.md "Choices and their reasons"

std::string request(std::string_view method, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":[)" + std::to_string(id) +
         R"(],"id":)" + std::to_string(id) + "}";
}
std::string notification(std::string_view method, int number) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":[)" + std::to_string(number) + "]}";
}
std::string result(int id) {
  return R"({"jsonrpc":"2.0","result":)" + std::to_string(id) + R"(,"id":)" + std::to_string(id) + "}";
}
template <class Element>
std::string array(int count, const Element& element) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + element(i);
  return text + "]";
}
std::string requests(std::string_view method, int count = kElements) {
  return array(count, [&](int i) { return request(method, i); });
}
std::string results(int count = kElements) { return array(count, &result); }
std::string framed(std::string_view message) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(message.size() >> shift);
  return text.append(message);
}
std::string msgpack_of(const std::string& json) {
  message::MsgpackTranscoder transcoder;
  Buffer text{json};
  Buffer bytes;
  EXPECT_TRUE(transcoder.from_json(text.padded(), Limits{}, bytes));
  return std::string{bytes.view()};
}
std::string post(const std::string& body) {
  return "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class BatchShare : public testing::Test, public Accepting {
 protected:
  BatchShare() : Accepting(3, many()) {
    registry.method("echo", [this](int number) {
      seen.push_back(number);
      return number;
    });
    registry.method("wait", [this](int number) -> Task<int> {
      seen.push_back(number);
      Completion<int> answer;
      waiting.emplace_back(number, answer);
      co_return co_await answer;
    });
  }
  static Limits many() {
    Limits limits;
    limits.batch = 100'000;
    return limits;
  }
  [[nodiscard]] std::int64_t steps_used() const {
    const auto* channel = dynamic_cast<const Channel*>(connection.get());
    return channel == nullptr ? 0 : channel->steps_used();
  }
  // Turns until `count` elements have been seen; how many turns have seen any.
  int turns_until_seen(std::size_t count) {
    int shares = 0;
    for (int i = 0; i < 100'000 && seen.size() < count; ++i) {
      const std::size_t before = seen.size();
      turn();
      EXPECT_LE(steps_used(), kShareSteps);
      EXPECT_LE(seen.size() - before, static_cast<std::size_t>(kShareSteps));
      shares += seen.size() != before ? 1 : 0;
    }
    EXPECT_EQ(seen.size(), count);
    return shares;
  }
  // Turns until a part of a batch has been served.
  void interrupt() {
    for (int i = 0; i < 100'000 && seen.empty(); ++i) turn();
    ASSERT_GT(seen.size(), 0U);
    ASSERT_LT(seen.size(), static_cast<std::size_t>(kElements));
  }
  void turns_until_end() {
    for (int i = 0; i < 100'000 && !end; ++i) turn();
    EXPECT_TRUE(end.has_value());
  }

  std::vector<int> seen;
  std::vector<std::pair<int, Completion<int>>> waiting;
};

TEST_F(BatchShare, is_run_no_further_once_its_connection_has_broken) {
  peer->send(requests("echo"));
  while (seen.empty()) turn();
  peer->reset();
  turns(5);
  const std::size_t run = seen.size();
  ASSERT_LT(run, std::size_t{kElements}) << "it takes several turns";
  turns();
  EXPECT_EQ(seen.size(), run);
  EXPECT_EQ(end, CloseReason::lost);
  EXPECT_TRUE(loop_context.batches.open.empty());
}

TEST_F(BatchShare, a_turn_serves_a_part_of_a_long_batch_and_the_answer_is_one_array_in_order) {
  peer->send(requests("echo"));
  EXPECT_GE(turns_until_seen(kElements), kElements / kShareSteps);
  turns();
  EXPECT_EQ(peer->take(), results() + "\n");
}

TEST_F(BatchShare, what_is_behind_a_batch_waits_until_all_of_it_has_been_dispatched) {
  peer->send(requests("echo") + request("echo", kElements) + notification("echo", kElements + 1));
  turns_until_seen(kElements + 2);
  for (int i = 0; i < kElements + 2; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
  turns();
  EXPECT_EQ(peer->take(), results() + "\n" + result(kElements) + "\n");
}

TEST_F(BatchShare, two_batches_take_turns_one_after_the_other) {
  peer->send(requests("echo") + requests("echo"));
  EXPECT_GE(turns_until_seen(2 * kElements), 2 * kElements / kShareSteps);
  turns();
  EXPECT_EQ(peer->take(), results() + "\n" + results() + "\n");
}

TEST_F(BatchShare, a_batch_of_notifications_alone_gets_no_answer) {
  peer->send(array(kElements, [](int i) { return notification("echo", i); }));
  turns_until_seen(kElements);
  turns();
  EXPECT_EQ(peer->take(), "");
}

TEST_F(BatchShare, the_end_behind_a_batch_waits_for_it) {
  peer->send(requests("echo"));
  peer->finish();
  turns_until_seen(kElements);
  turns_until_end();
  EXPECT_EQ(peer->take(), results() + "\n");
  EXPECT_EQ(end, CloseReason::finished);
}

TEST_F(BatchShare, calls_that_wait_are_answered_in_their_places) {
  peer->send(array(kElements, [](int i) { return request(i % 100 == 0 ? "wait" : "echo", i); }));
  interrupt();
  for (auto& [number, answer] : std::exchange(waiting, {})) answer.set(number);
  turns_until_seen(kElements);
  turns();
  EXPECT_EQ(peer->take(), "");
  for (auto& [number, answer] : std::exchange(waiting, {})) answer.set(number);
  turns();
  EXPECT_EQ(peer->take(), results() + "\n");
}

TEST_F(BatchShare, a_batch_in_messagepack_is_interrupted_as_well) {
  peer->send(framed(msgpack_of(requests("echo"))) + framed(msgpack_of(request("echo", kElements))));
  EXPECT_GE(turns_until_seen(kElements + 1), kElements / kShareSteps);
  turns();
  EXPECT_EQ(peer->take(), framed(msgpack_of(results())) + framed(msgpack_of(result(kElements))));
}

TEST_F(BatchShare, a_body_of_http_is_interrupted_as_well_and_its_response_comes_before_the_next) {
  peer->send(post(requests("echo")) + post(request("echo", kElements)) + post(notification("echo", kElements + 1)));
  EXPECT_GE(turns_until_seen(kElements + 2), kElements / kShareSteps);
  turns();
  const std::string answers = peer->take();
  const std::size_t first = answers.find("\r\n\r\n" + results());
  ASSERT_NE(first, answers.npos);
  EXPECT_NE(answers.find("\r\n\r\n" + result(kElements), first), answers.npos);
  EXPECT_NE(answers.find("HTTP/1.1 204", first), answers.npos);
}

TEST_F(BatchShare, by_http_a_batch_of_notifications_alone_is_a_204) {
  peer->send(post(array(kElements, [](int i) { return notification("echo", i); })));
  turns_until_seen(kElements);
  turns();
  EXPECT_TRUE(peer->take().starts_with("HTTP/1.1 204"));
}

TEST_F(BatchShare, by_http_calls_that_wait_are_answered_in_their_places) {
  peer->send(post(array(kElements, [](int i) { return request(i % 100 == 0 ? "wait" : "echo", i); })));
  turns_until_seen(kElements);
  turns();
  EXPECT_EQ(peer->take(), "");
  for (auto& [number, answer] : std::exchange(waiting, {})) answer.set(number);
  turns();
  EXPECT_TRUE(peer->take().ends_with("\r\n\r\n" + results()));
}

TEST_F(BatchShare, a_connection_is_busy_while_a_batch_is_interrupted) {
  peer->send(requests("echo"));
  interrupt();
  EXPECT_TRUE(connection->busy());
  turns_until_seen(kElements);
  turns();
  EXPECT_FALSE(connection->busy());
}

TEST_F(BatchShare, what_a_drain_finds_of_a_batch_is_refused_as_messages_are) {
  peer->send(requests("echo"));
  interrupt();
  const std::size_t ran = seen.size();
  connection->drain();
  for (int i = 0; i < 1000 && connection->busy(); ++i) turn();
  turns();
  EXPECT_EQ(seen.size(), ran);
  const std::string answer = peer->take();
  EXPECT_TRUE(answer.starts_with("[" + result(0) + "," + result(1)));
  EXPECT_NE(answer.find(R"("code":-32009)"), answer.npos);
  EXPECT_TRUE(answer.ends_with("\"id\":" + std::to_string(kElements - 1) + "}]\n"));
}

TEST_F(BatchShare, by_http_a_draining_server_serves_a_share_of_a_batch_and_refuses_the_rest) {
  peer->send(post(request("echo", 0)));
  turns();
  static_cast<void>(peer->take());
  connection->drain();
  peer->send(post(requests("rpc.stats")));
  for (int i = 0; i < 200; ++i) {
    turn();
    ASSERT_LE(steps_used(), 2 * kShareSteps);
  }
  const std::string answer = peer->take();
  EXPECT_NE(answer.find("\r\n\r\n["), answer.npos);
  EXPECT_NE(answer.find(R"("code":-32009)"), answer.npos);
  EXPECT_NE(answer.find("\"id\":" + std::to_string(kElements - 1) + "}]"), answer.npos);
}

TEST_F(BatchShare, a_connection_that_is_finished_runs_no_more_of_its_batch_and_says_so) {
  peer->send(requests("echo"));
  interrupt();
  const std::size_t ran = seen.size();
  connection->finish();
  turns(200);
  EXPECT_EQ(seen.size(), ran);
  const std::string answer = peer->take();
  EXPECT_TRUE(answer.starts_with("[" + result(0) + "," + result(1)));
  EXPECT_NE(answer.find(R"("reason":"the connection is being closed")"), answer.npos);
  EXPECT_TRUE(answer.ends_with("\"id\":" + std::to_string(kElements - 1) + "}]\n"));
  EXPECT_TRUE(peer->shut_down);
}

TEST_F(BatchShare, a_connection_that_is_cut_or_reset_runs_no_more_of_its_batch) {
  peer->send(requests("echo"));
  interrupt();
  peer->reset();
  turns();
  ASSERT_TRUE(end.has_value());
  const std::size_t ran = seen.size();
  turns();
  EXPECT_EQ(seen.size(), ran);
}

TEST_F(BatchShare, a_peer_that_takes_nothing_holds_up_its_own_batch) {
  peer->window = 0;
  registry.method("large", [this](int number) {
    seen.push_back(number);
    return std::string(8 * 1024 * 1024, 'x');
  });
  peer->send(request("large", 0) + requests("echo"));
  turns(400);
  const std::size_t ran = seen.size();
  EXPECT_LT(ran, static_cast<std::size_t>(kElements));
  peer->window = std::size_t{1} << 40;
  turns_until_seen(kElements + 1);
}

}  // namespace
}  // namespace wirecall::net
