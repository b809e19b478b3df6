// Both directions keep their own stack of open arrays and objects. JSON is read once more for JsonCounts.
#include "codec/transcode.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/ascii.hpp"
#include "base/utf8.hpp"
#include "codec/base64.hpp"
#include "codec/cbor_format.hpp"
#include "codec/codec_number.hpp"
#include "codec/codec_time.hpp"
#include "codec/extensions.hpp"
#include "codec/msgpack_format.hpp"

namespace wirecall::codec {

static std::span<const std::byte> bytes_of(std::string_view text) noexcept { return std::as_bytes(std::span{text}); }

/// The beginning of a string, not cut within a character.
static std::string_view beginning(std::string_view utf8, std::size_t bytes_max) noexcept {
  if (utf8.size() <= bytes_max) return utf8;
  while (bytes_max != 0 && (static_cast<unsigned char>(utf8[bytes_max]) & 0xC0) == 0x80) --bytes_max;
  return utf8.substr(0, bytes_max);
}

// ---- to JSON ----

void write_real(json::JsonWriter& writer, double value) {
  // A point says that it is no integer, so that it comes back as what it is.
  char text[40];
  char* end = std::to_chars(text, text + 32, value).ptr;
  if (std::string_view{text, end}.find_first_of(".en") == std::string_view::npos) {
    *end++ = '.';
    *end++ = '0';
  }
  writer.number_text({text, end});
}

template <class Format>
Transcoded ToJson<Format>::operator()(std::string_view encoded, Buffer& out, std::size_t bytes_max, Names names) {
  lenient_ = false;
  return convert(encoded.data(), out, bytes_max, names);
}

template <class Format>
void ToJson<Format>::describe(const char* encoded, Buffer& out, std::size_t bytes_max) {
  lenient_ = true;
  shown_max_ = bytes_max;
  convert(encoded, out, bytes_max, Names::data);
}

template <class Format>
Transcoded ToJson<Format>::convert(const char* p, Buffer& out, std::size_t bytes_max, Names names) {
  const std::size_t start = out.size();
  writer_.reset(out);
  levels_.clear();
  arena_.rewind();
  for (;;) {
    if (!levels_.empty() && levels_.back().closing == Closing::array) p = small_values(p);
    const Head head = Format::read_head(p);
    if (head.type == Type::array) {
      writer_.begin_array(head.value);
      levels_.push_back({head.value, Closing::array});
      p += head.bytes;
    } else if (head.type == Type::map) {
      p = begin_map(p, head, names == Names::data || !levels_.empty(), out);
    } else {
      if (const std::string_view why = scalar(p, head); !why.empty()) return {TranscodeStatus::no_form, why, p};
      p = Format::behind(p, head);
    }
    if (out.size() - start > bytes_max) return {TranscodeStatus::too_large, "", p};
    while (!levels_.empty() && Format::at_end(p, levels_.back().left)) {
      end(levels_.back(), out);
      levels_.pop_back();
    }
    if (levels_.empty()) break;
    if (Level& level = levels_.back(); level.closing != Closing::array) {
      ++level.members;
      if (const std::string_view why = key(p); !why.empty()) return {TranscodeStatus::no_form, why, p};
      p = Format::skip_value(p);
    }
  }
  if (out.size() - start > bytes_max) return {TranscodeStatus::too_large, "", p};
  return {};
}

/// Of user data whose only name begins with `$` the object is wrapped. Where only its end tells how many there are,
/// that is seen to there.
template <class Format>
const char* ToJson<Format>::begin_map(const char* p, const Head& head, bool is_data, const Buffer& out) {
  Closing closing = Closing::map;
  const bool indefinite = head.value == kIndefinite;
  p += head.bytes;
  if (is_data && (head.value == 1 || (indefinite && !Format::at_end_mark(p)))) {
    const Head name = Format::read_head(p);
    if (name.type == Type::string && is_user_name(Format::content(p, name, arena_)))
      closing = indefinite ? Closing::perhaps_wrapped_map : Closing::wrapped_map;
  }
  if (closing == Closing::wrapped_map) {
    writer_.begin_object(1);
    writer_.key("$");
  }
  writer_.begin_object(head.value);
  levels_.push_back({head.value, closing, 0, out.size() - 1});
  return p;
}

template <class Format>
void ToJson<Format>::end(const Level& level, Buffer& out) {
  if (level.closing == Closing::array) return writer_.end_array();
  writer_.end_object();
  if (level.closing == Closing::perhaps_wrapped_map && level.members == 1) {
    constexpr std::string_view kWrapper = R"({"$":)";
    char* const end = out.reserve(kWrapper.size());
    char* const begin = out.data() + level.begin;
    std::memmove(begin + kWrapper.size(), begin, static_cast<std::size_t>(end - begin));
    std::memcpy(begin, kWrapper.data(), kWrapper.size());
    out.grow(kWrapper.size());
    return writer_.end_object();
  }
  if (level.closing == Closing::wrapped_map) writer_.end_object();
}

/// Most elements of long arrays: small integers, and what else has one byte. Leaves at least the last element.
template <class Format>
const char* ToJson<Format>::small_values(const char* p) {
  constexpr std::uint64_t kAtOnceMax = 4096;
  std::uint64_t& left = levels_.back().left;  // behind the one at p
  if (left == kIndefinite) return p;
  const std::uint64_t at = Format::small_integers(p, std::min(left, kAtOnceMax));
  writer_.small_integers(p, at);
  left -= at;
  return p + at;
}

template <class Format>
std::string_view ToJson<Format>::key(const char* p) {
  const Head head = Format::read_head(p);
  if (head.type == Type::string) {
    const std::string_view name = Format::content(p, head, arena_);
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

template <class Format>
std::string_view ToJson<Format>::scalar(const char* p, const Head& head) {
  const auto content = [&] {
    const std::string_view all = Format::content(p, head, arena_);
    return !lenient_ ? all : head.type == Type::string ? beginning(all, shown_max_) : all.substr(0, shown_max_);
  };
  switch (head.type) {
    case Type::nil: writer_.null(); return {};
    case Type::boolean: writer_.boolean(head.value != 0); return {};
    case Type::positive: writer_.unsigned_integer(head.value); return {};
    case Type::negative: writer_.integer(static_cast<std::int64_t>(head.value)); return {};
    case Type::float32:
    case Type::float64:
      if (!std::isfinite(codec::real(head)) && !lenient_) return kNotFinite;
      write_real(writer_, codec::real(head));
      return {};
    case Type::string: writer_.string(content()); return {};
    case Type::binary: writer_.bytes(bytes_of(content())); return {};
    case Type::extension: return extension(head.extension, bytes_of(content()));
    case Type::no_form:
      if (!lenient_) return Format::why_no_form(head);
      writer_.string(Format::why_no_form(head));
      return {};
    case Type::array:
    case Type::map: break;
  }
  return {};
}

template <class Format>
std::string_view ToJson<Format>::extension(std::int8_t type, std::span<const std::byte> data) {
  std::string_view why = "a value has an extension type other than -1, 73, 77, 78 and 80, which JSON cannot express";
  if (!name_of_extension(type).empty()) {
    writer_.extension(type, data);
    return {};
  }
  if (type == kTimestampExtension) {
    why = kNoTimestamp;
    if (const std::string text = timestamp_text(data); !text.empty()) {
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

// ---- from JSON ----

template <class Format>
void append_string(Buffer& out, std::string_view utf8) {
  char* to = out.reserve(Format::kHeadBytesMax + utf8.size());
  to = Format::write_string_head(to, utf8.size());
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

template <class Format>
std::string_view append_number(Buffer& out, std::string_view text) {
  char* const to = out.reserve(Format::kHeadBytesMax);
  if (const std::optional<std::int64_t> plain = plain_integer(text)) [[likely]] {
    out.set_end(Format::write_integer(to, *plain));
    return {};
  }
  if (text.find_first_of(".eE") == std::string_view::npos && text != "-0") {
    std::int64_t integer = 0;
    std::uint64_t unsigned_integer = 0;
    if (parse_integer(text, integer) == Integrality::exact) {
      out.set_end(Format::write_integer(to, integer));
    } else if (parse_integer(text, unsigned_integer) == Integrality::exact) {
      out.set_end(Format::write_unsigned(to, unsigned_integer));
    } else {
      return Format::kIntegerBeyond;
    }
    return {};
  }
  double real = 0;
  if (!parse_double(text, real)) return Format::kNumberBeyond;
  out.set_end(Format::write_float(to, real));
  return {};
}

template <class Format>
Transcoded FromJson<Format>::operator()(std::string_view json, Buffer& out, Names names) {
  counts_.read(json);
  reader_.reset(json);
  levels_.clear();
  const auto begin_map = [&](std::uint32_t size) {
    out.set_end(Format::write_map_head(out.reserve(Format::kHeadBytesMax), size));
  };
  for (;;) {
    bool at_value = false;  // a value comes next already, instead of what follows one
    switch (reader_.kind()) {
      case ValueKind::null:
        reader_.read_null();
        out.push_back(Format::kNil);
        break;
      case ValueKind::boolean: {
        bool value = false;
        reader_.read_bool(value);
        out.push_back(value ? Format::kTrue : Format::kFalse);
        break;
      }
      case ValueKind::number: {
        std::string_view text;
        reader_.read_number_text(text);
        if (const std::string_view why = append_number<Format>(out, text); !why.empty())
          return {TranscodeStatus::no_form, why, nullptr};
        break;
      }
      case ValueKind::string: {
        std::string_view text;
        reader_.read_string(text);
        append_string<Format>(out, text);
        break;
      }
      case ValueKind::array:
        reader_.begin_array();
        out.set_end(Format::write_array_head(out.reserve(Format::kHeadBytesMax), counts_.take()));
        levels_.push_back(Open::array);
        break;
      default: {
        reader_.begin_object();
        const std::uint32_t size = counts_.take();
        std::string_view name;
        if (size != 1 || (names == Names::members && levels_.empty())) {
          begin_map(size);
          levels_.push_back(Open::object);
        } else if (reader_.next_member(name); is_user_name(name) && base64(name, out)) {
          reader_.next_member(name);  // the end
        } else {
          if (name == "$" && reader_.kind() == ValueKind::object && counts_.peek() == 1) unwrap(name);
          begin_map(1);
          append_string<Format>(out, name);
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
        if (levels_.back() == Open::object) append_string<Format>(out, name);
        at_value = true;
      } else {
        levels_.pop_back();
      }
    }
  }
}

template <class Format>
void FromJson<Format>::unwrap(std::string_view& name) {
  const char* const start = reader_.mark();
  std::string_view inner;
  reader_.begin_object();
  reader_.next_member(inner);
  if (!is_user_name(inner)) return reader_.rewind(start);
  static_cast<void>(counts_.take());
  levels_.push_back(Open::wrapper);
  name = inner;
}

template <class Format>
bool FromJson<Format>::base64(std::string_view name, Buffer& out) {
  const std::optional<std::int8_t> type = extension_named(name);
  if (reader_.kind() != ValueKind::string || (name != kBytes && !type)) return false;
  const char* const start = reader_.mark();
  std::string_view text;
  reader_.read_string(text);
  std::size_t size = text.size() / 4 * 3;
  if (size != 0) size -= text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::size_t before = out.size();
  char* to = out.reserve(Format::kHeadBytesMax + text.size());
  if (name == kBytes) {
    to = Format::write_binary_head(to, size);
  } else {
    to = Format::write_extension_head(to, *type, size);
  }
  if (base64_decode(text, reinterpret_cast<std::byte*>(to)) == size) {
    out.set_end(to + size);
    return true;
  }
  out.truncate(before);
  reader_.rewind(start);
  return false;
}

template class ToJson<msgpack::Format>;
template class ToJson<cbor::Format>;
template class FromJson<msgpack::Format>;
template class FromJson<cbor::Format>;
template void append_string<msgpack::Format>(Buffer&, std::string_view);
template void append_string<cbor::Format>(Buffer&, std::string_view);
template std::string_view append_number<msgpack::Format>(Buffer&, std::string_view);
template std::string_view append_number<cbor::Format>(Buffer&, std::string_view);

}  // namespace wirecall::codec
