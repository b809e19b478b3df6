// A server of udp:// over real sockets, on each engine, with one thread and with several: what it answers, what it
// refuses, and what whoever can send in any name gets out of it.
#include "transport/udp.hpp"

#include <gtest/gtest.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "tests/transport/udp_peer.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using transport::UdpPeer;

std::string call(std::string_view method, std::string_view params, std::string_view id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::string{id} + "}";
}
std::string result(std::string_view value, std::string_view id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::string{id} + "}";
}
std::string error(std::string_view code_and_more, std::string_view id) {
  return R"({"jsonrpc":"2.0","error":{)" + std::string{code_and_more} + R"(},"id":)" + std::string{id} + "}";
}
const std::string kNeedsConnection =
    R"("code":-32600,"message":"Invalid Request","data":{"reason":"needs_connection"})";

struct Way {
  Engine engine;
  std::uint32_t threads;
};

class UdpServerTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override { skip_where_refused(GetParam().engine); }

  static Options options() {
    Options given = threads(GetParam().threads);
    given.engine = GetParam().engine;
    return given;
  }
  // A server of these options, or a broker, which has a method more; not running yet.
  template <class Kind>
  Kind& make(std::optional<Kind>& server, Options given = options()) {
    server.emplace(std::move(given));
    server->method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"}).safe();
    server->method("big", [](std::size_t bytes) { return std::string(bytes, 'x'); }, {"bytes"}).safe();
    endpoint_.emplace(server->listen("udp://127.0.0.1:0"));
    return *server;
  }
  [[nodiscard]] UdpPeer peer() const { return UdpPeer{*endpoint_}; }

  std::optional<Endpoint> endpoint_;
};

TEST_P(UdpServerTest, a_datagram_is_answered_by_one) {
  std::optional<Server> server;
  const RunningServer running{make(server)};
  EXPECT_EQ(endpoint_->kind(), EndpointKind::udp);
  EXPECT_NE(endpoint_->port(), 0);
  const UdpPeer one = peer();
  const UdpPeer other = peer();
  EXPECT_EQ(one.ask(call("subtract", "[42,23]", "1")), result("19", "1"));
  EXPECT_EQ(other.ask(call("subtract", R"({"subtrahend":42,"minuend":23})", R"("two")")), result("-19", R"("two")"));
  EXPECT_EQ(one.ask("[" + call("subtract", "[2,1]", "1") + "," + call("subtract", "[3,1]", "2") + "]"),
            "[" + result("1", "1") + "," + result("2", "2") + "]");
  EXPECT_TRUE(other.is_silent());
}

TEST_P(UdpServerTest, a_reply_of_more_than_three_times_its_request_is_an_error_without_data) {
  std::optional<Server> server;
  const RunningServer running{make(server)};
  const UdpPeer one = peer();
  const std::string request = call("big", "[126]", "7");
  EXPECT_EQ(one.ask(request).size(), 3 * request.size());
  EXPECT_EQ(one.ask(call("big", "[127]", "7")), error(R"("code":-32006,"message":"Too large")", "7"));
  one.send("{");  // whose error would have 74 bytes more
  EXPECT_EQ(one.ask(call("subtract", "[2,1]", "1")), result("1", "1")) << "the other one is not answered";
  const Stats stats = server->stats();
  EXPECT_EQ(stats.datagrams_too_large, 1U);
  EXPECT_EQ(stats.datagrams_in, 4U);
  EXPECT_EQ(stats.datagrams_dropped, 0U);
}

TEST_P(UdpServerTest, the_limit_of_a_reply_can_be_set_and_changed) {
  Options given = options();
  given.limits.datagram_reply_bytes = 200;
  std::optional<Server> server;
  const RunningServer running{make(server, given)};
  const UdpPeer one = peer();
  const std::string id = '"' + std::string(60, 'i') + '"';
  EXPECT_EQ(one.ask(call("big", "[103]", id)).size(), 200U);
  EXPECT_EQ(one.ask(call("big", "[104]", id)), error(R"("code":-32006,"message":"Too large")", id));
  given.limits.datagram_reply_bytes = 1000;
  Gate in_force;
  server->set_limits(given.limits, [&] { in_force.open(); });
  in_force.wait();
  EXPECT_EQ(one.ask(call("big", "[104]", id)).size(), 201U);
}

