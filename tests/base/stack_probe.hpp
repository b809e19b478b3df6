// The distance between the stack addresses of its callers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace wirecall::test {

class StackProbe {
 public:
  [[gnu::noinline]] void here() noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    lowest_ = std::min(lowest_, at);
    highest_ = std::max(highest_, at);
    ++calls_;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return calls_ == 0 ? 0 : highest_ - lowest_; }
  [[nodiscard]] std::size_t calls() const noexcept { return calls_; }

 private:
  std::uintptr_t lowest_ = UINTPTR_MAX;
  std::uintptr_t highest_ = 0;
  std::size_t calls_ = 0;
};

/// The largest activation of a coroutine, at -O0 and under sanitizers: one switch more or less, not two.
inline constexpr std::size_t kStackBytesMax = 16 * 1024;

}  // namespace wirecall::test
