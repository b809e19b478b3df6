#include "base/edit_distance.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace wirecall {

std::size_t edit_distance(std::string_view from, std::string_view to) noexcept {
  if (std::max(from.size(), to.size()) > kComparedBytesMax) return std::max(from.size(), to.size());
  std::array<std::array<std::uint8_t, kComparedBytesMax + 1>, 3> rows{};
  for (std::size_t j = 0; j <= to.size(); ++j) rows[0][j] = static_cast<std::uint8_t>(j);
  for (std::size_t i = 1; i <= from.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    row[0] = static_cast<std::uint8_t>(i);
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const int changed = above[j - 1] + (from[i - 1] != to[j - 1] ? 1 : 0);
      int best = std::min({above[j] + 1, row[j - 1] + 1, changed});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        best = std::min(best, two_above[j - 2] + 1);
      row[j] = static_cast<std::uint8_t>(best);
    }
  }
  return rows[from.size() % 3][to.size()];
}

}  // namespace wirecall
