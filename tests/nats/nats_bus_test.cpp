// Brokers on one loop, joined by a real nats-server; skipped where there is none.
#include "nats/nats_bus.hpp"

#include <gtest/gtest.h>
#include <set>

#include "cluster/cluster.hpp"
#include "tests/broker/world.hpp"
#include "tests/nats/nats_server.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class NatsBroker {
 public:
  static ClusterOptions at(const std::string& url) {
    ClusterOptions options;
    options.url = url;
    return options;
  }
  NatsBroker(Loop& loop, const std::string& url, std::string name, std::uint64_t epoch,
             cluster::PlainSettings plain = {})
      : loop_context(json_codec(), &loop), router(registry, limits, loop_context) {
    loop_context.services.broker = &router;
    auto own = std::make_unique<cluster::Cluster>(
        rpc::BrokerHost{.registry = registry, .limits = limits, .loop_context = loop_context}, router,
        net::make_nats_bus(loop, at(url), name, *loop_context.log),
        cluster::ClusterSettings{.realm = "test", .node = name, .epoch = epoch, .plain = std::move(plain)});
    cluster = own.get();
    router.join(std::move(own));
  }
  NatsBroker(NatsBroker&&) = delete;

  [[nodiscard]] bool knows(std::string_view node) const {
    const cluster::Node* const found = cluster->find(node);
    return found != nullptr && found->state() == cluster::Node::State::up;
  }
  [[nodiscard]] bool offers(std::string_view method) const { return router.methods().find(method) != nullptr; }

  Registry registry;
  Limits limits;
  rpc::LoopContext loop_context;
  broker::Router router;
  cluster::Cluster* cluster;
};

class NatsClient {
 public:
  explicit NatsClient(NatsBroker& node)
      : node_(&node), dispatcher(node.registry, sink, node.limits, node.loop_context) {}
  void send(std::string_view text) {
    const PaddedText frame{text};
    Received message;
    ASSERT_EQ(read_message(frame.view(), node_->limits, true, message).status, ScanStatus::complete) << text;
    if (message.kind == MessageKind::response) {
      EXPECT_TRUE(dispatcher.response(message));
    } else {
      dispatcher.handle(message);
    }
  }

 private:
  NatsBroker* node_;

 public:
  RecordingSink sink;
  rpc::Dispatcher dispatcher;
};

class NatsBusTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NatsServer::is_there()) GTEST_SKIP() << "there is no nats-server: tools/install_packages.sh test installs it";
    server.emplace();
    start("a", a);
    start("b", b);
    ASSERT_TRUE(until([&] { return a->knows("b") && b->knows("a"); }));
  }
  void start(const char* name, std::unique_ptr<NatsBroker>& broker) {
    broker = std::make_unique<NatsBroker>(loop, server->url(), name, ++epoch << 32);
  }
  template <class Condition>
  bool until(const Condition& condition, std::chrono::milliseconds time = 20s) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      loop.turn(10ms);
    }
    return true;
  }
  std::string received(NatsClient& client) {
    EXPECT_TRUE(until([&] { return !client.sink.messages.empty(); }));
    return client.sink.take();
  }
  void provide(NatsClient& client, const std::string& method, const NatsBroker& known_to) {
    client.send(request("rpc.register", R"({"method":")" + method + "\"}"));
    EXPECT_EQ(client.sink.take(), result_reply("1"));
    EXPECT_TRUE(until([&] { return known_to.offers(method); }));
  }

  std::optional<NatsServer> server;
  Loop loop;
  std::uint64_t epoch = 0;
  std::unique_ptr<NatsBroker> a;
  std::unique_ptr<NatsBroker> b;
};

TEST_F(NatsBusTest, ACallGoesToTheOtherBrokerAndItsAnswerComesBack) {
  NatsClient provider{*b};
  provide(provider, "gpu.add", *a);
  NatsClient caller{*a};
  caller.send(request("gpu.add", "[1,2]", "\"x\""));
  const std::string asked = received(provider);
  EXPECT_EQ(asked, request("gpu.add", "[1,2]", id_of(asked)));
  provider.send(result_reply("3", id_of(asked)));
  EXPECT_EQ(received(caller), result_reply("3", "\"x\""));
}

