// The scan is a loop over heads, with how many values are still to come at each level. skip_value() is the same without
// what has been checked.
#include "codec/cbor_scan.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "codec/cbor_format.hpp"

namespace wirecall::cbor {
namespace {

/// What an array or map still holds.
struct Level {
  std::uint64_t left;  ///< values, keys included; of indefinite ones how many there were, counted down
  bool indefinite;
  bool map;
};

/// The number in the head at `p`, which becomes its end; complete, incomplete or malformed.
ScanStatus pass_head(const char*& p, const char* const end, std::uint64_t& value) noexcept {
  const unsigned info = byte_at(p) & kInfo;
  if (info > 27) return ScanStatus::malformed;
  const std::size_t bytes = argument_bytes(info);
  if (bytes >= static_cast<std::size_t>(end - p)) return ScanStatus::incomplete;
  value = argument_at(p);
  p += 1 + bytes;
  return ScanStatus::complete;
}

/// A string or bytes of definite length.
ScanStatus pass_piece(const char*& p, const char* const end) noexcept {
  const char* at = p;
  const bool is_string = major_of(byte_at(p)) == Major::string;
  std::uint64_t size = 0;
  if (const ScanStatus status = pass_head(at, end, size); status != ScanStatus::complete) return status;
  if (size > static_cast<std::uint64_t>(end - at)) return ScanStatus::incomplete;
  if (is_string && !is_utf8(at, size, end)) {
    p = find_no_utf8(at, at + size);
    return ScanStatus::malformed;
  }
  p = at + size;
  return ScanStatus::complete;
}

/// One in chunks.
ScanStatus pass_chunks(const char*& p, const char* const end) noexcept {
  const Major major = major_of(byte_at(p));
  for (++p;;) {
    if (p == end) return ScanStatus::incomplete;
    if (is_break(p)) {
      ++p;
      return ScanStatus::complete;
    }
    if (major_of(byte_at(p)) != major) return ScanStatus::malformed;
    if (const ScanStatus status = pass_piece(p, end); status != ScanStatus::complete) return status;
  }
}

}  // namespace

ScanStatus pass_value(const char*& at, const char* const end, std::uint32_t depth_max) noexcept {
  const std::uint32_t levels = std::min(depth_max, kDepthMax);
  Level outer[kDepthMax];
  Level level{1, false, false};
  std::uint32_t open = 0;
  std::size_t tags = 0;
  const char* p = at;
  const auto stop = [&](ScanStatus status) {
    at = status == ScanStatus::incomplete ? end : p;
    return status;
  };
  for (;;) {
    if (p == end) return stop(ScanStatus::incomplete);
    const unsigned char first = byte_at(p);
    const unsigned info = first & kInfo;
    const bool indefinite = info == kInfoIndefinite;
    const Major major = major_of(first);
    std::uint64_t value = info;
    ScanStatus status = ScanStatus::complete;
    switch (major) {
      case Major::positive:
      case Major::negative:
        if (info < 24) {
          ++p;
        } else if (status = pass_head(p, end, value); status != ScanStatus::complete) {
          return stop(status);
        }
        break;
      case Major::string:
        if (info < 24 && info < static_cast<std::size_t>(end - p) && is_utf8(p + 1, info, end)) {
          p += 1 + info;
          break;
        }
        [[fallthrough]];
      case Major::binary:
        status = indefinite ? pass_chunks(p, end) : pass_piece(p, end);
        if (status != ScanStatus::complete) return stop(status);
        break;
      case Major::array:
      case Major::map:
        if (open == levels) return stop(ScanStatus::too_deep);
        if (indefinite) {
          ++p;
        } else if (status = pass_head(p, end, value); status != ScanStatus::complete) {
          return stop(status);
        }
        if (value == 0) break;
        outer[open++] = level;
        // There are not nearly as many bytes as twice that could be, where it would not fit.
        if (major == Major::map) value = value > UINT64_MAX / 2 ? UINT64_MAX : value * 2;
        level = {indefinite ? UINT64_MAX : value, indefinite, major == Major::map};
        tags = 0;
        continue;
      case Major::tag:
        if (++tags > kTagsMax) return stop(ScanStatus::too_deep);
        if (status = pass_head(p, end, value); status != ScanStatus::complete) return stop(status);
        continue;
      case Major::other:
        if (indefinite) {  // a break; of a map not in front of a value
          if (open == 0 || !level.indefinite || tags != 0 || (level.map && level.left % 2 == 0))
            return stop(ScanStatus::malformed);
          ++p;
          level = outer[--open];
          break;
        }
        if (info == 24 && end - p > 1 && byte_at(p + 1) < 32) return stop(ScanStatus::malformed);
        if (status = pass_head(p, end, value); status != ScanStatus::complete) return stop(status);
        break;
    }
    tags = 0;
    for (;;) {
      if (--level.left != 0 || level.indefinite) break;
      if (open == 0) {
        at = p;
        return ScanStatus::complete;
      }
      level = outer[--open];
    }
  }
}

Scan scan(std::string_view bytes, std::uint32_t depth_max) noexcept {
  const char* p = bytes.data();
  const ScanStatus status = pass_value(p, bytes.data() + bytes.size(), depth_max);
  return {status, static_cast<std::size_t>(p - bytes.data())};
}

const char* skip_value(const char* p) noexcept {
  std::uint64_t outer[kDepthMax];  // of the values around one of indefinite length
  std::uint32_t open = 0;
  std::uint64_t left = 1;  // values that are still to come up to the end, or within one of indefinite length
  bool indefinite = false;
  for (;;) {
    const unsigned char first = byte_at(p);
    const unsigned info = first & kInfo;
    std::uint64_t size = info;
    if (first == kBreak) {
      ++p;
      left = outer[--open];
      indefinite = open != 0;
    } else if (info < 24) {
      ++p;
    } else if (info == kInfoIndefinite) {
      ++p;
      if (major_of(first) == Major::array || major_of(first) == Major::map) {
        outer[open++] = left;
        indefinite = true;
        continue;
      }
      while (!is_break(p)) p += 1 + argument_bytes(byte_at(p) & kInfo) + argument_at(p);
      ++p;
    } else {
      size = argument_at(p);
      p += 1 + argument_bytes(info);
    }
    if (info != kInfoIndefinite) {
      switch (major_of(first)) {
        case Major::binary:
        case Major::string: p += size; break;
        case Major::array: left += indefinite ? 0 : size; break;
        case Major::map: left += indefinite ? 0 : 2 * size; break;
        case Major::tag: continue;
        default: break;
      }
    }
    if (!indefinite && --left == 0) return p;
  }
}

}  // namespace wirecall::cbor
