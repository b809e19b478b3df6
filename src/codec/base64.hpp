// Base64 as RFC 4648 section 4 defines it: the standard alphabet, padded, no line breaks. Decoding is strict, so that
// every byte sequence has exactly one text: missing padding, other characters and bits set behind the last byte are
// refused. Pure functions over memory of the caller.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace wirecall::codec {

[[nodiscard]] constexpr std::size_t base64_size(std::size_t bytes) noexcept { return (bytes + 2) / 3 * 4; }

/// Writes base64_size(data.size()) characters at `to` and returns their end.
char* base64_encode(std::span<const std::byte> data, char* to) noexcept;

/// What base64_decode returns for text that is not strict base64.
inline constexpr std::size_t kNotBase64 = static_cast<std::size_t>(-1);
/// Writes at most text.size() / 4 * 3 bytes at `to` and returns how many, or kNotBase64.
[[nodiscard]] std::size_t base64_decode(std::string_view text, std::byte* to) noexcept;

}  // namespace wirecall::codec
