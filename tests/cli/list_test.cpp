// `wirecall ls`, `clients` and `describe` as a user runs them, at a broker that is a process of its own.
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

class List : public BrokerTool {
 protected:
  Staying provider(std::vector<std::string> words) {
    words.insert(words.begin(), "reply");
    return {std::move(words), url_, "wirecall: provides "};
  }
};

TEST_F(List, methods_are_a_table) {
  const Staying greet = provider({"greet", "Hello, {name}!", "--summary", "a friendly word"});
  const Staying add = provider({"gpu.add", "{a}{b}", "--policy", "exclusive"});
  EXPECT_EQ(output({"ls"}),
            "METHOD   POLICY          PROVIDERS  IN FLIGHT  WAITING  SUMMARY\n"
            "gpu.add  exclusive               1          0        0\n"
            "greet    least_inflight          1          0        0  a friendly word\n");
  EXPECT_EQ(output({"ls", "gpu.*"}),
            "METHOD   POLICY     PROVIDERS  IN FLIGHT  WAITING  SUMMARY\n"
            "gpu.add  exclusive          1          0        0\n");
}

TEST_F(List, methods_are_json_for_machines) {
  const Staying greet = provider({"greet", "Hello, {name}!"});
  const Staying add = provider({"gpu.add", "{a}{b}"});
  EXPECT_EQ(output({"ls", "--json"}), output({"call", "rpc.methods"}));
  const auto some = nlohmann::json::parse(output({"ls", "gpu.>", "--json"}));
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some.at(0).at("name"), "gpu.add");
  EXPECT_EQ(output({"ls", "nothing", "--json"}), "[]\n");
}

TEST_F(List, nothing_to_list_is_told_on_stderr) {
  EXPECT_EQ(output({"ls"}), "wirecall: there are no methods\n");
  EXPECT_EQ(output({"ls", "gpu.*"}), "wirecall: there is no method gpu.*\n");
  EXPECT_EQ(output({"clients"}), "wirecall: no client has a name, provides or subscribes\n");
  EXPECT_EQ(output({"ls", "--json"}), "[]\n");
}

TEST_F(List, clients_are_a_table_or_json) {
  const Staying greet = provider({"greet", "hello", "--client-id", "ada"});
  const std::string table = output({"clients"});
  EXPECT_TRUE(table.starts_with("CLIENT  METHODS  SUBSCRIPTIONS  IN FLIGHT  CONNECTED  SILENT")) << table;
  EXPECT_NE(table.find("\nada           1              0          0"), std::string::npos) << table;
  const auto clients = nlohmann::json::parse(output({"clients", "--json"}));
  ASSERT_EQ(clients.size(), 1U);
  EXPECT_EQ(clients.at(0).at("name"), "ada");
}

TEST_F(List, a_method_is_described) {
  net::RawPeer provider{Endpoint{url_}};
  provider.send(
      R"({"jsonrpc":"2.0","id":1,"method":"rpc.register","params":{"method":"hire","summary":"a new one","params":)"
      R"([{"name":"who","schema":{"properties":{"name":{"type":"string"},"born":{"type":"integer"}},"required":["name"]},)"
      R"("required":true},{"name":"until","description":"a year","schema":{"type":"integer"}}],)"
      R"("result":{"name":"result","schema":{"type":"boolean"}}}})"
      "\n");
  EXPECT_EQ(provider.line(), R"({"jsonrpc":"2.0","result":1,"id":1})");
  EXPECT_EQ(output({"describe", "hire"}),
            "hire(who, until?) -> boolean\n"
            "a new one\n"
            "\n"
            "PARAM  TYPE\n"
            "who    {name: string, born?: integer}\n"
            "until  integer                         optional  a year\n"
            "\n"
            "Policy least_inflight, 1 provider; 0 calls in flight, 0 waiting\n"
            "wirecall call hire who=…\n");
  const auto method = nlohmann::json::parse(output({"describe", "hire", "--json"}));
  EXPECT_EQ(method.at("name"), "hire");
  EXPECT_EQ(method.at("params").at(1).at("name"), "until");
}

TEST_F(List, a_method_that_is_not_there_is_an_error_with_a_guess) {
  const Staying greet = provider({"greet", "hello"});
  const Ended ended = run({"describe", "great"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.output, "");
  EXPECT_EQ(ended.error, "error -32601: Method not found: did you mean 'greet'?\n");
  EXPECT_EQ(run({"describe", "something"}).error, "error -32601: Method not found\n");
}

TEST_F(List, what_others_say_of_themselves_steers_no_terminal) {
  net::RawPeer provider{Endpoint{url_}};
  provider.send(
      R"({"jsonrpc":"2.0","id":1,"method":"rpc.register","params":{"method":"x","summary":"\u001b[31m","params":)"
      R"([{"name":"\u001b[32m","schema":{"const":"\u009b"}}]}})"
      "\n");
  EXPECT_EQ(provider.line(), R"({"jsonrpc":"2.0","result":1,"id":1})");
  for (const std::string& text : {output({"ls"}), output({"describe", "x"})}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << text;
  }
}

TEST_F(List, exit_statuses) {
  for (const std::string command : {"ls", "clients", "describe"}) {
    const std::vector<std::string> words =
        command == "describe" ? std::vector<std::string>{command, "greet"} : std::vector<std::string>{command};
    const auto with = [&words](std::vector<std::string> more) {
      more.insert(more.begin(), words.begin(), words.end());
      return more;
    };
    EXPECT_EQ(run(with({"--nonsense"})).status, 2);
    EXPECT_EQ(run(with({"a", "b", "c"})).status, 2);
    EXPECT_EQ(run(with({"--url", "tcp://127.0.0.1:1"})).status, 3);
    const SilentServer silent;
    EXPECT_EQ(cli::run(with({"--timeout", "100ms"}), silent.url()).status, 4);
  }
  EXPECT_EQ(run({"ls", "a*"}).status, 2);
  EXPECT_EQ(run({"describe"}).status, 2);
  const PlainServer server;
  EXPECT_EQ(cli::run({"ls"}, server.url()).status, 0);
  EXPECT_EQ(cli::run({"clients"}, server.url()).status, 1) << "it is no broker";
}

}  // namespace
}  // namespace wirecall::cli
