// See protobuf_usual.hpp.
#include "message/protobuf_usual.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/ascii.hpp"
#include "base/decimal.hpp"
#include "codec/protobuf_value.hpp"
#include "codec/protobuf_wire.hpp"
#include "message/protobuf_fields.hpp"
#include "message/reply_text.hpp"
#include "message/usual_request.hpp"

namespace wirecall::message {
namespace {

using codec::ProtobufKind;
using protobuf_wire::WireType;

constexpr std::size_t kBytesMin = 8;  // which is_plain_ascii reads at once
constexpr std::size_t kBytesMax = 512;
constexpr std::size_t kShortMax = 0x7F;  // a length of one byte
constexpr std::size_t kDigitsMax = 18;   // of numbers that 64 bits hold, whichever they are

/// Of a field whose tag has one byte, as those below have (checked there).
constexpr char short_tag(std::uint32_t field, WireType type) {
  return static_cast<char>(protobuf_wire::tag_of(field, type));
}
constexpr char tag_of(ProtobufKind kind, WireType type) { return short_tag(codec::field_of(kind), type); }

constexpr char kNull = tag_of(ProtobufKind::null, WireType::varint);
constexpr char kBoolean = tag_of(ProtobufKind::boolean, WireType::varint);
constexpr char kInteger = tag_of(ProtobufKind::integer, WireType::varint);
constexpr char kText = tag_of(ProtobufKind::text, WireType::length);
constexpr char kList = tag_of(ProtobufKind::list, WireType::length);
constexpr char kMap = tag_of(ProtobufKind::map, WireType::length);
constexpr char kElement = short_tag(codec::kElementField, WireType::length);
constexpr char kName = short_tag(codec::kNameField, WireType::length);
constexpr char kValue = short_tag(codec::kValueField, WireType::length);

constexpr char tag_of(std::string_view member) {
  return short_tag(std::ranges::find(kProtobufMembers, member, &ProtobufMember::name)->field, WireType::length);
}
constexpr char kMethod = tag_of("method");
constexpr char kParams = tag_of("params");
constexpr char kResult = tag_of("result");
constexpr char kId = tag_of("id");
static_assert(std::ranges::all_of(std::array<signed char, 13>{kNull, kBoolean, kInteger, kText, kList, kMap, kElement,
                                                              kName, kValue, kMethod, kParams, kResult, kId},
                                  [](signed char tag) { return tag > 0; }));

// ---- to JSON ----

/// Takes the next field's tag and content, which has a length of one byte.
[[gnu::always_inline]] inline bool take_field(std::string_view& from, char& tag, std::string_view& content) noexcept {
  if (from.size() < 2) return false;
  tag = from[0];
  const auto size = static_cast<unsigned char>(from[1]);
  if (size > kShortMax || size > from.size() - 2) return false;
  content = from.substr(2, size);
  from.remove_prefix(2 + std::size_t{size});
  return true;
}

/// `end` is the message's, of which kBytesMin can be read.
[[gnu::always_inline]] inline bool write_text(std::string_view text, const char* end, char*& to) noexcept {
  if (!is_plain_ascii(text.data(), text.size(), end)) return false;
  *to++ = '"';
  to = put(to, text);
  *to++ = '"';
  return true;
}

bool write_integer(std::string_view varint, char*& to) noexcept {
  constexpr std::size_t kVarintMax = 9;  // of 63 bits
  if (varint.size() > kVarintMax) return false;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i != varint.size(); ++i) {
    const auto byte = static_cast<unsigned char>(varint[i]);
    if ((byte > kShortMax) != (i + 1 != varint.size())) return false;
    bits |= std::uint64_t{byte & kShortMax} << (7 * i);
  }
  const std::int64_t value = protobuf_wire::from_zigzag(bits);
  if (value < 0) *to++ = '-';
  to = write_decimal(to, value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value));
  return true;
}

/// A whole Value that has one field: no list and no map.
[[gnu::always_inline]] inline bool write_single(std::string_view value, const char* end, char*& to) noexcept {
  if (value.size() < 2) return false;
  const auto second = static_cast<unsigned char>(value[1]);
  const bool is_short = value.size() == 2 && second <= kShortMax;
  switch (value[0]) {
    case kInteger:
      if (!is_short) return write_integer(value.substr(1), to);
      if ((second & 1) != 0) *to++ = '-';
      to = write_decimal(to, (second + 1U) >> 1);
      return true;
    case kText: return second == value.size() - 2 && write_text(value.substr(2), end, to);
    case kBoolean: to = put(to, second != 0 ? "true" : "false"); return is_short;
    case kNull: to = put(to, "null"); return is_short;
    default: return false;
  }
}

