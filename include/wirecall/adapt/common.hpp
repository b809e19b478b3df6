// What the adapters of this folder share: numbers as the JSON values of other libraries hold them, binary data for
// those that have none, and how deep a value may nest. A number whose text is an integer is one, of 64 bits with or
// without a sign; any other is the double that is nearest.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::adapt {

[[nodiscard]] inline bool is_whole(const std::from_chars_result& result, const char* end) noexcept {
  return result.ptr == end && result.ec == std::errc{};
}

/// Reads the next number and calls one of `take`: with std::int64_t, with std::uint64_t for what is above its range, or
/// with double. False after a failure: a number that no double holds.
template <class Take>
bool read_number(Reader& reader, const Take& take) {
  double real = 0;
  if (reader.next_is_float()) return reader.read_double(real) && (take(real), true);
  const char* const start = reader.mark();
  std::string_view text;
  if (reader.read_number_text(text)) {
    const bool negative = text.front() == '-';
    const char* at = text.data() + (negative ? 1 : 0);
    const char* const end = text.data() + text.size();
    if (const std::size_t digits = static_cast<std::size_t>(end - at); digits <= 18) {
      // So many fit without a check, and few numbers have more.
      std::int64_t integer = 0;
      while (at != end && *at >= '0' && *at <= '9') integer = integer * 10 + (*at++ - '0');
      if (at == end) return take(negative ? -integer : integer), true;
    } else if (std::int64_t integer = 0; is_whole(std::from_chars(text.data(), end, integer), end)) {
      return take(integer), true;
    } else if (std::uint64_t positive = 0; is_whole(std::from_chars(text.data(), end, positive), end)) {
      return take(positive), true;
    }
    reader.rewind(start);
  } else {
    reader.clear_failure();  // NaN and infinities, which only binary encodings have, are numbers without a text
  }
  return reader.read_double(real) && (take(real), true);
}

/// Levels of nested arrays and objects that are written; no message may have more.
inline constexpr std::uint32_t kLevelsMax = kDepthMax;

/// Null in place of what nests deeper. Always the end of what is written: the writer has failed.
inline void write_too_deep(Writer& writer) {
  writer.fail("it nests deeper than a message may");
  writer.null();
}

/// Whether an object whose only member is `name`: `text` stands for bytes with a type: in an encoding that has such
/// they are written as that.
inline bool write_base64(Writer& writer, std::string_view name, std::string_view text) {
  if (writer.is_json() ||
      (name != "$bytes" && name != "$npy" && name != "$image" && name != "$message" && name != "$packed"))
    return false;
  for (const char c : text) {
    const bool base64 =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/' || c == '=';
    if (!base64) return false;
  }
  Buffer json;
  json.append("{\"");
  json.append(name);
  json.append("\":\"");
  json.append(text);
  json.append("\"}");
  writer.json(json.padded());
  return true;
}

/// For values that have no bytes: gives the name, as "$bytes", and the base64 of the next value, which is bytes or an
/// extension. False after a failure.
inline bool read_as_base64(Reader& reader, std::string_view& name, std::string_view& base64) {
  std::string_view json;
  if (!reader.read_json(json)) return false;
  // {"$bytes":"<base64>"}, or for a timestamp a string.
  const std::size_t colon = json.find(':');
  if (!json.starts_with('{') || colon == json.npos) {
    name = {};
    base64 = json.substr(1, json.size() - 2);
    return true;
  }
  name = json.substr(2, colon - 3);
  base64 = json.substr(colon + 2, json.size() - colon - 4);
  return true;
}

}  // namespace wirecall::adapt
