// Clients of the bus that are no brokers, and two brokers, on a simulated bus.
#include "cluster/plain_clients.hpp"

#include <gtest/gtest.h>

#include "rpc/access.hpp"
#include "tests/cluster/cluster_world.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

// Publishes, and keeps what comes to its inbox and to the subjects that it subscribes to.
class PlainClient {
 public:
  explicit PlainClient(SimulatedNetwork& network) : bus(network) {
    bus.subscribe("_INBOX.>", [this](const cluster::BusMessage& message) { keep(message); });
  }
  PlainClient(PlainClient&&) = delete;

  void send(std::string_view method, std::string_view text, std::string_view reply = "_INBOX.1") {
    EXPECT_TRUE(bus.publish("wc.shop.m." + std::string{method}, reply, text));
  }
  void look_for(std::string_view subject) { EXPECT_TRUE(bus.publish(subject, "_INBOX.1", {})); }
  void keep(const cluster::BusMessage& message) {
    messages.emplace_back(message.no_responders ? "nobody" : message.payload);
  }
  [[nodiscard]] std::string received() {
    std::string lines;
    for (const std::string& message : std::exchange(messages, {})) {
      if (!lines.empty()) lines += '\n';
      lines += message;
    }
    return lines;
  }

  SimulatedBus bus;
  std::vector<std::string> messages;
};

class PlainClientsTest : public testing::Test {
 protected:
  static constexpr auto kMeet = 600ms;
  static constexpr auto kHop = 1ms;
  static constexpr auto kTick = 251ms;

  void SetUp() override { start({.principal = "anonymous", .topics = {"orders.>"}}); }
  void start(const cluster::PlainSettings& plain, const Limits& limits = {}) {
    a.reset();
    b.reset();
    a = std::make_unique<BrokerNode>(network, scheduler, "a", ++epoch << 40, broker::Settings{}, limits, plain);
    b = std::make_unique<BrokerNode>(network, scheduler, "b", ++epoch << 40, broker::Settings{}, limits, plain);
    scheduler.advance(kMeet);
  }
  void let_only(const Principal& principal) {
    const auto authority = std::make_shared<rpc::Authority>(std::vector<Principal>{principal});
    a->loop_context.services.authority = authority;
    if (b != nullptr) b->loop_context.services.authority = authority;
  }
  std::string answer_to(std::string_view method, std::string_view text) {
    plain.send(method, text);
    scheduler.advance(kHop);
    return plain.received();
  }

  VirtualScheduler scheduler;
  SimulatedNetwork network{scheduler};
  std::uint64_t epoch = 0;
  std::unique_ptr<BrokerNode> a;
  std::unique_ptr<BrokerNode> b;
  PlainClient plain{network};
};

TEST_F(PlainClientsTest, ABrokerTakesCallsOnceItKnowsTheOthersAndNotWhereAnotherHasItsName) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  scheduler.advance(kHop);
  const auto expect_served = [&] {
    for (int i = 0; i != 16; ++i) {  // whichever node takes it
      plain.send("gpu.add", request("gpu.add", "[1,2]"));
      scheduler.advance(kHop);
      provider.send(result_reply("3", id_of(provider.received())));
      scheduler.advance(kHop);
      EXPECT_EQ(plain.received(), result_reply("3"));
    }
  };
  const cluster::PlainSettings settings{.principal = "anonymous", .topics = {}};
  network.delay = 40ms;  // so long it knows nobody
  BrokerNode c{network, scheduler, "c", ++epoch << 40, {}, {}, settings};
  network.delay = 40us;
  expect_served();
  scheduler.advance(1s);
  expect_served();
  // It is a's time to be silent, which knows no other node then.
  BrokerNode twin{network, scheduler, "a", ++epoch << 40, {}, {}, settings};
  scheduler.advance(2s);
  ASSERT_TRUE(a->cluster->is_degraded());
  expect_served();
}

