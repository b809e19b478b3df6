// See dotted_name.hpp.
#include "base/dotted_name.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace wirecall {

static bool is_barred(char c) noexcept { return static_cast<unsigned char>(c) <= ' ' || c == '*' || c == '>'; }

// `rest` is of a word, from its first character that is not of ASCII on.
[[gnu::noinline]] static bool is_plain_beyond_ascii(std::string_view rest) noexcept {
  while (!rest.empty()) {
    const std::size_t bytes = std::max<std::size_t>(character_bytes(rest.data(), rest.data() + rest.size()), 1);
    const char32_t c = code_point(rest.data(), bytes);
    if (is_barred(rest.front()) || c == 0x7F || is_wide_space(c) || is_invisible(c)) return false;
    rest.remove_prefix(bytes);
  }
  return true;
}

static bool is_plain_word(std::string_view word) noexcept {
  if (word.empty()) return false;
  const auto odd =
      std::ranges::find_if(word, [](char c) { return is_barred(c) || static_cast<unsigned char>(c) >= 0x7F; });
  return odd == word.end() || is_plain_beyond_ascii({odd, word.end()});
}

template <class IsWord>
static bool all_words(std::string_view text, const IsWord& is_word) noexcept {
  if (text.empty() || text.size() > kNameBytesMax || text.back() == '.') return false;
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    if (!is_word(word, text.empty())) return false;
  }
  return true;
}

std::string_view take_word(std::string_view& rest) noexcept {
  const std::size_t end = std::min(rest.find('.'), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

bool is_name(std::string_view text) noexcept {
  return all_words(text, [](std::string_view word, bool) { return is_plain_word(word); });
}

bool is_name_or_prefix(std::string_view text) noexcept {
  return all_words(text, [](std::string_view word, bool last) { return is_plain_word(word) || (last && word == ">"); });
}

bool is_pattern(std::string_view text) noexcept {
  return all_words(text, [](std::string_view word, bool last) {
    return is_plain_word(word) || word == "*" || (last && word == ">");
  });
}

// In a valid pattern no other word holds these bytes.
bool has_wildcard(std::string_view pattern) noexcept { return pattern.find_first_of("*>") != pattern.npos; }

bool covers(std::string_view allowed, std::string_view pattern) noexcept {
  if (is_reserved(pattern) && (allowed.front() == '*' || allowed.front() == '>')) return false;
  while (!allowed.empty() && !pattern.empty()) {
    const std::string_view wanted = take_word(allowed);
    if (wanted == ">") return true;
    const std::string_view word = take_word(pattern);
    if (word == ">" || (wanted != "*" && wanted != word)) return false;
  }
  return allowed.empty() && pattern.empty();
}

}  // namespace wirecall
