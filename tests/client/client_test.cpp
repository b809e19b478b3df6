// Clients over real sockets: against a server of ours, and against scripted ones that answer what no server should.
#include "wirecall/client.hpp"

#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

struct Point {
  int x;
  int y;
};

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    server_.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
    server_.method("mirror", [](Point p) { return Point{p.y, p.x}; }, {"point"});
    server_.method("concat", [](const std::string& a, const std::vector<std::string>& rest) {
      std::string all = a;
      for (const std::string& part : rest) all += part;
      return all;
    });
    server_.method("nothing", [this] { ++calls_; });
    server_.method("count", [this] { return calls_; });
    server_.method("fail", [](int code, std::string message) -> int {
      throw Error{code, std::move(message), R"({"why":[1,2]})"};
    });
    server_.method("hold", &ClientTest::hold, *this);
    server_.method("held", [this] { return held_.size(); });
    server_.method("release", [this] {
      for (Completion<int>& call : std::exchange(held_, {})) call.set(1);
    });
    uri_ = server_.listen("tcp://127.0.0.1:0").uri();
    running_.emplace(server_);
  }
  Task<int> hold() {
    Completion<int> answer;
    held_.push_back(answer);
    co_return co_await answer;
  }

  int calls_ = 0;
  std::vector<Completion<int>> held_;
  Server server_;
  std::string uri_;
  std::optional<RunningServer> running_;
};

TEST_F(ClientTest, calls_by_position_and_by_name) {
  Client client{uri_};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  const int minuend = 42;
  EXPECT_EQ(client.call<int>("subtract", arg("subtrahend") = 23, arg("minuend") = minuend), 19);
}

TEST_F(ClientTest, takes_and_returns_what_the_typed_edge_knows) {
  Client client{uri_};
  const Point mirrored = client.call<Point>("mirror", Point{1, 2});
  EXPECT_EQ(mirrored.x, 2);
  EXPECT_EQ(mirrored.y, 1);
  EXPECT_EQ(client.call<std::string>("concat", "a\n\"", std::vector<std::string>{"b", "\u20AC"}), "a\n\"b\u20AC");
}

TEST_F(ClientTest, a_call_for_no_result_waits_for_the_answer_all_the_same) {
  Client client{uri_};
  client.call<void>("nothing");
  client.call("nothing");
  EXPECT_EQ(client.call<int>("count"), 2);
}

TEST_F(ClientTest, a_notification_is_seen_before_the_next_call) {
  Client client{uri_};
  for (int i = 0; i < 100; ++i) client.notify("nothing");
  EXPECT_EQ(client.call<int>("count"), 100);
}

TEST_F(ClientTest, an_error_is_thrown_or_returned_with_its_code_message_and_data) {
  Client client{uri_};
  try {
    client.call<int>("fail", 4711, "no \"luck\"");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), 4711);
    EXPECT_EQ(error.message(), "no \"luck\"");
    EXPECT_EQ(error.data(), R"({"why":[1,2]})");
  }
  const std::expected<int, Error> unknown = client.try_call<int>("subtrac", 1, 2);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code(), -32601);
  EXPECT_EQ(unknown.error().data(), R"({"did_you_mean":"subtract"})");
  EXPECT_EQ(client.try_call<int>("subtract", 1, 2), -1);
  EXPECT_TRUE(client.try_call<void>("nothing").has_value());
}

TEST_F(ClientTest, a_result_of_another_type_is_an_error_that_says_so) {
  Client client{uri_};
  const auto result = client.try_call<std::string>("subtract", 42, 23);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), -32603);
  EXPECT_EQ(result.error().data(), R"({"loc":[],"expected":"string","got":"19"})");
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

TEST_F(ClientTest, raw_calls_take_and_give_json_text) {
  Client client{uri_};
  EXPECT_EQ(client.call_raw("subtract", "[42, 23]").value(), "19");
  EXPECT_EQ(client.call_raw("mirror", R"({"point":{"x":1,"y":2}})").value(), R"({"x":2,"y":1})");
  EXPECT_EQ(client.call_raw("count", "").value(), "0");
  EXPECT_TRUE(client.notify_raw("nothing", "[]").has_value());
  EXPECT_EQ(client.call_raw("count", "").value(), "1");
  EXPECT_EQ(client.call_raw("count", "[1").error().code(), -32602);
  EXPECT_EQ(client.call_raw("count", "[] []").error().code(), -32602);
}

