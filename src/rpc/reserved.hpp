// The methods under names of ours, `rpc.` and `$/`, that concern one connection: cancelling, credit, ping, hello. They
// are no handlers: they take effect at once, before the next message is looked at, no middleware sees them, and nothing
// is looked for among them until a name has not been found in the registry, which can hold none of theirs.
// Implements docs/wire.md "Methods of wirecall's own".
#pragma once

#include <string_view>

#include "rpc/dispatcher.hpp"
#include "rpc/pending.hpp"
#include "rpc/reply.hpp"

namespace wirecall::rpc {

/// One request or notification of ours.
struct ReservedCall {
  const Received& message;
  std::string_view name;  ///< unescaped
  Reply& reply;
  const Workspace& workspace;
  const Limits& limits;
  const Outlet& outlet;
  PendingCalls* pending;  ///< of the connection; null as long as none has waited
  bool& greeted;          ///< becomes true with rpc.hello
};

/// Serves `call` and answers it, if its name is one of these; false otherwise.
[[nodiscard]] bool serve_reserved(const ReservedCall& call);

}  // namespace wirecall::rpc
