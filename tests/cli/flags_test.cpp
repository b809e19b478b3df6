// Every option is a flag that the help tells of, that sets it, and that refuses what it cannot be.
#include "cli/config/flags.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/options/another_option.hpp"

namespace wirecall::cli {
namespace {

/// The help without the line breaks and indents that a terminal's width puts into it.
std::string unwrapped(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  const auto both_spaces = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), both_spaces), text.end());
  return text;
}

template <class T>
std::string apply(const std::vector<std::string>& words, T& options) {
  CLI::App app;
  const OptionFlags<T> flags{app};
  std::vector<std::string> reversed{words.rbegin(), words.rend()};
  app.parse(reversed);
  const auto applied = flags.apply(options);
  return applied ? "" : applied.error();
}

template <class T>
void are_in_help(bool (*has)(const net::OptionRow&)) {
  CLI::App app;
  const OptionFlags<T> flags{app};
  const std::string help = unwrapped(app.help());
  for (const net::OptionRow& row : net::option_rows()) {
    if (!has(row)) continue;
    EXPECT_NE(help.find(net::flag_of(row)), std::string::npos) << row.name;
    EXPECT_NE(help.find(unwrapped(std::string{row.doc} + ": " + net::range_of(row))), std::string::npos) << row.name;
  }
}

TEST(OptionFlags, are_all_in_the_help_with_their_ranges) {
  are_in_help<Options>([](const net::OptionRow& row) { return row.in_server != nullptr; });
  are_in_help<ClientOptions>([](const net::OptionRow& row) { return row.in_client != nullptr; });
}

/// What all options of a T are, by name.
template <class T>
std::map<std::string_view, std::string> values(T& options) {
  std::map<std::string_view, std::string> all;
  for (const net::OptionRow& row : net::option_rows()) {
    if (const auto in = net::slot_in<T>(row)) all[row.name] = net::json_of(row, in(options, row));
  }
  return all;
}

template <class T>
void each_sets_its_own() {
  for (const net::OptionRow& row : net::option_rows()) {
    if (net::slot_in<T>(row) == nullptr) continue;
    T options;
    auto expected = values(options);
    expected[row.name] = net::test::another<T>(row);
    std::vector<std::string> words;
    for (std::string& word : net::test::words_of(expected[row.name])) {
      words.push_back(net::flag_of(row));
      words.push_back(std::move(word));
    }
    EXPECT_EQ(cli::apply(words, options), "") << row.name;
    EXPECT_EQ(values(options), expected) << row.name;
  }
}

TEST(OptionFlags, set_each_what_it_names_and_nothing_else) {
  each_sets_its_own<Options>();
  each_sets_its_own<ClientOptions>();
}

TEST(OptionFlags, may_come_together_and_be_joined_with_their_values) {
  Options options;
  EXPECT_EQ(apply({"--threads", "4", "--engine", "epoll", "--listen", "tcp://127.0.0.1:1", "--listen", "tcp://[::1]:2",
                   "--cpu-affinity", "1", "--cpu-affinity", "0", "--limits-batch", "7", "--max-message-size=100"},
                  options),
            "");
  EXPECT_EQ(options.thread_count, 4U);
  EXPECT_EQ(options.engine, Engine::epoll);
  EXPECT_EQ(options.listen, (std::vector<std::string>{"tcp://127.0.0.1:1", "tcp://[::1]:2"}));
  EXPECT_EQ(options.cpu_affinity, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(options.limits.batch, 7U);
  EXPECT_EQ(options.limits.max_message_size, 100U);
  EXPECT_EQ(options.port, Options{}.port);
  ClientOptions client;
  EXPECT_EQ(apply({"--call-timeout-ms", "5", "--client-id", "7"}, client), "");
  EXPECT_EQ(client.call_timeout_ms, 5U);
  EXPECT_EQ(client.client_id, "7");
}

TEST(OptionFlags, refuse_by_name_value_and_range) {
  Options options;
  EXPECT_EQ(apply({"--port", "65536"}, options), "--port: port is 65536: give a number from 0 to 65535");
  EXPECT_EQ(apply({"--port", "x"}, options), "--port: port is \"x\": give a number from 0 to 65535");
  EXPECT_EQ(apply({"--port", "-1"}, options), "--port: port is \"-1\": give a number from 0 to 65535");
  EXPECT_EQ(apply({"--engine", "kqueue"}, options), "--engine: engine is \"kqueue\": give one of auto, epoll, uring");
  EXPECT_EQ(apply({"--host", "\xFF"}, options), "--host: host is \"\\xff\": give a string");
  EXPECT_EQ(apply({"--log-level", "\xFF"}, options),
            "--log-level: log_level is \"\\xff\": give one of debug, info, warning, error");
  EXPECT_NE(apply({"--limits-soft-output", "99999999"}, options).find("limits.hard_output"), std::string::npos);
}

TEST(OptionFlags, know_which_were_given) {
  CLI::App app;
  const OptionFlags<Options> flags{app};
  std::vector<std::string> words{"1", "--port"};
  app.parse(words);
  EXPECT_TRUE(flags.given("port"));
  EXPECT_FALSE(flags.given("host"));
}

}  // namespace
}  // namespace wirecall::cli
