// Servers that ask who a peer is: over real sockets, by clients of ours, from a file, and while they run.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

Principal user(std::string name, std::string token, std::vector<std::string> call) {
  return {.name = std::move(name),
          .tokens = {std::move(token)},
          .call = std::move(call),
          .provide = {"provided"},
          .publish = {},
          .subscribe = {"news"},
          .admin = false};
}

ClientOptions with_token(std::string token) {
  ClientOptions options;
  options.token = std::move(token);
  return options;
}

class Access : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    Options given = options(1);
    given.principals = {user("a", "token-a", {"one", "provided"}), user("b", "token-b", {"two"})};
    broker_.emplace(std::move(given));
    broker_->method("one", [] { return 1; });
    broker_->method("two", [] { return 2; });
    endpoint_.emplace(broker_->listen("tcp://127.0.0.1:0"));
    running_.emplace(*broker_);
  }
  [[nodiscard]] std::string http() const { return "http://" + endpoint_->authority() + "/rpc"; }

  std::optional<Broker> broker_;
  std::optional<Endpoint> endpoint_;
  std::optional<RunningServer> running_;
};

TEST_P(Access, who_says_something_before_a_token_is_refused_and_the_connection_closed) {
  RawPeer stranger{*endpoint_};
  stranger.send(
      "{\"jsonrpc\":\"2.0\",\"method\":\"one\",\"id\":1}\n{\"jsonrpc\":\"2.0\",\"method\":\"one\",\"id\":2}\n");
  const std::string all = stranger.all();
  EXPECT_NE(all.find("\"code\":-32004"), std::string::npos) << all;
  EXPECT_EQ(all.find("\"id\":2"), std::string::npos) << all;
}

TEST_P(Access, a_batch_before_a_token_is_refused_by_each_id) {
  RawPeer stranger{*endpoint_};
  stranger.send(R"([{"jsonrpc":"2.0","method":"one","id":1},{"jsonrpc":"2.0","method":"one"},)"
                R"({"jsonrpc":"2.0","method":"two","id":"x"}])"
                "\n");
  const std::string all = stranger.all();
  const std::string refusal = R"({"jsonrpc":"2.0","error":{"code":-32004,)";
  EXPECT_TRUE(all.starts_with("[" + refusal)) << all;
  EXPECT_NE(all.find("},\"id\":1}," + refusal), std::string::npos) << all;
  EXPECT_NE(all.find("},\"id\":\"x\"}]"), std::string::npos) << all;
  EXPECT_EQ(all.find("\"id\":null"), std::string::npos) << all;
}

TEST_P(Access, a_client_of_ours_shows_its_token_on_a_connection_and_by_http) {
  for (const std::string& endpoint : {endpoint_->uri(), http()}) {
    Client a{endpoint, with_token("token-a")};
    EXPECT_EQ(a.call<int>("one"), 1) << endpoint;
    EXPECT_EQ(a.try_call<int>("two").error().code(), -32601) << endpoint;
    Client b{endpoint, with_token("token-b")};
    EXPECT_EQ(b.call<int>("two"), 2) << endpoint;
  }
}

TEST_P(Access, a_client_of_ours_that_is_not_known_learns_it_at_once) {
  for (const std::string& endpoint : {endpoint_->uri(), http()}) {
    Client unknown{endpoint, with_token("wrong")};
    EXPECT_EQ(unknown.try_call<int>("one").error().code(), -32004) << endpoint;
    EXPECT_EQ(unknown.try_call<int>("one").error().code(), -32004) << endpoint << ", again";
  }
  for (const std::string& endpoint : {endpoint_->uri(), http()}) {
    Client silent{endpoint};
    EXPECT_EQ(silent.try_call<int>("one").error().code(), -32004) << endpoint;
  }
}

TEST_P(Access, a_provider_shows_it_before_it_registers) {
  Client provider{endpoint_->uri(), with_token("token-b")};
  provider.provide("provided", [](int n) { return n + 1; });
  provider.connect();
  Client a{endpoint_->uri(), with_token("token-a")};
  EXPECT_EQ(a.call<int>("provided", 4), 5);
}

