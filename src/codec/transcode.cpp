// Both directions keep their own stack of open arrays and objects. JSON says only at the end how many elements there
// were and MessagePack at the beginning, so JSON is read once for the counts; with these a $-object is known by its
// bracket, too, without looking ahead.
#include "codec/transcode.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/ascii.hpp"
#include "base/utf8.hpp"
#include "codec/base64.hpp"
#include "codec/codec_number.hpp"
#include "codec/codec_time.hpp"
#include "codec/msgpack_format.hpp"

namespace wirecall::codec {

using msgpack::Head;
using msgpack::Type;

static std::string_view content_of(const char* p, const Head& head) noexcept {
  return {p + head.bytes, static_cast<std::size_t>(head.value)};
}

static std::span<const std::byte> bytes_of(std::string_view text) noexcept { return std::as_bytes(std::span{text}); }

/// The beginning of a string, not cut within a character.
static std::string_view beginning(std::string_view utf8, std::size_t bytes_max) noexcept {
  if (utf8.size() <= bytes_max) return utf8;
  while (bytes_max != 0 && (static_cast<unsigned char>(utf8[bytes_max]) & 0xC0) == 0x80) --bytes_max;
  return utf8.substr(0, bytes_max);
}

constexpr std::string_view kBytes = "$bytes";
constexpr std::string_view kNpy = "$npy";
constexpr std::string_view kImage = "$image";

static bool is_user_name(std::string_view name) noexcept { return name.starts_with('$'); }

// ---- MessagePack to JSON ----

Transcoded MsgpackToJson::operator()(std::string_view msgpack, Buffer& out, std::size_t bytes_max, Names names) {
  lenient_ = false;
  return convert(msgpack.data(), out, bytes_max, names);
}

void MsgpackToJson::describe(const char* msgpack, Buffer& out, std::size_t bytes_max) {
  lenient_ = true;
  shown_max_ = bytes_max;
  convert(msgpack, out, bytes_max, Names::data);
}

Transcoded MsgpackToJson::convert(const char* p, Buffer& out, std::size_t bytes_max, Names names) {
  const std::size_t start = out.size();
  writer_.reset(out);
  levels_.clear();
  for (;;) {
    if (!levels_.empty() && levels_.back().closing == Closing::array) p = small_values(p);
    const Head head = msgpack::read_head(p);
    if (head.type == Type::array) {
      writer_.begin_array(head.value);
      levels_.push_back({head.value, Closing::array});
      p += head.bytes;
    } else if (head.type == Type::map) {
      Closing closing = Closing::map;
      p += head.bytes;
      if (head.value == 1 && (names == Names::data || !levels_.empty())) {
        const Head name = msgpack::read_head(p);
        if (name.type == Type::string && is_user_name(content_of(p, name))) {
          closing = Closing::wrapped_map;
          writer_.begin_object(1);
          writer_.key("$");
        }
      }
      writer_.begin_object(head.value);
      levels_.push_back({head.value, closing});
    } else {
      if (const std::string_view why = scalar(p, head); !why.empty()) return {TranscodeStatus::no_form, why, p};
      p += head.bytes + msgpack::content_bytes(head);
    }
    if (out.size() - start > bytes_max) return {TranscodeStatus::too_large, "", p};
    while (!levels_.empty() && levels_.back().left == 0) {
      if (levels_.back().closing == Closing::array) {
        writer_.end_array();
      } else {
        writer_.end_object();
        if (levels_.back().closing == Closing::wrapped_map) writer_.end_object();
      }
      levels_.pop_back();
    }
    if (levels_.empty()) break;
    --levels_.back().left;
    if (levels_.back().closing != Closing::array) {
      if (const std::string_view why = key(p); !why.empty()) return {TranscodeStatus::no_form, why, p};
      p = msgpack::skip_value(p);
    }
  }
  if (out.size() - start > bytes_max) return {TranscodeStatus::too_large, "", p};
  return {};
}

/// Most elements of long arrays: small integers, and what else has one byte. Leaves at least the last element.
const char* MsgpackToJson::small_values(const char* p) {
  constexpr std::uint64_t kAtOnceMax = 4096;
  std::uint64_t& left = levels_.back().left;  // behind the one at p
  const std::uint64_t count = std::min(left, kAtOnceMax);
  std::uint64_t at = 0;
  while (at != count && static_cast<unsigned char>(p[at]) < 0x80) ++at;
  writer_.small_integers(p, at);
  left -= at;
  return p + at;
}

std::string_view MsgpackToJson::key(const char* p) {
  const Head head = msgpack::read_head(p);
  if (head.type == Type::string) {
    const std::string_view name = content_of(p, head);
    writer_.key(lenient_ ? beginning(name, shown_max_) : name);
  } else if (lenient_) {
    writer_.key(head.type == Type::positive   ? std::to_string(head.value)
                : head.type == Type::negative ? std::to_string(static_cast<std::int64_t>(head.value))
                                              : "?");
  } else {
    return "a map has a key that is no string, which JSON cannot express";
  }
  return {};
}

std::string_view MsgpackToJson::scalar(const char* p, const Head& head) {
  const auto content = [&] {
    const std::string_view all = content_of(p, head);
    return !lenient_ ? all : head.type == Type::string ? beginning(all, shown_max_) : all.substr(0, shown_max_);
  };
  switch (head.type) {
    case Type::nil: writer_.null(); return {};
    case Type::boolean: writer_.boolean(head.value != 0); return {};
    case Type::positive: writer_.unsigned_integer(head.value); return {};
    case Type::negative: writer_.integer(static_cast<std::int64_t>(head.value)); return {};
    case Type::float32:
    case Type::float64:
      if (!std::isfinite(msgpack::real(head)) && !lenient_)
        return "a number is NaN or infinite, which JSON cannot express";
      real(msgpack::real(head));
      return {};
    case Type::string: writer_.string(content()); return {};
    case Type::binary: writer_.bytes(bytes_of(content())); return {};
    case Type::extension: return extension(head.extension, bytes_of(content()));
    case Type::array:
    case Type::map: break;
  }
  return {};
}

void MsgpackToJson::real(double value) {
  // A point says that it is no integer, so that it comes back as what it is.
  char text[40];
  char* end = std::to_chars(text, text + 32, value).ptr;
  if (std::string_view{text, end}.find_first_of(".en") == std::string_view::npos) {
    *end++ = '.';
    *end++ = '0';
  }
  writer_.number_text({text, end});
}

std::string_view MsgpackToJson::extension(std::int8_t type, std::span<const std::byte> data) {
  std::string_view why = "a value has an extension type other than -1, 73 and 78, which JSON cannot express";
  if (type == kNpyExtension || type == kImageExtension) {
    writer_.extension(type, data);
    return {};
  }
  TimePoint time;
  if (type == kTimestampExtension) {
    why = "a timestamp is none of MessagePack's, or outside the years 0 to 9999, which RFC 3339 cannot express";
    if (const std::string text = parse_timestamp(data, time) ? format_time(time) : ""; !text.empty()) {
      writer_.string(text);
      return {};
    }
  }
  if (!lenient_) return why;
  writer_.begin_object(1);
  writer_.key("$extension " + std::to_string(type));
  writer_.bytes(data);
  writer_.end_object();
  return {};
}

// ---- JSON to MessagePack ----

void append_string(Buffer& out, std::string_view utf8) {
  char* to = out.reserve(msgpack::kHeadBytesMax + utf8.size());
  to = msgpack::write_size(to, msgpack::kStringForms, static_cast<std::uint32_t>(utf8.size()));
  if (!utf8.empty()) std::memcpy(to, utf8.data(), utf8.size());
  out.set_end(to + utf8.size());
}

// The usual number: an integer of digits alone that surely fits. -0 is an integer's text, but no integer keeps its
// sign.
static std::optional<std::int64_t> plain_integer(std::string_view text) noexcept {
  constexpr std::size_t kDigitsMax = 18;
  const bool negative = text.front() == '-';
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.size() > kDigitsMax) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : digits) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  if (negative && value == 0) return std::nullopt;
  return negative ? -value : value;
}

