// Messages in Protocol Buffers as nearly all are, each in one pass: short, of single values, lists and maps of them,
// texts of plain ASCII. ProtobufTranscoder makes the same of them, and of everything else. Pure functions; `out` has
// what it had before where they return false.
#pragma once

#include <string_view>

#include "wirecall/bytes.hpp"

namespace wirecall::message {

/// The most bytes of JSON that `append_usual_json` appends.
inline constexpr std::size_t kUsualJsonBytesMax = 8192;

/// Appends the JSON of a message with nothing but method, id, params and result, of which params may be a list or map,
/// and result a list. False where it is anything else.
[[nodiscard]] bool append_usual_json(std::string_view message, Buffer& out);

/// Appends the message that a result of ours is, valid JSON with padding behind it, if that is a single value.
[[nodiscard]] bool append_usual_result(std::string_view json, Buffer& out);

}  // namespace wirecall::message
