#include "codec/codec_number.hpp"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>

namespace wirecall::codec {
namespace {

constexpr auto kExact = Integrality::exact;
constexpr auto kOutOfRange = Integrality::out_of_range;
constexpr auto kFractional = Integrality::fractional;

struct IntCase {
  std::string_view text;
  Integrality integrality;
  std::int64_t value;
};

TEST(Number, IntegersAreExactOver64BitsHoweverTheyAreWritten) {
  const IntCase cases[] = {
      {"0", kExact, 0},
      {"-0", kExact, 0},
      {"-0.0e5", kExact, 0},
      {"0e999999999999999999999", kExact, 0},
      {"1.0", kExact, 1},
      {"1e3", kExact, 1000},
      {"10.00e2", kExact, 1000},
      {"1000E-3", kExact, 1},
      {"-2.50e+1", kExact, -25},
      {"9007199254740991", kExact, 9007199254740991},
      {"9007199254740993", kExact, 9007199254740993},
      {"9007199254740993.0", kExact, 9007199254740993},
      {"-9007199254740993", kExact, -9007199254740993},
      {"9223372036854775807", kExact, std::numeric_limits<std::int64_t>::max()},
      {"9223372036854775807.000", kExact, std::numeric_limits<std::int64_t>::max()},
      {"922337203685477580.7e1", kExact, std::numeric_limits<std::int64_t>::max()},
      {"-9223372036854775808", kExact, std::numeric_limits<std::int64_t>::min()},
      {"0.000000000000000000000000000001e30", kExact, 1},
      {"9223372036854775808", kOutOfRange, 0},
      {"-9223372036854775809", kOutOfRange, 0},
      {"18446744073709551616", kOutOfRange, 0},
      {"99999999999999999999", kOutOfRange, 0},
      {"1E400", kOutOfRange, 0},
      {"1e99999999999999999999999", kOutOfRange, 0},
      {"1.5", kFractional, 0},
      {"1e-1", kFractional, 0},
      {"1e-400", kFractional, 0},
      {"1e-99999999999999999999999", kFractional, 0},
      {"123456789012345678901234567890.5", kFractional, 0},
  };
  for (const IntCase& one : cases) {
    std::int64_t value = 0;
    EXPECT_EQ(parse_integer(one.text, value), one.integrality) << one.text;
    if (one.integrality == kExact) {
      EXPECT_EQ(value, one.value) << one.text;
    }
  }
}

TEST(Number, UnsignedIntegersReachTo2To64) {
  std::uint64_t value = 0;
  EXPECT_EQ(parse_integer("18446744073709551615", value), kExact);
  EXPECT_EQ(value, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_integer("1844674407370955161.5e1", value), kExact);
  EXPECT_EQ(value, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_integer("18446744073709551616", value), kOutOfRange);
  EXPECT_EQ(parse_integer("-1", value), kOutOfRange);
  EXPECT_EQ(parse_integer("-0", value), kExact);
  EXPECT_EQ(value, 0U);
  EXPECT_EQ(parse_integer("0.5", value), kFractional);
}

TEST(Number, MegabytesOfDigitsAreReadOnce) {
  const std::string nines(1'000'000, '9');
  std::int64_t value = 0;
  EXPECT_EQ(parse_integer(nines, value), kOutOfRange);
  EXPECT_EQ(parse_integer("0." + nines, value), kFractional);
  EXPECT_EQ(parse_integer("1" + std::string(1'000'000, '0') + "e-1000000", value), kExact);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(parse_integer("0." + std::string(1'000'000, '0') + "7e1000001", value), kExact);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(parse_integer("7." + std::string(1'000'000, '0'), value), kExact);
  EXPECT_EQ(value, 7);
  double real = 0;
  EXPECT_FALSE(parse_double(nines, real));
  EXPECT_TRUE(parse_double("0." + nines, real));
  EXPECT_EQ(real, 1.0);
}

void expect_as_strtod(const std::string& text) {
  double value = 0;
  ASSERT_TRUE(parse_double(text, value)) << text;
  const double other = std::strtod(text.c_str(), nullptr);
  EXPECT_EQ(std::signbit(value), std::signbit(other)) << text;
  EXPECT_EQ(value, other) << text;
}

TEST(Number, DoublesAreRoundedAsTheCLibraryDoes) {
  for (const char* text : {"0",
                           "-0",
                           "0.0",
                           "-0.0",
                           "1",
                           "0.1",
                           "0.3",
                           "-2.5",
                           "123456789012345",
                           "1234567890123456",
                           "9007199254740993",
                           "3.141592653589793",
                           "2.2250738585072014e-308",
                           "5e-324",
                           "4.9e-324",
                           "1.7976931348623157e308",
                           "1e22",
                           "1e23",
                           "8.5",
                           "0.000001",
                           "123456.789",
                           "999999999999999.9",
                           "0.12345678901234"}) {
    expect_as_strtod(text);
  }
  std::mt19937_64 random{20240506};
  for (int i = 0; i < 20'000; ++i) {
    const auto whole = std::to_string(random() >> (random() % 64));
    const auto part = std::to_string(random() >> (random() % 64));
    std::string text = (random() % 2 == 0 ? "-" : "") + whole;
    if (random() % 2 == 0) text += '.' + part;
    if (random() % 3 == 0) text += 'e' + std::to_string(static_cast<int>(random() % 560) - 280);
    expect_as_strtod(text);
  }
}

TEST(Number, OverflowIsToldFromUnderflow) {
  double value = 1;
  EXPECT_FALSE(parse_double("1e400", value));
  EXPECT_FALSE(parse_double("-1e400", value));
  EXPECT_FALSE(parse_double("1.7976931348623159e308", value));
  EXPECT_TRUE(parse_double("1e-400", value));
  EXPECT_EQ(value, 0);
  EXPECT_FALSE(std::signbit(value));
  EXPECT_TRUE(parse_double("-1e-400", value));
  EXPECT_EQ(value, 0);
  EXPECT_TRUE(std::signbit(value));
  float single = 1;
  EXPECT_FALSE(parse_float("1e39", single));
  EXPECT_TRUE(parse_float("1e-60", single));
  EXPECT_EQ(single, 0);
  EXPECT_TRUE(parse_float("16777217", single));
  EXPECT_EQ(single, 16777216.0F);
}

TEST(Number, EqualNumbersAreEqualHoweverTheyAreWritten) {
  EXPECT_TRUE(same_number("1", "1.0"));
  EXPECT_TRUE(same_number("1000", "1e3"));
  EXPECT_TRUE(same_number("0.10", "1e-1"));
  EXPECT_TRUE(same_number("-0", "0.0"));
  EXPECT_TRUE(same_number("1e400", "10e399"));
  EXPECT_FALSE(same_number("1", "-1"));
  EXPECT_FALSE(same_number("1", "10"));
  EXPECT_FALSE(same_number("9007199254740992", "9007199254740993"));
  EXPECT_TRUE(same_digits("0.1", 0.1));
  EXPECT_TRUE(same_digits("1.00e-1", 0.1));
  EXPECT_FALSE(same_digits("0.1000000000000000055511151231257827", 0.1));
}

}  // namespace
}  // namespace wirecall::codec
