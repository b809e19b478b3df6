// What the clients of a broker keep when another process takes over from it: names, sessions, retained values, and who
// provides what.
#include <filesystem>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <vector>

#include "tests/cli/restarts.hpp"
#include "tests/server/engines.hpp"
#include "wirecall/client.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {
namespace {

TEST_F(Restart, clients_keep_their_names_and_sessions) {
  Restarted server{serve()};
  server.first().read_error_until("Methods:");
  std::promise<void> again;
  ClientOptions options;
  options.client_id = "worker";
  options.reconnect_min_ms = 1;
  Client worker{folder_.socket(), options};
  worker.on_connection([&, lost = false](const ConnectionEvent& news) mutable {
    if (news.connected && lost) again.set_value();
    lost = lost || !news.connected;
  });
  worker.provide("work", [](int a) { return a + 1; });
  worker.connect();
  server.restart();
  again.get_future().get();
  EXPECT_EQ(server.first().wait(), 0);
  Client client{folder_.socket()};
  EXPECT_EQ(client.call<int>("work", 1), 2);
  const auto clients = client.call<std::string>("echo", to_json(client.call<Value>("rpc.clients")));
  EXPECT_NE(clients.find(R"("name":"worker")"), std::string::npos) << clients;
  EXPECT_EQ(clients.find("worker-"), std::string::npos) << clients;
  server.end();
}

TEST_F(Restart, a_session_of_the_old_process_is_resumed_at_the_new_one) {
  Restarted server{serve({"--drain-ms", "100"})};
  server.first().read_error_until("Methods:");
  const std::string socket = folder_.path + "/calls.sock";
  Stock before{socket};
  before.send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"ada"},"id":1})");
  const std::string greeting = before.line();
  const std::string_view member = R"("session":")";
  const std::size_t at = greeting.find(member);
  ASSERT_NE(at, std::string::npos) << greeting;
  const std::string secret = greeting.substr(at + member.size(), 48);
  server.restart();
  Stock after{socket};
  const std::string hello = R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"ada","resume":")";
  after.send(hello + std::string(48, '0') + R"("},"id":1})");
  EXPECT_NE(after.line().find("-32004"), std::string::npos);
  after.send(hello + secret + R"("},"id":2})");
  const std::string resumed = after.line();
  EXPECT_NE(resumed.find(R"("name":"ada")"), std::string::npos) << resumed;
  server.end();
}

TEST_F(Restart, retained_values_cross) {
  Restarted server{serve({"--drain-ms", "100"})};
  server.first().read_error_until("Methods:");
  Client client{folder_.socket()};
  client.publish("news.first", 1, {.retain = true});
  client.publish("news.second", std::string{"two \\ \"2\""}, {.retain = true});
  client.publish("news.third", 3, {.retain = true});
  client.publish("news.third", {.retain = true});  // deleted
  server.restart();
  Client reader{folder_.socket()};
  std::mutex mutex;
  std::vector<std::string> got;
  std::promise<void> both;
  SubscribeOptions last;
  last.last = true;
  const Subscription subscription = reader.subscribe("news.*", last, [&](const Event& event) {
    const std::scoped_lock lock{mutex};
    got.push_back(event.topic + " " + std::string{event.value_json()});
    if (got.size() == 2) both.set_value();
  });
  both.get_future().get();
  EXPECT_EQ(got, (std::vector<std::string>{"news.first 1", R"(news.second "two \\ \"2\"")"}));
  server.end();
}

TEST_F(Restart, the_old_process_answers_for_a_provider_that_knows_of_no_restarts) {
  Restarted server{serve({"--drain-ms", "1000"})};
  server.first().read_error_until("Methods:");
  std::optional<Provider> provider{std::in_place, folder_.path + "/calls.sock"};
  server.restart();
  {
    Client client{folder_.socket()};
    EXPECT_EQ(provider->sum_of(client), 3);
  }
  provider.reset();
  EXPECT_EQ(server.first().wait(), 0);
  server.end();
}

TEST_F(Restart, the_old_process_ends_though_a_provider_that_was_asked_to_leave_does_not_come_to_the_new_one) {
  Restarted server{serve({"--drain-ms", kDrainForever})};
  server.first().read_error_until("Methods:");
  std::optional<Stock> provider{folder_.path + "/calls.sock"};
  provider->send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"worker"},"id":1})"
                 R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"work"},"id":2})");
  provider->line();
  EXPECT_EQ(provider->line().find("error"), std::string::npos);
  server.restart();
  EXPECT_EQ(provider->line(), R"({"jsonrpc":"2.0","method":"rpc.draining"})");
  Stock caller{folder_.path + "/calls.sock"};
  caller.send(R"({"jsonrpc":"2.0","method":"work","id":1})");  // waits for it
  provider.reset();
  EXPECT_EQ(server.first().wait(), 0);
  const std::string lost = caller.line();
  EXPECT_NE(lost.find("-32001"), std::string::npos) << lost;
  EXPECT_NE(lost.find(R"("delivered":"no")"), std::string::npos) << lost;
  caller.send(R"({"jsonrpc":"2.0","method":"work","id":2})");
  EXPECT_NE(caller.line().find("-32601"), std::string::npos);
  server.end();
}

