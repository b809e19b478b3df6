// The command as a server: several threads, standard input, a clock that leaps, signals.
#include <arpa/inet.h>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/cli/served_tool.hpp"

namespace {

using wirecall::cli::Ended;
using wirecall::cli::run;
using wirecall::cli::status_in_shell;
using wirecall::cli::Tool;

/// The same with two threads, both on the first processor that it may use.
class ToolOfThreads : public Tool {
 protected:
  ToolOfThreads() : Tool({"--threads", "2", "--engine", "epoll", "--cpu-affinity", processor()}) {}

 private:
  static std::string processor() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    return std::to_string(first);
  }
};

#ifdef WIRECALL_LEAPING_CLOCK_PATH
/// What is run from here on goes by a time of day that leaps ten years ahead and back.
struct LeapingClock {
  LeapingClock() { setenv("LD_PRELOAD", WIRECALL_LEAPING_CLOCK_PATH, 1); }
  LeapingClock(LeapingClock&&) = delete;
  ~LeapingClock() { unsetenv("LD_PRELOAD"); }
};

/// A server by that clock, of two connections at most.
class ToolByALeapingClock : LeapingClock, public Tool {
 protected:
  ToolByALeapingClock() : Tool({"--limits-connections", "2", "--keepalive-timeout-ms", "60000"}) {}
};
#endif

/// A connection that sends and reads lines, to have several calls on their way at once.
class Connection {
 public:
  explicit Connection(std::uint16_t port) : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  Connection(Connection&&) = delete;
  ~Connection() { close(descriptor_); }

  void send(std::string_view line) const {
    EXPECT_EQ(::send(descriptor_, line.data(), line.size(), MSG_NOSIGNAL), static_cast<ssize_t>(line.size()));
  }
  /// One line without its end; empty at the end of the connection.
  std::string line() const {
    std::string text;
    for (char c = 0; recv(descriptor_, &c, 1, 0) == 1 && c != '\n';) text += c;
    return text;
  }

 private:
  int descriptor_;
};

std::string request(std::string_view method, std::string_view params, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}\n";
}

#ifdef WIRECALL_LEAPING_CLOCK_PATH
TEST_F(ToolByALeapingClock, NoTimeIsOverEarlyOrLate) {
  const Connection silent{port_};
  silent.send(request("sum", "[1,2]", 1));
  EXPECT_EQ(silent.line(), R"({"jsonrpc":"2.0","result":3,"id":1})");
  EXPECT_EQ(call({"sum", "1", "2"}).output, "3\n");
  EXPECT_EQ(call({"sleep", "100", "--timeout", "50s"}).status, 0);

  using std::chrono::steady_clock;
  const auto begun = steady_clock::now();
  const Ended late = call({"sleep", "3600000", "--timeout", "300ms"});
  EXPECT_EQ(late.status, 4) << late.error;
  EXPECT_GE(steady_clock::now() - begun, std::chrono::milliseconds{300});
  silent.send(R"({"jsonrpc":"2.0","method":"sleep","params":[3600000],"timeout_ms":300,"id":2})");
  EXPECT_NE(silent.line().find("-32002"), std::string::npos) << "and its connection is there still";
  EXPECT_GE(steady_clock::now() - begun, std::chrono::milliseconds{600});

  // That the clock leaps shows where the time of day is told.
  const Connection second{port_};
  second.send(request("sum", "[1,2]", 3));
  EXPECT_NE(second.line(), "");
  EXPECT_EQ(Connection{port_}.line(), "");
  const std::string log = server_.read_error_until("connections are refused");
  const std::size_t line = log.rfind('\n', log.find(" warning ")) + 1;
  const std::time_t now = std::time(nullptr);
  EXPECT_GE(std::abs(std::stoi(log.substr(line, 4)) - (1900 + std::gmtime(&now)->tm_year)), 9) << log;
}
#endif

TEST_F(Tool, ListeningWhereAnotherListensFailsWithTheReason) {
  const Ended ended = run({"serve", "--demo", "--listen", url_});
  EXPECT_EQ(ended.status, 3);
  EXPECT_NE(ended.error.find("in use"), std::string::npos) << ended.error;
}

TEST_F(ToolOfThreads, ServesManyConnectionsAndEndsAtTheFirstSignal) {
  std::vector<std::unique_ptr<Connection>> connections;
  for (int i = 0; i < 16; ++i) connections.push_back(std::make_unique<Connection>(port_));
  for (const auto& connection : connections) {
    connection->send(request("sum", "[1,2]", 1));
    EXPECT_EQ(connection->line(), R"({"jsonrpc":"2.0","result":3,"id":1})");
  }
  EXPECT_EQ(run({"serve", "--demo", "--listen", url_}).status, 3) << "the port is theirs";
  server_.signal(SIGTERM);
  EXPECT_EQ(server_.wait(), 0);
  EXPECT_EQ(server_.rest_of_error().find("warning"), std::string::npos);
}

