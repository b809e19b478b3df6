// `wirecall reply` as a user runs it, at a broker that is a process of its own.
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.hpp"
#include "tests/cli/broker_tool.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/folder.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::cli {
namespace {

class Reply : public BrokerTool {
 protected:
  class Provider : public Staying {
   public:
    Provider(std::vector<std::string> words, const std::string& url)
        : Staying(std::move(words), url, "wirecall: provides ") {}
  };
  Provider provider(std::vector<std::string> words) {
    words.insert(words.begin(), "reply");
    return {std::move(words), url_};
  }
  std::string call(std::vector<std::string> words) {
    words.insert(words.begin(), "call");
    return output(std::move(words));
  }
  static std::string request(int id, const std::string& method) {
    return R"({"jsonrpc":"2.0","method":")" + method + R"(","id":)" + std::to_string(id) + "}\n";
  }
};

TEST_F(Reply, call_all_prints_what_each_provider_says) {
  const Staying first{{"reply", "greet", "1", "--client-id", "one"}, url_, "provides"};
  const Staying second{{"reply", "greet", "2", "--client-id", "two"}, url_, "provides"};
  EXPECT_EQ(run({"call", "--all", "greet"}).output, R"([{"client":"one","result":1},{"client":"two","result":2}])"
                                                    "\n");
  const Ended wrong = run({"call", "--all", "nothing", "--json"});
  EXPECT_TRUE(wrong.output.starts_with("{\"error\":{\"code\":-32601")) << wrong.output;
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ(run({"call", "--all", "--to", "one", "greet"}).status, 2);
}

TEST(ReplyTapAndSub, say_that_a_server_asks_who_calls) {
  const net::Folder folder;
  const std::string path = folder.path + "/principals.json";
  std::ofstream{path} << R"([{"name":"ada","tokens":["lab-secret"],"call":[">"],"provide":[">"],"admin":true}])";
  Process guarded{{"serve", "--port", "0", "--principals-file", path}};
  const std::string url = "tcp://127.0.0.1:" + std::to_string(port_of(guarded));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"reply", "greet", "1"}, {"tap"}, {"sub", "news"}, {"tap", "--token", "wrong"}}) {
    const Ended ended = run(words, url);
    EXPECT_EQ(ended.status, 1) << words[0];
    EXPECT_TRUE(ended.error.starts_with("error -32004:")) << ended.error;
    EXPECT_TRUE(ended.error.contains("--token") && ended.error.contains("$WIRECALL_TOKEN")) << ended.error;
  }
}

TEST_F(Reply, says_why_it_is_kept_away_when_it_was_kicked) {
  Staying kicked{{"reply", "greet", "1", "--client-id", "one"}, url_, "provides greet"};
  EXPECT_EQ(run({"call", "rpc.kick", "one"}).output, "true\n");
  const std::string told = kicked.read_error_until("error -32003:");
  EXPECT_NE(told.find("connecting again"), std::string::npos) << told;
  EXPECT_EQ(told.find(" again: provides"), std::string::npos) << told;
  EXPECT_NE(kicked.read_error_until(" for a time").find("not let in again for a time"), std::string::npos);
}

class OfTheDemo : public BrokerTool {
 protected:
  OfTheDemo() : BrokerTool(std::vector<std::string>{"--demo"}) {}
};

TEST_F(OfTheDemo, ls_and_stats_agree_on_who_provides_a_method) {
  for (const std::string command : {"ls", "stats"}) {
    const auto told = nlohmann::json::parse(run({command, "--json"}).output);
    const nlohmann::json& methods = command == "ls" ? told : told.at("methods");
    EXPECT_EQ(methods.size(), 6U) << command;
    for (const nlohmann::json& method : methods) EXPECT_EQ(method.at("providers"), 1) << command << method;
  }
}

