// What a Python handler sees of the call it serves: wirecall::Context as a Python object, and the way back to its
// caller. Thread: one that holds the GIL.
#pragma once

#include <Python.h>
#include <memory>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>

#include "wirecall/call.hpp"
#include "wirecall/context.hpp"

namespace wirecall::python {

class AsyncCalls;
class CallerChannel;
struct HandlerTask;

struct CallContext {
  Context seen;                                  ///< what of it may be used, and destroyed, on any thread
  std::shared_ptr<const CallerChannel> channel;  ///< null for a handler on the loop's own thread
  std::optional<std::string> principal;          ///< by which the caller has authenticated
};

/// Seconds until the call's time is over, negative once it is; nullopt for no end.
[[nodiscard]] std::optional<double> remaining(const Context& context);

/// Of a handler on the loop's own thread, which cannot wait.
[[nodiscard]] CallContext context_on_loop(Call& call);
/// Of any other handler; `context` is the call's. `calls` and `task` as of CallerChannel.
[[nodiscard]] CallContext context_off_loop(Call& call, const Context& context, std::shared_ptr<AsyncCalls> calls,
                                           std::shared_ptr<HandlerTask> task);
/// A new reference; null with a Python exception set.
[[nodiscard]] PyObject* make_context(CallContext context);
void add_context(nanobind::module_& module);

}  // namespace wirecall::python
