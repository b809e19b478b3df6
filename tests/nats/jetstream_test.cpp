// Durable topics and queues in JetStream: what two brokers of a realm keep and are given by a real nats-server; skipped
// where there is none.
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>
#include <thread>

#include "jetstream_store/jetstream_answers.hpp"
#include "jetstream_store/jetstream_store.hpp"
#include "tests/broker/world.hpp"
#include "tests/nats/nats_server.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class JetStreamBroker {
 public:
  static std::unique_ptr<durable::Store> store(Loop& loop, const std::string& url, const LogSink& log,
                                               const jetstream_store::JetStreamStoreOptions& given) {
    ClusterOptions options;
    options.url = url;
    jetstream_store::JetStreamStoreOptions kept = given;
    kept.realm = "test";
    kept.rules.push_back({.pattern = {}, .max_age_ms = 3'600'000, .max_bytes = 1 << 20, .max_count = 1000});
    static int last = 0;
    return std::make_unique<jetstream_store::JetStreamStore>(std::move(kept),
                                                             net::make_nats_bus(loop, options, "durable store", log),
                                                             "wc.test.js." + std::to_string(++last), loop, log);
  }
  JetStreamBroker(Loop& loop, const std::string& url, const jetstream_store::JetStreamStoreOptions& options)
      : loop_context(json_codec(), &loop),
        router(registry, limits, loop_context, {}, store(loop, url, *loop_context.log, options)) {
    loop_context.services.broker = &router;
  }
  JetStreamBroker(JetStreamBroker&&) = delete;

  Registry registry;
  Limits limits;
  rpc::LoopContext loop_context;
  broker::Router router;
};

class JetStreamClient {
 public:
  explicit JetStreamClient(JetStreamBroker& node)
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
  JetStreamBroker* node_;

 public:
  RecordingSink sink;
  Principal principal{.name = "some",
                      .tokens = {},
                      .call = {">"},
                      .provide = {">"},
                      .publish = {">"},
                      .subscribe = {">"},
                      .admin = true};
  rpc::Dispatcher dispatcher;
};

class JetStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NatsServer::is_there()) GTEST_SKIP() << "there is no nats-server: tools/install_packages.sh test installs it";
    std::string pattern = (std::filesystem::temp_directory_path() / "wirecall-jetstream-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    server.emplace("jetstream { store_dir: \"" + folder.string() + "\" }\n");
    start();
  }
  void TearDown() override {
    a.reset();
    b.reset();
    server.reset();
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }
  void start(const jetstream_store::JetStreamStoreOptions& options = {}) {
    a.reset();
    b.reset();
    a = std::make_unique<JetStreamBroker>(loop, server->url(), options);
    b = std::make_unique<JetStreamBroker>(loop, server->url(), options);
    for (JetStreamBroker* const one : {a.get(), b.get()}) {
      JetStreamClient client{*one};
      ASSERT_TRUE(until([&] { return ask(client, "rpc.durable.ls").find("\"last_seq\"") != std::string::npos; }));
    }
  }
  template <class Condition>
  bool until(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      loop.turn(10ms);
    }
    return true;
  }
  std::string received(JetStreamClient& client) {
    EXPECT_TRUE(until([&] { return !client.sink.messages.empty(); }));
    return client.sink.messages.empty() ? std::string{} : client.sink.take();
  }
  std::string ask(JetStreamClient& client, std::string_view method, std::string_view params = {}) {
    client.send(request(method, params));
    return received(client);
  }
  std::string publish(JetStreamClient& client, const std::string& topic, const std::string& params,
                      const std::string& more = {}) {
    return ask(client, "rpc.publish",
               R"({"topic":")" + topic + R"(","params":)" + params + R"(,"durable":true)" + more + "}");
  }
  std::string join(JetStreamClient& client, const std::string& more = R"(,"start":"first")",
                   const std::string& topic = "orders.>") {
    return ask(client, "rpc.subscribe", R"({"topic":")" + topic + R"(","durable":"billing")" + more + "}");
  }
  static std::string event(int number, const std::string& id, const std::string& topic = "orders.new") {
    return request(topic, R"({"id":)" + std::to_string(number) + "}", '"' + id + '"');
  }
  std::string consumers(JetStreamClient& client) {
    const std::string listed = ask(client, "rpc.durable.ls");
    return listed.substr(std::min(listed.find("\"consumers\""), listed.size()));
  }

  // As the principal of that name.
  static void login(JetStreamClient& client, const std::string& name) {
    client.principal.name = name;
    client.dispatcher.identify(&client.principal, {});
  }

  std::filesystem::path folder;
  std::optional<NatsServer> server;
  Loop loop;
  std::unique_ptr<JetStreamBroker> a;
  std::unique_ptr<JetStreamBroker> b;
};