TEST_F(Reply, answers_by_its_template) {
  const Provider greet = provider({"greet", "Hello, {name}!"});
  EXPECT_EQ(call({"greet", "name=Ada"}), "\"Hello, Ada!\"\n");
  EXPECT_EQ(call({"greet", "Ada"}), "\"Hello, Ada!\"\n");
  const Provider negative = provider({"negative", "-5"});
  EXPECT_EQ(call({"negative"}), "-5\n");
  const Provider dashed = provider({"dashed", "--", "--{0}"});
  EXPECT_EQ(call({"dashed", "x"}), "\"--x\"\n");
  const Ended missing = run({"call", "greet"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.error, "error -32602: Invalid params: at name, expected any value, got nothing\n");
}

TEST_F(Reply, fills_its_template_in_either_encoding) {
  const Provider greet = provider({"greet", "Hello, {name}!", "--encoding", "msgpack"});
  EXPECT_EQ(call({"greet", "name=Ada"}), "\"Hello, Ada!\"\n");
  EXPECT_EQ(call({"greet", "name=Ada", "--encoding", "msgpack"}), "\"Hello, Ada!\"\n");
  const Provider same = provider({"same", "{0}", "--encoding", "msgpack"});
  EXPECT_EQ(call({"same", "[1,2.5,{\"a\":null}]"}), "[1,2.5,{\"a\":null}]\n");
  const Provider later = provider({"later", "{0}", "--delay", "1ms", "--encoding", "msgpack"});
  EXPECT_EQ(call({"later", "[1,true]"}), "[1,true]\n");
}

TEST_F(Reply, to_asks_the_provider_of_that_name_and_no_other) {
  const Provider left = provider({"where", "left", "--client-id", "left"});
  const Provider right = provider({"where", "right", "--client-id", "right"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(call({"where", "--to", "left"}), "\"left\"\n");
    EXPECT_EQ(call({"where", "--to", "right"}), "\"right\"\n");
  }
  const Ended nobody = run({"call", "where", "--to", "middle"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_NE(nobody.error.find("error -32001: "), std::string::npos) << nobody.error;
  EXPECT_EQ(run({"notify", "where", "--to", "left"}).status, 0);
}

TEST_F(Reply, a_call_waits_for_who_is_about_to_provide) {
  Process waiting{{"call", "late", "--wait", "50s"}, url_};
  // It has been refused once, at least.
  while (output({"call", "rpc.stats"}).find(R"("method_not_found":0)") != std::string::npos) {
  }
  const Provider late = provider({"late", "7"});
  EXPECT_EQ(waiting.line(), "7");
  EXPECT_EQ(waiting.wait(), 0);
  EXPECT_EQ(run({"call", "nobody", "--wait", "0"}).status, 1);
}

TEST_F(Reply, what_a_call_prints_is_one_line_by_http_as_well) {
  net::RawPeer provider{Endpoint{url_}};
  provider.send(R"({"jsonrpc":"2.0","method":"rpc.register","params":["pretty"],"id":1})"
                "\n");
  EXPECT_NE(provider.line().find("result"), std::string::npos);
  const auto printed = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"call", "pretty"});
    Process call{std::move(flags), "http://127.0.0.1:" + std::to_string(port_)};
    const std::string id = nlohmann::json::parse(provider.line()).at("id").dump();
    provider.send("{\"jsonrpc\":\"2.0\",\"result\":[1,\n2,\r\n3],\"id\":" + id + "}\n");
    std::string line = call.line();
    EXPECT_EQ(call.wait(), 0);
    return line;
  };
  EXPECT_EQ(printed({}), "[1, 2,  3]");
  EXPECT_EQ(printed({"--json"}), R"({"result":[1, 2,  3]})");
  EXPECT_NE(printed({"--raw"}).find("[1, 2,  3]"), std::string::npos);
}

TEST(ReplyAlone, a_call_waits_for_a_server_that_is_being_started) {
  const net::Folder folder;
  const std::string endpoint = folder.socket();
  EXPECT_EQ(run({"call", "sum", "1", "2", "--wait", "0"}, endpoint).status, 3);
  Process waiting{{"call", "sum", "1", "2", "--wait", "50s"}, endpoint};
  const Staying server{{"serve", "--demo", "--listen", endpoint}, {}, "calls.sock"};
  EXPECT_EQ(waiting.line(), "3");
  EXPECT_EQ(waiting.wait(), 0);
}

TEST_F(Reply, tells_its_parameters) {
  const Provider greet = provider({"greet", "{greeting}, {name}!", "--summary", "a friendly word"});
  const auto described = nlohmann::json::parse(call({"rpc.discover"})).at("methods").at(0);
  EXPECT_EQ(described.at("summary"), "a friendly word");
  EXPECT_EQ(described.at("params").at(0).at("name"), "greeting");
  EXPECT_EQ(described.at("params").at(1).at("name"), "name");
}

TEST_F(Reply, a_signal_ends_it_and_calls_it_has_are_answered) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Provider slow = provider({"slow", "done", "--delay", "300ms"});
    net::RawPeer caller{Endpoint{url_}};
    for (int id = 1; id <= 3; ++id) caller.send(request(id, "slow"));
    // They are at the provider once the broker has said that.
    while (nlohmann::json::parse(call({"rpc.methods"})).at(0).at("in_flight") != 3) {
    }
    slow.signal(signal);
    EXPECT_EQ(slow.wait(), 128 + signal);
    for (int id = 1; id <= 3; ++id)
      EXPECT_EQ(caller.line(), R"({"jsonrpc":"2.0","result":"done","id":)" + std::to_string(id) + "}");
    EXPECT_EQ(slow.rest_of_output(), "");
    EXPECT_EQ(slow.rest_of_error(), "wirecall: provides slow\n");
    caller.send(request(4, "slow"));
    EXPECT_NE(caller.line().find("-32601"), std::string::npos);
  }
}

