// See protobuf_regular.hpp.
#include "codec/protobuf_regular.hpp"

#include <array>
#include <cmath>

#include "base/utf8.hpp"

namespace wirecall::protobuf_wire {
namespace {

/// Sets `content_end` to the end of what that length is of. It is as short as it may be, since protobuf's own parsers
/// refuse one of more than five bytes, and with it the message.
bool pass_length(const char*& p, const char* end, const char*& content_end) noexcept {
  const char* const begin = p;
  std::uint64_t size = 0;
  if (!pass_varint(p, end, size) || size > static_cast<std::uint64_t>(end - p)) return false;
  if (p - begin > 1 && p[-1] == 0) return false;
  content_end = p + size;
  return true;
}

/// The tag, and the length of what is the rest of the message.
bool pass_head(const char*& p, const char* end, char tag) noexcept {
  const char* content_end = nullptr;
  return p != end && *p++ == tag && pass_length(p, end, content_end) && content_end == end;
}

bool is_text(const char* p, const char* end) noexcept { return find_no_utf8(p, end) == end; }

/// Behind the tag, all of a value that is no list or map.
bool is_scalar(char tag, const char* p, const char* end) noexcept {
  std::uint64_t number = 0;
  const char* content_end = nullptr;
  switch (tag) {
    case kNullTag:
    case kBooleanTag:
    case kIntegerTag:
    case kUnsignedTag: return pass_varint(p, end, number) && p == end;
    case kNumberTag:
      return end - p == sizeof number && std::isfinite(std::bit_cast<double>(load_little_endian<std::uint64_t>(p)));
    case kTextTag: return pass_length(p, end, content_end) && content_end == end && is_text(p, end);
    case kBinaryTag:
    case kNpyTag:
    case kImageTag:
    case kPackedTag:
    case kMessageTag: return pass_length(p, end, content_end) && content_end == end;
    default: return false;
  }
}

struct Level {
  const char* end;
  bool map;
};

/// Up to the next value, and to its length: of a list, or a member of a map.
bool pass_to_value(const char*& p, const Level& level) noexcept {
  if (*p++ != kElementTag) return false;
  if (!level.map) return true;
  const char* member_end = nullptr;
  const char* name_end = nullptr;
  if (!pass_length(p, level.end, member_end) || p == member_end || *p++ != kNameTag) return false;
  if (!pass_length(p, member_end, name_end) || !is_text(p, name_end)) return false;
  p = name_end;
  if (p == member_end || *p++ != kValueTag) return false;
  const char* value = p;
  const char* value_end = nullptr;
  return pass_length(value, member_end, value_end) && value_end == member_end;
}

}  // namespace

const char* regular_end(const char* p, const char* end, std::uint32_t depth_max) noexcept {
  std::array<Level, kRegularDepthMax> levels;
  std::size_t depth = 0;
  for (const char* within = end;; within = levels[depth - 1].end) {
    const char* value_end = nullptr;
    if (!pass_length(p, within, value_end)) return nullptr;
    const char tag = p == value_end ? kNullTag : *p;
    if (tag == kListTag || tag == kMapTag) {
      if (depth == kRegularDepthMax || depth >= depth_max || !pass_head(p, value_end, tag)) return nullptr;
      levels[depth++] = {value_end, tag == kMapTag};
    } else {
      if (p != value_end && !is_scalar(tag, p + 1, value_end)) return nullptr;
      p = value_end;
    }
    while (depth != 0 && p == levels[depth - 1].end) --depth;
    if (depth == 0) return p;
    if (!pass_to_value(p, levels[depth - 1])) return nullptr;
  }
}

Scan scan_regular(std::string_view bytes, std::uint32_t depth_max) noexcept {
  const char* const value_end = regular_end(bytes.data(), bytes.data() + bytes.size(), depth_max);
  if (value_end == nullptr) return {ScanStatus::malformed, 0};
  return {ScanStatus::complete, static_cast<std::size_t>(value_end - bytes.data())};
}

}  // namespace wirecall::protobuf_wire