TEST_F(JetStreamTest, AnEventThatOneBrokerKeepsAConsumerAtAnotherIsGiven) {
  JetStreamClient publisher{*a};
  EXPECT_EQ(publish(publisher, "orders.new", R"({"id":1})"), result_reply(R"({"seq":1})"));
  JetStreamClient billing{*b};
  EXPECT_EQ(join(billing), result_reply(R"({"consumer":"billing","position":0})"));
  EXPECT_EQ(received(billing), event(1, "billing:1:1"));
  billing.send(result_reply("null", "\"billing:1:1\""));
  EXPECT_EQ(publish(publisher, "orders.new", R"({"id":2})"), result_reply(R"({"seq":2})"));  // it waits for that
  EXPECT_EQ(received(billing), event(2, "billing:2:1"));
  EXPECT_TRUE(until([&] {
    return consumers(publisher).find(R"("name":"billing","topic":"orders.>","position":1,"pending":1)") !=
           std::string::npos;
  }));
}

TEST_F(JetStreamTest, AMessageIdKeepsAnEventOnceOfItsTopic) {
  JetStreamClient publisher{*a};
  EXPECT_EQ(publish(publisher, "orders.new", "[1]", R"(,"msg_id":"x\n1")"), result_reply(R"({"seq":1})"));
  JetStreamClient other{*b};
  EXPECT_EQ(publish(other, "orders.new", "[1]", R"(,"msg_id":"x\n1")"), result_reply(R"({"seq":1,"duplicate":true})"));
  EXPECT_EQ(publish(other, "orders.old", "[1]", R"(,"msg_id":"x\n1")"), result_reply(R"({"seq":2})"));
}

TEST_F(JetStreamTest, AnErrorHasAnEventSentAgainAndAtLastGivenUp) {
  JetStreamClient billing{*b};
  static_cast<void>(join(billing, R"(,"max_deliver":2,"ack_wait_ms":100)"));
  JetStreamClient publisher{*a};
  static_cast<void>(publish(publisher, "orders.new", R"({"id":1})"));
  constexpr std::string_view kError = R"({"jsonrpc":"2.0","error":{"code":1,"message":"no"},"id":"billing:1:)";
  EXPECT_EQ(received(billing), event(1, "billing:1:1"));
  billing.send(std::string{kError} + "1\"}");
  EXPECT_EQ(received(billing), event(1, "billing:1:2"));
  billing.send(std::string{kError} + "2\"}");
  const std::string read = R"({"topic":"dead.>"})";
  std::string dead;
  EXPECT_TRUE(until([&] {
    dead = ask(publisher, "rpc.durable.read", read);
    return dead.find("dead.billing") != std::string::npos;
  }));
  EXPECT_NE(dead.find(R"("params":{"topic":"orders.new","seq":1,"deliveries":2,"params":{"id":1},"error":{"code":1)"),
            std::string::npos)
      << dead;
  EXPECT_TRUE(until([&] { return consumers(publisher).find(R"("pending":0)") != std::string::npos; }));
}

TEST_F(JetStreamTest, WhatAConsumerOfDeadLettersGivesUpIsGone) {
  JetStreamClient publisher{*a};
  static_cast<void>(publish(publisher, "dead.billing", R"({"id":1})"));
  static_cast<void>(publish(publisher, "dead.billing", R"({"id":2})"));
  JetStreamClient billing{*b};
  static_cast<void>(join(billing, R"(,"start":"first","max_deliver":1,"max_in_flight":1)", "dead.>"));
  EXPECT_EQ(received(billing), event(1, "billing:1:1", "dead.billing"));
  billing.send(R"({"jsonrpc":"2.0","error":{"code":1,"message":"no"},"id":"billing:1:1"})");
  EXPECT_EQ(received(billing), event(2, "billing:2:1", "dead.billing"));
}

TEST_F(JetStreamTest, AConsumerThatIsJoinedAgainIsGivenTheNextEventForTheFirstTime) {
  JetStreamClient publisher{*a};
  JetStreamClient billing{*b};
  static_cast<void>(join(billing));
  EXPECT_EQ(ask(billing, "rpc.unsubscribe", R"({"topic":"orders.>","durable":"billing"})"), result_reply("true"));
  static_cast<void>(join(billing));
  static_cast<void>(publish(publisher, "orders.new", R"({"id":1})"));
  EXPECT_EQ(received(billing), event(1, "billing:1:1"));
}

TEST_F(JetStreamTest, AnEventWithoutAnAnswerInTimeIsSentAgain) {
  JetStreamClient billing{*b};
  static_cast<void>(join(billing, R"(,"ack_wait_ms":50)"));
  JetStreamClient publisher{*a};
  static_cast<void>(publish(publisher, "orders.new", R"({"id":1})"));
  EXPECT_EQ(received(billing), event(1, "billing:1:1"));
  EXPECT_TRUE(until([&] { return billing.sink.messages.size() >= 2; }));
  EXPECT_NE(billing.sink.messages[0].find("$/cancelRequest"), std::string::npos);
  EXPECT_EQ(billing.sink.messages[1], event(1, "billing:1:2"));
}