TEST_F(Reply, no_call_is_lost_when_one_of_two_ends) {
  const Provider stays = provider({"which", "stays"});
  Provider goes = provider({"which", "goes"});
  net::RawPeer caller{Endpoint{url_}};
  std::string calls;
  for (int id = 0; id < 500; ++id) calls += request(id, "which");
  caller.send(calls);
  goes.signal(SIGTERM);
  caller.send(calls);
  for (int i = 0; i < 1000; ++i) {
    const std::string response = caller.line();
    EXPECT_NE(response.find("\"result\""), std::string::npos) << response;
  }
  EXPECT_EQ(goes.wait(), 128 + SIGTERM);
}

TEST_F(Reply, ends_after_so_many_calls) {
  Provider twice = provider({"twice", "yes", "--count", "2"});
  EXPECT_EQ(call({"twice"}), "\"yes\"\n");
  EXPECT_EQ(call({"twice"}), "\"yes\"\n");
  EXPECT_EQ(twice.wait(), 0);
}

TEST_F(Reply, says_how_it_is_to_be_called) {
  const Provider first =
      provider({"slow", "1", "--policy", "exclusive", "--concurrency", "1", "--queue", "1", "--delay", "1h"});
  EXPECT_EQ(nlohmann::json::parse(call({"rpc.methods"})).at(0).at("policy"), "exclusive");
  net::RawPeer caller{Endpoint{url_}};
  for (int id = 1; id <= 3; ++id) caller.send(request(id, "slow"));
  const std::string refused = caller.line();
  EXPECT_NE(refused.find("\"limit\":\"queue\""), std::string::npos) << refused;
  EXPECT_NE(refused.find("\"id\":3"), std::string::npos) << refused;
  EXPECT_EQ(run({"reply", "slow", "2"}).status, 1) << "it is exclusive";
}

TEST_F(Reply, a_call_that_is_given_up_is_not_waited_for) {
  Provider slow = provider({"slow", "1", "--delay", "1h"});
  EXPECT_EQ(run({"call", "slow", "--timeout", "50ms"}).status, 4);
  slow.signal(SIGTERM);
  EXPECT_EQ(slow.wait(), 128 + SIGTERM);
}

TEST_F(Reply, provides_again_where_the_broker_has_come_back) {
  Provider greet = provider({"greet", "hello", "--reconnect-min-ms", "5", "--reconnect-max-ms", "10"});
  server_.signal(SIGTERM);
  EXPECT_EQ(server_.wait(), 0);
  Process again{{"serve", "--port", std::to_string(port_)}};
  EXPECT_EQ(port_of(again), port_);
  while (nlohmann::json::parse(call({"rpc.methods"})).empty()) {
  }
  EXPECT_EQ(call({"greet"}), "\"hello\"\n");
}

TEST_F(Reply, exit_statuses) {
  EXPECT_EQ(run({"reply", "greet"}).status, 2);
  EXPECT_EQ(run({"reply", "greet", "{"}).status, 2);
  EXPECT_EQ(run({"reply", "greet", "a", "b"}).status, 2);
  EXPECT_EQ(run({"reply", "greet", "a", "--concurrency", "0"}).status, 2);
  EXPECT_EQ(run({"reply", "a b", "a"}).error,
            "wirecall: method name \"a b\" holds white space, a control byte, * or >\n");
  EXPECT_EQ(run({"reply", "rpc.a", "a"}).status, 2);
  EXPECT_EQ(run({"reply", "greet", "a", "--policy", "nearest"}).status, 1);
  const Ended by_http = run({"reply", "greet", "a", "--url", "http://127.0.0.1:" + std::to_string(port_)});
  EXPECT_EQ(by_http.status, 2);
  EXPECT_NE(
      by_http.error.find(": a server cannot call its clients by HTTP; name tcp://, tls://, ws://, wss:// or unix://"),
      std::string::npos)
      << by_http.error;
  EXPECT_EQ(run({"reply", "greet", "a", "--url", "tcp://127.0.0.1:1"}).status, 3);
  const SilentServer silent;
  EXPECT_EQ(cli::run({"reply", "greet", "a", "--timeout", "100ms"}, silent.url()).status, 4);
}

}  // namespace
}  // namespace wirecall::cli
