// See cbor_walk.hpp. What is most often in an envelope, short strings and small integers, is asked for first.
#include "message/cbor_walk.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "codec/cbor_format.hpp"
#include "codec/cbor_scan.hpp"
#include "message/binary_walk.hpp"
#include "message/usual_request.hpp"

namespace wirecall::message {
namespace {

using cbor::Major;

constexpr unsigned char kShortStringBegin = 0x60;
constexpr unsigned char kShortStringEnd = 0x78;
constexpr unsigned char kSmallIntegerEnd = 0x18;

bool is_short_string(unsigned char first) noexcept { return first >= kShortStringBegin && first < kShortStringEnd; }

[[gnu::always_inline]] inline ScanStatus pass_small(const char*& p, const char* const end,
                                                    std::uint32_t levels) noexcept {
  if (p == end) return ScanStatus::incomplete;
  const unsigned char first = cbor::byte_at(p);
  if (first < kSmallIntegerEnd) {
    ++p;
    return ScanStatus::complete;
  }
  if (is_short_string(first)) {
    const std::size_t size = first - kShortStringBegin;
    if (size < static_cast<std::size_t>(end - p) && is_utf8(p + 1, size, end)) {
      p += 1 + size;
      return ScanStatus::complete;
    }
  }
  return cbor::pass_value(p, end, levels);
}

/// The members of an envelope, whose values may have so many levels. `p` is behind its head, and becomes its end.
ScanStatus walk_cbor_members(const char*& p, const char* const end, std::uint64_t left, std::uint32_t levels,
                             EnvelopeMembers& members) noexcept {
  const bool indefinite = left == codec::kIndefinite;
  for (;; --left) {
    if (indefinite ? p != end && cbor::is_break(p) : left == 0) break;
    const auto pass = [&](const char*& at) { return pass_small(at, end, levels); };
    if (ScanStatus known; pass_known_member<cbor::Format>(p, end, levels, members, known, pass)) {
      if (known != ScanStatus::complete) return known;
      continue;
    }
    const char* const key = p;
    if (const ScanStatus status = pass_small(p, end, levels); status != ScanStatus::complete) return status;
    const char* const value = p;
    if (const ScanStatus status = pass_small(p, end, levels); status != ScanStatus::complete) return status;
    if (!is_short_string(cbor::byte_at(key))) {
      const codec::Head head = cbor::read_head(key);
      const bool is_plain = cbor::major_of(cbor::byte_at(key)) == Major::string && !head.irregular;
      if (!is_plain) members.add_unknown();
      continue;
    }
    members.add({key + 1, static_cast<std::size_t>(value - key - 1)}, {value, static_cast<std::size_t>(p - value)});
  }
  if (indefinite) ++p;
  return ScanStatus::complete;
}

/// The head of an array or map, behind its tags. `p` becomes its end.
struct Begun {
  Major major = Major::other;  ///< of what is none
  std::uint64_t size = 0;      ///< or kIndefinite
};
Begun begin_container(const char*& p, const char* const end) noexcept {
  const char* at = p;
  for (std::size_t tags = 0; at != end; ++tags) {
    const unsigned info = cbor::byte_at(at) & cbor::kInfo;
    const Major major = cbor::major_of(cbor::byte_at(at));
    const bool is_container = major == Major::array || major == Major::map;
    if (!is_container && major != Major::tag) break;
    const bool indefinite = is_container && info == cbor::kInfoIndefinite;
    if (!indefinite && (info > 27 || cbor::argument_bytes(info) >= static_cast<std::size_t>(end - at))) break;
    // As a size, the largest number is as much too large as the one below.
    const std::uint64_t size =
        indefinite ? codec::kIndefinite : std::min(cbor::argument_at(at), codec::kIndefinite - 1);
    at += 1 + (indefinite ? 0 : cbor::argument_bytes(info));
    if (!is_container) {
      if (tags == cbor::kTagsMax || cbor::has_meaning(size)) break;
      continue;
    }
    p = at;
    return {major, size};
  }
  return {};
}

ScanStatus walk_cbor_whole(const char*& p, const char* const end, std::uint32_t depth_max,
                           EnvelopeMembers& members) noexcept {
  const std::uint32_t levels = std::min(depth_max, kDepthMax);
  const Begun begun = begin_container(p, end);
  if (begun.major == Major::other) return cbor::pass_value(p, end, levels);
  if (levels == 0) return ScanStatus::too_deep;
  if (begun.major == Major::map) {
    members.begin_single();
    return walk_cbor_members(p, end, begun.size, levels - 1, members);
  }
  std::size_t count = 0;
  const bool indefinite = begun.size == codec::kIndefinite;
  for (;; ++count) {
    if (indefinite ? p != end && cbor::is_break(p) : count == begun.size) break;
    if (const ScanStatus status = cbor::pass_value(p, end, levels - 1); status != ScanStatus::complete) return status;
  }
  if (indefinite) ++p;
  members.begin_batch(count);
  return ScanStatus::complete;
}

bool begins_container(const char* p) noexcept {
  const Major major = cbor::major_of(cbor::byte_at(p));
  return major == Major::array || major == Major::map;
}

}  // namespace

bool read_cbor_request(std::string_view message, std::uint32_t depth_max, IdText& id, Received& out) noexcept {
  const std::uint32_t levels = std::min(depth_max, kDepthMax);
  if (levels < 2) return false;
  if (message.starts_with(cbor::kMessageTag)) message.remove_prefix(cbor::kMessageTag.size());
  const char* const end = message.data() + message.size();
  return read_usual_request<cbor::Format>(message, id, out, [&](const char*& p) {
    return begins_container(p) && cbor::pass_value(p, end, levels - 1) == ScanStatus::complete;
  });
}

ScanStatus walk_cbor(std::string_view message, std::uint32_t depth_max, EnvelopeMembers& members) noexcept {
  members.forget();
  const char* p = message.data();
  const char* const end = p + message.size();
  const ScanStatus status = walk_cbor_whole(p, end, depth_max, members);
  if (status == ScanStatus::complete && p == end) return status;
  members.forget();
  return status == ScanStatus::too_deep ? status : ScanStatus::malformed;
}

}  // namespace wirecall::message
