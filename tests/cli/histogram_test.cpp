// The histogram against sorted lists, and the text that plotters read.
#include "cli/load/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace wirecall::cli {
namespace {

TEST(Histogram, keeps_small_values_exactly) {
  Histogram histogram;
  for (std::uint64_t ns = 1; ns <= 100; ++ns) histogram.record(ns);
  EXPECT_EQ(histogram.count(), 100U);
  EXPECT_EQ(histogram.at(0.5), 50U);
  EXPECT_EQ(histogram.at(0.99), 99U);
  EXPECT_EQ(histogram.at(1), 100U);
  EXPECT_EQ(histogram.at(0), 1U);
  EXPECT_EQ(histogram.max(), 100U);
  EXPECT_EQ(histogram.mean(), 50.5);
  EXPECT_EQ(histogram.up_to(25), 25U);
}

TEST(Histogram, agrees_with_a_sorted_list_to_one_64th) {
  const unsigned seed = 7;
  std::mt19937_64 random{seed};
  std::vector<std::uint64_t> values;
  Histogram histogram;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(random() >> (random() % 64));
    histogram.record(values.back());
  }
  std::ranges::sort(values);
  for (const double quantile : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const std::uint64_t exact = values[static_cast<std::size_t>(std::ceil(quantile * 10'000)) - 1];
    EXPECT_GE(histogram.at(quantile), exact) << quantile;
    EXPECT_LE(histogram.at(quantile) - exact, exact / 64) << quantile;
  }
}

TEST(Histogram, takes_the_smallest_and_the_largest_of_64_bits) {
  Histogram histogram;
  EXPECT_EQ(histogram.at(0.5), 0U);
  EXPECT_EQ(histogram.mean(), 0);
  histogram.record(0);
  EXPECT_EQ(histogram.at(1), 0U);
  histogram.record(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(histogram.at(1), std::numeric_limits<std::uint64_t>::max());
}

TEST(Histogram, writes_the_percentiles_as_plotters_read_them) {
  Histogram histogram;
  for (int i = 0; i < 9; ++i) histogram.record(1000);
  histogram.record(64'000);
  std::istringstream lines{hdr(histogram)};
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "       Value     Percentile TotalCount 1/(1-Percentile)");
  std::getline(lines, line);
  EXPECT_EQ(line, "");
  std::getline(lines, line);
  EXPECT_EQ(line, "       1.007 0.000000000000          9           1.00");  // 1000 ns to one 64th
  std::getline(lines, line);
  EXPECT_EQ(line, "       1.007 0.100000000000          9           1.11");
  std::string last;
  while (std::getline(lines, line) && line[0] != '#') last = line;
  EXPECT_EQ(last, "      64.000 1.000000000000         10");
  // mean: (9 * 1000 + 64000) / 10
  EXPECT_EQ(line.substr(0, 25), "#[Mean    =        7.300,");
  std::getline(lines, line);
  EXPECT_EQ(line, "#[Max     =       64.000, Total count    =           10]");
}

}  // namespace
}  // namespace wirecall::cli
