// See context.hpp.
#include "context.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <time.h>

#include "caller_channel.hpp"

namespace wirecall::python {
namespace nb = nanobind;

// Seconds of time.monotonic(), which goes by the same clock as the loops.
static std::optional<double> deadchannel_of(const Context& context) {
  if (context.deadline() == kNoDeadline) return std::nullopt;
  return std::chrono::duration<double>{context.deadline()}.count();
}

static Context detached(const Context& context) {
  return {context.method(),
          context.id(),
          context.stop_token(),
          nullptr,
          {.began = {}, .deadline = context.deadline(), .hops = context.hops()},
          nullptr,
          context.peer_credentials(),
          context.caller_name()};
}

static const CallerChannel& channel_of(const CallContext& context) {
  if (context.channel == nullptr) {
    PyErr_SetString(PyExc_RuntimeError,
                    "wirecall: a plain handler cannot wait for its caller: make it async def, or @app(blocking=True)");
    throw nb::python_error();
  }
  return *context.channel;
}

std::optional<double> remaining(const Context& context) {
  const std::optional<double> deadline = deadchannel_of(context);
  if (!deadline) return std::nullopt;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::max(0.0, *deadline - std::chrono::duration<double>{now}.count());
}

CallContext context_on_loop(Call& call) { return {detached(call.context()), nullptr}; }

CallContext context_off_loop(Call& call, const Context& context, std::shared_ptr<AsyncCalls> calls,
                             std::shared_ptr<HandlerTask> task) {
  return {detached(context), std::make_shared<const CallerChannel>(call, context, std::move(calls), std::move(task))};
}

PyObject* make_context(CallContext context) {
  try {
    return nb::cast(std::move(context)).release().ptr();
  } catch (const std::exception& failure) {
    PyErr_SetString(PyExc_RuntimeError, failure.what());
    return nullptr;
  }
}

void add_context(nb::module_& module) {
  nb::class_<CallContext>(
      module, "Context",
      "One call, as its handler sees it: a parameter with this hint is given it, and is none of the "
      "method's. Any thread.")
      .def_prop_ro(
          "method", [](const CallContext& context) { return context.seen.method(); },
          "The name by which it was called.")
      .def_prop_ro(
          "id",
          [](const CallContext& context) -> std::optional<std::string> {
            return context.seen.id().empty() ? std::nullopt : std::optional{context.seen.id()};
          },
          "The request's id as JSON text; None for a notification.")
      .def_prop_ro(
          "cancelled", [](const CallContext& context) { return context.seen.cancelled(); },
          "Nobody waits for the answer any more: the call was cancelled, its time is up, or its caller has gone.")
      .def_prop_ro(
          "deadline", [](const CallContext& context) { return deadchannel_of(context.seen); },
          "When the call is answered with a timeout, in seconds of time.monotonic(); None for never.")
      .def_prop_ro(
          "remaining", [](const CallContext& context) { return remaining(context.seen); },
          "Seconds until then, 0 once it has passed; None for no end.")
      .def_prop_ro(
          "caller_name",
          [](const CallContext& context) -> std::optional<std::string> {
            return context.seen.caller_name().empty() ? std::nullopt : std::optional{context.seen.caller_name()};
          },
          "The caller's name at a broker, where that tells it (option disclose_callers); else None.")
      .def_prop_ro(
          "hops", [](const CallContext& context) { return context.seen.hops(); },
          "How many calls this one was made within: 0 for one that its caller has made of itself.")
      .def(
          "call",
          [](const CallContext& context, const std::string& method, nb::args args, nb::kwargs kwargs) {
            return channel_of(context).call(method, args, kwargs);
          },
          nb::sig("def call(self, method: str, /, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"),
          "Calls a method of whoever calls this one: in an async def to be awaited, in blocking methods and generators "
          "it returns the result. It has what remains of this call's time, ends with it, and raises wirecall.Error. A "
          "method that a client provides calls its broker, and so all that is there.")
      .def(
          "notify",
          [](const CallContext& context, const std::string& method, nb::args args, nb::kwargs kwargs) {
            if (context.channel == nullptr) {
              refuse_to_notify(
                  ErrorCode::provider_lost,
                  "the caller cannot be told by a plain handler: make it async def, or @app(blocking=True)");
            }
            context.channel->notify(method, args, kwargs);
          },
          nb::sig("def notify(self, method: str, /, *args: typing.Any, **kwargs: typing.Any) -> None"),
          "The same without an answer. From the handler itself it leaves at once; from a task or thread that the "
          "handler "
          "has started it is held until the call's answer has been written, and dropped if that is an error. Raises "
          "where nobody can be told: see can_notify.")
      .def_prop_ro(
          "can_notify",
          [](const CallContext& context) { return context.channel != nullptr && context.channel->can_notify(); },
          "Whether notify can reach the caller: not one by HTTP POST or one that has gone, not from a plain def, and "
          "not "
          "after the call was answered with an error.");
}

}  // namespace wirecall::python
