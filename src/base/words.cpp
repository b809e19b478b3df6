// See words.hpp.
#include "base/words.hpp"

#include <algorithm>

namespace wirecall {
namespace {

bool is_plain_word(std::string_view word) noexcept {
  return !word.empty() && std::ranges::none_of(word, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 0x7F || c == '*' || c == '>';
  });
}

template <class IsWord>
bool all_words(std::string_view text, const IsWord& is_word) noexcept {
  if (text.empty() || text.size() > kNameBytesMax || text.back() == '.') return false;
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    if (!is_word(word, text.empty())) return false;
  }
  return true;
}

}  // namespace

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

bool is_reserved(std::string_view name) noexcept { return name.starts_with("rpc.") || name.starts_with("$/"); }

bool matches(std::string_view pattern, std::string_view name) noexcept {
  if (is_reserved(name) && (pattern.front() == '*' || pattern.front() == '>')) return false;
  while (!pattern.empty() && !name.empty()) {
    const std::string_view wanted = take_word(pattern);
    if (wanted == ">") return true;
    const std::string_view word = take_word(name);
    if (wanted != "*" && wanted != word) return false;
  }
  return pattern.empty() && name.empty();
}

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
