// How far two words are from each other, to guess what somebody meant who mistyped one.
#pragma once

#include <cstddef>
#include <string_view>

namespace wirecall {

/// Longer words are not compared: the time is quadratic.
inline constexpr std::size_t kComparedBytesMax = 64;

/// How many bytes have to be put in, taken out, replaced or swapped with their neighbour to make one word of the other.
/// Of words over kComparedBytesMax all bytes count. No allocation.
[[nodiscard]] std::size_t edit_distance(std::string_view from, std::string_view to) noexcept;

/// The one of `names` that somebody may have meant who wrote `word`; empty when none is near. The names are views, or
/// live as long as the range.
template <class Names>
[[nodiscard]] std::string_view nearest_of(std::string_view word, const Names& names) noexcept {
  std::string_view nearest;
  for (const std::string_view name : names) {
    if (nearest.empty() || edit_distance(word, name) < edit_distance(word, nearest)) nearest = name;
  }
  return edit_distance(word, nearest) * 2 <= nearest.size() ? nearest : std::string_view{};
}

}  // namespace wirecall
