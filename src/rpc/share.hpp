// The share that one source has of a limit which all sources have together.
#pragma once

#include <algorithm>
#include <cstddef>

namespace wirecall::rpc {

/// How many more one source may have, with `own` of the `used`: all of its own are at most half of what those of others
/// leave of `limit`, so that no source takes another's place.
[[nodiscard]] constexpr std::size_t share_left(std::size_t limit, std::size_t used, std::size_t own) noexcept {
  const std::size_t left = limit - std::min(limit, used);
  const std::size_t own_max = (left + std::min(own, used) + 1) / 2;
  return std::min(left, own_max - std::min(own_max, own));
}

}  // namespace wirecall::rpc
