// Which handlers that do not return are named in the log, and what is said and done where loops are not taken over:
// since the handler is a coroutine, since too many are off the loop, since an option says so, or since the kernel
// forbids it.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <thread>
#include <utility>
#include <vector>

#include "tests/base/forbid.hpp"
#include "tests/server/loop_takeover_fixture.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/task.hpp"

namespace wirecall {

namespace net {
namespace {

struct SlowToDecode {
  static inline Gate* gate = nullptr;
};

}  // namespace
}  // namespace net

template <>
struct Adapt<net::SlowToDecode> {
  static constexpr std::string_view name = "integer that is waited for";
  static bool decode(Reader& reader, net::SlowToDecode&) {
    net::SlowToDecode::gate->wait();
    std::int64_t value = 0;
    return reader.read_int(0, 100, value);
  }
  static std::string schema() { return R"({"type":"integer"})"; }
};

namespace net {
namespace {

TEST_F(LoopTakeoverTest, AHandlerThatDoesNotReturnIsLoggedWithItsName) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  slow.send(call("block", "[1]", 1));
  expect_logged("block");
  gate.open();
  EXPECT_EQ(slow.line(), result("1", 1));
  EXPECT_EQ(server.stats().slow_handlers, 1U);
  EXPECT_EQ(server.stats().takeovers, 1U);
  EXPECT_GT(server.stats().loop_turns, 1U);
}

// Whoever is slow for once is told what to do, and not that it is gone.
TEST_F(LoopTakeoverTest, AHandlerThatReturnsIsLoggedWithTheTimeThatItHasTaken) {
  Options keeping = make_options();
  keeping.takeover_ms = 0;
  Other keeps{*this, std::move(keeping)};
  Other loses{*this, make_options()};
  for (Other* const one : {&loses, &keeps}) {
    gate.close();
    one->slow->send(call("block", "[1]", 1));
    expect_logged("block");
    EXPECT_EQ(logged_of("a handler has returned"), 0U);
    gate.open();
    EXPECT_EQ(one->slow->line(), result("1", 1));
    expect_logged("a handler has returned");
    const std::scoped_lock lock{log_mutex};
    ASSERT_EQ(log.size(), 2U);
    EXPECT_NE(log[0].find("has not returned yet"), std::string::npos) << log[0];
    for (const std::string& line : log) {
      EXPECT_NE(line.find("block"), std::string::npos) << line;
      EXPECT_GE(std::stoi(line.substr(line.find("ms=") + 3)), 50) << line;
    }
    EXPECT_NE(log[0].find("blocking=True"), std::string::npos) << log[0];
    log.clear();
  }
}

TEST_F(LoopTakeoverTest, AHandlerMayBeAllowedToKeepItsLoopAndIsLoggedAllTheSame) {
  Options options = make_options();
  options.takeover_ms = 0;
  Other patient{*this, std::move(options)};
  patient.slow->send(call("block", "[1]", 1) + call("block", "[2]", 2));
  expect_logged("block");
  gate.open();
  EXPECT_EQ(patient.slow->line(), result("1", 1));
  EXPECT_EQ(patient.slow->line(), result("2", 2));
  EXPECT_GE(patient.server.stats().slow_handlers, 1U);
  EXPECT_EQ(patient.server.stats().takeovers, 0U);
}

TEST_F(LoopTakeoverTest, ACoroutineThatBlocksKeepsItsLoopAndIsLoggedWithItsName) {
  server.method("blocking_task", [this](int value) -> Task<int> {
    gate.wait();
    co_return value;
  });
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  slow.send(call("blocking_task", "[1]", 1));
  expect_logged("blocking_task");
  gate.open();
  EXPECT_EQ(slow.line(), result("1", 1));
  EXPECT_EQ(server.stats().slow_handlers, 1U);
  EXPECT_EQ(server.stats().takeovers, 0U);
}

TEST_F(LoopTakeoverTest, ACoroutineThatBlocksWhenItHasWaitedIsLoggedWithItsName) {
  const auto wait_and_block = [this](const Context& context, int value) -> Task<int> {
    co_await sleep_for(context, std::chrono::milliseconds{1});
    gate.wait();
    co_return value;
  };
  server.method("blocking_later", wait_and_block);
  server.method("blocking_part", [wait_and_block](Context context, int value) -> Task<int> {
    co_return std::get<0>(co_await when_all(wait_and_block(context, value)));
  });
  const RunningServer running{server};
  for (const std::string_view name : {"blocking_later", "blocking_part"}) {
    gate.close();
    RawPeer slow{*endpoint};
    slow.send(call(name, "[1]", 1));
    expect_logged(name);
    gate.open();
    EXPECT_EQ(slow.line(), result("1", 1));
  }
  EXPECT_EQ(server.stats().takeovers, 0U);
}

TEST_F(LoopTakeoverTest, MoreHandlersThanMayBeOffLoopHoldUpTheirLoopWhichIsLogged) {
  Options options = make_options();
  options.takeover_threads = 2;
  Other small{*this, std::move(options)};
  small.slow->send(call("block", "[1]", 1) + call("block", "[2]", 2) + call("block", "[3]", 3));
  expect_logged("since takeover_threads others are off the loop");
  EXPECT_EQ(small.server.stats().takeovers, 2U);
  gate.open();
  std::vector<std::string> answers{small.slow->line(), small.slow->line(), small.slow->line()};
  std::ranges::sort(answers);
  EXPECT_EQ(answers, (std::vector{result("1", 1), result("2", 2), result("3", 3)}));
}

// Whatever its caller sends.
TEST_F(LoopTakeoverTest, OfACallWhoseParamsTakeLongOnlyTheHandlerIsLogged) {
  Gate decoding;
  SlowToDecode::gate = &decoding;
  server.method("decode_and_block", [this](std::string_view, SlowToDecode) {
    gate.wait();
    return 1;
  });
  server.method("decode_and_wait", [](std::string_view, SlowToDecode) -> Task<int> { co_return 1; });
  const RunningServer running{server};
  const std::string params = "[\"" + std::string(300'000, '.') + "\",0]";
  std::vector<RawPeer> slow;
  for (const std::string_view name : {"decode_and_block", "decode_and_wait"}) {
    slow.emplace_back(*endpoint).send(call(name, params, 1));
    decoding.await_inside(static_cast<int>(slow.size()));
  }
  // Whoever is slow after them is logged, and they are not.
  RawPeer other{*endpoint};
  other.send(call("block", "[1]", 1));
  expect_logged("block");
  EXPECT_EQ(logged_of("decode_and"), 0U);
  EXPECT_EQ(server.stats().slow_handlers, 1U);
  decoding.open();
  EXPECT_EQ(slow[1].line(), result("1", 1));
  expect_logged("decode_and_block");
  gate.open();
  EXPECT_EQ(slow[0].line(), result("1", 1));
  EXPECT_EQ(logged_of("decode_and_wait"), 0U);
  EXPECT_EQ(server.stats().slow_handlers, 2U);
}

TEST_F(LoopTakeoverTest, AMethodIsLoggedOnceASecondWithHowOftenItWasNot) {
  using Clock = std::chrono::steady_clock;
  Options options = make_options();
  options.thread_count = 1;
  options.slow_handler_ms = 1;
  options.takeover_ms = 0;  // so all are told of in the same words: others are counted by themselves
  Other served{*this, std::move(options)};
  const Clock::time_point start = Clock::now();
  int calls = 0;
  const auto call_once = [&] {
    gate.close();
    served.slow->send(call("block", "[1]", ++calls));
    EXPECT_TRUE(comes_true([&] { return served.server.stats().slow_handlers == static_cast<std::uint64_t>(calls); }));
    gate.open();
    EXPECT_EQ(served.slow->line(), result("1", calls));
  };
  for (int i = 0; i < 10; ++i) call_once();
  const auto seconds = static_cast<std::size_t>((Clock::now() - start) / std::chrono::seconds{1});
  EXPECT_GE(logged_of("not returned yet"), 1U);
  EXPECT_LE(logged_of("not returned yet"), seconds + 1);
  EXPECT_LE(logged_of("has returned"), seconds + 1);
  // Each of them is told of in the end, one way or the other.
  const std::size_t before = logged_of("not returned yet");
  while (logged_of("not returned yet") == before) call_once();
  const auto told = static_cast<int>(logged_of("not returned yet"));
  const std::scoped_lock lock{log_mutex};
  EXPECT_EQ(told + not_logged, calls);
}

// What a thread says and does for which the kernel has no membarrier: the warnings of a server that it makes.
std::vector<std::string> warnings_without_fence(int error, const std::function<void(Options&)>& change) {
  std::vector<std::string> warnings;
  std::thread{[&] {
    test::forbid(__NR_membarrier, error);
    Options options;
    options.log = [&](const LogRecord& record) {
      if (record.level == LogLevel::warning) warnings.emplace_back(record.message);
    };
    change(options);
    Server server{std::move(options)};
    server.method("add", [](int a, int b) { return a + b; });
    const Endpoint bound = server.listen("tcp://127.0.0.1:0");
    const RunningServer running{server};
    RawPeer peer{bound};
    peer.send(call("add", "[1,2]", 1));
    EXPECT_EQ(peer.line(), result("3", 1));
  }}.join();
  return warnings;
}

TEST(LoopTakeover, ThatTheKernelForbidsIsWarnedOfOnceWithTheCauseAndTheCure) {
  struct Case {
    int error;
    std::string_view cause;
    std::string_view cure;
  };
  for (const auto& [error, cause, cure] :
       {Case{EPERM, "Operation not permitted", "likely seccomp, as containers have it: allow it there"},
        Case{ENOSYS, "Function not implemented", "this kernel is built without it, or a filter hides it"},
        Case{EINVAL, "Invalid argument", "this kernel is older than Linux 4.14"}}) {
    const auto warnings = warnings_without_fence(error, [](Options& options) { options.thread_count = 3; });
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_TRUE(warnings[0].starts_with("membarrier refused: ")) << warnings[0];
    EXPECT_NE(warnings[0].find(cause), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find(cure), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find("takeover_ms"), std::string::npos) << warnings[0];
  }
}

TEST(LoopTakeover, ThatNobodyWantsIsNotMissed) {
  const auto neither = [](Options& options) { options.takeover_ms = options.slow_handler_ms = 0; };
  EXPECT_TRUE(warnings_without_fence(EPERM, neither).empty());
  const auto only_logged = [](Options& options) { options.takeover_ms = 0; };
  EXPECT_EQ(warnings_without_fence(EPERM, only_logged).size(), 1U);
  const auto unheard = [](Options& options) { options.log = {}; };
  EXPECT_TRUE(warnings_without_fence(EPERM, unheard).empty());
}

// Then a handler that does not return keeps its loop, and everything else is as ever.
TEST_F(LoopTakeoverTest, WithoutItAHandlerKeepsItsLoopUntilItReturns) {
  std::thread{[this] {
    test::forbid(__NR_membarrier, EPERM);
    Options options = make_options();
    options.thread_count = 1;
    Other plain{*this, std::move(options)};
    RawPeer quick{*plain.endpoint};
    plain.slow->send(call("block", "[7]", 1));
    gate.await_inside(1);
    quick.send(call("rpc.ping", "[]", 2));
    gate.open();
    EXPECT_EQ(plain.slow->line(), result("7", 1));
    EXPECT_EQ(quick.line(), result("\"pong\"", 2));
    EXPECT_EQ(plain.server.stats().takeovers, 0U);
  }}.join();
}

}  // namespace
}  // namespace net
}  // namespace wirecall
