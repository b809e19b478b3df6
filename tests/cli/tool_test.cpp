// The command as a user runs it, end to end: real processes, real sockets, ports that the system chooses. What has to
// have happened before the next step is waited for, never slept for.
#include <arpa/inet.h>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/cli/process.hpp"

namespace {

using wirecall::cli::Ended;
using wirecall::cli::port_of;
using wirecall::cli::Process;
using wirecall::cli::run;

/// A demo server on a port of the system's choice, taken from its banner.
class Tool : public testing::Test {
 protected:
  Tool() : Tool(std::vector<std::string>{}) {}
  explicit Tool(const std::vector<std::string>& flags) : server_(serve(flags)) {}

  Ended call(std::vector<std::string> words) {
    words.insert(words.begin(), "call");
    return run(std::move(words), url_);
  }

  static std::vector<std::string> serve(const std::vector<std::string>& flags) {
    std::vector<std::string> words{"serve", "--demo", "--port", "0"};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }

  Process server_;
  std::uint16_t port_ = port_of(server_);
  std::string url_ = "tcp://127.0.0.1:" + std::to_string(port_);
};

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

TEST_F(Tool, an_array_goes_there_and_back_as_its_file_in_both_encodings) {
  using namespace std::string_literals;
  const std::string file = "\x93NUMPY\x01\0\x4e\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"s +
                           std::string(19, ' ') + "\n" + "\0\0\x80\x3f\0\0\0\x40"s;
  const std::string path = testing::TempDir() + "wirecall-tool-" + std::to_string(::getpid()) + ".npy";
  std::ofstream{path, std::ios::binary} << file;
  const std::string http = "http://" + url_.substr(url_.find("//") + 2) + "/rpc";
  for (const std::string& url : {url_, http}) {
    for (const std::string encoding : {"json", "msgpack"}) {
      const Ended ended = run({"call", "echo", "@" + path, "--url", url, "--encoding", encoding});
      EXPECT_EQ(ended.status, 0) << ended.error;
      EXPECT_EQ(ended.output, file);
    }
  }
  EXPECT_EQ(run({"call", "echo", "[1]"}, url_).output, "[1]\n");
  EXPECT_EQ(run({"call", "echo", "@-"}, url_, file).output, file);
  EXPECT_NE(run({"call", "--raw", "echo", "@" + path}, url_).output.find(R"({"$npy":"k05V)"), std::string::npos);
  std::filesystem::remove(path);
}

TEST_F(Tool, PrintsTheResultOnStdoutAndNothingElse) {
  const Ended ended = call({"subtract", "42", "23"});
  EXPECT_EQ(ended.output, "19\n");
  EXPECT_EQ(ended.error, "");
  EXPECT_EQ(ended.status, 0);
}

TEST_F(Tool, TakesArgumentsByNameAndNegativeOnes) {
  EXPECT_EQ(call({"subtract", "subtrahend=23", "minuend=42"}).output, "19\n");
  EXPECT_EQ(call({"subtract", "5", "-3"}).output, "8\n");
}

TEST_F(Tool, TakesJsonAndStringsAsTheyAre) {
  EXPECT_EQ(call({"echo", "[1,2]"}).output, "[1,2]\n");
  EXPECT_EQ(call({"echo", "hello"}).output, "\"hello\"\n");
  EXPECT_EQ(call({"echo", "value:str=42"}).output, "\"42\"\n");
  EXPECT_EQ(call({"echo", "--", "--raw"}).output, "\"--raw\"\n");
}

TEST_F(Tool, AStreamIsPrintedResultByResult) {
  EXPECT_EQ(call({"--stream", "count", "3"}).output, "0\n1\n2\n");
  const Ended failed = call({"--stream", "fail", "7", "no"});
  EXPECT_EQ(failed.output, "");
  EXPECT_EQ(failed.error, "error 7: no\n");
  EXPECT_EQ(failed.status, 1);
  EXPECT_EQ(call({"--stream", "--raw", "count", "3"}).status, 2);
}

TEST_F(Tool, ANotificationPrintsNothing) {
  const Ended ended = run({"notify", "echo", "1"}, url_);
  EXPECT_EQ(ended.output + ended.error, "");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(run({"notify", "echo", "1", "--url", "tcp://127.0.0.1:1"}).status, 3);
}

TEST_F(Tool, CallsNotifiesAndLoadsByHttp) {
  const std::string http = "http://127.0.0.1:" + std::to_string(port_);
  for (const std::string& url : {http + "/rpc", http + "/", http}) {
    const Ended ended = run({"call", "subtract", "42", "23", "--url", url});
    EXPECT_EQ(ended.output, "19\n");
    EXPECT_EQ(ended.error, "");
    EXPECT_EQ(ended.status, 0);
  }
  EXPECT_EQ(run({"call", "--stream", "count", "3"}, http).output, "0\n1\n2\n");
  EXPECT_EQ(run({"call", "--raw", "echo", "1"}, http).output, "{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":1}\n");
  const Ended failed = run({"call", "fail", "7", "no"}, http);
  EXPECT_EQ(failed.error, "error 7: no\n");
  EXPECT_EQ(failed.status, 1);
  const Ended notified = run({"notify", "echo", "1"}, http);
  EXPECT_EQ(notified.output + notified.error, "");
  EXPECT_EQ(notified.status, 0);
  EXPECT_EQ(run({"bench", "subtract", "42", "23", "-c", "2", "-p", "3", "-z", "50ms"}, http).status, 0);

  const Ended elsewhere = run({"call", "echo", "1", "--url", http + "/elsewhere"});
  EXPECT_EQ(elsewhere.output, "");
  EXPECT_EQ(elsewhere.error, "error -32001: the server answered with HTTP status 404 (Not Found)\n");
  EXPECT_EQ(elsewhere.status, 3);
  EXPECT_EQ(run({"serve", "--demo", "--listen", http}).status, 3) << "an endpoint for clients";
}

TEST_F(Tool, BenchPrintsATableOrOneJsonObject) {
  const Ended table = run({"bench", "subtract", "42", "23", "-c", "2", "-p", "3", "-z", "50ms"}, url_);
  EXPECT_EQ(table.status, 0) << table.error;
  EXPECT_EQ(table.error, "");  // no progress without a terminal
  EXPECT_NE(table.output.find("2 connections with 3 calls in flight each"), std::string::npos) << table.output;
  const Ended ended =
      run({"bench", "subtract", "42", "23", "-z", "50ms", "--warm-up", "1ms", "--rate", "200", "--json"}, url_);
  EXPECT_EQ(ended.status, 0) << ended.error;
  const auto json = nlohmann::json::parse(ended.output);
  EXPECT_EQ(json.at("method"), "subtract");
  EXPECT_EQ(json.at("url"), url_);
  EXPECT_EQ(json.at("rate_due"), 200);
  EXPECT_GT(json.at("calls"), 0);
  EXPECT_EQ(json.at("errors"), 0);
  EXPECT_EQ(json.at("strays"), 0);
  EXPECT_EQ(json.at("unanswered"), 0);
  for (const char* quantile : {"mean", "p50", "p90", "p99", "p99.9", "max"}) {
    EXPECT_GT(json.at("latency_us").at(quantile), 0) << quantile;
  }
}

TEST_F(Tool, BenchCountsErrorsByCodeAndFailsWithThem) {
  const Ended ended = run({"bench", "fail", "7", "no", "-z", "50ms", "--json"}, url_);
  EXPECT_EQ(ended.status, 1);
  const auto json = nlohmann::json::parse(ended.output);
  EXPECT_GT(json.at("errors"), 0);
  EXPECT_EQ(json.at("errors_by_code").at("7"), json.at("errors"));
  EXPECT_TRUE(json.at("latency_us").is_null()) << "errors have none";
  EXPECT_NE(run({"bench", "fail", "7", "no", "-z", "50ms"}, url_).output.find("latency     none"), std::string::npos);
}

TEST_F(Tool, BenchWritesTheDistribution) {
  const std::string path = testing::TempDir() + "wirecall_bench_" + std::to_string(getpid()) + ".hgrm";
  EXPECT_EQ(run({"bench", "echo", "1", "-z", "50ms", "--hdr", path}, url_).status, 0);
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  EXPECT_NE(line.find("Percentile"), std::string::npos);
  // One that is there keeps its content until there is another, and has nothing but that.
  const auto content = [&] {
    std::ifstream whole{path};
    return std::string{std::istreambuf_iterator<char>{whole}, {}};
  };
  std::ofstream{path} << "before" << std::string(100'000, ' ') << "end";
  EXPECT_EQ(run({"bench", "echo", "1", "-z", "50ms", "--hdr", path}, "tcp://127.0.0.1:1").status, 3);
  EXPECT_TRUE(content().starts_with("before"));
  EXPECT_EQ(run({"bench", "echo", "1", "-z", "50ms", "--hdr", path}, url_).status, 0);
  EXPECT_EQ(content().find("before"), std::string::npos);
  EXPECT_FALSE(content().ends_with("end"));
  unlink(path.c_str());
  EXPECT_EQ(run({"bench", "echo", "1", "-z", "50ms", "--hdr", "/dev/null"}, url_).status, 0);
  EXPECT_EQ(run({"bench", "echo", "1", "-z", "50ms", "--hdr", "/dev/full"}, url_).status, 1);
}

TEST(ToolUsage, BenchFindsOutWhatItCannotWriteBeforeItLoads) {
  const Ended ended = run({"bench", "echo", "1", "-z", "1h", "--hdr", "/nonexistent/file"}, "tcp://127.0.0.1:1");
  EXPECT_EQ(ended.error, "wirecall: cannot write the file /nonexistent/file: No such file or directory\n");
  EXPECT_EQ(ended.status, 2);
}

TEST(ToolUsage, ADurationThatIsNoneIsToldByBothNamesOfItsFlag) {
  for (const std::string flag : {"-z", "--duration"}) {
    EXPECT_TRUE(run({"bench", "echo", flag, "0s"}).error.starts_with("wirecall: -z/--duration: ")) << flag;
  }
}

TEST_F(Tool, BenchTakesTheNextServerWhenOneCannotBeConnectedTo) {
  EXPECT_EQ(run({"bench", "echo", "1", "-z", "50ms"}, "tcp://127.0.0.1:1," + url_).status, 0);
  EXPECT_EQ(run({"bench", "echo", "1", "-z", "50ms"}, "tcp://127.0.0.1:1").status, 3);
}

TEST_F(Tool, TheEnvironmentNamesSeveralServers) {
  EXPECT_EQ(run({"call", "echo", "1"}, "tcp://127.0.0.1:1, " + url_).output, "1\n");
}

TEST_F(Tool, OptionsMayStandAnywhere) {
  EXPECT_EQ(run({"call", "--url", url_, "echo", "1"}).output, "1\n");
  EXPECT_EQ(run({"call", "echo", "--url", url_, "1"}).output, "1\n");
}

TEST_F(Tool, PrintsTheWholeResponseWhenAsked) {
  EXPECT_EQ(call({"count", "3", "--raw"}).output, "{\"jsonrpc\":\"2.0\",\"result\":[0,1,2],\"id\":1}\n");
  const Ended failed = call({"fail", "7", "no", "--raw"});
  EXPECT_EQ(failed.output, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":7,\"message\":\"no\"},\"id\":1}\n");
  EXPECT_EQ(failed.status, 1);
}

TEST_F(Tool, AsJsonResultAndErrorAreOneObjectOnStdoutAndTheStatusIsTheSame) {
  const Ended result = call({"--json", "subtract", "42", "23"});
  EXPECT_EQ(result.output, "{\"result\":19}\n");
  EXPECT_EQ(result.status, 0);
  const Ended failed = call({"--json", "fail", "7", "no \"way\""});
  EXPECT_EQ(failed.output, "{\"error\":{\"code\":7,\"message\":\"no \\\"way\\\"\"}}\n");
  EXPECT_EQ(failed.error, "");
  EXPECT_EQ(failed.status, 1);
  const auto wrong = nlohmann::json::parse(call({"--json", "subtract", "42", "x"}).output);
  EXPECT_EQ(wrong["error"]["code"], -32602);
  EXPECT_EQ(wrong["error"]["data"]["loc"], nlohmann::json{"subtrahend"});
  const Ended late = call({"--json", "sleep", "30000", "--timeout", "100ms"});
  EXPECT_EQ(nlohmann::json::parse(late.output)["error"]["code"], -32002);
  EXPECT_EQ(late.status, 4);
  EXPECT_EQ(call({"--json", "echo", "$bytes=QQ=="}).output, "{\"result\":\"$bytes=QQ==\"}\n");
  EXPECT_EQ(call({"--json", "--raw", "echo", "1"}).status, 2);
  const Ended nowhere = run({"call", "--json", "echo", "--url", "tcp://127.0.0.1:1"});
  EXPECT_EQ(nlohmann::json::parse(nowhere.output)["error"]["code"], -32001);
  EXPECT_EQ(nowhere.status, 3);
}

TEST_F(Tool, AServerIsNamedByHostAndPortAlone) {
  EXPECT_EQ(run({"call", "echo", "1", "--url", "127.0.0.1:" + std::to_string(port_)}).output, "1\n");
}

TEST_F(Tool, AnErrorIsOneLineOnStderrAndStatusOne) {
  const Ended failed = call({"fail", "4711", "no"});
  EXPECT_EQ(failed.output, "");
  EXPECT_EQ(failed.error, "error 4711: no\n");
  EXPECT_EQ(failed.status, 1);
  EXPECT_EQ(call({"subtract", "42", "x"}).error,
            "error -32602: Invalid params: at subtrahend, expected integer, got \"x\"\n");
}

TEST_F(Tool, ATimeoutIsStatusFour) {
  const Ended ended = call({"sleep", "30000", "--timeout", "100ms"});
  EXPECT_EQ(ended.output, "");
  EXPECT_EQ(ended.status, 4);
}

TEST_F(Tool, TriesTheNextServerWhenOneCannotBeConnectedTo) {
  std::string nowhere;
  {
    Process gone{{"serve", "--demo", "--port", "0"}};
    const std::string banner = gone.read_error_until("JSON-RPC");
    nowhere = banner.substr(banner.find("tcp://"));
    nowhere.resize(nowhere.find(' '));
  }
  EXPECT_EQ(run({"call", "echo", "1", "--url", nowhere}).status, 3);
  const Ended ended = run({"call", "echo", "1", "--url", nowhere, "--url", url_});
  EXPECT_EQ(ended.output, "1\n");
  EXPECT_EQ(ended.status, 0);
}

// What the command makes of `response`, which is what a server answers it with.
Ended answered_with(std::string_view response, std::vector<std::string> words) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener, 1), 0);
  EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  Process process{std::move(words), "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port))};
  const int peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  for (char c = 0; recv(peer, &c, 1, 0) == 1 && c != '\n';) {
  }
  EXPECT_EQ(send(peer, response.data(), response.size(), MSG_NOSIGNAL), static_cast<ssize_t>(response.size()));
  Ended ended{};
  ended.output = process.rest_of_output();
  ended.error = process.rest_of_error();
  ended.status = process.wait();
  close(peer);
  close(listener);
  return ended;
}

TEST(ToolAndStrangers, AnErrorOfTheServerIsStatusOneWhateverItSaysOfItsOriginButATimeoutFour) {
  const std::string data = R"({"reason":"r","origin":"local","delivered":"maybe"})";
  for (const std::string code : {"-32001", "-32002", "-32009"}) {
    const std::string response =
        R"({"jsonrpc":"2.0", "id":1, "error":{"code":)" + code + R"(,"message":"no","data":)" + data + "}}\n";
    const Ended plain = answered_with(response, {"call", "echo"});
    EXPECT_EQ(plain.error, "error " + code + ": no: r\n");
    EXPECT_EQ(plain.status, code == "-32002" ? 4 : 1);
    const Ended raw = answered_with(response, {"call", "echo", "--raw"});
    EXPECT_EQ(raw.output, response);  // as it came
    EXPECT_EQ(raw.error, "");
    EXPECT_EQ(raw.status, code == "-32002" ? 4 : 1);
    const Ended stream = answered_with(response, {"call", "echo", "--stream"});
    EXPECT_EQ(stream.error, plain.error);
    EXPECT_EQ(stream.status, plain.status);
  }
}

TEST(ToolAndStrangers, ControlCharactersOfTheServerDoNotReachTheTerminal) {
  const Ended ended = answered_with(
      "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"a\\u001b[31m\xC2\x9B\x33\xC3\x9B\xE2\x82\xAC\"},\"id\":"
      "1}\n",
      {"call", "echo"});
  // U+00DB and the euro sign have bytes that would be controls on their own.
  EXPECT_EQ(ended.error, "error 1: a\\x1b[31m\\xc2\\x9b3\xC3\x9B\xE2\x82\xAC\n");
}

TEST(ToolAndStrangers, BenchNamesResponsesToNoCall) {
  const std::string response = "{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":1.0}\n";
  const Ended text = answered_with(response, {"bench", "echo", "-z", "50ms"});
  EXPECT_NE(text.output.find("\n  strays      1 responses to no call, among the errors\n"), std::string::npos)
      << text.output;
  EXPECT_EQ(text.status, 1);
  const auto json = nlohmann::json::parse(answered_with(response, {"bench", "echo", "-z", "50ms", "--json"}).output);
  EXPECT_EQ(json.at("strays"), 1);
  EXPECT_EQ(json.at("errors"), 1);
}

TEST(ToolAndStrangers, BenchThatIsNotLetInHasBeenAnsweredWithAnError) {
  const std::string response = R"({"jsonrpc":"2.0","error":{"code":-32004,"message":"Unauthenticated"},"id":1})"
                               "\n";
  const Ended ended = answered_with(response, {"bench", "echo", "-z", "1s", "--json"});
  EXPECT_EQ(ended.status, 1) << ended.error;
  EXPECT_NE(ended.error.find("--token"), std::string::npos) << ended.error;
  EXPECT_EQ(nlohmann::json::parse(ended.output).at("errors_by_code").at("-32004"), 1);
}

TEST(ToolAndStrangers, WhatIsNoResponseIsStatusOneAndALostConnectionThree) {
  const Ended malformed = answered_with("{\"result\":1,\"id\":1}\n", {"call", "echo", "--raw"});
  EXPECT_EQ(malformed.output, "");
  EXPECT_NE(malformed.error.find("malformed"), std::string::npos) << malformed.error;
  EXPECT_EQ(malformed.status, 1);
  const Ended stranger = answered_with("HTTP/1.1 400 Bad Request\r\n\r\n", {"call", "echo", "--raw"});
  EXPECT_EQ(stranger.status, 3);
}

TEST(ToolUsage, MistakesAreStatusTwoWithNothingOnStdout) {
  const std::vector<std::vector<std::string>> mistakes{
      {},
      {"nonsense"},
      {""},
      {"call", "\xFF"},
      {"call", "echo", "\xFF"},
      {"serve", "--demo", "--listen", "tcp://127.example.invalid:0"},
      {"call"},
      {"call", "subtract", "42", "subtrahend=23"},
      {"call", "echo", "value:number=1"},
      {"call", "echo", "--nonsense", "1"},
      {"call", "echo", "1", "--timeout", "soon"},
      {"call", "echo", "1", "--url", "nowhere"},
      {"call", "echo", "value=@/nonexistent/file"},
      {"serve", "--demo", "--port", "65536"},
      {"serve", "--demo", "--listen", "nowhere"},
      {"serve", "--demo", "--listen", "tcp://0.0.0.0:0"},
      {"serve", "--demo", "--", "more"},
      {"serve", "--demo", "--listen", "tcp://127.0.0.1:0", "--port", "0"},
      {"serve", "--demo", "--port", "0", "--limits-depth", "0"},
      {"serve", "--demo", "--port", "0", "--delimiter", ""},
      {"serve", "--demo", "--port", "0", "--delimiter", "\""},
      {"call", "echo", "1", "--call-timeout-ms", "0"},
      {"bench", "echo", "1", "-c", "0"},
      {"bench", "echo", "1", "-z", "soon"},
      {"bench", "echo", "1", "--warm-up", "soon"},
      {"bench", "echo", "1", "--rate", "0"},
      {"bench", "echo", "1", "--url", "nowhere"},
      {"bench", "\xFF"},
  };
  for (const auto& words : mistakes) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 2) << testing::PrintToString(words) << ended.error;
    EXPECT_EQ(ended.output, "");
    EXPECT_NE(ended.error, "");
  }
}

