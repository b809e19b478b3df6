// See protobuf_usual.hpp.
#include "message/protobuf_usual.hpp"

#include <algorithm>

#include "base/ascii.hpp"
#include "base/decimal.hpp"
#include "base/dotted_name.hpp"
#include "codec/protobuf_regular.hpp"
#include "message/protobuf_fields.hpp"
#include "message/reply_text.hpp"
#include "message/usual_request.hpp"

namespace wirecall::message {
namespace {

using namespace protobuf_wire;

constexpr std::size_t kBytesMin = 8;  // which is_plain_ascii reads at once
constexpr std::size_t kBytesMax = 512;
constexpr std::size_t kShortMax = 0x7F;  // a length of one byte
constexpr std::size_t kDigitsMax = 18;   // of numbers that 64 bits hold, whichever they are

constexpr char kMethodTag = short_tag(kMethodField, WireType::length);
constexpr char kParamsTag = short_tag(kParamsField, WireType::length);
constexpr char kIdTag = short_tag(kIdField, WireType::length);
constexpr char kToTag = short_tag(kToMember.field, WireType::length);
constexpr char kFromTag = short_tag(kFromMember.field, WireType::length);

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
  const std::int64_t value = from_zigzag(bits);
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
    case kIntegerTag:
      if (!is_short) return write_integer(value.substr(1), to);
      if ((second & 1) != 0) *to++ = '-';
      to = write_decimal(to, (second + 1U) >> 1);
      return true;
    case kTextTag: return second == value.size() - 2 && write_text(value.substr(2), end, to);
    case kBooleanTag: to = put(to, second != 0 ? "true" : "false"); return is_short;
    case kNullTag: to = put(to, "null"); return is_short;
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
    if (!take_field(list, tag, element) || tag != kElementTag || !write_single(element, end, to)) return false;
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
    if (!take_field(map, tag, member) || tag != kElementTag) return false;
    if (!take_field(member, tag, part) || tag != kNameTag || !write_text(part, end, to)) return false;
    *to++ = ':';
    if (!take_field(member, tag, part) || tag != kValueTag || !write_single(part, end, to)) return false;
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
  if (tag == kListTag) return write_list(content, end, to);
  return tag == kMapTag && map_may_be && write_map(content, end, to);
}

bool write_member(char tag, std::string_view content, const char* end, char*& to) noexcept {
  switch (tag) {
    case kMethodTag: to = put(to, R"(,"method":)"); return write_text(content, end, to);
    case kIdTag: to = put(to, kIdHead); return write_single(content, end, to);
    case kParamsTag: to = put(to, R"(,"params":)"); return write_several(content, true, end, to);
    case kResultTag: {
      to = put(to, R"(,"result":)");
      char* const begin = to;
      if (write_single(content, end, to)) return true;
      to = begin;
      return write_several(content, false, end, to);
    }
    default: return false;
  }
}

// ---- as it is ----

/// The integers of params that are a list of at most kIntegersKept from 0 to 999,999,999, each with lengths of one
/// byte. `p` becomes the end of the value; false where it is something else.
bool pass_integers(const char*& p, const char* end, Received& out) noexcept {
  constexpr std::uint64_t kIntegerMax = 999'999'999;
  constexpr std::size_t kVarintMax = 5;  // of that
  const auto left = static_cast<std::size_t>(end - p);
  const auto size = static_cast<unsigned char>(p[0]);
  if (left < 3 || size > kShortMax || size >= left || p[1] != kListTag || p[2] != size - 2) return false;
  const char* const list_end = p + 1 + size;
  const char* at = p + 3;
  std::uint8_t count = 0;
  for (; at != list_end; ++count) {
    if (count == kIntegersKept || list_end - at < 4 || at[0] != kElementTag || at[2] != kIntegerTag) return false;
    const std::size_t bytes = static_cast<unsigned char>(at[1]) - std::size_t{1};
    at += 3;
    if (bytes - 1 >= kVarintMax || bytes > static_cast<std::size_t>(list_end - at)) return false;
    std::uint64_t bits = static_cast<unsigned char>(at[bytes - 1]);
    if (bits > kShortMax) return false;
    for (std::size_t i = bytes - 1; i != 0; --i) {
      const auto byte = static_cast<unsigned char>(at[i - 1]);
      if (byte <= kShortMax) return false;
      bits = bits << 7 | (byte & kShortMax);
    }
    if ((bits & 1) != 0 || bits >> 1 > kIntegerMax) return false;
    out.integers[count] = static_cast<std::uint32_t>(bits >> 1);
    at += bytes;
  }
  out.integer_count = count;
  p = at;
  return true;
}

/// Params that are one packed value, with lengths of one byte.
bool pass_packed(const char*& p, const char* end, Received& out) noexcept {
  const std::string_view packed = only_content(p, end, kPackedTag);
  if (packed.empty()) return false;
  out.params_packed = true;
  out.packed = {packed.data(), packed.size()};
  p = packed.data() + packed.size();
  return true;
}

/// What of a request is in JSON: its id, and the names of clients, if all together are short.
class Terms {
 public:
  explicit Terms(IdText& text) noexcept : to_(text.data()), end_(text.data() + text.size()) {}

