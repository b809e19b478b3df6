// See callback.hpp.
#include "callback.hpp"

#include <utility>

#include "async_calls.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace wirecall::python {
namespace nb = nanobind;

struct Callback::Entry final : AsyncCalls::Entry {
  Entry(std::shared_ptr<Callback> whose, std::function<nb::object()> what)
      : listener(std::move(whose)), arguments(std::move(what)) {}
  void run(PyObject*) override { listener->call(arguments); }
  std::shared_ptr<Callback> listener;
  std::function<nb::object()> arguments;
};

Callback::Callback(std::string what, nb::object function, std::shared_ptr<AsyncCalls> calls)
    : what_(std::move(what)), function_(std::move(function)), calls_(std::move(calls)) {}

Callback::~Callback() {
  if (!Py_IsInitialized()) {
    static_cast<void>(function_.release());
    return;
  }
  const Gil gil;
  function_.reset();
}

void Callback::tell(std::function<nb::object()> arguments) {
  if (calls_ != nullptr) return calls_->post(std::make_shared<Entry>(shared_from_this(), std::move(arguments)));
  const Gil gil;
  call(arguments);
}

void Callback::tell_and_go(std::shared_ptr<Callback> listener) {
  const std::shared_ptr<AsyncCalls> calls = listener->calls_;
  calls->post(std::make_shared<Entry>(std::move(listener), []() -> nb::object { return nb::make_tuple(); }));
}

void Callback::call(const std::function<nb::object()>& arguments) {
  try {
    function_(*arguments());
  } catch (nb::python_error& failure) {
    failure.restore();
    static_cast<void>(take_error(what_, {}));
  }
}

}  // namespace wirecall::python
