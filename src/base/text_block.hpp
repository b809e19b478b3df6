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

  [[nodiscard]] bool has_quote_or_backslash() const noexcept {
    return any((first_ == '"') | (first_ == '\\') | (second_ == '"') | (second_ == '\\'));
  }
  /// One of these, or a control byte, or one that is not ASCII.
  [[nodiscard]] bool has_special() const noexcept {
    // Signed: what is not ASCII is below 0.
    return any((first_ == '"') | (first_ == '\\') | (first_ < 0x20) | (second_ == '"') | (second_ == '\\') |
               (second_ < 0x20));
  }

 private:
  using Bytes [[gnu::vector_size(16)]] = signed char;

  static bool any(const Bytes& marks) noexcept {
    std::uint64_t halves[2];
    std::memcpy(halves, &marks, sizeof marks);
    return (halves[0] | halves[1]) != 0;
  }

  Bytes first_;
  Bytes second_;
};

}  // namespace wirecall
