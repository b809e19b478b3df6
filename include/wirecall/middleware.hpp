// Middleware: code around every call, written once for single calls and batches, sync and async handlers.
#pragma once

#include <cstddef>
#include <functional>

#include "wirecall/call.hpp"

namespace wirecall {

class Next;

/// Called with each call whose method exists. It continues with `next(call)`, or answers itself with call.error(...)
/// and does not. What should happen when the reply is known goes into call.on_reply(...). An exception it throws
/// answers the call as a handler's would.
using Middleware = std::function<void(Call& call, Next next)>;

/// What comes after a middleware: the next one, at last the handler. Call it once at most, before returning.
class Next {
 public:
  void operator()(Call& call) const;

 private:
  friend class rpc::Dispatcher;
  explicit Next(const std::function<void(Call&, Next)>* rest, std::size_t count) noexcept
      : rest_(rest), count_(count) {}

  const std::function<void(Call&, Next)>* rest_;
  std::size_t count_;
};

}  // namespace wirecall
