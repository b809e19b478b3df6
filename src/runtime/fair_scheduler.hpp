// FairScheduler: who is served first when several connections have something at once. Those whose last receive brought
// little do, compared with what receives bring on the average. Of the others, as long as there have been such lately,
// a turn serves only a few, and of each of them a part: so whoever comes with little while they are served waits for
// these, or as many turns of them as its backend lets pass before it looks for light ones again, and not for all. Among
// equals nobody goes first, and a turn serves all. Owned by a backend.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace wirecall::runtime {

/// What a turn serves, at most, of connections that send much while others send little, and of those that go on with
/// what was left over.
inline constexpr int kHeavyInTurn = 1;
/// And a part of what each of them brings, since light ones wait until that has been looked at: so many bytes that it
/// takes about kPartTime, as far as that is from kPartMin to kPartMax.
inline constexpr std::chrono::nanoseconds kPartTime = std::chrono::microseconds{32};
inline constexpr std::size_t kPartMin = 4 * 1024;
inline constexpr std::size_t kPartMax = 16 * 1024;

class FairScheduler {
 public:
  /// A turn begins: so many heavy connections it is to serve.
  [[nodiscard]] int begin_turn() noexcept {
    if (light_turns_ == 0) return std::numeric_limits<int>::max();
    --light_turns_;
    return kHeavyInTurn;
  }
  /// Of a connection whose last receive brought `bytes`; 0 for one that has sent nothing yet, which is not.
  [[nodiscard]] bool heavy(std::uint32_t bytes) const noexcept {
    return std::uint64_t{bytes} * kAverageOf * kLightDivisor > sum_;
  }
  /// How many bytes of that connection a turn serves: all, unless others that are light have come lately.
  [[nodiscard]] std::size_t part_of(std::uint32_t slot) const noexcept {
    return light_turns_ != 0 && light_ != slot ? part_ : std::numeric_limits<std::size_t>::max();
  }
  /// A turn that has served a whole part has taken so long.
  void took(std::chrono::nanoseconds time) noexcept {
    if (time > kPartTime) {
      part_ = std::max(part_ / 2, kPartMin);
    } else if (time < kPartTime / 4) {
      part_ = std::min(2 * part_, kPartMax);
    }
  }
  /// A receive of one whose last brought `before` has brought `bytes`.
  void brought(std::uint32_t slot, std::uint32_t before, std::uint32_t bytes) noexcept {
    // The rest of a large message is little as well, but what comes next is not.
    const bool little = before != 0 && before <= kPartMin && bytes <= kPartMin;
    if (little && !heavy(before)) {
      light_ = light_turns_ == 0 || light_ == slot ? slot : kSeveral;
      light_turns_ = kLightTurns;
    }
    sum_ += bytes - sum_ / kAverageOf;
  }

 private:
  static constexpr std::uint64_t kAverageOf = 64;    // receives, about
  static constexpr std::uint64_t kLightDivisor = 4;  // of the average is little
  static constexpr int kLightTurns = 256;
  static constexpr std::uint32_t kSeveral = ~std::uint32_t{0};

  std::size_t part_ = kPartMin;
  std::uint64_t sum_ = 0;           // kAverageOf times the average
  int light_turns_ = 0;             // left until there have been no light ones lately
  std::uint32_t light_ = kSeveral;  // who that was
};

}  // namespace wirecall::runtime
