// Subscriptions whose memory fails at the N-th request, for every N until none is made any more: one that fails has had
// no effect, and succeeds afterwards.
#include "broker/subscriptions.hpp"

#include <gtest/gtest.h>
#include <new>
#include <string>
#include <vector>

#include "tests/memory/failing_memory.hpp"

namespace wirecall::memory {
namespace {

// Whose they are is never looked at.
class Someone final : public broker::Subscriber {
 public:
  Someone() : Subscriber(nullptr) {}
};

class SubscriptionsMemory : public testing::TestWithParam<Failing> {};

TEST_P(SubscriptionsMemory, failing_at_any_request_has_no_effect) {
  struct Asked {
    std::string pattern;
    broker::SubscriptionOptions options;
  };
  std::vector<Asked> all{{"a.*.c", {}}, {">", {}}, {"a.*.c", {.group = "workers whose name needs memory"}}};
  all.push_back({"a.b.c", {.group = "another group whose name needs memory"}});
  all.push_back({"a.*.*.*.*.*.*.*.i", {}});
  std::string many = "many.*.";
  for (char last = 'a'; last <= 'z'; ++last) all.push_back({many + last, {}});
  for (std::size_t number = 1, failed = 1; failed != 0; ++number) {
    broker::Subscriptions subscriptions;
    Someone someone;
    failed = 0;
    FailingMemory memory{number, GetParam()};
    for (const Asked& one : all) {
      try {
        subscriptions.subscribe(someone, one.pattern, one.options);
      } catch (const std::bad_alloc&) {
        memory.end();
        ++failed;
        subscriptions.subscribe(someone, one.pattern, one.options);
      }
      EXPECT_TRUE(subscriptions.has(someone, one.pattern)) << one.pattern << ", at " << number;
    }
    memory.end();
    EXPECT_EQ(subscriptions.choose_for("a.b.c", nullptr).size(), 1U);
    for (const Asked& one : all) subscriptions.unsubscribe(someone, one.pattern);
    EXPECT_TRUE(subscriptions.empty());
    EXPECT_EQ(subscriptions.choose_for("a.b.c", nullptr).size(), 0U);
    ASSERT_TRUE(failed != 0 || number > all.size()) << "subscriptions have to request memory";
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, SubscriptionsMemory, testing::Values(Failing::once, Failing::since));

}  // namespace
}  // namespace wirecall::memory
