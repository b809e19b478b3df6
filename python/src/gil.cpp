// See gil.hpp.
#include "gil.hpp"

#include <atomic>
#include <thread>
#include <unistd.h>

namespace wirecall::python {
namespace {

std::atomic<bool> ending{false};
std::atomic<bool> ending_waits{false};
std::atomic<int> asking{0};
const std::thread::id main_thread = std::this_thread::get_id();  // which loads the module

// Lives while a thread asks for the GIL; pauses it for ever once the interpreter ends.
class Asking {
 public:
  Asking() noexcept {
    asking.fetch_add(1);
    if (!ending.load() || std::this_thread::get_id() == main_thread) [[likely]]
      return;
    asking.fetch_sub(1);
    for (;;) ::pause();
  }
  Asking(Asking&&) = delete;
  ~Asking() { asking.fetch_sub(1); }
};

// The interpreter's state of a thread that Python has not made. To make one for each use would cost more than most
// handlers, so it lives as long as the thread.
struct KeptState {
  KeptState() noexcept : state(PyGILState_Ensure()), saved(PyEval_SaveThread()) {}
  KeptState(KeptState&&) = delete;
  ~KeptState() {
    if (ending.load() || !Py_IsInitialized()) return;
    const Asking around;
    PyEval_RestoreThread(saved);
    PyGILState_Release(state);
  }

  PyGILState_STATE state;
  PyThreadState* saved;
};

void keep_state() noexcept {
  if (PyGILState_GetThisThreadState() != nullptr) [[likely]]
    return;
  static thread_local const KeptState kept;
}

thread_local bool held = false;
thread_local PyGILState_STATE held_state;
std::atomic<bool> somebody_waits{false};

}  // namespace

void end_threads() {
  ending.store(true);
  const Released released;
  while (asking.load() != 0) std::this_thread::yield();
}

void end_waits() noexcept { ending_waits.store(true); }

ReleasedToWait::~ReleasedToWait() {
  while (ending_waits.load() && std::this_thread::get_id() != main_thread) ::pause();
}

Released::~Released() {
  const Asking around;
  PyEval_RestoreThread(state_);
}

Gil::Gil() {
  const Asking around;
  keep_state();
  state_ = PyGILState_Ensure();
}

SharedObject::~SharedObject() {
  if (!object_.is_valid()) return;
  if (Py_IsInitialized() == 0) {
    static_cast<void>(object_.release());
  } else {
    const Gil gil;
    object_.reset();
  }
}

namespace turn {

bool holds_gil() noexcept { return held; }

bool claim() noexcept { return !somebody_waits.exchange(true, std::memory_order_acquire); }

void take_gil() noexcept {
  const Asking around;
  keep_state();
  held_state = PyGILState_Ensure();
  held = true;
  somebody_waits.store(false, std::memory_order_release);
}

void release() noexcept {
  if (!held) return;
  held = false;
  PyGILState_Release(held_state);
}

}  // namespace turn
}  // namespace wirecall::python