// The exit status of the tool, `words` being for a shell.
int status_in_shell(const std::string& words) {
  const int status = std::system(("'" WIRECALL_TOOL_PATH "' " + words).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Tool, StandardDescriptorsMayBeClosedOrFull) {
  EXPECT_EQ(status_in_shell("call 2>/dev/full"), 2);
  EXPECT_EQ(status_in_shell("call 2>&-"), 2);
  EXPECT_EQ(status_in_shell("call nix 2>&- --url " + url_), 1);
  EXPECT_EQ(status_in_shell("call subtract 5 3 2>&- >/dev/null --url " + url_), 0);
  EXPECT_EQ(status_in_shell("call subtract 5 3 2>/dev/null >&- --url " + url_), 1) << "nobody got the result";
  EXPECT_EQ(status_in_shell("call subtract 5 3 2>/dev/null >/dev/full --url " + url_), 1);
  EXPECT_EQ(status_in_shell("serve --demo --listen stdio: 2>/dev/null <&-"), 3) << "there is nobody to serve";
}

TEST(ToolUsage, WhatCannotBeWrittenHasNotBeenDone) {
  const std::vector<std::string> all{"serve --print-config", "man",          "completion bash", "completion zsh",
                                     "completion fish",      "help",         "help call",       "--help",
                                     "call --help",          "serve --help", "--version"};
  for (const std::string& words : all) {
    EXPECT_EQ(status_in_shell(words + " 2>/dev/null >/dev/full"), 1) << words;
    EXPECT_EQ(status_in_shell(words + " 2>&1 >/dev/full | grep -q 'cannot write to stdout: No space left'"), 0)
        << words;
  }
}

TEST(ToolUsage, ServeTellsHowAPythonProgramIsServed) {
  const std::string help = run({"serve", "--help"}).output;
  for (const std::string_view part : {"Usage: wirecall serve [FILE.py[:NAME] [--workers N]] [OPTIONS]",
                                      "  --workers N ", "wirecall serve FILE.py --help tells"})
    EXPECT_NE(help.find(part), std::string::npos) << part;
  EXPECT_NE(run({"man"}).output.find("serve [FILE.py[:NAME] [\\-\\-workers N]]"), std::string::npos);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"serve", "--workers", "2"}, {"serve", "--workers=2", "--demo", "--port", "0"}}) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.error, "wirecall: --workers is for a Python program: wirecall serve FILE.py --workers 2\n");
    EXPECT_EQ(ended.status, 2);
  }
}