TEST_F(JetStreamTest, WhatAMemberThatGoesHasNotAnsweredOneAtAnotherNodeIsGiven) {
  JetStreamClient publisher{*a};
  static_cast<void>(publish(publisher, "orders.new", R"({"id":1})"));
  JetStreamClient there{*a};
  {
    JetStreamClient here{*b};
    static_cast<void>(join(here));
    EXPECT_EQ(received(here), event(1, "billing:1:1"));
    static_cast<void>(join(there));
  }
  const std::string again = received(there);  // for the second time, or the third, as the other node is given it or not
  EXPECT_TRUE(again.starts_with(R"({"jsonrpc":"2.0","method":"orders.new","params":{"id":1},"id":"billing:1:)"))
      << again;
}

TEST_F(JetStreamTest, WhatWasAnsweredIsThereAfterNatsServerWasKilled) {
  JetStreamClient publisher{*a};
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(publish(publisher, "orders.new", "[" + std::to_string(i) + "]"),
              result_reply(R"({"seq":)" + std::to_string(i) + "}"));
  }
  server->kill();
  EXPECT_TRUE(until([&] { return publish(publisher, "orders.new", "[0]").find("-32603") != std::string::npos; }));
  server->start();
  std::string answer;
  EXPECT_TRUE(until([&] {
    answer = ask(publisher, "rpc.durable.read", R"({"topic":"orders.*","after":17})");
    return answer.find("\"events\"") != std::string::npos;
  }));
  for (const char* const kept : {R"("seq":18)", R"("params":[19])", R"("params":[20])"})
    EXPECT_NE(answer.find(kept), std::string::npos) << answer;
}

TEST_F(JetStreamTest, TopicsOfARuleAreAStreamWithItsLimits) {
  start({.realm = {}, .rules = {{.pattern = "metrics.*", .max_count = 2}}});
  JetStreamClient client{*a};
  for (int i = 1; i <= 3; ++i) static_cast<void>(publish(client, "metrics.load", "[" + std::to_string(i) + "]"));
  EXPECT_EQ(publish(client, "orders.new", "[1]"), result_reply(R"({"seq":1})"));  // counts by itself
  const std::string read = ask(client, "rpc.durable.read", R"({"topic":"metrics.load"})");
  EXPECT_EQ(read.find("[1]"), std::string::npos) << read;
  EXPECT_NE(read.find("[3]"), std::string::npos) << read;
  const std::string refused = ask(client, "rpc.durable.read", R"({"topic":">"})");
  EXPECT_NE(refused.find("several streams"), std::string::npos) << refused;
}

TEST_F(JetStreamTest, APrincipalHasNoMoreEventsThanItMayAtAllBrokersTogether) {
  start({.realm = {}, .accounts = {.events = 2}});
  const auto login = [](JetStreamClient& client) { client.dispatcher.identify(&client.principal, {}); };
  JetStreamClient here{*a};
  JetStreamClient there{*b};
  JetStreamClient other{*b};
  other.principal.name = "other";
  for (JetStreamClient* const one : {&here, &there, &other}) login(*one);
  EXPECT_EQ(publish(here, "orders.new", "[1]"), result_reply(R"({"seq":1})"));
  EXPECT_EQ(publish(here, "orders.old", "[2]"), result_reply(R"({"seq":2})"));
  const std::string full = publish(there, "orders.new", "[3]");
  EXPECT_NE(full.find(R"("limit":"durable.principal_events")"), std::string::npos) << full;
  EXPECT_EQ(publish(other, "orders.new", "[4]"), result_reply(R"({"seq":3})"));
}

TEST_F(JetStreamTest, ADeadLetterThatItsPrincipalHasNoRoomForWaitsAndSaysWhatItIsDeadOf) {
  start({.realm = {}, .rules = {{.pattern = "orders.>", .max_count = 1}}, .accounts = {.events = 1}});
  JetStreamClient billing{*a};
  JetStreamClient other{*b};
  login(billing, "some");
  login(other, "other");
  static_cast<void>(publish(billing, "orders.new", R"({"id":1})"));
  static_cast<void>(join(billing, R"(,"start":"first","max_deliver":1)"));
  EXPECT_EQ(received(billing), event(1, "billing:1:1"));
  billing.send(R"({"jsonrpc":"2.0","error":{"code":7,"message":"no"},"id":"billing:1:1"})");
  const auto dead = [&] { return ask(other, "rpc.durable.read", R"({"topic":"dead.>"})"); };
  const auto end = std::chrono::steady_clock::now() + 300ms;
  while (std::chrono::steady_clock::now() < end) loop.turn(10ms);
  EXPECT_NE(dead().find(R"("events":[])"), std::string::npos);
  static_cast<void>(publish(other, "orders.new", R"({"id":2})"));  // the first event gives way
  EXPECT_TRUE(until([&] { return dead().find(R"("error":{"code":7)") != std::string::npos; }));
}

TEST_F(JetStreamTest, APrincipalMakesNoMoreConsumersThanItMay) {
  start({.realm = {}, .consumers = {.of_principal = 1}});
  JetStreamClient client{*a};
  JetStreamClient there{*b};
  JetStreamClient other{*b};
  login(client, "some");
  login(there, "some");
  login(other, "other");
  const auto join_another = [this](JetStreamClient& one, const std::string& name) {
    return ask(one, "rpc.subscribe", R"({"topic":"orders.>","durable":")" + name + R"("})");
  };
  EXPECT_NE(join_another(client, "first").find("position"), std::string::npos);
  EXPECT_NE(join_another(there, "second").find(R"("limit":"consumers")"), std::string::npos);
  EXPECT_NE(join_another(there, "first").find("position"), std::string::npos);
  EXPECT_NE(join_another(other, "second").find("position"), std::string::npos);
}