TEST_P(Access, a_provider_or_subscriber_that_is_not_known_learns_why) {
  Client provider{endpoint_->uri(), with_token("wrong")};
  std::promise<int> told;
  provider.on_refused([&](std::string_view name, const Error& error) {
    EXPECT_EQ(name, "provided");
    told.set_value(error.code());
  });
  provider.provide("provided", [](int n) { return n + 1; });
  EXPECT_EQ(told.get_future().get(), -32004);
  provider.on_refused(nullptr);
  Client subscriber{endpoint_->uri(), with_token("wrong")};
  const Subscription news = subscriber.subscribe("news", [](const Event&) {});
  try {
    subscriber.connect();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32004) << error.message();
  }
}

TEST_P(Access, those_whose_token_is_removed_are_closed_and_others_go_on) {
  RawPeer a{*endpoint_};
  a.send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.hello\",\"params\":{\"token\":\"token-a\"},\"id\":1}\n");
  EXPECT_NE(a.line().find("\"result\""), std::string::npos);
  RawPeer b{*endpoint_};
  b.send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.hello\",\"params\":{\"token\":\"token-b\"},\"id\":1}\n");
  EXPECT_NE(b.line().find("\"result\""), std::string::npos);
  EXPECT_THROW(broker_->set_principals({user("", "x", {})}), std::invalid_argument);
  try {
    broker_->set_principals({user("a", "token-a", {"one", "a secret"})});
    ADD_FAILURE() << "what is no pattern is taken for one";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string_view{error.what()}.find("call of a, entry 2, is no name and no pattern"), std::string::npos)
        << error.what();
  }
  broker_->set_principals({user("b", "token-b", {"two"}), user("c", "token-c", {"one"})});
  EXPECT_EQ(a.all(), "");
  b.send("{\"jsonrpc\":\"2.0\",\"method\":\"two\",\"id\":2}\n");
  EXPECT_EQ(b.line(), R"({"jsonrpc":"2.0","result":2,"id":2})");
  Client c{endpoint_->uri(), with_token("token-c")};
  EXPECT_EQ(c.call<int>("one"), 1);
}

// A token as others are, behind as many bytes as make a message of that size.
std::string hello_of(std::size_t bytes) {
  const std::string begin = R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"token-a","x":")";
  const std::string end = "\"},\"id\":1}";
  return begin + std::string(bytes - begin.size() - end.size(), 'x') + end + "\n";
}

TEST_P(Access, before_it_has_said_who_it_is_a_message_has_at_most_64_KiB) {
  constexpr std::size_t kMost = 64 * 1024;
  RawPeer a{*endpoint_};
  a.send(hello_of(kMost));
  EXPECT_NE(a.line().find("\"result\""), std::string::npos);
  a.send(hello_of(4 * kMost));
  EXPECT_NE(a.line().find("\"result\""), std::string::npos) << "now it may send as much as others";
  RawPeer b{*endpoint_};
  b.send(hello_of(kMost + 1));
  EXPECT_NE(b.line().find("\"code\":-32006"), std::string::npos);
  EXPECT_EQ(b.all(), "");
}

TEST_P(Access, who_has_not_said_yet_who_it_is_may_still_do_so_after_a_reload) {
  RawPeer early{*endpoint_};
  early.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})"
             "\n");
  EXPECT_EQ(early.line(), R"({"jsonrpc":"2.0","result":"pong","id":1})");
  broker_->set_principals({user("a", "token-a", {"one"})});
  early.send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"token-a"}})"
             "\n"
             R"({"jsonrpc":"2.0","method":"one","id":2})"
             "\n");
  EXPECT_EQ(early.line(), R"({"jsonrpc":"2.0","result":1,"id":2})");
}

TEST_P(Access, grants_in_another_order_are_the_same_after_a_reload) {
  broker_->set_principals({user("a", "token-a", {"one", "two", "one"})});
  RawPeer a{*endpoint_};
  a.send(hello_of(100));
  EXPECT_NE(a.line().find("\"result\""), std::string::npos);
  broker_->set_principals({user("a", "token-a", {"two", "one"})});
  a.send(R"({"jsonrpc":"2.0","method":"one","id":2})"
         "\n");
  EXPECT_EQ(a.line(), R"({"jsonrpc":"2.0","result":1,"id":2})");
}

INSTANTIATE_TEST_SUITE_P(Each, Access, kEachEngine, engine_name);