  /// Writes an id that is a number or a short text; empty where it is something else.
  [[nodiscard]] std::string_view id(std::string_view value, const char* end) noexcept {
    if (value.size() < 2 || (value[0] != kIntegerTag && value[0] != kTextTag)) return {};
    return write(value.size(), [&](char*& to) { return write_single(value, end, to); });
  }
  [[nodiscard]] std::string_view name(std::string_view name, const char* end) noexcept {
    return write(name.size() + 2, [&](char*& to) { return write_text(name, end, to); });
  }

 private:
  template <class Write>
  std::string_view write(std::size_t bytes, const Write& write) noexcept {
    constexpr std::size_t kNumberMax = 20;
    const char* const begin = to_;
    if (std::max(bytes, kNumberMax) > static_cast<std::size_t>(end_ - to_) || !write(to_)) return {};
    return {begin, static_cast<std::size_t>(to_ - begin)};
  }

  char* to_;
  const char* end_;
};

/// What an envelope has, as it is found.
class Members {
 public:
  explicit Members(Received& out) noexcept : out_(&out) { static_cast<void>(add(Member::jsonrpc, "\"2.0\"", 5)); }
  /// False where it has been there before, or is none.
  bool add(Member member, std::string_view json) noexcept {
    return !json.empty() && add(member, json.data(), json.size());
  }
  bool add(Member member, const char* data, std::size_t size) noexcept {
    out_->spans[static_cast<std::size_t>(member)] = {data, size};
    const bool is_new = (present_ & bit_of(member)) == 0;
    present_ |= bit_of(member);
    return is_new;
  }
  /// Whether those are there that have to be.
  [[nodiscard]] bool end(std::uint32_t wanted) noexcept {
    out_->fault = Fault::none;
    out_->method_escaped = false;
    out_->integers_named = false;
    out_->present = present_;
    out_->batch_size = 0;
    return (present_ & wanted) == wanted;
  }

