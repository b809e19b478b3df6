// Messages in Protocol Buffers as nearly all are, each in one pass: requests and responses that are read where they
// are, and what is short, of single values, lists and maps of them, texts of plain ASCII. ProtobufTranscoder makes the
// same of them, and of everything else. Pure functions. Where one returns false its Buffer has what it had before, and
// a Received means nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "codec/protobuf_regular.hpp"
#include "message/envelope_members.hpp"
#include "message/protobuf_fields.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {

/// The most bytes of JSON that `append_usual_json` appends.
inline constexpr std::size_t kUsualJsonBytesMax = 8192;

/// Appends the JSON of a message with nothing but method, id, params and result, of which params may be a list or map,
/// and result a list. False where it is anything else.
[[nodiscard]] bool append_usual_json(std::string_view message, Buffer& out);

/// As Transcoder::read_request, of a request with nothing but method, id, params whose values are regular
/// (codec/protobuf_regular.hpp), and names of clients (`to`, `from`).
[[nodiscard]] bool read_usual_request(std::string_view message, std::uint32_t depth_max, IdText& id,
                                      Received& out) noexcept;

/// As Transcoder::read_response, of one whose result is regular.
[[nodiscard]] bool read_usual_response(std::string_view message, std::uint32_t depth_max, IdText& id,
                                       Received& out) noexcept;

/// In front of the value of a result.
inline constexpr char kResultTag = protobuf_wire::short_tag(kResultField, protobuf_wire::WireType::length);
/// Writes a result that is an integer, as the field that it has in an envelope.
[[nodiscard]] char* write_integer_result(char* to, std::int64_t value) noexcept;
inline constexpr std::size_t kIntegerResultBytesMax = 3 + protobuf_wire::kVarintBytesMax;
/// The same of a packed value of at most 100 bytes, in 4 more.
[[nodiscard]] char* write_packed_result(char* to, std::string_view packed) noexcept;

/// Writes an id, given as JSON, as the field that it has in an envelope: at most id_json.size() + kUsualIdBytesMax
/// bytes. Null where it is neither a number of 18 digits nor a short text without escapes.
[[nodiscard]] char* write_usual_id(char* to, std::string_view id_json) noexcept;
inline constexpr std::size_t kUsualIdBytesMax = 16;

}  // namespace wirecall::message