TEST_F(PlainClientsTest, ACallGoesToTheProviderAtWhicheverNodeItIsAndTheAnswerIsTheReply) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  scheduler.advance(kHop);
  for (int i = 0; i != 8; ++i) {  // whichever node takes it
    plain.send("gpu.add", request("gpu.add", "[1,2]", "\"x\""));
    scheduler.advance(kHop);
    const std::string asked = provider.received();
    EXPECT_EQ(asked, request("gpu.add", "[1,2]", id_of(asked)));
    provider.send(result_reply("3", id_of(asked)));
    scheduler.advance(kHop);
    EXPECT_EQ(plain.received(), result_reply("3", "\"x\""));
  }
  EXPECT_FALSE(a->cluster->busy());
  EXPECT_FALSE(b->cluster->busy());
}

TEST_F(PlainClientsTest, ABatchIsAnsweredByABatch) {
  EXPECT_EQ(answer_to("rpc.ping", "[" + request("rpc.ping", "[]", "1") + "," + request("rpc.ping", "[]", "2") + "]"),
            "[" + result_reply("\"pong\"", "1") + "," + result_reply("\"pong\"", "2") + "]");
}

TEST_F(PlainClientsTest, AMethodThatNobodyProvidesIsUnknown) {
  EXPECT_EQ(answer_to("gpu.sub", request("gpu.sub", "[]")), error_reply(-32601, "Method not found", {}));
}

TEST_F(PlainClientsTest, WhatIsNoMessageIsRefused) {
  EXPECT_NE(answer_to("gpu.add", "{\"jsonrpc\":").find("-32700"), std::string::npos);
  EXPECT_NE(answer_to("gpu.add", "").find("-32700"), std::string::npos);
  EXPECT_NE(answer_to("gpu.add", "5").find("-32600"), std::string::npos);
  EXPECT_NE(answer_to("gpu.add", "[]").find("-32600"), std::string::npos);
  EXPECT_EQ(answer_to("gpu.add", result_reply("1")), "");
  EXPECT_EQ(answer_to("gpu.%4", request("gpu.add", "[]")), "");
  EXPECT_FALSE(a->cluster->busy() || b->cluster->busy());
}

TEST_F(PlainClientsTest, TheMethodOfTheTextIsThatOfTheSubject) {
  const std::string refused =
      error_reply(-32600, "Invalid Request", R"({"reason":"the subject names another method"})");
  EXPECT_EQ(answer_to("gpu.add", request("rpc.ping", "[]")), refused);
  const std::string batch = "[" + request("gpu.add", "[]") + "," + request("rpc.ping", "[]", "2") + "]";
  EXPECT_EQ(answer_to("gpu.add", batch),
            error_reply(-32600, "Invalid Request", R"({"reason":"the subject names another method"})", "null"));
  EXPECT_EQ(answer_to("rpc.ping", R"({"jsonrpc":"2.0","method":"rpc.p\u0069ng","id":1})"), result_reply("\"pong\""));
}

TEST_F(PlainClientsTest, NamesThatSubjectsCannotHoldArePercentEncoded) {
  EXPECT_EQ(cluster::subject_of_name("gpu.größe 5%*>"), "gpu.gr%C3%B6%C3%9Fe%205%25%2A%3E");
  EXPECT_EQ(cluster::name_of_subject("gpu.gr%C3%B6%c3%9fe%205%25%2A%3E"), "gpu.größe 5%*>");
  for (const char* const subject : {"%", "a%4", "a%4g", "%%41"})
    EXPECT_EQ(cluster::name_of_subject(subject), std::nullopt);
  NodeClient provider{*a};
  provider.provide("gpu.größe");
  scheduler.advance(kHop);
  plain.send("gpu.gr%C3%B6%C3%9Fe", request("gpu.größe", "[]"));
  scheduler.advance(kHop);
  provider.send(result_reply("3", id_of(provider.received())));
  scheduler.advance(kHop);
  EXPECT_EQ(plain.received(), result_reply("3"));
}

TEST_F(PlainClientsTest, WithoutAPrincipalNobodyAnswers) {
  start({});
  EXPECT_EQ(answer_to("rpc.ping", request("rpc.ping", "[]", "7")), "nobody");
}

TEST_F(PlainClientsTest, ABrokerWithoutAPrincipalLeavesAllCallsToThoseThatHaveOne) {
  start({});
  BrokerNode serving{network, scheduler, "c", ++epoch << 40, {}, {}, {.principal = "anonymous"}};
  scheduler.advance(kMeet);
  for (int i = 0; i != 30; ++i) EXPECT_EQ(answer_to("rpc.ping", request("rpc.ping", "[]")), result_reply("\"pong\""));
}

