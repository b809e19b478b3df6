#include "cli/view/table.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace wirecall::cli {
namespace {

using std::chrono::milliseconds;

TEST(Table, columns_are_as_wide_as_what_is_in_them) {
  Table table{{"NAME", ">CALLS", "ABOUT"}};
  EXPECT_TRUE(table.empty());
  table.add({"a", "1", "first"});
  table.add({"longer", "123456", ""});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.text(),
            "NAME     CALLS  ABOUT\n"
            "a            1  first\n"
            "longer  123456\n");
}

TEST(Table, characters_count_not_bytes) {
  Table table{{"NAME", ">N"}};
  table.add({"é", "1"});
  table.add({"ab", "2"});
  EXPECT_EQ(table.text(), "NAME  N\né     1\nab    2\n");
}

TEST(Table, what_would_steer_a_terminal_is_made_visible) {
  Table table{{"NAME"}};
  table.add({"\x1b[31m\n"});
  EXPECT_EQ(table.text(), "NAME\n\\x1b[31m\\x0a\n");
}

TEST(Table, lines_are_cut_at_a_width) {
  Table table{{"NAME", "ABOUT"}};
  table.add({"é", "something"});
  EXPECT_EQ(table.lines(8), (std::vector<std::string>{"NAME  AB", "é     so"}));
}

TEST(Text, is_cut_between_characters) {
  EXPECT_EQ(cut("aéb", 2), "aé");
  EXPECT_EQ(cut("aéb", 3), "aéb");
  EXPECT_EQ(cut("aéb", 0), "");
  EXPECT_EQ(cut("", 3), "");
}

TEST(Text, of_a_time_has_two_units) {
  EXPECT_EQ(duration_text(milliseconds{999}), "0 s");
  EXPECT_EQ(duration_text(milliseconds{59'999}), "59 s");
  EXPECT_EQ(duration_text(milliseconds{125'000}), "2 m 5 s");
  EXPECT_EQ(duration_text(milliseconds{3'600'000}), "1 h 0 m");
  EXPECT_EQ(duration_text(milliseconds{90'061'000}), "1 d 1 h");
}

TEST(Text, of_bytes_has_three_digits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "0.98 KiB");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(24.5 * 1024 * 1024), "24.5 MiB");
  EXPECT_EQ(bytes_text(200.0 * 1024 * 1024 * 1024), "200 GiB");
}

TEST(Text, of_a_rate_has_three_digits) {
  EXPECT_EQ(rate_text(0), "0");
  EXPECT_EQ(rate_text(0.25), "0.25");
  EXPECT_EQ(rate_text(12.5), "12.5");
  EXPECT_EQ(rate_text(1532.4), "1532");
}

}  // namespace
}  // namespace wirecall::cli
