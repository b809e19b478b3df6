// The GIL, as the threads of servers take it: for one call (Gil), or from the first Python call of a loop's turn to the
// turn's end (turn::). Nothing but Python handlers takes it. Thread: any.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>
#include <utility>

namespace wirecall::python {

// Once the interpreter ends, a thread that asks for the GIL is killed in the middle of a C++ function. So a thread
// pauses for ever before it asks then, and `end_threads` waits for those that ask already.

/// For the main thread, with the GIL, when the interpreter is about to end: any other thread that asks for the GIL from
/// now on pauses for ever.
void end_threads();

/// To be called before that: from now on threads that wait for answers pause for ever when these come. They would
/// raise, be killed while they hold the lock of stderr, and so end the process by a signal.
void end_waits() noexcept;

/// Gives up the GIL while it lives.
class Released {
 public:
  Released() noexcept : state_(PyEval_SaveThread()) {}
  Released(Released&&) = delete;
  ~Released();

 private:
  PyThreadState* state_;
};

/// The same to wait for an answer (end_waits).
class ReleasedToWait : public Released {
 public:
  ReleasedToWait() = default;
  ~ReleasedToWait();
};

/// Holds the GIL while it lives, on a thread that may hold it already.
class Gil {
 public:
  Gil();
  Gil(Gil&&) = delete;
  ~Gil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

/// A Python object that any thread may drop: that takes the GIL, or leaves the object where it is once the interpreter
/// has ended. `get` and `take` are for threads with the GIL.
class SharedObject {
 public:
  SharedObject() = default;
  explicit SharedObject(nanobind::object object) : object_(std::move(object)) {}
  SharedObject(SharedObject&&) noexcept = default;
  SharedObject& operator=(nanobind::object object) {
    object_ = std::move(object);
    return *this;
  }
  ~SharedObject();

  [[nodiscard]] const nanobind::object& get() const noexcept { return object_; }
  [[nodiscard]] nanobind::object take() noexcept { return std::move(object_); }

 private:
  nanobind::object object_;
};

namespace turn {

/// Whether this thread holds the GIL until the end of its turn.
[[nodiscard]] bool holds_gil() noexcept;
/// Announces that this thread is about to wait for the GIL. False when another one waits already: then the call had
/// better run on the pool.
[[nodiscard]] bool claim() noexcept;
/// After `claim`: waits for the GIL, which the thread has until `release`.
void take_gil() noexcept;
/// Gives the GIL back, if this thread holds it.
void release() noexcept;

}  // namespace turn
}  // namespace wirecall::python
