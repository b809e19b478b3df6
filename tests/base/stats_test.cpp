// The numbers, their sum, and the three texts made of them.
#include "wirecall/stats.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>

namespace wirecall {
namespace {

/// Each field another number, the first 1.
Stats numbered() {
  Stats stats;
  std::uint64_t number = 0;
  for (const StatsField& field : stats_fields()) stats.*field.member += ++number;
  return stats;
}

TEST(Stats, every_number_is_in_the_table) {
  EXPECT_EQ(stats_fields().size() * sizeof(Counter), sizeof(Stats));
  std::set<std::string> names;
  for (const StatsField& field : stats_fields()) {
    EXPECT_TRUE(names.insert(std::string{field.name} + '/' + std::string{field.kind}).second) << field.name;
  }
}

TEST(Stats, are_summed_number_by_number) {
  Stats sum = numbered();
  sum += numbered();
  std::uint64_t number = 0;
  for (const StatsField& field : stats_fields()) EXPECT_EQ(sum.*field.member, 2 * ++number) << field.name;
}

TEST(Stats, a_gauge_goes_down_and_a_sum_of_gauges_is_right_when_one_loop_counts_up_and_another_down) {
  Stats up;
  ++up.connections_open;
  Stats down;
  --down.connections_open;
  up += down;
  EXPECT_EQ(up.connections_open, 0U);
}

TEST(Stats, errors_are_counted_by_code) {
  Stats stats;
  for (const int code : {-32700, -32600, -32601, -32602, -32603, -32002, -32005, -32006, -32009, -32800, -32000, 7}) {
    stats.count_error(code);
  }
  EXPECT_EQ(stats.errors_limit, 2U);
  EXPECT_EQ(stats.errors_other, 2U);
  for (const auto member : {&Stats::errors_parse, &Stats::errors_invalid_request, &Stats::errors_unknown_method,
                            &Stats::errors_invalid_params, &Stats::errors_internal, &Stats::errors_timeout,
                            &Stats::errors_draining, &Stats::errors_cancelled}) {
    EXPECT_EQ(stats.*member, 1U);
  }
}

TEST(Stats, json_has_every_number) {
  const auto json = nlohmann::json::parse(format_stats(StatsFormat::json, numbered()));
  std::uint64_t number = 0;
  for (const StatsField& field : stats_fields()) {
    const auto& value = field.kind.empty() ? json.at(std::string{field.name})
                                           : json.at(std::string{field.name}).at(std::string{field.kind});
    EXPECT_EQ(value, ++number) << field.name;
  }
}

TEST(Stats, prometheus_gets_help_and_type_once_a_name_and_a_line_for_each_number) {
  Stats stats;
  stats.connections_open += 2;
  stats.errors_timeout += 3;
  const std::string text = format_stats(StatsFormat::prometheus, stats);
  EXPECT_EQ(text.substr(0, text.find("# HELP wirecall_connections_accepted")),
            "# HELP wirecall_connections_open Connections open now.\n"
            "# TYPE wirecall_connections_open gauge\n"
            "wirecall_connections_open 2\n");
  EXPECT_NE(text.find("# TYPE wirecall_errors_total counter\nwirecall_errors_total{kind=\"parse_error\"} 0\n"),
            std::string::npos);
  EXPECT_NE(text.find("\nwirecall_errors_total{kind=\"timeout\"} 3\n"), std::string::npos);
  std::set<std::string> comments;
  std::istringstream lines{text};
  std::size_t numbers = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line[0] == '#') {
      EXPECT_TRUE(comments.insert(line).second) << line;
    } else {
      ++numbers;
    }
  }
  EXPECT_EQ(numbers, stats_fields().size());
}

TEST(Stats, people_see_what_is_not_zero) {
  Stats stats;
  stats.calls += 5;
  stats.errors_parse += 1;
  EXPECT_EQ(format_stats(StatsFormat::human, stats),
            "calls                           5\n"
            "errors (parse_error)            1\n");
}

TEST(Stats, one_thread_counts_while_another_reads) {
  Stats stats;
  std::thread writer{[&] {
    for (int i = 0; i < 100'000; ++i) ++stats.calls;
  }};
  std::uint64_t last = 0;
  while (last != 100'000) {
    const Stats copy = stats;
    ASSERT_GE(copy.calls, last);
    last = copy.calls;
  }
  writer.join();
}

}  // namespace
}  // namespace wirecall
