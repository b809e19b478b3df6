// JsonReader's hot half reads integers and plain strings by hand; everything rarer is out of line below it.
#include "codec/json_reader.hpp"

#include <algorithm>

#include "base/ascii.hpp"
#include "codec/base64.hpp"
#include "codec/codec_number.hpp"
#include "codec/eight_bytes.hpp"
#include "codec/extensions.hpp"
#include "codec/json_escapes.hpp"
#include "codec/scan_ops.hpp"

namespace wirecall::json {

// A string that is longer than so many words is worth a call.
constexpr int kShortWords = 4;

/// The first quote or backslash from `p` on; there is one before the text ends.
static const char* find_quote_or_escape(const char* p) noexcept {
  for (int words = 0; words < kShortWords; ++words, p += 8) {
    const std::uint64_t word = load8(p);
    const std::uint64_t found = equal(word, '"') | equal(word, '\\');
    if (found != 0) return p + first_marked(found);
  }
  return NativeOps::find_quote_or_backslash(p);
}

/// `p` is behind the opening quote; returns the position behind the closing one.
static const char* skip_string(const char* p) noexcept {
  for (;;) {
    p = find_quote_or_escape(p);
    if (*p == '"') return p + 1;
    p += 2;
  }
}

static const char* skip_container(const char* p) noexcept {
  std::size_t depth = 0;
  for (;;) {
    const char c = *p++;
    if (c == '"') {
      p = skip_string(p);
      continue;
    }
    // One bit tells [ from { and ] from }, and they nest correctly in valid text.
    const char bracket = static_cast<char>(c | 0x20);
    if (bracket == '{') {
      ++depth;
    } else if (bracket == '}') {
      if (--depth == 0) return p;
    }
  }
}

static const char* skip_value(const char* p) noexcept {
  switch (*p) {
    case '"': return skip_string(p + 1);
    case '[':
    case '{': return skip_container(p);
    case 't':
    case 'n': return p + 4;
    case 'f': return p + 5;
    default: return codec::number_end(p);
  }
}

/// The size of the value at `p`, at most `bytes_max`, found without reading further: failures inside nested values
/// are reported at each level, which must not cost a look at the whole text each time.
std::size_t value_size(const char* p, std::size_t bytes_max) noexcept {
  if (*p != '"' && *p != '[' && *p != '{') {
    return std::min(static_cast<std::size_t>(skip_value(p) - p), bytes_max);
  }
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < bytes_max; ++i) {
    if (quoted && p[i] == '\\') {
      ++i;
    } else if (p[i] == '"') {
      quoted = !quoted;
      if (!quoted && depth == 0) return i + 1;
    } else if (!quoted && (p[i] | 0x20) == '{') {
      ++depth;
    } else if (!quoted && (p[i] | 0x20) == '}') {
      if (--depth == 0) return i + 1;
    }
  }
  return bytes_max;
}

unsigned hex_value(const char* p) noexcept {
  unsigned value = 0;
  for (int i = 0; i < 4; ++i) {
    const auto c = static_cast<unsigned char>(p[i]);
    value = value << 4 | (c <= '9' ? c - '0' : (c | 0x20U) - 'a' + 10U);
  }
  return value;
}

char* write_utf8(char* to, unsigned code) noexcept {
  if (code < 0x80) {
    *to++ = static_cast<char>(code);
    return to;
  }
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  *to++ = static_cast<char>(0xFF00U >> (more + 1) | code >> 6 * more);  // as many ones as there are bytes
  while (more-- != 0) *to++ = static_cast<char>(0x80 | (code >> 6 * more & 0x3F));
  return to;
}

void JsonReader::reset(std::string_view value) {
  arena_.rewind();
  if (failed()) [[unlikely]]
    clear_failure();
  allow_rereading(value.size());
  at_ = skip_space(value.data());
}

ValueKind JsonReader::kind() const {
  switch (*at_) {
    case '"': return ValueKind::string;
    case '[': return ValueKind::array;
    case '{': return ValueKind::object;
    case 't':
    case 'f': return ValueKind::boolean;
    case 'n': return ValueKind::null;
    default: return ValueKind::number;
  }
}

bool JsonReader::read_null() {
  if (*at_ != 'n') return false;
  at_ += 4;
  return true;
}

bool JsonReader::read_bool(bool& out) {
  if (*at_ == 't') {
    at_ += 4;
    out = true;
    return true;
  }
  if (*at_ == 'f') {
    at_ += 5;
    out = false;
    return true;
  }
  return fail("boolean");
}

bool JsonReader::read_uint(std::uint64_t max, std::uint64_t& out) {
  const char* p = at_;
  std::uint64_t value = 0;
  for (; is_digit(*p); ++p) value = value * 10 + static_cast<std::uint64_t>(*p - '0');
  const auto count = static_cast<std::size_t>(p - at_);
  if (count - 1 >= 18 || *p == '.' || (*p | 0x20) == 'e' || value > max) [[unlikely]]
    return read_slowly(std::uint64_t{0}, max, out);
  out = value;
  at_ = p;
  return true;
}

