// Restarts without a gap: `wirecall serve` that another process takes over from, by SIGUSR2 and by --replace, while
// clients connect and call all the time.
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <signal.h>
#include <string>
#include <sys/socket.h>

#include "tests/cli/process.hpp"
#include "tests/cli/restarts.hpp"
#include "tests/server/engines.hpp"
#include "tests/transport/certificates.hpp"

namespace wirecall::cli {
namespace {

INSTANTIATE_TEST_SUITE_P(Engines, RestartEngines, net::kEachEngine, net::engine_name);

TEST_P(RestartEngines, ten_in_a_row_are_noticed_by_nobody_who_connects_and_calls) {
  const std::string engine = GetParam() == Engine::epoll ? "epoll" : "uring";
  const transport::TlsFiles& files = transport::usual_certificates().server_files;
  Restarted server{
      serve({"--engine", engine, "--threads", "3", "--listen", "tcp://127.0.0.1:0", "--listen", "shm://calls",
             "--listen", "udp://127.0.0.1:0", "--tls-cert", files.certificate, "--tls-key", files.key})};
  const std::string tcp = "127.0.0.1:" + std::to_string(port_of(server.first()));
  const std::string banner = server.first().read_error_until("nc -q1");
  const std::size_t udp = banner.find("udp://127.0.0.1:");
  ASSERT_NE(udp, std::string::npos) << banner;
  Load load{{"tcp://" + tcp, "http://" + tcp + "/rpc", "ws://" + tcp + "/", "tls://" + tcp, "https://" + tcp + "/rpc",
             "wss://" + tcp + "/", folder_.socket(), "shm://calls",
             banner.substr(udp, banner.find_first_not_of("0123456789", udp + 16) - udp)}};
  load.go_on(200);
  for (int i = 0; i < 10; ++i) {
    server.restart();
    load.go_on(200);
  }
  load.end();
  server.end();
  EXPECT_EQ(server.first().wait(), 0);
}

TEST_F(Restart, a_call_in_progress_is_answered_by_the_old_process) {
  Restarted server{serve({"--drain-ms", "1000"})};
  server.first().read_error_until("Methods:");
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"sleep","params":[300],"id":1})"
             R"({"jsonrpc":"2.0","method":"subtract","params":[5,3],"id":2})");
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","result":2,"id":2})");
  server.restart();
  EXPECT_TRUE(stock.line().ends_with(R"("id":1})"));
}

TEST_F(Restart, a_client_that_knows_of_no_restarts_is_served_by_the_old_process_until_drain_ms) {
  Restarted server{serve({"--drain-ms", "300"})};
  server.first().read_error_until("Methods:");
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  EXPECT_NE(stock.line(), "");  // it has been accepted
  server.restart();
  stock.send(R"({"jsonrpc":"2.0","method":"subtract","params":[5,3],"id":2})");
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","result":2,"id":2})");
  EXPECT_EQ(stock.line(), "");
  EXPECT_EQ(server.first().wait(), 0);
  EXPECT_TRUE(is_served());
  server.end();
}

TEST_F(Restart, one_that_is_started_by_hand_takes_over_with_replace) {
  Process old{serve()};
  old.read_error_until("Methods:");
  EXPECT_EQ(run(serve()).status, 3);  // without it the endpoints are taken
  Process other{serve({"--replace"})};
  other.read_error_until("Methods:");
  EXPECT_EQ(old.wait(), 0);
  EXPECT_TRUE(is_served());
  Process third{serve({"--replace"})};
  third.read_error_until("Methods:");
  EXPECT_EQ(other.wait(), 0);
  EXPECT_TRUE(is_served());
  third.signal(SIGTERM);
  EXPECT_EQ(third.wait(), 0);
  for (const std::string& file : {path(), folder_.path + "/calls.sock"}) EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Restart, with_replace_and_nobody_there_a_server_just_serves) {
  Process server{serve({"--replace"})};
  server.read_error_until("Methods:");
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, a_process_that_has_been_replaced_says_who_has_taken_over) {
  Restarted server{serve({"--drain-ms", kDrainForever})};
  server.first().read_error_until("Methods:");
  std::optional<Stock> stays{folder_.path + "/calls.sock"};
  stays->send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  stays->line();
  server.restart();
  server.first().signal(SIGUSR2);
  const std::string word = "this process has been replaced already";
  const std::string log = server.first().read_error_until(word);
  const std::string line = server.first().read_error_line(log.rfind(word));
  EXPECT_NE(line.find("pid=" + std::to_string(server.pid())), std::string::npos) << line;
  stays.reset();
  EXPECT_EQ(server.first().wait(), 0);
  server.end();
}

TEST_F(Restart, sigterm_ends_a_server_that_waits_for_another_process) {
  Process server{serve()};
  server.read_error_until("Methods:");
  Rival rival{path()};
  rival.hello();
  rival.sockets();
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(Restart, two_signals_at_once_start_one_process_after_the_other_at_most) {
  Restarted server{serve()};
  server.first().read_error_until("Methods:");
  kill(server.pid(), SIGUSR2);
  server.restart();
  EXPECT_TRUE(is_served());
  EXPECT_EQ(server.first().wait(), 0);
  EXPECT_TRUE(is_served());
  server.end();
}

TEST_F(Restart, a_server_by_standard_input_and_output_is_not_replaced) {
  Process server{
      {"serve", "--demo", "--listen", "stdio:", "--listen", folder_.socket()}, {}, {}, Process::Input::goes_on};
  server.read_error_until("Methods:");
  server.signal(SIGUSR2);
  const std::string log = server.read_error_until("this one goes on");
  EXPECT_NE(log.find("is this process's alone"), std::string::npos) << log;
  EXPECT_TRUE(is_served());
}

}  // namespace
}  // namespace wirecall::cli
