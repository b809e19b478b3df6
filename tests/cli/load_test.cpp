// The load against a server, and against peers that answer as no server of ours does. Times are real, so nothing here
// depends on how many calls there were, but on what is true of any number.
#include "cli/load/load.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "transport/endpoint_socket.hpp"
#include "wirecall/server.hpp"

namespace wirecall::cli {
namespace {

using namespace std::chrono_literals;

class LoadTest : public testing::Test {
 protected:
  LoadTest() {
    server_.method("subtract", [](int a, int b) { return a - b; });
    server_.method("next", [this] { return ++number_; });
    server_.method("fail", [](int code) { throw Error{code, "no"}; });
    server_.method("stall_once", [this] {
      if (!std::exchange(stalled_, true)) std::this_thread::sleep_for(kStall);
    });
    options_.endpoint = server_.listen("tcp://127.0.0.1:0");
    thread_ = std::thread{[this] { server_.run(); }};
    options_.warm_up = 0ms;
    options_.duration = 150ms;
  }
  ~LoadTest() override {
    server_.stop();
    thread_.join();
  }

  /// Each call is answered and measured, however many are in flight.
  void expect_answers();

  static constexpr auto kStall = 60ms;
  LoadOptions options_{.endpoint = Endpoint{"tcp://127.0.0.1"}, .method = "subtract", .params = "[42,23]"};

 private:
  Server server_;
  std::thread thread_;
  int number_ = 0;
  bool stalled_ = false;
};

void LoadTest::expect_answers() {
  for (const std::uint32_t pipeline : {1U, 3U, 16U, 100U}) {
    options_.connections = 3;
    options_.pipeline = pipeline;
    const LoadResult result = run_load(options_);
    EXPECT_EQ(result.lost, "");
    EXPECT_GT(result.answered, 0U);
    EXPECT_EQ(result.latency.count(), result.answered);
    EXPECT_EQ(result.errors, 0U);
    EXPECT_EQ(result.unanswered, 0U);
    EXPECT_GT(result.rate(), 0);
    EXPECT_GE(result.elapsed, options_.duration);
  }
}

TEST_F(LoadTest, each_call_is_answered_and_measured) { expect_answers(); }

TEST_F(LoadTest, each_call_is_answered_by_http_too_pipelined_or_not) {
  options_.endpoint = Endpoint{"http://127.0.0.1:" + std::to_string(options_.endpoint.port()) + "/rpc"};
  for (const std::string_view method : {"subtract", "next"}) {
    options_.method = method;
    options_.params = method == "next" ? "" : "[42,23]";
    expect_answers();
  }
}

TEST_F(LoadTest, replies_that_differ_are_read_one_by_one) {
  options_.method = "next";
  options_.params = "";
  options_.pipeline = 5;
  const LoadResult result = run_load(options_);
  EXPECT_EQ(result.lost, "");
  EXPECT_GT(result.answered, 0U);
  EXPECT_EQ(result.latency.count(), result.answered);
  EXPECT_EQ(result.unanswered, 0U);
}

TEST_F(LoadTest, errors_are_counted_by_code_and_have_no_latency) {
  options_.method = "fail";
  options_.params = "[-7]";
  options_.pipeline = 2;
  const LoadResult result = run_load(options_);
  EXPECT_GT(result.errors, 0U);
  EXPECT_EQ(result.errors, result.answered);
  EXPECT_EQ(result.errors_by_code, (std::map<int, std::uint64_t>{{-7, result.errors}}));
  EXPECT_EQ(result.latency.count(), 0U);
}

TEST_F(LoadTest, at_a_rate_every_call_that_is_due_is_accounted_for) {
  options_.rate = 2000;
  options_.duration = 100ms;
  options_.connections = 2;
  const LoadResult result = run_load(options_);
  EXPECT_LE(result.elapsed, options_.duration);  // also where the machine was away when the time was up
  const double due = 2000 * std::chrono::duration<double>{result.elapsed}.count();
  EXPECT_NEAR(static_cast<double>(result.latency.count() + result.unanswered + result.unsent), due, 2);
}

TEST_F(LoadTest, at_a_rate_what_waits_for_a_server_that_stalls_is_measured_from_when_it_was_due) {
  options_.method = "stall_once";
  options_.params = "";
  options_.rate = 1000;
  options_.duration = 200ms;
  const LoadResult result = run_load(options_);
  // The calls due in the first 50 ms of the stall waited 10 ms at least; a closed loop would have seen one of them.
  const std::uint64_t quick = result.latency.up_to(9'800'000);
  EXPECT_GE(result.latency.count() + result.unsent - quick, 45U);
  EXPECT_GE(result.latency.max(), 59'000'000U);
}

TEST_F(LoadTest, at_a_rate_no_call_is_late_by_as_long_as_the_loop_waits) {
  // Where a call is sent up to a millisecond late, half of them are by more than 0.4 ms. A machine that is busy
  // otherwise may be late as well, but not each time.
  options_.duration = 50ms;
  const std::uint64_t closed = run_load(options_).latency.at(0.5);
  options_.rate = 700;
  std::uint64_t best = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 20 && best > closed + 200'000; ++attempt) {
    best = std::min(best, run_load(options_).latency.at(0.5));
  }
  EXPECT_LE(best, closed + 200'000);
}

TEST_F(LoadTest, progress_is_told_of_what_there_is_so_far) {
  options_.duration = 1100ms;
  std::vector<std::uint64_t> told;
  options_.progress = [&](const LoadResult& so_far) { told.push_back(so_far.answered); };
  const LoadResult result = run_load(options_);
  ASSERT_FALSE(told.empty());
  EXPECT_GT(told.back(), 0U);
  EXPECT_LE(told.back(), result.answered);
}

TEST_F(LoadTest, what_is_stopped_before_its_time_is_measured_until_then) {
  options_.duration = 1h;
  bool connected = false;
  options_.connected = [&] { connected = true; };
  int asked = 0;
  options_.stop = [&] { return connected && ++asked > 100; };
  for (const auto rate : {0.0, 500.0}) {
    asked = 0;
    options_.rate = rate;
    const LoadResult result = run_load(options_);
    EXPECT_GT(result.answered, 0U);
    EXPECT_EQ(result.errors, 0U);
    EXPECT_EQ(result.unanswered, 0U);
    EXPECT_LT(result.elapsed, options_.duration);
  }
  options_.warm_up = 1h;
  const LoadResult result = run_load(options_);
  EXPECT_EQ(result.answered, 0U);
  EXPECT_EQ(result.elapsed, 0ns);
}

/// Accepts one connection and answers with whatever `answer` makes of what has come.
class Stranger {
 public:
  explicit Stranger(std::function<std::string(const std::string&)> answer) : answer_(std::move(answer)) {
    thread_ = std::thread{[this] { serve(); }};
  }
  Stranger(Stranger&&) = delete;
  ~Stranger() {
    thread_.join();
    close(bound_.descriptor);
  }
  [[nodiscard]] const Endpoint& endpoint() const { return bound_.endpoint; }

