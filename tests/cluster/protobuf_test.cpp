// Messages in Protocol Buffers between brokers: requests with nothing but method, id, params and names of clients, and
// results, stay as they are where both ends speak it, as at one broker.
#include <gtest/gtest.h>

#include "message/protobuf_transcoder.hpp"
#include "tests/cluster/cluster_fixture.hpp"
#include "tests/cluster/encoded_client.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

// Messages written by hand: an integer of the kind that those above 2^63 - 1 have shows whether it has been written
// anew.
class ProtobufOfNodes : public ClusterTest {
 protected:
  [[nodiscard]] static std::string field(char tag, const std::string& content) {
    return tag + std::string(1, static_cast<char>(content.size())) + content;
  }
  [[nodiscard]] static std::string one() { return "\x20\x01"; }
  [[nodiscard]] static std::string method(const std::string& name) { return field('\x12', name); }
  [[nodiscard]] static std::string id(std::size_t small) {
    return field('\x3A', "\x18"s + static_cast<char>(2 * small));
  }
  [[nodiscard]] static std::string params() { return field('\x42', field('\x42', field('\x0A', one()))); }
  [[nodiscard]] static std::string to(const std::string& name) { return field('\x72', name); }
  [[nodiscard]] static std::string from(const std::string& name) { return field('\x7A', name); }
  [[nodiscard]] static std::string timeout(std::size_t ms) { return "\x50"s + static_cast<char>(ms); }
  [[nodiscard]] static std::string result(const std::string& id) { return field('\x1A', one()) + id; }

  // The field with the id of a request that a provider has got.
  [[nodiscard]] static std::string id_in(const std::string& asked) {
    const std::size_t at = asked.find('\x3A');
    return at == std::string::npos ? "" : asked.substr(at, 2 + static_cast<std::size_t>(asked[at + 1]));
  }
  // The same of one that has come as JSON.
  [[nodiscard]] static std::string id_of_json(const std::string& asked) {
    Buffer out;
    message::ProtobufTranscoder writer;
    writer.end_reply(out, id_of(asked));
    return std::string{out.view()};
  }
  static void provide(EncodedClient& client, std::string_view terms = {}) {
    client.send_json(request("rpc.register", R"({"method":"work")" + std::string{terms} + "}"));
    EXPECT_EQ(client.received(), result_reply("1"));
  }
  static void hello(EncodedClient& client, std::string_view name) {
    client.send_json(request("rpc.hello", R"({"name":")" + std::string{name} + "\"}"));
    static_cast<void>(client.received());
  }
};

