// The GIL, as the threads of servers take it: for one call (Gil), or from the first Python call of a loop's turn to the
// turn's end (turn::). Nothing but Python handlers takes it. Thread: any.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>
#include <utility>

namespace wirecall::python {

// When the interpreter ends, a thread that asks for the GIL is ended where it stands, which no C++ function expects. So
// such a thread comes to rest before that, and `end_threads` waits for those that are past asking.

/// To be called by the main thread, with the GIL, when the interpreter is about to end: any other thread that wants the
/// GIL from now on rests for ever.
void end_threads();

/// To be called before that: threads that wait for answers rest for ever from now on, whatever they are answered. They
/// would raise, and be stopped while they hold the lock of stderr, which ends the process by a signal.
void end_waits() noexcept;

/// Gives up the GIL while it lives, which is as long as an answer is waited for.
class ReleasedToWait {
 public:
  ReleasedToWait() noexcept : state_(PyEval_SaveThread()) {}
  ReleasedToWait(ReleasedToWait&&) = delete;
  ~ReleasedToWait();

 private:
  PyThreadState* state_;
};

/// Gives up the GIL while it lives.
class Released {
 public:
  Released() noexcept : state_(PyEval_SaveThread()) {}
  Released(Released&&) = delete;
  ~Released();

 private:
  PyThreadState* state_;
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
  SharedObject(SharedObject&&) = delete;
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
/// Announces that this thread is about to wait for the GIL. False when another one does so already: then what needs it
/// had better wait elsewhere than in a loop's thread.
[[nodiscard]] bool claim() noexcept;
/// After `claim`: waits for the GIL, which the thread has until `release`.
void take_gil() noexcept;
/// Gives the GIL back, if this thread holds it.
void release() noexcept;

}  // namespace turn
}  // namespace wirecall::python