 private:
  void serve() {
    int peer = -1;
    while ((peer = accept4(bound_.descriptor, nullptr, nullptr, SOCK_CLOEXEC)) < 0) std::this_thread::yield();
    std::string block(1 << 16, '\0');
    for (ssize_t bytes = 0; (bytes = recv(peer, block.data(), block.size(), 0)) > 0;) {
      const std::string out = answer_(block.substr(0, static_cast<std::size_t>(bytes)));
      if (out.empty()) break;
      if (send(peer, out.data(), out.size(), MSG_NOSIGNAL) < 0) break;
    }
    close(peer);
  }

  std::function<std::string(const std::string&)> answer_;
  transport::BoundSocket bound_ = transport::listen_on(Endpoint{"tcp://127.0.0.1:0"});
  std::thread thread_;
};

/// The ids of the requests in the text; what is left of a request that has not wholly come stays in it.
std::vector<std::string> take_ids(std::string& text) {
  std::vector<std::string> ids;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
    const std::size_t at = text.find("\"id\":") + 5;
    ids.push_back(text.substr(at, text.find('}', at) - at));
  }
  return ids;
}

LoadResult load(const Stranger& stranger, std::uint32_t pipeline, std::chrono::milliseconds patience = 200ms) {
  return run_load({.endpoint = stranger.endpoint(),
                   .method = "any",
                   .params = {},
                   .pipeline = pipeline,
                   .warm_up = 0ms,
                   .duration = 150ms,
                   .patience = patience});
}

TEST(LoadOfStrangers, answers_in_another_order_find_their_calls) {
  std::string text;
  const Stranger stranger{[&](const std::string& came) {
    text += came;
    std::vector<std::string> ids = take_ids(text);
    std::ranges::reverse(ids);
    std::string out = "\n";
    for (const std::string& id : ids) out += R"({"jsonrpc":"2.0","result":1,"id":)" + id + "}\n";
    return out;
  }};
  const LoadResult result = load(stranger, 7, 5min);
  EXPECT_EQ(result.lost, "");
  EXPECT_GT(result.answered, 0U);
  EXPECT_EQ(result.latency.count(), result.answered);
  EXPECT_EQ(result.unanswered, 0U);
}

/// The ids of the POSTs in the text; what is left of one that has not wholly come stays in it.
std::vector<std::string> take_posted_ids(std::string& text) {
  std::vector<std::string> ids;
  for (std::size_t end = 0; (end = text.find("\"id\":")) != std::string::npos; text.erase(0, end + 1)) {
    const std::size_t at = end + 5;
    end = text.find('}', at);
    if (end == std::string::npos) break;
    ids.push_back(text.substr(at, end - at));
  }
  return ids;
}

LoadResult load_http(const Stranger& stranger) {
  return run_load({.endpoint = Endpoint{"http://127.0.0.1:" + std::to_string(stranger.endpoint().port())},
                   .method = "any",
                   .params = {},
                   .pipeline = 3,
                   .warm_up = 0ms,
                   .duration = 150ms,
                   .patience = 5min});
}

TEST(LoadOfStrangers, http_replies_in_chunks_and_with_fields_that_differ_are_read) {
  std::string text;
  int number = 0;
  const Stranger stranger{[&](const std::string& came) {
    text += came;
    std::string out = "HTTP/1.1 100 Continue\r\n\r\n";
    for (const std::string& id : take_posted_ids(text)) {
      const std::string body = R"({"jsonrpc":"2.0","result":1,"id":)" + id + "}";
      const std::string size = std::to_string(body.size());
      out += "HTTP/1.1 200 OK\r\nDate: " + std::to_string(++number);
      if (number % 2 == 0) {
        out += "\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n22\r\n" + body.substr(1) + "\r\n0\r\n\r\n";
      } else {
        out += "\r\nContent-Length: " + size + "\r\n\r\n" + body;
      }
    }
    return out;
  }};
  const LoadResult result = load_http(stranger);
  EXPECT_EQ(result.lost, "");
  EXPECT_GT(result.answered, 0U);
  EXPECT_EQ(result.latency.count(), result.answered);
}

TEST(LoadOfStrangers, an_http_reply_that_is_no_answer_is_named) {
  const auto lost = [](const std::string& reply) {
    const Stranger stranger{[&](const std::string&) { return reply; }};
    return load_http(stranger).lost;
  };
  EXPECT_EQ(lost("{}\r\n"), "the server has sent what is no HTTP response: it does not begin with a version of HTTP");
  EXPECT_EQ(lost("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            "the server has sent HTTP status 404 and nothing, where calls are answered");
  EXPECT_EQ(lost("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\n<p>"),
            "the server has sent what is not JSON: HTTP/1.1 404 Not Found\\x0d\\x0aContent-Length: 3"
            "\\x0d\\x0a\\x0d\\x0a<p>");
  EXPECT_EQ(lost("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"),
            "the server has sent a chunk that is malformed");
}

TEST(LoadOfStrangers, an_answer_cut_anywhere_and_without_a_newline_is_one_answer) {
  // Each answer comes in two parts, which the next request's arrival tears apart at another place.
  std::string text;
  std::string rest;
  std::size_t cut = 0;
  const Stranger stranger{[&](const std::string& came) {
    text += came;
    std::string out = rest;
    for (const std::string& id : take_ids(text)) out += R"({"id":)" + id + R"(,"result":"x","jsonrpc":"2.0"})";
    // The last byte is always sent: nothing would ask for it.
    const std::size_t sent = out.size() - std::min(out.size() - 1, ++cut % 9);
    rest = out.size() == sent ? "" : out.substr(sent);
    return out.substr(0, sent);
  }};
  const LoadResult result = load(stranger, 4);
  EXPECT_EQ(result.lost, "");
  EXPECT_GT(result.answered, 0U);
  EXPECT_EQ(result.errors, 0U);
}

TEST(LoadOfStrangers, responses_whose_id_is_not_that_of_a_call_are_strays_and_errors) {
  const auto with_id = [](std::string_view id) {
    const Stranger stranger{
        [=](const std::string&) { return R"({"jsonrpc":"2.0","result":1,"id":)" + std::string{id} + "}\n"; }};
    return load(stranger, 1, 20ms);
  };
  for (const std::string_view id : {"1.0", "1.5", "1e0", "\"1\"", "-1", "2", "null", "true", "18446744073709551617"}) {
    const LoadResult result = with_id(id);
    EXPECT_EQ(result.answered, 0U) << id;
    EXPECT_EQ(result.strays, 1U) << id;
    EXPECT_EQ(result.errors, 1U) << id;
    EXPECT_EQ(result.unanswered, 1U) << id;
    EXPECT_EQ(result.lost, "") << id;
  }
  const LoadResult result = with_id("1");
  EXPECT_GT(result.answered, 0U);
  EXPECT_EQ(result.strays, 0U);
}

TEST(LoadOfStrangers, what_nobody_has_asked_for_is_a_stray_but_for_calls) {
  std::string text;
  const Stranger stranger{[&](const std::string& came) {
    text += came;
    std::string out = R"({"jsonrpc":"2.0","method":"m"}{"jsonrpc":"2.0","method":"m","id":1})";
    for (const std::string& id : take_ids(text)) {
      const std::string response = R"({"jsonrpc":"2.0","result":1,"id":)" + id + "}\n";
      out += response + response + R"({"jsonrpc":"2.0","error":{"code":-7,"message":"no"},"id":null})" + "[" +
             response + "]\n";
    }
    return out;
  }};
  const LoadResult result = load(stranger, 2);
  EXPECT_EQ(result.lost, "");
  EXPECT_GT(result.answered, 0U);
  EXPECT_EQ(result.unanswered, 0U);
  EXPECT_GT(result.strays, 0U);
  EXPECT_EQ(result.errors, result.strays);
  EXPECT_EQ(3 * result.errors_by_code.at(-7), result.strays) << "one given twice, one of no call, one batch";
}

TEST(LoadOfStrangers, what_is_not_json_and_a_closed_connection_end_it_with_the_reason) {
  const Stranger http{[](const std::string&) { return "HTTP/1.1 400 Bad Request\r\n\r\n"; }};
  EXPECT_NE(load(http, 1).lost.find("not JSON: HTTP/1.1 400"), std::string::npos);
  const Stranger closing{[](const std::string&) { return ""; }};
  EXPECT_NE(load(closing, 1).lost, "");
}

TEST(LoadOfStrangers, calls_that_are_refused_with_their_connection_are_errors) {
  const Stranger guarded{[](const std::string&) {
    return R"({"jsonrpc":"2.0","error":{"code":-32004,"message":"Unauthenticated"},"id":1})"
           "\n";
  }};
  const LoadResult result = load(guarded, 3);
  EXPECT_EQ(result.errors, 3U);
  EXPECT_EQ(result.errors_by_code.at(-32004), 3U);
  EXPECT_EQ(result.unanswered, 0U);
  EXPECT_NE(result.lost.find("--token"), std::string::npos) << result.lost;
}

TEST(LoadOfStrangers, calls_that_nobody_answers_are_counted) {
  const Stranger silent{[](const std::string&) { return "\n"; }};
  const LoadResult result = load(silent, 3);
  EXPECT_EQ(result.answered, 0U);
  EXPECT_EQ(result.unanswered, 3U);
}

TEST(LoadOfStrangers, nobody_there_is_told_by_an_exception) {
  transport::BoundSocket bound = transport::listen_on(Endpoint{"tcp://127.0.0.1:0"});
  close(bound.descriptor);
  EXPECT_THROW(static_cast<void>(run_load({.endpoint = bound.endpoint, .method = "any", .params = {}})),
               std::runtime_error);
}

}  // namespace
}  // namespace wirecall::cli
