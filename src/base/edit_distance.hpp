// How far two words are from each other, to guess what somebody meant who mistyped one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

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

/// How many bytes of names are compared for one word, and at how many spellings it looks: peers may have chosen the
/// names, and there may be any number of them.
inline constexpr std::size_t kComparedBytesTogether = 1024;
inline constexpr std::size_t kSpellingsLookedAt = 16 * 1024;

/// Looks for the name that somebody may have meant who mistyped one of many.
class NearestName {
 public:
  explicit NearestName(std::string_view word) noexcept;
  /// Whether the name has to be looked at: its spelling leaves it open.
  [[nodiscard]] bool may_be_near(const Spelling& spelling) const noexcept;
  /// `name` lives as long as this.
  void consider(std::string_view name) noexcept;
  /// Empty when none is near.
  [[nodiscard]] std::string_view found() const noexcept { return found_; }
  /// The sizes of names that may be near.
  [[nodiscard]] std::size_t bytes_min() const noexcept;
  [[nodiscard]] std::size_t bytes_max() const noexcept;
  /// Whether enough names have been compared.
  [[nodiscard]] bool is_tired() const noexcept { return left_ == 0; }

 private:
  std::string_view word_;
  Spelling spelling_;
  std::size_t best_;
  std::size_t left_;  // bytes that may still be compared
  std::string_view found_;
};

/// One name of many; its owner keeps it where it is.
struct SpelledName {
  std::string_view name;
  std::size_t at = 0;  ///< where SpelledNames has it
};

/// Names by their sizes, for searches that take a bounded time however many there are. A name that is longer than
/// kComparedBytesMax is left out. Names live as long as they stand here.
class SpelledNames {
 public:
  /// Throws std::bad_alloc.
  void add(SpelledName& name);
  void remove(const SpelledName& name) noexcept;
  /// The nearest one for which `counts(name)`; empty when none is near, or none was among those looked at.
  template <class Counts>
  [[nodiscard]] std::string_view nearest(std::string_view word, const Counts& counts) const noexcept {
    NearestName near{word};
    std::size_t left = kSpellingsLookedAt;
    for (std::size_t bytes = near.bytes_min(); bytes <= near.bytes_max(); ++bytes) {
      for (const Spelled& one : by_size_[bytes - 1]) {
        if (left-- == 0 || near.is_tired()) return near.found();
        if (near.may_be_near(one.spelling) && counts(one.known->name)) near.consider(one.known->name);
      }
    }
    return near.found();
  }

 private:
  struct Spelled {
    Spelling spelling;
    SpelledName* known;
  };

  std::array<std::vector<Spelled>, kComparedBytesMax> by_size_;
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
