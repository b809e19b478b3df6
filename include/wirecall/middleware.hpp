// Middleware: code that runs around every call, as a gRPC server interceptor or a FastAPI middleware. The same code
// serves single calls and batches, handlers that are functions and coroutines.
#pragma once

#include <cstddef>
#include <functional>

#include "wirecall/call.hpp"

namespace wirecall {

class Next;

/// Called with each call whose method exists. It continues by `next(call)`, or answers by call.error(...) instead. What
/// it does after the reply goes into call.on_reply(...). An exception that it throws answers the call as a handler's
/// does. Thread: the one that dispatches the call; several threads at once where a server has several.
using Middleware = std::function<void(Call& call, Next next)>;

/// The rest of the chain: the next middleware, or the handler. Call it at most once, before returning.
class Next {
 public:
  void operator()(Call& call) const;

 private:
  friend class rpc::Invocation;
  explicit Next(const std::function<void(Call&, Next)>* rest, std::size_t count) noexcept
      : rest_(rest), count_(count) {}

  const std::function<void(Call&, Next)>* rest_;
  std::size_t count_;
};

}  // namespace wirecall
