// Shared by the tests of MessagePack: bytes written as hexadecimal, and messages built from JSON and such bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::packing {

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

/// A JSON text as MessagePack.
inline std::string msgpack_of(std::string_view json) {
  const auto bytes = to_msgpack(Raw{json});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The same, of an object, with a further member whose value is given in bytes.
inline std::string with(std::string_view json, std::string_view name, std::string_view value_hex) {
  std::string out = msgpack_of(json);
  ++out[0];
  out += static_cast<char>(0xA0 + name.size());
  return out.append(name) + from_hex(value_hex);
}

/// MessagePack as JSON, as a Value has it.
inline std::string unpacked(std::string_view message) {
  const auto value = from_msgpack<Value>(bytes_of(message));
  return value ? value->dump() : "no MessagePack: " + to_hex(message);
}

/// A message behind its length.
inline std::string framed(std::string_view message) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(message.size() >> shift);
  return text.append(message);
}

}  // namespace wirecall::packing