// What others do to the streams of the brokers.
class JetStreamOthersTest : public JetStreamTest {
 protected:
  std::string say(const std::string& subject, const std::string& payload = {}) {
    if (!others) {
      ClusterOptions options;
      options.url = server->url();
      others = std::make_unique<jetstream_store::JetStream>(
          net::make_nats_bus(loop, options, "others", *a->loop_context.log), "others", loop);
      EXPECT_TRUE(until([&] { return others->is_connected(); }));
    }
    std::optional<std::string> said;
    others->request(subject, payload, [&](const durable::Outcome<Value>& outcome) {
      said = outcome ? to_json(*outcome) : "failed: " + outcome.error().why;
    });
    EXPECT_TRUE(until([&] { return said.has_value(); }));
    return said.value_or(std::string{});
  }
  void TearDown() override {
    others.reset();
    JetStreamTest::TearDown();
  }

  std::unique_ptr<jetstream_store::JetStream> others;
};

TEST_F(JetStreamOthersTest, AStreamThatIsDeletedIsMadeAnewWithItsConsumers) {
  JetStreamClient billing{*a};
  JetStreamClient publisher{*b};
  for (int i = 1; i <= 3; ++i) static_cast<void>(publish(publisher, "orders.new", "[" + std::to_string(i) + "]"));
  static_cast<void>(join(billing, R"(,"start":"new")"));
  EXPECT_NE(say("$JS.API.STREAM.DELETE.wirecall_test_events_other").find("success"), std::string::npos);
  EXPECT_TRUE(
      until([&] { return publish(publisher, "orders.new", R"({"id":4})").find(R"("seq":1)") != std::string::npos; }));
  EXPECT_EQ(received(billing), event(4, "billing:1:1"));
}

TEST_F(JetStreamOthersTest, WhatIsNoEventIsPassedOver) {
  JetStreamClient billing{*a};
  JetStreamClient publisher{*b};
  static_cast<void>(join(billing));
  const std::string subject = "wc.test.d.other." + jetstream_store::token_of("") + ".64.orders.new";
  EXPECT_NE(say(subject, "no JSON\n{}").find(R"("seq":1)"), std::string::npos);
  EXPECT_NE(say(subject, "7").find(R"("seq":2)"), std::string::npos);
  static_cast<void>(publish(publisher, "orders.new", R"({"id":3})"));
  EXPECT_EQ(received(billing), event(3, "billing:3:1"));
  const std::string read = ask(publisher, "rpc.durable.read", R"({"topic":"orders.>"})");
  EXPECT_NE(read.find(R"({"events":[{"seq":3,)"), std::string::npos) << read;
}

TEST_F(JetStreamTest, ServersThatAreNoClusterKeepNoReplicasAndSayWhy) {
  a.reset();
  b.reset();
  a = std::make_unique<JetStreamBroker>(loop, server->url(),
                                        jetstream_store::JetStreamStoreOptions{.realm = {}, .replicas = 3});
  JetStreamClient client{*a};
  EXPECT_TRUE(until([&] { return publish(client, "orders.new", "[1]").find("replicas") != std::string::npos; }));
}

TEST_F(JetStreamTest, AConsumerHasOneTopicAtAllNodesAndIsForgottenAtAny) {
  JetStreamClient publisher{*a};
  {
    JetStreamClient billing{*b};
    static_cast<void>(join(billing));
    const std::string other = join(publisher, {}, "orders.new");
    EXPECT_NE(other.find("-32007"), std::string::npos) << other;
  }
  const std::string forget = R"({"consumer":"billing"})";
  EXPECT_TRUE(until([&] { return ask(publisher, "rpc.durable.forget", forget) == result_reply("true"); }));
  EXPECT_NE(ask(publisher, "rpc.durable.forget", forget).find("there is no consumer"), std::string::npos);
}

class JetStreamQueueTest : public JetStreamTest {
 protected:
  std::string push(JetStreamClient& client, const std::string& params, const std::string& more = {}) {
    return ask(client, "rpc.queue.push", R"({"method":"gpu.add","params":)" + params + more + "}");
  }
  void provide(JetStreamClient& client) {
    EXPECT_EQ(ask(client, "rpc.register", R"({"method":"gpu.add"})"), result_reply("1"));
  }
  // The params of the job that the provider is asked for; `id` is the call's.
  std::string asked(JetStreamClient& client) { return params_of(received(client)); }
  std::string params_of(const std::string& text) {
    id = id_of(text);
    const std::size_t at = text.find(R"("params":)");
    return at == text.npos ? std::string{} : text.substr(at + 9, text.find(R"(,"timeout_ms":)") - at - 9);
  }
  void answer(JetStreamClient& client, std::string_view result) { client.send(result_reply(result, id)); }
  void refuse(JetStreamClient& client) { client.send(error_reply(7, "no", {}, id)); }
  // What is said of the job once that has the text in it; else nothing.
  std::string result(JetStreamClient& client, std::uint64_t job, std::string_view text) {
    std::string said;
    const bool came = until([&] {
      said = ask(client, "rpc.queue.result", R"({"id":)" + std::to_string(job) + "}");
      return said.find(text) != std::string::npos;
    });
    return came ? said : std::string{};
  }

