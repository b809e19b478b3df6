// Params so long that to decode them takes a while: the loop goes on without them, whatever kind of handler they are
// for, as without a handler that does not come back; and so it does while a late result is written, and while what was
// decoded is destroyed. A type that waits for the test in each of these stands for the while.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/context.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/server.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"

namespace wirecall {

namespace net {
namespace {

struct Awaited {
  static inline Gate* decoding = nullptr;
  static inline Gate* encoding = nullptr;
  static inline Gate* leaving = nullptr;

  Awaited() = default;
  Awaited(Awaited&& other) noexcept : value(std::exchange(other.value, 0)) {}
  ~Awaited() {
    if (value != 0) leaving->wait();
  }

  int value = 0;
};

}  // namespace
}  // namespace net

template <>
struct Adapt<net::Awaited> {
  static constexpr std::string_view name = "integer that is waited for";
  static bool decode(Reader& reader, net::Awaited& out) {
    net::Awaited::decoding->wait();
    std::int64_t value = 0;
    if (!reader.read_int(0, 100, value)) return false;
    out.value = static_cast<int>(value);
    return true;
  }
  static void encode(Writer& writer, const net::Awaited& value) {
    net::Awaited::encoding->wait();
    writer.integer(value.value);
  }
  static std::string schema() { return R"({"type":"integer"})"; }
};

namespace net {
namespace {

std::string call(std::string_view method, std::string_view params, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}\n";
}

// The three kinds of handlers, all of which do the same.
constexpr std::array<std::string_view, 3> kKinds{"late", "late_task", "late_blocking"};

class LongParamsTest : public testing::Test {
 protected:
  LongParamsTest() {
    Awaited::decoding = &decoding;
    Awaited::encoding = &encoding;
    Awaited::leaving = &leaving;
    for (Gate* gate : {&encoding, &leaving}) gate->open();
    server.method("add", [](int a, int b) { return a + b; });
    server.method("other_default", [](int, int, std::string_view text) { return text.size(); },
                  {"a", "b", Param{"text"}.default_value(std::string{"XXX \"XXXX\""})});
    const std::vector<Param> names{"text", "awaited", Param{"more"}.default_value(std::string{"and \"more\""})};
    const auto late = [this](const Context& context, std::string_view text, const Awaited& awaited,
                             std::string_view more) {
      handling.wait();
      if (context.stop_token().stop_requested()) ++stopped;
      return std::string{text.substr(0, 7)} + std::to_string(awaited.value) + std::string{more};
    };
    server.method("late", late, names);
    server.method("late_blocking", blocking(late), names);
    server.method(
        "late_task",
        [this](Context context, std::string_view text, const Awaited& awaited,
               std::string_view more) -> Task<std::string> {
          if (context.stop_token().stop_requested()) ++stopped;
          co_await sleep_for(context, std::chrono::milliseconds{1});
          co_return std::string{text.substr(0, 7)} + std::to_string(awaited.value) + std::string{more};
        },
        names);
    server.method("late_stream", [](std::string_view, const Awaited& awaited) -> Stream<int> {
      for (int i = 0; i < awaited.value; ++i) co_yield i;
    });
    const auto echo = [this](std::string_view, Awaited awaited) {
      handling.wait();
      return awaited;
    };
    server.method("echo", echo);
    server.method("echo_blocking", blocking(echo));
    endpoint.emplace(server.listen("tcp://127.0.0.1:0"));
  }
  ~LongParamsTest() override {
    for (Gate* gate : {&decoding, &handling, &encoding, &leaving}) gate->open();
  }

