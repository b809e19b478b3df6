// See msgpack_walk.hpp. What is most often there is asked for first; a run of values of one byte each is passed eight
// at a time.
#include "message/msgpack_walk.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "codec/msgpack_format.hpp"
#include "message/binary_walk.hpp"
#include "message/usual_request.hpp"

namespace wirecall::message {
namespace {

constexpr std::uint64_t kHighBits = 0x8080'8080'8080'8080;
constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101;

// Which first byte stands for what is asked by comparing, which the processor sees coming where values are alike; a
// table alone would have it wait for each byte before it knew where the next value is.

/// Of the first bytes from 0xc0 to 0xdf.
struct Form {
  std::uint8_t bytes = 0;       ///< of the head; 0 where the byte begins nothing
  std::uint8_t size_bytes = 0;  ///< of the size that follows the first byte
  std::uint8_t content = 0;     ///< bytes behind the head, where no size says so
};
constexpr std::array<Form, 32> kForms = [] {
  std::array<Form, 32> forms{};
  for (unsigned first = 0xC0; first < 0xE0; ++first) {
    Form& form = forms[first - 0xC0];
    form.bytes = static_cast<std::uint8_t>(msgpack::head_bytes(static_cast<unsigned char>(first)));
    if (first >= 0xC4 && first <= 0xC6) form.size_bytes = static_cast<std::uint8_t>(1U << (first - 0xC4));
    if (first >= 0xC7 && first <= 0xC9) form.size_bytes = static_cast<std::uint8_t>(1U << (first - 0xC7));
    if (first >= 0xD4 && first <= 0xD8) form.content = static_cast<std::uint8_t>(1U << (first - 0xD4));
    if (first >= 0xD9 && first <= 0xDB) form.size_bytes = static_cast<std::uint8_t>(1U << (first - 0xD9));
    if (first >= 0xDC) form.size_bytes = static_cast<std::uint8_t>(2U << (first & 1U));
  }
  return forms;
}();
constexpr unsigned char kShortBinary = 0xC4;
constexpr unsigned char kStringsBegin = 0xD9;     // of those with a size
constexpr unsigned char kContainersBegin = 0xDC;  // likewise
constexpr unsigned char kMapsBegin = 0xDE;        // likewise

unsigned char byte_at(const char* p) noexcept { return static_cast<unsigned char>(*p); }
bool is_integer(unsigned char first) noexcept { return first < 0x80; }
bool is_container(unsigned char first) noexcept { return first < 0xA0; }  // and no integer
bool is_string(unsigned char first) noexcept { return first < 0xC0; }     // and neither of these
bool is_one_byte(unsigned char first) noexcept {                          // and none of these
  return first >= 0xE0 || first == 0xC0 || first == 0xC2 || first == 0xC3;
}
/// How many values the short array or map holds, keys included.
std::uint64_t values_of(unsigned char first) noexcept { return std::uint64_t{first & 0x0FU} << (first < 0x90 ? 1 : 0); }
std::size_t string_bytes(unsigned char first) noexcept { return first & 0x1FU; }

/// The size behind the first byte at `p`.
std::uint64_t size_at(const char* p, std::uint8_t size_bytes) noexcept {
  if (size_bytes == 1) return byte_at(p + 1);
  if (size_bytes == 2) return msgpack::load_big_endian<std::uint16_t>(p + 1);
  return msgpack::load_big_endian<std::uint32_t>(p + 1);
}

bool is_map(char first) noexcept {
  const auto byte = static_cast<unsigned char>(first);
  return (byte & 0xF0) == 0x80 || (byte >= kMapsBegin && byte < 0xE0);
}

/// The string at `p`; empty where something else is.
std::string_view string_at(const char* p) noexcept {
  const unsigned char first = byte_at(p);
  if ((first & 0xE0) == 0xA0) [[likely]]
    return {p + 1, string_bytes(first)};
  if (first < kStringsBegin || first >= kContainersBegin) return {};
  const Form form = kForms[first - 0xC0];
  return {p + form.bytes, static_cast<std::size_t>(size_at(p, form.size_bytes))};
}

/// How many of at most `count` values in front of `end` are passed eight at a time: small integers from 0 on behind one
/// of these, the same again behind another value of one byte.
[[gnu::noinline]] std::uint64_t run_of(unsigned char first, const char* p, const char* end,
                                       std::uint64_t count) noexcept {
  const std::uint64_t max = std::min(count, static_cast<std::uint64_t>(end - p));
  const std::uint64_t mask = is_integer(first) ? kHighBits : ~std::uint64_t{0};
  const std::uint64_t wanted = (kOnes * first) & mask;
  std::uint64_t at = 0;
  for (std::uint64_t word = 0; max - at >= 8; at += 8) {
    std::memcpy(&word, p + at, sizeof word);
    if ((word & mask) != wanted) break;
  }
  return at;
}

/// `first` was the first byte of one of `left` values, and is passed.
[[gnu::always_inline]] inline void pass_run(unsigned char first, const char*& p, const char* end,
                                            std::uint64_t& left) noexcept {
  if (p == end || (is_integer(first) ? !is_integer(byte_at(p)) : byte_at(p) != first)) return;
  const std::uint64_t passed = run_of(first, p, end, left - 1);
  p += passed;
  left -= passed;
}

/// A value at `p` whose first byte is from 0xc0 to 0xdf, as far as its head and its own contents go. Of an array or map
/// `values` becomes how many it holds.
[[gnu::always_inline]] inline ScanStatus walk_form(const char*& p, const char* end, bool deepest,
                                                   std::uint64_t& values) noexcept {
  const unsigned char first = byte_at(p);
  const auto available = static_cast<std::uint64_t>(end - p);
  if (first == kShortBinary && available >= 2) {  // of which there may be as many as of none else here
    const std::uint64_t bytes = std::uint64_t{2} + byte_at(p + 1);
    if (bytes > available) return ScanStatus::incomplete;
    p += bytes;
    return ScanStatus::complete;
  }
  const Form form = kForms[first - 0xC0];
  if (form.size_bytes == 0) {
    if (form.bytes == 0) return ScanStatus::malformed;
    const std::uint64_t bytes = std::uint64_t{form.bytes} + form.content;
    if (bytes > available) return ScanStatus::incomplete;
    p += bytes;
    return ScanStatus::complete;
  }
  if (form.bytes > available) return ScanStatus::incomplete;
  const std::uint64_t size = size_at(p, form.size_bytes);
  if (first >= kContainersBegin) {
    if (deepest) return ScanStatus::too_deep;
    values = first >= kMapsBegin ? size * 2 : size;
    p += form.bytes;
    return ScanStatus::complete;
  }
  if (size > available - form.bytes) return ScanStatus::incomplete;
  if (first >= kStringsBegin && !is_utf8(p + form.bytes, size, end)) return ScanStatus::malformed;
  p += form.bytes + size;
  return ScanStatus::complete;
}

/// Values that are still to come, at the levels around.
using Levels = std::array<std::uint64_t, kDepthMax>;

/// Passes over one value, which may have so many levels of arrays and maps; `p` is behind it when it is complete.
ScanStatus walk(const char*& at, const char* const end, std::uint32_t levels, Levels& outer) noexcept {
  std::uint32_t level = 0;
  std::uint64_t left = 1;  // at this level
  const char* p = at;
  for (;;) {
    if (p == end) return ScanStatus::incomplete;
    const unsigned char first = byte_at(p);
    std::uint64_t values = 0;
    if (is_integer(first)) {
      ++p;
      if (left > 8) pass_run(first, p, end, left);
    } else if (is_container(first)) {
      if (level == levels) return ScanStatus::too_deep;
      ++p;
      values = values_of(first);
      if (values == 0 && left > 8) pass_run(first, p, end, left);
    } else if (is_string(first)) {
      const std::size_t size = string_bytes(first);
      if (size >= static_cast<std::size_t>(end - p)) return ScanStatus::incomplete;
      if (!is_utf8(p + 1, size, end)) return ScanStatus::malformed;
      p += 1 + size;
    } else if (is_one_byte(first)) {
      ++p;
      if (left > 8) pass_run(first, p, end, left);
    } else if (const ScanStatus status = walk_form(p, end, level == levels, values); status != ScanStatus::complete) {
      return status;
    }
    --left;
    if (values != 0) {
      outer[level++] = left;
      left = values;
      continue;
    }
    while (left == 0) {
      if (level == 0) {
        at = p;
        return ScanStatus::complete;
      }
      left = outer[--level];
    }
  }
}

/// The same for one that is most often a short string or a small integer.
[[gnu::always_inline]] inline ScanStatus walk_small(const char*& p, const char* const end, std::uint32_t levels,
                                                    Levels& outer) noexcept {
  if (p == end) return ScanStatus::incomplete;
  const unsigned char first = byte_at(p);
  if (is_integer(first)) {
    ++p;
    return ScanStatus::complete;
  }
  const std::size_t size = string_bytes(first);
  if ((first & 0xE0) == 0xA0 && size < static_cast<std::size_t>(end - p) && is_utf8(p + 1, size, end)) {
    p += 1 + size;
    return ScanStatus::complete;
  }
  return walk(p, end, levels, outer);
}

/// The members of an envelope, whose values may have so many levels.
ScanStatus walk_members(const char*& at, const char* const end, std::uint64_t count, std::uint32_t levels,
                        Levels& outer, EnvelopeMembers& members) noexcept {
  const char* p = at;
  for (; count != 0; --count) {
    const auto pass = [&](const char*& at) { return walk_small(at, end, levels, outer); };
    if (ScanStatus known; pass_known_member<msgpack::Format>(p, end, levels, members, known, pass)) {
      if (known != ScanStatus::complete) return known;
      continue;
    }
    const char* const key = p;
    if (const ScanStatus status = walk_small(p, end, levels, outer); status != ScanStatus::complete) return status;
    const char* const value = p;
    if (const ScanStatus status = walk_small(p, end, levels, outer); status != ScanStatus::complete) return status;
    members.add(string_at(key), {value, static_cast<std::size_t>(p - value)});
  }
  at = p;
  return ScanStatus::complete;
}

/// The number of values in the map that begins at `p`, which becomes where they begin.
ScanStatus begin_map(const char*& p, const char* const end, bool deepest, std::uint64_t& values) noexcept {
  const unsigned char first = byte_at(p);
  if (first >= 0xC0) return walk_form(p, end, deepest, values);
  if (deepest) return ScanStatus::too_deep;
  values = values_of(first);
  ++p;
  return ScanStatus::complete;
}

ScanStatus walk_whole(const char* p, const char* const end, std::uint32_t depth_max,
                      EnvelopeMembers& members) noexcept {
  const std::uint32_t levels = std::min(depth_max, kDepthMax);
  Levels outer;
  ScanStatus status = ScanStatus::incomplete;
  members.forget();
  if (p != end && is_map(*p)) {
    std::uint64_t values = 0;
    status = begin_map(p, end, levels == 0, values);
    members.begin_single();
    if (status == ScanStatus::complete) status = walk_members(p, end, values / 2, levels - 1, outer, members);
  } else {
    status = walk(p, end, levels, outer);
  }
  return status == ScanStatus::complete && p != end ? ScanStatus::malformed : status;
}

/// Passes over an array or map; false where there is something else, or one that is not well-formed.
[[gnu::noinline]] bool pass_container(const char*& p, const char* const end, std::uint32_t levels) noexcept {
  const unsigned char first = byte_at(p);
  const bool begins = (!is_integer(first) && is_container(first)) || (first >= kContainersBegin && first < 0xE0);
  if (!begins) return false;
  Levels outer;
  return walk(p, end, levels, outer) == ScanStatus::complete;
}

}  // namespace

bool read_msgpack_request(std::string_view message, std::uint32_t depth_max, IdText& id, Received& out) noexcept {
  const std::uint32_t levels = std::min(depth_max, kDepthMax);
  if (levels < 2) return false;
  const char* const end = message.data() + message.size();
  return read_usual_request<msgpack::Format>(message, id, out,
                                             [&](const char*& p) { return pass_container(p, end, levels - 1); });
}

ScanStatus walk_message(std::string_view message, std::uint32_t depth_max, EnvelopeMembers& members) noexcept {
  const ScanStatus status = walk_whole(message.data(), message.data() + message.size(), depth_max, members);
  if (status == ScanStatus::complete) {
    if (const msgpack::Head head = msgpack::read_head(message.data()); head.type == msgpack::Type::array)
      members.begin_batch(static_cast<std::size_t>(head.value));
    return status;
  }
  members.forget();
  return status == ScanStatus::too_deep ? status : ScanStatus::malformed;
}

const char* end_of(const char* p) noexcept {
  std::uint64_t left = 1;
  do {
    const unsigned char first = byte_at(p);
    if (is_integer(first)) {
      ++p;
      if (left > 8) pass_run(first, p, p + left - 1, left);  // each has a byte at least
    } else if (is_container(first)) {
      ++p;
      const std::uint64_t values = values_of(first);
      left += values;
      if (values == 0 && left > 8) pass_run(first, p, p + left - 1, left);
    } else if (is_string(first)) {
      p += 1 + string_bytes(first);
    } else if (is_one_byte(first)) {
      ++p;
      if (left > 8) pass_run(first, p, p + left - 1, left);
    } else if (first == kShortBinary) {
      p += 2 + byte_at(p + 1);
    } else {
      const Form form = kForms[first - 0xC0];
      p += form.bytes + form.content;
      if (form.size_bytes != 0) {
        const std::uint64_t size = size_at(p - form.bytes, form.size_bytes);
        if (first < kContainersBegin) {
          p += size;
        } else {
          left += first >= kMapsBegin ? size * 2 : size;
        }
      }
    }
    --left;
  } while (left != 0);
  return p;
}

}  // namespace wirecall::message
