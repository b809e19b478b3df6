// The data of an error object as a line for a person: what the command prints and what Python's exceptions say. Members
// without words of their own are left out where others have some. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace wirecall::message {

/// What `data`, JSON text, says beyond `message`: `at b, expected integer, got "x"` of wrong params, each further one
/// behind a semicolon; reason, limit, retry_after_ms and did_you_mean. The data itself where it has none of these;
/// empty where all of it is in the message, or there is none. May hold what a peer wrote, control characters included.
[[nodiscard]] std::string error_description(std::string_view message, std::string_view data);

/// Stands behind the message of the error that a method which brokers alone have was answered with: that the server is
/// none, where it has no such method; else empty.
[[nodiscard]] std::string_view no_broker_hint(int code) noexcept;

}  // namespace wirecall::message