  // Of `late`, by position or by name, with `awaited` as JSON.
  static std::string params(std::string_view awaited, bool named = false) {
    const std::string text = R"("\u00e4 text)" + std::string(300'000, '.') + '"';
    if (named) return R"({"awaited":)" + std::string{awaited} + R"(,"text":)" + text + "}";
    return "[" + text + "," + std::string{awaited} + "]";
  }
  void expect_served(RawPeer& peer, int id) {
    peer.send(call("add", "[1,2]", id));
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":3,"id":)" + std::to_string(id) + "}");
  }
  // While somebody is at that gate, which is opened then.
  void expect_others_served(Gate& gate) {
    gate.await_inside(1);
    RawPeer quick{*endpoint};
    for (int i = 0; i < 10; ++i) expect_served(quick, i);
    gate.open();
  }

  Gate decoding;
  Gate handling;
  Gate encoding;
  Gate leaving;
  std::atomic<int> stopped{0};
  Server server;
  std::optional<Endpoint> endpoint;
};

TEST_F(LongParamsTest, others_are_served_while_they_are_decoded_and_while_their_handler_is_away) {
  const RunningServer running{server};
  for (const std::string_view kind : kKinds) {
    for (const bool named : {false, true}) {
      SCOPED_TRACE(kind);
      decoding.close();
      handling.close();
      RawPeer slow{*endpoint};
      slow.send(call(kind, params("7", named), 1));
      expect_others_served(decoding);
      if (kind != "late_task") expect_others_served(handling);
      EXPECT_EQ(slow.line(), R"({"jsonrpc":"2.0","result":"ä text7and \"more\"","id":1})");
      expect_served(slow, 2);
    }
  }
}

TEST_F(LongParamsTest, those_that_are_wrong_are_refused_when_they_have_been_decoded) {
  const RunningServer running{server};
  for (const std::string_view kind : kKinds) {
    SCOPED_TRACE(kind);
    decoding.close();
    RawPeer slow{*endpoint};
    RawPeer quick{*endpoint};
    slow.send(call(kind, params("101"), 1));
    decoding.await_inside(1);
    expect_served(quick, 1);
    quick.send(call("add", R"(["x",2])", 2));
    EXPECT_NE(quick.line().find(R"("loc":["arg0"])"), std::string::npos);
    decoding.open();
    const std::string line = slow.line();
    EXPECT_NE(line.find(R"("code":-32602)"), std::string::npos) << line;
    EXPECT_NE(line.find(R"("loc":["awaited"])"), std::string::npos) << line;
    EXPECT_NE(line.find("101"), std::string::npos) << line;
  }
}

TEST_F(LongParamsTest, a_call_can_be_cancelled_while_they_are_decoded_and_its_handler_knows) {
  const RunningServer running{server};
  handling.open();
  int expected = 0;
  for (const std::string_view kind : kKinds) {
    SCOPED_TRACE(kind);
    decoding.close();
    RawPeer peer{*endpoint};
    peer.send(call(kind, params("7"), 1));
    decoding.await_inside(1);
    expect_served(peer, 2);
    peer.send(call("rpc.cancel", "[1]", 3));
    const std::string first = peer.line();
    const std::string second = peer.line();
    EXPECT_NE((first + second).find(R"("code":-32800)"), std::string::npos) << first << second;
    EXPECT_NE((first + second).find(R"("result":1,"id":3)"), std::string::npos) << first << second;
    decoding.open();
    ++expected;
    EXPECT_TRUE(comes_true([&] { return stopped == expected; }));
    expect_served(peer, 4);
  }
}

TEST_F(LongParamsTest, a_caller_may_go_while_they_are_decoded) {
  const RunningServer running{server};
  handling.open();
  int expected = 0;
  for (const std::string_view kind : kKinds) {
    SCOPED_TRACE(kind);
    decoding.close();
    RawPeer slow{*endpoint};
    slow.send(call(kind, params("7"), 1));
    decoding.await_inside(1);
    slow.reset();
    RawPeer quick{*endpoint};
    expect_served(quick, 1);
    EXPECT_TRUE(comes_true([&] { return server.stats().calls_in_flight == 0U; }));
    decoding.open();
    ++expected;
    EXPECT_TRUE(comes_true([&] { return stopped == expected; }));
    expect_served(quick, 2);
  }
}

