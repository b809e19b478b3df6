// CallerLine: the way from a Python handler on a thread of its own back to whoever called it: ctx.call and ctx.notify.
// What is sent goes by the home of the call's loop; an answer comes to the thread that waits for it, or as a future to
// asyncio's. Implements docs/wire.md "Calls to the caller". Thread: any, with the GIL.
#pragma once

#include <memory>
#include <nanobind/nanobind.h>
#include <string>

#include "wirecall/call.hpp"
#include "wirecall/context.hpp"

namespace wirecall::python {

class AsyncCalls;

class CallerLine {
 public:
  /// `calls` are those of the handler's asyncio thread; null for a handler that may wait. Made on the loop's thread.
  CallerLine(Call& call, std::shared_ptr<AsyncCalls> calls);

  /// Calls a method of the caller. Returns its result, or an asyncio future of it. Throws as Python code does.
  [[nodiscard]] nanobind::object call(const std::string& method, nanobind::handle args, nanobind::handle kwargs) const;
  void notify(const std::string& method, nanobind::handle args, nanobind::handle kwargs) const;

 private:
  Context context_;  // used at home alone
  TaskScope* tasks_;
  std::shared_ptr<detail::Home> home_;
  std::weak_ptr<AsyncCalls> calls_;
  bool asynchronous_;
};

}  // namespace wirecall::python