TEST_F(ClientTest, raw_params_are_an_array_or_an_object) {
  Client client{uri_};
  for (const std::string_view scalar : {"7", " \"a\"", "null", "true"}) {
    EXPECT_EQ(client.call_raw("nothing", scalar).error().code(), -32602) << scalar;
    EXPECT_EQ(client.notify_raw("nothing", scalar).error().code(), -32602) << scalar;
  }
  EXPECT_EQ(client.call_raw("count", " []").value(), "0");
  EXPECT_EQ(client.responses_dropped(), 0U);
}

// Options of a client that does not wait for a server that is not there.
ClientOptions impatient() {
  ClientOptions options;
  options.connect_attempts = 1;
  return options;
}

TEST_F(ClientTest, a_whole_response_comes_as_it_was_sent_and_the_servers_errors_are_within) {
  Client client{uri_, impatient()};
  const auto done = client.call_for_response("subtract", "[42,23]");
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->json, R"({"jsonrpc":"2.0","result":19,"id":1})");
  EXPECT_EQ(done->result.value(), "19");
  const auto refused = client.call_for_response("fail", R"([-32001,"gone"])");
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->json, R"({"jsonrpc":"2.0","error":{"code":-32001,"message":"gone","data":{"why":[1,2]}},"id":2})");
  EXPECT_EQ(refused->result.error().code(), -32001);
  running_->stop();
  EXPECT_EQ(client.call_for_response("count", "").error().code(), -32001);
}

TEST_F(ClientTest, what_cannot_be_encoded_is_not_sent) {
  Client client{uri_};
  EXPECT_EQ(client.try_call<int>("subtract", std::numeric_limits<double>::quiet_NaN(), 1).error().code(), -32602);
  EXPECT_EQ(client.try_call<int>("subtract", "\xFF", 1).error().code(), -32602);
  EXPECT_EQ(client.try_call<int>("\xFF").error().code(), -32600);
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

TEST_F(ClientTest, a_request_over_the_limit_is_not_sent) {
  ClientOptions options;
  options.limits.max_message_size = 1000;
  Client client{uri_, std::move(options)};
  const auto result = client.try_call<std::string>("concat", std::string(1000, 'x'), std::vector<std::string>{});
  EXPECT_EQ(result.error().code(), -32006);
  try {
    client.notify("concat", std::string(1000, 'x'));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32006);
  }
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

TEST_F(ClientTest, a_request_is_measured_with_its_id_and_end) {
  const std::string around = R"({"jsonrpc":"2.0","method":"concat","params":["",[]],"id":1})";
  for (const std::size_t over : {0U, 1U}) {
    ClientOptions options;
    options.limits.max_message_size = 1000;
    Client client{uri_, std::move(options)};
    const std::string text(1000 - around.size() + over, 'x');
    const auto result = client.try_call<std::string>("concat", text, std::vector<std::string>{});
    EXPECT_EQ(result.has_value(), over == 0) << (result ? "" : result.error().message());
    EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  }
}

TEST_F(ClientTest, limits_that_cannot_be_are_refused_by_name) {
  ClientOptions options;
  options.limits.depth = kDepthMax + 1;
  try {
    const Client client{uri_, std::move(options)};
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string{error.what()}.find("limits.depth"), std::string::npos) << error.what();
  }
}

TEST_F(ClientTest, an_answer_over_a_limit_of_its_own_is_named_as_that) {
  ClientOptions small;
  small.limits.max_message_size = 200;
  Client narrow{uri_, std::move(small)};
  const auto large = narrow.try_call<int>("fail", 1, std::string(135, 'x'));
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code(), -32001);
  EXPECT_NE(large.error().message().find("limits.max_message_size"), std::string::npos) << large.error().message();

  ClientOptions flat;
  flat.limits.depth = 2;
  Client shallow{uri_, std::move(flat)};
  const auto deep = shallow.try_call<int>("fail", 1, "");  // whose data nests three deep
  ASSERT_FALSE(deep.has_value());
  EXPECT_EQ(deep.error().code(), -32001);
  EXPECT_NE(deep.error().message().find("limits.depth"), std::string::npos) << deep.error().message();
}

