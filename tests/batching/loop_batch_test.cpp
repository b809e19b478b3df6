// Batched functions that are quick: they run on the loop, when the turn has ended.
#include <expected>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/batching/batched_method.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancelled;
using test::internal_error;
using test::request;
using test::result_reply;

class QuickMethod : public BatchedMethod {
 protected:
  /// As the loop does when its sockets have been read.
  void end_turn() {
    inbox->run();
    EXPECT_TRUE(pool.works.empty());
  }
};

TEST_F(QuickMethod, runs_on_the_loop_when_the_turn_has_ended) {
  add_double({.size = 8});
  make_double_quick();
  Peer other{*this};
  peer->call("double", "[1]", 1);
  other.call("double", R"({"number":2})", 7);
  peer->call("double", "[3]", 2);
  EXPECT_TRUE(batches.empty());
  end_turn();
  EXPECT_EQ(batches, (Batches{{1, 2, 3}}));
  EXPECT_EQ(received(), result_reply("2", "1") + "\n" + result_reply("6", "2"));
  EXPECT_EQ(other.sink.take(), result_reply("4", "7"));
}

TEST_F(QuickMethod, runs_in_which_all_fail_do_not_make_it_one) {
  loop.services.watchdog_slot = &watchdog_slot;
  registry.method("refuse",
                  batched(
                      [](const std::vector<int>& numbers) {
                        return std::vector<std::expected<int, Error>>(numbers.size(), std::unexpected(Error{7, "no"}));
                      },
                      {.size = 8}),
                  {"number"});
  for (int i = 0; i != 100; ++i) {
    peer->call("refuse", "[1]", i);
    EXPECT_TRUE(inbox->posted.empty());
    settle();
  }
}

TEST_F(QuickMethod, a_full_batch_runs_at_once) {
  add_double({.size = 2});
  make_double_quick();
  for (int i = 1; i <= 5; ++i) peer->call("double", "[" + std::to_string(i) + "]", i);
  EXPECT_EQ(batches, (Batches{{1, 2}, {3, 4}}));
  end_turn();
  EXPECT_EQ(batches, (Batches{{1, 2}, {3, 4}, {5}}));
}

TEST_F(QuickMethod, bytes_are_bounded_too_and_a_call_of_more_is_a_batch_of_its_own) {
  add_double({.size = 8, .bytes = 10});
  make_double_quick();
  for (const char* const params : {"[1]", "[2]", "[3]", "[4]", "[        5]", "[6]"}) peer->call("double", params, 1);
  end_turn();
  EXPECT_EQ(batches, (Batches{{1, 2, 3}, {4}, {5}, {6}}));
}

TEST_F(QuickMethod, calls_are_in_flight_until_the_turn_ends) {
  add_double({.size = 8});
  make_double_quick();
  peer->call("double", "[1]", 1);
  EXPECT_EQ(peer->dispatcher.in_flight(), 1U);
  end_turn();
  EXPECT_EQ(peer->dispatcher.in_flight(), 0U);
  EXPECT_EQ(loop.stats.calls_in_flight, 0U);
}

TEST_F(QuickMethod, a_wrong_call_and_a_notification_are_as_ever) {
  add_double({.size = 8});
  make_double_quick();
  peer->send(test::notification("double", "[1]"));
  peer->call("double", R"(["x"])", 1);
  peer->call("double", "[2]", 2);
  end_turn();
  EXPECT_EQ(batches, (Batches{{1, 2}}));
  const std::string answers = received();
  EXPECT_NE(answers.find("-32602"), std::string::npos) << answers;
  EXPECT_NE(answers.find(result_reply("4", "2")), std::string::npos) << answers;
}

TEST_F(QuickMethod, elements_of_a_json_rpc_batch_are_answered_as_one) {
  add_double({.size = 8});
  make_double_quick();
  peer->send("[" + request("double", "[1]", "1") + "," + request("double", "[2]", "2") + "]");
  end_turn();
  EXPECT_EQ(batches, (Batches{{1, 2}}));
  EXPECT_EQ(received(), "[" + result_reply("2", "1") + "," + result_reply("4", "2") + "]");
}