TEST_P(UdpServerTest, nothing_that_outlasts_a_reply_is_for_a_datagram) {
  std::optional<Broker> broker;
  const RunningServer running{make(broker)};
  const UdpPeer one = peer();
  const std::string padding(100, 'x');  // else the errors are too large
  for (const std::string_view method : {"rpc.hello", "rpc.register", "rpc.unregister", "rpc.subscribe",
                                        "rpc.unsubscribe", "rpc.publish", "rpc.kick", "rpc.tap"}) {
    EXPECT_EQ(one.ask(call(method, R"({"name":")" + padding + R"("})", "1")), error(kNeedsConnection, "1")) << method;
  }
  EXPECT_EQ(one.ask(R"({"jsonrpc":"2.0","method":"subtract","params":[2,1],"stream":4,"id":"stream"})"),
            error(kNeedsConnection, R"("stream")"));
  EXPECT_EQ(one.ask(call("rpc.ping", "[]", "2")), result(R"("pong")", "2"));
}

TEST_P(UdpServerTest, a_notification_by_datagram_is_no_event) {
  std::optional<Broker> broker;
  make(broker);
  const Endpoint tcp = broker->listen("tcp://127.0.0.1:0");
  const RunningServer running{*broker};
  RawPeer subscriber{tcp};
  subscriber.send(call("rpc.subscribe", R"({"topic":">"})", "1"));
  EXPECT_NE(subscriber.line().find(R"("id":1)"), std::string::npos);
  const UdpPeer one = peer();
  one.send(R"({"jsonrpc":"2.0","method":"news","params":["forged"]})");
  EXPECT_EQ(one.ask(call("rpc.ping", "[]", "2")), result(R"("pong")", "2")) << "it has been looked at by now";
  RawPeer publisher{tcp};
  publisher.send(R"({"jsonrpc":"2.0","method":"news","params":["real"]})");
  EXPECT_EQ(subscriber.line(), R"({"jsonrpc":"2.0","method":"news","params":["real"]})");
}

TEST_P(UdpServerTest, a_broker_relays_calls_of_datagrams) {
  std::optional<Broker> broker;
  make(broker);
  const Endpoint tcp = broker->listen("tcp://127.0.0.1:0");
  const RunningServer running{*broker};
  RawPeer provider{tcp};
  provider.send(call("rpc.register", R"({"method":"twice"})", "1"));
  EXPECT_EQ(provider.line(), result("1", "1"));
  const UdpPeer one = peer();
  one.send(call("twice", "[21]", R"("a")"));
  const std::string relayed = provider.line();
  const std::size_t at = relayed.find(R"("id":)") + 5;
  const std::string id = relayed.substr(at, relayed.find_first_of(",}", at) - at);
  provider.send(result("42", id));
  EXPECT_EQ(one.receive(), result("42", R"("a")"));
}

TEST_P(UdpServerTest, anything_may_be_sent) {
  std::optional<Server> server;
  const RunningServer running{make(server)};
  const UdpPeer one = peer();
  for (const std::string& junk :
       {std::string{}, std::string(1, '\0'), std::string(1000, '['), std::string(transport::kUdpBytesMax, ' '),
        std::string{"\x16\x03\x01\x02\x00\x01"}, std::string{"GET / HTTP/1.1\r\n\r\n"}, result("1", "1"),
        error(R"("code":-32700,"message":"Parse error")", "null")}) {
    one.send(junk);
  }
  for (std::string reply = one.ask(call("subtract", "[2,1]", "1")); reply != result("1", "1"); reply = one.receive())
    EXPECT_NE(reply.find("-32700"), std::string::npos) << reply;
}

TEST_P(UdpServerTest, is_served_beside_connections) {
  std::optional<Server> server;
  make(server);
  const Endpoint tcp = server->listen("tcp://127.0.0.1:0");
  const RunningServer running{*server};
  RawPeer connection{tcp};
  connection.send(call("subtract", "[42,23]", "1"));
  EXPECT_EQ(connection.line(), result("19", "1"));
  EXPECT_EQ(peer().ask(call("subtract", "[2,1]", "1")), result("1", "1"));
  EXPECT_EQ(server->stats().connections_accepted, 1U);
}

