// WIRECALL_ASSERT: what must be true of our own state, whatever a peer sends or a user passes. It is on in every build,
// release as well, so it costs a compare and a branch that is never taken. WIRECALL_DEBUG_ASSERT is for what costs
// more: on in sanitizer builds, in which all tests run; elsewhere it is not evaluated. A failure is our own bug: the
// process prints where, and aborts.
#pragma once

namespace wirecall::detail {

[[noreturn, gnu::cold, gnu::noinline]] void assertion_failed(const char* condition, const char* file,
                                                             int line) noexcept;

}  // namespace wirecall::detail

#define WIRECALL_ASSERT(condition)                     \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::wirecall::detail::assertion_failed(#condition, __FILE_NAME__, __LINE__))

#ifdef WIRECALL_DEBUG_ASSERTIONS
#define WIRECALL_DEBUG_ASSERT(condition) WIRECALL_ASSERT(condition)
#else
#define WIRECALL_DEBUG_ASSERT(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif
