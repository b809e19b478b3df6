// Handlers that call their caller back, from end to end: a client of ours and one that is nothing but a socket.
#include <gtest/gtest.h>
#include <string>

#include "tests/connection/peer.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

class CallingBack : public testing::Test {
 protected:
  CallingBack() {
    server.method(
        "ask",
        [](Context context, int n) -> Task<int> { co_return 1 + co_await Caller{context}.call<int>("twice", n); },
        {"n"});
    // Each side calls the other until somebody says that it is enough.
    server.method("free", [] {});
    server.method("ping", [](Context context) -> Task<void> { co_await Caller{context}.call("pong"); });
  }

  static Options patient() {
    Options options;
    options.drain_ms = 60'000;
    return options;
  }

  Server server{patient()};
  Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
};

TEST_F(CallingBack, a_handler_is_answered_by_its_caller) {
  const RunningServer running{server};
  Client client{endpoint.uri()};
  client.method("twice", [](int n) { return 2 * n; });
  EXPECT_EQ(client.call<int>("ask", 20), 41);
  EXPECT_EQ(client.try_call<int>("ask", "x").error().code(), -32602);
}

TEST_F(CallingBack, a_caller_without_the_method_answers_that) {
  const RunningServer running{server};
  Client client{endpoint.uri()};
  client.method("other", [](int n) { return n; });
  EXPECT_EQ(client.try_call<int>("ask", 20).error().code(), -32601);
}

TEST_F(CallingBack, calls_in_a_circle_end_at_the_limit_of_hops) {
  const RunningServer running{server};
  Client client{endpoint.uri()};
  int pongs = 0;
  client.method("pong", [&pongs](Context context) -> Task<void> {
    ++pongs;
    co_await Caller{context}.call("ping");
  });
  const auto result = client.try_call("ping");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), -32005);
  EXPECT_NE(result.error().data().find(R"("limit":"hops")"), std::string::npos);
  EXPECT_EQ(pongs, 8) << "sixteen hops, every other one of them here; and not once more, since the call was delivered";
  EXPECT_EQ(client.try_call("ping").error().code(), -32005) << "the connection is none the worse";
}

// pygls, for one, refuses members that it does not know.
TEST_F(CallingBack, behind_a_content_length_calls_have_the_members_of_json_rpc_alone) {
  const RunningServer running{server};
  RawPeer peer{endpoint};
  const auto framed = [](std::string_view text) {
    return "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + std::string{text};
  };
  peer.send(framed(R"({"jsonrpc":"2.0","method":"ask","params":[20],"id":1})"));
  const std::string call = framed(R"({"jsonrpc":"2.0","method":"twice","params":[20],"id":"h1"})");
  EXPECT_EQ(peer.bytes(call.size()), call);
  peer.send(framed(R"({"jsonrpc":"2.0","result":4,"id":"h1"})"));
  const std::string reply = framed(R"({"jsonrpc":"2.0","result":5,"id":1})");
  EXPECT_EQ(peer.bytes(reply.size()), reply);
}

TEST_F(CallingBack, a_cancel_reaches_the_caller_s_side) {
  const RunningServer running{server};
  RawPeer peer{endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"ask","params":[20],"timeout_ms":20000,"id":1})");
  const std::string call = peer.line();
  EXPECT_TRUE(call.starts_with(R"({"jsonrpc":"2.0","method":"twice","params":[20],"hops":1,"timeout_ms":)")) << call;
  EXPECT_TRUE(call.ends_with(R"(,"id":"h1"})")) << call;
  peer.send(R"([{"jsonrpc":"2.0","result":4,"id":"h1"}])");
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":5,"id":1})") << "a response counts in a batch as well";
  peer.send(R"({"jsonrpc":"2.0","method":"ask","params":[20],"id":2})");
  peer.line();
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.cancel","params":[2]})");
  EXPECT_NE(peer.line().find("-32800"), std::string::npos);
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"h2"}})");
  // What comes too late is dropped and counted, and the connection is none the worse.
  peer.send(R"({"jsonrpc":"2.0","result":4,"id":"h2"}{"jsonrpc":"2.0","method":"free","id":3})");
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":null,"id":3})");
  EXPECT_EQ(server.stats().responses_dropped, 1U);
}

TEST_F(CallingBack, a_caller_is_heard_while_the_server_drains) {
  RunningServer running{server};
  RawPeer peer{endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"ask","params":[20],"id":1})");
  EXPECT_TRUE(peer.line().starts_with(R"({"jsonrpc":"2.0","method":"twice")"));
  server.stop();
  std::string line;
  do {
    peer.send(R"({"jsonrpc":"2.0","method":"free","id":2})");
    line = peer.line();
  } while (line == R"({"jsonrpc":"2.0","result":null,"id":2})");
  EXPECT_NE(line.find("-32009"), std::string::npos) << line;
  peer.send(R"({"jsonrpc":"2.0","result":4,"id":"h1"})");
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":5,"id":1})");
  EXPECT_TRUE(peer.ended());
  running.join();
  EXPECT_EQ(running.end, RunEnd::drained);
}

TEST_F(CallingBack, a_caller_that_breaks_off_leaves_nothing_behind) {
  const RunningServer running{server};
  for (int i = 0; i < 10; ++i) {
    RawPeer peer{endpoint};
    peer.send(R"({"jsonrpc":"2.0","method":"ask","params":[20],"id":1})");
    peer.line();
    peer.reset();
  }
  RawPeer other{endpoint};
  do {
    other.send(R"({"jsonrpc":"2.0","method":"free","id":2})");
    EXPECT_EQ(other.line(), R"({"jsonrpc":"2.0","result":null,"id":2})");
  } while (server.stats().connections_open != 1);
  EXPECT_EQ(server.stats().calls_in_flight, 0U);
}

TEST_F(CallingBack, a_caller_by_http_cannot_be_called) {
  const RunningServer running{server};
  RawPeer peer{endpoint};
  const std::string body = R"({"jsonrpc":"2.0","method":"ask","params":[20],"id":1})";
  peer.send("POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::string all = peer.all();
  EXPECT_NE(all.find("the caller cannot be called"), std::string::npos) << all;
}

TEST_F(CallingBack, a_caller_that_sends_no_more_is_not_waited_for) {
  const RunningServer running{server};
  RawPeer peer{endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"ask","params":[20],"id":1})");
  peer.line();
  peer.finish();
  EXPECT_NE(peer.line().find(R"("code":-32001)"), std::string::npos);
  EXPECT_TRUE(peer.ended());
}

}  // namespace
}  // namespace wirecall::net