TEST_F(PlainClientsTest, ABrokerThatDoesNotKnowThePrincipalLeavesAllCallsToThoseThatDo) {
  start({.principal = "plain"});
  const auto known = std::make_shared<rpc::Authority>(std::vector<Principal>{
      {.name = "plain", .tokens = {"secret"}, .call = {"gpu.add"}, .provide = {}, .publish = {}, .subscribe = {}}});
  b->loop_context.services.authority = known;
  scheduler.advance(kTick);
  for (int i = 0; i != 30; ++i)
    EXPECT_EQ(answer_to("gpu.add", request("gpu.add", "[]")), error_reply(-32601, "Method not found", {}));
  // It takes part as long as it knows it.
  a->loop_context.services.authority = known;
  b.reset();
  scheduler.advance(kTick);
  EXPECT_EQ(answer_to("gpu.add", request("gpu.add", "[]")), error_reply(-32601, "Method not found", {}));
  a->cluster->drain();
  scheduler.advance(kTick);
  EXPECT_EQ(answer_to("gpu.add", request("gpu.add", "[]")), "nobody");
}

TEST_F(PlainClientsTest, APrincipalMayDoWhatItIsGranted) {
  start({.principal = "plain"});
  NodeClient provider{*a};
  provider.provide("gpu.add");
  provider.provide("gpu.reset");
  scheduler.advance(kHop);
  EXPECT_EQ(answer_to("rpc.ping", request("rpc.ping", "[]")), "nobody");
  let_only({.name = "plain", .tokens = {"secret"}, .call = {"gpu.add"}, .provide = {}, .publish = {}, .subscribe = {}});
  scheduler.advance(kTick);
  EXPECT_EQ(answer_to("gpu.reset", request("gpu.reset", "[]")), error_reply(-32601, "Method not found", {}));
  let_only({.name = "other", .tokens = {"secret"}, .call = {">"}, .provide = {}, .publish = {}, .subscribe = {}});
  EXPECT_NE(answer_to("gpu.add", request("gpu.add", "[]")).find("cluster.plain_principal is plain"), std::string::npos);
  scheduler.advance(kTick);
  EXPECT_EQ(answer_to("gpu.add", request("gpu.add", "[]")), "nobody");
}

TEST_F(PlainClientsTest, ACallOfAPrincipalThatIsTakenAwayEnds) {
  start({.principal = "plain"});
  b.reset();
  NodeClient provider{*a};
  provider.provide("gpu.add");
  let_only({.name = "plain", .tokens = {"secret"}, .call = {"gpu.add"}, .provide = {}, .publish = {}, .subscribe = {}});
  scheduler.advance(kTick);
  plain.send("gpu.add", request("gpu.add", "[]"));
  scheduler.advance(kHop);
  EXPECT_NE(provider.received(), "");
  let_only({.name = "other", .tokens = {"secret"}, .call = {}, .provide = {}, .publish = {}, .subscribe = {}});
  scheduler.advance(300ms);
  EXPECT_NE(plain.received().find("-32004"), std::string::npos);
  EXPECT_FALSE(a->cluster->busy());
}

TEST_F(PlainClientsTest, ACallEndsWithItsTime) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  scheduler.advance(kHop);
  plain.send("gpu.add", R"({"jsonrpc":"2.0","method":"gpu.add","params":[1],"id":1,"timeout_ms":500})");
  scheduler.advance(510ms);
  // Of two nodes on its way the provider's says so, which has slightly less time.
  const bool by_a = a->cluster->find("b")->calls_sent() != 0;
  const std::string origin = by_a ? "remote" : "local";
  EXPECT_EQ(plain.received(), error_reply(-32002, "Timeout",
                                          R"({"reason":"the call was not answered in time","origin":")" + origin +
                                              R"(","delivered":"maybe"})"));
  EXPECT_FALSE(a->cluster->busy() || b->cluster->busy());
}

TEST_F(PlainClientsTest, AllOfThemShareTheLimitsOfOneConnection) {
  Limits limits;
  limits.in_flight = 2;
  start({.principal = "anonymous"}, limits);
  b.reset();
  NodeClient provider{*a};
  provider.provide("gpu.add");
  for (int i = 0; i != 3; ++i) plain.send("gpu.add", request("gpu.add", "[]"));
  scheduler.advance(kHop);
  EXPECT_NE(plain.received().find(R"("limit":"in_flight")"), std::string::npos);
}

