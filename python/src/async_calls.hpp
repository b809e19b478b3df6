// AsyncCalls: the way of async handlers' calls to the thread that runs an asyncio loop, and of their answers back. The
// loop's thread takes no GIL for it: it puts calls into a queue and wakes the other thread by an eventfd, which that
// loop watches (wirecall/_asyncio_thread.py); answers return to it by detail::Executor.
// Thread: any to start; drain and close are for the one that runs asyncio.
#pragma once

#include <Python.h>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "wake_event.hpp"
#include "wirecall/call.hpp"

namespace wirecall::python {

class PythonMethod;

class AsyncCalls : public std::enable_shared_from_this<AsyncCalls> {
 public:
  /// Something to be done on asyncio's thread. With the GIL; `loop` is the asyncio loop.
  class Entry {
   public:
    Entry() = default;
    Entry(Entry&&) = delete;
    virtual ~Entry() = default;
    virtual void run(PyObject* loop) = 0;
  };

  AsyncCalls() = default;
  AsyncCalls(AsyncCalls&&) = delete;

  [[nodiscard]] int fileno() const noexcept { return event_.fileno(); }
  void post(std::shared_ptr<Entry> entry);
  /// Posts a function of the asyncio loop.
  template <class Function>
  void call_soon(Function function) {
    struct Calling final : Entry {
      explicit Calling(Function what) : function(std::move(what)) {}
      void run(PyObject* loop) override { function(loop); }
      Function function;
    };
    post(std::make_shared<Calling>(std::move(function)));
  }
  /// A call of an async function.
  void start(const PythonMethod& method, Call& call);
  /// Does what has been posted. With the GIL.
  void drain(PyObject* loop);

 private:
  WakeEvent event_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;
};

}  // namespace wirecall::python
