// The end of a call that is still unanswered when its loop has ended.
#pragma once

#include "wirecall/call.hpp"

namespace wirecall::detail {

/// Drops the sink of a call whose loop may have ended: threads that outlive a server drop several at once, and these
/// share what they refer to. Thread: the loop's while it runs, any after that.
void drop_after_loop(ReplySink& sink) noexcept;

}  // namespace wirecall::detail