TEST_F(LongParamsTest, a_batch_of_them_is_answered_in_its_order) {
  const RunningServer running{server};
  handling.open();
  RawPeer slow{*endpoint};
  std::string batch = "[" + call("add", "[1,2]", 0);
  int id = 0;
  for (const std::string_view kind : kKinds) batch += "," + call(kind, params("7"), ++id);
  std::erase(batch, '\n');
  slow.send(batch + "]\n");
  expect_others_served(decoding);
  std::string expected = R"([{"jsonrpc":"2.0","result":3,"id":0})";
  for (id = 1; id <= 3; ++id)
    expected += R"(,{"jsonrpc":"2.0","result":"ä text7and \"more\"","id":)" + std::to_string(id) + "}";
  EXPECT_EQ(slow.line(), expected + "]");
}

TEST_F(LongParamsTest, a_stream_of_items_follows_them) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  std::string request = call("late_stream", params("2"), 1);
  request.insert(1, R"("stream":9,)");
  slow.send(request);
  expect_others_served(decoding);
  const auto item = [](int value) {
    return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":1,"seq":)" + std::to_string(value) + R"(,"value":)" +
           std::to_string(value) + "}}";
  };
  EXPECT_EQ(slow.line(), item(0));
  EXPECT_EQ(slow.line(), item(1));
  EXPECT_NE(slow.line().find(R"("id":1)"), std::string::npos);
}

// What another call borrows from its own is elsewhere.
TEST_F(LongParamsTest, a_default_lasts_as_long_as_its_handler) {
  const RunningServer running{server};
  decoding.open();
  for (const std::string_view kind : {"late", "late_blocking"}) {
    SCOPED_TRACE(kind);
    handling.close();
    RawPeer slow{*endpoint};
    slow.send(call(kind, R"(["a",7])", 1));
    handling.await_inside(1);
    RawPeer quick{*endpoint};
    quick.send(call("other_default", "[1,2]", 1));
    EXPECT_EQ(quick.line(), R"({"jsonrpc":"2.0","result":10,"id":1})");
    handling.open();
    EXPECT_EQ(slow.line(), R"({"jsonrpc":"2.0","result":"a7and \"more\"","id":1})");
  }
}

TEST_F(LongParamsTest, others_are_served_while_their_result_is_written) {
  const RunningServer running{server};
  decoding.open();
  handling.open();
  for (const std::string_view kind : {"echo", "echo_blocking"}) {
    SCOPED_TRACE(kind);
    encoding.close();
    RawPeer slow{*endpoint};
    slow.send(call(kind, params("7"), 1));
    expect_others_served(encoding);
    EXPECT_EQ(slow.line(), R"({"jsonrpc":"2.0","result":7,"id":1})");
  }
}

TEST_F(LongParamsTest, others_are_served_while_a_late_result_is_written) {
  const RunningServer running{server};
  decoding.open();
  for (const std::string_view kind : {"echo", "echo_blocking"}) {
    SCOPED_TRACE(kind);
    handling.close();
    encoding.close();
    RawPeer slow{*endpoint};
    slow.send(call(kind, R"(["short",7])", 1));
    expect_others_served(handling);
    expect_others_served(encoding);
    EXPECT_EQ(slow.line(), R"({"jsonrpc":"2.0","result":7,"id":1})");
  }
}

TEST_F(LongParamsTest, others_are_served_while_what_was_decoded_is_destroyed) {
  const RunningServer running{server};
  decoding.open();
  handling.open();
  for (const std::string_view kind : {"late", "late_blocking"}) {
    SCOPED_TRACE(kind);
    leaving.close();
    RawPeer slow{*endpoint};
    slow.send(call(kind, params("7"), 1));
    expect_others_served(leaving);
    EXPECT_EQ(slow.line(), R"({"jsonrpc":"2.0","result":"ä text7and \"more\"","id":1})");
  }
}

}  // namespace
}  // namespace net
}  // namespace wirecall
