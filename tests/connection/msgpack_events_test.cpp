// Events and notifications of a broker, over real sockets, for peers that speak MessagePack and peers that speak JSON.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/connection/msgpack_broker.hpp"
#include "tests/connection/peer.hpp"
#include "tests/http/served.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/server.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using namespace msgpack_texts;

TEST_F(MsgpackBroker, EventsAreInTheCodecOfTheLastMessage) {
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  RawPeer publisher{endpoint_};
  const auto publish = [&](std::string_view params) {
    publisher.send(line_of("rpc.publish", R"({"topic":"news.a","params":)" + std::string{params} + "}", "1") + "\n");
    return publisher.line();
  };
  publish(R"([{"$bytes":"/w=="}])");
  EXPECT_NE(subscriber.bytes().find(from_hex("91 c4 01 ff")), std::string::npos);
  // One that it cannot hold is not sent.
  publish("[18446744073709551616]");
  publish("[1]");
  EXPECT_EQ(subscriber.json(), R"({"jsonrpc":"2.0","method":"news.a","params":[1]})");
  subscriber.send(line_of("rpc.ping", "[]", "2"));
  EXPECT_EQ(subscriber.bytes(), result(R"("pong")", 2));
  publish("[18446744073709551616]");
  EXPECT_EQ(subscriber.bytes(), R"({"jsonrpc":"2.0","method":"news.a","params":[18446744073709551616]})");
}

TEST_F(MsgpackBroker, EventsStayAsTheyAreForWhoSpeaksTheSame) {
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  RawPeer reader{endpoint_};
  reader.send(line_of("rpc.subscribe", R"({"topic":"news.*"})", "1") + "\n");
  EXPECT_EQ(reader.line(), result("true", 1));
  MsgpackPeer publisher{endpoint_};
  const std::string head = R"({"jsonrpc":"2.0","method":"news.a"})";
  const std::string only_here = with(head, "params", kOnlyHere);
  publisher.send(only_here);
  EXPECT_EQ(subscriber.bytes(), only_here);
  const std::string held_by_both = with(head, "params", "91 c4 01 ff");
  publisher.send(held_by_both);
  EXPECT_EQ(subscriber.bytes(), held_by_both);
  // What its publisher says of whose it is goes, and nothing else.
  publisher.send(with(R"({"jsonrpc":"2.0","method":"news.a","from":"liar"})", "params", "91 05"));
  EXPECT_EQ(subscriber.bytes(), with(head, "params", "91 05"));
  // The first has no form in JSON.
  EXPECT_EQ(reader.line(), R"({"jsonrpc":"2.0","method":"news.a","params":[{"$bytes":"/w=="}]})");
  EXPECT_EQ(reader.line(), R"({"jsonrpc":"2.0","method":"news.a","params":[5]})");
}

TEST_F(MsgpackBroker, WhatIsPublishedIsRetainedAsItCame) {
  MsgpackPeer publisher{endpoint_};
  const auto publish = [&](std::string_view topic, std::string_view params_hex) {
    const std::string terms = R"({"topic":")" + std::string{topic} + R"(","retain":true})";
    publisher.send(with(head_of("rpc.publish", 1), "params", packing::to_hex(with(terms, "params", params_hex))));
    return publisher.json();
  };
  EXPECT_EQ(publish("news.a", kOnlyHere), result("0", 1));
  EXPECT_EQ(publish("news.b", "91 ca3fc00000"), result("0", 1));
  MsgpackPeer late{endpoint_};
  late.say(line_of("rpc.subscribe", R"({"topic":"news.*","last":true})", "1"));
  EXPECT_EQ(late.json(), result("true", 1));
  EXPECT_EQ(late.bytes(), with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", kOnlyHere));
  EXPECT_EQ(late.bytes(), with(R"({"jsonrpc":"2.0","method":"news.b"})", "params", "91 ca3fc00000"));
  RawPeer reader{endpoint_};
  reader.send(line_of("rpc.subscribe", R"({"topic":"news.*","last":true})", "1") + "\n");
  EXPECT_EQ(reader.line(), result("true", 1));
  EXPECT_EQ(reader.line(), R"({"jsonrpc":"2.0","method":"news.b","params":[1.5]})");
  EXPECT_EQ(publish("news.a", kOnlyHere), result("1", 1));  // to those that can have it
  const std::string refused = publish("news.*", "90");
  EXPECT_NE(refused.find("-32602"), std::string::npos) << refused;
}

TEST_F(MsgpackBroker, ANotificationStaysAsItIsForAProviderThatSpeaksTheSame) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"take"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  const std::string note = with(R"({"jsonrpc":"2.0","method":"take"})", "params", kOnlyHere);
  caller.send(note);
  EXPECT_EQ(provider.bytes(), note);
}

TEST_F(MsgpackBroker, AnEventThatIsCutShortReachesNobody) {
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  MsgpackPeer publisher{endpoint_};
  const std::string whole = with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", kOnlyHere);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    publisher.send(whole.substr(0, size));
    EXPECT_EQ(publisher.json(), kParseError) << size;
  }
  publisher.send(whole + '\xC0');
  EXPECT_EQ(publisher.json(), kParseError);
  publisher.send(whole);
  EXPECT_EQ(subscriber.bytes(), whole);
}

