// A middleware that writes one record of each call to the log when it is answered (Options::log_calls).
#pragma once

#include "wirecall/log.hpp"
#include "wirecall/middleware.hpp"

namespace wirecall::net {

/// Calls of all threads may pass through it. Of what a peer has sent, the record has the method's name alone.
[[nodiscard]] Middleware call_log(LogSink log);

}  // namespace wirecall::net
