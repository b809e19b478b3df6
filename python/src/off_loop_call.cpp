// See off_loop_call.hpp.
#include "off_loop_call.hpp"

#include "caller_channel.hpp"
#include "errors.hpp"
#include "wirecall/detail/spares.hpp"

namespace wirecall::python {

OffLoopCall::OffLoopCall(const PythonMethod& method, Call& call, InputShare input, std::optional<CallContext> context)
    : method_(&method),
      registered_(&call.method()),
      codec_(&call.codec()),
      id_(call.is_notification() ? std::string_view{} : call.message().id()),
      params_(call.params()),
      input_(std::move(input)),
      context_(std::move(context)) {
  static_cast<void>(params_.padded());
}

OffLoopCall::OffLoopCall(const PythonMethod& method, Call& call, Reference arguments)
    : method_(&method),
      registered_(&call.method()),
      codec_(&call.codec()),
      id_(call.is_notification() ? std::string_view{} : call.message().id()),
      arguments_(nanobind::steal(arguments.release())) {}

const void* OffLoopCall::handled_call() const noexcept {
  return context_ && context_->channel ? context_->channel->handled_call() : nullptr;
}

template <class Use>
std::expected<Reference, Error> OffLoopCall::decode(const Use& use) {
  detail::ParamReaders readers{.reader = detail::take_reader(*codec_), .defaults = {}};
  PythonMethod::Arguments arguments{*method_};
  if (!detail::decode_params(params_.view(), *registered_, readers, arguments.pointers()))
    return std::unexpected(PyErr_Occurred() != nullptr ? take_error() : decode_error(*readers.reader));
  detail::keep_spare(std::move(readers.reader), params_.size());
  const detail::HandlerScope handler{handled_call()};
  Reference context;
  if (method_->takes_context()) context = Reference::steal(make_context(*std::move(context_)));
  Reference input;
  if (input_.get() != nullptr) input = Reference::steal(make_input(input_.get(), method_->is_asynchronous()));
  Reference result = Reference::steal(use(arguments, context.get(), input.get()));
  if (!result) return std::unexpected(take_error());
  return result;
}

std::expected<Reference, Error> OffLoopCall::run() {
  return decode([this](PythonMethod::Arguments& arguments, PyObject* context, PyObject* input) {
    return method_->call(arguments, context, input);
  });
}

std::expected<Reference, Error> OffLoopCall::arguments() {
  if (nanobind::object decoded = arguments_.take()) return Reference::steal(decoded.release().ptr());
  return decode([this](PythonMethod::Arguments& arguments, PyObject* context, PyObject*) {
    return method_->tuple_of(arguments, context);
  });
}

std::expected<PyObject*, Error> OffLoopCall::decode_now() {
  std::expected<Reference, Error> decoded = arguments();
  if (!decoded) return std::unexpected(std::move(decoded).error());
  arguments_ = nanobind::steal(decoded->release());
  return arguments_.get().ptr();
}

void OffLoopCall::answer(detail::OffLoopReply& into, PyObject* result) const {
  python::answer(into, result, registered_->name(), id_, method_->checked());
}

Error OffLoopCall::take_error() const { return python::take_error(registered_->name(), id_); }

}  // namespace wirecall::python
