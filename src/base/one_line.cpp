// Few texts have control bytes at all, so a block is looked at as a whole for any of them first.
#include "base/one_line.hpp"

#include <algorithm>

#include "base/text_block.hpp"

namespace wirecall {

static bool is_line_break(char c) noexcept { return c == '\n' || c == '\r'; }

// Where the next control byte may be: nothing before it is one.
static const char* skip_plain(const char* p, const char* end) noexcept {
  while (end - p >= TextBlock::kBytes && !TextBlock{p}.has_control()) p += TextBlock::kBytes;
  return p;
}

static const char* end_of_block(const char* p, const char* end) noexcept {
  return end - p > TextBlock::kBytes ? p + TextBlock::kBytes : end;
}

bool has_line_break(std::string_view text) noexcept {
  const char* const end = text.data() + text.size();
  for (const char* p = skip_plain(text.data(), end); p != end; p = skip_plain(p, end)) {
    const char* const block_end = end_of_block(p, end);
    if (std::any_of(p, block_end, is_line_break)) return true;
    p = block_end;
  }
  return false;
}

void make_one_line(char* begin, const char* end) noexcept {
  for (const char* p = skip_plain(begin, end); p != end; p = skip_plain(p, end)) {
    const char* const block_end = end_of_block(p, end);
    std::replace_if(begin + (p - begin), begin + (block_end - begin), is_line_break, ' ');
    p = block_end;
  }
}

}  // namespace wirecall