TEST_F(PlainClientsTest, AnAnswerThatTheBusDoesNotTakeIsAnError) {
  network.payload_bytes_max = 2000;
  NodeClient provider{*b};
  provider.provide("echo");
  scheduler.advance(kHop);
  plain.send("echo", request("echo", "[]", "5"));
  scheduler.advance(kHop);
  provider.send(result_reply('"' + std::string(3000, 'x') + '"', id_of(provider.received())));
  scheduler.advance(kHop);
  EXPECT_EQ(plain.received(),
            error_reply(-32006, "Too large",
                        R"({"reason":"the answer is longer than NATS takes at once","origin":"local",)"
                        R"("delivered":"maybe","limit":"max_payload"})",
                        "5"));
}

// By the broker's permissions a client would else write to nodes, and to the server.
TEST_F(PlainClientsTest, NothingIsAnsweredIntoWhatIsTheBrokersOrTheServers) {
  const std::uint64_t before = network.published;
  for (const char* const reply : {"wc.shop.hb", "wc.shop.n.a.call", "$JS.API.STREAM.DELETE.x", "$SRV.PING"})
    plain.send("rpc.ping", request("rpc.ping", "[]"), reply);
  scheduler.advance(kHop);
  EXPECT_EQ(network.published - before, 4U);
}

TEST_F(PlainClientsTest, ANotificationIsAnEventAndItsReplyIsEmpty) {
  NodeClient subscriber{*a};
  EXPECT_EQ(subscriber.ask(request("rpc.subscribe", R"({"topic":"jobs.new"})")), result_reply("true"));
  scheduler.advance(kHop);
  const std::string event = R"({"jsonrpc":"2.0","method":"jobs.new","params":[1]})";
  plain.send("jobs.new", event);
  scheduler.advance(kHop);
  EXPECT_EQ(plain.messages, std::vector<std::string>{""});
  EXPECT_EQ(subscriber.received(), event);
  plain.send("jobs.new", event, "");
  scheduler.advance(kHop);
  EXPECT_EQ(plain.messages.size(), 1U);
}

TEST_F(PlainClientsTest, EventsOfTheTopicsThatAreNamedComeOnce) {
  plain.bus.subscribe("wc.shop.t.>", [&](const cluster::BusMessage& message) {
    plain.messages.push_back(std::string{message.subject} + ' ' + std::string{message.payload});
  });
  NodeClient subscriber{*b};
  EXPECT_EQ(subscriber.ask(request("rpc.subscribe", R"({"topic":"orders.>"})")), result_reply("true"));
  NodeClient publisher{*a};
  scheduler.advance(kHop);
  for (const char* const topic : {"orders.new", "other.new"}) {
    publisher.send(R"({"jsonrpc":"2.0","method":")" + std::string{topic} + R"(","params":[1]})");
    scheduler.advance(kHop);
  }
  const std::string event = R"({"jsonrpc":"2.0","method":"orders.new","params":[1]})";
  EXPECT_EQ(plain.received(), "wc.shop.t.orders.new " + event);
  EXPECT_EQ(subscriber.received(), event);
  // Those of plain clients as well.
  plain.send("orders.new", event, "");
  scheduler.advance(kHop);
  EXPECT_EQ(plain.received(), "wc.shop.t.orders.new " + event);
}

TEST_F(PlainClientsTest, WhoLooksForServicesFindsEachNode) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  scheduler.advance(kHop);
  plain.look_for("$SRV.PING");
  scheduler.advance(kHop);
  const std::string found = plain.received();
  EXPECT_NE(found.find(R"({"name":"wirecall-shop","id":"a","version":")"), std::string::npos) << found;
  EXPECT_NE(found.find(R"("id":"b")"), std::string::npos) << found;
  EXPECT_NE(found.find(R"("type":"io.nats.micro.v1.ping_response")"), std::string::npos) << found;
  plain.look_for("$SRV.PING.wirecall-shop.b");
  scheduler.advance(kHop);
  EXPECT_EQ(plain.messages.size(), 1U);
  static_cast<void>(plain.received());
  plain.look_for("$SRV.PING.wirecall-other");
  plain.look_for("$SRV.NOTHING");
  scheduler.advance(kHop);
  EXPECT_EQ(plain.received(), "nobody");  // has the first subject; the second is none that is answered
  plain.look_for("$SRV.INFO.wirecall-shop.b");
  scheduler.advance(kHop);
  EXPECT_NE(plain.received().find(R"("endpoints":[{"name":"gpu_add","subject":"wc.shop.m.gpu.add",)"
                                  R"("queue_group":"wirecall","metadata":{"method":"gpu.add"}}]})"),
            std::string::npos);
}

