// How far two words are from each other, to guess what somebody meant who mistyped one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace wirecall {

/// Longer words are not compared: the time is quadratic.
inline constexpr std::size_t kComparedBytesMax = 64;

/// How many bytes have to be put in, taken out, replaced or swapped with their neighbour to make one word of the other.
/// Of words over kComparedBytesMax all bytes count. No allocation.
[[nodiscard]] std::size_t edit_distance(std::string_view from, std::string_view to) noexcept;

/// What tells of most names, without a look at them, that they are not near a word.
struct Spelling {
  explicit Spelling(std::string_view name) noexcept;

  std::size_t bytes;
  std::uint64_t letters;  ///< one bit each
};

/// Looks for the name that somebody may have meant who mistyped one of many.
class NearestName {
 public:
  /// Of the names whose spelling leaves it open no more than `compared_max` are compared: peers may have chosen them.
  explicit NearestName(std::string_view word,
                       std::size_t compared_max = std::numeric_limits<std::size_t>::max()) noexcept;
  /// `name` lives as long as this.
  void look_at(std::string_view name, const Spelling& spelling) noexcept;
  /// Empty when none is near.
  [[nodiscard]] std::string_view found() const noexcept { return found_; }

 private:
  std::string_view word_;
  Spelling spelling_;
  std::size_t best_;
  std::size_t left_;
  std::string_view found_;
};

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