std::string_view append_number(Buffer& out, std::string_view text) {
  char* const to = out.reserve(msgpack::kHeadBytesMax);
  if (const std::optional<std::int64_t> plain = plain_integer(text)) [[likely]] {
    out.set_end(msgpack::write_integer(to, *plain));
    return {};
  }
  if (text.find_first_of(".eE") == std::string_view::npos && text != "-0") {
    std::int64_t integer = 0;
    std::uint64_t unsigned_integer = 0;
    if (parse_integer(text, integer) == Integrality::exact) {
      out.set_end(msgpack::write_integer(to, integer));
    } else if (parse_integer(text, unsigned_integer) == Integrality::exact) {
      out.set_end(msgpack::write_unsigned(to, unsigned_integer));
    } else {
      return "an integer is beyond 64 bits, which MessagePack cannot express";
    }
    return {};
  }
  double real = 0;
  if (!parse_double(text, real)) return "a number is beyond the range of a double, which MessagePack cannot express";
  out.set_end(msgpack::write_float64(to, real));
  return {};
}

void JsonToMsgpack::count(std::string_view json) {
  counts_.clear();
  opened_.clear();
  next_count_ = 0;
  bool quoted = false;
  bool fresh = false;  // an array or object has just begun
  for (const char *p = json.data(), *const end = p + json.size(); p != end; ++p) {
    const char c = *p;
    if (quoted) {
      if (c == '\\') ++p;
      quoted = c != '"';
      continue;
    }
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (fresh && c != ']' && c != '}') counts_[opened_.back()] = 1;
    fresh = false;
    switch (c) {
      case '"': quoted = true; break;
      case '[':
      case '{':
        opened_.push_back(counts_.size());
        counts_.push_back(0);
        fresh = true;
        break;
      case ']':
      case '}': opened_.pop_back(); break;
      case ',': ++counts_[opened_.back()]; break;
      default: break;
    }
  }
}

