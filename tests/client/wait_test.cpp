// Calls that wait for a provider: made again while nobody provides their method, and never when they may have been
// delivered; on a simulated system.
#include <chrono>
#include <expected>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/broker_world.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

constexpr const char* kMissing = R"("error":{"code":-32601,"message":"Method not found"})";

// A server that has no method before the call has come so many times; `own`: it says that it has answered itself.
struct LateWorld : BrokerWorld {
  explicit LateWorld(int refusals, bool own = true, ClientOptions options = {}) : BrokerWorld{std::move(options)} {
    answer_to = [this, refusals, own](const std::string& request) -> std::string {
      if (member(request, "method") == R"("rpc.undelivered")") {
        return "\"result\":" + std::to_string(own ? std::exchange(refused_, 0) : 0);
      }
      ++calls_;
      if (calls_ > refusals) return R"("result":7)";
      ++refused_;
      return kMissing;
    };
  }
  int calls() const { return calls_; }

 private:
  int calls_ = 0;
  int refused_ = 0;
};

TEST(ClientWait, a_call_is_made_again_until_somebody_provides_its_method) {
  LateWorld world{2};
  EXPECT_EQ(world.client->request<int>("late").wait(10s).try_call(), 7);
  EXPECT_EQ(world.methods(), (Names{"late", "rpc.undelivered", "late", "rpc.undelivered", "late"}));
}

TEST(ClientWait, its_attempts_get_rarer) {
  LateWorld world{1'000'000};
  EXPECT_FALSE(world.client->request<int>("late").wait(250ms).try_call());
  EXPECT_EQ(world.calls(), 5) << "after 0, 10, 30, 70 and 150 ms";
}

TEST(ClientWait, the_option_is_for_all_calls) {
  ClientOptions options;
  options.wait_ms = 10'000;
  LateWorld world{1, true, options};
  EXPECT_EQ(world.client->try_call<int>("late"), 7);
}

TEST(ClientWait, without_it_the_first_answer_counts) {
  LateWorld world{1};
  const auto answer = world.client->try_call<int>("late");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), -32601);
  EXPECT_EQ(world.methods(), (Names{"late"}));
}

TEST(ClientWait, what_a_handler_answers_is_final) {
  LateWorld world{1, false};
  const auto answer = world.client->request<int>("late").wait(10s).try_call();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), -32601);
  EXPECT_EQ(world.calls(), 1);
}

TEST(ClientWait, of_servers_that_do_not_tell_the_first_answer_counts) {
  BrokerWorld world;
  world.answer_to = [](const std::string&) { return kMissing; };
  const auto answer = world.client->request<int>("late").wait(10s).try_call();
  ASSERT_FALSE(answer);
  EXPECT_EQ(world.methods(), (Names{"late", "rpc.undelivered"}));
}

TEST(ClientWait, it_ends_with_the_error_when_its_time_is_over) {
  LateWorld world{1'000'000};
  const auto answer = world.client->request<int>("late").wait(100ms).try_call();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), -32601);
  EXPECT_GT(world.calls(), 1);
  EXPECT_LT(world.calls(), 10);
}

TEST(ClientWait, it_ends_with_the_error_where_the_question_is_not_answered) {
  BrokerWorld world;
  world.answer_to = [](const std::string& request) {
    return BrokerWorld::member(request, "method") == R"("late")" ? std::string{kMissing} : std::string{};
  };
  const auto answer = world.client->request<int>("late").wait(100ms).try_call();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), -32601);
  EXPECT_EQ(world.methods(), (Names{"late", "rpc.undelivered"}));
}

TEST(ClientWait, behind_a_batch_nobody_can_tell_and_the_first_answer_counts) {
  LateWorld world{1'000'000};
  static_cast<void>(world.client->batch().notify("a").notify("b").send());
  EXPECT_FALSE(world.client->request<int>("late").wait(10s).try_call());
}

}  // namespace
}  // namespace wirecall::net
