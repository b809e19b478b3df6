// CallerChannel: calls and notifications from a Python handler back to its caller, ctx.call and ctx.notify. The thread
// of the call's loop sends them; an answer wakes the handler's thread, or completes an asyncio future. Implements
// docs/wire.md "Calling the caller back". Thread: any, with the GIL.
#pragma once

#include <atomic>
#include <nanobind/nanobind.h>

#include "wirecall/call.hpp"
#include "wirecall/context.hpp"
#include "wirecall/error.hpp"

namespace wirecall::python {

class AsyncCalls;

/// The asyncio task of a call's handler, to be compared with the one that runs. With the GIL.
struct HandlerTask {
  PyObject* task = nullptr;  ///< null before it has been made, and when it has ended
  bool ended = false;
};

/// Raises the error of ctx.notify where it reaches nobody. `why` is plain ASCII without quotes.
[[noreturn]] void refuse_to_notify(ErrorCode code, const char* why);

class CallerChannel {
 public:
  /// `context` is the call's. `calls` lead to the asyncio thread on which `task` runs the handler; both are null for a
  /// handler that may block. Made on the loop's thread.
  CallerChannel(Call& call, Context context, std::shared_ptr<AsyncCalls> calls, std::shared_ptr<HandlerTask> task);

  /// Calls a method of the caller. Returns its result, or an asyncio future of it. Throws as Python code does.
  [[nodiscard]] nanobind::object call(const std::string& method, nanobind::handle args, nanobind::handle kwargs) const;
  void notify(const std::string& method, nanobind::handle args, nanobind::handle kwargs) const;
  /// Whether notify may reach the caller.
  [[nodiscard]] bool can_notify() const noexcept;
  /// For detail::HandlerScope.
  [[nodiscard]] const void* handled_call() const noexcept { return context_.caller_link().get(); }

 private:
  [[nodiscard]] bool is_in_handler() const;

  Context context_;  // used on the loop's thread alone
  TaskScope* tasks_;
  std::shared_ptr<detail::Executor> executor_;
  std::weak_ptr<AsyncCalls> calls_;
  std::shared_ptr<HandlerTask> task_;
  std::shared_ptr<std::atomic<int>> refused_;  // the error code of the last notification; 0 for none
};

}  // namespace wirecall::python
