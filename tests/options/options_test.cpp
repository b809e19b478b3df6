// Options out of JSON text, and what is refused with the place and the cure.
#include "wirecall/options.hpp"

#include <expected>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall {
namespace {

template <class T = Options>
std::string refusal(std::string_view json) {
  try {
    static_cast<void>(T::from_json(json));
    return {};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(Options, are_read_from_a_json_object_and_keep_the_defaults_of_what_it_leaves_out) {
  const Options options = Options::from_json(R"({
    "port": 8080, "thread_count": 4, "engine": "epoll", "listen": ["tcp://127.0.0.1:1", "tcp://[::1]:2"],
    "cpu_affinity": [1, 0], "limits": {"batch": 10}, "max_message_size": 4096, "log_level": "debug"
  })");
  EXPECT_EQ(options.port, 8080);
  EXPECT_EQ(options.thread_count, 4U);
  EXPECT_EQ(options.engine, Engine::epoll);
  EXPECT_EQ(options.listen, (std::vector<std::string>{"tcp://127.0.0.1:1", "tcp://[::1]:2"}));
  EXPECT_EQ(options.cpu_affinity, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(options.limits.batch, 10U);
  EXPECT_EQ(options.limits.max_message_size, 4096U);
  EXPECT_EQ(options.log_level, LogLevel::debug);
  EXPECT_EQ(options.limits.depth, Limits{}.depth);
  EXPECT_EQ(options.delimiter, "\n");
  EXPECT_EQ(Options::from_json("{}").port, 8545);
}

TEST(Options, a_number_may_be_written_as_any_number_that_it_is) {
  EXPECT_EQ(Options::from_json(R"({"port": 1e3})").port, 1000);
  EXPECT_EQ(Options::from_json(R"({"port": 7.0})").port, 7);
}

TEST(Options, those_of_a_client_have_the_same_names) {
  const ClientOptions options =
      ClientOptions::from_json(R"({"client_id": "a", "call_timeout_ms": 5, "limits": {"depth": 3}})");
  EXPECT_EQ(options.client_id, "a");
  EXPECT_EQ(options.call_timeout_ms, 5U);
  EXPECT_EQ(options.limits.depth, 3U);
  EXPECT_THROW(static_cast<void>(ClientOptions::from_json(R"({"port": 1})")), std::invalid_argument);
}

TEST(Options, an_unknown_key_is_named_with_the_nearest) {
  EXPECT_EQ(refusal(R"({"prot": 1})"), "there is no option prot; did you mean port?");
  EXPECT_EQ(refusal(R"({"limits": {"bach": 1}})"), "there is no option limits.bach; did you mean limits.batch?");
  EXPECT_EQ(refusal(R"({"client_id": "a"})"), "there is no option client_id") << "of a server";
  EXPECT_EQ(refusal(R"({"zzzzzzzzzzzzzz": 1})"), "there is no option zzzzzzzzzzzzzz");
  EXPECT_EQ(refusal(R"({"\u001b[31m": 1})"), "there is no option \\x1b[31m");
  EXPECT_EQ(refusal(R"({"limits.batch": 1})"), "");
}

TEST(Options, a_mistake_is_told_with_its_line_where_there_are_several) {
  EXPECT_EQ(refusal("{\n  \"port\": 1,\n  \"port\": 2\n}"), "line 3: port is given twice");
  EXPECT_EQ(refusal("{\n  \"port\": 70000\n}"), "line 2: port is 70000: give a number from 0 to 65535");
  EXPECT_EQ(refusal("{\"port\": 1,\n\n\"host\": oops}"), "line 3: the options are not JSON from here on");
  EXPECT_EQ(refusal("{}\n{}"), "line 2: something follows the options");
}

TEST(Options, text_that_is_no_object_is_refused) {
  for (const std::string_view text : {"", " ", "[", "{", "[]", "1", "null", R"({"limits": 1})", R"({"limits": []})"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
}

TEST(Options, a_server_is_made_of_json_text_too) {
  EXPECT_NO_THROW(Server{R"({"limits": {"batch": 10}})"});
  EXPECT_THROW(Server{R"({"limits": {"batch": 0}})"}, std::invalid_argument);
}

TEST(Options, a_client_is_made_of_json_text_too) {
  const std::string endpoint = "inproc://nobody";
  const std::vector endpoints{Endpoint{endpoint}};
  EXPECT_NO_THROW((Client{endpoint, R"({"call_timeout_ms": 200})"}));
  EXPECT_NO_THROW((Client{endpoints, std::string{R"({"limits": {"batch": 10}})"}}));
  EXPECT_THROW((Client{endpoint, R"({"call_timeout_ms": 0})"}), std::invalid_argument);
  EXPECT_THROW((Client{endpoints, std::string_view{R"({"port": 1})"}}), std::invalid_argument);
  // What stands in braces are options, not text.
  EXPECT_NO_THROW((Client{endpoint, {}}));
}

TEST(Options, a_client_s_json_says_how_long_its_calls_may_take) {
  Client client{"inproc://nobody", R"({"connect_attempts": 1, "call_timeout_ms": 20000})"};
  const std::expected<int, Error> nobody = client.try_call<int>("a");
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().code(), -32001);
}

TEST(Options, what_cannot_be_together_is_refused) {
  EXPECT_EQ(refusal(R"({"limits": {"soft_output": 10, "hard_output": 9}})"),
            "limits.soft_output is 10: give no more than limits.hard_output, which is 9");
  EXPECT_EQ(refusal<ClientOptions>(R"({"reconnect_min_ms": 10, "reconnect_max_ms": 9})"),
            "reconnect_min_ms is 10: give no more than reconnect_max_ms, which is 9");
}

TEST(Options, a_program_that_sets_what_cannot_be_is_told_the_same) {
  Options options;
  options.http_notification_status = 201;
  try {
    require_valid(options);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "http_notification_status is 201: give one of 200, 202, 204");
  }
  options = Options{};
  options.engine = static_cast<Engine>(9);
  EXPECT_THROW(require_valid(options), std::invalid_argument);
  options = Options{};
  options.limits.in_flight = 0;
  EXPECT_THROW(require_valid(options), std::invalid_argument);
}

}  // namespace
}  // namespace wirecall
