// OffLoopCall: what the function of a method needs of its call on another thread than the loop's, which goes on with
// the call's memory meanwhile; or of one of a batch that runs when the turn has ended. Made on the loop's thread; run
// once, with the GIL.
#pragma once

#include <Python.h>
#include <expected>

#include "context.hpp"
#include "gil.hpp"
#include "handler_input.hpp"
#include "method.hpp"
#include "reference.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/off_loop_reply.hpp"

namespace wirecall::python {

class OffLoopCall {
 public:
  /// `input` is of PythonMethod::take_input. `context` is what the function may know of the call, where it takes that.
  OffLoopCall(const PythonMethod& method, Call& call, InputShare input, std::optional<CallContext> context);

  /// The params have been decoded: `arguments` is what `arguments()` returns.
  OffLoopCall(const PythonMethod& method, Call& call, Reference arguments);

  [[nodiscard]] const PythonMethod& method() const noexcept { return *method_; }
  [[nodiscard]] const Method& registered() const noexcept { return *registered_; }
  [[nodiscard]] const std::string& id() const noexcept { return id_; }

  /// For detail::HandlerScope; null where the function is given no context, and once it has run.
  [[nodiscard]] const void* handled_call() const noexcept;

  /// Decodes the params: a tuple of the function's arguments in its order, with its context; or the error with which
  /// the call is answered. Instead of `run`.
  [[nodiscard]] std::expected<Reference, Error> arguments();
  /// The same, kept for `arguments`: a borrowed tuple.
  [[nodiscard]] std::expected<PyObject*, Error> decode_now();
  /// Decodes the params and calls the function: what that returns, or the error with which the call is answered.
  [[nodiscard]] std::expected<Reference, Error> run();
  /// Writes what the function has come to; where that is null, the Python exception that is set.
  void answer(detail::OffLoopReply& into, PyObject* result) const;
  /// The exception that is set, as what the caller is answered.
  [[nodiscard]] Error take_error() const;

 private:
  // Calls `use` with the decoded arguments, the context and the input.
  template <class Use>
  [[nodiscard]] std::expected<Reference, Error> decode(const Use& use);

  const PythonMethod* method_;
  const Method* registered_;
  const Codec* codec_;
  std::string id_;  // empty for a notification
  Buffer params_;
  InputShare input_;
  std::optional<CallContext> context_;
  SharedObject arguments_;  // where they have been decoded
};

}  // namespace wirecall::python
