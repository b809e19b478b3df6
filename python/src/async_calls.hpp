// AsyncCalls: a queue of calls of async handlers, from a server's loop to the thread of an asyncio loop. Who puts a
// call in needs no GIL; an eventfd wakes the asyncio loop, which watches it (wirecall/_asyncio_thread.py). Answers go
// back by detail::Executor. Thread: any to start; drain and close are for the one that runs asyncio.
#pragma once

#include <Python.h>
#include <mutex>

#include "wake_event.hpp"
#include "wirecall/call.hpp"

namespace wirecall::python {

class PythonMethod;

/// Whether a task of asyncio has been cancelled. With the GIL.
[[nodiscard]] bool is_cancelled(PyObject* task);

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