bool write_list(std::string_view list, const char* end, char*& to) noexcept {
  char tag = 0;
  std::string_view element;
  char* const begin = to;
  *to++ = '[';
  while (!list.empty()) {
    if (to != begin + 1) *to++ = ',';
    if (!take_field(list, tag, element) || tag != kElement || !write_single(element, end, to)) return false;
  }
  *to++ = ']';
  return true;
}

bool write_map(std::string_view map, const char* end, char*& to) noexcept {
  char tag = 0;
  std::string_view member;
  std::string_view part;
  char* const begin = to;
  *to++ = '{';
  while (!map.empty()) {
    if (to != begin + 1) *to++ = ',';
    if (!take_field(map, tag, member) || tag != kElement) return false;
    if (!take_field(member, tag, part) || tag != kName || !write_text(part, end, to)) return false;
    *to++ = ':';
    if (!take_field(member, tag, part) || tag != kValue || !write_single(part, end, to)) return false;
    if (!member.empty()) return false;
  }
  *to++ = '}';
  return true;
}

/// A Value that is one list, or one map where that may be.
bool write_several(std::string_view value, bool map_may_be, const char* end, char*& to) noexcept {
  char tag = 0;
  std::string_view content;
  if (!take_field(value, tag, content) || !value.empty()) return false;
  if (tag == kList) return write_list(content, end, to);
  return tag == kMap && map_may_be && write_map(content, end, to);
}

bool write_member(char tag, std::string_view content, const char* end, char*& to) noexcept {
  switch (tag) {
    case kMethod: to = put(to, R"(,"method":)"); return write_text(content, end, to);
    case kId: to = put(to, kIdHead); return write_single(content, end, to);
    case kParams: to = put(to, R"(,"params":)"); return write_several(content, true, end, to);
    case kResult: {
      to = put(to, R"(,"result":)");
      char* const begin = to;
      if (write_single(content, end, to)) return true;
      to = begin;
      return write_several(content, false, end, to);
    }
    default: return false;
  }
}

// ---- from JSON ----

/// Takes the value that `json` begins with, and writes it as a field that holds a Value.
bool write_value(std::string_view& json, char tag, char*& to) noexcept {
  char* const begin = to;
  *to++ = tag;
  char& size = *to++;
  std::size_t taken = 0;
  const auto is = [&](std::string_view literal) {
    taken = json.starts_with(literal) ? literal.size() : 0;
    return taken != 0;
  };
  if (is("true") || is("false") || is("null")) {
    *to++ = json[0] == 'n' ? kNull : kBoolean;
    *to++ = json[0] == 't' ? 1 : 0;
  } else if (json.starts_with('"')) {
    const std::size_t text = json.find_first_of("\"\\", 1);
    // Both lengths have one byte.
    if (text == std::string_view::npos || json[text] == '\\' || text > kShortMax - 2) return false;
    *to++ = kText;
    *to++ = static_cast<char>(text - 1);
    to = put(to, json.substr(1, text - 1));
    taken = text + 1;
  } else {
    const bool is_negative = json.starts_with('-');
    const std::size_t first = is_negative ? 1 : 0;
    std::int64_t number = 0;
    for (taken = first; taken != json.size() && is_digit(json[taken]); ++taken) {
      if (taken - first == kDigitsMax) return false;
      number = number * 10 + (json[taken] - '0');
    }
    // -0 is no integer here.
    if (taken == first || (is_negative && number == 0)) return false;
    *to++ = kInteger;
    to = protobuf_wire::write_varint(to, protobuf_wire::to_zigzag(is_negative ? -number : number));
  }
  size = static_cast<char>(to - begin - 2);
  json.remove_prefix(taken);
  return true;
}

}  // namespace

bool append_usual_json(std::string_view message, Buffer& out) {
  constexpr std::size_t kGrowth = 8;  // a method without a name has two bytes there, and twelve here
  static_assert(kGrowth * kBytesMax + 32 < kUsualJsonBytesMax);
  if (message.size() < kBytesMin || message.size() > kBytesMax) return false;
  const char* const end = message.data() + message.size();
  char* to = put(out.reserve(kGrowth * message.size() + 32), R"({"jsonrpc":"2.0")");
  char tag = 0;
  std::string_view content;
  while (!message.empty()) {
    if (!take_field(message, tag, content) || !write_member(tag, content, end, to)) return false;
  }
  *to++ = '}';
  out.set_end(to);
  return true;
}

bool append_usual_result(std::string_view json, Buffer& out) {
  if (json.size() > kBytesMax || !json.starts_with(kResultHead)) return false;
  json.remove_prefix(kResultHead.size());
  char* to = out.reserve(json.size() + 32);
  if (!write_value(json, kResult, to) || !json.starts_with(kIdHead)) return false;
  json.remove_prefix(kIdHead.size());
  if (!write_value(json, kId, to) || json != "}") return false;
  out.set_end(to);
  return true;
}

}  // namespace wirecall::message
