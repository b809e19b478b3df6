#include "codec/json_compact.hpp"

#include <cstring>

#include "base/text_block.hpp"
#include "codec/eight_bytes.hpp"

namespace wirecall::json {

static bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20; }

// From behind the opening quote to behind the closing one, or to a control byte, which no string may hold.
static const char* skip_string(const char* p, const char* end) noexcept {
  while (end - p >= TextBlock::kBytes && !TextBlock{p}.ends_string()) p += TextBlock::kBytes;
  while (p < end) {
    if (end - p >= 8) {
      const std::uint64_t word = load8(p);
      if (equal(word, '"') == 0 && equal(word, '\\') == 0 && below(word, 0x20) == 0) {
        p += 8;
        continue;
      }
    }
    if (*p == '"') return p + 1;
    if (is_control(*p)) return p;
    p += *p == '\\' && end - p > 1 && !is_control(p[1]) ? 2 : 1;
  }
  return p;
}

char* compact(char* to, std::string_view text) noexcept {
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end) {
    const char* const run = p;
    while (p < end && static_cast<unsigned char>(*p) > ' ') p = *p == '"' ? skip_string(p + 1, end) : p + 1;
    const auto bytes = static_cast<std::size_t>(p - run);
    if (bytes != 0) std::memmove(to, run, bytes);
    to += bytes;
    while (p < end && static_cast<unsigned char>(*p) <= ' ') ++p;
  }
  return to;
}

}  // namespace wirecall::json
