// Hexadecimal: 64-bit numbers as nodes say them in JSON, where a number has not so many bits. Pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wirecall::cluster {

inline constexpr int kHexadecimal = 16;

[[nodiscard]] inline std::string hexadecimal(std::uint64_t number) {
  char digits[2 * sizeof number];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, kHexadecimal).ptr;
  return {digits, end};
}

/// Nothing for a text that is none.
[[nodiscard]] inline std::optional<std::uint64_t> read_hexadecimal(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, kHexadecimal);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace wirecall::cluster
