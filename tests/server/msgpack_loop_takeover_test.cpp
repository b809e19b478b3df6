// A handler of a message in MessagePack that does not return: what it reads from stays while others go on.
#include <gtest/gtest.h>
#include <string>

#include "tests/codec/msgpack.hpp"
#include "tests/server/loop_takeover_fixture.hpp"

namespace wirecall::net {
namespace {

using packing::framed;
using packing::msgpack_of;

class MsgpackLoopTakeover : public LoopTakeoverTest {};

TEST_F(MsgpackLoopTakeover, a_handler_that_loses_the_loop_keeps_what_it_reads) {
  const RunningServer running{server};
  const std::string text(3000, 'x');
  RawPeer late{*endpoint};
  late.send(framed(msgpack_of(call("echo_late", R"([")" + text + R"(","y"])", 1))));
  gate.await_inside(1);
  // Others use the same scratch memory meanwhile.
  RawPeer other{*endpoint};
  for (int i = 0; i < 20; ++i) {
    other.send(framed(msgpack_of(call("add", "[" + std::to_string(i) + ",1]", i))));
    const std::string reply = framed(msgpack_of(result(std::to_string(i + 1), i)));
    EXPECT_EQ(other.take(reply.size()), reply);
  }
  gate.open();
  const std::string reply = framed(msgpack_of(result("\"" + text + "y\"", 1)));
  EXPECT_EQ(late.take(reply.size()), reply);
}

TEST_F(MsgpackLoopTakeover, by_http_as_well) {
  const RunningServer running{server};
  RawPeer late{*endpoint};
  const std::string body = msgpack_of(call("echo_late", R"(["a","b"])", 1));
  late.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  gate.await_inside(1);
  RawPeer other{*endpoint};
  other.send(framed(msgpack_of(call("add", "[1,1]", 2))));
  const std::string quick = framed(msgpack_of(result("2", 2)));
  EXPECT_EQ(other.take(quick.size()), quick);
  gate.open();
  const std::string reply = msgpack_of(result(R"("ab")", 1));
  const std::string whole =
      "HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: " + std::to_string(reply.size()) +
      "\r\n\r\n" + reply;
  EXPECT_EQ(late.take(whole.size()), whole);
}

}  // namespace
}  // namespace wirecall::net