 private:
  Received* out_;
  std::uint32_t present_ = 0;
};

// ---- from JSON ----

/// A text without escapes.
bool text_from_json(std::string_view json, char*& to) noexcept {
  const std::size_t size = json.size() - 2;
  // Both lengths have one byte.
  if (json.size() < 2 || size > kShortMax - 2 || json.back() != '"' || json.contains('\\')) return false;
  *to++ = kTextTag;
  *to++ = static_cast<char>(size);
  to = put(to, json.substr(1, size));
  return true;
}

bool number_from_json(std::string_view json, char*& to) noexcept {
  const bool is_negative = json.starts_with('-');
  if (is_negative) json.remove_prefix(1);
  std::int64_t number = 0;
  if (json.empty() || json.size() > kDigitsMax) return false;
  for (const char c : json) {
    if (!is_digit(c)) return false;
    number = number * 10 + (c - '0');
  }
  if (is_negative && number == 0) return false;  // -0 is no integer here
  *to++ = kIntegerTag;
  to = write_varint(to, to_zigzag(is_negative ? -number : number));
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

bool read_usual_request(std::string_view message, std::uint32_t depth_max, IdText& id, Received& out) noexcept {
  if (message.size() < kBytesMin) return false;
  const char* p = message.data();
  const char* const end = p + message.size();
  Members members{out};
  Terms terms{id};
  out.integer_count = 0;
  out.params_packed = false;
  while (p != end) {
    const char tag = *p++;
    if (p == end) return false;
    bool is_usual = false;
    if (tag == kParamsTag) {
      const char* const params = p;
      if (!pass_integers(p, end, out) && !pass_packed(p, end, out)) {
        p = depth_max == 0 ? nullptr : regular_end(params, end, depth_max - 1);
        if (p == nullptr) return false;
        const codec::ProtobufKind kind = regular_at(params).kind;
        if (kind != codec::ProtobufKind::list && kind != codec::ProtobufKind::map) return false;
      }
      is_usual = depth_max > 1 && members.add(Member::params, params, static_cast<std::size_t>(p - params));
    } else {
      const std::size_t size = static_cast<unsigned char>(*p++);
      if (size > kShortMax || size > static_cast<std::size_t>(end - p)) return false;
      const std::string_view content{p, size};
      if (tag == kMethodTag) {
        // Received::method() is what is between its quotes, of which nobody sees any where nothing is escaped.
        is_usual =
            is_plain_ascii(p, size, end) && !is_reserved(content) && members.add(Member::method, p - 1, size + 2);
      } else if (tag == kIdTag) {
        is_usual = members.add(Member::id, terms.id(content, end));
      } else if (tag == kToTag || tag == kFromTag) {
        is_usual = members.add(tag == kToTag ? Member::to : Member::from, terms.name(content, end));
      }
      p += size;
    }
    if (!is_usual) return false;
  }
  out.kind = MessageKind::request;
  return members.end(bit_of(Member::method) | bit_of(Member::id));
}

bool read_usual_response(std::string_view message, std::uint32_t depth_max, IdText& id, Received& out) noexcept {
  if (message.size() < kBytesMin || depth_max == 0) return false;
  const char* p = message.data();
  const char* const end = p + message.size();
  Members members{out};
  out.integer_count = 0;
  out.params_packed = false;
  while (p != end) {
    const char tag = *p++;
    const char* const value = p;
    if (tag != kResultTag && tag != kIdTag) return false;
    p = regular_end(p, end, depth_max - 1);
    if (p == nullptr) return false;
    std::string_view json{value, static_cast<std::size_t>(p - value)};
    if (tag == kIdTag) {
      if (static_cast<unsigned char>(json[0]) > kShortMax) return false;
      json = Terms{id}.id(json.substr(1), end);
    }
    if (json.empty() || !members.add(tag == kIdTag ? Member::id : Member::result, json.data(), json.size()))
      return false;
  }
  out.kind = MessageKind::response;
  return members.end(bit_of(Member::result) | bit_of(Member::id));
}

char* write_integer_result(char* to, std::int64_t value) noexcept {
  char* const begin = to;
  begin[0] = kResultTag;
  begin[2] = kIntegerTag;
  to = write_varint(begin + 3, to_zigzag(value));
  begin[1] = static_cast<char>(to - begin - 2);
  return to;
}

char* write_packed_result(char* to, std::string_view packed) noexcept {
  *to++ = kResultTag;
  *to++ = static_cast<char>(packed.size() + 2);
  *to++ = kPackedTag;
  *to++ = static_cast<char>(packed.size());
  return put(to, packed);
}

char* write_usual_id(char* to, std::string_view id_json) noexcept {
  char* const begin = to;
  to += 2;
  if (!(id_json.starts_with('"') ? text_from_json(id_json, to) : number_from_json(id_json, to))) return nullptr;
  begin[0] = kIdTag;
  begin[1] = static_cast<char>(to - begin - 2);
  return to;
}

}  // namespace wirecall::message
