// The parts of messages in MessagePack: for replies what reply_text.hpp is for JSON. Members in the same order:
// jsonrpc, result or error, id. Ids and data of errors come as JSON, as which they are kept. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "message/transcoder.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/error.hpp"

namespace wirecall::message {

// A request, but for the head of its map, which says how many members it has: the method's name follows, its params.
inline constexpr std::string_view kMsgpackMethod =
    "\xA7jsonrpc\xA3"
    "2.0\xA6method";
inline constexpr std::string_view kMsgpackParams = "\xA6params";

/// An id, or the token of an LSP $/progress.
void append_msgpack_id(Buffer& out, std::string_view id_json, Transcoder& transcoder);
/// The value of the result follows, and then `end_msgpack_reply`.
void begin_msgpack_result(Buffer& out);
void end_msgpack_reply(Buffer& out, std::string_view id_json, Transcoder& transcoder);
/// A whole reply.
void append_msgpack_error(Buffer& out, const Error& error, std::string_view id_json, Transcoder& transcoder);
/// An item of a stream: up to its number, where `credited`, else up to its value.
void append_msgpack_item_head(Buffer& out, bool credited, std::string_view name_json, Transcoder& transcoder);
/// The value follows.
void append_msgpack_item_number(Buffer& out, std::uint64_t number);
/// `count` elements, or members, follow.
void append_array_head(Buffer& out, std::size_t count);
void append_map_head(Buffer& out, std::size_t count);
void append_msgpack_member(Buffer& out, std::string_view name, std::uint64_t number);

/// What a request in MessagePack is handed on with: another id, less time and other credit where it has any, and its
/// caller's name.
struct MsgpackEdits {
  std::uint64_t id;
  std::optional<std::uint64_t> timeout_ms = std::nullopt;
  std::optional<std::uint64_t> stream = std::nullopt;  ///< 0 takes that member away
  std::string_view from_json = {};                     ///< empty for nobody's
};
/// A request as it came, valid, but for that, and without `to` and `from` of its own.
void append_msgpack_request(Buffer& out, std::string_view request, const MsgpackEdits& edits, Transcoder& transcoder);

}  // namespace wirecall::message
