// See json_bytes.hpp. One loop over heads, as codec/transcode.cpp has one, by the table that is in its header.
#include "message/json_bytes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "codec/base64.hpp"
#include "codec/extensions.hpp"
#include "codec/msgpack_format.hpp"
#include "message/msgpack_walk.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::message {
namespace {

using msgpack::Head;
using msgpack::Type;

constexpr std::uint64_t kEachByte = 0x0101'0101'0101'0101;
constexpr std::uint64_t kEachHighBit = 0x8080'8080'8080'8080;

// As JSON, with quotes and brackets, but without what is between them.
constexpr std::uint64_t kFloatBytesMin = 3;         // 0.0
constexpr std::uint64_t kFloatBytesMax = 26;        // -2.2250738585072014e-308, and a point with a zero
constexpr std::uint64_t kTimestampBytesMin = 22;    // "1970-01-01T00:00:00Z"
constexpr std::uint64_t kTimestampBytesMax = 32;    // with nanoseconds
constexpr std::uint64_t kTimestampSecondsOnly = 4;  // bytes of the form that is never out of range
constexpr std::uint64_t kBytesBytes = 13;           // {"$bytes":""}
constexpr std::uint64_t kExtensionBytes = 7;        // {"":""}, and its name
constexpr std::uint64_t kWrapBytes = 6;             // {"$":}

std::uint64_t digits_of(std::uint64_t value) noexcept {
  std::uint64_t digits = 1;
  for (; value >= 10'000; value /= 10'000) digits += 4;
  return digits + (value >= 10 ? 1 : 0) + (value >= 100 ? 1 : 0) + (value >= 1000 ? 1 : 0);
}

/// By how much each character is longer in JSON.
constexpr std::array<std::uint8_t, 256> kEscapeBytes = [] {
  std::array<std::uint8_t, 256> bytes{};
  for (std::size_t c = 0; c < 0x20; ++c) bytes[c] = 5;
  for (const unsigned char c : {'"', '\\', '\b', '\f', '\n', '\r', '\t'}) bytes[c] = 1;
  return bytes;
}();
std::uint64_t escape_bytes(char c) noexcept { return kEscapeBytes[static_cast<unsigned char>(c)]; }

/// Whether none of eight bytes is escaped; those beyond ASCII are not.
bool is_plain(std::uint64_t word) noexcept {
  const std::uint64_t quote = word ^ (kEachByte * '"');
  const std::uint64_t backslash = word ^ (kEachByte * '\\');
  const std::uint64_t low = (word - kEachByte * 0x20) | (quote - kEachByte) | (backslash - kEachByte);
  return (low & ~word & kEachHighBit) == 0;
}

std::uint64_t quoted_bytes(const char* p, std::uint64_t size) noexcept {
  std::uint64_t bytes = size + 2;
  for (std::uint64_t word = 0; size >= 8; size -= 8, p += 8) {
    std::memcpy(&word, p, sizeof word);
    if (is_plain(word)) continue;
    for (std::size_t i = 0; i < 8; ++i) bytes += escape_bytes(p[i]);
  }
  for (; size != 0; --size, ++p) bytes += escape_bytes(*p);
  return bytes;
}

/// The string at `p`; nothing where something else is.
std::optional<std::string_view> name_at(const char* p) noexcept {
  const Head head = msgpack::read_head(p);
  if (head.type != Type::string) return std::nullopt;
  return std::string_view{p + head.bytes, static_cast<std::size_t>(head.value)};
}

/// A string whose first byte says how long it is; `p` becomes its end.
[[gnu::always_inline]] inline std::uint64_t short_string_bytes(const char*& p) noexcept {
  const std::uint64_t size = static_cast<unsigned char>(*p) & 0x1FU;
  const char* const text = p + 1;
  p = text + size;
  if (size > 2) return quoted_bytes(text, size);
  std::uint64_t bytes = size + 2;
  for (const char* c = text; c != p; ++c) bytes += escape_bytes(*c);
  return bytes;
}

bool begins_with_dollar(const char* p) noexcept {
  if ((static_cast<unsigned char>(*p) & 0xE0) == 0xA0) [[likely]]
    return *p != '\xA0' && p[1] == '$';
  return name_at(p).value_or("").starts_with('$');
}

class Measure {
 public:
  explicit Measure(std::uint32_t levels) noexcept : levels_(levels) {}

  [[nodiscard]] JsonBytes bytes() const noexcept { return bytes_; }
  void add(std::uint64_t bytes) noexcept { add(bytes, bytes); }
  bool name(const char*& p) noexcept;
  bool value(const char*& p, bool wraps) noexcept;