  std::string id;
};

TEST_F(JetStreamQueueTest, AJobThatOneBrokerKeepsAProviderAtAnotherIsGiven) {
  JetStreamClient client{*a};
  EXPECT_EQ(push(client, "[1,2]"), result_reply(R"({"id":1})"));
  EXPECT_NE(ask(client, "rpc.queue.ls").find(R"("method":"gpu.add","waiting":1,"running":0,"done":0,"dead":0)"),
            std::string::npos);
  JetStreamClient provider{*b};
  provide(provider);
  EXPECT_EQ(asked(provider), "[1,2]");
  EXPECT_NE(result(client, 1, R"("state":"running","deliveries":1)"), "");
  answer(provider, "3");
  EXPECT_NE(result(client, 1, R"("state":"done","deliveries":1)").find(R"("result":3)"), std::string::npos);
  EXPECT_NE(ask(client, "rpc.queue.ls").find(R"("waiting":0,"running":0,"done":1,"dead":0)"), std::string::npos);
  EXPECT_EQ(push(client, "[4]"), result_reply(R"({"id":2})"));  // of which the other is told
  EXPECT_EQ(asked(provider), "[4]");
}

TEST_F(JetStreamQueueTest, AMessageIdIsThatOfThePrincipalWhoPushes) {
  JetStreamClient client{*a};
  JetStreamClient other{*b};
  login(client, "some");
  login(other, "other");
  EXPECT_EQ(push(client, "[1]", R"(,"msg_id":"x")"), result_reply(R"({"id":1})"));
  EXPECT_EQ(push(other, "[1]", R"(,"msg_id":"x")"), result_reply(R"({"id":2})"));
}

TEST_F(JetStreamQueueTest, APrincipalHasJobsOfNoMoreMethodsThanItMay) {
  start({.realm = {}, .jobs = {.principal_queues = 1}});
  JetStreamClient client{*a};
  JetStreamClient other{*b};
  login(client, "some");
  login(other, "other");
  EXPECT_EQ(push(client, "[1]"), result_reply(R"({"id":1})"));
  EXPECT_EQ(push(client, "[2]"), result_reply(R"({"id":2})"));
  const std::string full = ask(client, "rpc.queue.push", R"({"method":"another"})");
  EXPECT_NE(full.find(R"("limit":"queues")"), std::string::npos) << full;
  EXPECT_EQ(ask(other, "rpc.queue.push", R"({"method":"another"})"), result_reply(R"({"id":3})"));
}

TEST_F(JetStreamQueueTest, WhatABrokerThatEndsWasAtWorkOnWaitsAndMayBeDropped) {
  JetStreamClient client{*a};
  static_cast<void>(push(client, "[1]"));
  {
    JetStreamClient there{*b};
    provide(there);
    EXPECT_EQ(asked(there), "[1]");
  }
  b.reset();
  EXPECT_NE(result(client, 1, R"("state":"waiting","deliveries":1)"), "");
  EXPECT_EQ(ask(client, "rpc.queue.drop", R"({"id":1})"), result_reply("true"));
}

TEST_F(JetStreamQueueTest, JobsForLaterDoNotKeepOneWaitingThatIsDue) {
  JetStreamClient client{*a};
  for (int i = 0; i != 100; ++i) static_cast<void>(push(client, "[0]", R"(,"delay_ms":86400000)"));
  static_cast<void>(push(client, "[1]"));
  JetStreamClient provider{*b};
  provide(provider);
  EXPECT_EQ(asked(provider), "[1]");
}

TEST_F(JetStreamQueueTest, AMessageIdIsPushedOnce) {
  JetStreamClient client{*a};
  JetStreamClient other{*b};
  EXPECT_EQ(push(client, "[1]", R"(,"msg_id":"x")"), result_reply(R"({"id":1})"));
  EXPECT_EQ(push(other, "[1]", R"(,"msg_id":"x")"), result_reply(R"({"id":1,"duplicate":true})"));
}

TEST_F(JetStreamQueueTest, AJobThatFailsIsMadeAgainDeadInTheEndAndTriedAnew) {
  JetStreamClient client{*a};
  JetStreamClient provider{*b};
  provide(provider);
  static_cast<void>(push(client, "[1]", R"(,"max_deliver":2)"));
  EXPECT_EQ(asked(provider), "[1]");
  refuse(provider);
  EXPECT_EQ(asked(provider), "[1]");
  EXPECT_NE(result(client, 1, R"("state":"running","deliveries":2)"), "");
  refuse(provider);
  EXPECT_NE(result(client, 1, R"("state":"dead","deliveries":2)").find(R"("error":{"code":7)"), std::string::npos);
  const std::string dead = ask(client, "rpc.queue.peek", R"({"method":"gpu.add","state":"dead"})");
  EXPECT_NE(dead.find(R"("id":1,"method":"gpu.add","state":"dead","deliveries":2)"), std::string::npos) << dead;
  EXPECT_NE(dead.find(R"("params":[1])"), std::string::npos) << dead;
  EXPECT_NE(ask(client, "rpc.queue.ls").find(R"("waiting":0,"running":0,"done":0,"dead":1)"), std::string::npos);
  EXPECT_EQ(ask(client, "rpc.queue.retry", R"({"id":1})"), result_reply("true"));
  EXPECT_EQ(asked(provider), "[1]");
  EXPECT_NE(result(client, 1, R"("state":"running","deliveries":1)"), "");
  answer(provider, "5");
  EXPECT_NE(result(client, 1, R"("state":"done","deliveries":1)"), "");
  EXPECT_NE(ask(client, "rpc.queue.retry", R"({"id":1})").find("not among the dead"), std::string::npos);
}

