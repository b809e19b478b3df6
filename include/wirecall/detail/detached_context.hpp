// The context of a call whose handler goes on away from the loop.
#pragma once

#include "wirecall/context.hpp"

namespace wirecall::detail {

/// A copy that may outlive the call: without what belongs to the loop, its scheduler and the way back to the caller.
/// `scheduler` is that of the loop on which it is used. Throws std::bad_alloc.
[[nodiscard]] inline Context detached_context(const Context& context, Scheduler* scheduler = nullptr) {
  return {context.method(),
          context.id(),
          context.stop_token(),
          scheduler,
          {.began = {}, .deadline = context.deadline(), .hops = context.hops()},
          nullptr,
          context.peer_credentials(),
          context.caller_name()};
}

}  // namespace wirecall::detail
