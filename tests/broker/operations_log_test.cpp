// What a broker writes to the log of what its clients do.
#include "broker/operations_log.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rpc/access.hpp"
#include "tests/broker/world.hpp"
#include "tests/codec/msgpack.hpp"
#include "wirecall/log.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::error_reply;
using test::id_of;
using test::notification;
using test::request;
using test::result_reply;
using test::World;
using Lines = std::vector<std::string>;

class OperationsLogTest : public testing::Test {
 protected:
  explicit OperationsLogTest(std::uint32_t calls_every = 3) : world{Limits{}, {.log_calls_every = calls_every}} {
    world.loop_context.log = &sink;
  }
  // What has been written since the last call, each without its time.
  Lines log() { return std::exchange(written, {}); }
  static std::string hello(const std::string& name) { return request("rpc.hello", R"({"name":")" + name + "\"}"); }

  Lines written;
  LogSink sink{[this](const LogRecord& record) {
    std::string line = format_log(LogFormat::human, record);
    written.push_back(line.substr(line.find(' ') + 1));
  }};
  World world;
  Client provider{world};
  Client caller{world};
};

TEST_F(OperationsLogTest, who_comes_and_goes_is_told) {
  static_cast<void>(caller.ask(hello("ada")));
  static_cast<void>(caller.ask(hello("ada")));
  EXPECT_EQ(log(), Lines{"info a client has said hello client=ada principal=\"\" protocol=\"\" tls=\"\""}) << "once";
  static_cast<void>(caller.ask(request("rpc.subscribe", R"(["news"])")));
  world.advance(1500ms);
  caller.leave();
  EXPECT_EQ(log(),
            Lines{"info a client has left client=ada principal=\"\" reason=finished connected_ms=1500 bytes_in=0 "
                  "bytes_out=0 methods=0 subscriptions=1"});
  provider.provide("add");
  static_cast<void>(log());
  provider.dispatcher->peer_ended();
  provider.leave();
  EXPECT_EQ(log(), Lines{"info a client has left client=\"\" principal=\"\" reason=finished connected_ms=0 bytes_in=0 "
                         "bytes_out=0 methods=1 subscriptions=0"})
      << "what it had, though it ended its side first";
  Client passing{world};
  static_cast<void>(passing.ask(request("rpc.subscribe", R"(["news"])")));
  static_cast<void>(passing.ask(request("rpc.unsubscribe", R"(["news"])")));
  passing.leave();
  EXPECT_EQ(log().size(), 1U);
  Client other{world};
  EXPECT_NE(other.ask(request("nothing")), "");
  other.leave();
  EXPECT_EQ(log(), Lines{}) << "of one that has said nothing of itself";
}

TEST_F(OperationsLogTest, what_is_provided_is_told_once_a_request) {
  static_cast<void>(provider.ask(hello("w")));
  static_cast<void>(log());
  provider.provide("add");
  EXPECT_EQ(provider.ask(request("rpc.register", R"({"methods":[{"method":"a"},{"method":"b"}]})")), result_reply("2"));
  EXPECT_EQ(provider.ask(request("rpc.unregister", R"({"methods":["a","none"]})")), result_reply("1"));
  EXPECT_EQ(provider.ask(request("rpc.unregister", R"({"methods":["none"]})")), result_reply("0"));
  EXPECT_EQ(log(), (Lines{"info a client provides methods client=w principal=\"\" method=add methods=1",
                          "info a client provides methods client=w principal=\"\" method=a methods=2",
                          "info a client provides methods no more client=w principal=\"\" method=a methods=1"}));
}

TEST_F(OperationsLogTest, who_is_kicked_or_comes_back_is_told) {
  const std::string reply = caller.ask(hello("ada"));
  static_cast<void>(provider.ask(hello("boss")));
  static_cast<void>(log());
  static_cast<void>(provider.ask(request("rpc.kick", R"(["nobody"])")));
  EXPECT_EQ(log(), Lines{});
  static_cast<void>(provider.ask(request("rpc.kick", R"(["ada"])")));
  EXPECT_EQ(log(), Lines{"info a client is kicked client=ada by=boss principal=\"\""});
  const std::string session = nlohmann::json::parse(reply).at("result").at("session");
  Client again{world};
  again.send(request("rpc.hello", R"({"resume":")" + session + "\"}"));
  const Lines lines = log();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "info a client has come back on another connection client=ada principal=\"\"");
  EXPECT_EQ(lines[1], "info a client has said hello client=ada principal=\"\" protocol=\"\" tls=\"\"");
  caller.leave();
  EXPECT_EQ(log(), Lines{}) << "the connection that it had left behind";
}

