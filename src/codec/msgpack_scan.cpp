// The scan is a loop over heads, with how many values are still to come at each level.
#include "codec/msgpack_scan.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "codec/msgpack_format.hpp"

namespace wirecall::msgpack {

Scan scan(std::string_view bytes, std::uint32_t depth_max) noexcept {
  std::uint64_t left[kDepthMax];  // values that are still to come, at each level
  depth_max = std::min(depth_max, kDepthMax);
  std::uint32_t level = 0;
  std::size_t at = 0;
  const Scan incomplete{ScanStatus::incomplete, bytes.size()};
  for (;;) {
    if (level != 0) {
      const std::uint64_t count = std::min<std::uint64_t>(left[level - 1] - 1, bytes.size() - at);
      const std::uint64_t passed =
          one_byte_values(bytes.data() + at, count, level == depth_max ? OneByte::scalar : OneByte::empty_container);
      at += passed;
      left[level - 1] -= passed;
    }
    if (at == bytes.size()) return incomplete;
    const std::size_t head_size = head_bytes(static_cast<unsigned char>(bytes[at]));
    if (head_size == 0) return {ScanStatus::malformed, at};
    if (head_size > bytes.size() - at) return incomplete;
    const Head head = read_head(bytes.data() + at);
    const std::uint64_t values = values_within(head);
    if ((head.type == Type::array || head.type == Type::map) && level == depth_max) return {ScanStatus::too_deep, at};
    at += head_size;
    if (values != 0) {
      left[level++] = values;
      continue;
    }
    const std::uint64_t content = content_bytes(head);
    if (content > bytes.size() - at) return incomplete;
    if (head.type == Type::string) {
      const char* const begin = bytes.data() + at;
      const char* const bad = find_no_utf8(begin, begin + content);
      if (bad != begin + content) return {ScanStatus::malformed, static_cast<std::size_t>(bad - bytes.data())};
    }
    at += content;
    while (level != 0 && --left[level - 1] == 0) --level;
    if (level == 0) return {ScanStatus::complete, at};
  }
}

}  // namespace wirecall::msgpack
