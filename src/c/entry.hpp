// Entry: what every function of the C interface is wrapped in. No exception leaves it: each becomes a status, and its
// text what wc_last_error has. Thread: any; the last failure is the thread's own.
#pragma once

#include <string_view>
#include <utility>

#include "wirecall.h"

namespace wirecall {
class Error;
}

namespace wirecall::c {

/// Remembers a failure of this thread, and returns `status`. A text that is too long is cut. Allocates nothing. `data`:
/// what an error says besides its message, as JSON text.
int fail(int status, std::string_view why, std::string_view data = {}) noexcept;
/// The same for an error of JSON-RPC. 0 stands for success, so an error that has this code has another one here.
int fail(const Error& error) noexcept;
/// The same for an argument that may not be NULL.
int fail_null() noexcept;
/// The same for the exception in flight; only in a catch block.
int fail_in_flight() noexcept;

/// Runs `action`, which throws where it fails, or returns a status.
template <class F>
int guarded(F&& action) noexcept {
  try {
    if constexpr (std::is_same_v<decltype(action()), int>) {
      return action();
    } else {
      action();
      return WC_OK;
    }
  } catch (...) {
    return fail_in_flight();
  }
}

/// The same for what returns a pointer: null for a failure.
template <class F>
auto guarded_pointer(F&& action) noexcept -> decltype(action()) {
  try {
    return action();
  } catch (...) {
    fail_in_flight();
    return nullptr;
  }
}

/// A text that may be null, which stands for an empty one.
[[nodiscard]] inline std::string_view view_of(const char* text) noexcept {
  return text != nullptr ? std::string_view{text} : std::string_view{};
}

}  // namespace wirecall::c