TEST_F(NatsBusTest, AMessageLargerThanNatsTakesComesWhole) {
  NatsClient provider{*b};
  provide(provider, "echo", *a);
  NatsClient caller{*a};
  const std::string text = '"' + std::string(5'000'000, 'x') + '"';
  caller.send(request("echo", "[" + text + "]"));
  const std::string asked = received(provider);
  EXPECT_EQ(asked, request("echo", "[" + text + "]", id_of(asked)));
  provider.send(result_reply(text, id_of(asked)));
  EXPECT_EQ(received(caller), result_reply(text));
}

TEST_F(NatsBusTest, AMessageGoesInPiecesWhereNatsTakesSixHundredBytesAtOnce) {
  a.reset();
  b.reset();
  server->kill();
  server->configure("max_payload: 600\n");
  server->start();
  start("a", a);
  start("b", b);
  ASSERT_TRUE(until([&] { return a->knows("b") && b->knows("a"); }));
  NatsClient provider{*b};
  provide(provider, "echo", *a);
  NatsClient caller{*a};
  const std::string text = '"' + std::string(20'000, 'x') + '"';
  caller.send(request("echo", "[" + text + "]"));
  const std::string asked = received(provider);
  EXPECT_EQ(asked, request("echo", "[" + text + "]", id_of(asked)));
  provider.send(result_reply(text, id_of(asked)));
  EXPECT_EQ(received(caller), result_reply(text));
}

TEST_F(NatsBusTest, FourThousandCallsAtOnceAreEachAnswered) {
  NatsClient provider{*b};
  provide(provider, "echo", *a);
  NatsClient caller{*a};
  constexpr int kCalls = 4000;
  for (int i = 0; i != kCalls; ++i) caller.send(request("echo", "[" + std::to_string(i) + "]", std::to_string(i)));
  int answered = 0;
  EXPECT_TRUE(until([&] {
    for (const std::string& asked : std::exchange(provider.sink.messages, {})) {
      const std::size_t begin = asked.find("\"params\":[") + 10;
      provider.send(result_reply(asked.substr(begin, asked.find(']') - begin), id_of(asked)));
    }
    for (const std::string& answer : std::exchange(caller.sink.messages, {})) {
      EXPECT_EQ(answer, result_reply(id_of(answer), id_of(answer)));
      ++answered;
    }
    return answered == kCalls;
  }));
}

TEST_F(NatsBusTest, ABrokerThatGoesEndsItsCallsWithinASecond) {
  NatsClient caller{*a};
  {
    NatsClient provider{*b};
    provide(provider, "gpu.add", *a);
    caller.send(request("gpu.add", "[1]"));
    EXPECT_NE(received(provider), "");
  }
  b.reset();
  EXPECT_TRUE(until([&] { return !caller.sink.messages.empty(); }, 1s));
  EXPECT_NE(caller.sink.take().find(R"("origin":"remote","delivered":"maybe")"), std::string::npos);
}

TEST_F(NatsBusTest, WithoutTheServerCallsFailAndGoOnWhenItIsBack) {
  NatsClient provider{*b};
  provide(provider, "gpu.add", *a);
  NatsClient caller{*a};
  caller.send(request("gpu.add", "[1]"));
  EXPECT_NE(received(provider), "");
  server->kill();
  EXPECT_TRUE(until([&] { return !caller.sink.messages.empty(); }, 1s));
  EXPECT_NE(caller.sink.take().find(R"("origin":"bus","delivered":"maybe")"), std::string::npos);
  caller.send(request("gpu.add", "[2]"));
  EXPECT_NE(received(caller).find(R"("origin":"bus","delivered":"no")"), std::string::npos);
  EXPECT_TRUE(a->cluster->is_degraded());
  server->start();
  EXPECT_TRUE(until([&] { return a->knows("b") && b->knows("a") && a->offers("gpu.add"); }));
  static_cast<void>(provider.sink.take());
  caller.send(request("gpu.add", "[3]"));
  const std::string asked = received(provider);
  EXPECT_EQ(asked, request("gpu.add", "[3]", id_of(asked)));  // and nothing of before
  provider.send(result_reply("3", id_of(asked)));
  EXPECT_EQ(received(caller), result_reply("3"));
}

TEST_F(NatsBusTest, ABrokerEndsWithoutTheServer) {
  NatsClient provider{*b};
  provide(provider, "gpu.add", *a);
  server->kill();
  ASSERT_TRUE(until([&] { return a->cluster->is_degraded() && b->cluster->is_degraded(); }));
  b->cluster->drain();
  for (int i = 0; i != 10; ++i) loop.turn(1ms);
  EXPECT_FALSE(b->cluster->busy());
}

TEST_F(NatsBusTest, PlainCallsThatAreOnTheWayToABrokerThatDrainsAreAnswered) {
  // Either serves what has not yet come to the server when the first one stops to.
  NatsBroker c{loop, server->url(), "c", ++epoch << 32, {.principal = "anonymous"}};
  NatsBroker d{loop, server->url(), "d", ++epoch << 32, {.principal = "anonymous"}};
  ASSERT_TRUE(until([&] { return c.knows("a") && c.knows("d") && d.knows("a") && d.knows("c"); }));
  NatsClient provider{*a};
  provide(provider, "gpu.add", c);
  ASSERT_TRUE(until([&] { return d.offers("gpu.add"); }));
  constexpr int kCalls = 100;
  const ClusterOptions plain_options = NatsBroker::at(server->url());
  const std::unique_ptr<cluster::Bus> plain = net::make_nats_bus(loop, plain_options, "plain", *c.loop_context.log);
  plain->on_state([] {});
  std::set<std::string> answers;
  plain->subscribe("inbox",
                   [&](const cluster::BusMessage& message) { answers.insert(id_of(std::string{message.payload})); });
  ASSERT_TRUE(until([&] { return plain->state() == cluster::Bus::State::connected; }));
  const auto call = [&](int number) {
    return plain->publish("wc.test.m.gpu.add", "inbox", request("gpu.add", "[1]", std::to_string(number)));
  };
  const auto serve = [&] {
    for (const std::string& asked : std::exchange(provider.sink.messages, {}))
      provider.send(result_reply("1", id_of(asked)));
  };
  const auto has_served = [](const NatsBroker& broker) { return broker.cluster->find("a")->calls_sent() != 0; };
  ASSERT_TRUE(until([&] {  // the brokers' subscriptions have come
    static_cast<void>(call(0));
    plain->flush();
    serve();
    return !answers.empty() && has_served(c) && has_served(d);
  }));
  for (int i = 1; i <= kCalls; ++i) ASSERT_TRUE(call(i));
  plain->flush();
  c.cluster->drain();
  EXPECT_TRUE(c.cluster->busy());
  EXPECT_TRUE(until([&] {
    serve();
    return answers.size() == kCalls + 1;
  })) << answers.size();
  EXPECT_TRUE(until(
      [&] {
        serve();
        return !c.cluster->busy();
      },
      4s));
}

TEST_F(NatsBusTest, ABrokerOfPlainTopicsBegins) {
  Options options;
  options.cluster = NatsBroker::at(server->url());
  options.cluster.plain_topics = {"orders.>"};
  const Broker broker{options};
}

TEST_F(NatsBusTest, ABrokerJoinsThatBeginsBeforeTheServer) {
  server->kill();
  std::unique_ptr<NatsBroker> c;
  start("c", c);
  EXPECT_TRUE(until([&] { return a->cluster->is_degraded() && c->cluster->is_degraded(); }));
  server->start();
  EXPECT_TRUE(until([&] { return a->knows("c") && c->knows("b"); }));
}

}  // namespace
}  // namespace wirecall::test