TEST_F(OperationsLogTest, one_call_of_so_many_is_told_with_how_it_was_answered) {
  static_cast<void>(provider.ask(hello("w")));
  static_cast<void>(caller.ask(hello("ada")));
  provider.provide("add");
  static_cast<void>(log());
  for (int i = 1; i <= 7; ++i) {
    caller.send(i < 6 ? request("add") : "[" + request("add") + "]");
    world.advance(250us);
    const std::string id = id_of(provider.received());
    provider.send(i < 6 ? result_reply("1", id) : error_reply(-5, "no", {}, id));
  }
  EXPECT_EQ(log(), (Lines{"debug a call was answered method=add client=ada provider=w us=250 answer=result one_of=3",
                          "debug a call was answered method=add client=\"\" provider=w us=250 answer=error one_of=3"}))
      << "whose caller is not known within a batch";
}

class WithoutCalls : public OperationsLogTest {
 protected:
  WithoutCalls() : OperationsLogTest(0) {}
};

TEST_F(WithoutCalls, no_call_is_told_where_that_is_wanted) {
  provider.provide("add");
  static_cast<void>(log());
  for (int i = 0; i < 5; ++i) {
    caller.send(request("add"));
    provider.send(result_reply("1", id_of(provider.received())));
  }
  EXPECT_EQ(log(), Lines{});
}

TEST_F(OperationsLogTest, calls_that_fail_here_are_told_with_the_reason) {
  static_cast<void>(caller.ask(hello("ada")));
  provider.provide("add", R"(,"concurrency":1,"queue":0)");
  static_cast<void>(log());
  const auto data = [](const std::string& reason, const std::string& delivered, const std::string& more = {}) {
    return R"( data="{\"reason\":\")" + reason + R"(\",\"origin\":\"local\",\"delivered\":\")" + delivered + R"(\")" +
           more + "}\"";
  };
  caller.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":10,"id":1})");
  caller.send(request("add", {}, "2"));
  EXPECT_EQ(log(), Lines{"warning a call has failed method=add client=ada principal=\"\" about=\"\" code=-32005 "
                         "error=\"Limit exceeded\"" +
                         data("too many calls wait for the provider", "no", R"(,\"limit\":\"queue\")")});
  world.advance(20ms);
  EXPECT_EQ(
      log(),
      Lines{"warning a call has failed method=add client=ada principal=\"\" about=\"\" code=-32002 error=Timeout" +
            data("the call was not answered in time", "maybe")});
  provider.send(result_reply("1", id_of(provider.sink->messages.front())));
  caller.send(request("add", {}, "3"));
  static_cast<void>(caller.ask(request("rpc.cancel", "[3]")));
  EXPECT_EQ(log(), Lines{}) << "as its caller wanted it";
  caller.send(R"({"jsonrpc":"2.0","method":"add","to":"nobody","id":4})");
  EXPECT_EQ(log(), Lines{"debug a call has failed method=add client=ada principal=\"\" about=\"\" code=-32001 error="
                         "\"Provider lost\"" +
                         data("no client of that name provides the method", "no")})
      << "who waits for it calls again and again";
  Client other{world};
  other.provide("sum");
  static_cast<void>(log());
  caller.send(request("sum", {}, "5"));
  other.leave();
  EXPECT_EQ(
      log().at(1),
      "warning a call has failed method=sum client=ada principal=\"\" about=\"\" code=-32001 error=\"Provider lost\"" +
          data("the provider has gone", "maybe"));
}

TEST_F(OperationsLogTest, requests_that_are_refused_are_told_without_what_was_sent) {
  EXPECT_NE(caller.ask(request("rpc.hello", R"({"token":12345678})")).find("-32602"), std::string::npos);
  EXPECT_EQ(log(), Lines{"warning a call has failed method=rpc.hello client=\"\" principal=\"\" about=\"\" code=-32602 "
                         "error=\"Invalid params\" "
                         "data=\"\""});
  EXPECT_NE(caller.ask(request("rpc.hello", R"({"resume":"secret"})")).find("-32004"), std::string::npos);
  const Lines lines = log();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].find("secret"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("there is no such session"), std::string::npos) << lines[0];
}

