// A broker over real sockets, whose peers speak MessagePack behind a length, and JSON.
#pragma once

#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/connection/msgpack_texts.hpp"
#include "tests/connection/peer.hpp"
#include "tests/http/served.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net::msgpack_texts {

/// A raw peer of a broker that speaks MessagePack behind a length.
struct MsgpackPeer {
  explicit MsgpackPeer(const Endpoint& endpoint) : peer(endpoint) {}
  void send(std::string_view message) { peer.send(framed(message)); }
  void say(std::string_view json) { send(msgpack_of(json)); }
  std::string bytes() {
    const std::string head = peer.take(4);
    std::size_t size = 0;
    for (const char c : head) size = size << 8 | static_cast<unsigned char>(c);
    return peer.take(size);
  }
  std::string json() { return unpacked(bytes()); }

  RawPeer peer;
};

// What JSON has no form for, and what it would write in another one.
inline constexpr std::string_view kOnlyHere =
    "97 cb7ff8000000000000 ca3fc00000 81 01 02 d4 05 ff d7ff0000000000000001 cd 0001 c4 01 ff";

class MsgpackBroker : public testing::Test {
 protected:
  MsgpackBroker() : endpoint_(broker_.listen("tcp://127.0.0.1:0")), running_(broker_) {}

  static std::string line_of(std::string_view method, std::string_view params, std::string_view id = {}) {
    std::string text = R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params};
    if (!id.empty()) text.append(R"(,"id":)").append(id);
    return text + "}";
  }
  static void subscribe(MsgpackPeer& peer) {
    peer.say(line_of("rpc.subscribe", R"({"topic":"news.*"})", "1"));
    EXPECT_EQ(peer.json(), result("true", 1));
  }
  // The request as the first of its members that JSON can hold, for its id.
  static std::string without_params(const std::string& request) {
    const std::string name = msgpack_of(R"("params")");
    const std::size_t at = request.find(name);
    const std::size_t bytes = name.size() + from_hex(kOnlyHere).size();
    std::string rest = request.substr(0, at) + request.substr(at + bytes);
    rest[0] = static_cast<char>(rest[0] - 1);
    return rest;
  }
  static std::string item_of(std::string_view id, int seq, std::string_view value_hex) {
    const std::string head = R"({"id":)" + std::string{id} + R"(,"seq":)" + std::to_string(seq) + "}";
    return with(R"({"jsonrpc":"2.0","method":"rpc.item"})", "params", packing::to_hex(with(head, "value", value_hex)));
  }
  // The response whose result is kOnlyHere, with its members in the order in which a broker writes them.
  static std::string only_here_of(std::string_view id) {
    std::string text = msgpack_of(R"({"jsonrpc":"2.0"})");
    text[0] = '\x83';
    return text + msgpack_of(R"("result")") + from_hex(kOnlyHere) + msgpack_of(R"("id")") + msgpack_of(id);
  }
  static std::string id_of(const std::string& request) { return Value::parse(request)->at("id").dump(); }

  Broker broker_;
  Endpoint endpoint_;
  RunningServer running_;
};

}  // namespace wirecall::net::msgpack_texts
