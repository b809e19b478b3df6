// See turn_share.hpp.
#include "connection/turn_share.hpp"

namespace wirecall::net {

bool TurnShare::next_slice(const Loop& loop) noexcept {
  // What a message has cost beyond its slice is taken from those that follow.
  const std::int32_t overdrawn = std::max(-share_.steps_left, 0);
  const std::int32_t slices = 1 + overdrawn / kSliceSteps;
  if (slices > slices_left_) return false;
  const std::chrono::nanoseconds now = loop.now();
  if (ends_ == std::chrono::nanoseconds{0}) {
    ends_ = now + kTime;
  } else if (now >= ends_) {
    return false;
  }
  slices_left_ = static_cast<std::uint16_t>(slices_left_ - slices);
  share_.steps_left = kSliceSteps - overdrawn % kSliceSteps;
  return true;
}

std::int64_t TurnShare::steps_used(const Loop& loop) const noexcept {
  return round_ == loop.rounds() ? (kSlices - slices_left_) * kSliceSteps - share_.steps_left : 0;
}

}  // namespace wirecall::net