TEST_F(JetStreamQueueTest, AFullQueueRefusesAndDiscardsNothing) {
  start({.realm = {}, .jobs = {.queue_count = 2}});
  JetStreamClient client{*a};
  JetStreamClient other{*b};
  EXPECT_EQ(push(client, "[1]"), result_reply(R"({"id":1})"));
  EXPECT_EQ(push(client, "[2]"), result_reply(R"({"id":2})"));
  const std::string full = push(client, "[3]");
  EXPECT_NE(full.find("-32005"), std::string::npos) << full;
  EXPECT_NE(full.find(R"("limit":"durable.queue_count")"), std::string::npos) << full;
  EXPECT_EQ(ask(other, "rpc.queue.drop", R"({"id":1})"), result_reply("true"));
  EXPECT_EQ(push(client, "[4]"), result_reply(R"({"id":3})"));
  const std::string left = ask(other, "rpc.queue.peek", R"({"method":"gpu.add"})");
  EXPECT_NE(left.find(R"("params":[2])"), std::string::npos) << left;
  EXPECT_NE(left.find(R"("params":[4])"), std::string::npos) << left;
}

TEST_F(JetStreamQueueTest, APrincipalHasNoMoreJobsThanItMay) {
  start({.realm = {}, .jobs = {.principal_jobs = 1}});
  JetStreamClient client{*a};
  static_cast<void>(push(client, "[1]"));
  const std::string full = ask(client, "rpc.queue.push", R"({"method":"another"})");
  EXPECT_NE(full.find(R"("limit":"durable.principal_jobs")"), std::string::npos) << full;
}

TEST_F(JetStreamQueueTest, WhatABrokerThatEndsWasAtWorkOnAnotherMakesAgain) {
  JetStreamClient client{*a};
  static_cast<void>(push(client, "[1]"));
  {
    JetStreamClient there{*b};
    provide(there);
    EXPECT_EQ(asked(there), "[1]");
  }
  b.reset();
  provide(client);
  EXPECT_EQ(asked(client), "[1]");
  answer(client, "1");
  EXPECT_NE(result(client, 1, R"("state":"done")"), "");
}

TEST_F(JetStreamQueueTest, ADelayedJobIsMadeWhenItsTimeHasCome) {
  JetStreamClient client{*a};
  JetStreamClient provider{*b};
  provide(provider);
  static_cast<void>(push(client, "[1]", R"(,"delay_ms":86400000)"));
  const auto begin = std::chrono::steady_clock::now();
  static_cast<void>(push(client, "[2]", R"(,"delay_ms":300)"));
  EXPECT_EQ(asked(provider), "[2]");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 290ms);
  EXPECT_NE(result(client, 1, R"("state":"waiting","deliveries":0)"), "");
}

TEST_F(JetStreamQueueTest, JobsAreLookedAtByTheirIdsAlsoThoseThatWereDead) {
  JetStreamClient client{*a};
  {
    JetStreamClient provider{*b};
    provide(provider);
    static_cast<void>(push(client, "[1]", R"(,"max_deliver":1)"));
    EXPECT_EQ(asked(provider), "[1]");
    refuse(provider);
    EXPECT_NE(result(client, 1, R"("state":"dead")"), "");
  }
  for (const char* const params : {"[2]", "[3]"}) static_cast<void>(push(client, params));
  EXPECT_EQ(ask(client, "rpc.queue.retry", R"({"id":1})"), result_reply("true"));
  const std::string first = ask(client, "rpc.queue.peek", R"({"method":"gpu.add","count":2})");
  const std::string rest = ask(client, "rpc.queue.peek", R"({"method":"gpu.add","count":2,"after":2})");
  EXPECT_LT(first.find(R"("id":1,)"), first.find(R"("id":2,)")) << first;
  EXPECT_EQ(first.find(R"("id":3,)"), std::string::npos) << first;
  EXPECT_NE(rest.find(R"("id":3,)"), std::string::npos) << rest;
  EXPECT_EQ(rest.find(R"("id":1,)"), std::string::npos) << rest;
}

