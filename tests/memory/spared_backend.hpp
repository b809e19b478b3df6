// SparedBackend: a simulated system whose own memory never fails, for tests of what runs on it and whose memory does.
#pragma once

#include <chrono>
#include <span>

#include "tests/memory/failing_memory.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "tests/runtime/wrapped_backend.hpp"

namespace wirecall::memory {

class SparedBackend final : public runtime::WrappedBackend {
 public:
  explicit SparedBackend(unsigned seed) : WrappedBackend(simulated), simulated(seed) {}
  std::span<runtime::Completion> turn(std::span<runtime::Operation> submitted,
                                      std::chrono::nanoseconds until) override {
    const Spared spared;
    return simulated.turn(submitted, until);
  }

  runtime::SimulatedBackend simulated;
};

}  // namespace wirecall::memory