TEST_F(OperationsLogTest, who_is_not_let_in_is_told_with_where_it_comes_from) {
  world.loop_context.refusals = rpc::Refusals{&sink, &world.scheduler};
  world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "robot", .tokens = {"robot-token"}, .call = {}, .provide = {}, .publish = {}, .subscribe = {}}});
  caller.sink->source = "192.0.2.7";
  EXPECT_NE(caller.ask(request("rpc.hello", R"({"token":"hunter2"})")).find("-32004"), std::string::npos);
  EXPECT_EQ(log(), Lines{"warning a caller is not let in method=rpc.hello about=\"\" source=192.0.2.7 "
                         "reason=\"a token that is not known\" code=-32004"});
  EXPECT_NE(caller.ask(request("rpc.hello", R"({"name":"r2"})")).find("-32004"), std::string::npos);
  EXPECT_EQ(log(),
            Lines{"warning a caller is not let in method=rpc.hello about=\"\" source=192.0.2.7 reason=\"no token\" "
                  "code=-32004"});
  EXPECT_NE(caller.ask(request("add", "[1]")).find("-32004"), std::string::npos);
  EXPECT_EQ(log(), Lines{"warning a caller is not let in method=add about=\"\" source=192.0.2.7 reason=\"no token\" "
                         "code=-32004"});
}

TEST_F(OperationsLogTest, who_says_that_it_is_another_is_told_of_as_such) {
  world.loop_context.refusals = rpc::Refusals{&sink, &world.scheduler};
  const auto known = [](const char* name, const char* token) {
    return Principal{.name = name, .tokens = {token}, .call = {}, .provide = {}, .publish = {}, .subscribe = {}};
  };
  world.loop_context.services.authority = std::make_shared<const rpc::Authority>(
      std::vector<Principal>{known("robot", "robot-token"), known("desk", "desk-token")});
  static_cast<void>(caller.ask(request("rpc.hello", R"({"token":"robot-token"})")));
  static_cast<void>(log());
  EXPECT_NE(caller.ask(request("rpc.hello", R"({"token":"desk-token"})")).find("-32004"), std::string::npos);
  const Lines lines = log();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("reason=\"a token of another principal than before\""), std::string::npos) << lines[0];
}

TEST_F(OperationsLogTest, calls_that_reach_no_method_are_in_the_access_log) {
  world.registry.method("own", [] { return 1; });
  world.loop_context.services.call_log = &sink;
  const std::string begin = "info a call is answered method=";
  const std::string rest = " client=\"\" principal=\"\" us=0 outcome=error code=";
  static_cast<void>(caller.ask(request("nothing")));
  EXPECT_EQ(log(), Lines{begin + "nothing" + rest + "-32601"});
  static_cast<void>(caller.ask(R"({"jsonrpc":"2.0","method":"own","to":"nobody","id":1})"));
  EXPECT_EQ(log(), Lines{begin + "own" + rest + "-32001"});
  static_cast<void>(caller.ask(notification("nothing")));
  static_cast<void>(caller.ask(request("rpc.nothing")));
  static_cast<void>(caller.ask(request("rpc.ping")));
  EXPECT_EQ(log(), Lines{});
}

TEST_F(OperationsLogTest, refusals_name_who_is_refused_what) {
  world.registry.method("secret", [] { return 1; });
  world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "robot", .tokens = {"robot-token"}, .call = {"status"}, .provide = {}, .publish = {}, .subscribe = {}}});
  Client robot{world};
  static_cast<void>(robot.ask(request("rpc.hello", R"({"name":"r2","token":"robot-token"})")));
  static_cast<void>(log());
  const auto refused = [&](const std::string& text) {
    static_cast<void>(robot.ask(text));
    const Lines lines = log();
    EXPECT_EQ(lines.size(), 1U) << text;
    return lines.empty() ? std::string{} : lines[0];
  };
  const std::string who = " client=r2 principal=robot about=";
  EXPECT_TRUE(refused(request("rpc.publish", R"({"topic":"news.today","params":["12345678"]})"))
                  .starts_with("warning a call has failed method=rpc.publish" + who + "news.today code=-32003"));
  EXPECT_TRUE(refused(request("rpc.subscribe", R"(["a\u001b[31m\nb"])"))
                  .starts_with("warning a call has failed method=rpc.subscribe"));
  EXPECT_TRUE(refused(request("rpc.register", R"({"method":"arm.move"})"))
                  .starts_with("warning a call has failed method=rpc.register" + who + "arm.move code=-32003"));
  EXPECT_TRUE(refused(request("rpc.register", R"({"methods":[{"summary":"x","method":"arm.turn"},{"method":"b"}]})"))
                  .starts_with("warning a call has failed method=rpc.register" + who + "arm.turn code=-32003"));
  EXPECT_TRUE(refused(notification("rpc.kick", R"(["ada"])"))
                  .starts_with("warning a call has failed method=rpc.kick" + who + "ada code=-32003"));
  EXPECT_EQ(refused(request("secret")),
            "warning a call without a grant is refused method=secret client=r2 principal=robot");
}

