// See outgoing.hpp.
#include "broker/outgoing.hpp"

#include <algorithm>

#include "codec/eight_bytes.hpp"

namespace wirecall::broker {
namespace {

// A place from `p` on before which there is no line break. In valid JSON the only other control character is a tab, and
// few texts have any.
const char* plain_until(const char* p, const char* end) noexcept {
  while (end - p >= 8 && json::below(json::load8(p), ' ') == 0) p += 8;
  return p;
}

bool is_break(char c) noexcept { return c == '\n' || c == '\r'; }

}  // namespace

bool has_breaks(std::string_view text) noexcept {
  const char* const end = text.data() + text.size();
  return std::any_of(plain_until(text.data(), end), end, is_break);
}

void unbreak(Buffer& out, std::size_t begin) noexcept {
  char* const end = out.data() + out.size();
  const char* const plain = plain_until(out.data() + begin, end);
  std::replace_if(out.data() + (plain - out.data()), end, is_break, ' ');
}

}  // namespace wirecall::broker
