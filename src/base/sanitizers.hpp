// Which sanitizer this is compiled for. GCC says so by a macro, Clang by a feature.
#pragma once

#if defined(__has_feature)
#define WIRECALL_HAS_FEATURE(feature) __has_feature(feature)
#else
#define WIRECALL_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || WIRECALL_HAS_FEATURE(address_sanitizer)
#define WIRECALL_ADDRESS_SANITIZER 1
#else
#define WIRECALL_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || WIRECALL_HAS_FEATURE(thread_sanitizer)
#define WIRECALL_THREAD_SANITIZER 1
#else
#define WIRECALL_THREAD_SANITIZER 0
#endif

namespace wirecall {

inline constexpr bool kAddressSanitizer = WIRECALL_ADDRESS_SANITIZER != 0;
inline constexpr bool kThreadSanitizer = WIRECALL_THREAD_SANITIZER != 0;

}  // namespace wirecall