 private:
  void add(std::uint64_t min, std::uint64_t max) noexcept {
    bytes_.min += min;
    bytes_.max += max;
  }
  bool scalar(const char*& p, const Head& head) noexcept;

  /// What an array or map still holds behind the value that is looked at.
  struct Level {
    std::uint64_t left;
    bool is_map;
  };
  std::array<Level, kDepthMax> outer_;  // no more of them than are open
  std::uint32_t levels_;
  JsonBytes bytes_;
};

/// False where it is no string.
bool Measure::name(const char*& p) noexcept {
  const std::optional<std::string_view> name = name_at(p);
  if (!name) return false;
  add(quoted_bytes(name->data(), name->size()));
  p = name->data() + name->size();
  return true;
}

bool Measure::value(const char*& at, bool wraps) noexcept {
  std::uint32_t open = 0;
  Level level{1, false};
  std::uint64_t bytes = 0;  // of what is short, which is most
  const char* p = at;
  for (;;) {
    const auto first = static_cast<unsigned char>(*p);
    const bool is_short_string = (first & 0xE0) == 0xA0;
    if (level.is_map && level.left % 2 == 0) {
      --level.left;
      if (is_short_string) {
        bytes += short_string_bytes(p);
      } else if (!name(p)) {
        return false;
      }
      continue;
    }
    --level.left;
    if (first < 0x80) {
      bytes += 1U + (first >= 10 ? 1U : 0U) + (first >= 100 ? 1U : 0U);
      ++p;
    } else if (is_short_string) {
      bytes += short_string_bytes(p);
    } else if (const Head head = msgpack::read_head(p); head.type == Type::array || head.type == Type::map) {
      if (open == levels_) return false;
      const std::uint64_t values = msgpack::values_within(head);
      const bool is_map = head.type == Type::map;
      p += head.bytes;
      bytes += values == 0 ? 2 : values + 1;  // brackets, and between the values commas and colons
      if (is_map && values == 2 && (wraps || open != 0) && begins_with_dollar(p)) bytes += kWrapBytes;
      if (values != 0) {
        outer_[open++] = level;
        level = {values, is_map};
        continue;
      }
    } else if (!scalar(p, head)) {
      return false;
    }
    while (level.left == 0) {
      if (open == 0) {
        add(bytes);
        at = p;
        return true;
      }
      level = outer_[--open];
    }
  }
}

bool Measure::scalar(const char*& p, const Head& head) noexcept {
  p += head.bytes + msgpack::content_bytes(head);
  switch (head.type) {
    case Type::nil: add(4); return true;
    case Type::boolean: add(head.value != 0 ? 4 : 5); return true;
    case Type::positive: add(digits_of(head.value)); return true;
    case Type::negative: add(1 + digits_of(0 - head.value)); return true;
    case Type::float32:
    case Type::float64: add(kFloatBytesMin, kFloatBytesMax); return std::isfinite(msgpack::real(head));
    case Type::string: add(quoted_bytes(p - head.value, head.value)); return true;
    case Type::binary: add(kBytesBytes + codec::base64_size(head.value)); return true;
    case Type::extension: break;
    case Type::no_form:
    case Type::array:
    case Type::map: return false;
  }
  if (head.extension == kTimestampExtension) {
    add(kTimestampBytesMin, kTimestampBytesMax);
    return head.value == kTimestampSecondsOnly;
  }
  const std::string_view name = codec::name_of_extension(head.extension);
  add(kExtensionBytes + name.size() + codec::base64_size(head.value));
  return !name.empty();
}

}  // namespace

std::optional<JsonBytes> json_bytes_of(std::string_view envelope, std::uint32_t depth_max) noexcept {
  // Each level may be two there, and bytes are one more; the envelope is one.
  if (depth_max < 2) return std::nullopt;
  Measure measure{(std::min(depth_max, kDepthMax) - 2) / 2};
  const char* p = envelope.data();
  const Head head = msgpack::read_head(p);
  if (head.type != Type::map) return std::nullopt;
  p += head.bytes;
  measure.add(head.value == 0 ? 2 : 2 * head.value + 1);
  for (std::uint64_t i = 0; i < head.value; ++i) {
    const std::optional<std::string_view> name = name_at(p);
    const bool is_params = name == "params";
    if (!measure.name(p)) return std::nullopt;
    // That is refused, or not looked at, without being written.
    const Type type = msgpack::read_head(p).type;
    const bool is_opaque = type == Type::binary || type == Type::extension;
    if (is_opaque && name && is_envelope_name(*name) && name != "result" && name != "error") return std::nullopt;
    if (!measure.value(p, !is_params)) return std::nullopt;
  }
  return measure.bytes();
}

}  // namespace wirecall::message
