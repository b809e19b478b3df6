// Handlers that say they block: where they run, what they hold up, and what becomes of them when the server or the
// caller goes.
#include <atomic>
#include <condition_variable>
#include <expected>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include "tests/connection/peer.hpp"
#include "wirecall/context.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

std::string call(std::string_view method, int id, std::string_view params = "[]") {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}\n";
}
std::string answer(std::string_view result, int id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{result} + R"(,"id":)" + std::to_string(id) + "}";
}

// No loop is ever taken from a handler here: what is not held up owes it to the threads for blocking.
Options on_threads(std::uint32_t threads) {
  Options options;
  options.blocking_threads = threads;
  options.takeover_ms = 0;
  options.drain_ms = 100;
  return options;
}

class BlockingTest : public testing::Test {
 protected:
  explicit BlockingTest(std::uint32_t threads = 2) : server(on_threads(threads)) {
    server.method("subtract", [](int a, int b) { return a - b; });
    server.method("wait", blocking([this](std::string what) {
                    gate.wait();
                    return what;
                  }));
    server.method("thread", blocking([] { return std::this_thread::get_id() == loop_thread; }));
    server.method("loop", [] {
      loop_thread = std::this_thread::get_id();
      return true;
    });
    server.method("nothing", blocking([] {}));
    server.method("throw", blocking([](int code) {
                    if (code == 0) throw std::runtime_error{"not for the wire"};
                    throw Error{code, "no"};
                  }));
    server.method("expected", blocking([](bool well) -> std::expected<int, Error> {
                    if (well) return 19;
                    return std::unexpected{Error{-7, "no"}};
                  }));
    server.method("until_stopped", blocking([this](const Context& context) {
                    std::unique_lock lock{mutex};
                    std::condition_variable_any{}.wait(lock, context.stop_token(), [] { return false; });
                    stopped = true;
                    changed.notify_all();
                    return context.method();
                  }));
    endpoint.emplace(server.listen("tcp://127.0.0.1:0"));
    running.emplace(server);
  }
  ~BlockingTest() override { gate.open(); }

  static inline std::thread::id loop_thread;
  Gate gate;
  std::mutex mutex;
  std::condition_variable_any changed;
  bool stopped = false;
  Server server;
  std::optional<Endpoint> endpoint;
  std::optional<RunningServer> running;
};

TEST_F(BlockingTest, holds_up_neither_its_connection_nor_others) {
  RawPeer peer{*endpoint};
  RawPeer other{*endpoint};
  peer.send(call("wait", 1, R"(["a"])") + call("subtract", 2, "[42,23]"));
  EXPECT_EQ(peer.line(), answer("19", 2));
  other.send(call("wait", 1, R"(["b"])") + call("subtract", 2, "[42,23]"));
  EXPECT_EQ(other.line(), answer("19", 2));
  gate.await_inside(2);
  gate.open();
  EXPECT_EQ(peer.line(), answer(R"("a")", 1));
  EXPECT_EQ(other.line(), answer(R"("b")", 1));
}

TEST_F(BlockingTest, runs_on_another_thread_than_the_loop) {
  RawPeer peer{*endpoint};
  peer.send(call("loop", 1));
  EXPECT_EQ(peer.line(), answer("true", 1));
  peer.send(call("thread", 2));
  EXPECT_EQ(peer.line(), answer("false", 2));
}

TEST_F(BlockingTest, beyond_the_number_of_threads_waits_for_one) {
  RawPeer peer{*endpoint};
  peer.send(call("wait", 1, R"(["a"])") + call("wait", 2, R"(["b"])"));
  gate.await_inside(2);
  peer.send(call("nothing", 3) + call("subtract", 4, "[42,23]"));
  EXPECT_EQ(peer.line(), answer("19", 4));  // and nothing for 3, though it came first
  gate.open();
  std::string lines;
  for (int i = 0; i < 3; ++i) lines += peer.line();
  EXPECT_NE(lines.find(answer("null", 3)), std::string::npos) << lines;
}

TEST_F(BlockingTest, answers_with_all_that_a_function_can) {
  RawPeer peer{*endpoint};
  const auto ask = [&](std::string_view method, std::string_view params) {
    peer.send(call(method, 1, params));
    return peer.line();
  };
  EXPECT_EQ(ask("nothing", "[]"), answer("null", 1));
  EXPECT_EQ(ask("expected", "[true]"), answer("19", 1));
  EXPECT_EQ(ask("expected", "[false]"), R"({"jsonrpc":"2.0","error":{"code":-7,"message":"no"},"id":1})");
  EXPECT_EQ(ask("throw", "[-5]"), R"({"jsonrpc":"2.0","error":{"code":-5,"message":"no"},"id":1})");
  const std::string internal = ask("throw", "[0]");
  EXPECT_NE(internal.find(R"("code":-32603)"), std::string::npos) << internal;
  EXPECT_EQ(internal.find("not for the wire"), std::string::npos) << internal;
  const std::string invalid = ask("wait", "[1]");
  EXPECT_NE(invalid.find(R"("code":-32602)"), std::string::npos) << invalid;
  peer.send("[" + call("nothing", 1) + "," + call("expected", 2, "[true]") + "]\n");
  EXPECT_EQ(peer.line(), "[" + answer("null", 1) + "," + answer("19", 2) + "]");
}

TEST_F(BlockingTest, is_asked_to_stop_when_its_caller_goes) {
  RawPeer peer{*endpoint};
  peer.send(call("until_stopped", 1) + call("subtract", 2, "[42,23]"));
  EXPECT_EQ(peer.line(), answer("19", 2));
  peer.reset();  // its end alone would not do: who has no more to say may still listen
  std::unique_lock lock{mutex};
  changed.wait(lock, [this] { return stopped; });
}

TEST_F(BlockingTest, is_answered_as_given_up_when_the_server_cannot_wait) {
  RawPeer peer{*endpoint};
  peer.send(call("wait", 1, R"(["a"])"));
  gate.await_inside(1);
  running->stop();
  EXPECT_NE(peer.line().find(R"("code":-32009)"), std::string::npos);
  EXPECT_TRUE(peer.ended());
}

class BlockingWithoutThreads : public BlockingTest {
 protected:
  BlockingWithoutThreads() : BlockingTest(0) {}
};

TEST_F(BlockingWithoutThreads, is_called_as_others_are) {
  RawPeer peer{*endpoint};
  peer.send(call("loop", 1));
  EXPECT_EQ(peer.line(), answer("true", 1));
  peer.send(call("thread", 2));
  EXPECT_EQ(peer.line(), answer("true", 2));
}

TEST(BlockingRegistry, calls_it_as_others) {
  Registry registry;
  registry.method("subtract", blocking([](int a, int b) { return a - b; }), {"minuend", "subtrahend"});
  EXPECT_EQ(registry.handle(R"({"jsonrpc":"2.0","method":"subtract","params":{"minuend":42,"subtrahend":23},"id":1})"),
            R"({"jsonrpc":"2.0","result":19,"id":1})");
}

}  // namespace
}  // namespace wirecall::net
