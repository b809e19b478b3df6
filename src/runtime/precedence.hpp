// Precedence: who is served first when several connections have something at once. Those whose last receive brought
// little do, compared with what receives bring on the average. Of the others, as long as there have been such lately,
// a turn serves only a few: so whoever comes with little while they are served waits for these, or as many turns of
// them as its backend lets pass before it looks for light ones again, and not for all. Among equals nobody goes first,
// and a turn serves all. Owned by a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace wirecall::runtime {

/// What a turn serves, at most, of connections that send much while others send little, and of those that go on with
/// what was left over.
inline constexpr int kHeavyInTurn = 1;

class Precedence {
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
  /// Whether light connections have come lately.
  [[nodiscard]] bool any_light() const noexcept { return light_turns_ != 0; }
  /// A receive of one whose last brought `before` has brought `bytes`.
  void brought(std::uint32_t before, std::uint32_t bytes) noexcept {
    if (before != 0 && !heavy(before)) light_turns_ = kLightTurns;
    sum_ += bytes - sum_ / kAverageOf;
  }

 private:
  static constexpr std::uint64_t kAverageOf = 64;    // receives, about
  static constexpr std::uint64_t kLightDivisor = 4;  // of the average is little
  static constexpr int kLightTurns = 256;

  std::uint64_t sum_ = 0;  // kAverageOf times the average
  int light_turns_ = 0;    // left until there have been no light ones lately
};

}  // namespace wirecall::runtime
