// Callback: a Python function that a client tells of what has happened, on the thread of an asyncio loop or on the one
// that drives. Released with the GIL, whoever drops it. Thread: any.
#pragma once

#include <functional>
#include <memory>
#include <nanobind/nanobind.h>
#include <string>

namespace wirecall::python {

class AsyncCalls;

class Callback : public std::enable_shared_from_this<Callback> {
 public:
  /// `what` names it in the log; without `calls` it is called on the thread that tells it. With the GIL.
  Callback(std::string what, nanobind::object function, std::shared_ptr<AsyncCalls> calls);
  Callback(Callback&&) = delete;
  ~Callback();

  /// `arguments` makes a tuple of what the function is called with, with the GIL.
  void tell(std::function<nanobind::object()> arguments);
  /// The same for the last time, without arguments: it goes with this, where the function is called. Whoever kept it
  /// would have to release it with the GIL, as a loop's thread may not. With `calls`.
  static void tell_and_go(std::shared_ptr<Callback> listener);

 private:
  struct Entry;
  void call(const std::function<nanobind::object()>& arguments);

  std::string what_;
  nanobind::object function_;
  std::shared_ptr<AsyncCalls> calls_;
};

}  // namespace wirecall::python
