// A function as what an executor runs on the thread of its loop. Thread: any.
#pragma once

#include "wirecall/detail/executor.hpp"

namespace wirecall::python {

/// A function for Executor::post, which runs it on the thread of its loop. It must not throw.
template <class Function>
[[nodiscard]] std::shared_ptr<detail::Executor::Continuation> make_continuation(Function function) {
  struct Running final : detail::Executor::Continuation {
    explicit Running(Function what) : function(std::move(what)) {}
    void resume() noexcept override { function(); }
    Function function;
  };
  return std::make_shared<Running>(std::move(function));
}

}  // namespace wirecall::python
