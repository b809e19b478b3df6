// `wirecall stats` as a user runs it, at a broker that is a process of its own, and the reading of its numbers.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/view/broker_stats.hpp"
#include "tests/cli/broker_tool.hpp"

namespace wirecall::cli {
namespace {

TEST(BrokerStats, are_read_by_name) {
  const BrokerStats stats = BrokerStats::parse(
      R"({"uptime_ms":1500,"counters":{"calls":7,"errors":{"timeout":2,"other":3}},"methods":[{"name":"a","calls":5,)"
      R"("errors":1,"in_flight":2,"p50_us":83.5,"max_us":90}]})");
  EXPECT_EQ(stats.uptime.count(), 1500);
  EXPECT_EQ(stats.counter("calls"), 7);
  EXPECT_EQ(stats.counter("errors.other"), 3);
  EXPECT_EQ(stats.counter("nothing"), 0);
  EXPECT_EQ(stats.errors(), 5);
  ASSERT_EQ(stats.methods.size(), 1U);
  EXPECT_EQ(stats.methods[0].name, "a");
  EXPECT_EQ(stats.methods[0].in_flight, 2);
  EXPECT_EQ(stats.methods[0].p50_us, 83.5);
  EXPECT_EQ(stats.methods[0].waiting, 0) << "which was not there";
}

TEST(BrokerStats, of_what_is_something_else_are_none) {
  for (const std::string text : {"", "[]", "null", R"({"counters":[1],"methods":{"a":1}})", R"({"methods":[7]})"}) {
    const BrokerStats stats = BrokerStats::parse(text);
    EXPECT_EQ(stats.uptime.count(), 0);
    EXPECT_TRUE(stats.counters.empty());
  }
}

class StatsTool : public BrokerTool {};

TEST_F(StatsTool, prints_counters_and_methods) {
  const Staying greet{{"reply", "greet", "hello"}, url_, "wirecall: provides "};
  EXPECT_EQ(output({"call", "greet"}), "\"hello\"\n");
  EXPECT_EQ(output({"call", "greet"}), "\"hello\"\n");
  const std::string text = output({"stats"});
  EXPECT_TRUE(text.starts_with("up ")) << text;
  EXPECT_NE(text.find("\ncalls_relayed                 2\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("errors."), std::string::npos) << "there were none";
  EXPECT_NE(text.find("\nMETHOD  CALLS  ERRORS  PROVIDERS  IN FLIGHT  WAITING  "), std::string::npos) << text;
  EXPECT_NE(text.find("\ngreet       2       0          1          0        0  "), std::string::npos) << text;
  const auto json = nlohmann::json::parse(output({"stats", "--json"}));
  EXPECT_EQ(json.at("counters").at("calls_relayed"), 2);
  EXPECT_EQ(json.at("methods").at(0).at("calls"), 2);
}

TEST_F(StatsTool, tells_the_errors_that_there_were) {
  EXPECT_EQ(run({"call", "nothing"}).status, 1);
  EXPECT_NE(output({"stats"}).find("\nerrors.method_not_found"), std::string::npos);
}

TEST(PlainServerTool, whatever_asks_for_a_broker_is_told_in_the_same_words_that_there_is_none) {
  const PlainServer server;
  const std::string http = "http" + server.url().substr(std::string_view{"tcp"}.size()) + "/rpc";
  const std::vector<std::vector<std::string>> all{{"stats"},
                                                  {"clients"},
                                                  {"pub", "news", "1"},
                                                  {"call", "--all", "add"},
                                                  {"call", "rpc.stats"},
                                                  {"call", "--all", "add", "--url", http}};
  for (const std::vector<std::string>& words : all) {
    const Ended ended = cli::run(words, server.url());
    EXPECT_EQ(ended.error, "error -32601: Method not found; the server is no broker\n")
        << testing::PrintToString(words);
    EXPECT_EQ(ended.output, "");
    EXPECT_EQ(ended.status, 1);
  }
  EXPECT_EQ(cli::run({"call", "--all", "--json", "add"}, server.url()).output,
            R"({"error":{"code":-32601,"message":"Method not found; the server is no broker"}})"
            "\n");
  EXPECT_EQ(cli::run({"sub", "news"}, server.url()).error,
            "error -32601: news is refused: Method not found; the server is no broker\n");
  EXPECT_EQ(cli::run({"call", "add"}, server.url()).error, "error -32601: Method not found\n");
}

TEST_F(StatsTool, a_broker_where_nobody_provides_a_method_is_one) {
  const std::string http = "http" + url_.substr(std::string_view{"tcp"}.size()) + "/rpc";
  for (const std::string& url : {url_, http})
    EXPECT_EQ(run({"call", "--all", "nothing", "--url", url}).error, "error -32601: Method not found\n");
}

TEST_F(StatsTool, exit_statuses) {
  EXPECT_EQ(run({"stats", "x"}).status, 2);
  EXPECT_EQ(run({"stats", "--url", "tcp://127.0.0.1:1"}).status, 3);
  const SilentServer silent;
  EXPECT_EQ(cli::run({"stats", "--timeout", "100ms"}, silent.url()).status, 4);
  const PlainServer server;
  EXPECT_EQ(cli::run({"stats"}, server.url()).status, 1) << "it is no broker";
}

}  // namespace
}  // namespace wirecall::cli
