// A block of text, looked at as a whole: how long strings are passed over by those who search where one ends. Made of
// the vectors that GCC and clang have for every machine; of 16 bytes, since GCC takes wider ones apart. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wirecall {

class TextBlock {
 public:
  static constexpr std::ptrdiff_t kBytes = 32;

  /// The bytes at `p`, of which there are `kBytes`.
  explicit TextBlock(const char* p) noexcept {
    std::memcpy(&first_, p, sizeof first_);
    std::memcpy(&second_, p + sizeof first_, sizeof second_);
  }

  /// A byte below 0x20.
  [[nodiscard]] bool has_control() const noexcept { return any(control_of(first_) | control_of(second_)); }
  /// A quote, a backslash or a control byte.
  [[nodiscard]] bool ends_string() const noexcept {
    return any((first_ == '"') | (first_ == '\\') | control_of(first_) | (second_ == '"') | (second_ == '\\') |
               control_of(second_));
  }
  /// One of these, or a byte that is not ASCII.
  [[nodiscard]] bool has_special() const noexcept {
    // Signed: what is not ASCII is below 0.
    return any((first_ == '"') | (first_ == '\\') | (first_ < 0x20) | (second_ == '"') | (second_ == '\\') |
               (second_ < 0x20));
  }

 private:
  using Bytes [[gnu::vector_size(16)]] = signed char;

  // Signed: what is not ASCII is below 0, and no control byte.
  static Bytes control_of(const Bytes& bytes) noexcept { return (bytes < 0x20) & (bytes >= 0); }
  static bool any(const Bytes& marks) noexcept {
    std::uint64_t halves[2];
    std::memcpy(halves, &marks, sizeof marks);
    return (halves[0] | halves[1]) != 0;
  }

  Bytes first_;
  Bytes second_;
};

}  // namespace wirecall
