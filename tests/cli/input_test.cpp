// `wirecall call --stdin`: the lines of standard input go to a handler as its stream.
#include <chrono>
#include <gtest/gtest.h>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/cli/process.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/input_stream.hpp"
#include "wirecall/server.hpp"

namespace wirecall::cli {
namespace {

class CallWithInput : public testing::Test {
 protected:
  CallWithInput() {
    server_.method("sum_all", [](InputStream<int> in) -> Task<int> {
      int sum = 0;
      while (const std::optional<int> value = co_await in.next()) sum += *value;
      co_return sum;
    });
    server_.method("running_sum", [](InputStream<int> in) -> Stream<int> {
      int sum = 0;
      while (const std::optional<int> value = co_await in.next()) co_yield sum += *value;
    });
    server_.method("hear", [this](InputStream<int> in) -> Task<int> {
      int sum = 0;
      while (const std::optional<int> value = co_await in.next()) {
        sum += *value;
        heard_.release();
      }
      co_return sum;
    });
    server_.method("first", [](InputStream<int> in) -> Task<int> { co_return (co_await in.next()).value_or(-1); });
    url_ = server_.listen("tcp://127.0.0.1:0").uri();
    thread_ = std::thread{[this] { server_.run(); }};
  }
  ~CallWithInput() override {
    server_.stop();
    thread_.join();
  }
  Ended call(std::vector<std::string> words, std::string_view input) const {
    words.insert(words.begin(), "call");
    return run(std::move(words), url_, input);
  }

  std::string url_;
  std::counting_semaphore<> heard_{0};

 private:
  Server server_;
  std::thread thread_;
};

TEST_F(CallWithInput, sends_each_line_as_an_item) {
  EXPECT_EQ(call({"sum_all", "--stdin"}, "40\n\n 2 \n").output, "42\n");
  EXPECT_EQ(call({"sum_all", "--stdin"}, "40\n2").output, "42\n") << "without a line break at the end";
  EXPECT_EQ(call({"sum_all", "--stdin"}, "").output, "0\n");
  EXPECT_EQ(call({"sum_all", "--stdin", "--json"}, "1\n").output, "{\"result\":1}\n");
  EXPECT_EQ(call({"first", "--stdin"}, "7\n8\n9\n").output, "7\n") << "an early answer is one";
}

TEST_F(CallWithInput, reaches_a_provider_through_a_broker_in_each_encoding) {
  Broker broker;
  const std::string url = broker.listen("tcp://127.0.0.1:0").uri();
  const net::RunningServer serving{broker};
  Client provider{url};
  provider.provide("sum_all", [](InputStream<int> in) -> Task<int> {
    int sum = 0;
    while (const std::optional<int> value = co_await in.next()) sum += *value;
    co_return sum;
  });
  provider.connect();
  for (const char* encoding : {"json", "msgpack", "cbor", "protobuf"}) {
    const Ended ended = run({"call", "sum_all", "--stdin", "--encoding", encoding}, url, "40\n2\n");
    EXPECT_EQ(ended.output, "42\n") << encoding;
  }
}

TEST_F(CallWithInput, sends_a_line_that_is_typed_at_once) {
  Process process{{"call", "hear", "--stdin"}, url_, "1", Process::Input::goes_on};
  for (const std::string_view typed : {"\n", "2\n", "\n3\n\n", " 4 \n5"}) {
    process.type(typed);
    EXPECT_TRUE(heard_.try_acquire_for(std::chrono::seconds{10})) << "before " << typed;
  }
  process.end_input();
  EXPECT_EQ(process.rest_of_output(), "15\n");
}

TEST_F(CallWithInput, takes_lines_of_any_length_and_number) {
  const std::string padding(20'000, ' ');
  std::string input;
  for (int i = 0; i != 3; ++i) input += padding + "1\n";
  EXPECT_EQ(call({"sum_all", "--stdin"}, input).output, "3\n");
  input.clear();
  for (int i = 0; i != 20'000; ++i) input += "1\n";
  EXPECT_EQ(call({"sum_all", "--stdin"}, input).output, "20000\n");
}

TEST_F(CallWithInput, prints_results_beside_it) {
  EXPECT_EQ(call({"--stream", "running_sum", "--stdin"}, "1\n2\n3\n").output, "1\n3\n6\n");
}

TEST_F(CallWithInput, says_which_line_is_not_json) {
  const Ended ended = call({"sum_all", "--stdin"}, "1\n\ntwo\n");
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.error.find("line 3 of standard input is not JSON"), std::string::npos) << ended.error;
}

}  // namespace
}  // namespace wirecall::cli
