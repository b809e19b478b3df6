// An engine whose memory fails at the N-th request, for every N until none is made any more. Each text is served with
// an engine that is new; what comes of it is the reply that is due, or -32603 in the place of a result, or
// std::bad_alloc from handle; and what is asked next is answered as if nothing had been.
#include "wirecall/registry.hpp"

#include <gtest/gtest.h>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/memory/failing_memory.hpp"
#include "wirecall/middleware.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

namespace wirecall::memory {
namespace {

using nlohmann::json;

struct Person {
  std::string name;
  std::vector<std::string> languages;
  std::map<std::string, double> scores;
  std::optional<std::string> street;
};

struct World {
  explicit World(bool with_hooks) {
    registry.method("subtract", [](int a, int b) { return a - b; }, {"a", "b"});
    registry.method("echo", [](Value value) { return value; });
    registry.method("older", [](Person person, std::string by) {
      person.languages.push_back("a language whose name needs memory, learned " + by);
      return person;
    });
    registry.method("fails", []() -> int { throw Error{7, "a message that is too long to need no memory", "[1, 2]"}; });
    registry.method("raises", []() -> int { throw std::runtime_error("something that is for the log alone"); });
    registry.method("task", [](std::string text) -> Task<std::string> {
      const std::string& same = text;
      co_return co_await [](std::string inner) -> Task<std::string> { co_return inner + inner; }(same);
    });
    registry.method("count", [](int n) -> Stream<int> {
      for (int i = 0; i < n; ++i) co_yield i;
    });
    registry.method("never", []() -> Task<int> {
      const Completion<int> nobody;
      co_return co_await nobody;
    });
    registry.method("rest", [](Rest<std::string> all) { return all.size(); });
    if (with_hooks) {
      registry.use([this](Call& call, const Next& next) {
        call.on_reply([this](const Outcome&) { ++ended; });
        ++begun;
        next(call);
      });
    }
  }

