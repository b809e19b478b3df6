// See websocket_mask.hpp.
#include "framing/websocket_mask.hpp"

#include <random>

namespace wirecall::framing {

std::uint32_t WebSocketMasks::next() {
  if (left_ == 0) {
    std::random_device random;
    for (std::uint32_t& mask : masks_) mask = random();
    left_ = masks_.size();
  }
  return masks_[--left_];
}

}  // namespace wirecall::framing
