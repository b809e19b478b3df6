// See msgpack_reply.hpp.
#include "message/msgpack_reply.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "codec/msgpack_format.hpp"
#include "message/msgpack_walk.hpp"

namespace wirecall::message {
namespace {

using std::string_view_literals::operator""sv;

// A map of three, {"jsonrpc":"2.0","result":
constexpr std::string_view kMsgpackResultHead =
    "\x83\xA7jsonrpc\xA3"
    "2.0\xA6result"sv;
constexpr std::string_view kId = "\xA2id"sv;
// {"jsonrpc":"2.0","method":…,"params":{"id":, and with "token":
constexpr std::string_view kItemHead =
    "\x83\xA7jsonrpc\xA3"
    "2.0\xA6method\xA8rpc.item\xA6params\x83\xA2id"sv;
constexpr std::string_view kProgressHead =
    "\x83\xA7jsonrpc\xA3"
    "2.0\xA6method\xAA$/progress\xA6params\x82\xA5token"sv;
constexpr std::string_view kValue = "\xA5value"sv;

// Most ids are numbers.
bool append_number_id(Buffer& out, std::string_view id_json) {
  std::uint64_t number = 0;
  const char* const end = id_json.data() + id_json.size();
  const auto [stop, error] = std::from_chars(id_json.data(), end, number);
  if (error != std::errc{} || stop != end) return false;
  out.set_end(msgpack::write_unsigned(out.reserve(msgpack::kHeadBytesMax), number));
  return true;
}

/// A member of an envelope: its name, empty where that is no string, and all of it.
struct MemberSpan {
  std::string_view name;
  std::string_view member;
};

/// `p` becomes its end.
MemberSpan member_at(const char*& p) noexcept {
  const char* const begin = p;
  const msgpack::Head name = msgpack::read_head(begin);
  p = end_of(end_of(begin));
  const bool named = name.type == msgpack::Type::string;
  return {named ? std::string_view{begin + name.bytes, static_cast<std::size_t>(name.value)} : std::string_view{},
          {begin, static_cast<std::size_t>(p - begin)}};
}

}  // namespace

// One that came in MessagePack has a form there.
void append_msgpack_id(Buffer& out, std::string_view id_json, Transcoder& transcoder) {
  if (append_number_id(out, id_json)) return;
  Buffer padded{id_json};
  if (!transcoder.append_value(padded.padded(), out)) out.push_back('\xC0');
}

void begin_msgpack_result(Buffer& out) { out.append(kMsgpackResultHead); }

void end_msgpack_reply(Buffer& out, std::string_view id_json, Transcoder& transcoder) {
  out.append(kId);
  append_msgpack_id(out, id_json, transcoder);
}

void append_msgpack_error(Buffer& out, const Error& error, std::string_view id_json, Transcoder& transcoder) {
  Buffer padded{id_json};
  transcoder.append_error(error, padded.padded(), out);
}

void append_msgpack_item_head(Buffer& out, bool credited, std::string_view name_json, Transcoder& transcoder) {
  out.append(credited ? kItemHead : kProgressHead);
  append_msgpack_id(out, name_json, transcoder);
  out.append(credited ? "\xA3seq"sv : kValue);
}

void append_msgpack_item_number(Buffer& out, std::uint64_t number) {
  out.set_end(msgpack::write_unsigned(out.reserve(msgpack::kHeadBytesMax), number));
  out.append(kValue);
}

void append_array_head(Buffer& out, std::size_t count) {
  char* const to = out.reserve(msgpack::kHeadBytesMax);
  out.set_end(msgpack::write_size(to, msgpack::kArrayForms, static_cast<std::uint32_t>(count)));
}

void append_map_head(Buffer& out, std::size_t count) {
  char* const to = out.reserve(msgpack::kHeadBytesMax);
  out.set_end(msgpack::write_size(to, msgpack::kMapForms, static_cast<std::uint32_t>(count)));
}

void append_msgpack_member(Buffer& out, std::string_view name, std::uint64_t number) {
  codec::append_string(out, name);
  out.set_end(msgpack::write_unsigned(out.reserve(msgpack::kHeadBytesMax), number));
}

void append_msgpack_request(Buffer& out, std::string_view request, const MsgpackEdits& edits, Transcoder& transcoder) {
  const msgpack::Head head = msgpack::read_head(request.data());
  const char* const members = request.data() + head.bytes;
  const auto goes = [&](std::string_view name) {
    return name == "to" || name == "from" || (name == "stream" && edits.stream == std::uint64_t{0});
  };
  const auto put = [&](std::string_view name, std::string_view member) {
    if (goes(name)) return;
    if (name == "id") return append_msgpack_member(out, name, edits.id);
    if (name == "timeout_ms" && edits.timeout_ms) return append_msgpack_member(out, name, *edits.timeout_ms);
    if (name == "stream" && edits.stream) return append_msgpack_member(out, name, *edits.stream);
    out.append(member);
  };
  // Few have more members than are kept here: their number comes first, so others are gone through twice.
  constexpr std::size_t kKept = 16;
  std::array<MemberSpan, kKept> kept;
  std::size_t count = edits.from_json.empty() ? 0 : 1;
  const char* p = members;
  for (std::uint64_t i = 0; i < head.value; ++i) {
    const MemberSpan member = member_at(p);
    if (i < kKept) kept[i] = member;
    count += goes(member.name) ? 0 : 1;
  }
  append_map_head(out, count);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(head.value, kKept); ++i) put(kept[i].name, kept[i].member);
  if (head.value > kKept) {
    p = kept.back().member.data() + kept.back().member.size();
    for (std::uint64_t i = kKept; i < head.value; ++i) {
      const MemberSpan member = member_at(p);
      put(member.name, member.member);
    }
  }
  if (edits.from_json.empty()) return;
  codec::append_string(out, "from");
  append_msgpack_id(out, edits.from_json, transcoder);
}

}  // namespace wirecall::message