TEST_F(Restart, a_provider_that_leaves_the_old_process_unasked_is_waited_for_by_nobody) {
  Restarted server{serve({"--drain-ms", kDrainForever})};
  server.first().read_error_until("Methods:");
  std::optional<Stock> stays{folder_.path + "/calls.sock"};
  stays->send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  stays->line();
  std::optional<Provider> provider{std::in_place, folder_.path + "/calls.sock"};
  server.restart();
  std::optional<Client> client{std::in_place, folder_.socket()};
  EXPECT_EQ(provider->sum_of(*client), 3);
  provider.reset();
  std::optional<Stock> caller{folder_.path + "/calls.sock"};
  std::string answer;
  do {
    caller->send(R"({"jsonrpc":"2.0","method":"stock.add","params":[1,2],"id":1})");
    answer = caller->line();
    EXPECT_NE(answer.find("error"), std::string::npos) << answer;
  } while (answer.find("-32601") == std::string::npos);
  // The old process may have accepted these as well, just before it stopped.
  client.reset();
  caller.reset();
  stays.reset();
  EXPECT_EQ(server.first().wait(), 0);
  server.end();
}

TEST_P(RestartEngines, nobody_who_calls_a_client_notices_ten_in_a_row) {
  const std::string engine = GetParam() == Engine::epoll ? "epoll" : "uring";
  Restarted server{serve({"--engine", engine})};
  server.first().read_error_until("Methods:");
  ClientOptions options;
  options.client_id = "worker";
  options.reconnect_min_ms = 1;
  Client worker{folder_.socket(), options};
  worker.provide("work", [](int a, int b) { return a - b; });
  worker.connect();
  Load load{{folder_.socket()}, "work"};
  load.go_on(100);
  for (int i = 0; i < 10; ++i) {
    server.restart();
    load.go_on(100);
  }
  load.end();
  server.end();
}

TEST_F(Restart, nobody_who_calls_a_client_by_its_name_notices_ten_in_a_row) {
  Restarted server{serve()};
  server.first().read_error_until("Methods:");
  ClientOptions options;
  options.client_id = "worker";
  options.reconnect_min_ms = 1;
  Client worker{folder_.socket(), options};
  worker.provide("work", [](int a, int b) { return a - b; });
  worker.connect();
  Load load{{folder_.socket()}, "work", "worker"};
  load.go_on(100);
  for (int i = 0; i < 10; ++i) {
    server.restart();
    load.go_on(100);
  }
  load.end();
  server.end();
}

TEST_F(Restart, principals_are_who_they_were_and_may_do_what_they_might) {
  const std::string principals = folder_.path + "/principals.json";
  std::ofstream{principals} << R"([
      {"name": "workers", "tokens": ["w"], "provide": ["work", "stock"]},
      {"name": "callers", "tokens": ["c"], "call": ["work", "stock"]}, {"name": "others", "tokens": ["o"]}])";
  std::filesystem::permissions(principals, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  Restarted server{serve({"--principals-file", principals, "--drain-ms", "1000"})};
  server.first().read_error_until("Methods:");
  ClientOptions options;
  options.client_id = "worker";
  options.token = "w";
  Client worker{folder_.socket(), options};
  worker.provide("work", [](int a) { return a + 1; });
  worker.connect();
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"w"},"id":1})"
             R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"stock"},"id":2})");
  stock.line();
  EXPECT_EQ(stock.line().find("error"), std::string::npos);
  const auto code_of = [&](const std::string& token, const std::string& method) {
    ClientOptions given;
    given.token = token;
    try {
      return Client{folder_.socket(), given}.call<int>(method, 1);
    } catch (const Error& error) {
      return error.code();
    }
  };
  server.restart();
  EXPECT_EQ(code_of("c", "work"), 2);
  EXPECT_EQ(code_of("o", "work"), -32601);
  EXPECT_EQ(code_of("o", "stock"), -32601);
  EXPECT_EQ(code_of("nobody", "work"), -32004);
  server.end();
}

}  // namespace
}  // namespace wirecall::cli