TEST_F(MsgpackBroker, WhatIsPublishedByHttpStaysAsItCame) {
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  RawPeer publisher{endpoint_};
  const std::string terms = with(R"({"topic":"news.a"})", "params", kOnlyHere);
  publisher.send(post(with(head_of("rpc.publish", 1), "params", packing::to_hex(terms)), kType));
  EXPECT_EQ(subscriber.bytes(), with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", kOnlyHere));
  const std::string answer = ok_msgpack(result("1", 1));
  EXPECT_EQ(publisher.take(answer.size()), answer);
}

TEST_F(MsgpackBroker, WhoLooksOnIsShownJson) {
  RawPeer watcher{endpoint_};
  watcher.send(line_of("rpc.tap", R"(["news.*"])", "1") + "\n");
  EXPECT_EQ(watcher.line(), result("true", 1));
  const std::string note = with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", "91 c4 01 ff");
  const std::string terms = with(R"({"topic":"news.a"})", "params", "91 c4 01 ff");
  const std::string publish = with(head_of("rpc.publish", 1), "params", packing::to_hex(terms));
  const auto shown = [&] {
    const Value event = *Value::parse(watcher.line());
    return event.at("params").at("params").dump();
  };
  MsgpackPeer publisher{endpoint_};
  publisher.send(note);
  EXPECT_EQ(shown(), R"([{"$bytes":"/w=="}])");
  publisher.send(publish);
  EXPECT_EQ(shown(), R"([{"$bytes":"/w=="}])");
  RawPeer by_http{endpoint_};
  by_http.send(post(publish, kType));
  EXPECT_EQ(shown(), R"([{"$bytes":"/w=="}])");
}

TEST_F(MsgpackBroker, WhoBeginsToLookOnWithinABatchIsShownJson) {
  MsgpackPeer watcher{endpoint_};
  const std::string tap = msgpack_of(line_of("rpc.tap", R"(["news.*"])", "1"));
  const std::string note = with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", "91 c4 01 ff");
  watcher.send("\x92" + tap + note);
  const std::string one = watcher.json();
  const std::string two = watcher.json();
  const std::string& shown = one.find("rpc.tap") != std::string::npos ? one : two;
  EXPECT_NE(shown.find(R"("params":[{"$bytes":"/w=="}])"), std::string::npos) << one << two;
  // What has no form in JSON is shown by its size.
  watcher.send(with(R"({"jsonrpc":"2.0","method":"news.b"})", "params", "91" + std::string{kNaN}));
  const std::string size = watcher.json();
  EXPECT_NE(size.find(R"("method":"news.b")"), std::string::npos) << size;
  EXPECT_NE(size.find(R"("bytes":10)"), std::string::npos) << size;
}

TEST_F(MsgpackBroker, LookingOnChangesNothing) {
  RawPeer watcher{endpoint_};
  watcher.send(line_of("rpc.tap", "[]", "1") + "\n");
  EXPECT_EQ(watcher.line(), result("true", 1));
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  MsgpackPeer publisher{endpoint_};
  const std::string note = with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", kOnlyHere);
  publisher.send(note);
  EXPECT_EQ(subscriber.bytes(), note);
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"(["echo"])", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  caller.send(with(head_of("echo", 3), "params", "91 c4 01 ff"));
  const std::string id = id_of(provider.json());
  provider.send(with(R"({"jsonrpc":"2.0","id":)" + id + "}", "result", kNaN));
  EXPECT_NE(caller.bytes().find("result" + from_hex(kNaN)), std::string::npos);
}

TEST_F(MsgpackBroker, EventsOfASubscriptionToAMethodStayAsTheyAre) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register",
                       R"({"method":"watch","subscription":{"unsubscribe":"unwatch","notification":"seen"}})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  RawPeer reader{endpoint_};
  std::vector<std::string> ids;
  for (const bool msgpack : {true, false}) {
    if (msgpack) caller.say(call("watch", 2));
    if (!msgpack) reader.send(call("watch", 2) + "\n");
    const std::string own = msgpack ? R"("a")" : "7";
    provider.say(R"({"jsonrpc":"2.0","result":)" + own + R"(,"id":)" + id_of(provider.json()) + "}");
    ids.push_back(Value::parse(msgpack ? caller.json() : reader.line())->at("result").dump());
  }
  const auto event = [](const std::string& id, std::string_view result_hex) {
    const std::string params = with(R"({"subscription":)" + id + "}", "result", result_hex);
    return with(R"({"jsonrpc":"2.0","method":"seen"})", "params", packing::to_hex(params));
  };
  provider.send(event(R"("a")", kOnlyHere));
  EXPECT_EQ(caller.bytes(), event(ids[0], kOnlyHere));
  // One that has no form in JSON is not sent to who speaks that.
  provider.send(event("7", kNaN));
  provider.send(event("7", "c4 01 ff"));
  EXPECT_EQ(reader.line(), R"({"jsonrpc":"2.0","method":"seen","params":{"subscription":)" + ids[1] +
                               R"(,"result":{"$bytes":"/w=="}}})");
}

}  // namespace
}  // namespace wirecall::net