TEST_P(UdpServerTest, a_server_that_stops_answers_what_it_has_begun) {
  std::optional<Server> server;
  make(server);
  Gate gate;
  server->method("wait", blocking([&] {
                   gate.wait();
                   return 1;
                 }));
  RunningServer running{*server};
  const UdpPeer one = peer();
  one.send(call("wait", "[]", R"("begun")"));
  gate.await_inside(1);
  server->stop();
  // Whichever loop has their sources, nothing that they send is lost: until each of them has been told, one by one.
  const std::string id = '"' + std::string(60, 'i') + '"';
  std::vector<UdpPeer> others;
  for (int i = 0; i < 16; ++i) others.push_back(peer());
  for (bool all_told = false; !all_told && !testing::Test::HasFailure();) {
    for (const UdpPeer& other : others) other.send(call("subtract", "[2,1]", id));
    all_told = true;
    for (const UdpPeer& other : others) {
      const std::string answer = other.receive();
      if (answer == result("1", id)) {
        all_told = false;
      } else {
        EXPECT_NE(answer.find("-32009"), std::string::npos) << answer;
      }
    }
  }
  gate.open();
  EXPECT_EQ(one.receive(), result("1", R"("begun")"));
  running.join();
  EXPECT_EQ(running.end, RunEnd::drained);
}

INSTANTIATE_TEST_SUITE_P(Ways, UdpServerTest,
                         testing::Values(Way{Engine::epoll, 1}, Way{Engine::uring, 1}, Way{Engine::epoll, 3}),
                         [](const auto& tested) {
                           return engine_name({tested.param.engine, 0}) + std::to_string(tested.param.threads);
                         });

// ---- who may call what ----

Principal everything() {
  return {.name = "ada", .tokens = {"secret"}, .call = {">"}, .provide = {">"}, .publish = {">"}, .subscribe = {">"}};
}

TEST(UdpAccess, where_callers_have_to_authenticate_only_safe_methods_may_be_there) {
  Options options = threads(1);
  options.principals = {everything()};
  const auto expect_refused = [](const auto& act) {
    try {
      act();
      ADD_FAILURE() << "it starts";
    } catch (const std::invalid_argument& refusal) {
      const std::string text = refusal.what();
      EXPECT_TRUE(text.starts_with("cannot listen on udp://127.0.0.1:")) << text;
      EXPECT_TRUE(
          text.ends_with(": a datagram cannot show a token, and there are principals; declare the method "
                         "erase safe if anybody may call it, or do not listen there"))
          << text;
    }
  };
  Server before{options};
  before.method("look", [] { return 1; }).safe();
  before.method("erase", [] { return 2; });
  expect_refused([&] { before.listen("udp://127.0.0.1:0"); });
  Server after{options};
  after.listen("udp://127.0.0.1:0");
  after.method("erase", [] { return 2; });
  expect_refused([&] { after.run(OnSignals::leave); });
}

TEST(UdpAccess, safe_methods_are_served_to_anybody_and_others_are_unknown) {
  Options options = threads(1);
  options.principals = {everything()};
  Broker broker{options};
  broker.method("look", [] { return 1; }).safe();
  const Endpoint udp = broker.listen("udp://127.0.0.1:0");
  const Endpoint tcp = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  RawPeer provider{tcp};
  provider.send(call("rpc.hello", R"({"token":"secret"})", "1"));
  EXPECT_NE(provider.line().find("session"), std::string::npos);
  provider.send(call("rpc.register", R"({"method":"provided","safe":true})", "2"));
  EXPECT_EQ(provider.line(), result("1", "2"));

  const UdpPeer one{udp};
  const std::string id = '"' + std::string(60, 'i') + '"';
  EXPECT_EQ(one.ask(call("look", "[]", "1")), result("1", "1"));
  EXPECT_EQ(one.ask(call("look", "[]", "2")), result("1", "2"));
  EXPECT_EQ(one.ask("[" + call("look", "[]", "1") + "," + call("look", "[]", "2") + "]"),
            "[" + result("1", "1") + "," + result("1", "2") + "]");
  for (const std::string_view method : {"provided", "nothing"})
    EXPECT_NE(one.ask(call(method, "[]", id)).find(R"("code":-32601)"), std::string::npos) << method;
  EXPECT_EQ(one.ask(call("rpc.hello", R"({"token":"secret"})", id)), error(kNeedsConnection, id))
      << "nor can it become somebody";
  const std::string methods = one.ask(call("rpc.methods", "[]", '"' + std::string(200, 'i') + '"'));
  EXPECT_NE(methods.find("look"), std::string::npos) << methods;
  EXPECT_EQ(methods.find("provided"), std::string::npos) << methods;
}

