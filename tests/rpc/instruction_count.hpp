// Counts the instructions that a piece of code executes, by single-stepping it: a measure of work that neither the
// machine's speed nor its load changes. Some microseconds an instruction, so for small inputs only.
#pragma once

#include <csignal>
#include <cstdint>

#include "base/sanitizers.hpp"

namespace wirecall::test {

#if defined(__x86_64__) && defined(__linux__) && !WIRECALL_ADDRESS_SANITIZER && !WIRECALL_THREAD_SANITIZER
#define WIRECALL_COUNTS_INSTRUCTIONS 1
#endif

#if defined(WIRECALL_COUNTS_INSTRUCTIONS)

inline constexpr bool kCountsInstructions = true;
inline volatile std::uint64_t instructions_counted = 0;

template <class F>
[[gnu::noinline]] std::uint64_t count_instructions(F&& code) {
  struct sigaction counting{};
  struct sigaction before{};
  counting.sa_handler = [](int) { instructions_counted = instructions_counted + 1; };
  sigaction(SIGTRAP, &counting, &before);
  instructions_counted = 0;
  // The processor's trap flag raises SIGTRAP after every instruction. The red zone is skipped.
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "cc", "memory");
  code();
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
                   : "cc", "memory");
  sigaction(SIGTRAP, &before, nullptr);
  return instructions_counted;
}

#else

inline constexpr bool kCountsInstructions = false;

template <class F>
std::uint64_t count_instructions(F&& code) {
  code();
  return 0;
}

#endif

}  // namespace wirecall::test
