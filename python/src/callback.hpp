// Callback: a Python function that a client calls with what has happened: with its events, its connections, what a
// broker refuses. It runs on the thread of an asyncio loop, or on the one that drives the client. Thread: any.
#pragma once

#include <nanobind/nanobind.h>

#include "async_calls.hpp"
#include "gil.hpp"

namespace wirecall::python {

class Callback : public std::enable_shared_from_this<Callback> {
 public:
  /// Without `calls` the function runs on the thread that invokes this. With the GIL.
  Callback(nanobind::object function, std::shared_ptr<AsyncCalls> calls)
      : function_(std::move(function)), calls_(std::move(calls)) {}
  Callback(Callback&&) = delete;

  /// `arguments()` makes a tuple of what the function is called with, with the GIL. `what` names it in the log.
  template <class Arguments>
  void invoke(std::string_view what, Arguments arguments) {
    if (calls_ != nullptr) return invoke_last(shared_from_this(), what, std::move(arguments));
    const Gil gil;
    call(what, arguments);
  }
  /// The same with `calls`, which drop the callback after that. Whoever kept it would take the GIL to drop it, as the
  /// thread of a server's loop may not.
  template <class Arguments>
  static void invoke_last(std::shared_ptr<Callback> callback, std::string_view what, Arguments arguments) {
    const std::shared_ptr<AsyncCalls> calls = callback->calls_;
    calls->call_soon([callback = std::move(callback), what = std::string{what},
                      arguments = std::move(arguments)](PyObject*) { callback->call(what, arguments); });
  }

 private:
  template <class Arguments>
  void call(std::string_view what, const Arguments& arguments) {
    try {
      function_.get()(*arguments());
    } catch (...) {
      log_exception(what);
    }
  }
  /// In a catch block.
  static void log_exception(std::string_view what);

  SharedObject function_;
  std::shared_ptr<AsyncCalls> calls_;
};

}  // namespace wirecall::python