TEST_F(ClientTest, a_method_s_name_is_escaped) {
  Client client{uri_};
  EXPECT_EQ(client.try_call<int>("sub\"tract\n").error().code(), -32601);
}

TEST_F(ClientTest, a_timeout_costs_neither_the_connection_nor_other_calls) {
  ClientOptions options;
  options.call_timeout_ms = 400;
  Client hasty{uri_, std::move(options)};
  Client patient{uri_};
  const auto result = hasty.try_call<int>("hold");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), -32002);
  EXPECT_NE(result.error().data().find(R"("delivered":"maybe")"), std::string::npos);
  patient.call("release");
  // Both sides count; on a slow machine the next call may be late as well.
  for (int i = 0; i < 100 && !hasty.try_call<int>("subtract", 42, 23).has_value(); ++i) {
  }
  EXPECT_EQ(hasty.try_call<int>("subtract", 42, 23), 19);
}

// A request may outlive its client, and then ends like any other that cannot be made.
TEST_F(ClientTest, what_is_asked_of_a_client_that_has_gone_fails_in_all_ways) {
  std::vector<Request<int>> requests;
  std::optional<Batch<int>> batch;
  {
    Client client{uri_};
    for (int i = 0; i < 3; ++i) requests.push_back(client.request<int>("subtract", 42, 23));
    batch.emplace(client.batch().call<int>("subtract", 42, 23));
  }
  EXPECT_EQ(std::move(requests[0]).try_call().error().code(), -32001);
  int called = 0;
  std::move(requests[1]).then([&](const auto& result) {
    ++called;
    EXPECT_EQ(result.error().code(), -32001);
  });
  EXPECT_EQ(called, 1);
  EXPECT_THROW(std::move(requests[2]).future().get(), ConnectionError);
  EXPECT_EQ(std::get<0>(std::move(*batch).future().get()).error().code(), -32001);
}

TEST_F(ClientTest, threads_share_a_client) {
  Client client{uri_};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&client, t] {
      for (int i = 0; i < 500; ++i) {
        ASSERT_EQ(client.call<int>("subtract", t * 1000 + i, t), t * 999 + i);
        if (i % 50 == 0) client.notify("nothing");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(client.call<int>("count"), 80);
}

TEST_F(ClientTest, a_thread_that_waits_long_hinders_no_other) {
  Client client{uri_};
  std::thread waiting{[&] { EXPECT_EQ(client.call<int>("hold"), 1); }};
  while (client.call<std::size_t>("held") == 0) {
  }
  client.call("release");
  waiting.join();
}

TEST_F(ClientTest, threads_that_time_out_pass_the_lead_on) {
  ClientOptions options;
  options.call_timeout_ms = 300;
  Client client{uri_, std::move(options)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&client] { EXPECT_EQ(client.try_call<int>("hold").error().code(), -32002); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ClientTest, stopping_the_server_ends_calls_with_a_connection_error) {
  Client client{uri_, impatient()};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  running_->stop();
  EXPECT_THROW(client.call<int>("subtract", 42, 23), ConnectionError);
  try {
    client.call<int>("subtract", 42, 23);
    FAIL();
  } catch (const ConnectionError& error) {
    EXPECT_EQ(error.code(), -32001);
    EXPECT_TRUE(error.safe_to_retry());  // this one was never sent
    EXPECT_NE(error.message().find(uri_), std::string::npos) << error.message();
  }
  EXPECT_EQ(client.try_call<int>("subtract", 42, 23).error().code(), -32001);
  EXPECT_THROW(client.notify("nothing"), ConnectionError);
}

TEST(ClientConnect, nobody_there_is_told_with_the_cure) {
  std::string uri;
  {
    Server server;
    uri = server.listen("tcp://127.0.0.1:0").uri();
  }
  Client client{uri};
  try {
    client.connect();
    FAIL();
  } catch (const ConnectionError& error) {
    EXPECT_EQ(error.code(), -32001);
    EXPECT_TRUE(error.safe_to_retry());
    EXPECT_NE(error.message().find("start the server"), std::string::npos) << error.message();
  }
  EXPECT_THROW(Client{"gopher://127.0.0.1:1"}, std::invalid_argument);
}

// ---- servers that do what they should not ----

std::string result(std::string_view id) { return R"({"jsonrpc":"2.0","result":19,"id":)" + std::string{id} + "}\n"; }

TEST(ClientAndStrangers, answers_to_unknown_ids_are_dropped_and_counted) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(result("77") + result("\"1\"") + result("1.0") + result("-1") + result("1") + result("1"));
    peer.line();
    peer.send(result("2"));
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(client.call<int>("a"), 19);
  EXPECT_EQ(client.call<int>("a"), 19);
  EXPECT_EQ(client.responses_dropped(), 5U);
}

TEST(ClientAndStrangers, an_answer_may_come_byte_by_byte_or_within_a_batch) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    for (const char byte : result("1")) peer.send({&byte, 1});
    peer.line();
    peer.send("[" + result("2") + "]");
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(client.call<int>("a"), 19);
  EXPECT_EQ(client.call<int>("a"), 19);
}

