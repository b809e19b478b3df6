// See context.hpp.
#include "context.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <time.h>

#include "caller_channel.hpp"
#include "wirecall/detail/detached_context.hpp"
#include "wirecall/principal.hpp"

namespace wirecall::python {
namespace nb = nanobind;

// Seconds of time.monotonic(), which goes by the same clock as the loops.
static std::optional<double> deadline_of(const Context& context) {
  if (context.deadline() == kNoDeadline) return std::nullopt;
  return std::chrono::duration<double>{context.deadline()}.count();
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
  const std::optional<double> deadline = deadline_of(context);
  if (!deadline) return std::nullopt;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::max(0.0, *deadline - std::chrono::duration<double>{now}.count());
}

static std::optional<std::string> principal_of(const Call& call) {
  return call.principal() != nullptr ? std::optional{call.principal()->name} : std::nullopt;
}

CallContext context_on_loop(Call& call) {
  return {detail::detached_context(call.context()), nullptr, principal_of(call)};
}

CallContext context_off_loop(Call& call, const Context& context, std::shared_ptr<AsyncCalls> calls,
                             std::shared_ptr<HandlerTask> task) {
  return {detail::detached_context(context),
          std::make_shared<const CallerChannel>(call, context, std::move(calls), std::move(task)), principal_of(call)};
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
      "The call that a handler serves. A parameter with this type hint receives it, and is no parameter of the "
      "method. Any thread.")
      .def_prop_ro(
          "method", [](const CallContext& context) { return context.seen.method(); },
          "The name of the method that is called.")
      .def_prop_ro(
          "id",
          [](const CallContext& context) -> std::optional<std::string> {
            return context.seen.id().empty() ? std::nullopt : std::optional{context.seen.id()};
          },
          "The request's id as JSON text; None for a notification.")
      .def_prop_ro(
          "cancelled", [](const CallContext& context) { return context.seen.cancelled(); },
          "True when nobody waits for the answer any more: the call was cancelled, its deadline has passed, or its "
          "caller has disconnected.")
      .def_prop_ro(
          "deadline", [](const CallContext& context) { return deadline_of(context.seen); },
          "The time at which the call ends with a timeout, in seconds of time.monotonic(); None without a deadline.")
      .def_prop_ro(
          "remaining", [](const CallContext& context) { return remaining(context.seen); },
          "Seconds until the deadline, 0 once it has passed; None without a deadline.")
      .def_prop_ro(
          "caller_name",
          [](const CallContext& context) -> std::optional<std::string> {
            return context.seen.caller_name().empty() ? std::nullopt : std::optional{context.seen.caller_name()};
          },
          "The caller's name at a broker. None for a caller without a name, and where the broker does not disclose "
          "it (option disclose_callers).")
      .def_prop_ro(
          "principal", [](const CallContext& context) { return context.principal; },
          "The name of the principal by which the caller has authenticated; None where nobody has to.")
      .def_prop_ro(
          "hops", [](const CallContext& context) { return context.seen.hops(); },
          "The depth of calls within calls: 0 for a call that no handler has made, 1 for a call of its handler, and "
          "so on.")
      .def(
          "call",
          [](const CallContext& context, const std::string& method, nb::args args, nb::kwargs kwargs) {
            return channel_of(context).call(method, args, kwargs);
          },
          nb::sig("def call(self, method: str, /, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"),
          "Calls a method of the caller (calling back). In an async def the result is awaited; blocking methods and "
          "generators block for it. The call has this call's deadline and is cancelled with it. Raises "
          "wirecall.Error. For a method that a client provides, the caller is the broker: the call reaches every "
          "method there.")
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
          "Sends a notification to the caller. The handler sends it at once. A notification of a task or thread "
          "that the handler has started is held until the call's answer has been written, and dropped if that "
          "answer is an error. Raises ConnectionLost where can_notify is False.")
      .def_prop_ro(
          "can_notify",
          [](const CallContext& context) { return context.channel != nullptr && context.channel->can_notify(); },
          "Whether notify can reach the caller. False for a call by HTTP POST, in a plain def, when the caller has "
          "disconnected, and after the call was answered with an error.");
}

}  // namespace wirecall::python
