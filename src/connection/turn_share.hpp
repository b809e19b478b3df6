// TurnShare: how much one connection may cost in one round of its loop. A share has 32 slices of 64 steps or 16 KiB of
// input, and its time is 1 ms once the first slice is over. Owned by a channel; used on its loop's thread.
#pragma once

#include <algorithm>

#include "rpc/dispatcher.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::net {

class TurnShare {
 public:
  /// A new round gives a whole share.
  void begin(const Loop& loop) noexcept {
    const std::uint32_t round = loop.rounds();
    if (round_ == round) return;
    round_ = round;
    share_.steps_left = kSliceSteps;
    slice_ends_ = kSliceBytes;
    slices_left_ = kSlices - 1;
    ends_ = std::chrono::nanoseconds{0};
  }
  /// Whether a message that begins at byte `at` of the input still belongs to the slice.
  [[nodiscard]] bool covers(std::size_t at) const noexcept { return share_.steps_left > 0 && at < slice_ends_; }
  void take_step() noexcept { --share_.steps_left; }
  /// False when the share is used up.
  [[nodiscard]] bool next_slice(const Loop& loop) noexcept;
  /// The slice's bytes begin at byte `at` of the input.
  void begin_bytes(std::size_t at) noexcept { slice_ends_ = static_cast<std::uint32_t>(at) + kSliceBytes; }
  /// What is read next is behind so many bytes of the input.
  void consumed(std::size_t bytes) noexcept {
    slice_ends_ -= static_cast<std::uint32_t>(std::min<std::size_t>(slice_ends_, bytes));
  }
  /// A batch processes no more of its elements.
  void end_slice() noexcept { share_.steps_left = std::min(share_.steps_left, 0); }
  [[nodiscard]] rpc::Share& steps() noexcept { return share_; }
  /// Since the loop's round began.
  [[nodiscard]] std::int64_t steps_used(const Loop& loop) const noexcept;

 private:
  static constexpr std::int32_t kSliceSteps = 64;
  static constexpr std::uint32_t kSliceBytes = 16 * 1024;
  static constexpr std::uint16_t kSlices = 32;
  // The clock is read only between slices: what comes in smaller numbers does not pay for it.
  static constexpr std::chrono::milliseconds kTime{1};

  std::chrono::nanoseconds ends_{0};  // 0 before the first slice is over
  std::uint32_t round_ = 0;           // the one it is of, modulo 2^32
  rpc::Share share_;                  // of the slice
  std::uint32_t slice_ends_ = 0;      // at this byte of the input; after it was read, of its rest
  std::uint16_t slices_left_ = 0;     // after it
};

}  // namespace wirecall::net
