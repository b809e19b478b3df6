// A whole number at the end of a text. Pure.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "wirecall/bytes.hpp"

namespace wirecall {

/// Appends the number's decimal digits.
inline void append_number(Buffer& out, std::uint64_t number) {
  constexpr std::size_t kDigitsMax = std::numeric_limits<std::uint64_t>::digits10 + 1;
  char* const to = out.reserve(kDigitsMax);
  out.set_end(std::to_chars(to, to + kDigitsMax, number).ptr);
}

}  // namespace wirecall
