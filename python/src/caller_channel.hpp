// CallerChannel: the way from a Python handler on a thread of its own back to whoever called it: ctx.call and
// ctx.notify. What is sent goes by the executor of the call's loop; an answer comes to the thread that waits for it, or
// as a future to asyncio's. Implements docs/wire.md "Calls to the caller". Thread: any, with the GIL.
#pragma once

#include <atomic>
#include <memory>
#include <nanobind/nanobind.h>
#include <string>

#include "wirecall/call.hpp"
#include "wirecall/context.hpp"
#include "wirecall/error.hpp"

namespace wirecall::python {

class AsyncCalls;

/// The asyncio task that runs a call's handler, to be compared. With the GIL.
struct HandlerTask {
  PyObject* task = nullptr;  ///< null before it has been made, and when it has ended
  bool ended = false;
};

/// Raises what ctx.notify does when nobody can be told. `why` is plain ASCII without quotes.
[[noreturn]] void refuse_to_notify(ErrorCode code, const char* why);

class CallerChannel {
 public:
  /// `context` is the call's. `calls` are those of the handler's asyncio thread, on which `task` runs it; both null for
  /// a handler that may wait. Made on the loop's thread.
  CallerChannel(Call& call, Context context, std::shared_ptr<AsyncCalls> calls, std::shared_ptr<HandlerTask> task);

  /// Calls a method of the caller. Returns its result, or an asyncio future of it. Throws as Python code does.
  [[nodiscard]] nanobind::object call(const std::string& method, nanobind::handle args, nanobind::handle kwargs) const;
  void notify(const std::string& method, nanobind::handle args, nanobind::handle kwargs) const;
  /// Whether notify may reach somebody.
  [[nodiscard]] bool can_notify() const noexcept;
  /// For detail::HandlerScope.
  [[nodiscard]] const void* handled_call() const noexcept { return context_.caller_link().get(); }

 private:
  [[nodiscard]] bool is_in_handler() const;

  Context context_;  // used on the loop's thread only
  TaskScope* tasks_;
  std::shared_ptr<detail::Executor> executor_;
  std::weak_ptr<AsyncCalls> calls_;
  std::shared_ptr<HandlerTask> task_;
  std::shared_ptr<std::atomic<int>> refused_;  // the code with which the last notification was; 0 for none
};

}  // namespace wirecall::python