class PrincipalsFile : public testing::Test {
 protected:
  ~PrincipalsFile() override { std::filesystem::remove(path_); }
  Options with(std::string_view text) {
    std::ofstream{path_} << text;
    Options options;
    options.principals_file = path_;
    return options;
  }
  std::string why(std::string_view text) {
    try {
      static_cast<void>(principals_of(with(text)));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "nothing";
  }

  const std::string path_ =
      testing::TempDir() + "principals-" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
};

TEST_F(PrincipalsFile, is_read_besides_those_that_are_given) {
  Options options = with(R"([{"name":"a","tokens":["x","y"],"call":["b.>"],"admin":true},{"name":"b","tokens":[]}])");
  options.principals = {user("c", "z", {})};
  const std::vector<Principal> all = principals_of(options);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].name, "c");
  EXPECT_EQ(all[1].tokens, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(all[1].call, std::vector<std::string>{"b.>"});
  EXPECT_TRUE(all[1].admin);
  EXPECT_EQ(all[2].name, "b");
  EXPECT_FALSE(all[2].admin);
}

TEST_F(PrincipalsFile, that_is_wrong_is_refused_without_a_word_of_tokens) {
  for (const std::string_view text :
       {"", "{}", "[", "[]", R"([{"tokens":["secret"]}])", R"([{"name":"a","tokens":"secret"}])",
        R"([{"name":"a","tokens":["secret"],"call":"b"}])", R"([{"name":1,"tokens":["secret"]}])", R"(["secret"])",
        R"([{"name":"a","tokens":["secret"],"cal":["b"]}])"}) {
    const std::string said = why(text);
    EXPECT_NE(said, "nothing") << text;
    EXPECT_NE(said.find(path_), std::string::npos) << said;
    EXPECT_EQ(said.find("secret"), std::string::npos) << said;
  }
  EXPECT_NE(why("[{\"name\":\"a\",\n \"call\":[1,}]").find("is no JSON from line 2, column 12 on"), std::string::npos)
      << why("[{\"name\":\"a\",\n \"call\":[1,}]");
  EXPECT_NE(why("[{\"name\":\"a\"").find("is no JSON from line 1, column 13 on: it ends too early"), std::string::npos)
      << why("[{\"name\":\"a\"");
  EXPECT_NE(why("[] []").find("is no JSON from line 1, column 4 on"), std::string::npos) << why("[] []");
  EXPECT_NE(why(R"([{"name":"a","cal":["b"]}])").find("principal 1: cal is none of name, tokens"), std::string::npos);
  Options none;
  none.principals_file = path_ + ".none";
  EXPECT_THROW(Server{none}, std::invalid_argument);
  Options twice = with(R"([{"name":"a","tokens":["x"]},{"name":"a","tokens":["y"]}])");
  EXPECT_THROW(Server{twice}, std::invalid_argument);
}

TEST_F(PrincipalsFile, that_others_can_read_is_warned_of) {
  namespace fs = std::filesystem;
  Options options = with(R"([{"name":"a","tokens":["secret"]}])");
  std::vector<std::string> lines;
  options.log = [&](const LogRecord& record) { lines.push_back(format_log(LogFormat::human, record)); };
  fs::permissions(path_, fs::perms{0640});
  Server{options};
  EXPECT_TRUE(lines.empty()) << lines.front();
  for (const unsigned mode : {0644U, 0602U, 0620U}) {
    fs::permissions(path_, fs::perms{mode});
    lines.clear();
    Server{options};
    ASSERT_EQ(lines.size(), 1U) << mode;
    EXPECT_NE(lines[0].find("can read or change the principals_file"), std::string::npos) << lines[0];
    EXPECT_NE(lines[0].find("chmod 600"), std::string::npos) << lines[0];
    EXPECT_NE(lines[0].find(path_), std::string::npos) << lines[0];
    EXPECT_EQ(lines[0].find("secret"), std::string::npos) << lines[0];
  }
}

TEST(ClientToken, that_cannot_be_shown_is_refused) {
  for (const std::string token : {"a b", "a\r\nHost: b", "\xc3\xa4"})
    EXPECT_THROW(Client("tcp://127.0.0.1:1", with_token(token)), std::invalid_argument) << token;
}

}  // namespace
}  // namespace wirecall::net