template <class Integer>
[[gnu::noinline]] bool JsonReader::read_slowly(Integer min, Integer max, Integer& out) {
  if (kind() != ValueKind::number) return fail("integer");
  const char* const end = codec::number_end(at_);
  Integer value = 0;
  const codec::Integrality found = codec::parse_integer({at_, static_cast<std::size_t>(end - at_)}, value);
  if (found == codec::Integrality::fractional) return fail("integer");
  if (found != codec::Integrality::exact || value < min || value > max) return fail(codec::integer_words(min, max));
  out = value;
  at_ = end;
  return true;
}
template bool JsonReader::read_slowly(std::int64_t min, std::int64_t max, std::int64_t& out);

bool JsonReader::read_double(double& out) {
  if (kind() != ValueKind::number) return fail("number");
  const char* const end = codec::number_end(at_);
  if (!codec::parse_double({at_, static_cast<std::size_t>(end - at_)}, out)) {
    return fail(codec::kDoubleWords);
  }
  at_ = end;
  return true;
}

bool JsonReader::read_number_text(std::string_view& out) {
  if (kind() != ValueKind::number) return fail("number");
  const char* const end = codec::number_end(at_);
  out = {at_, static_cast<std::size_t>(end - at_)};
  at_ = end;
  return true;
}

bool JsonReader::read_string(std::string_view& out) {
  if (*at_ != '"') return fail("string");
  ++at_;
  out = string_rest();
  return true;
}

bool JsonReader::begin_object() {
  if (*at_ != '{') return fail("object");
  ++at_;
  return true;
}

bool JsonReader::next_member(std::string_view& name) {
  const char* p = skip_space(at_);
  if (*p == '}') {
    at_ = p + 1;
    return false;
  }
  if (*p == ',') p = skip_space(p + 1);
  at_ = p + 1;  // behind the quote
  name = string_rest();
  at_ = skip_space(skip_space(at_) + 1);  // behind the colon
  return true;
}

std::string_view JsonReader::string_rest() {
  const char* const from = at_;
  const char* const end = find_quote_or_escape(from);
  if (*end != '"') [[unlikely]]
    return unescape(from, end);
  at_ = end + 1;
  return {from, static_cast<std::size_t>(end - from)};
}

std::string_view JsonReader::unescape(const char* from, const char* first_escape) {
  const char* const end = skip_string(first_escape) - 1;
  // No escape is shorter than what it stands for.
  char* const start = arena_.allocate(static_cast<std::size_t>(end - from));
  char* to = start;
  const char* p = from;
  const char* next = first_escape;
  for (;;) {
    const auto plain = static_cast<std::size_t>(next - p);
    std::memcpy(to, p, plain);
    to += plain;
    if (next == end) break;
    p = next + 2;
    if (next[1] != 'u') {
      *to++ = kByteOfLetter[static_cast<unsigned char>(next[1])];
    } else {
      unsigned code = hex_value(p);
      p += 4;
      if (code >= 0xD800 && code < 0xDC00) {  // its other half follows, as \uDC00 to \uDFFF
        code = 0x10000 + ((code - 0xD800) << 10) + (hex_value(p + 2) - 0xDC00);
        p += 6;
      }
      to = write_utf8(to, code);
    }
    next = find_quote_or_escape(p);
  }
  at_ = end + 1;
  return {start, static_cast<std::size_t>(to - start)};
}

bool JsonReader::read_base64(std::string_view& name, std::span<const std::byte>& out) {
  const char* const start = at_;
  std::string_view text;
  std::string_view another;
  if (*at_ == '{' && begin_object() && next_member(name) && name.starts_with('$') && *at_ == '"' && read_string(text) &&
      !next_member(another)) {
    auto* const to = reinterpret_cast<std::byte*>(arena_.allocate(text.size() / 4 * 3));
    const std::size_t size = codec::base64_decode(text, to);
    if (size != codec::kNotBase64) {
      out = {to, size};
      return true;
    }
  }
  at_ = start;
  return false;
}

bool JsonReader::read_bytes(std::span<const std::byte>& out) {
  const char* const start = at_;
  std::string_view name;
  if (read_base64(name, out) && name == "$bytes") return true;
  at_ = start;
  return fail(R"({"$bytes":"<base64>"})");
}

bool JsonReader::read_extension(std::int8_t& type, std::span<const std::byte>& data) {
  const char* const start = at_;
  std::string_view name;
  if (read_base64(name, data)) {
    if (const std::optional<std::int8_t> named = codec::extension_named(name)) {
      type = *named;
      return true;
    }
  }
  at_ = start;
  return fail(R"({"$npy":"<base64>"} or {"$image":"<base64>"})");
}

bool JsonReader::read_json(std::string_view& out) {
  out = skip();
  return true;
}

std::string JsonReader::json(std::size_t bytes_max) { return {at_, value_size(at_, bytes_max)}; }

std::string_view JsonReader::skip() {
  const char* const value = at_;
  at_ = skip_value(at_);
  return {value, static_cast<std::size_t>(at_ - value)};
}

}  // namespace wirecall::json