TEST(UdpAccess, principals_may_come_and_go_while_it_is_served) {
  Server server{threads(1)};
  server.method("look", [] { return 1; }).safe();
  server.method("erase", [] { return 2; });
  const Endpoint udp = server.listen("udp://127.0.0.1:0");
  const RunningServer running{server};
  const UdpPeer one{udp};
  const std::string id = '"' + std::string(60, 'i') + '"';
  EXPECT_EQ(one.ask(call("erase", "[]", id)), result("2", id));
  for (int round = 0; round < 2; ++round) {
    server.set_principals({everything()});
    while (one.ask(call("erase", "[]", id)) == result("2", id)) {
    }
    EXPECT_NE(one.ask(call("erase", "[]", id)).find(R"("code":-32601)"), std::string::npos);
    EXPECT_EQ(one.ask(call("look", "[]", id)), result("1", id));
    server.set_principals({});
    while (one.ask(call("erase", "[]", id)) != result("2", id)) {
    }
    EXPECT_EQ(one.ask(call("look", "[]", id)), result("1", id));
  }
}

TEST(UdpServer, an_endpoint_in_use_is_refused_with_a_cure) {
  Server one;
  const Endpoint taken = one.listen("udp://127.0.0.1:0");
  Server other;
  EXPECT_THROW(other.listen(taken.uri()), std::runtime_error);
}

// Any other process may have the same port of TCP: then another one shows it.
TEST(UdpServer, an_endpoint_in_use_is_free_for_tcp) {
  EXPECT_TRUE(comes_true([] {
    Server one;
    Server other;
    const Endpoint taken = one.listen("udp://127.0.0.1:0");
    try {
      return other.listen("tcp://127.0.0.1:" + std::to_string(taken.port())).port() == taken.port();
    } catch (const std::runtime_error&) {
      return false;
    }
  }));
}

TEST(UdpServer, an_interface_that_is_not_there_is_refused_with_a_cure) {
  Server server;  // in a build without AF_XDP any is
  EXPECT_THROW(server.listen("xdp://none:0"), std::runtime_error);
}

TEST(UdpServer, a_handler_that_does_not_return_holds_up_nobody) {
  Options options;
  options.thread_count = 1;
  options.takeover_ms = 1;
  Server server{options};
  Gate gate;
  server.method("block", [&](std::string_view text) {
    gate.wait();
    return std::string{text};
  });
  server.method("subtract", [](int a, int b) { return a - b; });
  const Endpoint udp = server.listen("udp://127.0.0.1:0");
  const RunningServer running{server};
  const UdpPeer blocked{udp};
  const UdpPeer other{udp};
  // Behind it in the same receive, perhaps, there are more; and one that the kernel has joined with it.
  const std::string first = call("block", R"(["what it reads stays"])", "1");
  std::string second = call("subtract", "[42,23]", "0");
  second.insert(1, first.size() - second.size(), ' ');
  const auto segment = static_cast<int>(first.size());
  ASSERT_EQ(::setsockopt(blocked.descriptor(), IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
  blocked.send(first + second);
  EXPECT_EQ(blocked.receive(), result("19", "0"));
  for (int i = 2; i < 30; ++i) blocked.send(call("subtract", "[42,23]", std::to_string(i)));
  for (int i = 2; i < 30; ++i) EXPECT_EQ(blocked.receive(), result("19", std::to_string(i)));
  EXPECT_EQ(other.ask(call("subtract", "[2,1]", "1")), result("1", "1"));
  EXPECT_TRUE(blocked.is_silent());
  gate.open();
  EXPECT_EQ(blocked.receive(), result(R"("what it reads stays")", "1"));
}

}  // namespace
}  // namespace wirecall::net