TEST_F(QuickMethod, one_whose_caller_has_gone_is_left_out) {
  add_double({.size = 8});
  make_double_quick();
  {
    Peer leaving{*this};
    leaving.call("double", "[1]", 1);
    peer->call("double", "[2]", 2);
  }
  end_turn();
  EXPECT_EQ(batches, (Batches{{2}}));
  EXPECT_EQ(received(), result_reply("4", "2"));
}

TEST_F(QuickMethod, a_call_with_a_deadline_of_its_own_keeps_it_and_can_be_cancelled) {
  add_double({.size = 8});
  make_double_quick();
  peer->send(R"({"jsonrpc":"2.0","method":"double","params":[1],"timeout_ms":1000,"id":1})");
  peer->call("double", "[2]", 2);
  peer->cancel(1);
  end_turn();
  EXPECT_EQ(batches, (Batches{{2}}));
  EXPECT_EQ(received(), cancelled("1") + "\n" + result_reply("4", "2"));
}

TEST_F(QuickMethod, an_exception_fails_all_and_the_log_is_told_once) {
  bool fails = false;
  registry.method("double", batched([&fails](std::vector<int> numbers) {
                    if (fails) throw std::runtime_error("secret");
                    return numbers;
                  }));
  make_double_quick();
  fails = true;
  peer->call("double", "[1]", 1);
  peer->call("double", "[2]", 2);
  end_turn();
  EXPECT_EQ(received(), internal_error("1") + "\n" + internal_error("2"));
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("secret"), std::string::npos) << log[0];
}

TEST_F(QuickMethod, calls_of_another_loop_wait_until_it_is_free) {
  test::VirtualScheduler other_scheduler;
  auto other_inbox = std::make_shared<Inbox>();
  rpc::LoopContext other_loop{json_codec(), &other_scheduler, &log_sink};
  other_loop.services.blocking_pool = &pool;
  other_loop.tasks.set_executor(other_inbox);
  add_double({.size = 8});
  make_double_quick();
  Peer other{*this, other_loop};
  peer->call("double", "[1]", 1);
  other.call("double", "[2]", 2);
  other_inbox->run();
  EXPECT_TRUE(batches.empty()) << "the place is taken";
  inbox->run();
  EXPECT_EQ(batches, (Batches{{1}}));
  other_inbox->run();
  pool.run_all();
  other_inbox->run();
  EXPECT_EQ(batches, (Batches{{1}, {2}}));
  EXPECT_EQ(other.sink.take(), result_reply("4", "2"));
}

TEST_F(QuickMethod, what_a_loop_that_ends_drops_leaves_the_function_free) {
  add_double({.size = 8});
  make_double_quick();
  peer->call("double", "[1]", 1);
  inbox->posted.clear();
  EXPECT_EQ(received(), internal_error("1"));
  peer->call("double", "[2]", 2);
  end_turn();
  EXPECT_EQ(batches, (Batches{{2}}));
}

TEST_F(QuickMethod, where_nobody_could_take_the_loop_over_it_runs_on_the_pool) {
  add_double({.size = 8});
  make_double_quick();
  loop.services.watchdog_slot = nullptr;
  peer->call("double", "[1]", 1);
  EXPECT_TRUE(inbox->posted.empty());
  settle();
  EXPECT_EQ(received(), result_reply("2", "1"));
  loop.services.blocking_pool = nullptr;  // nor does anybody wait for a thread
  peer->call("double", "[2]", 2);
  EXPECT_TRUE(batches.back() == std::vector{1});
  end_turn();
  EXPECT_EQ(received(), result_reply("4", "2"));
}

TEST_F(QuickMethod, with_priorities_calls_are_weighed) {
  int priority = 0;
  add_double({.size = 1, .priority = [&priority](const Context&) { return priority; }});
  make_double_quick();
  priority = 1;
  peer->call("double", "[1]", 1);
  for (int i = 2; i <= 3; ++i, ++priority) peer->call("double", "[" + std::to_string(i) + "]", i);
  EXPECT_TRUE(batches.empty());
  settle();
  EXPECT_EQ(batches, (Batches{{3}, {1}, {2}}));
}

TEST_F(QuickMethod, with_a_wait_it_waits) {
  add_double({.size = 8, .wait = 1ms});
  for (int i = 0; i != 1000; ++i) {
    peer->call("double", "[1]", i);
    EXPECT_TRUE(inbox->posted.empty());
    scheduler.advance(1ms);
    settle();
  }
}

}  // namespace
}  // namespace wirecall
