// JsonWriter: plain ASCII strings and integers take a few instructions each; escapes and UTF-8 are out of line.
#include "codec/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "base/decimal.hpp"
#include "base/utf8.hpp"
#include "codec/base64.hpp"
#include "codec/codec_time.hpp"
#include "codec/eight_bytes.hpp"
#include "codec/extensions.hpp"
#include "codec/json_compact.hpp"
#include "codec/json_escapes.hpp"

namespace wirecall::json {

/// The longest shortest text of a double, as -2.2250738585072014e-308.
constexpr std::size_t kDoubleBytesMax = 32;

/// Whether all eight bytes are printable ASCII other than quote and backslash.
static bool is_plain(std::uint64_t word) noexcept {
  const std::uint64_t quote = word ^ (kOnes * '"');
  const std::uint64_t backslash = word ^ (kOnes * '\\');
  // Each subtraction borrows into the high bit of a byte that is too small; a high bit of the word itself counts too.
  return (((word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes) | word) & kHighBits) == 0;
}

static bool is_plain(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

void JsonWriter::reset(Buffer& out) {
  out_ = &out;
  comma_ = false;
  forget();
}

inline char* JsonWriter::open(std::size_t bytes) {
  char* to = out_->reserve(bytes + 1);
  *to = ',';  // overwritten when none is due
  return to + (comma_ ? 1 : 0);
}

inline void JsonWriter::close(const char* end) {
  out_->set_end(end);
  comma_ = true;
}

void JsonWriter::null() { word("null"); }

void JsonWriter::boolean(bool value) { word(value ? "true" : "false"); }

inline void JsonWriter::word(std::string_view text) {
  char* const to = open(text.size());
  std::memcpy(to, text.data(), text.size());
  close(to + text.size());
}

void JsonWriter::small_integers(const char* values, std::size_t count) {
  constexpr std::size_t kBytesMax = 4;  // of one with its comma
  static constexpr auto kTexts = [] {
    std::array<std::array<char, kBytesMax>, 128> texts{};
    for (std::size_t value = 0; value < texts.size(); ++value) {
      std::size_t at = 0;
      if (value >= 100) texts[value][at++] = '1';
      if (value >= 10) texts[value][at++] = static_cast<char>('0' + value / 10 % 10);
      texts[value][at++] = static_cast<char>('0' + value % 10);
      texts[value][at] = ',';
    }
    return texts;
  }();
  if (count == 0) return;
  char* to = open(count * kBytesMax);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<unsigned char>(values[i]);
    std::memcpy(to, kTexts[value].data(), kBytesMax);
    to += value >= 100 ? 4 : value >= 10 ? 3 : 2;
  }
  close(to - 1);  // before the last comma
}

// A reply is one line: what comes from elsewhere loses the white space between its tokens.
void JsonWriter::json(std::string_view text) { close(compact(open(text.size()), text)); }

void JsonWriter::number_text(std::string_view text) { json(text); }

char* write_integer(char* to, std::int64_t value) noexcept {
  auto magnitude = static_cast<std::uint64_t>(value);
  if (value < 0) {
    *to++ = '-';
    magnitude = 0 - magnitude;
  }
  return write_decimal(to, magnitude);
}

void JsonWriter::integer(std::int64_t value) { close(write_integer(open(kIntegerBytesMax), value)); }

void JsonWriter::unsigned_integer(std::uint64_t value) { close(write_decimal(open(kIntegerBytesMax), value)); }

template <class Float>
void JsonWriter::floating(Float value) {
  constexpr Float kIntegralMax = sizeof(Float) == 4 ? Float(1 << 24) : Float(std::uint64_t{1} << 53);
  if (!std::isfinite(value)) [[unlikely]] {
    fail("a number is NaN or infinite, which JSON cannot express");
    return null();
  }
  if (std::fabs(value) < kIntegralMax && value == std::trunc(value) && !(value == 0 && std::signbit(value))) {
    return integer(static_cast<std::int64_t>(value));
  }
  char* const to = open(kDoubleBytesMax);
  close(std::to_chars(to, to + kDoubleBytesMax, value).ptr);
}

void JsonWriter::number(double value) { floating(value); }
void JsonWriter::number(float value) { floating(value); }

void JsonWriter::string(std::string_view utf8) { close(quote(open(utf8.size() + 3), utf8)); }

void JsonWriter::key(std::string_view utf8) {
  char* end = quote(open(utf8.size() + 3), utf8);
  *end++ = ':';
  out_->set_end(end);
  comma_ = false;
}

char* JsonWriter::quote(char* to, std::string_view utf8) {
  const char* p = utf8.data();
  std::size_t left = utf8.size();
  *to++ = '"';
  for (; left >= 8; left -= 8, p += 8, to += 8) {
    if (!is_plain(load8(p))) [[unlikely]]
      return quote_slowly(to, {p, left});
    std::memcpy(to, p, 8);
  }
  if (left != 0 && utf8.size() >= 8) {
    // The last eight bytes again, some of them for the second time.
    if (!is_plain(load8(p + left - 8))) [[unlikely]]
      return quote_slowly(to, {p, left});
    std::memcpy(to + left - 8, p + left - 8, 8);
    to += left;
  } else {
    for (; left != 0; --left) {
      if (!is_plain(*p)) [[unlikely]]
        return quote_slowly(to, {p, left});
      *to++ = *p++;
    }
  }
  *to++ = '"';
  return to;
}

// Writes the rest of a string whose beginning ends at `to`; the buffer grows by what the escapes really need.
char* JsonWriter::quote_slowly(char* to, std::string_view rest) {
  const char* p = rest.data();
  const char* const end = p + rest.size();
  out_->set_end(to);
  while (p != end) {
    const char* const plain = p;
    while (p != end && is_plain(*p)) ++p;
    out_->append({plain, static_cast<std::size_t>(p - plain)});
    if (p == end) break;
    if (static_cast<unsigned char>(*p) < 0x80) {
      to = out_->reserve(6);
      *to++ = '\\';
      if (const char letter = kLetterOfByte[static_cast<unsigned char>(*p)]; letter != 0) {
        *to++ = letter;
      } else {
        std::memcpy(to, "u00", 3);
        to[3] = *p < 0x10 ? '0' : '1';
        to[4] = "0123456789abcdef"[*p & 0xF];
        to += 5;
      }
      out_->set_end(to);
      ++p;
      continue;
    }
    const std::size_t size = character_bytes(p, end);
    if (size == 0) {
      fail("a string is not UTF-8");
      break;
    }
    out_->append({p, size});
    p += size;
  }
  to = out_->reserve(3);
  *to++ = '"';
  return to;
}

void JsonWriter::bytes(std::span<const std::byte> data) { base64("$bytes", data); }

void JsonWriter::extension(std::int8_t type, std::span<const std::byte> data) {
  if (const std::string_view name = codec::name_of_extension(type); !name.empty()) return base64(name, data);
  codec::TimePoint time;
  if (type == kTimestampExtension && codec::parse_timestamp(data, time)) {
    if (const std::string text = codec::format_time(time); !text.empty()) return string(text);
    fail("a time point lies outside the years 0 to 9999, which RFC 3339 cannot express");
  } else {
    fail("a value is of extension type " + std::to_string(type) + ", which JSON cannot express");
  }
  null();
}

void JsonWriter::base64(std::string_view name, std::span<const std::byte> data) {
  char* to = open(name.size() + codec::base64_size(data.size()) + 7);
  *to++ = '{';
  *to++ = '"';
  std::memcpy(to, name.data(), name.size());
  to += name.size();
  for (const char c : {'"', ':', '"'}) *to++ = c;
  to = codec::base64_encode(data, to);
  *to++ = '"';
  *to++ = '}';
  close(to);
}

inline void JsonWriter::begin(char bracket) {
  char* to = open(1);
  *to++ = bracket;
  out_->set_end(to);
  comma_ = false;
}

inline void JsonWriter::end(char bracket) {
  out_->push_back(bracket);
  comma_ = true;
}

void JsonWriter::begin_array(std::size_t) { begin('['); }
void JsonWriter::end_array() { end(']'); }
void JsonWriter::begin_object(std::size_t) { begin('{'); }
void JsonWriter::end_object() { end('}'); }

}  // namespace wirecall::json
