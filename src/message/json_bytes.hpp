// How large a message in MessagePack is as JSON, without making it: for requests of which nobody looks at what would be
// made, so that these are refused for their size as if it had been.
// A pure function over memory of the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wirecall::message {

/// Floats and timestamps are not written for this: so it is between these.
struct JsonBytes {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

/// Of what Transcoder::checked_to_json makes of a single envelope that has been checked. Nothing where only that can
/// tell: something has no form in JSON or may have none, or may nest deeper than `depth_max` there.
[[nodiscard]] std::optional<JsonBytes> json_bytes_of(std::string_view envelope, std::uint32_t depth_max) noexcept;

}  // namespace wirecall::message
