// The names of enumerators and members, taken from what the compiler prints for a pack of them as template arguments
// (__PRETTY_FUNCTION__ of GCC and clang). One instantiation prints them all. Everything here runs while compiling;
// what stays in the program is the names themselves.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace wirecall::detail {

/// The text of the pack V, between its brackets.
consteval std::string_view pack_text(std::string_view pretty) {
  std::size_t begin = pretty.rfind("V = ");
  // GCC: "V = {a, b}; std::string_view = ...]" or "V = {a, b}]"; clang: "V = <a, b>]".
  const char close = pretty[begin + 4] == '{' ? '}' : '>';
  begin += 5;
  std::size_t end = pretty.size();
  if (close == '}') {
    const std::size_t tail = pretty.rfind("; std::string_view");
    if (tail != std::string_view::npos) end = tail + 1;
  }
  return pretty.substr(begin, pretty.rfind(close, end) - begin);
}

constexpr bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// The last name in each of the `N` parts of `text`: "ns::Color::red" gives "red", "(& x.Point::y)" gives "y", and
/// "(Color)3" gives "3", which is no name.
template <std::size_t N>
consteval std::array<std::string_view, N> last_names(std::string_view text) {
  std::array<std::string_view, N> names{};
  std::size_t index = 0;
  std::size_t name_begin = 0;
  std::size_t name_end = 0;
  bool in_name = false;
  int depth = 0;  // commas inside brackets belong to template arguments
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_name_byte(c)) {
      if (!in_name) name_begin = i;
      name_end = i + 1;
      in_name = true;
      continue;
    }
    in_name = false;
    if (c == ',' && depth == 0) {
      names[index++] = text.substr(name_begin, name_end - name_begin);
    } else if (c == '(' || c == '<' || c == '{' || c == '[') {
      ++depth;
    } else if (c == ')' || c == '>' || c == '}' || c == ']') {
      --depth;
    }
  }
  names[index] = text.substr(name_begin, name_end - name_begin);
  return names;
}

/// Names in memory of their own, so that the compiler's long texts do not stay in the program.
template <std::size_t Count, std::size_t Chars>
struct NamePool {
  std::array<char, Chars + 1> chars{};
  std::array<std::size_t, Count + 1> ends{};

  constexpr void add(std::size_t index, std::string_view name) {
    std::size_t at = index == 0 ? 0 : ends[index - 1];
    for (const char c : name) chars[at++] = c;
    ends[index] = at;
  }
  [[nodiscard]] constexpr std::string_view operator[](std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : ends[index - 1];
    return {chars.data() + begin, ends[index] - begin};
  }
};

template <class T>
consteval std::string_view type_text() {
  return __PRETTY_FUNCTION__;
}

/// The type's name without its namespace; template arguments are kept as the compiler prints them.
template <class T>
consteval std::string_view type_text_name() {
  std::string_view text = type_text<T>();
  const std::size_t begin = text.rfind("T = ") + 4;
  const std::size_t end = text.find_first_of(";]", begin);
  text = text.substr(begin, end - begin);
  const std::size_t arguments = text.find('<');
  const std::size_t qualifier = text.substr(0, arguments).rfind("::");
  return qualifier == std::string_view::npos ? text : text.substr(qualifier + 2);
}

template <class T>
inline constexpr auto kTypeNamePool = [] {
  constexpr std::string_view name = type_text_name<T>();
  NamePool<1, name.size()> pool;
  pool.add(0, name);
  return pool;
}();

}  // namespace wirecall::detail
