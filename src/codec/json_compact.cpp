#include "codec/json_compact.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/text_block.hpp"
#include "codec/eight_bytes.hpp"

namespace wirecall::json {
namespace {

// From behind the opening quote to behind the closing one.
const char* skip_string(const char* p, const char* end) noexcept {
  while (end - p >= TextBlock::kBytes && !TextBlock{p}.has_quote_or_backslash()) p += TextBlock::kBytes;
  while (p < end) {
    if (end - p >= 8) {
      const std::uint64_t word = load8(p);
      if (equal(word, '"') == 0 && equal(word, '\\') == 0) {
        p += 8;
        continue;
      }
    }
    if (*p == '"') return p + 1;
    p += *p == '\\' && end - p > 1 ? 2 : 1;
  }
  return p;
}

}  // namespace

char* compact(char* to, std::string_view text) noexcept {
  if (text.size() > 1 && text.front() == '"' && text.back() == '"') {  // one string
    std::memmove(to, text.data(), text.size());
    return to + text.size();
  }
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
