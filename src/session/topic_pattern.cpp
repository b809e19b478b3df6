// See topic_pattern.hpp.
#include "session/topic_pattern.hpp"

#include <algorithm>
#include <cstddef>

namespace wirecall::session {
namespace {

constexpr std::size_t kTopicBytesMax = 255;

// Takes the first word off `rest`, and the dot behind it.
std::string_view take_word(std::string_view& rest) noexcept {
  const std::size_t end = std::min(rest.find('.'), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

bool is_word(std::string_view word) noexcept {
  return std::ranges::none_of(
      word, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F || c == '*' || c == '>'; });
}

bool has_no_empty_word(std::string_view name) noexcept {
  return !name.empty() && name.size() <= kTopicBytesMax && name.front() != '.' && name.back() != '.' &&
         name.find("..") == std::string_view::npos;
}

}  // namespace

bool is_topic(std::string_view name) noexcept { return has_no_empty_word(name) && is_word(name); }

bool is_pattern(std::string_view pattern) noexcept {
  if (!has_no_empty_word(pattern)) return false;
  while (!pattern.empty()) {
    const std::string_view word = take_word(pattern);
    if (word != "*" && !(word == ">" && pattern.empty()) && !is_word(word)) return false;
  }
  return true;
}

bool matches(std::string_view pattern, std::string_view topic) noexcept {
  while (!pattern.empty() && !topic.empty()) {
    const std::string_view wanted = take_word(pattern);
    if (wanted == ">") return true;
    const std::string_view word = take_word(topic);
    if (wanted != "*" && wanted != word) return false;
  }
  return pattern.empty() && topic.empty();
}

}  // namespace wirecall::session