Transcoded JsonToMsgpack::operator()(std::string_view json, Buffer& out, Names names) {
  count(json);
  reader_.reset(json);
  levels_.clear();
  const auto begin = [&](const msgpack::SizeForms& forms, std::uint32_t size) {
    out.set_end(msgpack::write_size(out.reserve(msgpack::kHeadBytesMax), forms, size));
  };
  for (;;) {
    bool at_value = false;  // a value comes next already, instead of what follows one
    switch (reader_.kind()) {
      case ValueKind::null:
        reader_.read_null();
        out.push_back('\xC0');
        break;
      case ValueKind::boolean: {
        bool value = false;
        reader_.read_bool(value);
        out.push_back(value ? '\xC3' : '\xC2');
        break;
      }
      case ValueKind::number: {
        std::string_view text;
        reader_.read_number_text(text);
        if (const std::string_view why = append_number(out, text); !why.empty())
          return {TranscodeStatus::no_form, why, nullptr};
        break;
      }
      case ValueKind::string: {
        std::string_view text;
        reader_.read_string(text);
        append_string(out, text);
        break;
      }
      case ValueKind::array:
        reader_.begin_array();
        begin(msgpack::kArrayForms, counts_[next_count_++]);
        levels_.push_back(Open::array);
        break;
      default: {
        reader_.begin_object();
        const std::uint32_t size = counts_[next_count_++];
        std::string_view name;
        if (size != 1 || (names == Names::members && levels_.empty())) {
          begin(msgpack::kMapForms, size);
          levels_.push_back(Open::object);
        } else if (reader_.next_member(name); is_user_name(name) && base64(name, out)) {
          reader_.next_member(name);  // the end
        } else {
          if (name == "$" && reader_.kind() == ValueKind::object && counts_[next_count_] == 1) unwrap(name);
          begin(msgpack::kMapForms, 1);
          append_string(out, name);
          levels_.push_back(Open::object);
          at_value = true;
        }
        break;
      }
    }
    while (!at_value) {
      if (levels_.empty()) return {};
      std::string_view name;
      if (levels_.back() == Open::array ? reader_.next_element() : reader_.next_member(name)) {
        if (levels_.back() == Open::object) append_string(out, name);
        at_value = true;
      } else {
        levels_.pop_back();
      }
    }
  }
}

void JsonToMsgpack::unwrap(std::string_view& name) {
  const char* const start = reader_.mark();
  std::string_view inner;
  reader_.begin_object();
  reader_.next_member(inner);
  if (!is_user_name(inner)) return reader_.rewind(start);
  ++next_count_;
  levels_.push_back(Open::wrapper);
  name = inner;
}

bool JsonToMsgpack::base64(std::string_view name, Buffer& out) {
  if (reader_.kind() != ValueKind::string || (name != kBytes && name != kNpy && name != kImage)) return false;
  const char* const start = reader_.mark();
  std::string_view text;
  reader_.read_string(text);
  std::size_t size = text.size() / 4 * 3;
  if (size != 0) size -= text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::size_t before = out.size();
  char* to = out.reserve(msgpack::kHeadBytesMax + text.size());
  const auto announced = static_cast<std::uint32_t>(size);
  if (name == kBytes) {
    to = msgpack::write_size(to, msgpack::kBinaryForms, announced);
  } else {
    to = msgpack::write_extension_head(to, name == kNpy ? kNpyExtension : kImageExtension, announced);
  }
  if (base64_decode(text, reinterpret_cast<std::byte*>(to)) == size) {
    out.set_end(to + size);
    return true;
  }
  out.truncate(before);
  reader_.rewind(start);
  return false;
}

}  // namespace wirecall::codec