TEST(ToolUsage, ANumberThatIsNoneIsRefusedInTheWordsOfTheOptions) {
  const auto refusal = [](const std::vector<std::string>& words) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 2);
    return ended.error.substr(0, ended.error.find(';'));
  };
  const std::string kRange = ": give a number from 1 to 4294967295";
  EXPECT_EQ(refusal({"reply", "foo", "x", "--concurrency", "0x"}),
            "wirecall: --concurrency: concurrency is \"0x\"" + kRange);
  EXPECT_EQ(refusal({"reply", "foo", "x", "--concurrency", "0"}), "wirecall: --concurrency: concurrency is 0" + kRange);
  EXPECT_EQ(refusal({"reply", "foo", "x", "--queue", "-1"}),
            "wirecall: --queue: queue is \"-1\": give a number from 0 to 4294967295");
  for (const std::string command : {"reply", "sub", "tap"}) {
    EXPECT_EQ(refusal({command, "foo", "--count", "4294967296"}), "wirecall: --count: count is 4294967296" + kRange);
  }
  EXPECT_EQ(refusal({"serve", "--demo=x"}), "wirecall: --demo: demo is \"x\": give true or false");
  EXPECT_EQ(refusal({"bench", "foo", "-c", "x"}),
            "wirecall: --connections: connections is \"x\": give a number from 1 to 100000");
  EXPECT_EQ(refusal({"bench", "foo", "-p", "0"}),
            "wirecall: --pipeline: pipeline is 0: give a number from 1 to 100000");
  EXPECT_EQ(refusal({"bench", "foo", "--rate", "fast"}),
            "wirecall: --rate: rate is \"fast\": give a number from 0.001 to 1000000000");
}

