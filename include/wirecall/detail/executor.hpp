// Executor: the thread on which a task is resumed when another thread completes what it waits for. The loop of a server
// or client is the executor of the tasks that it starts. A task that is started by hand has none, and is resumed on the
// thread that wakes it.
// Shared by everything that may still wake a task. Thread: any.
#pragma once

#include <memory>

namespace wirecall::detail {

class Executor {
 public:
  /// One piece of work to be run on the executor's thread. It contains the link of the executor's queue, so posting it
  /// allocates nothing and cannot fail: whoever waits has allocated it beforehand.
  class Continuation {
   public:
    Continuation() = default;
    Continuation(Continuation&&) = delete;
    virtual ~Continuation() = default;

    /// Called once, on the executor's thread.
    virtual void resume() noexcept = 0;

    std::shared_ptr<Continuation> next;  ///< the executor's, while the continuation is in its queue
  };

  /// Calls `continuation->resume()` once, in the next turn of the executor's thread; drops it where that thread has
  /// ended. A continuation is in one queue at a time.
  virtual void post(std::shared_ptr<Continuation> continuation) noexcept = 0;

 protected:
  ~Executor() = default;
};

}  // namespace wirecall::detail