TEST_F(JetStreamQueueTest, WhatWasPushedIsThereAfterNatsServerWasKilled) {
  JetStreamClient client{*a};
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(push(client, "[" + std::to_string(i) + "]"), result_reply(R"({"id":)" + std::to_string(i) + "}"));
  }
  server->kill();
  EXPECT_TRUE(until([&] { return push(client, "[0]").find("-32603") != std::string::npos; }));
  server->start();
  EXPECT_TRUE(until([&] { return ask(client, "rpc.queue.ls").find(R"("waiting":20)") != std::string::npos; }));
  JetStreamClient provider{*b};
  provide(provider);
  std::set<std::string> made;
  while (made.size() != 20) {
    ASSERT_TRUE(until([&] { return !provider.sink.messages.empty(); }));
    for (const std::string& text : std::exchange(provider.sink.messages, {})) {
      made.insert(params_of(text));
      answer(provider, "null");
    }
  }
}

class JetStreamQueueOthersTest : public JetStreamQueueTest {
 protected:
  jetstream_store::JetStream& connect() {
    ClusterOptions options;
    options.url = server->url();
    others = std::make_unique<jetstream_store::JetStream>(
        net::make_nats_bus(loop, options, "others", *a->loop_context.log), "others", loop);
    EXPECT_TRUE(until([&] { return others->is_connected(); }));
    return *others;
  }
  // Whether JetStream does what it is asked.
  bool say(const std::string& subject, const std::string& payload = {}) {
    std::optional<bool> done;
    if (!others) connect();
    others->request(subject, payload, [&](const durable::Outcome<Value>& outcome) { done = outcome.has_value(); });
    EXPECT_TRUE(until([&] { return done.has_value(); }));
    return done.value_or(false);
  }
  // A job was pushed and made, so that there is a consumer.
  void make_one(JetStreamClient& client) {
    JetStreamClient provider{*b};
    provide(provider);
    static_cast<void>(push(client, "[0]"));
    EXPECT_EQ(asked(provider), "[0]");
    answer(provider, "null");
    EXPECT_NE(result(client, 1, R"("state":"done")"), "");
  }
  void TearDown() override {
    others.reset();
    JetStreamQueueTest::TearDown();
  }

  const std::string consumer = jetstream_store::token_of("gpu.add");
  std::unique_ptr<jetstream_store::JetStream> others;
};

TEST_F(JetStreamQueueOthersTest, AConsumerThatIsDeletedIsMadeAnew) {
  JetStreamClient client{*a};
  make_one(client);
  EXPECT_TRUE(say("$JS.API.CONSUMER.DELETE.wirecall_test_jobs." + consumer));
  JetStreamClient provider{*b};
  provide(provider);
  static_cast<void>(push(client, "[1]"));
  EXPECT_EQ(asked(provider), "[1]");
}

TEST_F(JetStreamQueueOthersTest, AStreamThatIsDeletedIsMadeAnew) {
  JetStreamClient client{*a};
  make_one(client);
  EXPECT_TRUE(say("$JS.API.STREAM.DELETE.wirecall_test_jobs"));
  EXPECT_TRUE(until([&] { return push(client, "[1]").find(R"("id")") != std::string::npos; }));
}

TEST_F(JetStreamQueueOthersTest, TheConsumerOfAMethodWithoutJobsIsForgotten) {
  start({.realm = {}, .jobs = {.consumer_idle_ms = 100}});
  JetStreamClient client{*a};
  make_one(client);
  EXPECT_TRUE(until([&] { return !say("$JS.API.CONSUMER.INFO.wirecall_test_jobs." + consumer); }));
  JetStreamClient provider{*b};
  provide(provider);
  static_cast<void>(push(client, "[1]"));
  EXPECT_EQ(asked(provider), "[1]");
}

TEST_F(JetStreamQueueOthersTest, WhatIsNoJobIsPassedOver) {
  JetStreamClient client{*a};
  make_one(client);
  const std::string subject = "wc.test.d.jobs." + jetstream_store::token_of("") + ".64.gpu.add";
  EXPECT_TRUE(say(subject, "no job"));
  EXPECT_TRUE(say(subject, R"({"principal":"","max_deliver":5,"timeout_ms":1000,"delay_ms":0})"
                           "\n[1"));
  JetStreamClient provider{*b};
  provide(provider);
  static_cast<void>(push(client, "[1]"));
  EXPECT_EQ(asked(provider), "[1]");
  EXPECT_TRUE(
      until([&] { return ask(client, "rpc.queue.ls").find(R"("waiting":0,"running":1)") != std::string::npos; }));
}

TEST_F(JetStreamQueueOthersTest, AJobForLaterThatABrokerHadWhichWasKilledIsNotMadeBefore) {
  start({.realm = {}, .jobs = {.lease_ms = 300}});
  JetStreamClient client{*a};
  make_one(client);
  const auto begin = std::chrono::steady_clock::now();
  static_cast<void>(push(client, "[1]", R"(,"delay_ms":2000)"));
  std::size_t given = 0;
  connect().pull("wirecall_test_jobs", consumer, 1, 1000, jetstream_store::JetStream::Wait::no,
                 [&](const durable::Outcome<std::vector<jetstream_store::PulledMessage>>& outcome) {
                   given = outcome ? outcome->size() : 0;
                 });
  EXPECT_TRUE(until([&] { return given == 1; }));
  others.reset();  // which says nothing of it
  JetStreamClient provider{*b};
  provide(provider);
  EXPECT_EQ(asked(provider), "[1]");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1990ms);
}