TEST_F(OperationsLogTest, refusals_name_the_topic_whatever_its_encoding) {
  world.loop_context.refusals = rpc::Refusals{&sink, &world.scheduler};
  world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "robot", .tokens = {"robot-token"}, .call = {}, .provide = {}, .publish = {}, .subscribe = {}}});
  const auto about = [&](std::string_view publish) {
    Client robot{world};
    static_cast<void>(robot.ask(request("rpc.hello", R"({"name":"r2","token":"robot-token"})")));
    static_cast<void>(log());
    robot.send_msgpack(publish);
    const Lines lines = log();
    EXPECT_EQ(lines.size(), 1U);
    const std::string line = lines.empty() ? std::string{} : lines[0];
    const std::size_t at = line.find(" about=");
    return line.substr(at, line.find(" code=") - at);
  };
  EXPECT_EQ(about(packing::msgpack_of(request("rpc.publish", R"({"params":[1],"topic":"news.today"})"))),
            " about=news.today");
  EXPECT_EQ(about(packing::msgpack_of(request("rpc.publish", R"(["news.today",[1]])"))), " about=news.today");
  // The value is one that JSON has no form for: NaN.
  const std::string params = packing::with(R"({"topic":"news.today"})", "params", "91 cb 7f f8 00 00 00 00 00 00");
  EXPECT_EQ(about(packing::with(request("rpc.publish"), "params", packing::to_hex(params))), " about=news.today");
  EXPECT_EQ(about(packing::msgpack_of(request("rpc.publish", R"([7])"))), " about=\"\"");
  static_cast<void>(log());
  // Before anybody has said who it is.
  caller.send_msgpack(packing::msgpack_of(request("rpc.publish", R"({"topic":"news.today"})")));
  const Lines lines = log();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find(" about=news.today source="), std::string::npos) << lines[0];
}

TEST_F(OperationsLogTest, what_clients_cause_cannot_fill_it) {
  for (int i = 0; i < 50; ++i) static_cast<void>(caller.ask(request("rpc.unsubscribe", R"(["a"])")));
  EXPECT_EQ(log().size(), 10U);
  for (int i = 0; i < 500; ++i) {
    provider.provide("add");
    static_cast<void>(provider.ask(request("rpc.unregister", R"(["add"])")));
  }
  EXPECT_EQ(log().size(), 100U);
  world.advance(1s);
  static_cast<void>(caller.ask(request("rpc.unsubscribe", R"(["a"])")));
  EXPECT_EQ(log().at(0), "warning calls that have failed are left out records=40");
  provider.provide("add");
  EXPECT_EQ(log().at(0), "info clients that come and go are left out records=900");
}

TEST_F(OperationsLogTest, principals_are_told_and_never_what_they_show) {
  world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "robot", .tokens = {"robot-token"}, .call = {}, .provide = {}, .publish = {}, .subscribe = {}}});
  world.loop_context.refusals = rpc::Refusals{&sink, &world.scheduler};
  Client robot{world};
  const std::string reply = robot.ask(request("rpc.hello", R"({"name":"r2","token":"robot-token"})"));
  const std::string session = nlohmann::json::parse(reply).at("result").at("session");
  Client second{world};
  second.send(request("rpc.hello", R"({"name":"r2","token":"robot-token","resume":")" + session + "\"}"));
  Client stranger{world};
  stranger.send(request("rpc.hello", R"({"token":"robot-tokem"})"));
  second.send(request("rpc.register", R"(["add"])"));
  second.leave();
  const Lines lines = log();
  EXPECT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines.at(0), "info a client has said hello client=r2 principal=robot protocol=\"\" tls=\"\"");
  for (const std::string& line : lines) {
    EXPECT_EQ(line.find(session), std::string::npos) << line;
    EXPECT_EQ(line.find("robot-toke"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace wirecall
