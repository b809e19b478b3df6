// Servers of systems that write a byte order mark before all text, as .NET's streams do: a client of ours skips it.
#include <gtest/gtest.h>
#include <string>

#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

const std::string kMark = "\xEF\xBB\xBF";
const std::string kAnswer = R"({"jsonrpc":"2.0","result":7,"id":1})";

TEST(ByteOrderMark, at_the_start_of_a_servers_text_is_skipped) {
  const ScriptedServer server{[](RawPeer peer) {
    EXPECT_NE(peer.line(), "");
    // Byte by byte as far as the network has it so.
    for (const char c : kMark) peer.send({&c, 1});
    peer.send(kAnswer + "\n");
    EXPECT_NE(peer.line(), "");
    peer.send(R"({"jsonrpc":"2.0","result":8,"id":2})"
              "\n");
    EXPECT_EQ(peer.line(), "");
  }};
  Client client{server.uri()};
  EXPECT_EQ(client.call<int>("a"), 7);
  EXPECT_EQ(client.call<int>("a"), 8);
}

TEST(ByteOrderMark, at_the_start_of_a_body_of_http_is_skipped) {
  const ScriptedServer server{[](RawPeer peer) {
    while (peer.line() != "\r") {
    }
    peer.take(1);  // of the call
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: " +
              std::to_string(kMark.size() + kAnswer.size()) + "\r\n\r\n" + kMark + kAnswer);
    peer.all();
  }};
  Client client{"http" + server.uri().substr(3) + "/rpc"};
  EXPECT_EQ(client.call<int>("a"), 7);
}

}  // namespace
}  // namespace wirecall::net