class JetStreamLeaseTest : public JetStreamTest {
 protected:
  std::string provide(JetStreamClient& client) {
    return ask(client, "rpc.register", R"({"method":"gpu.add","policy":"exclusive"})");
  }
  // 0 where the client has no lease.
  std::uint64_t token(JetStreamClient& client) {
    const std::string said = ask(client, "rpc.lease", R"({"method":"gpu.add"})");
    const std::size_t at = said.find(R"({"token":)");
    return at == std::string::npos ? 0 : std::strtoull(said.c_str() + at + 9, nullptr, 10);
  }
};

TEST_F(JetStreamLeaseTest, AMethodThatWantsOneProviderHasOneAtAllBrokersAndEachALargerToken) {
  JetStreamClient other{*b};
  std::uint64_t first = 0;
  {
    JetStreamClient client{*a};
    EXPECT_EQ(provide(client), result_reply("1"));
    first = token(client);
    EXPECT_NE(first, 0U);
    const std::string refused = provide(other);
    EXPECT_NE(refused.find("-32007"), std::string::npos) << refused;
    EXPECT_EQ(provide(client), result_reply("1"));  // once more
    EXPECT_EQ(token(client), first);
  }
  EXPECT_TRUE(until([&] { return provide(other) == result_reply("1"); }));
  EXPECT_GT(token(other), first);
  EXPECT_EQ(ask(other, "rpc.unregister", R"({"method":"gpu.add"})"), result_reply("1"));
  EXPECT_EQ(token(other), 0U);
  JetStreamClient third{*a};
  EXPECT_EQ(provide(third), result_reply("1"));
}

TEST_F(JetStreamLeaseTest, ALeaseIsRenewedAndEndsWhereItCannotBe) {
  start({.realm = {}, .lease_ms = 2000});
  JetStreamClient client{*a};
  JetStreamClient other{*b};
  EXPECT_EQ(provide(client), result_reply("1"));
  const std::uint64_t first = token(client);
  const auto end = std::chrono::steady_clock::now() + 3s;
  while (std::chrono::steady_clock::now() < end) loop.turn(10ms);
  EXPECT_EQ(token(client), first);
  server->kill();
  EXPECT_TRUE(until([&] { return token(client) == 0; }));
  const std::string refused = provide(other);
  EXPECT_NE(refused.find("-32603"), std::string::npos) << refused;
  server->start();
  EXPECT_TRUE(until([&] { return provide(other) == result_reply("1"); }));
  EXPECT_GT(token(other), first);
}

TEST_F(JetStreamLeaseTest, OfTwoWhoRegisterAtOneMomentAtTwoBrokersOneMay) {
  JetStreamClient client{*a};
  JetStreamClient other{*b};
  const std::string asked = request("rpc.register", R"({"method":"gpu.add","policy":"exclusive"})");
  client.send(asked);
  other.send(asked);
  const std::string first = received(client);
  const std::string second = received(other);
  EXPECT_NE(first == result_reply("1"), second == result_reply("1")) << first << second;
  EXPECT_NE((first + second).find("-32007"), std::string::npos) << first << second;
}

TEST_F(JetStreamLeaseTest, WhoHasGoneBeforeItsLeaseIsThereHasNone) {
  {
    JetStreamClient client{*a};
    client.send(request("rpc.register", R"({"method":"gpu.add","policy":"exclusive"})"));
  }
  JetStreamClient here{*a};
  EXPECT_TRUE(until([&] { return provide(here) == result_reply("1"); }));
}

TEST_F(JetStreamLeaseTest, WhoRegistersWhileJetStreamIsNotThereYetWaitsForIt) {
  a = std::make_unique<JetStreamBroker>(loop, server->url(), jetstream_store::JetStreamStoreOptions{});
  JetStreamClient client{*a};
  EXPECT_EQ(provide(client), result_reply("1"));
}

TEST_F(JetStreamLeaseTest, WhoStoodStillForLongerThanALeaseIsAskedNothingMore) {
  start({.realm = {}, .lease_ms = 500});
  JetStreamClient provider{*a};
  JetStreamClient caller{*a};
  EXPECT_EQ(provide(provider), result_reply("1"));
  std::this_thread::sleep_for(500ms);  // the loop does not turn
  caller.send(request("gpu.add", "[1]"));
  EXPECT_TRUE(provider.sink.messages.empty());
  EXPECT_NE(received(caller).find("-32601"), std::string::npos);
  EXPECT_EQ(token(provider), 0U);
}

TEST(JetStreamOptionsTest, ReplicasOfAFolderAreRefused) {
  Options options;
  options.durable.path = "./data";
  options.durable.replicas = 3;
  EXPECT_THROW(Broker{options}, std::invalid_argument);
}

TEST(JetStreamOptionsTest, WithoutAClusterItIsRefused) {
  Options options;
  options.durable.path = "jetstream";
  EXPECT_THROW(Broker{options}, std::invalid_argument);
}

}  // namespace
}  // namespace wirecall::test