TEST(ToolOnStdio, ServesWhoeverHasStartedItUntilTheEndOfInput) {
  const Ended ended = run({"serve", "--demo", "--listen", "stdio:", "--threads", "2"}, {}, request("sum", "[1,2]", 1));
  EXPECT_EQ(ended.output, R"({"jsonrpc":"2.0","result":3,"id":1})"
                          "\n");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.error.find("nc -q1"), std::string::npos) << "nobody else can connect";
}

TEST(ToolOnStdio, EndOfInputWithinAMessageIsAnsweredAndIsTheEnd) {
  const std::string whole = request("sum", "[1,2]", 1);
  const std::string part = whole.substr(0, 20);
  const std::string header = "Content-Length: " + std::to_string(whole.size()) + "\r\n\r\n";
  for (const auto& input : {whole + part, header + whole + header + part}) {
    const Ended ended = run({"serve", "--demo", "--listen", "stdio:"}, {}, input);
    const std::size_t answer = ended.output.find(R"({"jsonrpc":"2.0","result":3,"id":1})");
    const std::size_t refusal = ended.output.find(R"("code":-32700)");
    EXPECT_LT(answer, refusal) << ended.output;
    EXPECT_NE(refusal, std::string::npos) << ended.output;
    EXPECT_EQ(ended.status, 0);
  }
}

TEST(ToolOnStdio, EndsWithAnErrorWhenItsAnswersCannotBeWritten) {
  const std::string serve = "serve --demo --listen stdio: ";
  const std::string input = "\n" + request("sum", "[1,2]", 1) + "\n.\n";
  EXPECT_EQ(status_in_shell(serve + ">/dev/full 2>/dev/null <<'.'" + input), 3);
  EXPECT_EQ(status_in_shell(serve + "2>&1 >/dev/full <<'.' | grep -q 'cannot write to standard output: No space left'" +
                            input),
            0);
  EXPECT_EQ(status_in_shell(serve + ">/dev/full 2>/dev/null </dev/null"), 0) << "there is nothing to write";
}

TEST(ToolOnStdio, EndsWellWhenWhoeverHasStartedItHasLeft) {
  // The reader of its output comes and goes before it is asked anything.
  const std::string words =
      "f=$(mktemp -d) && mkfifo $f/o && { : <$f/o & exec 9>$f/o; wait $!; rm -r $f; } && '" WIRECALL_TOOL_PATH
      "' serve --demo --listen stdio: >&9 2>/dev/null <<'.'\n" +
      request("sum", "[1,2]", 1) + "\n.\n";
  const int status = std::system(words.c_str());
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Tool, ServerWithNothingToDoEndsAtTheFirstSignal) {
  server_.signal(SIGINT);
  EXPECT_EQ(server_.wait(), 0);
}

TEST_F(Tool, SigtermLetsPendingCallsFinish) {
  const Connection connection{port_};
  connection.send(request("sleep", "[300]", 1) + request("sum", "[1]", 2));
  // Messages are looked at in order: once the second is answered, the first is being worked on.
  EXPECT_EQ(connection.line(), R"({"jsonrpc":"2.0","result":1,"id":2})");
  server_.signal(SIGTERM);
  EXPECT_EQ(connection.line(), R"({"jsonrpc":"2.0","result":null,"id":1})");
  EXPECT_EQ(connection.line(), "");
  EXPECT_EQ(server_.wait(), 0);
}

TEST_F(Tool, WhileItDrainsNewCallsAreRefusedAndASecondSignalEndsItAtOnce) {
  const Connection connection{port_};
  connection.send(request("sleep", "[3000000]", 1) + request("sum", "[1]", 2));
  EXPECT_EQ(connection.line(), R"({"jsonrpc":"2.0","result":1,"id":2})");
  server_.signal(SIGTERM);
  // The signal is noticed at some time between two of these.
  std::string answer;
  for (int id = 3; answer.find("-32009") == std::string::npos; ++id) {
    connection.send(request("sum", "[1]", id));
    answer = connection.line();
    ASSERT_NE(answer, "");
  }
  server_.signal(SIGTERM);
  EXPECT_EQ(server_.wait(), 130);
}

}  // namespace