TEST_F(ProtobufOfNodes, ParamsAndResultsOfTwoWhoSpeakItStayAsTheyAre) {
  EncodedClient provider{*b, Encoding::protobuf};
  provide(provider);
  EncodedClient caller{*a, Encoding::protobuf};
  advance(kMeet);
  caller.send(method("work") + id(7) + params());
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_EQ(asked, method("work") + id_in(asked) + params());
  provider.send(result(id_in(asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), result(id(7)));
  EXPECT_EQ(a->router.relayed_calls().in_use(), 0U);
  EXPECT_EQ(b->router.relayed_calls().in_use(), 0U);
}

TEST_F(ProtobufOfNodes, WhoCallsIsToldWhereTheProvidersBrokerDisclosesIt) {
  BrokerNode telling{network, scheduler, "t", 0x3000000000, {.disclose_callers = true}};
  EncodedClient provider{telling, Encoding::protobuf};
  provide(provider);
  EncodedClient caller{*a, Encoding::protobuf};
  hello(caller, "ada");
  advance(kMeet);
  caller.send(method("work") + id(1) + params() + from("eve"));
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_EQ(asked, method("work") + id_in(asked) + params() + from("ada"));
}

TEST_F(ProtobufOfNodes, WhoCallsIsNotToldElsewhereAndTheCallStaysAsItIs) {
  EncodedClient provider{*b, Encoding::protobuf};
  provide(provider);
  EncodedClient caller{*a, Encoding::protobuf};
  hello(caller, "ada");
  advance(kMeet);
  caller.send(method("work") + id(1) + params());
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_EQ(asked, method("work") + id_in(asked) + params());
}

TEST_F(ProtobufOfNodes, ACallToANameStaysAsItIsAndReachesIt) {
  EncodedClient named{*b, Encoding::protobuf};
  EncodedClient other{*b, Encoding::protobuf};
  hello(named, "worker");
  provide(named);
  provide(other);
  EncodedClient caller{*a, Encoding::protobuf};
  advance(kMeet);
  for (const std::string& call :
       {to("worker") + method("work") + id(1) + params(), method("work") + id(2) + params() + to("worker")}) {
    caller.send(call);
    advance(kHop);
    const std::string asked = named.received();
    EXPECT_EQ(asked, method("work") + id_in(asked) + params());
    named.send(result(id_in(asked)));
    advance(kHop);
    EXPECT_TRUE(caller.received().starts_with(field('\x1A', one())));
  }
  EXPECT_EQ(other.received(), "");
}

TEST_F(ProtobufOfNodes, ACallThatWaitsForItsProviderStaysAsItIs) {
  BrokerNode telling{network, scheduler, "t", 0x3000000000, {.disclose_callers = true}};
  EncodedClient provider{telling, Encoding::protobuf};
  hello(provider, "worker");
  provide(provider, R"(,"concurrency":1)");
  EncodedClient caller{*a, Encoding::protobuf};
  hello(caller, "ada");
  advance(kMeet);
  caller.send(method("work") + id(1) + params());
  caller.send(method("work") + id(2) + params() + to("worker"));
  advance(kHop);
  const std::string first = provider.received();
  EXPECT_EQ(provider.received(), "");
  provider.send(result(id_in(first)));
  const std::string second = provider.received();
  EXPECT_EQ(second, method("work") + id_in(second) + params() + from("ada"));
}

TEST_F(ProtobufOfNodes, WhatHasMoreThanThatGoesAsJsonAndIsAnsweredAsItIs) {
  EncodedClient provider{*b, Encoding::protobuf};
  provide(provider);
  EncodedClient caller{*a, Encoding::protobuf};
  advance(kMeet);
  caller.send(method("work") + id(3) + params() + timeout(100));
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_TRUE(asked.contains(R"("params":[1],"timeout_ms":)")) << asked;
  provider.send(result(id_of_json(asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), result(id(3)));
}

TEST_F(ProtobufOfNodes, AProviderOfAnotherEncodingIsAskedInJson) {
  NodeClient provider{*b};
  provider.provide("work");
  EncodedClient caller{*a, Encoding::protobuf};
  advance(kMeet);
  caller.send(method("work") + id(1) + params());
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_EQ(asked, R"({"jsonrpc":"2.0","method":"work","id":)" + id_of(asked) + R"(,"params":[1]})");
  provider.send(result_reply("2", id_of(asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("2"));
}

TEST_F(ProtobufOfNodes, ACallerOfJsonIsAnsweredInJson) {
  EncodedClient provider{*b, Encoding::protobuf};
  provide(provider);
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("work", "[1]"));
  advance(kHop);
  provider.send(result(id_of_json(provider.received())));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("1"));
}

TEST_F(ProtobufOfNodes, ItemsOfAStreamAreJsonAndItsResultIs) {
  EncodedClient provider{*b, Encoding::protobuf};
  provide(provider);
  EncodedClient caller{*a, Encoding::protobuf};
  advance(kMeet);
  caller.send(method("work") + id(1) + "\x58\x02");  // stream
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_TRUE(asked.contains(R"("stream":2)")) << asked;
  provider.send_json(notification("rpc.item", R"({"id":)" + id_of(asked) + R"(,"seq":0,"value":1})"));
  provider.send(result(id_of_json(asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), notification("rpc.item", R"({"id":1,"seq":0,"value":1})"));
  EXPECT_EQ(caller.received(), result_reply("1"));
}

TEST_F(ProtobufOfNodes, WhatTheOtherBrokerSaysOfItselfIsRemote) {
  auto provider = std::make_unique<EncodedClient>(*b, Encoding::protobuf);
  provide(*provider);
  EncodedClient caller{*a, Encoding::protobuf};
  advance(kMeet);
  caller.send(method("work") + id(1) + params());
  advance(kHop);
  provider->dispatcher.reset();
  advance(kHop);
  const std::string lost = caller.received();
  EXPECT_TRUE(lost.contains(R"("origin":"remote","delivered":"maybe")")) << lost;
}

TEST_F(ProtobufOfNodes, ACallThatComesTooLateForItsProviderIsMadeElsewhereAsItIs) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  EncodedClient second{c, Encoding::protobuf};
  provide(second);
  auto first = std::make_unique<EncodedClient>(*b, Encoding::protobuf);
  provide(*first);
  EncodedClient caller{*a, Encoding::protobuf};
  advance(kMeet);
  caller.send(method("work") + id(1) + params());
  caller.send(method("work") + id(2) + params());
  first->dispatcher.reset();
  advance(kHop);
  EXPECT_TRUE(second.received().contains(params()));
  EXPECT_TRUE(second.received().contains(params()));
}

TEST_F(ProtobufOfNodes, AMethodOfTheOtherBrokersOwnIsAnsweredInIt) {
  b->registry.method("own", [](int value) { return value + 1; });
  BrokerNode late{network, scheduler, "late", 0x3000000000};
  EncodedClient caller{late, Encoding::protobuf};
  advance(kMeet);
  caller.send(method("own") + id(1) + params());
  advance(kHop);
  EXPECT_EQ(caller.received(), field('\x1A', "\x18\x04") + id(1));
}

TEST_F(ProtobufOfNodes, WhatNestsDeeperThanTheOtherNodeTakesEndsItsCallAlone) {
  Limits narrow;
  narrow.depth = 4;
  BrokerNode c{network, scheduler, "c", 0x3000000000, {}, narrow};
  EncodedClient there{c, Encoding::protobuf};
  provide(there);
  EncodedClient caller{*a, Encoding::protobuf};
  advance(kMeet);
  std::string deep = one();
  for (int level = 0; level != 8; ++level) deep = field('\x42', field('\x0A', deep));
  caller.send(method("work") + id(1) + field('\x42', deep));
  advance(kHop);
  EXPECT_EQ(there.received(), "");
  const std::string refused = caller.received();
  EXPECT_TRUE(refused.contains(R"("delivered":"no","limit":"depth")")) << refused;
  EXPECT_EQ(a->cluster->find("c")->sessions_lost(), 0U);
}

}  // namespace
}  // namespace wirecall::test
