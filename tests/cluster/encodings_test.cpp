// Messages in MessagePack and CBOR between brokers: params, results, items and events stay as they are where both ends
// speak the same, and are JSON to others.
#include <cmath>
#include <gtest/gtest.h>

#include "tests/cluster/cluster_fixture.hpp"
#include "tests/cluster/encoded_client.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

// Messages written by hand: a one that takes a byte more than it needs shows whether it has been written anew.
class EncodingsTest : public ClusterTest, public testing::WithParamInterface<Encoding> {
 protected:
  [[nodiscard]] static bool is_cbor() { return GetParam() == Encoding::cbor; }
  [[nodiscard]] static std::string text(std::string_view value) {
    return static_cast<char>((is_cbor() ? 0x60 : 0xA0) + value.size()) + std::string{value};
  }
  [[nodiscard]] static std::string map(std::initializer_list<std::pair<std::string_view, std::string>> members) {
    std::string all{static_cast<char>((is_cbor() ? 0xA0 : 0x80) + members.size())};
    for (const auto& [name, value] : members) all += text(name) + value;
    return all;
  }
  // CBOR with the tag that says that it is CBOR, as wirecall writes it.
  [[nodiscard]] static std::string message(std::initializer_list<std::pair<std::string_view, std::string>> members) {
    return (is_cbor() ? "\xD9\xD9\xF7" : "") + map(members);
  }
  [[nodiscard]] static std::string array(const std::string& value) {
    return static_cast<char>(is_cbor() ? 0x81 : 0x91) + value;
  }
  [[nodiscard]] static std::string number(std::size_t small) { return {static_cast<char>(small)}; }
  // An id of any size.
  [[nodiscard]] static std::string wide(std::size_t id) {
    std::string all{is_cbor() ? "\x1B" : "\xCF"};
    for (int shift = 56; shift >= 0; shift -= 8) all += static_cast<char>(id >> shift & 0xFF);
    return all;
  }
  [[nodiscard]] static std::string long_one() { return is_cbor() ? "\x18\x01" : "\xCC\x01"; }
  [[nodiscard]] static std::string not_a_number() {
    using namespace std::string_literals;
    return is_cbor() ? "\xFA\x7F\xC0\x00\x00"s : "\xCA\x7F\xC0\x00\x00"s;
  }
  [[nodiscard]] static std::string called(std::string_view method, const std::string& params, std::size_t id = 1) {
    return message({{"jsonrpc", text("2.0")}, {"method", text(method)}, {"params", params}, {"id", number(id)}});
  }
  [[nodiscard]] static std::string answered(const std::string& result, std::size_t id = 1) {
    return message({{"jsonrpc", text("2.0")}, {"result", result}, {"id", number(id)}});
  }
  [[nodiscard]] static std::string told(std::string_view topic, const std::string& params) {
    return message({{"jsonrpc", text("2.0")}, {"method", text(topic)}, {"params", params}});
  }
  static std::size_t id_in(EncodedClient& client, std::string_view message) {
    return std::stoul(id_of(message.starts_with('{') ? std::string{message} : client.json_of(message)));
  }
  void provide(EncodedClient& client, std::string_view method = "work") {
    client.send_json(request("rpc.register", R"({"method":")" + std::string{method} + "\"}"));
    static_cast<void>(client.received());
  }
};

