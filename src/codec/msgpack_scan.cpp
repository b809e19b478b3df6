// The scan is a loop over heads, with how many values are still to come at each level.
#include "codec/msgpack_scan.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "codec/msgpack_format.hpp"

namespace wirecall::msgpack {

namespace {

/// How many values of one byte stand in a row at `p`, of `count`.
std::uint64_t run_of_one_byte(const char* p, const char* end, std::uint64_t count, bool deepest) noexcept {
  return one_byte_values(p, std::min(count, static_cast<std::uint64_t>(end - p)),
                         deepest ? OneByte::scalar : OneByte::empty_container);
}

/// Whether `first` begins a number.
constexpr bool is_number(unsigned char first) noexcept { return first >= 0xCA && first <= 0xD3; }

}  // namespace

Scan scan(std::string_view bytes, std::uint32_t depth_max) noexcept {
  constexpr std::uint64_t kRun = 8;  // of so many values it is worth asking whether they have one byte each
  std::uint64_t outer[kDepthMax];    // values that are still to come, at the levels around
  depth_max = std::min(depth_max, kDepthMax);
  std::uint32_t level = 0;
  std::uint64_t left = 1;  // at this level
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  const Scan incomplete{ScanStatus::incomplete, bytes.size()};
  const auto stop = [&](ScanStatus status, const char* at) {
    return Scan{status, static_cast<std::size_t>(at - bytes.data())};
  };
  for (;;) {
    if (p == end) return incomplete;
    const auto first = static_cast<unsigned char>(*p);
    const auto available = static_cast<std::size_t>(end - p);
    const std::size_t short_bytes = first & 0x1FU;
    if ((first & 0xE0) == 0xA0 && short_bytes < available && is_utf8(p + 1, short_bytes, end)) {
      p += 1 + short_bytes;
    } else if (kOneByte[first] == OneByte::scalar || (kOneByte[first] != OneByte::no && level != depth_max)) {
      const std::uint64_t run = left > kRun ? run_of_one_byte(p, end, left - 1, level == depth_max) : 1;
      p += run;
      left -= run - 1;
    } else if (is_number(first)) {
      if (head_bytes(first) > available) return incomplete;
      p += head_bytes(first);
    } else {
      const std::size_t head_size = head_bytes(first);
      if (head_size == 0) return stop(ScanStatus::malformed, p);
      if (head_size > available) return incomplete;
      const Head head = read_head(p);
      if (head.type == Type::array || head.type == Type::map) {
        if (level == depth_max) return stop(ScanStatus::too_deep, p);
        p += head_size;
        if (const std::uint64_t values = values_within(head); values != 0) {
          outer[level++] = left;
          left = values;
          continue;
        }
      } else {
        p += head_size;
        const std::uint64_t content = content_bytes(head);
        if (content > static_cast<std::uint64_t>(end - p)) return incomplete;
        if (head.type == Type::string) {
          const char* const bad = find_no_utf8(p, p + content);
          if (bad != p + content) return stop(ScanStatus::malformed, bad);
        }
        p += content;
      }
    }
    while (--left == 0) {
      if (level == 0) return stop(ScanStatus::complete, p);
      left = outer[--level];
    }
  }
}

}  // namespace wirecall::msgpack