TEST_F(PlainClientsTest, AServiceTellsOfItsCalls) {
  b.reset();
  NodeClient provider{*a};
  provider.provide("gpu.add");
  for (const bool fails : {false, true}) {
    plain.send("gpu.add", request("gpu.add", "[]"));
    scheduler.advance(kHop);
    const std::string id = id_of(provider.received());
    scheduler.advance(10ms);
    provider.send(fails ? error_reply(7, "out of paper", {}, id) : result_reply("1", id));
    scheduler.advance(kHop);
  }
  static_cast<void>(plain.received());
  plain.look_for("$SRV.STATS.wirecall-shop");
  scheduler.advance(kHop);
  const Value stats = Value::parse(plain.received()).value_or(Value{});
  const Value& endpoint = stats["endpoints"].at(0);
  EXPECT_TRUE(stats["started"].as_string().ends_with(".000000Z"));  // as nats-py reads it
  EXPECT_TRUE(endpoint["data"].is_object());
  EXPECT_EQ(endpoint["num_requests"].as_uint(), 2U);
  EXPECT_EQ(endpoint["num_errors"].as_uint(), 1U);
  EXPECT_EQ(endpoint["last_error"].as_string(), "7:out of paper");
  EXPECT_GE(endpoint["average_processing_time"].as_uint(), 10'000'000U);
  EXPECT_EQ(endpoint["processing_time"].as_uint(), 2 * endpoint["average_processing_time"].as_uint());
}

TEST_F(PlainClientsTest, MoreMethodsThanOneMessageHoldsAreCounted) {
  network.payload_bytes_max = 3000;
  NodeClient provider{*b};
  for (int i = 0; i != 30; ++i) provider.provide("gpu.method" + std::to_string(i));
  plain.look_for("$SRV.INFO.wirecall-shop.b");
  scheduler.advance(kHop);
  const std::string info = plain.received();
  EXPECT_LE(info.size(), 3000U);
  const Value read = Value::parse(info).value_or(Value{});
  const std::size_t told = read["endpoints"].size();
  EXPECT_GT(told, 5U);
  EXPECT_EQ(read["metadata"]["endpoints_left_out"].as_string(), std::to_string(30 - told));
}

TEST_F(PlainClientsTest, CallsEndWithTheBusAndGoOnWhenItIsBack) {
  b.reset();
  NodeClient provider{*a};
  provider.provide("gpu.add");
  plain.send("gpu.add", request("gpu.add", "[1]"));
  scheduler.advance(kHop);
  const std::string asked = provider.received();
  a->bus->become(cluster::Bus::State::disconnected);
  EXPECT_EQ(provider.received(), cancel_notification(id_of(asked)));
  EXPECT_FALSE(a->cluster->busy());
  a->bus->become(cluster::Bus::State::connected);
  EXPECT_EQ(answer_to("rpc.ping", request("rpc.ping", "[]")), result_reply("\"pong\""));
}

TEST_F(PlainClientsTest, ANodeThatDrainsIsNotAsked) {
  a->cluster->drain();
  NodeClient provider{*b};
  provider.provide("gpu.add");
  for (int i = 0; i != 8; ++i) EXPECT_EQ(answer_to("rpc.ping", request("rpc.ping", "[]")), result_reply("\"pong\""));
  plain.look_for("$SRV.PING");
  scheduler.advance(kHop);
  EXPECT_EQ(plain.messages.size(), 1U);
  static_cast<void>(plain.received());
  b->cluster->drain();
  EXPECT_EQ(answer_to("rpc.ping", request("rpc.ping", "[]")), "nobody");
}

}  // namespace
}  // namespace wirecall::test
