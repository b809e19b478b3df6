// What the tests of MessagePack share: bytes written as hexadecimal, on the heap without a byte to spare.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wirecall::testing {

/// "c4 01 ff" or "c4-01-ff" as bytes.
inline std::string from_hex(std::string_view hex) {
  std::string out;
  int digits = 0;
  unsigned value = 0;
  for (const char c : hex) {
    if (c == ' ' || c == '-') continue;
    value = value << 4 | static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    if (++digits % 2 == 0) out += static_cast<char>(value & 0xFF);
  }
  return out;
}

template <class Bytes>
std::string to_hex(const Bytes& bytes) {
  std::string out;
  for (const auto byte : bytes) {
    if (!out.empty()) out += ' ';
    out += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    out += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
  }
  return out;
}

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* const data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

inline std::vector<std::byte> hex(std::string_view digits) { return bytes_of(from_hex(digits)); }

}  // namespace wirecall::testing