TEST(ClientAndStrangers, a_malformed_answer_is_an_error_of_that_call) {
  for (const std::string_view answer :
       {R"({"jsonrpc":"2.0","result":1,"error":{"code":1,"message":""},"id":1})", R"({"result":19,"id":1})",
        R"({"jsonrpc":"2.0","error":"no object","id":1})", R"({"jsonrpc":"2.0","error":{"message":"no code"},"id":1})",
        R"({"jsonrpc":"2.0","error":{"code":1.5,"message":""},"id":1})"}) {
    const ScriptedServer server{[answer](RawPeer peer) {
      peer.line();
      peer.send(std::string{answer} + "\n");
      peer.line();
      peer.send(result("2"));
      peer.line();
    }};
    Client client{server.uri()};
    const Error error = client.try_call<int>("a").error();
    EXPECT_EQ(error.code(), -32600) << answer;
    EXPECT_EQ(error.data(), R"({"reason":"the response is malformed","origin":"local","delivered":"maybe"})") << answer;
    EXPECT_EQ(client.call<int>("a"), 19);
  }
}

TEST(ClientAndStrangers, what_cannot_be_understood_ends_the_connection_and_the_call_with_it) {
  for (const std::string_view answer : {"HTTP/1.1 400 Bad Request\r\n\r\n", "{\"jsonrpc\":}\n", "{\"result\":1}\n",
                                        "{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":{}}\n", "\x16\x03\x01"}) {
    const ScriptedServer server{[answer](RawPeer peer) {
      peer.line();
      peer.send(answer);
      peer.all();
    }};
    Client client{server.uri()};
    const auto result = client.try_call<int>("a");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), -32001) << answer;
    EXPECT_NE(result.error().message().find("no JSON-RPC"), std::string::npos) << result.error().message();
    EXPECT_NE(result.error().data().find(R"("delivered":"maybe")"), std::string::npos);
  }
}

TEST(ClientAndStrangers, an_error_without_an_id_belongs_to_the_only_call_there_is) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse error\"},\"id\":null}\n");
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(client.try_call<int>("a").error().code(), -32700);
}

TEST(ClientAndStrangers, an_error_without_an_id_is_blamed_on_no_call_where_it_may_be_a_notification_s) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.line();
    peer.send("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"Invalid Request\"},\"id\":null}\n");
    peer.send(result("1"));
    peer.line();
  }};
  Client client{server.uri()};
  client.notify("a");
  EXPECT_EQ(client.call<int>("a"), 19);
  EXPECT_EQ(client.responses_dropped(), 1U);
}

TEST(ClientAndStrangers, a_server_that_closes_or_resets_ends_the_call) {
  for (const bool reset : {false, true}) {
    const ScriptedServer server{[reset](RawPeer peer) {
      peer.line();
      if (reset) peer.reset();
    }};
    Client client{server.uri()};
    try {
      client.call<int>("a");
      FAIL();
    } catch (const ConnectionError& error) {
      EXPECT_FALSE(error.safe_to_retry());
    }
  }
}

TEST(ClientAndStrangers, a_call_of_the_server_is_answered_while_ours_waits) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"theirs\",\"id\":\"s\"}\n");
    EXPECT_EQ(peer.line(),
              "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32601,\"message\":\"Method not found\"},\"id\":\"s\"}");
    peer.send(result("1"));
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(client.call<int>("a"), 19);
}

}  // namespace
}  // namespace wirecall::net
