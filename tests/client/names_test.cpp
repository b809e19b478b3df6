// Names at a broker as its clients use them: calls to one provider by its name, and what a handler is told of its
// caller.
#include <chrono>
#include <expected>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/broker_world.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/result_stream.hpp"
#include "wirecall/server.hpp"
#include "wirecall/stream.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

ClientOptions called(std::string name) {
  ClientOptions options;
  options.client_id = std::move(name);
  return options;
}

Options disclosing(bool disclose) {
  Options options;
  options.disclose_callers = disclose;
  return options;
}

std::string caller_of(Context context) { return context.caller_name(); }

TEST(ClientNames, to_is_said_with_requests_that_have_one_and_forgotten_with_them) {
  BrokerWorld world;
  EXPECT_EQ(world.client->request<int>("a", 5).to("the \"one\"").call(), 1);
  EXPECT_EQ(world.client->request<int>("a").to("x").to("").call(), 1);
  EXPECT_EQ(world.client->call<int>("a"), 1);
  EXPECT_EQ(world.client->call<int>("a"), 1);
  EXPECT_EQ(world.lines, (std::vector<std::string>{
                             R"({"jsonrpc":"2.0","method":"a","params":[5],"id":1,"to":"the \"one\""})",
                             R"({"jsonrpc":"2.0","method":"a","id":2})", R"({"jsonrpc":"2.0","method":"a","id":3})",
                             R"({"jsonrpc":"2.0","method":"a","id":4})"}));
}

TEST(ClientNames, a_call_goes_to_the_provider_that_it_names_and_no_other) {
  Broker broker;
  const std::string uri = broker.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{broker};
  Client left{uri, called("left")};
  Client right{uri, called("right")};
  for (Client* provider : {&left, &right}) {
    const std::string name = provider == &left ? "left" : "right";
    provider->provide("where", [name] { return name; });
    provider->provide("twice", [name](int) -> Stream<std::string> {
      co_yield name;
      co_yield name;
    });
    provider->connect();
  }
  Client caller{uri};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(caller.request<std::string>("where").to("right").call(), "right");
    EXPECT_EQ(caller.request<std::string>("where").to("left").call(), "left");
  }
  std::vector<std::string> items;
  for (std::string& item : caller.stream<std::string>("twice", 1).to("right")) items.push_back(std::move(item));
  EXPECT_EQ(items, (std::vector<std::string>{"right", "right"}));
  const std::expected<std::string, Error> nobody = caller.request<std::string>("where").to("middle").try_call();
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code(), -32001);
  EXPECT_NE(nobody.error().data().find(R"("delivered":"no")"), std::string::npos) << nobody.error().data();
}

TEST(ClientNames, a_handler_is_told_its_caller_by_a_broker_that_discloses_it) {
  for (const bool disclose : {true, false}) {
    Broker broker{disclosing(disclose)};
    broker.method("own", caller_of);
    const std::string uri = broker.listen("tcp://127.0.0.1:0").uri();
    const RunningServer running{broker};
    Client provider{uri};
    provider.provide("whoever", caller_of);
    provider.connect();
    Client ada{uri, called("Ada \"the first\"")};
    Client nameless{uri};
    EXPECT_EQ(ada.call<std::string>("whoever"), disclose ? "Ada \"the first\"" : "");
    EXPECT_EQ(nameless.call<std::string>("whoever"), "");
    EXPECT_EQ(ada.call<std::string>("own"), "Ada \"the first\"") << "the process knows it anyway";
    EXPECT_EQ(nameless.call<std::string>("own"), "");
  }
}

TEST(ClientNames, nobody_has_a_name_by_his_own_word) {
  Broker broker{disclosing(true)};
  broker.method("own", caller_of);
  const Endpoint at_broker = broker.listen("tcp://127.0.0.1:0");
  Client provider{at_broker.uri()};
  provider.provide("whoever", caller_of);
  Server server;
  server.method("own", caller_of);
  const Endpoint at_server = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  const RunningServer other{server};
  provider.connect();
  RawPeer peer{at_broker};
  for (const std::string name : {"own", "whoever"}) {
    peer.send(R"({"jsonrpc":"2.0","method":")" + name + R"(","from":"admin","id":1})" + "\n");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":"","id":1})");
  }
  RawPeer direct{at_server};
  direct.send("{\"jsonrpc\":\"2.0\",\"method\":\"own\",\"from\":\"admin\",\"id\":1}\n");
  EXPECT_EQ(direct.line(), R"({"jsonrpc":"2.0","result":"","id":1})");
}

}  // namespace
}  // namespace wirecall::net
