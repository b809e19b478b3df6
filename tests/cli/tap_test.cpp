// `wirecall tap` as a user runs it, at a broker that is a process of its own.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.hpp"
#include "tests/cli/broker_tool.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::cli {
namespace {

class Tap : public BrokerTool {
 protected:
  class Tapping : public Staying {
   public:
    Tapping(std::vector<std::string> words, const std::string& url)
        : Staying(std::move(words), url, "wirecall: tapping ") {}
  };
  Tapping tap(std::vector<std::string> words) {
    words.insert(words.begin(), "tap");
    return {std::move(words), url_};
  }
};

TEST(TapLine, is_for_people) {
  EXPECT_EQ(tap_line(R"({"kind":"call","id":7,"method":"add","client":"ada","provider":"w","params":[1, 2.50]})"),
            "call #7 add ada -> w [1,2.50]");
  EXPECT_EQ(tap_line(R"({"kind":"call","id":7,"method":"add","client":null,"provider":null})"), "call #7 add - -> -");
  EXPECT_EQ(tap_line(R"({"kind":"call","id":7,"method":"add","client":"ada"})"), "call #7 add ada -> broker");
  EXPECT_EQ(
      tap_line(R"({"kind":"reply","id":7,"method":"add","client":"ada","provider":"w","ms":0.094,"result":null})"),
      "reply #7 add ada <- w 0.094 ms null");
  EXPECT_EQ(tap_line(R"({"kind":"reply","id":7,"method":"add","client":"ada","ms":1.000})"),
            "reply #7 add ada <- broker 1.000 ms");
  EXPECT_EQ(tap_line(R"({"kind":"reply","id":7,"method":"add","client":"ada","ms":1.000,"error":{"code":-1}})"),
            "reply #7 add ada <- broker 1.000 ms error {\"code\":-1}");
  EXPECT_EQ(tap_line(R"({"kind":"event","method":"news","client":"a\u001b[2J","delivered":2,"params":{"a":1}})"),
            "event news a\\x1b[2J -> 2 {\"a\":1}");
  EXPECT_EQ(
      tap_line(
          R"({"kind":"notification","method":"log","client":null,"provider":"w","params_begin":"[\"x","bytes":5000})"),
      "notification log - -> w [\"x... (5000 bytes)");
  EXPECT_EQ(tap_line("{}"), "  - -> broker") << "from a broker that is another";
}

TEST_F(Tap, prints_what_passes) {
  Staying worker{{"reply", "greet", "Hello, {name}!", "--client-id", "worker"}, url_, "provides greet"};
  Tapping lines = tap({});
  Tapping some = tap({"other.*", "--json", "--count", "2"});
  Tapping json = tap({"greet", "--json", "--count", "2"});
  EXPECT_EQ(output({"call", "greet", "name=Ada", "--client-id", "ada"}), "\"Hello, Ada!\"\n");
  EXPECT_EQ(lines.line(), R"(call #1 greet ada -> worker {"name":"Ada"})");
  const std::string reply = lines.line();
  EXPECT_TRUE(reply.starts_with("reply #1 greet ada <- worker ")) << reply;
  EXPECT_TRUE(reply.ends_with(" ms \"Hello, Ada!\"")) << reply;
  EXPECT_EQ(
      json.line(),
      R"({"kind":"call","id":1,"method":"greet","client":"ada","protocol":"json","provider":"worker","params":{"name":"Ada"}})");
  EXPECT_EQ(nlohmann::json::parse(json.line()).at("result"), "Hello, Ada!");
  EXPECT_EQ(json.wait(), 0);
  net::RawPeer peer{Endpoint{url_}};
  peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"news\",\"params\":{ \"a\":\n [1,\n 2] }}\n");
  EXPECT_EQ(lines.line(), R"(event news - -> 0 {"a":[1,2]})");
  some.signal(SIGINT);
  EXPECT_EQ(some.wait(), 130);
  EXPECT_EQ(some.rest_of_output(), "");
}

TEST_F(Tap, exit_statuses) {
  EXPECT_EQ(run({"tap", "a..b"}).error,
            "wirecall: a..b is no pattern: words between dots, any of which may be * and the last one >, without white "
            "space\n");
  EXPECT_EQ(run({"tap", "a", "b"}).status, 2);
  EXPECT_EQ(run({"tap", "--url", "http://127.0.0.1:" + std::to_string(port_)}).status, 2);
  EXPECT_EQ(run({"tap", "--url", "tcp://127.0.0.1:1"}).status, 3);
  const PlainServer server;
  const Ended ended = cli::run({"tap"}, server.url());
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("rpc.tap is refused"), std::string::npos) << ended.error;
  EXPECT_NE(ended.error.find("the server is no broker"), std::string::npos) << ended.error;
}

}  // namespace
}  // namespace wirecall::cli
