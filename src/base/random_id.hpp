// An id that nobody can guess, and that no two share: 128 random bits as 0x and 32 hexadecimal digits. Pure but for the
// system's source of randomness. Any thread.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <random>
#include <string>

namespace wirecall {

[[nodiscard]] inline std::string random_id() {
  std::random_device random;
  std::string id = "0x";
  for (int word = 0; word < 4; ++word) {
    std::array<char, 8> digits{};
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), random(), 16);
    const auto size = static_cast<std::size_t>(end - digits.data());
    id.append(digits.size() - size, '0').append(digits.data(), size);
  }
  return id;
}

}  // namespace wirecall
