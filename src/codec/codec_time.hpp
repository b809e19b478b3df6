// Points in time as RFC 3339 strings, and as MessagePack's timestamps, for those who have no typed value at hand.
// Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace wirecall::codec {

struct TimePoint {
  std::int64_t seconds = 0;  ///< since 1970-01-01T00:00:00Z
  std::int32_t nanoseconds = 0;
};

/// "2024-05-06T07:08:09Z", with `digits` behind the decimal point: 0, 3, 6 or 9. Empty outside the years 0 to 9999.
[[nodiscard]] std::string format_time(const TimePoint& time, int digits);
/// The same with as few digits as keep all of it.
[[nodiscard]] std::string format_time(const TimePoint& time);
/// The content of an extension -1, in any of its three forms; false when it is none of them.
[[nodiscard]] bool parse_timestamp(std::span<const std::byte> data, TimePoint& out) noexcept;
/// What that is as text; empty for none of the forms, and outside the years 0 to 9999.
[[nodiscard]] std::string timestamp_text(std::span<const std::byte> data);

}  // namespace wirecall::codec
