// Whether the present thread has to come back to a loop. Who blocks there for what that loop, or one that waits for it,
// has to do blocks for good.
#pragma once

namespace wirecall::detail {

/// Whether this thread is inside a turn of a Loop: in a handler, callback or coroutine. Also true of a handler that has
/// lost its loop to another thread. (src/runtime/loop.cpp)
[[nodiscard]] bool on_loop_thread() noexcept;

}  // namespace wirecall::detail
