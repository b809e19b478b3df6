// Params so long that to decode them takes a while: the loop goes on without them, as without a handler that does not
// come back. A type that waits for the test while it is decoded stands for the while.
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>

#include "tests/session/peer.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/server.hpp"

namespace wirecall {

namespace session {
namespace {

struct Awaited {
  static inline Gate* gate = nullptr;

  int value = 0;
};

}  // namespace
}  // namespace session

template <>
struct Adapt<session::Awaited> {
  static constexpr std::string_view name = "integer that is waited for";
  static bool decode(Reader& reader, session::Awaited& out) {
    if (session::Awaited::gate != nullptr) session::Awaited::gate->wait();
    std::int64_t value = 0;
    if (!reader.read_int(0, 100, value)) return false;
    out.value = static_cast<int>(value);
    return true;
  }
  static void encode(Writer& writer, const session::Awaited& value) { writer.integer(value.value); }
  static std::string schema() { return R"({"type":"integer"})"; }
};

namespace session {
namespace {

std::string call(std::string_view method, std::string_view params, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}\n";
}

class LongParamsTest : public testing::Test {
 protected:
  LongParamsTest() {
    Awaited::gate = &decoding;
    server.method("add", [](int a, int b) { return a + b; });
    server.method("late",
                  [this](std::string_view text, Awaited awaited, std::string_view more) {
                    handling.wait();
                    return std::string{text.substr(0, 7)} + std::to_string(awaited.value) + std::string{more};
                  },
                  {"text", "awaited", Param{"more"}.otherwise(std::string{"and \"more\""})});
    endpoint.emplace(server.listen("tcp://127.0.0.1:0"));
  }
  ~LongParamsTest() override {
    decoding.open();
    handling.open();
    Awaited::gate = nullptr;
  }

  // Of `late`, by position or by name, with `awaited` as JSON.
  static std::string params(std::string_view awaited, bool named) {
    const std::string text = R"("\u00e4 text)" + std::string(300'000, '.') + '"';
    if (named) return R"({"awaited":)" + std::string{awaited} + R"(,"text":)" + text + "}";
    return "[" + text + "," + std::string{awaited} + "]";
  }
  void expect_served(RawPeer& peer, int id) {
    peer.send(call("add", "[1,2]", id));
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":3,"id":)" + std::to_string(id) + "}");
  }

  Gate decoding;
  Gate handling;
  Server server;
  std::optional<Endpoint> endpoint;
};

TEST_F(LongParamsTest, others_are_served_while_they_are_decoded_and_while_their_handler_is_away) {
  const RunningServer running{server};
  for (const bool named : {false, true}) {
    decoding.close();
    handling.close();
    RawPeer slow{*endpoint};
    RawPeer quick{*endpoint};
    slow.send(call("late", params("7", named), 1));
    decoding.await_inside(1);
    for (int i = 0; i < 10; ++i) expect_served(quick, i);
    decoding.open();
    handling.await_inside(1);
    for (int i = 0; i < 10; ++i) expect_served(quick, i);
    handling.open();
    EXPECT_EQ(slow.line(), R"({"jsonrpc":"2.0","result":"ä text7and \"more\"","id":1})");
    expect_served(slow, 2);
  }
}

TEST_F(LongParamsTest, those_that_are_wrong_are_refused_when_they_have_been_decoded) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer quick{*endpoint};
  slow.send(call("late", params("101", false), 1));
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

TEST_F(LongParamsTest, a_call_can_be_cancelled_while_they_are_decoded) {
  const RunningServer running{server};
  RawPeer peer{*endpoint};
  peer.send(call("late", params("7", false), 1));
  decoding.await_inside(1);
  expect_served(peer, 2);
  peer.send(call("rpc.cancel", "[1]", 3));
  const std::string first = peer.line();
  const std::string second = peer.line();
  EXPECT_NE((first + second).find(R"("code":-32800)"), std::string::npos) << first << second;
  EXPECT_NE((first + second).find(R"("result":1,"id":3)"), std::string::npos) << first << second;
  decoding.open();
  handling.open();
  expect_served(peer, 4);
}

}  // namespace
}  // namespace session
}  // namespace wirecall
