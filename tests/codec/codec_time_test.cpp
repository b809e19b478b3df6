// Points in time as RFC 3339 strings; the expected seconds were computed with date(1).
#include <ctime>
#include <gtest/gtest.h>

#include "support.hpp"

namespace wirecall {
namespace {

using std::chrono::sys_time;
template <class Unit>
using At = sys_time<Unit>;

using Seconds = At<std::chrono::seconds>;
using Millis = At<std::chrono::milliseconds>;
using Nanos = At<std::chrono::nanoseconds>;

constexpr const char* kExpected = "date-time as 2024-05-06T07:08:09Z";

TEST(Time, KnownInstantsReadAndWrite) {
  const std::pair<const char*, std::int64_t> known[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"2000-02-29T12:34:56Z", 951827696},
      {"2024-05-06T07:08:09Z", 1714979289},
      {"1969-12-31T23:59:59Z", -1},
      {"1900-03-01T00:00:00Z", -2203891200},
      {"9999-12-31T23:59:59Z", 253402300799},
      {"0000-01-01T00:00:00Z", -62167219200},
  };
  for (const auto& [text, seconds] : known) {
    const std::string json = '"' + std::string{text} + '"';
    const auto decoded = from_json<Seconds>(json);
    ASSERT_TRUE(decoded) << text;
    EXPECT_EQ(decoded->time_since_epoch().count(), seconds) << text;
    EXPECT_EQ(to_json(*decoded), json);
  }
}

TEST(Time, EveryDayOfFourCenturiesAgreesWithTheCLibrary) {
  for (std::int64_t day = -70'000; day < 80'000; ++day) {
    const std::time_t seconds = day * 86'400 + 3'661;
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[32];
    std::strftime(text, sizeof text, "\"%Y-%m-%dT%H:%M:%SZ\"", &parts);
    const Seconds time{std::chrono::seconds{seconds}};
    ASSERT_EQ(to_json(time), text);
    ASSERT_EQ(from_json<Seconds>(text).value(), time);
  }
}

TEST(Time, FractionsFollowTheUnit) {
  EXPECT_EQ(to_json(Millis{std::chrono::milliseconds{-1}}), "\"1969-12-31T23:59:59.999Z\"");
  EXPECT_EQ(to_json(At<std::chrono::microseconds>{std::chrono::microseconds{1}}), "\"1970-01-01T00:00:00.000001Z\"");
  EXPECT_EQ(to_json(Nanos{std::chrono::nanoseconds{1}}), "\"1970-01-01T00:00:00.000000001Z\"");
  EXPECT_EQ(to_json(At<std::chrono::days>{std::chrono::days{1}}), "\"1970-01-02T00:00:00Z\"");
  EXPECT_EQ(from_json<Millis>("\"1970-01-01T00:00:00.5Z\"").value().time_since_epoch().count(), 500);
  EXPECT_EQ(from_json<Millis>("\"1970-01-01T00:00:00.123999999999Z\"").value().time_since_epoch().count(), 123);
  EXPECT_EQ(from_json<Millis>("\"1969-12-31T23:59:59.999Z\"").value().time_since_epoch().count(), -1);
  EXPECT_EQ(from_json<At<std::chrono::days>>("\"1969-12-31T23:59:59Z\"").value().time_since_epoch().count(), -1);
}

TEST(Time, OffsetsAreTakenToUtc) {
  EXPECT_EQ(from_json<Seconds>("\"1970-01-01T02:00:00+02:00\"").value().time_since_epoch().count(), 0);
  EXPECT_EQ(from_json<Seconds>("\"1969-12-31t18:30:00-05:30\"").value().time_since_epoch().count(), 0);
  EXPECT_EQ(from_json<Seconds>("\"1970-01-01 00:00:00z\"").value().time_since_epoch().count(), 0);
}

TEST(Time, OtherTextsAreRefused) {
  for (const char* text : {"",
                           "2024",
                           "2024-05-06",
                           "2024-05-06T07:08Z",
                           "2024-05-06T07:08:09",
                           "2024-13-06T07:08:09Z",
                           "2024-00-06T07:08:09Z",
                           "2023-02-29T07:08:09Z",
                           "2024-02-30T07:08:09Z",
                           "2024-05-00T07:08:09Z",
                           "2024-05-06T24:00:00Z",
                           "2024-05-06T07:60:09Z",
                           "2024-05-06T07:08:60Z",
                           "2024-05-06T07:08:09.Z",
                           "2024-05-06T07:08:09+0200",
                           "2024-05-06T07:08:09+24:00",
                           "2024-05-06T07:08:09ZZ",
                           "24-05-06T07:08:09Z",
                           "+024-05-06T07:08:09Z",
                           "2024-05-06T07:08:09+02:00Z"}) {
    EXPECT_EQ(testing::expected_by<Seconds>('"' + std::string{text} + '"'), kExpected) << text;
  }
  EXPECT_EQ(testing::expected_by<Seconds>("0"), kExpected);
}

TEST(Time, WhatTheUnitCannotHoldIsRefused) {
  EXPECT_EQ(testing::expected_by<Nanos>("\"9999-01-01T00:00:00Z\""), "a date-time that the time point can hold");
  EXPECT_EQ(testing::expected_by<Nanos>("\"0001-01-01T00:00:00Z\""), "a date-time that the time point can hold");
  EXPECT_EQ(testing::expected_by<Nanos>("\"2262-04-11T23:47:16Z\""), "decoded");
}

template <class Unit>
void expect_not_written(At<Unit> time) {
  try {
    ADD_FAILURE() << to_json(time);
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "a time point lies outside the years 0 to 9999, which RFC 3339 cannot express");
  }
}

TEST(Time, WhatSecondsCannotHoldIsNotWritten) {
  expect_not_written(At<std::chrono::seconds>::max());
  expect_not_written(At<std::chrono::seconds>::min());
  expect_not_written(At<std::chrono::hours>::max());
  expect_not_written(At<std::chrono::hours>::min());
  using Days = std::chrono::duration<std::int64_t, std::chrono::days::period>;
  expect_not_written(At<Days>::max());
  expect_not_written(At<Days>::min());
}

}  // namespace
}  // namespace wirecall