TEST_P(EncodingsTest, ParamsAndResultsOfTwoWhoSpeakTheSameStayAsTheyAre) {
  EncodedClient provider{*b, GetParam()};
  provide(provider);
  EncodedClient caller{*a, GetParam()};
  advance(kMeet);
  caller.send(called("work", array(long_one()), 7));
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_TRUE(asked.contains(array(long_one()))) << provider.json_of(asked);
  provider.send(answered(array(long_one()), id_in(provider, asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), answered(array(long_one()), 7));
  EXPECT_EQ(a->router.relayed_calls().in_use(), 0U);
  EXPECT_EQ(b->router.relayed_calls().in_use(), 0U);
}

TEST_P(EncodingsTest, ValuesWithoutAFormInJsonGoThereAndBack) {
  EncodedClient provider{*b, GetParam()};
  provide(provider);
  EncodedClient caller{*a, GetParam()};
  advance(kMeet);
  caller.send(called("work", array(not_a_number())));
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_TRUE(asked.contains(not_a_number()));
  provider.send(answered(not_a_number(), id_in(provider, asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), answered(not_a_number()));
}

TEST_P(EncodingsTest, AProviderOfJsonAtTheOtherNodeIsAskedInJson) {
  NodeClient provider{*b};
  provider.provide("work");
  EncodedClient caller{*a, GetParam()};
  advance(kMeet);
  caller.send(called("work", array(long_one())));
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_EQ(asked, request("work", "[1]", id_of(asked)));
  provider.send(result_reply("[2]", id_of(asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("[2]"));  // which its connection makes its own
  // What JSON cannot hold is refused there, and costs nothing else.
  caller.send(called("work", array(not_a_number()), 2));
  advance(kHop);
  EXPECT_EQ(provider.received(), "");
  const std::string refused = caller.received();
  const std::string json = refused.starts_with('{') ? refused : caller.json_of(refused);
  EXPECT_TRUE(json.contains("-32602")) << json;
}

TEST_P(EncodingsTest, ACallerOfJsonIsAnsweredInJson) {
  EncodedClient provider{*b, GetParam()};
  provide(provider);
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("work", "[1]"));
  advance(kHop);
  const std::string asked = provider.received();
  provider.send(answered(array(long_one()), id_in(provider, asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("[1]"));
}

TEST_P(EncodingsTest, WhatTheOtherBrokerSaysOfItselfIsRemote) {
  auto provider = std::make_unique<EncodedClient>(*b, GetParam());
  provide(*provider);
  EncodedClient caller{*a, GetParam()};
  advance(kMeet);
  caller.send(called("work", array(long_one())));
  advance(kHop);
  provider->dispatcher.reset();
  advance(kHop);
  const std::string lost = caller.received();
  const std::string json = lost.starts_with('{') ? lost : caller.json_of(lost);
  EXPECT_TRUE(json.contains(R"("origin":"remote","delivered":"maybe")")) << json;
}

TEST_P(EncodingsTest, ACallThatComesTooLateForItsProviderIsMadeElsewhereAsItIs) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  EncodedClient second{c, GetParam()};
  provide(second);
  auto first = std::make_unique<EncodedClient>(*b, GetParam());
  provide(*first);
  EncodedClient caller{*a, GetParam()};
  advance(kMeet);
  caller.send(called("work", array(long_one()), 1));
  caller.send(called("work", array(long_one()), 2));
  first->dispatcher.reset();
  advance(kHop);
  EXPECT_TRUE(second.received().contains(array(long_one())));
  EXPECT_TRUE(second.received().contains(array(long_one())));
}

TEST_P(EncodingsTest, ACallToANameReachesIt) {
  EncodedClient provider{*b, GetParam()};
  provider.send_json(request("rpc.hello", R"({"name":"worker"})"));
  static_cast<void>(provider.received());
  provide(provider);
  EncodedClient caller{*a, GetParam()};
  advance(kMeet);
  caller.send(map({{"jsonrpc", text("2.0")},
                   {"method", text("work")},
                   {"params", array(long_one())},
                   {"to", text("worker")},
                   {"id", number(1)}}));
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_TRUE(asked.contains(array(long_one()))) << asked;
  EXPECT_FALSE(asked.contains("worker")) << asked;
  provider.send(answered(array(long_one()), id_in(provider, asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), answered(array(long_one())));
}

TEST_P(EncodingsTest, ACallToANameThatWaitsForRoomGoesAsItIs) {
  EncodedClient provider{*b, GetParam()};
  provider.send_json(request("rpc.hello", R"({"name":"worker"})"));
  static_cast<void>(provider.received());
  provider.send_json(request("rpc.register", R"({"method":"work","concurrency":1})"));
  static_cast<void>(provider.received());
  EncodedClient caller{*a, GetParam()};
  advance(kMeet);
  for (const std::size_t id : {1U, 2U}) {
    caller.send(map({{"jsonrpc", text("2.0")},
                     {"method", text("work")},
                     {"params", array(long_one())},
                     {"to", text("worker")},
                     {"id", number(id)}}));
  }
  advance(kHop);
  const std::string first = provider.received();
  EXPECT_EQ(provider.received(), "");
  provider.send(answered(long_one(), id_in(provider, first)));
  advance(kHop);
  EXPECT_TRUE(provider.received().contains(array(long_one())));
}

TEST_P(EncodingsTest, ANotificationToANameGoesAsItIs) {
  EncodedClient named{*b, GetParam()};
  EncodedClient other{*b, GetParam()};
  named.send_json(request("rpc.hello", R"({"name":"worker"})"));
  static_cast<void>(named.received());
  provide(named);
  provide(other);
  EncodedClient caller{*a, GetParam()};
  advance(kMeet);
  caller.send(
      map({{"jsonrpc", text("2.0")}, {"method", text("work")}, {"params", array(long_one())}, {"to", text("worker")}}));
  advance(kHop);
  EXPECT_EQ(named.received(), told("work", array(long_one())));
  EXPECT_EQ(other.received(), "");
}

TEST_P(EncodingsTest, WhatIsAskedInJsonForItsProgressIsAnsweredAsItIs) {
  EncodedClient provider{*b, GetParam()};
  provide(provider);
  EncodedClient caller{*a, GetParam()};
  advance(kMeet);
  caller.send(called("work", map({{"partialResultToken", number(9)}})));
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_TRUE(asked.starts_with('{')) << asked;
  provider.send(told("rpc.item", map({{"id", wide(id_in(provider, asked))}, {"value", long_one()}})));
  provider.send(answered(array(long_one()), id_in(provider, asked)));
  advance(kHop);
  EXPECT_TRUE(caller.received().contains(text("value") + long_one()));
  EXPECT_EQ(caller.received(), answered(array(long_one())));
}

TEST_P(EncodingsTest, ItemsStayAsTheyAre) {
  EncodedClient provider{*b, GetParam()};
  provide(provider);
  EncodedClient caller{*a, GetParam()};
  advance(kMeet);
  caller.send(map({{"jsonrpc", text("2.0")}, {"method", text("work")}, {"id", number(3)}, {"stream", number(2)}}));
  advance(kHop);
  const std::string asked = provider.received();
  const std::size_t id = id_in(provider, asked);
  EXPECT_TRUE(provider.json_of(asked).contains(R"("stream":2)"));
  const auto item = [](std::size_t of) { return told("rpc.item", map({{"id", number(of)}, {"value", long_one()}})); };
  provider.send(item(id));
  provider.send(answered(long_one(), id));
  advance(kHop);
  EXPECT_TRUE(caller.received().contains(text("value") + long_one()));
  EXPECT_EQ(caller.received(), answered(long_one(), 3));
}

TEST_P(EncodingsTest, WhatNestsDeeperThanTheOtherNodeTakesEndsItsCallAlone) {
  Limits narrow;
  narrow.depth = 16;
  BrokerNode c{network, scheduler, "c", 0x3000000000, {}, narrow};
  EncodedClient here{*a, GetParam()};
  EncodedClient there{c, GetParam()};
  provide(here, "here");
  provide(there, "there");
  advance(kMeet);
  std::string deep = long_one();
  for (int level = 0; level != 40; ++level) deep = array(deep);
  const auto refused = [](EncodedClient& client) {
    const std::string answer = client.received();
    return answer.starts_with('{') ? answer : client.json_of(answer);
  };
  here.send(called("there", deep));
  advance(kHop);
  EXPECT_EQ(there.received(), "");
  EXPECT_TRUE(refused(here).contains(R"("origin":"remote","delivered":"no","limit":"depth")"));
  there.send(called("here", array(long_one())));
  advance(kHop);
  here.send(message({{"jsonrpc", text("2.0")}, {"result", deep}, {"id", wide(id_in(here, here.received()))}}));
  advance(kHop);
  EXPECT_TRUE(refused(there).contains(R"("origin":"remote","delivered":"maybe","limit":"depth")"));
  there.send(map({{"jsonrpc", text("2.0")}, {"method", text("here")}, {"id", number(3)}, {"stream", number(2)}}));
  advance(kHop);
  here.send(told("rpc.item", map({{"id", wide(id_in(here, here.received()))}, {"value", deep}})));
  advance(kHop);
  EXPECT_TRUE(refused(there).contains(R"("origin":"remote","delivered":"maybe","limit":"depth")"));
  EXPECT_EQ(a->cluster->find("c")->sessions_lost(), 0U);
  EXPECT_EQ(c.cluster->find("a")->sessions_lost(), 0U);
}

TEST_P(EncodingsTest, EventsStayAsTheyAreForThoseWhoSpeakTheSame) {
  EncodedClient same{*b, GetParam()};
  NodeClient other{*b};
  same.send_json(request("rpc.subscribe", R"({"topic":"door.>"})"));
  static_cast<void>(same.received());
  EXPECT_EQ(other.ask(request("rpc.subscribe", R"({"topic":"door.>"})")), result_reply("true"));
  EncodedClient publisher{*a, GetParam()};
  advance(kMeet);
  publisher.send(told("door.open", array(long_one())));
  advance(kHop);
  EXPECT_EQ(same.received(), told("door.open", array(long_one())));
  EXPECT_EQ(other.received(), notification("door.open", "[1]"));
  publisher.send(told("door.open", array(not_a_number())));
  advance(kHop);
  EXPECT_EQ(same.received(), told("door.open", array(not_a_number())));
  EXPECT_EQ(other.received(), "");
}

TEST_P(EncodingsTest, WhatIsRetainedIsRetainedAtAllNodesAsItIs) {
  EncodedClient subscriber{*b, GetParam()};
  subscriber.send_json(request("rpc.subscribe", R"({"topic":"door"})"));
  static_cast<void>(subscriber.received());
  EncodedClient publisher{*a, GetParam()};
  advance(kMeet);
  publisher.send(called(
      "rpc.publish",
      map({{"topic", text("door")}, {"params", array(not_a_number())}, {"retain", is_cbor() ? "\xF5" : "\xC3"}})));
  advance(kHop);
  EXPECT_EQ(subscriber.received(), told("door", array(not_a_number())));
  EXPECT_EQ(subscriber.received(), "");
  BrokerNode late{network, scheduler, "late", 0x3000000000};
  advance(2s);
  for (BrokerNode* const one : {a.get(), b.get(), &late}) {
    const auto event = one->router.events().retained().find_event("door");
    ASSERT_TRUE(event);
    EXPECT_EQ(event->message, told("door", array(not_a_number())));
    EXPECT_EQ(one->cluster->retained().digest(), a->cluster->retained().digest());
  }
  EXPECT_EQ(a->cluster->find("b")->sessions_lost(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Binary, EncodingsTest, testing::Values(Encoding::msgpack, Encoding::cbor),
                         [](const auto& one) { return one.param == Encoding::cbor ? "cbor" : "msgpack"; });

}  // namespace
}  // namespace wirecall::test
