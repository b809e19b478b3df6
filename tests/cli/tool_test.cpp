// The command as a user calls by it, end to end: real processes, real sockets, ports that the system chooses. What has
// to have happened before the next step is waited for, never slept for.
#include <arpa/inet.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/cli/served_tool.hpp"

namespace {

using wirecall::cli::Ended;
using wirecall::cli::Process;
using wirecall::cli::run;
using wirecall::cli::Tool;

TEST_F(Tool, an_array_goes_there_and_back_as_its_file_in_both_encodings) {
  using namespace std::string_literals;
  const std::string file = "\x93NUMPY\x01\0\x4e\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"s +
                           std::string(19, ' ') + "\n" + "\0\0\x80\x3f\0\0\0\x40"s;
  const std::string path = testing::TempDir() + "wirecall-tool-" + std::to_string(::getpid()) + ".npy";
  std::ofstream{path, std::ios::binary} << file;
  const std::string http = "http://" + url_.substr(url_.find("//") + 2) + "/rpc";
  for (const std::string& url : {url_, http}) {
    for (const std::string encoding : {"json", "msgpack", "cbor", "protobuf"}) {
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

TEST_F(Tool, PacksWhatTheMethodTakesPacked) {
  const std::string http = "http://" + url_.substr(url_.find("//") + 2) + "/rpc";
  for (const std::string& url : {url_, http}) {
    const auto packed = [&url](std::vector<std::string> words) {
      words.insert(words.begin(), "call");
      words.insert(words.end(), {"--encoding", "packed"});
      return run(words, url);
    };
    EXPECT_EQ(packed({"subtract", "42", "23"}).output, "19\n");
    EXPECT_EQ(packed({"subtract", "subtrahend=23", "minuend=42", "--timeout", "30s"}).output, "19\n");
    EXPECT_EQ(packed({"subtract", "42", "23", "--json"}).output, "{\"result\":19}\n");
    EXPECT_EQ(packed({"subtract", "42", "23", "--raw"}).output,
              R"({"jsonrpc":"2.0","result":{"$packed":"RhczKxmv4SoTAAAAAAAAAA=="},"id":2})"
              "\n");
    const Ended wrong = packed({"subtract", "42", "x"});
    EXPECT_EQ(wrong.status, 1);
    EXPECT_NE(wrong.error.find("subtrahend"), std::string::npos) << wrong.error;
    const Ended unpacked = packed({"sum", "1", "2"});
    EXPECT_EQ(unpacked.status, 1);
    EXPECT_NE(unpacked.error.find("sum takes no packed params"), std::string::npos) << unpacked.error;
    const Ended unknown = packed({"nowhere"});
    EXPECT_EQ(unknown.status, 1);
    EXPECT_NE(unknown.error.find("-32601"), std::string::npos) << unknown.error;
    EXPECT_EQ(packed({"count", "3", "--stream"}).status, 2);
  }
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

TEST_F(Tool, BenchPrintsEachInterval) {
  const Ended table = run({"bench", "subtract", "42", "23", "-z", "50ms", "--every", "20ms"}, url_);
  EXPECT_EQ(table.status, 0) << table.error;
  EXPECT_EQ(table.output.find("      time      calls   failures"), 0U) << table.output;
  EXPECT_EQ(std::ranges::count(table.output, '\n'), 1 + 3 + 4) << table.output;
  std::istringstream lines{run({"bench", "fail", "7", "no", "-z", "50ms", "--every", "20ms", "--json"}, url_).output};
  std::uint64_t calls = 0;
  double seconds = 0;
  nlohmann::json all;
  for (std::string line; std::getline(lines, line);) {
    all = nlohmann::json::parse(line);
    if (!all.contains("end")) break;
    EXPECT_EQ(all.at("failures"), all.at("calls")) << line;
    EXPECT_TRUE(all.at("latency_us").is_null()) << line;
    calls += all.at("calls").get<std::uint64_t>();
    seconds += all.at("seconds").get<double>();
  }
  EXPECT_EQ(all.at("calls"), calls);
  EXPECT_NEAR(all.at("seconds").get<double>(), seconds, 0.003);
  EXPECT_EQ(run({"bench", "echo", "1", "-z", "50ms", "--every", "9ms"}, url_).status, 2);
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
  EXPECT_NE(text.output.find("\n  strays      1 responses that no call was waiting for; the errors include them\n"),
            std::string::npos)
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

}  // namespace
