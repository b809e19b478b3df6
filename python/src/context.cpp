// See context.hpp.
#include "context.hpp"

#include <chrono>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <optional>
#include <time.h>

namespace wirecall::python {
namespace nb = nanobind;
namespace {

// Seconds of time.monotonic(), which goes by the same clock as the loops.
std::optional<double> deadline_of(const Context& context) {
  if (context.deadline() == kNoDeadline) return std::nullopt;
  return std::chrono::duration<double>{context.deadline()}.count();
}

std::optional<double> remaining_of(const Context& context) {
  const std::optional<double> deadline = deadline_of(context);
  if (!deadline) return std::nullopt;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return *deadline - std::chrono::duration<double>{now}.count();
}

}  // namespace

Context detached(const Context& context) {
  return {context.method(),
          context.id(),
          context.stop_token(),
          nullptr,
          {.began = {}, .deadline = context.deadline(), .hops = context.hops()},
          nullptr,
          context.peer_credentials(),
          context.caller()};
}

PyObject* make_context(Context context) {
  try {
    return nb::cast(std::move(context)).release().ptr();
  } catch (const std::exception& failure) {
    PyErr_SetString(PyExc_RuntimeError, failure.what());
    return nullptr;
  }
}

void add_context(nb::module_& module) {
  nb::class_<Context>(module, "Context",
                      "One call, as its handler sees it: a parameter with this hint is given it, and is none of the "
                      "method's. Any thread.")
      .def_prop_ro(
          "method", [](const Context& context) { return context.method(); }, "The name by which it was called.")
      .def_prop_ro(
          "id",
          [](const Context& context) -> std::optional<std::string> {
            return context.id().empty() ? std::nullopt : std::optional{context.id()};
          },
          "The request's id as JSON text; None for a notification.")
      .def_prop_ro(
          "cancelled", [](const Context& context) { return context.cancelled(); },
          "Nobody waits for the answer any more: the call was cancelled, its time is up, or its caller has gone.")
      .def_prop_ro("deadline", &deadline_of,
                   "When the call is answered with a timeout, in seconds of time.monotonic(); None for never.")
      .def_prop_ro("remaining", &remaining_of, "Seconds until then, negative once it has passed; None for no end.")
      .def_prop_ro(
          "caller",
          [](const Context& context) -> std::optional<std::string> {
            return context.caller().empty() ? std::nullopt : std::optional{context.caller()};
          },
          "The caller's name at a broker, where that tells it (option disclose_callers); else None.")
      .def_prop_ro(
          "hops", [](const Context& context) { return context.hops(); },
          "How many calls this one was made within: 0 for one that its caller has made of itself.");
}

}  // namespace wirecall::python
