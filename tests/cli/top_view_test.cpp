#include "cli/view/top_view.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace wirecall::cli {
namespace {

using std::chrono::milliseconds;

BrokerSamples observed() {
  BrokerSamples seen;
  seen.url = "tcp://127.0.0.1:8545";
  seen.before.uptime = milliseconds{60'000};
  seen.before.counters = {{"calls", 100}, {"errors.timeout", 1}, {"bytes_in", 0}, {"events", 10}};
  seen.before.methods = {{.name = "a", .calls = 10}, {.name = "b", .calls = 50}};
  seen.now.uptime = milliseconds{62'000};
  seen.now.counters = {{"connections_open", 3}, {"calls", 300},     {"errors.timeout", 4},
                       {"errors.other", 1},     {"bytes_in", 4096}, {"events", 10}};
  seen.now.methods = {
      {.name = "a", .calls = 20, .errors = 1, .providers = 1},
      {.name = "b", .calls = 150, .providers = 2, .in_flight = 3, .p50_us = 80, .p99_us = 1200, .max_us = 5000},
      {.name = "c", .calls = 0, .providers = 1}};
  return seen;
}

std::vector<std::string> lines(const BrokerSamples& seen, WindowSize size = {}) {
  std::vector<std::string> texts;
  for (const ScreenLine& line : top_lines(seen, size)) texts.push_back(line.text);
  return texts;
}

TEST(TopView, tells_rates_between_two_answers_and_the_busiest_first) {
  EXPECT_EQ(lines(observed(), {.lines = 24, .columns = 200}),
            (std::vector<std::string>{
                "tcp://127.0.0.1:8545   up 1 m 2 s   q ends",
                "connections 3   calls/s 100   errors/s 2.00   in flight 0   events/s 0",
                "received/s 2.00 KiB   sent/s 0 B   events dropped 0",
                "",
                "METHOD  CALLS/s  ERRORS/s  IN FLIGHT  WAITING      P50      P99      MAX  PROVIDERS  CALLS  ERRORS",
                "b          50.0         0          3        0  80.0 us  1.20 ms  5.00 ms          2    150       0",
                "a          5.00      0.50          0        0        -        -        -          1     20       1",
                "c             0         0          0        0        -        -        -          1      0       0",
            }));
}

TEST(TopView, tells_of_batches_where_there_are_some) {
  BrokerSamples seen = observed();
  seen.now.methods[0].batches = 4;
  seen.now.methods[0].calls_in_batch = 12.25;
  const std::vector<std::string> shown = lines(seen, {.lines = 24, .columns = 200});
  EXPECT_TRUE(shown[4].ends_with("  CALLS  ERRORS  CALLS/BATCH")) << shown[4];
  EXPECT_TRUE(shown[5].ends_with("    150       0            -")) << shown[5];
  EXPECT_TRUE(shown[6].ends_with("     20       1         12.2")) << shown[6];
}

TEST(TopView, knows_no_rates_of_one_answer) {
  BrokerSamples seen = observed();
  seen.before = seen.now;
  EXPECT_EQ(lines(seen)[1], "connections 3   calls/s -   errors/s -   in flight 0   events/s -");
}

TEST(TopView, a_method_that_is_provided_anew_counts_from_none) {
  BrokerSamples seen = observed();
  seen.before.methods[1].calls = 1000;
  EXPECT_TRUE(lines(seen)[5].starts_with("b          75.0 ")) << lines(seen)[5];
}

TEST(TopView, fits_the_window) {
  for (std::size_t height = 1; height < 12; ++height) {
    for (const std::size_t width : {std::size_t{1}, std::size_t{7}, std::size_t{40}}) {
      const std::vector<std::string> texts = lines(observed(), {.lines = height, .columns = width});
      EXPECT_LE(texts.size(), height);
      for (const std::string& text : texts) EXPECT_LE(text.size(), width);
    }
  }
}

TEST(TopView, counts_the_methods_for_which_there_is_no_room) {
  const std::vector<std::string> texts = lines(observed(), {.lines = 7, .columns = 80});
  ASSERT_EQ(texts.size(), 7U);
  EXPECT_TRUE(texts[5].starts_with("b "));
  EXPECT_EQ(texts[6], "and 2 more");
}

TEST(TopView, says_what_the_trouble_is_and_when_there_is_nothing) {
  BrokerSamples seen = observed();
  seen.trouble = "cannot connect\x1b";
  seen.now.methods.clear();
  EXPECT_EQ(lines(seen)[3], "cannot connect\\x1b");
  EXPECT_EQ(lines(seen)[5], "no client provides a method");
}

}  // namespace
}  // namespace wirecall::cli