  Registry registry;
  int begun = 0;
  int ended = 0;
};

std::string call(std::string_view method, std::string_view params, std::string_view id) {
  std::string text = R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params};
  if (!id.empty()) text.append(R"(,"id":)").append(id);
  return text + "}";
}

const std::string kLong(3000, 'x');

std::vector<std::string> texts() {
  const std::string person =
      R"({"name":"Ada, whose name is longer than some","languages":["a","b"],"scores":{"chess":1.5,"go":2}})";
  std::vector<std::string> all{
      call("subtract", "[42,23]", "1"),
      call("subtract", R"({"b":23,"a":42})", R"("an id that is longer than what a string holds by itself")"),
      call("subtract", "[42,23]", ""),
      call("subtract", R"([42,"x"])", "2"),
      call("echo", R"([{"a":[1,2.5,"three",null],"b":")" + kLong + R"("}])", "3"),
      call("older", "[" + person + R"(,"late"])", "4"),
      call("fails", "[]", "5"),
      call("raises", "[]", "6"),
      call("task", R"([")" + kLong + R"("])", "7"),
      call("count", "[100]", "8"),
      call("never", "[]", "9"),
      call("rest", R"(["a","b","c, which is longer than a string holds by itself"])", "10"),
      call("subtrac", "[1,2]", "11"),
      R"({"jsonrpc":"2.0","method":"sub\u0074ract","params":[3,2],"timeout_ms":1000,"id":12})",
      R"({"jsonrpc":"2.0","method":)",
      R"({"jsonrpc":"2.0","method":1,"id":13})",
      "[]",
  };
  std::string batch = "[";
  for (const std::string& one : {all[0], all[2], all[5], all[6], all[8], all[9], all[10], all[12], all[15]}) {
    batch += (batch.size() == 1 ? "" : ",") + one;
  }
  all.push_back(batch + "]");
  return all;
}

bool is_internal_error(const json& reply) {
  return reply.contains("error") && reply["error"]["code"] == -32603 && !reply["error"].contains("data");
}

void expect_due(const std::string& got, const std::string& due) {
  if (got == due) return;
  const json is = json::parse(got);
  const json was = json::parse(due);
  ASSERT_EQ(is.is_array(), was.is_array()) << got;
  const auto fits = [&](const json& one, const json& expected) {
    if (one == expected) return true;
    if (one.value("id", json{}) != expected.value("id", json{})) return false;
    // What stands in its data is a help, for which there may be no memory.
    const bool same_error = one.contains("error") && expected.contains("error") &&
                            one["error"]["code"] == expected["error"]["code"] && !one["error"].contains("data");
    return same_error || is_internal_error(one);
  };
  if (!is.is_array()) {
    EXPECT_TRUE(fits(is, was)) << got;
    return;
  }
  ASSERT_EQ(is.size(), was.size()) << got;
  for (std::size_t i = 0; i < is.size(); ++i) EXPECT_TRUE(fits(is[i], was[i])) << is[i];
}

// Whether the memory still failed.
bool serve(const std::string& text, std::size_t number, Failing failing, bool with_hooks) {
  World world{with_hooks};
  World same{with_hooks};
  const std::string due = same.registry.handle(text);
  std::optional<std::string> got;
  bool failed = false;
  {
    FailingMemory memory{number, failing};
    try {
      got = world.registry.handle(text);
    } catch (const std::bad_alloc&) {
    }
    memory.end();
    failed = FailingMemory::has_failed();
  }
  EXPECT_TRUE(failed || got == due);
  if (got) expect_due(*got, due);
  EXPECT_EQ(world.ended, world.begun);
  EXPECT_EQ(world.registry.handle(text), due) << "after the memory has come back";
  EXPECT_EQ(world.ended, world.begun);
  return failed;
}

class RegistryMemory : public testing::TestWithParam<Failing> {};

TEST_P(RegistryMemory, failing_anywhere_is_answered_or_thrown_and_forgotten) {
  std::size_t failures = 0;
  for (const bool with_hooks : {false, true}) {
    for (const std::string& text : texts()) {
      for (std::size_t number = 1; serve(text, number, GetParam(), with_hooks) && !HasFailure(); ++number) {
        ++failures;
        ASSERT_LT(number, 10'000U);
      }
      ASSERT_FALSE(HasFailure()) << text;
    }
  }
  EXPECT_GT(failures, 100U) << "the memory that is asked for has to pass through the test";
}

// A method that cannot be added is not there, and those that are stay.
TEST(RegisteringMemory, failing_while_methods_are_added_leaves_those_that_are) {
  bool failed = true;
  for (std::size_t number = 1; failed; ++number) {
    ASSERT_LT(number, 10'000U);
    Registry registry;
    std::vector<std::string> added;
    added.reserve(40);
    {
      FailingMemory memory{number, Failing::once};
      for (int i = 0; i < 40; ++i) {
        try {
          std::string name = "a_method_of_some_length_" + std::to_string(i);
          registry.method(name, [i] { return i; });
          added.push_back(std::move(name));
        } catch (const std::bad_alloc&) {
        }
      }
      memory.end();
      failed = FailingMemory::has_failed();
    }
    EXPECT_EQ(added.size(), failed ? 39U : 40U);
    EXPECT_EQ(registry.methods().size(), added.size());
    for (const std::string& name : added) ASSERT_NE(registry.find(name), nullptr) << name;
    EXPECT_NE(registry.find(registry.nearest("a_method_of_some_length_x")), nullptr);
  }
}

// How often memory is asked for to serve the text.
std::size_t requests_for(const std::string& text) {
  World world{false};
  static_cast<void>(world.registry.handle(text));
  for (std::size_t number = 1;; ++number) {
    const FailingMemory memory{number, Failing::once};
    try {
      static_cast<void>(world.registry.handle(text));
    } catch (const std::bad_alloc&) {
    }
    if (!FailingMemory::has_failed()) return number - 1;
  }
}

TEST(RequestsForMemory, are_no_more_to_cancel_thousands_of_calls_than_to_cancel_one) {
  const auto cancel = [](const std::string& ids) {
    return R"({"jsonrpc":"2.0","method":"rpc.cancel","params":[)" + ids + R"(],"id":1})";
  };
  std::string many = "1";
  for (std::size_t id = 2; id <= Limits{}.in_flight; ++id) many += "," + std::to_string(id);
  EXPECT_EQ(requests_for(cancel(many)), requests_for(cancel("1")));
}

INSTANTIATE_TEST_SUITE_P(Ways, RegistryMemory, testing::Values(Failing::once, Failing::since));

}  // namespace
}  // namespace wirecall::memory