TEST(ToolUsage, WhatItComplainsOfSteersNoTerminal) {
  EXPECT_EQ(run({"call", "x", "\xff\x1b[31m"}).error,
            "wirecall: \\xff\\x1b[31m: is not valid UTF-8; send it as bytes: name:bytes=…\n");
}

TEST(ToolUsage, AnUnknownCommandIsNamedWithTheNearest) {
  EXPECT_TRUE(run({"foo"}).error.starts_with("wirecall: there is no command foo. Commands are serve, call, "));
  EXPECT_TRUE(run({"serv"}).error.starts_with("wirecall: there is no command serv; did you mean serve? Commands are "));
  EXPECT_EQ(run({"cal", "echo"}).status, 2);
}

TEST(ToolUsage, AnUnknownOptionIsNamedWithTheNearest) {
  EXPECT_EQ(
      run({"serve", "--demo", "--tread-count", "2"}).error,
      "wirecall: there is no option --tread-count; did you mean --thread-count? wirecall serve --help tells more\n");
  EXPECT_EQ(run({"call", "echo", "1", "--tmeout=3s"}).error,
            "wirecall: there is no option --tmeout; did you mean --timeout? wirecall call --help tells more\n");
  EXPECT_EQ(run({"call", "echo", "1", "--port", "8600"}).error,
            "wirecall: there is no option --port; say where the server is by --url HOST:PORT; wirecall call --help "
            "tells more\n");
  EXPECT_EQ(run({"--verison"}).error,
            "wirecall: there is no option --verison; did you mean --version? wirecall --help tells more\n");
  EXPECT_EQ(run({"bench", "echo", "-x"}).error, "wirecall: there is no option -x; wirecall bench --help tells more\n");
  EXPECT_EQ(run({"serve", "nosuch"}).error,
            "wirecall: there is no module nosuch: name one, or a file that ends in .py\n");
  EXPECT_EQ(run({"serve", "--demo", "x"}).error,
            "wirecall: serve takes no argument x; wirecall serve --help tells more\n");
  EXPECT_EQ(run({"serve", "--demo", "--", "x"}).status, 2);
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

TEST(ToolUsage, ANameThatBeginsLikeALoopbackAddressIsNotTakenForOne) {
  EXPECT_NE(run({"serve", "--demo", "--listen", "tcp://127.example.invalid:0"}).error.find("--insecure"),
            std::string::npos);
}

TEST(ToolUsage, HelpAndVersionAreResults) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--help"},
                                                                                     {"call", "--help"},
                                                                                     {"notify", "--help"},
                                                                                     {"serve", "--help"},
                                                                                     {"bench", "--help"},
                                                                                     {"--version"}}) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 0);
    EXPECT_NE(ended.output, "");
    EXPECT_EQ(ended.error, "");
    if (words.back() == "--help") {
      EXPECT_NE(ended.output.find(", 130 "), std::string::npos) << words.front();
    }
  }
}

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
